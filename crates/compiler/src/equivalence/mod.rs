//! Whether two programs, or a program and the chain it stands for, do the same.
//!
//! [`compare`] proves it for every packet and every state, or shows a packet on which they
//! differ; where it can do neither it says so. [`differential`] runs packets through a chain
//! element by element and through its programs, and tells them apart by what comes out.

mod arena;
mod decisions;
pub mod differential;
mod first_match;
mod knowledge;
mod observe;
mod product;
mod verify;

use std::rc::Rc;

use ir::field::meta;
use ir::program::{Atom, LookupId, Term, TermId};
use ir::{IntervalSet, NodeId, Program};

pub(crate) use arena::Arena;
pub use decisions::View;
use decisions::unlike_state;
pub(crate) use decisions::{Classify, Decisions, Node, NodeRef};
pub(crate) use knowledge::Knowledge;
pub use observe::{Fate, Held, Observation, Queue};
pub(crate) use product::Assumed;
use product::{Mismatch, Product};
pub use verify::{
    Outcome, Proof, Subjects, Verification, prove_programs, verify_chain, verify_pair,
    verify_programs,
};

use crate::witness::{Goal, Random, Values, Witness, seeds, solve};

/// How much effort a comparison takes at the most.
pub const BUDGET: u64 = 4_000_000;

/// Two programs that are compared, and what their elements are called. Elements and ports that
/// are called alike are taken for the same.
pub struct Comparison<'a> {
    /// The one.
    pub a: &'a Program,
    /// The other.
    pub b: &'a Program,
    /// What an element of the one is called.
    pub names_a: &'a (dyn Fn(NodeId) -> String + Sync),
    /// What an element of the other is called.
    pub names_b: &'a (dyn Fn(NodeId) -> String + Sync),
    /// What is compared.
    pub view: View,
    /// How many pairs of steps, and of rules, may be looked at.
    pub budget: u64,
}

/// What a comparison found.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The same, for every packet and state: proven.
    Equal,
    /// A packet on which they differ.
    Different(Box<Difference>),
    /// Neither: why not.
    Unproven(String),
}

/// What a comparison found, and what it took.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What was found.
    pub verdict: Verdict,
    /// Pairs of steps that were looked at.
    pub visited: u64,
}

/// A packet on which two programs differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The packet as it comes in.
    pub packet: Witness,
    /// Flows that are in tables then.
    pub flows: Vec<Held>,
    /// What the one does.
    pub a: Observation,
    /// What the other does.
    pub b: Observation,
}

/// Ways are followed by recursion, and chains may be long.
const STACK: usize = 512 << 20;

/// Does work on a stack that suffices for the longest ways; `None` if there is no room for one.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK);
        worker.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// Compares two programs for every packet.
pub fn compare(comparison: &Comparison<'_>) -> Compared {
    on_large_stack(|| compare_here(comparison)).unwrap_or_else(|| Compared {
        verdict: Verdict::Unproven("the comparison could not be carried out".into()),
        visited: 0,
    })
}

fn compare_here(comparison: &Comparison<'_>) -> Compared {
    let Comparison { a, b, view, .. } = comparison;
    if let Some(why) = unlike_state(a, b) {
        return Compared { verdict: Verdict::Unproven(why), visited: 0 };
    }
    let mut decisions = Decisions::default();
    let x = decisions.import(a, *view, comparison.names_a);
    let y = decisions.import(b, *view, comparison.names_b);
    let mut product = Product::new(&mut decisions, comparison.budget);
    let ended = product.compare(x, y);
    let (visited, mismatches) = (product.visited, std::mem::take(&mut product.mismatches));
    let mut random = Random(1);
    for mismatch in &mismatches {
        if let Some(difference) = confirm(comparison, &mut decisions, mismatch, &mut random) {
            let verdict = Verdict::Different(Box::new(difference));
            return Compared { verdict, visited };
        }
    }
    let verdict = match (ended, mismatches.first()) {
        (_, Some(first)) => {
            let (one, other) = (decisions.describe(first.a), decisions.describe(first.b));
            Verdict::Unproven(format!(
                "on {} way{} it is not clear that both do the same; one ends {one}, the other {other}",
                mismatches.len(),
                if mismatches.len() == 1 { "" } else { "s" },
            ))
        }
        (Err(_), None) => {
            Verdict::Unproven(format!("the comparison was given up after {visited} pairs of steps"))
        }
        (Ok(()), None) => Verdict::Equal,
    };
    Compared { verdict, visited }
}

/// The goals of a way, and the lookups that find a flow on it.
fn goals(decisions: &Decisions, way: &[Assumed]) -> (Vec<Goal>, Vec<LookupId>) {
    let (mut goals, mut found) = (Vec::new(), Vec::new());
    for assumed in way {
        match assumed {
            Assumed::Atom(Atom::Test(term, set), holds) => {
                let range = decisions.arena.range(*term);
                let set = if *holds { range.intersect(set) } else { range.subtract(set) };
                goals.push(Goal::Set(*term, set));
            }
            Assumed::Atom(Atom::Compare(op, a, b), holds) => {
                goals.push(Goal::Compare(*op, *a, *b, *holds));
            }
            Assumed::Set(term, set) => goals.push(Goal::Set(*term, set.clone())),
            Assumed::Lookup(lookup, true) => found.push(*lookup),
            Assumed::Lookup(_, false) => {}
            Assumed::Class(class, to) => {
                if let Node::Classify(rules) = decisions.node(*class) {
                    goals.push(Goal::Class(Rc::clone(rules), *to));
                }
            }
            Assumed::Hint(keys, sets) => goals.push(Goal::Hint(keys.clone(), sets.clone())),
        }
    }
    (goals, found)
}

/// Tries to show a mismatch by a packet.
fn confirm(
    comparison: &Comparison<'_>,
    decisions: &mut Decisions,
    mismatch: &Mismatch,
    random: &mut Random,
) -> Option<Difference> {
    const TRIES: usize = 40;
    let (goals, found) = goals(decisions, &mismatch.way);
    let seeds = seeds();
    let values = solve(&decisions.arena, &goals, &seeds, 2 * seeds.len(), random)?;
    let start = std::slice::from_ref(&values.witness);
    let terms: Vec<TermId> = [mismatch.a, mismatch.b]
        .into_iter()
        .filter_map(|node| match decisions.node(node) {
            Node::Exit(outcome) => Some(outcome.terms().collect::<Vec<_>>()),
            _ => None,
        })
        .flatten()
        .collect();
    let choices = decisions.arena.choices(&terms);
    let places = decisions.places(&[mismatch.a, mismatch.b]);
    let length = decisions.arena.make(Term::Input(meta::LEN));
    for attempt in 0..TRIES {
        // The ends may differ for few packets only: they are made from all kinds of numbers, with
        // all kinds of choices made on the way.
        let variant = (attempt > 0).then(|| {
            let mut more = goals.clone();
            for atom in &choices {
                match (random.below(3), atom) {
                    (0, _) => {}
                    (n, Atom::Test(term, set)) => {
                        let range = decisions.arena.range(*term);
                        let set = if n == 1 { range.intersect(set) } else { range.subtract(set) };
                        more.push(Goal::Set(*term, set));
                    }
                    (n, Atom::Compare(op, a, b)) => more.push(Goal::Compare(*op, *a, *b, n == 1)),
                }
            }
            // What is written over is something else, and the packet longer than it must be.
            let long = values.witness.frame.len() as u128;
            let mut keys = vec![length];
            let mut sets = vec![IntervalSet::range(long + 1, long + 60)];
            for &term in if attempt % 3 == 0 { &places } else { &terms } {
                keys.push(term);
                sets.push(IntervalSet::single(random.wide() & decisions.arena.bounds(term).1));
            }
            let mut some = if attempt % 2 == 0 { more } else { goals.clone() };
            some.push(Goal::Hint(keys, sets));
            solve(&decisions.arena, &some, start, 1, random)
        });
        let values = match variant {
            None => values.clone(),
            Some(Some(values)) => values,
            Some(None) => continue,
        };
        let flows = held(comparison, decisions, &found, &values);
        let (a, b) = observe::both(comparison, &values.witness, &flows);
        if a != b {
            let mut found = Difference { packet: values.witness, flows, a, b };
            if found.flows.is_empty() {
                simplify(comparison, &mut found);
            }
            return Some(found);
        }
    }
    None
}

/// Makes the packet of a difference easier to read.
fn simplify(comparison: &Comparison<'_>, found: &mut Difference) {
    for simpler in differential::packets::simplifications() {
        let mut packet = found.packet.clone();
        if simpler(&mut packet) {
            let (a, b) = observe::both(comparison, &packet, &[]);
            if a != b {
                (found.packet, found.a, found.b) = (packet, a, b);
            }
        }
    }
}

/// The flows that the lookups of a way find.
fn held(
    comparison: &Comparison<'_>,
    decisions: &Decisions,
    found: &[LookupId],
    values: &Values,
) -> Vec<Held> {
    let all = comparison.a.lookups.iter().map(|l| (comparison.a, l));
    let all: Vec<_> = all.chain(comparison.b.lookups.iter().map(|l| (comparison.b, l))).collect();
    let mut flows = Vec::new();
    for &lookup in found {
        let of = decisions.arena.lookup(lookup);
        let state = |(program, lookup): &(&Program, &ir::program::FlowLookup)| {
            let state = &program.state[usize::from(lookup.flows.0)];
            (state.owner.clone(), state.name)
        };
        let Some((program, example)) = all.iter().find(|l| state(l) == of.table) else { continue };
        let bound = |index: u8| values.bound.get(&(lookup, index)).copied().unwrap_or(0);
        flows.push(Held {
            owner: of.table.0.clone(),
            name: of.table.1,
            kind: program.state[usize::from(example.flows.0)].kind.clone(),
            key: of.key.iter().map(|&t| values.value(&decisions.arena, t)).collect(),
            values: (0..example.values).map(bound).collect(),
            common: (0..example.common).map(|cell| bound(128 | cell)).collect(),
        });
    }
    flows
}
