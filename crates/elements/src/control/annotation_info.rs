//! AnnotationInfo: names for annotations.

use click::config::Argument;
use ir::{Diagnostic, Model};
use net::annotation;

use crate::argument::{find_annotation, parse_integer};
use crate::configure::{Arguments, Configure, Failed, Initialize};
use crate::element::Element;

element! {
    /// AnnotationInfo(NAME OFFSET [SIZE], ... [, CHECK_OVERLAP NAME...]) -- gives names to annotations
    ///
    /// Each argument defines NAME as the annotation at byte OFFSET, which may be another
    /// annotation's name, of SIZE bytes. Where a configuration expects an annotation, it may then
    /// have the name; if SIZE is given, only where annotations of that size are expected. Names
    /// that there are anyway, such as PAINT, cannot be defined. They hold inside the compound
    /// element in which they are given.
    ///
    /// An argument that starts with CHECK_OVERLAP lists annotations no two of which may share a
    /// byte.
    ///
    /// = EXAMPLE
    ///
    /// AnnotationInfo(INTERFACE 40 1, TENANT 41 1, CHECK_OVERLAP INTERFACE TENANT PAINT);
    /// ... -> Paint(3, INTERFACE) -> ...
    ///
    /// = SEE ALSO
    ///
    /// Paint, AddressInfo
    AnnotationInfo { category: Control, ports: "0/0", processing: "a/a", phase: Names, samples: [] }
}

/// See [`AnnotationInfo::CLASS`].
pub(crate) struct AnnotationInfo {
    /// Annotations of each of which no two may overlap.
    apart: Vec<Vec<Argument>>,
}

impl AnnotationInfo {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[]);
        let mut apart = Vec::new();
        for argument in arguments.rest() {
            let words: Vec<Argument> = argument.words().collect();
            match words.first() {
                None => {}
                Some(name) if name.text.starts_with('#') => {}
                Some(name) if name.text == "CHECK_OVERLAP" => apart.push(words[1..].to_vec()),
                Some(_) => define(&mut arguments, &argument, &words),
            }
        }
        arguments.finish()?;
        Ok(Self { apart })
    }
}

fn define(arguments: &mut Arguments<'_, '_>, argument: &Argument, words: &[Argument]) {
    let (name, at, size) = match words {
        [name, at] => (name, at, None),
        [name, at, size] => (name, at, Some(size)),
        _ => return arguments.error(argument, "expected NAME OFFSET [SIZE]"),
    };
    if find_annotation(&name.text, &Default::default(), "").is_some()
        || !name.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    {
        return arguments.error(name, format!("'{}' cannot be given as a name", name.text));
    }
    let size = match size {
        Some(size) => match arguments.parse::<usize>("SIZE", size) {
            Some(size) => size,
            None => return,
        },
        None => 0,
    };
    let cx = arguments.cx();
    let element = cx.name();
    let Some((offset, known)) = find_annotation(&at.text, cx.names(), element).or_else(|| {
        let offset = parse_integer(&at.text).and_then(|o| usize::try_from(o).ok());
        offset.map(|o| (o, 0))
    }) else {
        return arguments.error(at, format!("'{}' is not an annotation or its offset", at.text));
    };
    if offset.saturating_add(size.max(1)) > annotation::SIZE {
        let last = annotation::SIZE;
        return arguments.error(argument, format!("annotations have {last} bytes in all"));
    }
    if size != 0 && known != 0 && size != known {
        let message = format!("the annotation {} has {known} bytes, not {size}", at.text);
        return arguments.error(at, message);
    }
    cx.names_mut().define(element, &name.text).annotation = Some((offset, size));
}

impl Element for AnnotationInfo {
    fn model(&self) -> Model {
        Model::default()
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let mut result = Ok(());
        let mut error = |cx: &mut Initialize<'_>, at: &Argument, message: String| {
            cx.report(Diagnostic::error("bad-argument", message).label(at.span, ""));
            result = Err(Failed);
        };
        for list in &self.apart {
            let mut before: Vec<(&Argument, usize, usize)> = Vec::new();
            for word in list {
                let Some((start, size)) = find_annotation(&word.text, cx.names(), cx.name) else {
                    error(cx, word, format!("'{}' is not an annotation", word.text));
                    continue;
                };
                let end = start + size.max(1);
                for (other, from, to) in &before {
                    if start < *to && *from < end {
                        error(cx, word, format!("{} overlaps {}", word.text, other.text));
                    }
                }
                before.push((word, start, end));
            }
        }
        result
    }
}
