//! Expansion: every use of a compound becomes its elements, named `use/element`.

use std::collections::HashMap;

use click::ast::Body;
use click::config::Argument;
use elements::registry;
use ir::{Diagnostic, Graph, Group, Node, NodeId, Span};

use crate::frontend::connect::count;
use crate::frontend::report::Report;
use crate::frontend::scope::{Class, Compound, Item, ItemKind, Scopes, Template};
use crate::frontend::variables::{ScopeId, Variables};

/// Elements and instances of compounds in a chain.
const MAX_ELEMENTS: usize = 1 << 18;
/// Connections of a chain, those to and from the ports of compounds included.
pub(crate) const MAX_LINKS: usize = 1 << 21;
/// Compounds inside compounds.
const MAX_DEPTH: usize = 128;
/// Bytes of names and configurations.
const MAX_TEXT: usize = 1 << 28;
/// Arguments of all elements together.
const MAX_ARGUMENTS: usize = 1 << 21;
/// Candidates that are shown where no overload fits.
const MAX_CANDIDATES: usize = 8;

/// What a connection leads to or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    /// An element.
    Node(NodeId),
    /// A side of a compound or group that leads packets on: an index into [`Flat::relays`].
    Relay(usize),
}

/// A port of a unit.
pub(crate) type Pin = (Unit, u32);

/// A connection.
#[derive(Clone, Copy)]
pub(crate) struct FlatLink {
    pub(crate) from: Pin,
    pub(crate) to: Pin,
    pub(crate) span: Span,
}

/// One side of an instance of a compound, or of a group.
pub(crate) struct Relay {
    /// The instance's name and class; none for a group.
    pub(crate) instance: Option<String>,
    /// Where it was declared.
    pub(crate) span: Span,
    /// Whether it is the side that packets leave by.
    pub(crate) output: bool,
    /// Whether its ports are wrong already inside.
    pub(crate) broken: bool,
    /// The instance: an index into the graph's groups.
    pub(crate) group: Option<usize>,
}

/// A chain without compounds, its connections still leading through their ports.
#[derive(Default)]
pub(crate) struct Flat {
    pub(crate) graph: Graph,
    pub(crate) arguments: Vec<Vec<Argument>>,
    /// Classes of the nodes; `None` where nothing is known.
    pub(crate) classes: Vec<Option<&'static elements::element::Class>>,
    pub(crate) relays: Vec<Relay>,
    pub(crate) links: Vec<FlatLink>,
    pub(crate) names: HashMap<String, NodeId>,
}

struct Expander<'s, 'a> {
    scopes: &'s Scopes<'a>,
    report: &'s mut Report,
    variables: Variables<'a>,
    flat: Flat,
    /// Where each name was declared, compounds included.
    declared: HashMap<String, Span>,
    /// How many more arguments there may be.
    arguments: usize,
    full: bool,
}

/// An instance of a compound whose elements are yet to be made.
struct Pending {
    template: usize,
    name: String,
    span: Span,
    variables: ScopeId,
    group: usize,
    /// Relays of its inputs and outputs.
    ports: [usize; 2],
}

/// Expands the file's template; `None` if the chain is larger than can be dealt with.
pub(crate) fn expand<'a>(
    scopes: &Scopes<'a>,
    variables: impl IntoIterator<Item = (&'a str, Argument)>,
    report: &mut Report,
) -> Option<Flat> {
    let mut expander = Expander {
        scopes,
        report,
        variables: Variables::new(MAX_TEXT),
        flat: Flat::default(),
        declared: HashMap::new(),
        arguments: MAX_ARGUMENTS,
        full: false,
    };
    let file = &scopes.templates[scopes.file];
    let scope = expander.variables.scope(None, 0, &file.definitions, variables);
    expander.instantiate(file, "", (None, None), scope, 0);
    (!expander.full).then_some(expander.flat)
}

impl<'a> Expander<'_, 'a> {
    /// Makes the elements of a template, then those of the compounds among them.
    fn instantiate(
        &mut self,
        template: &Template<'a>,
        prefix: &str,
        (group, ports): (Option<usize>, Option<[usize; 2]>),
        scope: ScopeId,
        depth: usize,
    ) {
        let mut pending = Vec::new();
        // What connections to the item, and from it, lead to.
        let mut units: Vec<[Unit; 2]> = Vec::with_capacity(template.items.len());
        for (index, item) in template.items.iter().enumerate() {
            if self.full || !self.fits(item.span, prefix.len() + item.name.len()) {
                return;
            }
            units.push(match (item.kind, ports) {
                (ItemKind::Relay, Some(ports)) if index < 2 => [Unit::Relay(ports[index]); 2],
                (ItemKind::Relay, _) => {
                    let output = item.name.ends_with("/output");
                    [Unit::Relay(self.relay(None, item.span, output, false)); 2]
                }
                (ItemKind::Awaited, _) => {
                    let name = format!("{prefix}{}", item.name);
                    [Unit::Node(self.node(name, item, group, None, Vec::new())); 2]
                }
                (ItemKind::Element { class, written, config }, _) => {
                    let name = format!("{prefix}{}", item.name);
                    let arguments = match config {
                        Some(config) => {
                            let text = self.variables.expand(scope, config);
                            text.first_arguments(self.arguments + 1)
                        }
                        None => Vec::new(),
                    };
                    match self.arguments.checked_sub(arguments.len()) {
                        Some(left) => self.arguments = left,
                        None => {
                            let what = format!("more than {MAX_ARGUMENTS} arguments");
                            self.exhausted(item.span, what);
                            return;
                        }
                    }
                    match self.overload(class, item, arguments) {
                        Chosen::Element(class, arguments) => {
                            [Unit::Node(self.node(name, item, group, class, arguments)); 2]
                        }
                        Chosen::Compound(chosen, values) => {
                            let compound = &self.scopes.templates[chosen];
                            let around = self.variables.enclosing(scope, compound.depth);
                            let formals = compound.body.into_iter().flat_map(|b| &b.parameters);
                            let values = formals.map(|p| p.variable.text.as_str()).zip(values);
                            let definitions = &compound.definitions;
                            let variables = self.variables.scope(
                                Some(around),
                                compound.depth,
                                definitions,
                                values,
                            );
                            self.declare(&name, item.span);
                            let instance = self.flat.graph.groups.len();
                            self.flat.graph.groups.push(Group {
                                name: name.clone(),
                                class: written.to_owned(),
                                span: item.span,
                                parent: group,
                            });
                            let broken = compound.broken;
                            let sides = [false, true].map(|output| {
                                let relay =
                                    self.relay(Some(name.clone()), item.span, output, broken);
                                self.flat.relays[relay].group = Some(instance);
                                relay
                            });
                            pending.push(Pending {
                                template: chosen,
                                name,
                                span: item.span,
                                variables,
                                group: instance,
                                ports: sides,
                            });
                            [Unit::Relay(sides[0]), Unit::Relay(sides[1])]
                        }
                    }
                }
            });
        }
        if self.flat.links.len() + template.links.len() > MAX_LINKS {
            self.exhausted(template.span, format!("more than {MAX_LINKS} connections"));
            return;
        }
        self.flat.links.extend(template.links.iter().map(|link| FlatLink {
            from: (units[link.from.0][1], link.from.1),
            to: (units[link.to.0][0], link.to.1),
            span: link.span,
        }));
        for compound in pending {
            if depth >= MAX_DEPTH {
                self.exhausted(
                    compound.span,
                    format!("more than {MAX_DEPTH} compounds in compounds"),
                );
            }
            if self.full {
                return;
            }
            let prefix = format!("{}/", compound.name);
            let scopes = self.scopes;
            self.instantiate(
                &scopes.templates[compound.template],
                &prefix,
                (Some(compound.group), Some(compound.ports)),
                compound.variables,
                depth + 1,
            );
        }
    }

    fn relay(&mut self, instance: Option<String>, span: Span, output: bool, broken: bool) -> usize {
        self.flat.relays.push(Relay { instance, span, output, broken, group: None });
        self.flat.relays.len() - 1
    }

    fn node(
        &mut self,
        name: String,
        item: &Item<'a>,
        group: Option<usize>,
        class: Option<&'static elements::element::Class>,
        arguments: Vec<Argument>,
    ) -> NodeId {
        self.declare(&name, item.span);
        let written = match item.kind {
            // A compound that could not be expanded may be named like an element of the library.
            ItemKind::Element { written, .. }
                if class.is_none() && registry::find(written).is_some() =>
            {
                "?"
            }
            ItemKind::Element { written, .. } => written,
            _ => "",
        };
        let mut texts: Vec<&str> = arguments.iter().map(|a| a.text.as_str()).collect();
        if texts.last() == Some(&"") {
            // An empty argument at the end takes a comma behind it to count.
            texts.push("");
        }
        let node = self.flat.graph.nodes.len();
        self.flat.graph.nodes.push(Node {
            name: name.clone(),
            class: class.map_or(written, |class| class.name).to_owned(),
            config: texts.join(", "),
            span: item.span,
            group,
            inputs: Vec::new(),
            outputs: Vec::new(),
        });
        self.flat.arguments.push(arguments);
        self.flat.classes.push(class);
        self.flat.names.entry(name).or_insert(node);
        node
    }

    fn declare(&mut self, name: &str, span: Span) {
        if let Some(&before) = self.declared.get(name) {
            self.report.add(
                Diagnostic::error("redeclared", format!("element '{name}' is declared twice"))
                    .label(span, format!("has an element '{name}'"))
                    .label(before, "declared here before")
                    .help("choose another name"),
            );
            return;
        }
        self.declared.insert(name.to_owned(), span);
    }

    /// Whether there is room for one more element with a name of so many bytes.
    fn fits(&mut self, span: Span, bytes: usize) -> bool {
        let flat = &self.flat;
        if flat.graph.nodes.len() + flat.graph.groups.len() + flat.relays.len() >= MAX_ELEMENTS {
            self.exhausted(span, format!("more than {MAX_ELEMENTS} elements"));
            return false;
        }
        // A name is kept in several places.
        match self.variables.budget.checked_sub(4 * bytes + 64) {
            Some(left) if left > 64 => self.variables.budget = left,
            _ => {
                self.exhausted(
                    span,
                    format!("more than {MAX_TEXT} bytes of names and configurations"),
                );
                return false;
            }
        }
        true
    }

    fn exhausted(&mut self, span: Span, what: String) {
        if !self.full {
            self.report.add(
                Diagnostic::error("chain-too-large", format!("the chain has {what}"))
                    .label(span, "the limit is reached here")
                    .help("a compound that uses another one twice doubles it"),
            );
        }
        self.full = true;
    }

    /// Chooses the overload that takes the arguments and has the ports that are connected.
    fn overload(&mut self, class: Class, item: &Item<'a>, arguments: Vec<Argument>) -> Chosen {
        let mut compound = match class {
            Class::Primitive(class) => return Chosen::Element(Some(class), arguments),
            Class::Unknown => return Chosen::Element(None, arguments),
            Class::Compound(compound) => &self.scopes.compounds[compound],
        };
        let first = compound;
        let mut candidates: Vec<usize> = Vec::new();
        let mut nearest: Option<usize> = None;
        loop {
            for &overload in &compound.overloads {
                candidates.push(overload);
                let template = &self.scopes.templates[overload];
                if let Some(body) = template.body
                    && let Ok(values) = body.bind(&arguments)
                {
                    if template.ports == item.used {
                        return Chosen::Compound(overload, values);
                    }
                    nearest = Some(overload);
                }
            }
            match compound.extends {
                Some(Class::Compound(extended)) => compound = &self.scopes.compounds[extended],
                Some(Class::Primitive(class)) => return Chosen::Element(Some(class), arguments),
                Some(Class::Unknown) => return Chosen::Element(None, arguments),
                None => break,
            }
        }
        // With a single candidate whose ports differ, what is wrong with the ports says more.
        if candidates.len() != 1 || nearest.is_none() {
            self.no_overload(first, item, &arguments, &candidates);
            return Chosen::Element(None, arguments);
        }
        match nearest.and_then(|t| Some((t, self.scopes.templates[t].body?.bind(&arguments).ok()?)))
        {
            Some((template, values)) => Chosen::Compound(template, values),
            None => Chosen::Element(None, arguments),
        }
    }

    fn no_overload(
        &mut self,
        compound: &Compound<'a>,
        item: &Item<'a>,
        arguments: &[Argument],
        candidates: &[usize],
    ) {
        use click::BindError;
        let name = if compound.name.is_empty() { "the compound" } else { compound.name };
        let templates = &self.scopes.templates;
        let mut error;
        if let [only] = candidates
            && let Some(body) = templates[*only].body
            && let Err(why) = body.bind(arguments)
        {
            error = match why {
                BindError::Missing(parameter) => Diagnostic::error(
                    "missing-argument",
                    format!("{name} is missing its argument ${}", parameter.variable.text),
                )
                .label(item.span, "")
                .label(parameter.span(), "declared here"),
                BindError::UnknownKeyword(argument) => {
                    let word = argument.keyword().map_or("", |(word, _)| word);
                    Diagnostic::error(
                        "unknown-keyword",
                        format!("{name} has no keyword argument {word}"),
                    )
                    .label(place(argument, item.span), "")
                }
                BindError::TooMany(argument) => Diagnostic::error(
                    "too-many-arguments",
                    format!("{name} does not take this argument"),
                )
                .label(place(argument, item.span), "too many arguments"),
            };
            error = error.help(format!("write `{}`", signature(compound.name, body)));
        } else {
            let [inputs, outputs] = item.used;
            let message = format!(
                "no overload of {name} takes {} and has {} and {}",
                count(arguments.len(), "argument"),
                count(inputs, "input"),
                count(outputs, "output")
            );
            error = Diagnostic::error("no-overload", message).label(item.span, "");
            for &candidate in candidates.iter().take(MAX_CANDIDATES) {
                let template = &templates[candidate];
                let Some(body) = template.body else { continue };
                let [inputs, outputs] = template.ports;
                let takes = format!(
                    "`{}` with {} and {}",
                    signature(compound.name, body),
                    count(inputs, "input"),
                    count(outputs, "output")
                );
                error = error.label(template.span, takes);
            }
        }
        self.report.add(error);
    }
}

/// What an element turns out to be.
enum Chosen {
    /// An element of the library, if it is known at all, with its arguments.
    Element(Option<&'static elements::element::Class>, Vec<Argument>),
    /// An instance of a template, with the values of its parameters.
    Compound(usize, Vec<Argument>),
}

fn place(argument: &Argument, otherwise: Span) -> Span {
    if argument.has_source() { argument.span } else { otherwise }
}

/// How an overload is used: `Name($a, KEYWORD $b)`.
fn signature(name: &str, body: &Body) -> String {
    let parameters: Vec<String> = body
        .parameters
        .iter()
        .map(|p| match &p.keyword {
            Some(_) if p.is_rest() => "...".to_owned(),
            Some(keyword) => format!("{} ${}", keyword.text, p.variable.text),
            None => format!("${}", p.variable.text),
        })
        .collect();
    match (name, &parameters[..]) {
        ("", parameters) => format!("{{ … }}({})", parameters.join(", ")),
        (name, []) => name.to_owned(),
        (name, parameters) => format!("{name}({})", parameters.join(", ")),
    }
}
