//! Rules put to work, and changed while they are at it.

use std::rc::Rc;
use std::sync::Arc;

use classify::edits;
use ir::model::Rule as ModelRule;
use ir::{Cond, Model, Op, Span};
use net::Batch;

use super::engine::Engine;
use super::expr::{Origin, Pattern};
use super::program::{Headers, Program};
use super::version::Version;

/// A rule: packets that its pattern matches take an arm.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) pattern: Pattern,
    pub(crate) arm: u32,
    /// What was written.
    pub(crate) text: Arc<str>,
    /// Where it was written, if that was in a source.
    pub(crate) span: Option<Span>,
}

/// A rule with what it comes to.
pub(super) struct CompiledRule {
    pub(super) rule: Rule,
    when: Arc<Cond>,
    /// Whether it looks at IP.
    needs_header: bool,
    /// What is left of it for packets without an IP header, if anything matches.
    headerless: Option<(Pattern, Arc<Cond>)>,
}

impl CompiledRule {
    fn new(rule: Rule) -> Self {
        let mut needs_header = false;
        let is_ip = |origin| !matches!(origin, Origin::Data | Origin::Mac);
        rule.pattern.for_each_test(&mut |test| needs_header |= is_ip(test.place.origin));
        let headerless = Some(rule.pattern.without_header());
        let headerless = headerless.filter(|pattern| *pattern != Pattern::Const(false));
        let headerless = headerless.map(|pattern| (pattern.clone(), pattern.cond().into()));
        Self { when: rule.pattern.cond().into(), needs_header, headerless, rule }
    }

    fn model(&self, when: &Arc<Cond>) -> ModelRule {
        let Rule { arm, text, span, .. } = &self.rule;
        ModelRule { when: Arc::clone(when), arm: *arm, text: Arc::clone(text), span: *span }
    }
}

/// A list that differs from another in more rules is made anew.
const MAX_EDITS: usize = 64;

/// Rules in order, the first that matches deciding which arm a packet takes.
pub(crate) struct Filter {
    rules: Vec<Rc<CompiledRule>>,
    /// The arm of packets that no rule matches.
    otherwise: u32,
    version: Version,
    /// Whether any rule looks at IP.
    needs_header: bool,
    /// For packets without an IP header.
    headerless: Program,
    engine: Engine,
    /// The rules of the model: for packets without an IP header, and for all others.
    models: [Arc<[ModelRule]>; 2],
    /// The arms of a batch.
    arms: Vec<u32>,
}

impl Filter {
    pub(crate) fn new(rules: Vec<Rule>, otherwise: u32, version: Version) -> Self {
        let rules: Vec<Rc<CompiledRule>> =
            rules.into_iter().map(|r| Rc::new(CompiledRule::new(r))).collect();
        let engine = Engine::new(&rules, otherwise);
        let mut filter = Self {
            rules,
            otherwise,
            version,
            needs_header: false,
            headerless: Program::new([], otherwise),
            engine,
            models: [Arc::new([]), Arc::new([])],
            arms: Vec::new(),
        };
        filter.refresh();
        filter
    }

    /// Makes what follows from the rules all together.
    fn refresh(&mut self) {
        // All of them, in order: the number of a rule is the one that it has in the list.
        self.models[1] = self.rules.iter().map(|made| made.model(&made.when)).collect();
        self.needs_header = self.rules.iter().any(|made| made.needs_header);
        self.refresh_headerless();
    }

    fn refresh_headerless(&mut self) {
        let reduced = || self.rules.iter().filter_map(|m| Some((m, m.headerless.as_ref()?)));
        let patterns: Vec<_> = reduced().map(|(made, (p, _))| (p, made.rule.arm)).collect();
        self.headerless = Program::new(patterns, self.otherwise);
        self.models[0] = reduced().map(|(made, (_, when))| made.model(when)).collect();
    }

    /// The rules, in order.
    pub(crate) fn rules(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter().map(|made| &made.rule)
    }

    /// The version of IP that they test.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The rule with this index.
    pub(crate) fn rule(&self, index: usize) -> Option<&Rule> {
        self.rules.get(index).map(|made| &made.rule)
    }

    /// Replaces `removed` rules from an index on. Looks at no more of the others
    /// than it must: they are many, and all over the memory.
    pub(crate) fn splice(&mut self, index: usize, removed: usize, new: Vec<Rule>) {
        let (old, new_end) = (index..index + removed, index + new.len());
        let is_headerless = |made: &Rc<CompiledRule>| made.headerless.is_some();
        let removes = self.rules[old.clone()].iter().any(is_headerless);
        self.exchange(index, removed, new);
        let new = &self.rules[index..new_end];
        let adds = new.iter().any(is_headerless);
        let (before, behind) = (&self.models[1][..old.start], &self.models[1][old.end..]);
        let new = new.iter().map(|made| made.model(&made.when));
        self.models[1] = before.iter().cloned().chain(new).chain(behind.iter().cloned()).collect();
        self.needs_header = self.rules.iter().any(|made| made.needs_header);
        if removes || adds {
            self.refresh_headerless();
        }
    }

    fn exchange(&mut self, index: usize, removed: usize, new: Vec<Rule>) {
        let inserted = new.len();
        let new = new.into_iter().map(|rule| Rc::new(CompiledRule::new(rule)));
        self.rules.splice(index..index + removed, new);
        self.engine.change(&self.rules, index, removed, inserted, self.otherwise);
    }

    /// Replaces all rules.
    pub(crate) fn set(&mut self, rules: Vec<Rule>) {
        let same = |i: usize, j: usize| {
            let (old, new) = (&self.rules[i].rule, &rules[j]);
            old.arm == new.arm && old.text == new.text && old.pattern == new.pattern
        };
        match edits(self.rules.len(), rules.len(), MAX_EDITS, same) {
            None => *self = Self::new(rules, self.otherwise, self.version),
            Some(edits) => {
                for edit in edits.into_iter().rev() {
                    self.exchange(edit.old.start, edit.old.len(), rules[edit.new].to_vec());
                }
                self.refresh();
            }
        }
    }

    /// The arms that the packets of a batch take, in order.
    pub(crate) fn arms(&mut self, batch: &Batch) -> &[u32] {
        self.arms.clear();
        let headerless = self.needs_header.then_some(&self.headerless);
        match &mut self.engine {
            Engine::Program(program) => {
                let arm = |headers: &Headers<'_>| match headerless {
                    Some(headerless) if headers.network.is_empty() => headerless.run(headers),
                    _ => program.run(headers),
                };
                self.arms.extend(batch.iter().map(|packet| self.version.with(packet, arm)));
            }
            Engine::Lookup(lookup) => {
                let rest = (&self.headerless, self.otherwise);
                lookup.arms(batch, self.version, rest, &mut self.arms);
            }
        }
        &self.arms
    }

    /// What the rules mean; `arms` are what they lead to.
    pub(crate) fn model(&self, arms: Vec<ir::model::Block>, otherwise: ir::model::Block) -> Model {
        let decide = |rules: &Arc<[ModelRule]>| Op::Match {
            rules: Arc::clone(rules),
            arms: arms.clone(),
            otherwise: otherwise.clone(),
        };
        let [headerless, rules] = &self.models;
        let mut block = Vec::new();
        if self.needs_header {
            block.push(Op::when(self.version.is_missing(), vec![decide(headerless)]));
            block.extend(self.version.first());
        }
        block.push(decide(rules));
        Model::from_block(block)
    }

    /// A line of how rules are evaluated, of the rules, and of what becomes of other packets, for people.
    pub(crate) fn describe(&self, line: usize, arm: impl Fn(u32) -> String) -> String {
        match line.checked_sub(1) {
            None => self.engine.describe(),
            Some(at) => match self.rule(at) {
                Some(rule) => format!("{}\t{}\n", arm(rule.arm), rule.text),
                None => format!("{}\t(all others)\n", arm(self.otherwise)),
            },
        }
    }
}
