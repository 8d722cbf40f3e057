//! Chains: the elements that stand in them, and their connections.

use click::ast::{self, Chain, Endpoint, Group, Node};
use ir::{Diagnostic, Span};

use super::{Draft, ItemKind, Link, MAX_LINKS, Resolver};
use crate::frontend::connect::{PortSpec, Side, connect};

/// Longer configurations are not underlined where an element is connected.
const MAX_SHOWN: usize = 40;

/// One end of a connection in the making.
struct End<'a> {
    /// The item as one that packets go to.
    to: usize,
    /// The item as one that packets come from.
    from: usize,
    inputs: PortSpec<'a>,
    outputs: PortSpec<'a>,
    /// What stands next to an arrow before it.
    head: Span,
    /// What stands next to an arrow behind it.
    tail: Span,
}

impl<'a> Resolver<'a, '_> {
    pub(super) fn chain(&mut self, draft: &mut Draft<'a>, chain: &'a Chain) {
        let mut previous: Option<Vec<End<'a>>> = None;
        for (index, stage) in chain.stages.iter().enumerate() {
            let ends = self.stage(draft, stage);
            if let Some(before) = &previous
                && let Some(arrow) = chain.arrows.get(index - 1)
            {
                self.connect(draft, before, &ends, arrow);
            }
            previous = Some(ends);
        }
    }

    fn stage(&mut self, draft: &mut Draft<'a>, stage: &'a [Endpoint]) -> Vec<End<'a>> {
        // Like Click, groups come first, whatever stands before them between the same arrows.
        let mut groups: Vec<[usize; 2]> = Vec::new();
        for endpoint in stage {
            if let Node::Group(group) = &endpoint.node {
                groups.push(self.group(draft, group));
            }
        }
        let mut groups = groups.into_iter();
        stage
            .iter()
            .map(|endpoint| {
                let [to, from] = match &endpoint.node {
                    Node::Group(_) => groups.next().unwrap_or([0, 0]),
                    node => [self.node(draft, node, endpoint.span); 2],
                };
                let ports =
                    |written: &'a Option<ast::Ports>, item: usize, side: usize| match written {
                        Some(ports) => PortSpec::Written(ports),
                        None if matches!(endpoint.node, Node::Group(_)) => {
                            PortSpec::First(draft.template.items[item].used[side] as u32)
                        }
                        None => PortSpec::Unwritten,
                    };
                let [head, tail] = edges_of(endpoint);
                End {
                    to,
                    from,
                    inputs: ports(&endpoint.inputs, to, 1),
                    outputs: ports(&endpoint.outputs, from, 0),
                    head,
                    tail,
                }
            })
            .collect()
    }

    fn node(&mut self, draft: &mut Draft<'a>, node: &'a Node, span: Span) -> usize {
        match node {
            Node::Name { name, config } => self.refer(draft, name, config.as_ref()),
            Node::Declaration { name, class, config } => {
                let (meaning, written) = self.written_class(draft, class);
                let place = match class {
                    ast::Class::Named(class) => name.span.to(class.span),
                    ast::Class::Compound(_) => name.span,
                };
                self.declare(draft, name, meaning, written, config.as_ref(), place)
            }
            Node::Compound { compound, config } => {
                let class = self.compound(draft, "", compound);
                let kind = ItemKind::Element { class, written: "", config: config.as_ref() };
                draft.add_anonymous("", kind, compound.span)
            }
            Node::Input | Node::Output => {
                let name = if matches!(node, Node::Input) { "input" } else { "output" };
                match draft.names.get(name) {
                    Some(&item) => item,
                    None => draft.add_anonymous("", ItemKind::Awaited, span),
                }
            }
            // Dealt with by the stage.
            Node::Group(_) => 0,
        }
    }

    /// The statements of a group; returns its `input` and `output`.
    fn group(&mut self, draft: &mut Draft<'a>, group: &'a Group) -> [usize; 2] {
        let name = format!("@{}", draft.next_number());
        // Click counts the group as an element as well as its ends.
        draft.add(name.clone(), ItemKind::Relay, group.span);
        let ends = ["input", "output"]
            .map(|end| draft.add(format!("{name}/{end}"), ItemKind::Relay, group.span));
        let around = ["input", "output"];
        let saved = [0, 1].map(|i| draft.names.insert(around[i].to_owned(), ends[i]));
        let first = draft.template.links.len();
        draft.groups += 1;
        self.statements(draft, &group.statements);
        draft.groups -= 1;
        for (i, saved) in saved.into_iter().enumerate() {
            match saved {
                Some(item) => draft.names.insert(around[i].to_owned(), item),
                None => draft.names.remove(around[i]),
            };
        }
        self.check_pseudo(&draft.template, ends, first, "the group");
        ends
    }

    fn connect(
        &mut self,
        draft: &mut Draft<'a>,
        before: &[End<'a>],
        after: &[End<'a>],
        arrow: &'a ast::Arrow,
    ) {
        if let ast::ArrowKind::Context(_) = arrow.kind {
            self.report.add(
                Diagnostic::error("context-link", "context links are not supported")
                    .label(arrow.span, "")
                    .help("`->` connects without a context"),
            );
        }
        let span = |ends: &[End<'a>], edge: fn(&End<'a>) -> Span| match ends {
            [] => arrow.span,
            [first, .., last] => edge(first).to(edge(last)),
            [only] => edge(only),
        };
        let left = Side {
            ports: before.iter().map(|e| e.outputs).collect(),
            span: span(before, |e| e.tail),
        };
        let right =
            Side { ports: after.iter().map(|e| e.inputs).collect(), span: span(after, |e| e.head) };
        let limit = MAX_LINKS - self.links;
        let pairs = connect(&left, &right, (&arrow.kind, arrow.span), limit + 1, |diagnostic| {
            self.report.add(diagnostic);
        });
        if pairs.len() > limit {
            self.report.add(
                Diagnostic::error("too-many-connections", "there are too many connections")
                    .label(arrow.span, format!("the limit of {MAX_LINKS} is reached here")),
            );
            return;
        }
        self.links += pairs.len();
        let items = &mut draft.template.items;
        for ((left, output), (right, input)) in pairs {
            let (from, to) = (&before[left], &after[right]);
            let outputs = &mut items[from.from].used[1];
            *outputs = (*outputs).max(output as usize + 1);
            let inputs = &mut items[to.to].used[0];
            *inputs = (*inputs).max(input as usize + 1);
            let span = from.tail.to(to.head);
            draft.template.links.push(Link { from: (from.from, output), to: (to.to, input), span });
        }
    }
}

/// What of an endpoint stands next to an arrow before it, and next to one behind it: its name
/// and ports, but neither a long configuration nor a compound's body.
fn edges_of(endpoint: &Endpoint) -> [Span; 2] {
    let whole = endpoint.span;
    let name = match &endpoint.node {
        Node::Name { name, .. } | Node::Declaration { name, .. } => Some(name.span),
        _ => None,
    };
    let first = Span { end: (whole.start + 1).min(whole.end), ..whole };
    let last = Span { start: whole.end.saturating_sub(1).max(whole.start), ..whole };
    let head = match (&endpoint.inputs, name) {
        (Some(ports), Some(name)) => ports.span.to(name),
        (Some(ports), None) => ports.span,
        (None, Some(name)) => name,
        (None, None) => first,
    };
    let plain = match &endpoint.node {
        Node::Name { config: None, .. } => true,
        Node::Name { config: Some(config), .. }
        | Node::Declaration { class: ast::Class::Named(_), config: Some(config), .. } => {
            config.text.len() <= MAX_SHOWN && !config.text.contains('\n')
        }
        Node::Declaration { class: ast::Class::Named(_), config: None, .. } => true,
        _ => false,
    };
    let tail = match (&endpoint.outputs, name) {
        (Some(ports), Some(name)) if plain => name.to(ports.span),
        (Some(ports), _) => ports.span,
        (None, Some(name)) if plain => name.to(last),
        (None, _) => last,
    };
    [head, tail]
}
