//! A report for people.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use compiler::explain::provenance::{Conditions, Figures};
use ir::NodeId;
use ir::program::Barrier;

use super::{Became, Class, Cost, Egress, Report, Words, in_order, one_rule};
use crate::paint::{Paint, count};
use crate::table::{Table, grouped};

/// Elements before a program that are named.
const FEEDERS: usize = 3;
/// Egresses whose longest paths are shown.
const EGRESSES: usize = 6;
/// Reasons and barriers that are shown.
const BARRIERS: usize = 8;
/// Width of a class's conditions and operations.
const WIDTH: usize = 64;
/// Width of the elements that they come from.
const NAME: usize = 24;
/// Further elements that are shown.
const OTHERS: usize = 3;

/// What the chain became, in short.
pub fn summary(report: &Report<'_>, paint: Paint) -> String {
    let mut text = String::new();
    let size = format!(
        "{} became {}",
        count(report.graph.nodes.len(), "element"),
        count(report.programs.len(), "program")
    );
    let _ = writeln!(text, "{}: {size}", paint.bold(&report.name));
    for became in &report.programs {
        text.push('\n');
        program(report, became, paint, &mut text);
    }
    if report.programs.is_empty() {
        let _ = writeln!(text, "\n  no packet comes to an element that a program could take over");
    }
    notes(report, paint, &mut text);
    let _ = writeln!(text, "\n{}", paint.dim(&cost(report)));
    text
}

/// `customers → kind`
pub(crate) fn title(report: &Report<'_>, became: &Became<'_>) -> String {
    let mut feeders: Vec<String> =
        became.feeders.iter().take(FEEDERS).map(|&n| report.element(n).to_string()).collect();
    if became.feeders.len() > FEEDERS {
        feeders.push(format!("{} more", became.feeders.len() - FEEDERS));
    }
    let entry = became.program.entry;
    let input = match entry.port {
        0 => String::new(),
        n => format!("[{n}] "),
    };
    let to = format!("{input}{}", report.element(entry.node));
    if feeders.is_empty() { to } else { format!("{} → {to}", feeders.join(", ")) }
}

fn program(report: &Report<'_>, became: &Became<'_>, paint: Paint, text: &mut String) {
    let place = report.place(became.program.entry.node);
    let _ = writeln!(text, "{}  {}", paint.bold(&title(report, became)), paint.dim(&place));
    let of =
        |wanted: fn(Egress) -> bool| became.classes.iter().filter(|c| wanted(c.egress)).count();
    let kinds = [
        (of(|e| matches!(e, Egress::Leaves(_))), "leaves", "leave"),
        (of(|e| matches!(e, Egress::GoesOn(_))), "continues elsewhere", "continue elsewhere"),
        (
            of(|e| matches!(e, Egress::HandedOver(_))),
            "falls back to an element",
            "fall back to elements",
        ),
        (of(|e| matches!(e, Egress::Dropped(..))), "is dropped", "are dropped"),
    ];
    let said = |&(n, one, many): &(usize, &str, &str)| match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    };
    let said: Vec<String> = kinds.iter().filter(|k| k.0 > 0).map(said).collect();
    let classes = match became.classes.len() {
        1 => "1 class".to_string(),
        n => format!("{n} classes"),
    };
    let _ = writeln!(text, "  {classes} of packets: {}", said.join(", "));
    let mut table = Table::new([
        "longest path to",
        "",
        "elements",
        "decisions",
        "reads",
        "writes",
        "sums checked",
        "sums written",
        "flow lookups",
        "tables",
        "headers moved",
    ]);
    let shown = longest(became);
    for class in shown.iter().take(EGRESSES) {
        let to = match class.egress {
            Egress::Dropped(node, reason) => format!("{reason} at {}", report.element(node)),
            Egress::Leaves(node) | Egress::GoesOn(node) | Egress::HandedOver(node) => {
                report.element(node).to_string()
            }
        };
        row(&mut table, to, "chain", class.chain);
        row(&mut table, String::new(), "program", class.figures);
    }
    if !table.is_empty() {
        text.push_str(&table.render());
    }
    if shown.len() > EGRESSES {
        let _ = writeln!(text, "  {}", paint.dim(&format!("… {} more", shown.len() - EGRESSES)));
    }
    let mut barriers: BTreeMap<(NodeId, Barrier), usize> = BTreeMap::new();
    for class in &became.classes {
        if let (Some(why), Egress::GoesOn(node) | Egress::HandedOver(node)) =
            (class.exit.barrier, class.egress)
        {
            *barriers.entry((node, why)).or_default() += 1;
        }
    }
    if !barriers.is_empty() {
        let _ = writeln!(text, "  programs end, and elements take over, at");
        let mut table = Table::new(["element", "classes", "because it", "place"]);
        for ((node, why), n) in barriers.iter().take(BARRIERS) {
            let place = report.place(*node);
            table.row([report.element(*node).to_string(), n.to_string(), why.to_string(), place]);
        }
        for line in table.render().lines().skip(1) {
            let _ = writeln!(text, "  {}", paint.yellow(line));
        }
        if barriers.len() > BARRIERS {
            let _ = writeln!(text, "    … {} more", barriers.len() - BARRIERS);
        }
    }
    let size = format!(
        "{}, {}, {}, {}, {}",
        count(became.program.steps.len(), "step"),
        count(became.program.terms.len(), "term"),
        count(became.rules(), "rule"),
        count(became.program.lookups.len(), "flow lookup"),
        bytes(became.size as u64),
    );
    let _ = writeln!(text, "  {}", paint.dim(&size));
}

/// For each egress the class that goes through most elements: those that leave or go on, or, if
/// there are none, those that are dropped.
pub(crate) fn longest<'r, 'a>(became: &'r Became<'a>) -> Vec<&'r Class<'a>> {
    let mut best: BTreeMap<(u8, NodeId), &Class<'a>> = BTreeMap::new();
    for class in &became.classes {
        let key = match class.egress {
            Egress::Leaves(node) => (0, node),
            Egress::GoesOn(node) => (1, node),
            Egress::HandedOver(_) => continue,
            Egress::Dropped(node, _) => (2, node),
        };
        match best.get(&key) {
            Some(old) if weight(old) >= weight(class) => {}
            _ => {
                best.insert(key, class);
            }
        }
    }
    let goes = |key: &(u8, NodeId)| key.0 < 2;
    if best.keys().any(goes) {
        best.retain(|key, _| goes(key));
        return best.into_values().collect();
    }
    best.into_values().max_by_key(|c| weight(c)).into_iter().collect()
}

/// Most elements count; of as many, the path that takes the fewest decisions and writes is the most
/// usual.
pub(crate) fn weight(class: &Class<'_>) -> (usize, Reverse<usize>, Reverse<usize>) {
    let figures = class.figures;
    (class.chain.elements, Reverse(figures.decisions), Reverse(class.chain.writes))
}

fn row(table: &mut Table, to: String, who: &str, f: Figures) {
    let n = |n: usize| grouped(n as u64);
    table.row([
        to,
        who.to_string(),
        n(f.elements),
        n(f.decisions),
        n(f.reads),
        n(f.writes),
        n(f.verified),
        n(f.updated),
        n(f.flows),
        n(f.tables),
        n(f.moves),
    ]);
}

fn notes(report: &Report<'_>, paint: Paint, text: &mut String) {
    if report.synthesis.notes.is_empty() {
        return;
    }
    text.push_str("\nnotes\n");
    for note in &report.synthesis.notes {
        let (name, place) = (report.element(note.element), report.place(note.element));
        let _ = writeln!(text, "  {}  {}  {}", paint.yellow(name), note.message, paint.dim(&place));
    }
}

fn cost(report: &Report<'_>) -> String {
    let peak = report.cost.peak.map_or(String::new(), |p| format!(", {} at most", bytes(p)));
    let Cost { elaboration, synthesis, proof, description, proven, .. } = report.cost;
    let proven = match (proven, report.programs.len()) {
        (proven, all) if proven < all => format!("{proven} of {all} proven"),
        _ => "proven".to_string(),
    };
    format!(
        "elaborated in {}, synthesised in {}, {proven} in {}, described in {}{peak}",
        time(elaboration),
        time(synthesis),
        time(proof),
        time(description)
    )
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.001 => format!("{:.1} ms", s * 1e3),
        s => format!("{:.0} µs", s * 1e6),
    }
}

fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 20 => format!("{:.1} MiB", n as f64 / f64::from(1 << 20)),
        n if n >= 1 << 10 => format!("{:.1} KiB", n as f64 / 1024.0),
        n => format!("{n} bytes"),
    }
}

/// Where a class goes: `leaves by internet`.
pub(crate) fn destination(report: &Report<'_>, class: &Class<'_>) -> String {
    let why = class.exit.barrier.map_or(String::new(), |why| format!(" ({why})"));
    match class.egress {
        Egress::Leaves(node) => format!("leaves by {}", report.element(node)),
        Egress::GoesOn(node) => format!("continues at {}{why}", report.element(node)),
        Egress::HandedOver(node) => {
            format!("falls back to {}{why}", report.element(node))
        }
        Egress::Dropped(node, reason) => {
            format!("is dropped by {}: {reason}", report.element(node))
        }
    }
}

/// The classes of all programs whose egress has the given text in it.
pub fn classes(report: &Report<'_>, egress: Option<&str>, limit: usize, paint: Paint) -> String {
    let mut text = String::new();
    for became in &report.programs {
        let goes = |c: &&Class<'_>| egress.is_none_or(|e| destination(report, c).contains(e));
        let chosen: Vec<&Class<'_>> = became.classes.iter().filter(goes).collect();
        let all = became.classes.len();
        let number = match chosen.len() {
            0 => continue,
            1 if all == 1 => "1 class".to_string(),
            n if n == all => format!("{n} classes"),
            n => format!("{n} of {all} classes"),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "{}  {number}", paint.bold(&title(report, became)));
        for class in chosen.iter().take(limit) {
            text.push('\n');
            tell(report, became, class, paint, &mut text);
        }
        if chosen.len() > limit {
            let more = format!("… {} more; --limit 0 shows all", chosen.len() - limit);
            let _ = writeln!(text, "\n{}", paint.dim(&more));
        }
    }
    if let (true, Some(egress)) = (text.is_empty(), egress) {
        let _ = writeln!(text, "no class of packets goes to, or is dropped by or for, '{egress}'");
    }
    text
}

fn tell(
    report: &Report<'_>,
    became: &Became<'_>,
    class: &Class<'_>,
    paint: Paint,
    text: &mut String,
) {
    let words = report.words(became.program, class);
    let to = destination(report, class);
    let to = match class.egress {
        Egress::Leaves(_) | Egress::GoesOn(_) => paint.green(&to),
        Egress::HandedOver(_) => paint.yellow(&to),
        Egress::Dropped(..) => paint.red(&to),
    };
    let _ = writeln!(
        text,
        "class {}  {to}",
        paint.bold(&format!("{} of {}", class.number, became.classes.len())),
    );
    let mut groups = asked(report, &words, &class.known);
    let either = class.either(words);
    if groups.is_empty() && either.is_empty() && class.alternatives.is_some() {
        let said = vec!["whatever comes".to_string()];
        groups.push(Group { elements: Vec::new(), said, rule: None });
    }
    if class.alternatives.is_none() {
        let paths = match class.paths {
            u128::MAX => "very many paths".to_string(),
            n => format!("{} paths", u64::try_from(n).map_or_else(|_| n.to_string(), grouped)),
        };
        let said = vec![format!("and the conditions of one of {paths}, too many to show")];
        groups.push(Group { elements: Vec::new(), said, rule: None });
    }
    lines(report, "if", &groups, paint, text);
    for (i, (known, words)) in either.iter().enumerate() {
        let head = match (i, either.len(), groups.is_empty()) {
            (0, 1, true) => "if",
            (0, 1, false) => "and",
            (0, ..) => "either",
            _ => "or",
        };
        lines(report, head, &asked(report, words, known), paint, text);
    }
    let mut groups: Vec<Group> = Vec::new();
    for done in class.done(&words) {
        add(&mut groups, done.said(), done.elements);
    }
    lines(report, "then", &groups, paint, text);
}

/// Conditions; what one element asked in a row stands together.
fn asked(report: &Report<'_>, words: &Words<'_>, known: &Conditions) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (asked, condition) in in_order(known) {
        let said = words.condition(asked, condition);
        let rule = one_rule(words, asked, condition).map(|span| report.sources.landmark(span));
        match groups.last_mut() {
            Some(group) if group.elements == *condition.elements && group.rule == rule => {
                group.said.push(said);
            }
            _ => {
                let elements = condition.elements.to_vec();
                groups.push(Group { elements, said: vec![said], rule });
            }
        }
    }
    groups
}

/// Adds what is said to what has to do with the same elements.
pub(crate) fn add(groups: &mut Vec<Group>, said: String, elements: Vec<NodeId>) {
    match groups.iter_mut().find(|g| g.elements == elements) {
        Some(group) => group.said.push(said),
        None => groups.push(Group { elements, said: vec![said], rule: None }),
    }
}

/// What has to do with the same elements.
pub(crate) struct Group {
    pub(crate) elements: Vec<NodeId>,
    pub(crate) said: Vec<String>,
    /// Where the one rule stands that it is about.
    pub(crate) rule: Option<String>,
}

/// A line or more for each group: the element, what is said, and where it stands.
pub(crate) fn lines(
    report: &Report<'_>,
    head: &str,
    groups: &[Group],
    paint: Paint,
    text: &mut String,
) {
    let mut head = head;
    for Group { elements, said, rule } in groups {
        let mut said = said.join(", ");
        if elements.len() > 1 {
            let others: Vec<&str> = elements[1..].iter().map(|&n| report.element(n)).collect();
            let shown = others.len().min(OTHERS);
            let _ = write!(said, " (also {}", others[..shown].join(", "));
            if others.len() > shown {
                let _ = write!(said, " and {} more", others.len() - shown);
            }
            said.push(')');
        }
        let mut wrapped: Vec<String> = vec![String::new()];
        for word in said.split(' ') {
            let full = wrapped.last().is_some_and(|line| {
                !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH
            });
            match wrapped.last_mut() {
                Some(line) if !full => {
                    line.push_str(if line.is_empty() { "" } else { " " });
                    line.push_str(word);
                }
                _ => wrapped.push(word.to_string()),
            }
        }
        let first = elements.first().copied();
        let mut name = first.map_or("", |n| report.element(n)).to_string();
        for (i, line) in wrapped.iter().enumerate() {
            let place = match (i, rule, first) {
                (0, Some(rule), _) => rule.clone(),
                (0, None, Some(node)) => report.place(node),
                _ => String::new(),
            };
            let padded = format!("{name:NAME$}");
            let gap = " ".repeat(WIDTH.saturating_sub(line.chars().count()));
            let row =
                format!("  {head:6}  {}  {line}{gap}  {}", paint.bold(&padded), paint.dim(&place));
            let _ = writeln!(text, "{}", row.trim_end());
            head = "";
            name.clear();
        }
    }
}
