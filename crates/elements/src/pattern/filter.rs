//! Rules put to work: as cubes in a classifier where there are many, else as a program.

use std::sync::Arc;

use classify::{Classifier, Key};
use ir::model::Rule as ModelRule;
use ir::{Model, Op, Span};
use net::Batch;

use super::cubes::{Keys, cubes};
use super::expr::{Origin, Pattern};
use super::program::{Headers, Program};
use crate::ip_header;

/// A rule: packets that its pattern matches take an arm.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) pattern: Pattern,
    pub(crate) arm: u32,
    /// What was written.
    pub(crate) text: Arc<str>,
    /// Where it was written.
    pub(crate) span: Option<Span>,
}

/// A program of more tests than this gives way to a classifier.
const MANY_TESTS: usize = 32;

/// Rules in order, the first that matches deciding which arm a packet takes.
pub(crate) struct Filter {
    rules: Vec<Rule>,
    /// The arm of packets that no rule matches.
    otherwise: u32,
    /// Whether any rule looks at IP.
    needs_header: bool,
    /// For packets without an IP header.
    headerless: Program,
    engine: Engine,
    /// The arms of a batch.
    arms: Vec<u32>,
}

enum Engine {
    Program(Program),
    Classifier {
        keys: Keys,
        classifier: Box<dyn Classifier>,
        /// The arm of each run of rules that have one in common, which the classifier takes for
        /// a single rule.
        arm_of_run: Vec<u32>,
        batch: Vec<Key>,
        found: Vec<Option<u32>>,
    },
}

impl Filter {
    pub(crate) fn new(rules: Vec<Rule>, otherwise: u32) -> Self {
        let mut needs_header = false;
        for rule in &rules {
            let is_ip = |origin| matches!(origin, Origin::Network | Origin::Transport);
            rule.pattern.for_each_test(&mut |test| needs_header |= is_ip(test.place.origin));
        }
        let reduced: Vec<_> = rules.iter().map(|r| (r.pattern.without_header(), r.arm)).collect();
        let headerless = Program::new(reduced.iter().map(|(p, arm)| (p, *arm)), otherwise);
        let engine = Engine::new(&rules, otherwise);
        Self { rules, otherwise, needs_header, headerless, engine, arms: Vec::new() }
    }

    /// The arms that the packets of a batch take, in order.
    pub(crate) fn arms(&mut self, batch: &Batch) -> &[u32] {
        self.arms.clear();
        let headerless = self.needs_header.then_some(&self.headerless);
        match &mut self.engine {
            Engine::Program(program) => {
                self.arms.extend(batch.iter().map(|packet| {
                    let headers = Headers::of(packet);
                    match headerless {
                        Some(headerless) if headers.network.is_empty() => headerless.run(&headers),
                        _ => program.run(&headers),
                    }
                }));
            }
            Engine::Classifier { keys, classifier, arm_of_run, batch: lookups, found } => {
                lookups.clear();
                for packet in batch.iter() {
                    let headers = Headers::of(packet);
                    if headers.network.is_empty() {
                        self.arms.push(self.headerless.run(&headers));
                    } else {
                        self.arms.push(PENDING);
                        lookups.push(keys.key(&headers));
                    }
                }
                found.resize(lookups.len(), None);
                classifier.lookup_batch(lookups, found);
                let pending = self.arms.iter_mut().filter(|arm| **arm == PENDING);
                for (arm, run) in pending.zip(&*found) {
                    *arm = run.map_or(self.otherwise, |run| arm_of_run[run as usize]);
                }
            }
        }
        &self.arms
    }

    /// What the rules mean; `arms` are what they lead to.
    pub(crate) fn model(&self, arms: Vec<ir::model::Block>, otherwise: ir::model::Block) -> Model {
        let rule = |rule: &Rule, pattern: &Pattern| ModelRule {
            when: pattern.cond().into(),
            arm: rule.arm,
            text: Arc::clone(&rule.text),
            span: rule.span,
        };
        let decide = |rules: Arc<[ModelRule]>| Op::Match {
            rules,
            arms: arms.clone(),
            otherwise: otherwise.clone(),
        };
        let mut block = Vec::new();
        if self.needs_header {
            let headerless = self.rules.iter().filter_map(|r| {
                let pattern = r.pattern.without_header();
                (pattern != Pattern::Const(false)).then(|| rule(r, &pattern))
            });
            let headerless = decide(headerless.collect());
            block.push(Op::when(ip_header::is_missing(), vec![headerless]));
        }
        // All of them, in order: the number of a rule is the one that it has in the configuration.
        block.push(decide(self.rules.iter().map(|r| rule(r, &r.pattern)).collect()));
        Model::from_block(block)
    }

    /// The rules and how they are carried out, for people.
    pub(crate) fn describe(&self, arm: impl Fn(u32) -> String) -> String {
        let mut text = match &self.engine {
            Engine::Program(program) => format!("a program of {} tests\n", program.len()),
            Engine::Classifier { classifier, .. } => {
                let kilobytes = classifier.memory().div_ceil(1024);
                format!("{}, {kilobytes} KB\n", classifier.describe())
            }
        };
        for rule in &self.rules {
            text += &format!("{}\t{}\n", arm(rule.arm), rule.text);
        }
        text + &format!("{}\t(all others)\n", arm(self.otherwise))
    }
}

/// Stands for the arm of a packet that is still to be looked up.
const PENDING: u32 = u32::MAX;

impl Engine {
    fn new(rules: &[Rule], otherwise: u32) -> Self {
        let program =
            || Engine::Program(Program::new(rules.iter().map(|r| (&r.pattern, r.arm)), otherwise));
        let mut tests = 0;
        for rule in rules {
            rule.pattern.for_each_test(&mut |test| tests += test.set.intervals().len());
        }
        if tests <= MANY_TESTS {
            return program();
        }
        let mut arm_of_run: Vec<u32> = Vec::new();
        let numbered: Vec<(&Pattern, u32)> = rules
            .iter()
            .map(|rule| {
                if arm_of_run.last() != Some(&rule.arm) {
                    arm_of_run.push(rule.arm);
                }
                (&rule.pattern, arm_of_run.len() as u32 - 1)
            })
            .collect();
        match cubes(&numbered) {
            Some((keys, set)) => Engine::Classifier {
                keys,
                classifier: classify::build(&set),
                arm_of_run,
                batch: Vec::new(),
                found: Vec::new(),
            },
            None => program(),
        }
    }
}
