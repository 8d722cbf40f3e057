//! Names: which class and which element is meant where, in the order of the text.
//!
//! A file and each body of a compound become a [`Template`], once, however often the compound is
//! used: its elements by name, and the connections between them. A class is known from its
//! definition to the end of the compound or file that it stands in, so no compound can contain
//! itself.

use std::collections::{BTreeSet, HashMap};

use click::ast::{
    self, Config, Declaration, Definition, Node, Require, RequirementKind, Statement,
};
use elements::registry;
use ir::{Diagnostic, Span, nearest};

use crate::frontend::connect::count;
use crate::frontend::load::Loaded;
use crate::frontend::report::Report;
use crate::library;

mod chain;

/// Connections that are written out by all templates together are not more than this.
const MAX_LINKS: usize = 1 << 19;
/// A class has at most so many overloads, those of extended classes included.
pub(crate) const MAX_OVERLOADS: usize = 256;
/// Packages that configurations may require: what Click's userlevel driver provides and is here.
const PACKAGES: &[&str] = &["analysis", "batch", "int64", "ip6", library::PACKAGE, "userlevel"];

/// What a class name means.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    /// An element of the library.
    Primitive(&'static elements::element::Class),
    /// Index into [`Scopes::compounds`].
    Compound(usize),
    /// Nothing that is known; this was reported.
    Unknown,
}

/// A class made of other elements.
pub(crate) struct Compound<'a> {
    /// Empty for an anonymous one.
    pub(crate) name: &'a str,
    /// Indices into [`Scopes::templates`].
    pub(crate) overloads: Vec<usize>,
    /// What it falls back to: the class that it extends.
    pub(crate) extends: Option<Class>,
    /// Number of overloads with those of extended classes.
    total: usize,
}

/// A file or a body of a compound with its names resolved.
pub(crate) struct Template<'a> {
    /// The body; none for a file.
    pub(crate) body: Option<&'a ast::Body>,
    /// How many compounds it stands in, itself included.
    pub(crate) depth: usize,
    /// Where it stands.
    pub(crate) span: Span,
    /// Variables that it defines.
    pub(crate) definitions: Vec<&'a Definition>,
    /// Its elements, in order; in a compound `input` and `output` come first.
    pub(crate) items: Vec<Item<'a>>,
    /// Its connections, in order.
    pub(crate) links: Vec<Link>,
    /// Number of inputs and of outputs.
    pub(crate) ports: [usize; 2],
    /// Whether its own ports are wrong, so that there is nothing to say about their use.
    pub(crate) broken: bool,
}

/// An element of a template.
pub(crate) struct Item<'a> {
    pub(crate) name: String,
    pub(crate) span: Span,
    pub(crate) kind: ItemKind<'a>,
    /// Numbers of input and output ports that are connected, the highest plus one.
    pub(crate) used: [usize; 2],
}

/// What an item is.
#[derive(Clone, Copy)]
pub(crate) enum ItemKind<'a> {
    /// `input` or `output` of a compound or group: leads packets on from port to port.
    Relay,
    /// An element or an instance of a compound.
    Element {
        class: Class,
        /// The class as it is written; empty if it is anonymous.
        written: &'a str,
        config: Option<&'a Config>,
    },
    /// An element that is used before it is declared; this was reported.
    Awaited,
}

/// A connection between items of a template.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    /// Item and output port.
    pub(crate) from: (usize, u32),
    /// Item and input port.
    pub(crate) to: (usize, u32),
    pub(crate) span: Span,
}

/// The files' names, resolved.
#[derive(Default)]
pub(crate) struct Scopes<'a> {
    pub(crate) templates: Vec<Template<'a>>,
    pub(crate) compounds: Vec<Compound<'a>>,
    /// Packages that are required.
    pub(crate) requirements: Vec<String>,
    /// The template of the file.
    pub(crate) file: usize,
}

struct Resolver<'a, 'r> {
    scopes: Scopes<'a>,
    loaded: &'a Loaded,
    /// Which files' statements were met.
    entered: Vec<bool>,
    /// Classes defined, by scope, the innermost last. The first holds the library of network functions: like elements,
    /// they are replaced by whatever a file defines.
    classes: Vec<HashMap<&'a str, (Class, Span)>>,
    /// Where each unknown class was reported: an index into the diagnostics.
    unknown: HashMap<&'a str, Option<usize>>,
    /// Compounds whose definition is in progress.
    defining: Vec<(&'a str, Span)>,
    /// Classes that files define at their own scope, before or behind.
    upcoming: HashMap<&'a str, Span>,
    /// Elements that the file declares, before or behind.
    outside: HashMap<&'a str, Span>,
    links: usize,
    report: &'r mut Report,
}

/// A template in the making.
struct Draft<'a> {
    template: Template<'a>,
    /// Items that can be named.
    names: HashMap<String, usize>,
    /// Items whose automatic names may have to change for given ones.
    anonymous: Vec<usize>,
    /// Elements that do not count for automatic names.
    uncounted: usize,
    variables: HashMap<&'a str, Span>,
    /// Names that the template's statements declare, with the place.
    declared: HashMap<&'a str, Span>,
    /// How many groups the statement at hand stands in.
    groups: usize,
}

/// Resolves the names of the files; `span` is where the first one stands.
pub(crate) fn resolve<'a>(loaded: &'a Loaded, span: Span, report: &mut Report) -> Scopes<'a> {
    let mut resolver = Resolver {
        scopes: Scopes::default(),
        loaded,
        entered: vec![false; loaded.files.len()],
        classes: vec![HashMap::new(), HashMap::new()],
        unknown: HashMap::new(),
        defining: Vec::new(),
        upcoming: HashMap::new(),
        outside: HashMap::new(),
        links: 0,
        report,
    };
    resolver.entered[0] = true;
    let written = loaded.files.iter().enumerate().filter(|(n, _)| !loaded.functions.contains(n));
    for statement in written.flat_map(|(_, file)| &file.statements) {
        if let Statement::ElementClass(class) = statement {
            resolver.upcoming.entry(&class.name.text).or_insert(class.name.span);
        }
    }
    let mut draft = Draft::new(None, 0, span);
    let statements = &loaded.files[0].statements;
    draft.look_ahead(statements);
    resolver.outside = draft.declared.clone();
    resolver.statements(&mut draft, statements);
    resolver.scopes.file = resolver.finish(draft);
    resolver.scopes
}

impl<'a> Draft<'a> {
    fn new(body: Option<&'a ast::Body>, depth: usize, span: Span) -> Self {
        let template = Template {
            body,
            depth,
            span,
            definitions: Vec::new(),
            items: Vec::new(),
            links: Vec::new(),
            ports: [0, 0],
            broken: false,
        };
        Draft {
            template,
            names: HashMap::new(),
            anonymous: Vec::new(),
            uncounted: 0,
            variables: HashMap::new(),
            declared: HashMap::new(),
            groups: 0,
        }
    }

    /// Notes the names that statements declare, so that a use before the declaration is told
    /// from a misspelt name.
    fn look_ahead(&mut self, statements: &'a [Statement]) {
        for statement in statements {
            match statement {
                Statement::Declaration(declaration) => {
                    for name in &declaration.names {
                        self.declared.entry(&name.text).or_insert(name.span);
                    }
                }
                Statement::Chain(chain) => {
                    for endpoint in chain.stages.iter().flatten() {
                        match &endpoint.node {
                            Node::Declaration { name, .. } => {
                                self.declared.entry(&name.text).or_insert(name.span);
                            }
                            Node::Group(group) => self.look_ahead(&group.statements),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, name: String, kind: ItemKind<'a>, span: Span) -> usize {
        self.template.items.push(Item { name, span, kind, used: [0, 0] });
        self.template.items.len() - 1
    }

    /// The number that the next anonymous element gets.
    fn next_number(&self) -> usize {
        self.template.items.len() - self.uncounted + 1
    }

    fn add_anonymous(&mut self, class: &str, kind: ItemKind<'a>, span: Span) -> usize {
        let name = format!("{class}@{}", self.next_number());
        let item = self.add(name, kind, span);
        self.anonymous.push(item);
        item
    }
}

impl<'a> Resolver<'a, '_> {
    fn finish(&mut self, mut draft: Draft<'a>) -> usize {
        for item in std::mem::take(&mut draft.anonymous) {
            let name = &mut draft.template.items[item].name;
            if draft.names.contains_key(name) {
                // A given name is the same: count on.
                let at = name.rfind('@').map_or(name.len(), |at| at + 1);
                let mut number: u64 = name[at..].parse().unwrap_or(0);
                while draft.names.contains_key(name) {
                    number += 1;
                    name.truncate(at);
                    name.push_str(&number.to_string());
                }
            }
            draft.names.insert(name.clone(), item);
        }
        self.scopes.templates.push(draft.template);
        self.scopes.templates.len() - 1
    }

    fn statements(&mut self, draft: &mut Draft<'a>, statements: &'a [Statement]) {
        for statement in statements {
            match statement {
                Statement::Declaration(declaration) => self.declaration(draft, declaration),
                Statement::Chain(chain) => self.chain(draft, chain),
                Statement::ElementClass(class) => {
                    let meaning = match &class.class {
                        ast::Class::Named(name) => self.class(name),
                        ast::Class::Compound(compound) => {
                            self.compound(draft, &class.name.text, compound)
                        }
                    };
                    self.define_class(class, meaning);
                }
                Statement::Define(define) => {
                    for definition in &define.definitions {
                        let variable = &definition.variable;
                        match draft.variables.insert(&variable.text, variable.span) {
                            Some(before) => self.redefined(&variable.text, variable.span, before),
                            None => draft.template.definitions.push(definition),
                        }
                    }
                }
                Statement::Require(require) => self.require(draft, require),
            }
        }
    }

    fn define_class(&mut self, class: &'a ast::ElementClass, meaning: Class) {
        let Some(innermost) = self.classes.last_mut() else { return };
        let name = &class.name;
        let before = innermost.insert(&name.text, (meaning, name.span));
        let extends =
            matches!(&class.class, ast::Class::Compound(compound) if compound.extends.is_some());
        if let Some((_, before)) = before
            && !extends
        {
            self.report.add(
                Diagnostic::warning(
                    "shadowed-class",
                    format!("the class '{}' is defined again", name.text),
                )
                .label(name.span, "from here on this definition counts")
                .label(before, "and no longer this one")
                .help("`|| ...` at the end of a compound keeps the earlier definition for other arguments and ports"),
            );
        }
    }

    fn redefined(&mut self, variable: &str, span: Span, before: Span) {
        self.report.add(
            Diagnostic::error("redefined-variable", format!("${variable} is defined twice"))
                .label(span, "")
                .label(before, "defined here before"),
        );
    }

    fn require(&mut self, draft: &mut Draft<'a>, require: &'a Require) {
        for requirement in &require.requirements {
            match &requirement.kind {
                RequirementKind::CompactConfig => {}
                RequirementKind::Package(package) if package == library::PACKAGE => {
                    match draft.template.depth > 0 || draft.groups > 0 {
                        true => self.misplaced(requirement.span),
                        false => self.functions(draft),
                    }
                }
                RequirementKind::Package(package) => {
                    if PACKAGES.contains(&package.as_str()) {
                        self.scopes.requirements.push(package.clone());
                        continue;
                    }
                    let message = format!("the package '{package}' is not available");
                    let mut error = Diagnostic::error("unknown-requirement", message)
                        .label(requirement.span, "");
                    error = match nearest(package, PACKAGES.iter().copied()) {
                        Some(near) => error.help(format!("did you mean '{near}'?")),
                        None => error.help(format!("there are {}", PACKAGES.join(", "))),
                    };
                    self.report.add(error);
                }
                RequirementKind::Library(_) if draft.template.depth > 0 || draft.groups > 0 => {
                    self.misplaced(requirement.span);
                }
                RequirementKind::Library(_) => {
                    let loaded = self.loaded;
                    if let Some(&file) = loaded.libraries.get(&requirement.span)
                        && !std::mem::replace(&mut self.entered[file], true)
                    {
                        let statements = &loaded.files[file].statements;
                        draft.look_ahead(statements);
                        self.statements(draft, statements);
                    }
                }
            }
        }
    }

    fn misplaced(&mut self, span: Span) {
        self.report.add(
            Diagnostic::error("misplaced-requirement", "a library is required at file scope only")
                .label(span, "")
                .help("move the statement out of the compound or group"),
        );
    }

    /// The classes of the library of network functions. They know the elements and each other, whatever the file
    /// defines.
    fn functions(&mut self, draft: &mut Draft<'a>) {
        let loaded = self.loaded;
        let written = self.classes.split_off(1);
        for file in loaded.functions.clone() {
            if let Some(parsed) = loaded.files.get(file)
                && !std::mem::replace(&mut self.entered[file], true)
            {
                self.statements(draft, &parsed.statements);
            }
        }
        self.classes.extend(written);
    }

    // Classes

    fn find_class(&self, name: &str) -> Option<(Class, Option<Span>)> {
        let defined = self.classes.iter().rev().find_map(|scope| scope.get(name));
        match defined {
            Some(&(class, span)) => Some((class, Some(span))),
            None => registry::find(name).map(|class| (Class::Primitive(class), None)),
        }
    }

    /// The class of that name; reports that there is none.
    fn class(&mut self, name: &'a ast::Name) -> Class {
        if let Some((class, _)) = self.find_class(&name.text) {
            return class;
        }
        self.unknown_class(name, None);
        Class::Unknown
    }

    /// Reports that a name means nothing: once a name, with further places as labels.
    fn unknown_class(&mut self, name: &'a ast::Name, draft: Option<&Draft<'a>>) {
        if let Some(&index) = self.unknown.get(name.text.as_str()) {
            if let Some(index) = index
                && let error = &mut self.report.diagnostics[index]
                && error.labels.len() < 4
            {
                error.labels.push(ir::Label { span: name.span, message: "and here".into() });
            }
            return;
        }
        let text = &name.text;
        // By convention classes are capitalized; then it hardly was meant to be an element.
        let draft = draft.filter(|_| !text.starts_with(|c: char| c.is_ascii_uppercase()));
        let (code, message) = match draft {
            Some(_) => ("undeclared", format!("'{text}' is neither an element nor a class")),
            None => ("unknown-class", format!("there is no element class '{text}'")),
        };
        let mut error = Diagnostic::error(code, message).label(name.span, "");
        if let Some(&(_, span)) = self.defining.iter().rev().find(|(n, _)| n == text) {
            error = error
                .label(span, "defined here; it is known from the end of its definition on")
                .help("a compound cannot contain itself");
        } else if let Some(&span) = self.upcoming.get(text.as_str()) {
            error = error
                .label(span, "defined here")
                .help("move the definition before the first use of the class");
        } else if let Some(&span) = self.outside.get(text.as_str())
            && draft.is_some_and(|d| d.template.depth > 0)
        {
            error = error.label(span, "this element is outside of the compound").help(
                "elements of a compound are connected to others by its `input` and `output` only",
            );
        } else if library::find(text).is_some() {
            let require = format!("require({})", library::PACKAGE);
            error = error.help(format!(
                "'{text}' is a network function of the library: `{require}` before its first use makes it known"
            ));
        } else if draft.is_some() && matches!(text.as_str(), "input" | "output") {
            error = error.help(format!("only compounds and groups have an `{text}`"));
        } else if self.report.suggests() {
            let functions = library::FUNCTIONS.iter().map(|of| of.name);
            let classes = registry::CLASSES.iter().map(|c| c.name).chain(functions);
            let compounds = self.classes.iter().flat_map(|scope| scope.keys().copied());
            let names = draft.into_iter().flat_map(|d| d.names.keys().map(String::as_str));
            if let Some(near) = nearest(text, classes.chain(compounds).chain(names)) {
                error = error.help(format!("did you mean '{near}'?"));
            } else if draft.is_some() {
                error = error.help(format!("declare it: `{text} :: Class(…)`"));
            }
        }
        let index = self.report.add(error);
        self.unknown.insert(text, index);
    }

    fn compound(&mut self, draft: &Draft<'a>, name: &'a str, compound: &'a ast::Compound) -> Class {
        let extends = compound.extends.map(|span| match self.find_class(name) {
            Some((class, _)) if !name.is_empty() => class,
            _ => {
                let message = match name {
                    "" => "an anonymous compound extends nothing".to_owned(),
                    _ => format!("there is no class '{name}' that could be extended"),
                };
                self.report.add(
                    Diagnostic::error("unknown-class", message)
                        .label(span, "")
                        .help("`|| ...` stands for the class that had the name before"),
                );
                Class::Unknown
            }
        });
        let mut total = compound.bodies.len();
        if let Some(Class::Compound(extended)) = extends {
            total += self.scopes.compounds[extended].total;
        }
        if total > MAX_OVERLOADS {
            let message = format!("'{name}' has more than {MAX_OVERLOADS} overloads");
            self.report
                .add(Diagnostic::error("too-many-overloads", message).label(compound.span, ""));
            return Class::Unknown;
        }
        let mut overloads = Vec::with_capacity(compound.bodies.len());
        for body in &compound.bodies {
            self.classes.push(HashMap::new());
            self.defining.push((name, compound.span));
            overloads.push(self.body(draft.template.depth + 1, name, body, compound.span));
            self.defining.pop();
            self.classes.pop();
        }
        self.scopes.compounds.push(Compound { name, overloads, extends, total });
        Class::Compound(self.scopes.compounds.len() - 1)
    }

    fn body(&mut self, depth: usize, name: &str, body: &'a ast::Body, compound: Span) -> usize {
        let mut draft = Draft::new(Some(body), depth, body.span);
        for (pseudo, item) in [("input", 0), ("output", 1)] {
            draft.add(pseudo.to_owned(), ItemKind::Relay, compound);
            draft.names.insert(pseudo.to_owned(), item);
        }
        draft.uncounted = 2;
        for parameter in &body.parameters {
            let variable = &parameter.variable;
            if let Some(before) = draft.variables.insert(&variable.text, variable.span) {
                self.redefined(&variable.text, variable.span, before);
            }
        }
        draft.look_ahead(&body.statements);
        self.statements(&mut draft, &body.statements);
        let called = if name.is_empty() { "the compound".to_owned() } else { format!("'{name}'") };
        let (ports, sound) = self.check_pseudo(&draft.template, [0, 1], 0, &called);
        draft.template.ports = ports;
        draft.template.broken = !sound;
        self.finish(draft)
    }

    /// Checks the use of `input` and `output` and returns the numbers of ports and whether all is
    /// well; the links to look at begin with `first`.
    fn check_pseudo(
        &mut self,
        template: &Template<'a>,
        items: [usize; 2],
        first: usize,
        called: &str,
    ) -> ([usize; 2], bool) {
        let mut sound = true;
        let mut used = [BTreeSet::new(), BTreeSet::new()];
        for link in &template.links[first..] {
            for (side, (item, port)) in [(0, link.from), (1, link.to)] {
                if item == items[side] {
                    used[side].insert(port as usize);
                }
            }
            for (side, (item, _), wrong) in [(0, link.to, "from"), (1, link.from, "to")] {
                if item == items[side] {
                    let name = ["input", "output"][side];
                    sound = false;
                    self.report.add(
                        Diagnostic::error(
                            "misused-pseudo-element",
                            format!(
                                "connections lead {wrong} `{name}`, not in the other direction"
                            ),
                        )
                        .label(link.span, ""),
                    );
                }
            }
        }
        let ports = [0, 1].map(|side| {
            let name = ["input", "output"][side];
            let ports = used[side].last().map_or(0, |last| last + 1);
            if let Some(missing) = (0..ports).find(|port| !used[side].contains(port)) {
                sound = false;
                let has = count(ports, name);
                let span = template.links[first..]
                    .iter()
                    .find(|l| [l.from, l.to][side] == (items[side], ports as u32 - 1))
                    .map_or(template.span, |l| l.span);
                self.report.add(
                    Diagnostic::error(
                        "missing-port",
                        format!("{called} has {has}, but {name} {missing} is not there"),
                    )
                    .label(span, format!("{name} {} is used here", ports - 1))
                    .help(format!("ports count from 0 without gaps; connect `{name}[{missing}]`")),
                );
            }
            ports
        });
        (ports, sound)
    }

    // Elements

    fn declaration(&mut self, draft: &mut Draft<'a>, declaration: &'a Declaration) {
        let (class, written) = self.written_class(draft, &declaration.class);
        for name in &declaration.names {
            let span = match (&declaration.class, &declaration.names[..]) {
                (ast::Class::Named(class), [_]) => name.span.to(class.span),
                _ => name.span,
            };
            self.declare(draft, name, class, written, declaration.config.as_ref(), span);
        }
    }

    fn written_class(&mut self, draft: &Draft<'a>, class: &'a ast::Class) -> (Class, &'a str) {
        match class {
            ast::Class::Named(name) => (self.class(name), name.text.as_str()),
            ast::Class::Compound(compound) => (self.compound(draft, "", compound), ""),
        }
    }

    fn declare(
        &mut self,
        draft: &mut Draft<'a>,
        name: &'a ast::Name,
        class: Class,
        written: &'a str,
        config: Option<&'a Config>,
        span: Span,
    ) -> usize {
        let mut kind = ItemKind::Element { class, written, config };
        let text = &name.text;
        if let Some(&item) = draft.names.get(text) {
            let existing = &mut draft.template.items[item];
            match existing.kind {
                ItemKind::Awaited => {
                    existing.kind = kind;
                    existing.span = span;
                }
                ItemKind::Relay => {
                    self.report.add(
                        Diagnostic::error("redeclared", format!("`{text}` cannot be declared"))
                            .label(name.span, "")
                            .help(
                                "it means the ports of the compound or group; choose another name",
                            ),
                    );
                }
                ItemKind::Element { .. } => {
                    let before = existing.span;
                    self.report.add(
                        Diagnostic::error(
                            "redeclared",
                            format!("element '{text}' is declared twice"),
                        )
                        .label(name.span, "declared again")
                        .label(before, "declared here before")
                        .help(
                            "choose another name, or leave the class out to mean the same element",
                        ),
                    );
                }
            }
            return item;
        }
        if let Some((Class::Primitive(_) | Class::Compound(_), defined)) = self.find_class(text) {
            let mut error = Diagnostic::error(
                "class-as-element",
                format!("'{text}' is a class and cannot be the name of an element"),
            )
            .label(name.span, "");
            if let Some(defined) = defined {
                error = error.label(defined, "defined here");
            }
            self.report.add(error.help("choose another name"));
            // Without a class, so that nothing more is said about it.
            kind = ItemKind::Element { class: Class::Unknown, written, config };
        }
        if text.split('/').any(|part| part.bytes().all(|b| b.is_ascii_digit())) {
            self.report.add(
                Diagnostic::error("bad-name", format!("the name '{text}' is only a number"))
                    .label(name.span, "")
                    .help("let it contain a letter"),
            );
        }
        let item = draft.add(text.clone(), kind, span);
        draft.names.insert(text.clone(), item);
        item
    }

    /// The item that a name alone means.
    fn refer(
        &mut self,
        draft: &mut Draft<'a>,
        name: &'a ast::Name,
        config: Option<&'a Config>,
    ) -> usize {
        let text = name.text.as_str();
        if let Some((class, _)) = self.find_class(text) {
            let kind = ItemKind::Element { class, written: text, config };
            return draft.add_anonymous(text, kind, name.span);
        }
        if let Some(&item) = draft.names.get(text) {
            if let Some(config) = config {
                let existing = &draft.template.items[item];
                let mut error = Diagnostic::error(
                    "configured-reference",
                    format!("'{text}' is configured where it is only used"),
                )
                .label(config.span, "");
                if matches!(existing.kind, ItemKind::Element { .. }) {
                    error = error.label(existing.span, "its configuration belongs here");
                }
                self.report.add(error);
            }
            return item;
        }
        if let Some(&later) = draft.declared.get(text) {
            self.report.add(
                Diagnostic::error("undeclared", format!("'{text}' is used before it is declared"))
                    .label(name.span, "")
                    .label(later, "declared here")
                    .help("move the declaration before its first use"),
            );
            let item = draft.add(text.to_owned(), ItemKind::Awaited, name.span);
            draft.names.insert(text.to_owned(), item);
            return item;
        }
        self.unknown_class(name, Some(draft));
        let kind = ItemKind::Element { class: Class::Unknown, written: text, config };
        draft.add_anonymous(text, kind, name.span)
    }
}
