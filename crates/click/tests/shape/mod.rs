//! What a syntax tree says, without its spans: two trees with one shape mean the same.
#![allow(dead_code)]

use catena_click::ast::*;
use catena_click::{Argument, format, parse};
use ir::{Diagnostic, Sources};

pub(crate) fn parsed(text: &str) -> (File, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let file = sources.add("test.click", text);
    parse(&mut sources, file)
}

pub(crate) fn formatted(text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add("test.click", text);
    format(&mut sources, file).unwrap_or_else(|d| panic!("{text}\n{d:#?}"))
}

/// The shape of a text that must parse without any diagnostic.
pub(crate) fn shape_of(text: &str) -> String {
    let (file, diagnostics) = parsed(text);
    assert!(diagnostics.is_empty(), "{text}\n{diagnostics:#?}");
    shape(&file)
}

pub(crate) fn shape(file: &File) -> String {
    statements(&file.statements)
}

fn statements(list: &[Statement]) -> String {
    list.iter().map(statement).collect::<Vec<_>>().join("; ")
}

fn statement(statement: &Statement) -> String {
    match statement {
        Statement::Declaration(d) => {
            let names: Vec<_> = d.names.iter().map(|n| n.text.as_str()).collect();
            format!("{} :: {}{}", names.join(", "), class(&d.class), config(&d.config))
        }
        Statement::Chain(chain) => {
            assert_eq!(chain.stages.len(), chain.arrows.len() + 1);
            let mut text = String::new();
            for (index, stage) in chain.stages.iter().enumerate() {
                if index > 0 {
                    text += &match &chain.arrows[index - 1].kind {
                        ArrowKind::Single => " -> ".to_owned(),
                        ArrowKind::Double => " => ".to_owned(),
                        ArrowKind::Context(context) => format!(" ~{context}> "),
                    };
                }
                text += &stage.iter().map(endpoint).collect::<Vec<_>>().join(", ");
            }
            text
        }
        Statement::ElementClass(e) => format!("class {} = {}", e.name.text, class(&e.class)),
        Statement::Define(define) => {
            let one = |d: &Definition| format!("${} = <{}>", d.variable.text, d.value.text);
            format!("define {}", define.definitions.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        Statement::Require(require) => {
            let one = |r: &Requirement| format!("{:?}", r.kind);
            format!(
                "require {}",
                require.requirements.iter().map(one).collect::<Vec<_>>().join(" ")
            )
        }
    }
}

fn class(class: &Class) -> String {
    match class {
        Class::Named(name) => name.text.clone(),
        Class::Compound(c) => compound(c),
    }
}

fn compound(compound: &Compound) -> String {
    let body = |body: &Body| {
        let parameters: Vec<_> = body
            .parameters
            .iter()
            .map(|p| match &p.keyword {
                Some(keyword) => format!("{} ${}", keyword.text, p.variable.text),
                None => format!("${}", p.variable.text),
            })
            .collect();
        format!("{} | {}", parameters.join(", "), statements(&body.statements))
    };
    let bodies: Vec<_> = compound.bodies.iter().map(body).collect();
    let extends = if compound.extends.is_some() { " || ..." } else { "" };
    format!("{{ {}{extends} }}", bodies.join(" || "))
}

fn config(config: &Option<Config>) -> String {
    match config {
        None => String::new(),
        Some(config) => {
            let arguments: Vec<_> =
                config.arguments().iter().map(|a: &Argument| format!("<{}>", a.text)).collect();
            format!("({})", arguments.join(", "))
        }
    }
}

fn ports(ports: &Option<Ports>) -> String {
    let Some(ports) = ports else { return String::new() };
    let mut ranges: Vec<_> = ports
        .ranges
        .iter()
        .map(|r| {
            if r.first == r.last { r.first.to_string() } else { format!("{}-{}", r.first, r.last) }
        })
        .collect();
    if ports.open {
        ranges.push("...".to_owned());
    }
    format!("[{}]", ranges.join(","))
}

fn endpoint(endpoint: &Endpoint) -> String {
    let node = match &endpoint.node {
        Node::Name { name, config: c } => format!("{}{}", name.text, config(c)),
        Node::Declaration { name, class: k, config: c } => {
            format!("({} :: {}{})", name.text, class(k), config(c))
        }
        Node::Compound { compound: k, config: c } => format!("{}{}", compound(k), config(c)),
        Node::Group(group) => format!("( {} )", statements(&group.statements)),
        Node::Input => "<input>".to_owned(),
        Node::Output => "<output>".to_owned(),
    };
    format!("{}{node}{}", ports(&endpoint.inputs), ports(&endpoint.outputs))
}
