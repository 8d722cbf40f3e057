//! Rules that no packet gets to, because earlier ones take them all or because nothing meets
//! their own conditions.
//!
//! What a rule is and means is read from models: each [`Op::Match`] is a list of rules. A rule of
//! the configuration can stand in several lists (one for packets without an IP header, one for all
//! others); it is dead if it is dead in each of them.

mod cover;
mod grid;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{BTreeMap, HashMap};

use ir::model::{Block, Rule};
use ir::{Cond, Diagnostic, Model, NodeId, Op, Span};

use crate::frontend::report::Report;
use crate::{Chain, Elements};
use cover::{Budget, Fate, fates};

/// Dead rules of an element that are reported one by one.
const MAX_SHOWN: usize = 20;
/// Covering rules that are named.
const MAX_NAMED: usize = 4;
/// Numbers of further dead rules that are named.
const MAX_FURTHER: usize = 40;

/// Warns of the rules of a chain's elements that can never match: those that earlier ones cover,
/// naming them, and those whose conditions nothing meets. What is reported is so for sure; where
/// finding out would take too much work, a note says that it was not tried.
pub fn shadowed_rules(chain: &Chain, elements: &Elements) -> Vec<Diagnostic> {
    let mut report = Report::default();
    let mut budget = Budget::default();
    let mut unchecked = Vec::new();
    for (element, node) in elements.elements.iter().zip(&chain.graph.nodes) {
        let model = element.model();
        let list = List::of(&model, &mut budget);
        unchecked.extend(list.rules.iter().filter(|r| r.is_unchecked()).map(|r| r.span));
        list.report(node.span, &mut report);
    }
    if let Some(&first) = unchecked.first() {
        let text = match unchecked.len() {
            1 => "it was not checked whether this rule can match".to_string(),
            n => format!("it was not checked whether {n} rules can match, this one among them"),
        };
        let note = Diagnostic::note("unchecked-rules", text);
        report.add(note.label(first, "").help("it would take too much work"));
    }
    report.diagnostics
}

/// How many rules of each element can never match, and of how many that is, for those that have such rules.
pub fn count_shadowed_rules(models: &[Model]) -> Vec<(NodeId, usize, usize)> {
    let mut budget = Budget::default();
    let lists = models.iter().map(|model| List::of(model, &mut budget).rules).enumerate();
    let counts = lists.map(|(node, rules)| {
        (node, rules.iter().filter(|rule| rule.is_dead()).count(), rules.len())
    });
    counts.filter(|(_, dead, _)| *dead > 0).collect()
}

/// The rules of an element as its configuration lists them.
struct List {
    rules: Vec<Listed>,
}

/// A rule of the configuration.
struct Listed {
    span: Span,
    /// Its number in the list, from 1.
    number: usize,
    /// What is known of it in each list of the model that it stands in.
    fates: Vec<Fate>,
    /// The numbers of the rules that cover it, with where they stand and whether they do the same.
    covers: BTreeMap<usize, (Option<Span>, bool)>,
}

impl List {
    fn of(model: &Model, budget: &mut Budget) -> Self {
        let mut lists = Vec::new();
        model.inputs.iter().for_each(|block| collect(block, &mut lists));
        // The longest first: others hold some of its rules.
        lists.sort_by_key(|(rules, _)| std::cmp::Reverse(rules.len()));
        let mut list = Self { rules: Vec::new() };
        let mut known: HashMap<Span, usize> = HashMap::new();
        for (rules, arms) in lists {
            let mut positions = Vec::with_capacity(rules.len());
            let mut number = 0;
            for rule in rules {
                positions.push(rule.span.map(|span| {
                    *known.entry(span).or_insert_with(|| {
                        number += 1;
                        list.rules.push(Listed::new(span, number));
                        list.rules.len() - 1
                    })
                }));
            }
            // Rules that do not say where they were written are not the configuration's own.
            if positions.iter().flatten().all(|&p| list.rules[p].is_alive()) {
                continue;
            }
            let fates = fates(rules.iter().map(|r| &*r.when), budget);
            for ((rule, fate), position) in rules.iter().zip(fates).zip(&positions) {
                let Some(position) = *position else { continue };
                // Who says `false` means it, as by an option that is off; so does a rule for IPv6 among others.
                let fate = if *rule.when == Cond::Const(false) { Fate::Alive } else { fate };
                if let Fate::Shadowed(covers) = &fate {
                    for &other in covers {
                        let cover = &rules[other as usize];
                        let number = positions[other as usize].map(|p| list.rules[p].number);
                        let same = does_the_same(rule, cover, arms);
                        let of_rule = &mut list.rules[position].covers;
                        let entry = of_rule.entry(number.unwrap_or(other as usize + 1));
                        entry.or_insert((cover.span, true)).1 &= same;
                    }
                }
                list.rules[position].fates.push(fate);
            }
        }
        list
    }

    fn report(&self, element: Span, report: &mut Report) {
        let mut dead: Vec<&Listed> = self.rules.iter().filter(|r| r.is_dead()).collect();
        // What changes nothing matters less than what is not done.
        dead.sort_by_key(|rule| rule.is_harmless());
        let shown = if dead.len() > MAX_SHOWN + 1 { MAX_SHOWN } else { dead.len() };
        let further = dead.split_off(shown);
        dead.sort_by_key(|rule| rule.number);
        dead.iter().for_each(|rule| report.add_message(rule.warning()));
        if !further.is_empty() {
            let mut numbers: Vec<usize> = further.iter().map(|rule| rule.number).collect();
            numbers.sort_unstable();
            let text = format!(
                "{} further rules can never match: {}",
                numbers.len(),
                listing(&numbers, MAX_FURTHER)
            );
            report.add_message(Diagnostic::warning("shadowed-rule", text).label(element, ""));
        }
    }
}

impl Listed {
    fn new(span: Span, number: usize) -> Self {
        Self { span, number, fates: Vec::new(), covers: BTreeMap::new() }
    }

    fn is_alive(&self) -> bool {
        self.fates.contains(&Fate::Alive)
    }

    fn is_dead(&self) -> bool {
        self.fates.iter().all(|f| matches!(f, Fate::Empty | Fate::Shadowed(_)))
    }

    fn is_unchecked(&self) -> bool {
        !self.is_alive() && self.fates.contains(&Fate::TooMuchWork)
    }

    /// Whether the chain would do the same without the rules before it that cover it.
    fn is_harmless(&self) -> bool {
        self.covers.values().all(|(_, same)| *same)
    }

    fn warning(&self) -> Diagnostic {
        let number = self.number;
        if self.covers.is_empty() {
            let text = format!("rule {number} can never match: its conditions exclude one another");
            return Diagnostic::warning("empty-rule", text).label(self.span, "");
        }
        let covers: Vec<usize> = self.covers.keys().copied().collect();
        let text =
            format!("rule {number} can never match: shadowed by {}", listing(&covers, MAX_NAMED));
        let mut warning = Diagnostic::warning("shadowed-rule", text).label(self.span, "");
        for (number, (span, same)) in self.covers.iter().take(MAX_NAMED) {
            let action = if *same { "the same action" } else { "another action" };
            if let Some(span) = span {
                warning = warning.label(*span, format!("rule {number}, with {action}"));
            }
        }
        warning.help(if self.is_harmless() {
            "its packets get the same action before; it can be removed"
        } else if self.covers.values().any(|(_, same)| *same) {
            "some of its packets get another action before; move it up if they should not"
        } else {
            "its packets get another action before; move it up if they should not"
        })
    }
}

/// The lists of rules in a block, with their arms.
fn collect<'m>(block: &'m Block, lists: &mut Vec<(&'m [Rule], &'m [Block])>) {
    for op in block {
        if let Op::Match { rules, arms, .. } = op {
            lists.push((rules, arms));
        }
        op.blocks().for_each(|block| collect(block, lists));
    }
}

fn does_the_same(one: &Rule, other: &Rule, arms: &[Block]) -> bool {
    let arm = |rule: &Rule| arms.get(rule.arm as usize);
    one.arm == other.arm || arm(one) == arm(other)
}

/// `3`, `3 and 17`, `3, 17, 20 and 5 more`.
fn listing(numbers: &[usize], most: usize) -> String {
    let named = if numbers.len() > most + 1 { most } else { numbers.len() };
    let mut words: Vec<String> = numbers[..named].iter().map(usize::to_string).collect();
    if named < numbers.len() {
        words.push(format!("{} more", numbers.len() - named));
    }
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
