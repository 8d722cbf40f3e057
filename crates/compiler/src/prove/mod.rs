//! Whether two programs, or a program and the chain it stands for, do the same.
//!
//! [`compare`] proves it for every packet and every state, or shows a packet on which they
//! differ; where it can do neither it says so. [`differential`] runs packets through a chain
//! element by element and through its programs, and distinguishes them by what comes out.

mod alignment;
mod arena;
mod decisions;
pub mod differential;
mod first_match;
mod handlers;
mod knowledge;
mod observe;
mod pair;
mod product;
mod regions;
mod replay;
mod search;
mod subjects;
mod verify;
pub mod witness;

use std::rc::Rc;

use ir::field::meta;
use ir::program::{Atom, LookupId, StateOf, Term, TermId};
use ir::{IntervalSet, NodeId, Program};

pub(crate) use arena::Arena;
pub use decisions::View;
use decisions::unlike_state;
pub(crate) use decisions::{Classify, Decisions, Node, NodeRef};
pub(crate) use knowledge::Knowledge;
pub use observe::{Fate, Held, Judgement, Observation, Queue};
pub use pair::verify_pair;
pub(crate) use product::Assumed;
use product::{Mismatch, Product};
pub use replay::{Incoming, Left, Replay, Sent, Shown};
pub use subjects::Subjects;
pub use verify::{
    Assurance, Outcome, Proof, Verification, assure_programs, check_program, prove_programs,
    verify_chain, verify_programs,
};

use crate::prove::witness::{Goal, Random, Values, Witness, seeds, solve};

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

/// Paths are followed by recursion, and chains may be long.
const STACK: usize = 512 << 20;

/// Does work on a stack that suffices for the longest paths; `None` if there is no room for one.
fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK);
        worker.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// Compares two programs for every packet.
pub fn compare(comparison: &Comparison<'_>) -> Compared {
    compare_within(comparison, &Alone(comparison))
}

/// What lies around two programs that are compared.
trait Around: Sync {
    /// What an element is called that packets of one (0) or the other (1) program come to, perhaps
    /// natively.
    fn end(&self, side: usize, node: NodeId, native: bool) -> String;

    /// Whether it is an end where a program leaves packets to an element that it leads through.
    fn is_left_open(&self, end: &str) -> bool;

    /// The owners of the tables that two such ends find flows in, if they make the same flows of
    /// packets of none.
    fn tables(&self, a: &str, b: &str) -> Vec<&str>;

    /// Shows a packet to both.
    fn show(&self, packet: &Witness, flows: &[Held]) -> (Judgement, Observation, Observation);

    /// An end in words.
    fn words(&self, end: &str) -> String;

    /// Why ends are not known to be the same that programs leave packets to.
    fn why_left_open(&self, a: &str, b: &str) -> String;
}

/// Nothing else is known: what is called alike is the same.
struct Alone<'a>(&'a Comparison<'a>);

impl Around for Alone<'_> {
    fn end(&self, side: usize, node: NodeId, _: bool) -> String {
        [self.0.names_a, self.0.names_b][side](node)
    }

    fn is_left_open(&self, _: &str) -> bool {
        false
    }

    fn tables(&self, _: &str, _: &str) -> Vec<&str> {
        Vec::new()
    }

    fn show(&self, packet: &Witness, flows: &[Held]) -> (Judgement, Observation, Observation) {
        let (a, b) = observe::both(self.0, packet, flows);
        (if a == b { Judgement::Same } else { Judgement::Different }, a, b)
    }

    fn words(&self, end: &str) -> String {
        format!("'{end}'")
    }

    fn why_left_open(&self, _: &str, _: &str) -> String {
        String::new()
    }
}

fn compare_within(comparison: &Comparison<'_>, around: &dyn Around) -> Compared {
    on_large_stack(|| compare_here(comparison, around)).unwrap_or_else(|| Compared {
        verdict: Verdict::Unproven("the comparison could not run".into()),
        visited: 0,
    })
}

fn compare_here(comparison: &Comparison<'_>, around: &dyn Around) -> Compared {
    let Comparison { a, b, view, .. } = comparison;
    if let Some(why) = unlike_state(a, b) {
        return Compared { verdict: Verdict::Unproven(why), visited: 0 };
    }
    let mut decisions = Decisions::default();
    let mut import = |side: usize, program, names: &dyn Fn(NodeId) -> String| {
        let end = |node, native| around.end(side, node, native);
        decisions.import(program, *view, names, &end)
    };
    let (x, y) = (import(0, a, comparison.names_a), import(1, b, comparison.names_b));
    let mut product = Product::new(&mut decisions, around, comparison.budget);
    let ended = product.compare(x, y);
    let visited = product.visited;
    let mismatches = std::mem::take(&mut product.mismatches);
    let left_open = std::mem::take(&mut product.left_open);
    let mut random = Random(1);
    let mut unclear = None;
    for mismatch in mismatches.iter().chain(&left_open) {
        match confirm(comparison, around, &mut decisions, mismatch, &mut random) {
            Confirmed::No => {}
            Confirmed::Unclear(why) => unclear = unclear.or(Some(why)),
            Confirmed::Different(difference) => {
                return Compared { verdict: Verdict::Different(difference), visited };
            }
        }
    }
    let verdict = match (ended, mismatches.first(), left_open.first(), unclear) {
        (_, _, _, Some(why)) => Verdict::Unproven(why),
        (_, Some(first), ..) => {
            let describe = |node| decisions.describe(node, &|end| around.words(end));
            let (one, other) = (describe(first.a), describe(first.b));
            Verdict::Unproven(format!(
                "packets may end {one} in the one and {other} in the other; whether any does is not clear"
            ))
        }
        (Err(_), ..) => {
            Verdict::Unproven(format!("given up after {visited} pairs of steps and rules"))
        }
        (Ok(()), None, Some(first), None) => {
            let name = |node| decisions.end_name(node).unwrap_or_default();
            Verdict::Unproven(around.why_left_open(name(first.a), name(first.b)))
        }
        (Ok(()), None, None, None) => Verdict::Equal,
    };
    Compared { verdict, visited }
}

/// The goals of a path, and the lookups that find a flow on it.
fn goals(decisions: &Decisions, path: &[Assumed]) -> (Vec<Goal>, Vec<LookupId>) {
    let (mut goals, mut found) = (Vec::new(), Vec::new());
    for assumed in path {
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

/// What packets show of a mismatch.
enum Confirmed {
    /// Nothing.
    No,
    /// A difference.
    Different(Box<Difference>),
    /// Why it cannot be told.
    Unclear(String),
}

/// Tries to show a mismatch by a packet.
fn confirm(
    comparison: &Comparison<'_>,
    around: &dyn Around,
    decisions: &mut Decisions,
    mismatch: &Mismatch,
    random: &mut Random,
) -> Confirmed {
    const TRIES: usize = 40;
    /// Packets that show something of one mismatch, though not for certain.
    const UNCLEAR: usize = 3;
    let (goals, found) = goals(decisions, &mismatch.path);
    let seeds = seeds();
    let Some(values) = solve(&decisions.arena, &goals, &seeds, 2 * seeds.len(), random) else {
        return Confirmed::No;
    };
    let mut confirmed = Confirmed::No;
    let mut unclear = 0;
    let start = std::slice::from_ref(&values.witness);
    let terms: Vec<TermId> = [mismatch.a, mismatch.b]
        .into_iter()
        .filter_map(|node| match decisions.node(node) {
            Node::Exit(outcome) => Some(outcome.terms()),
            _ => None,
        })
        .flatten()
        .collect();
    let choices = decisions.arena.choices(&terms);
    let places = decisions.places(&[mismatch.a, mismatch.b]);
    let length = decisions.arena.make(Term::Input(meta::LEN));
    for attempt in 0..TRIES {
        // The ends may differ for few packets only: they are made from all kinds of numbers, with
        // all kinds of choices made on the path.
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
        let flows = held(&[comparison.a, comparison.b], decisions, &found, &values);
        let (judgement, a, b) = around.show(&values.witness, &flows);
        match judgement {
            Judgement::Same => {}
            Judgement::Unclear(why) => {
                confirmed = Confirmed::Unclear(why);
                unclear += 1;
                if unclear == UNCLEAR {
                    return confirmed;
                }
            }
            Judgement::Different => {
                let mut found = Difference { packet: values.witness, flows, a, b };
                if found.flows.is_empty() {
                    simplify(around, &mut found);
                }
                return Confirmed::Different(Box::new(found));
            }
        }
    }
    confirmed
}

/// Makes the packet of a difference easier to read.
fn simplify(around: &dyn Around, found: &mut Difference) {
    for simpler in differential::packets::simplifications() {
        let mut packet = found.packet.clone();
        if simpler(&mut packet)
            && let (Judgement::Different, a, b) = around.show(&packet, &[])
        {
            (found.packet, found.a, found.b) = (packet, a, b);
        }
    }
}

/// The flows that the lookups of a path find, which is one of these programs'.
fn held(
    programs: &[&Program],
    decisions: &Decisions,
    found: &[LookupId],
    values: &Values,
) -> Vec<Held> {
    let of = |&program: &_| {
        let program: &Program = program;
        let ids = (0..program.lookups.len() as u16).map(LookupId);
        ids.filter_map(|id| Some((program.flows_of(id)?, &program.lookups[usize::from(id.0)])))
    };
    let all: Vec<_> = programs.iter().flat_map(of).collect();
    let mut flows = Vec::new();
    for &lookup in found {
        let of = decisions.arena.lookup(lookup);
        let is_it = |(state, _): &&(&StateOf, _)| {
            (state.owner.as_str(), state.name) == (of.table.0.as_str(), of.table.1)
        };
        let Some((state, example)) = all.iter().find(is_it) else { continue };
        let bound = |index: u8| values.bound.get(&(lookup, index)).copied().unwrap_or(0);
        flows.push(Held {
            owner: of.table.0.clone(),
            name: of.table.1,
            kind: state.kind.clone(),
            key: of.key.iter().map(|&t| values.value(&decisions.arena, t)).collect(),
            values: (0..example.values).map(bound).collect(),
            common: (0..example.common).map(|cell| bound(128 | cell)).collect(),
        });
    }
    flows
}
