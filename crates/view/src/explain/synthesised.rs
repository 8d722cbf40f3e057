//! What the program that a chain became does with a packet: which conditions decided, which class
//! it belongs to, what is written, and which elements said so.

use compiler::explain::provenance::{Branch, branches};
use dataplane::trace::{Decision, Passage, Seen, Step, StepId};
use ir::layout::Bytes;
use ir::program::{self, End};
use ir::{NodeId, Span};
use serde_json::{Value, json};

use super::Story;
use super::anatomy::say;
use crate::paint::Paint;
use crate::synth::text::{Group, add, destination, lines, title};
use crate::synth::{Became, Class, Done, Report, Words, named};

/// A passage, with the program and the class that it is about.
struct PassageContext<'a> {
    report: &'a Report<'a>,
    became: &'a Became<'a>,
    class: &'a Class<'a>,
    passage: &'a Passage,
    step: &'a Step,
    words: Words<'a>,
}

/// A decision on the path.
struct Decided {
    said: String,
    element: NodeId,
    /// Where the rule stands that matched.
    rule: Option<Span>,
}

impl<'a> PassageContext<'a> {
    fn of(story: &'a Story<'a>, step: &'a Step) -> Option<Self> {
        let (report, passage) = (story.report?, step.passage.as_ref()?);
        let became = report.programs.get(passage.program)?;
        let exit = *passage.steps.last()?;
        let class = became.classes.iter().find(|c| c.step == exit)?;
        let words = report.words(became.program, class);
        Some(Self { report, became, class, passage, step, words })
    }

    fn decisions(&self, story: &Story<'_>) -> Vec<Decided> {
        let pairs = self.passage.steps.iter().zip(self.passage.steps.iter().skip(1));
        let mut decided = Vec::new();
        for (&from, &to) in pairs {
            let step = self.became.program.step(from);
            let branch = branches(step).into_iter().find(|b| b.1 == to).map(|b| b.0);
            let Some(branch) = branch else { continue };
            decided.push(match step {
                program::Step::Test { atom, element, .. } => Decided {
                    said: self.words.atom(atom, branch == Branch::Yes),
                    element: *element,
                    rule: None,
                },
                program::Step::Switch { on, cases, element, .. } => {
                    let case = cases.iter().find(|c| c.1 == to);
                    let said = match case {
                        Some((set, _)) => self.words.number_is(*on, set),
                        None => format!("{} anything else", self.words.term(*on)),
                    };
                    Decided { said, element: *element, rule: None }
                }
                program::Step::Classify { element, .. } => self.matched(story, *element),
                program::Step::Lookup { lookup, .. } => Decided {
                    said: self.words.flow(*lookup, branch == Branch::Hit),
                    element: self.became.program.lookups[usize::from(lookup.0)].element,
                    rule: None,
                },
                program::Step::Exit(_) => continue,
            });
        }
        decided
    }

    /// What a list of rules decided.
    fn matched(&self, story: &Story<'_>, element: NodeId) -> Decided {
        match self.rule(story, element) {
            Some((text, span)) => Decided { said: format!("‘{text}’"), element, rule: span },
            None => Decided { said: "no rule".to_string(), element, rule: None },
        }
    }

    /// The rule of an element that matched: the element said so when it had the packet.
    fn rule(&self, story: &Story<'_>, element: NodeId) -> Option<(String, Option<Span>)> {
        let same = |s: &&Step| s.node == element && s.phase == self.step.phase;
        let mut decisions = story.trace.steps.iter().filter(same).flat_map(|s| &s.decisions);
        decisions.find_map(|d| match d {
            Decision::Matched(Some((text, span))) => {
                Some((super::narrative::shorten(text, 50), *span))
            }
            _ => None,
        })
    }

    /// What is done, with the numbers of this packet.
    fn done(&self) -> Vec<(String, Done)> {
        let before = self.step.before.as_ref();
        let start = self.class.exit.writes.start;
        let dropped = matches!(self.class.exit.end, End::Drop { .. });
        let numbers = |done: &Done| {
            let (at, width, field) = done.place.filter(|_| !dropped)?;
            // What came in where another header leaves is not what it was before.
            let Class { layout, leaving, .. } = self.class;
            let of = |layout| named(layout, at, width).field.map(|placed| placed.field);
            let stays = of(layout) == of(leaving);
            let old = before.filter(|_| stays).and_then(|b| bits(b, at, width));
            let new = bits(&self.passage.after, at.checked_sub(start.checked_mul(8)?)?, width)?;
            let said = |value: u128| match field {
                Some(field) => say(field, value),
                None => format!("{value:#x}"),
            };
            Some(match old {
                Some(old) if old == new => format!("{} {}, as it was", done.name, said(old)),
                Some(old) => format!("{} {} → {}", done.name, said(old), said(new)),
                None => format!("{} {}", done.name, said(new)),
            })
        };
        let all = self.class.done(&self.words);
        all.into_iter().map(|d| (numbers(&d).unwrap_or_else(|| d.said()), d)).collect()
    }
}

/// Some bits of a packet's data.
fn bits(packet: &Seen, at: i32, width: u32) -> Option<u128> {
    let offset = usize::try_from(at.div_euclid(8)).ok()?;
    let width = u16::try_from(width).ok().filter(|w| (1..=128).contains(w))?;
    let field = ir::Field::bits(ir::Base::Data, at.rem_euclid(8) as u16, width);
    Bytes(packet.data()).read(offset, field)
}

/// Tells of all programs that took part in a phase.
pub(super) fn tell(story: &Story<'_>, phase: usize, paint: Paint) -> String {
    let mut text = String::new();
    for step in story.trace.steps.iter().filter(|s| s.phase == phase) {
        let Some(told) = PassageContext::of(story, step) else { continue };
        let decisions = told.passage.steps.len().saturating_sub(1);
        text.push_str(&format!(
            "\n  {}  {}, {}, class {} of {}: {}\n",
            paint.bold("synthesised"),
            title(told.report, told.became),
            crate::paint::count(decisions, "decision"),
            paint.bold(&told.class.number.to_string()),
            told.became.classes.len(),
            destination(told.report, told.class),
        ));
        let mut groups: Vec<Group> = Vec::new();
        for Decided { said, element, rule } in told.decisions(story) {
            let rule = rule.map(|span| told.report.sources.landmark(span));
            match groups.last_mut() {
                Some(last) if last.elements == [element] && last.rule == rule => {
                    last.said.push(said)
                }
                _ => groups.push(Group { elements: vec![element], said: vec![said], rule }),
            }
        }
        for group in groups.iter_mut().filter(|g| g.rule.is_none()) {
            let rule = group.elements.first().and_then(|e| told.rule(story, *e));
            if let Some((text, span)) = rule {
                group.said.push(format!("so ‘{text}’"));
                group.rule = span.map(|span| told.report.sources.landmark(span));
            }
        }
        lines(told.report, "if", &groups, paint, &mut text);
        groups.clear();
        for (said, done) in told.done() {
            add(&mut groups, said, done.elements);
        }
        lines(told.report, "then", &groups, paint, &mut text);
    }
    text
}

/// The same for programs; `None` if no program begins at a step.
pub(super) fn to_json(story: &Story<'_>, step: StepId) -> Option<Value> {
    let told = PassageContext::of(story, story.trace.steps.get(step)?)?;
    let place = |span: Span| {
        let at = story.sources.line_column(span.file, span.start);
        json!({ "file": story.sources.name(span.file), "line": at.line, "column": at.column })
    };
    let element = |n: NodeId| {
        let node = &story.graph.nodes[n];
        json!({ "name": node.name, "place": place(node.span) })
    };
    let decisions: Vec<Value> = told
        .decisions(story)
        .into_iter()
        .map(|d| json!({ "condition": d.said, "element": element(d.element), "rule": d.rule.map(place) }))
        .collect();
    let operations: Vec<Value> = told
        .done()
        .into_iter()
        .map(|(said, done)| {
            let elements: Vec<Value> = done.elements.iter().map(|n| element(*n)).collect();
            json!({ "what": said, "elements": elements })
        })
        .collect();
    let entry = told.became.program.entry;
    Some(json!({
        "entry": { "element": story.graph.nodes[entry.node].name, "port": entry.port },
        "class": told.class.number,
        "destination": destination(told.report, told.class),
        "decisions": decisions,
        "operations": operations,
    }))
}
