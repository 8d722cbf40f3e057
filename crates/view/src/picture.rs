//! What a picture of a chain shows: boxes with their texts, ports and wires.

use std::collections::HashMap;

use compiler::Chain;
use elements::element::Category;
use elements::registry;
use ir::{Graph, Processing, Sources, Terminal};

use crate::layout::{self, Diagram, End};

/// Characters of a configuration that are shown in a line.
const CONFIG: usize = 34;
/// Lines of configuration that are shown.
const LINES: usize = 3;
/// Space inside boxes.
pub(crate) const PADDING: f64 = 10.0;
/// Height of a box's title, and of each line of configuration.
pub(crate) const TITLE_HEIGHT: f64 = 17.0;
pub(crate) const LINE_HEIGHT: f64 = 13.5;
/// Height of port numbers inside a box.
pub(crate) const NUMBERS: f64 = 9.0;
pub(crate) const TITLE_SIZE: f64 = 12.5;
pub(crate) const CONFIG_SIZE: f64 = 10.5;

/// The texts of an element.
pub(crate) struct Label {
    /// Name within its compound; empty if the configuration gives none.
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) config: Vec<String>,
    /// All that is known, for a tooltip.
    pub(crate) tooltip: String,
    pub(crate) category: Category,
}

/// The texts of a compound.
pub(crate) struct Heading {
    pub(crate) name: String,
    pub(crate) class: String,
    pub(crate) tooltip: String,
    pub(crate) depth: usize,
}

/// A chain, ready to be laid out and drawn.
pub struct Picture {
    pub(crate) elements: Vec<Label>,
    pub(crate) compounds: Vec<Heading>,
    pub(crate) diagram: Diagram,
    /// Whether each wire is pulled over, and its tooltip.
    pub(crate) wires: Vec<(bool, String)>,
}

impl Picture {
    /// Of a chain.
    pub fn of(chain: &Chain, sources: &Sources) -> Self {
        let graph = &chain.graph;
        let mut picture = Self {
            elements: Vec::new(),
            compounds: Vec::new(),
            diagram: Diagram::default(),
            wires: Vec::new(),
        };
        let local = |name: &str, group: Option<usize>| {
            let prefix = group.map_or(0, |g| graph.groups[g].name.len() + 1);
            name.get(prefix..).unwrap_or(name).to_string()
        };
        for group in &graph.groups {
            let depth = group.parent.map_or(0, |p| picture.compounds[p].depth + 1);
            let place = sources.landmark(group.span);
            let name = named(local(&group.name, group.parent));
            let class = if group.class.is_empty() { "{ … }" } else { &group.class }.to_string();
            let title = text_width(&title(&name, &class), 12.0, true) + 4.0;
            let tooltip = format!("{} :: {class}\n{place}", group.name);
            picture.compounds.push(Heading { name, class, tooltip, depth });
            let compound = layout::Compound { inside: group.parent, title, ..Default::default() };
            picture.diagram.compounds.push(compound);
        }
        for (node, arguments) in graph.nodes.iter().zip(&chain.arguments) {
            let config = shown(arguments.iter().map(|a| a.text.as_str()));
            let category =
                registry::find(&node.class).map_or(Category::Plumbing, |class| class.category);
            let whole = shorten(&node.config, 2000);
            let place = sources.landmark(node.span);
            let label = Label {
                name: named(local(&node.name, node.group)),
                class: node.class.clone(),
                tooltip: format!("{} :: {}({whole})\n{place}", node.name, node.class),
                config,
                category,
            };
            let (inputs, outputs) = (node.inputs.len(), node.outputs.len());
            let (width, height) = size(&label, inputs, outputs);
            picture.elements.push(label);
            picture.diagram.elements.push(layout::Element {
                width,
                height,
                inside: node.group,
                inputs,
                outputs,
            });
        }
        for wire in &graph.wires {
            let ends = [picture.end(wire.from), picture.end(wire.to)];
            picture.diagram.wires.push(layout::Wire { from: ends[0], to: ends[1] });
        }
        let pulled = pulled(graph);
        let said = |t: Terminal, output: bool| match t {
            Terminal::Node(p) if output => format!("{} [{}]", graph.nodes[p.node].name, p.port),
            Terminal::Node(p) => format!("[{}] {}", p.port, graph.nodes[p.node].name),
            Terminal::Input(g, p) => format!("[{p}] {}", graph.groups[g].name),
            Terminal::Output(g, p) => format!("{} [{p}]", graph.groups[g].name),
        };
        picture.wires = graph
            .wires
            .iter()
            .zip(pulled)
            .map(|(wire, pulled)| {
                let processing = if pulled { "pull" } else { "push" };
                let (from, to) = (said(wire.from, true), said(wire.to, false));
                (pulled, format!("{from} → {to} ({processing})\n{}", sources.landmark(wire.span)))
            })
            .collect();
        picture
    }

    /// The end of a wire; ports of compounds are counted by the wires that lead to them.
    fn end(&mut self, terminal: Terminal) -> End {
        match terminal {
            Terminal::Node(port) => End::Element(port.node, port.port),
            Terminal::Input(group, port) => {
                let inputs = &mut self.diagram.compounds[group].inputs;
                *inputs = (*inputs).max(port + 1);
                End::Input(group, port)
            }
            Terminal::Output(group, port) => {
                let outputs = &mut self.diagram.compounds[group].outputs;
                *outputs = (*outputs).max(port + 1);
                End::Output(group, port)
            }
        }
    }
}

/// The name, unless it is one that was made up for an anonymous element.
fn named(name: String) -> String {
    if name.contains('@') { String::new() } else { name }
}

/// `name :: Class`, or the class alone.
pub(crate) fn title(name: &str, class: &str) -> String {
    if name.is_empty() { class.to_string() } else { format!("{name} :: {class}") }
}

/// Arguments in few short lines.
fn shown<'a>(arguments: impl ExactSizeIterator<Item = &'a str> + Clone) -> Vec<String> {
    let flat = |a: &str| shorten(a, CONFIG);
    let count = arguments.len();
    let joined: Vec<String> = arguments.clone().take(LINES + 1).map(flat).collect();
    let joined = joined.join(", ");
    if count == 0 || joined.is_empty() {
        return Vec::new();
    }
    if count <= LINES + 1 && joined.chars().count() <= CONFIG {
        return vec![joined];
    }
    let shown = if count > LINES { LINES - 1 } else { LINES };
    let mut lines: Vec<String> = arguments.take(shown).map(flat).collect();
    if count > LINES {
        lines.push(format!("… {} more", count - shown));
    }
    lines
}

/// A text on one line, cut to so many characters.
fn shorten(text: &str, length: usize) -> String {
    let mut short = String::new();
    let mut count = 0;
    // A rule list may be megabytes long: only what is shown is looked at.
    for word in text.split_whitespace() {
        if count > 0 {
            short.push(' ');
        }
        for c in word.chars() {
            count += 1;
            if count > length {
                let cut = short.char_indices().next_back().map_or(0, |(i, _)| i);
                short.truncate(cut);
                return short + "…";
            }
            short.push(c);
        }
        count += 1;
    }
    short
}

fn size(label: &Label, inputs: usize, outputs: usize) -> (f64, f64) {
    let title = text_width(&title(&label.name, &label.class), TITLE_SIZE, true);
    let config = label.config.iter().map(|l| l.chars().count()).max().unwrap_or(0) as f64;
    let text = title.max(config * CONFIG_SIZE * 0.602);
    let ports = inputs.max(outputs) as f64 * layout::PORT_PITCH;
    let width = (text + 2.0 * PADDING).max(ports).max(54.0).ceil();
    let numbers = f64::from(u8::from(inputs > 1)) + f64::from(u8::from(outputs > 1));
    let height =
        TITLE_HEIGHT + LINE_HEIGHT * label.config.len() as f64 + PADDING + NUMBERS * numbers;
    (width, height.ceil())
}

/// About how wide a text is in a common sans-serif font, rather too much than too little.
pub(crate) fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' => 0.34,
        'f' | 't' | 'r' | 'I' | '/' | '(' | ')' | '[' | ']' | '{' | '}' | ' ' => 0.42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.98,
        'A'..='Z' | '_' | '&' => 0.72,
        c if !c.is_ascii() => 0.9,
        _ => 0.63,
    };
    text.chars().map(em).sum::<f64>() * size * if bold { 1.07 } else { 1.0 }
}

/// Whether packets are pulled over each wire, as the elements at its ends say.
fn pulled(graph: &Graph) -> Vec<bool> {
    let known = |t: Terminal, output: bool| match t {
        Terminal::Node(p) => {
            let node = &graph.nodes[p.node];
            let ports = if output { &node.outputs } else { &node.inputs };
            ports.get(p.port).filter(|p| **p != Processing::Agnostic)
        }
        _ => None,
    };
    let mut pulled: Vec<Option<bool>> = graph
        .wires
        .iter()
        .map(|w| Some(*known(w.from, true).or_else(|| known(w.to, false))? == Processing::Pull))
        .collect();
    // From wire to wire through the ports of compounds.
    let mut meeting: HashMap<Terminal, Vec<usize>> = HashMap::new();
    for (i, wire) in graph.wires.iter().enumerate() {
        for end in [wire.from, wire.to] {
            if !matches!(end, Terminal::Node(_)) {
                meeting.entry(end).or_default().push(i);
            }
        }
    }
    let mut work: Vec<usize> = (0..pulled.len()).filter(|&i| pulled[i].is_some()).collect();
    while let Some(i) = work.pop() {
        for end in [graph.wires[i].from, graph.wires[i].to] {
            for &other in meeting.get(&end).into_iter().flatten() {
                if pulled[other].is_none() {
                    pulled[other] = pulled[i];
                    work.push(other);
                }
            }
        }
    }
    pulled.into_iter().map(|p| p.unwrap_or(false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_are_cut_short() {
        let lines = |all: &[&str]| shown(all.iter().copied());
        assert_eq!(lines(&[]), [""; 0]);
        assert_eq!(lines(&["14"]), ["14"]);
        assert_eq!(lines(&["a", "b\n  c"]), ["a, b c"]);
        assert_eq!(lines(&["12/0806 20/0001", "12/0806 20/0002", "12/0800"]).len(), 3);
        assert_eq!(lines(&["one rule of many words"; 9])[2], "… 7 more");
        let long = lines(&["x".repeat(100).as_str()]);
        assert_eq!((long.len(), long[0].chars().count()), (1, CONFIG));
    }
}
