//! IPRewriterPatterns.

use std::rc::Rc;

use click::config::Argument;
use ir::Model;
use ir::model::StateKind;

use crate::configure::{Configure, Failed};
use crate::element::Element;
use crate::element_state::ElementState;
use crate::nat::rewriter::{NEXT_STATE, Pattern, Patterns};

element! {
    /// IPRewriterPatterns(NAME PATTERN, ...) -- gives names to patterns of rewriters
    ///
    /// Each argument is a name and a pattern: SADDR SPORT DADDR DPORT, or SADDR DADDR. Wherever
    /// IPRewriter and its like take a pattern, they then take the name too. A pattern that gives
    /// numbers in turn (with a `#`) has one turn for all that use it.
    ///
    /// = EXAMPLE
    ///
    /// IPRewriterPatterns(nat 100.0.0.1 1024-65535# - -);
    /// rw :: IPRewriter(pattern nat 0 1, drop);
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter
    IPRewriterPatterns { category: Nat, ports: "0/0", processing: "a/a", phase: Early, samples: [] }
}

/// See [`IPRewriterPatterns::CLASS`].
pub(crate) struct IPRewriterPatterns {
    patterns: Rc<Patterns>,
}

impl IPRewriterPatterns {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let element = cx.name();
        let mut arguments = cx.arguments(&[]);
        let mut patterns = Vec::new();
        for argument in arguments.rest() {
            let words: Vec<Argument> = argument.words().collect();
            let Some((name, fields)) = words.split_first() else { continue };
            if !(2..=4).contains(&fields.len()) {
                arguments.error(&argument, "expected NAME SADDR SPORT DADDR DPORT");
                continue;
            }
            let known = arguments.cx().names_mut().define(element, &name.text);
            if known.pattern.is_some() {
                arguments.error(name, format!("the pattern '{}' is already defined", name.text));
                continue;
            }
            known.pattern = Some((element.to_string(), patterns.len()));
            patterns.extend(Pattern::parse(fields, &mut arguments));
        }
        arguments.finish()?;
        let patterns = Rc::new(Patterns::new(element, patterns));
        cx.share(Rc::clone(&patterns));
        Ok(Self { patterns })
    }
}

impl Element for IPRewriterPatterns {
    fn model(&self) -> Model {
        let mut model = Model::default();
        let initial = vec![0; self.patterns.patterns.len()];
        model.declare(NEXT_STATE, StateKind::Cells { width: 64, initial });
        model
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.patterns.export(to);
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        self.patterns.import(from);
    }
}
