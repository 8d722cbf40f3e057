//! The traffic classes of an input as header spaces over what switches and cards can match (SNF
//! §7.1, Metron §2.3.1): the fields that all packets of a flow in one direction have in common.
//!
//! What a program asks of anything else (lengths, the TTL, flows) does not tell classes apart, so
//! that all packets of a flow are of one class, whatever becomes of each.

use std::collections::{BTreeMap, BTreeSet};

use ir::header_space::TooLarge;
use ir::program::Atom;
use ir::program::{ClassifyRule, End, Exit, Step, StepId, Term, TermId};
use ir::{Base, Field, Graph, HeaderSpace, IntervalSet, Model, Program};

use crate::provenance::carry;

/// Cubes of a header space beyond which it is not made more exact.
const MOST_CUBES: usize = 512;
/// Rules of a list beyond which they are not told apart.
const MOST_RULES: usize = 64;

/// A field of a frame that a switch can match; see [`FIELDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matchable {
    /// Its name.
    pub name: &'static str,
    /// Where it is in a frame without VLAN tags, and an IPv4 header without options.
    pub field: Field,
}

const fn field(name: &'static str, offset: u16, width: u16) -> Matchable {
    Matchable { name, field: Field::bits(Base::Data, offset, width) }
}

/// Protocol of IPv4.
pub const IP_PROTO: Matchable = field("ip.proto", 184, 8);
/// Source address of IPv4.
pub const IP_SRC: Matchable = field("ip.src", 208, 32);

/// The fields that classes are told apart by.
pub const FIELDS: [Matchable; 6] = [
    field("eth.type", 96, 16),
    IP_PROTO,
    IP_SRC,
    field("ip.dst", 240, 32),
    field("transport.sport", 272, 16),
    field("transport.dport", 288, 16),
];

/// Packets of an input for which the chain does the same (Metron §2.3.4).
#[derive(Clone, Debug)]
pub struct TrafficClass {
    /// Which packets, in [`FIELDS`].
    pub space: HeaderSpace,
    /// The tables of flows that they are looked up in, by the elements that own them.
    pub tables: BTreeSet<String>,
    /// The exits of the program that they come to.
    pub exits: Vec<StepId>,
}

/// What is known of packets that come to a step.
#[derive(Clone)]
struct Known {
    space: HeaderSpace,
    tables: BTreeSet<String>,
}

/// The classes of packets that come through the chain or go on in it, of those that come to the
/// entry of a program; disjoint. Packets that are dropped are of none.
pub fn traffic_classes(program: &Program, graph: &Graph, models: &[Model]) -> Vec<TrafficClass> {
    let mut atoms = vec![TrafficClass {
        space: HeaderSpace::full(),
        tables: BTreeSet::new(),
        exits: Vec::new(),
    }];
    for (step, known) in reached(program) {
        let Step::Exit(exit) = program.step(step) else { continue };
        if !goes_on(exit, graph, models) {
            continue;
        }
        let mut split = Vec::new();
        for mut atom in atoms {
            let (inside, outside) = match parts(&atom.space, &known.space) {
                Ok(parts) => parts,
                // As exact as it gets.
                Err(TooLarge { .. }) => (atom.space.clone(), HeaderSpace::empty()),
            };
            if !outside.is_empty() {
                split.push(TrafficClass { space: outside, ..atom.clone() });
            }
            if !inside.is_empty() {
                atom.space = inside;
                atom.exits.push(step);
                atom.tables.extend(known.tables.iter().cloned());
                split.push(atom);
            }
        }
        atoms = split;
    }
    let mut classes: BTreeMap<Vec<StepId>, TrafficClass> = BTreeMap::new();
    for atom in atoms.into_iter().filter(|atom| !atom.exits.is_empty()) {
        match classes.get_mut(&atom.exits) {
            Some(class) => {
                let more = class.space.cubes().len() + atom.space.cubes().len();
                if let Ok(mut both) = class.space.union(&atom.space, more) {
                    both.compact();
                    class.space = both;
                }
            }
            None => drop(classes.insert(atom.exits.clone(), atom)),
        }
    }
    classes.into_values().collect()
}

/// The packets of a space that are in another, and those that are not.
fn parts(of: &HeaderSpace, by: &HeaderSpace) -> Result<(HeaderSpace, HeaderSpace), TooLarge> {
    Ok((of.intersect(by, MOST_CUBES)?, of.subtract(by, MOST_CUBES)?))
}

/// Whether packets of an exit leave the chain or go on where models do not look; those that only
/// an odd header brings to an element's own code are of the classes of others.
fn goes_on(exit: &Exit, graph: &Graph, models: &[Model]) -> bool {
    let End::Push { to, native } = exit.end else { return false };
    let leaves = graph.nodes.get(to.node).is_some_and(|node| node.outputs.is_empty());
    let is_opaque = models.get(to.node).is_none_or(Model::is_opaque);
    leaves || is_opaque || !native
}

/// What is known of the packets of each exit.
fn reached(program: &Program) -> Vec<(StepId, Known)> {
    let first = Known { space: HeaderSpace::full(), tables: BTreeSet::new() };
    let ways = |i: usize, known| ways_on(program, &program.steps[i], known);
    carry(program, first, ways, |mut one, other| {
        one.tables.extend(other.tables);
        let either = one.space.union(&other.space, MOST_CUBES);
        one.space = either.unwrap_or_else(|_| HeaderSpace::full());
        one
    })
}

/// A number that classes are told apart by.
fn matchable(program: &Program, term: TermId) -> Option<Field> {
    let Term::Input(input) = program.term(term) else { return None };
    let within = |f: &Field| {
        f.base == input.base
            && f.offset <= input.offset
            && input.offset + input.width <= f.offset + f.width
    };
    FIELDS.iter().any(|known| within(&known.field)).then_some(*input)
}

fn ways_on(program: &Program, step: &Step, known: Known) -> Vec<(StepId, Known)> {
    let with = |space: HeaderSpace| Known { space, ..known.clone() };
    let narrowed = match step {
        Step::Test { atom: Atom::Test(term, set), yes, no, .. } => matchable(program, *term)
            .and_then(|field| {
                let (inside, outside) = parts(&known.space, &HeaderSpace::test(field, set)).ok()?;
                Some(vec![(*yes, inside), (*no, outside)])
            }),
        Step::Switch { on, cases, otherwise, .. } => matchable(program, *on).and_then(|field| {
            let mut rest = known.space.clone();
            let mut ways = Vec::new();
            for (set, to) in cases {
                let (inside, outside) = parts(&rest, &HeaderSpace::test(field, set)).ok()?;
                ways.push((*to, inside));
                rest = outside;
            }
            ways.push((*otherwise, rest));
            Some(ways)
        }),
        Step::Classify { keys, rules, arms, otherwise, .. } if rules.len() <= MOST_RULES => {
            by_rules(program, keys, rules, arms, *otherwise, &known.space).ok()
        }
        _ => None,
    };
    match narrowed {
        Some(ways) => {
            let ways = ways.into_iter().filter(|(_, space)| !space.is_empty());
            ways.map(|(to, space)| (to, with(space))).collect()
        }
        None => {
            let mut known = known;
            if let Step::Flow { lookup, .. } = step
                && let Some(lookup) = program.lookups.get(usize::from(lookup.0))
                // What is found by one number is no flow but a neighbour.
                && lookup.key.len() > 1
                && let Some(state) = program.state.get(usize::from(lookup.flows.0))
            {
                known.tables.insert(state.owner.clone());
            }
            step.next().map(|to| (to, known.clone())).collect()
        }
    }
}

/// Where rules lead the packets of a space, the first that matches each.
fn by_rules(
    program: &Program,
    keys: &[TermId],
    rules: &[ClassifyRule],
    arms: &[StepId],
    otherwise: StepId,
    space: &HeaderSpace,
) -> Result<Vec<(StepId, HeaderSpace)>, TooLarge> {
    let mut rest = space.clone();
    let mut ways = Vec::new();
    for rule in rules {
        let (mut matched, mut exact) = (HeaderSpace::empty(), true);
        for cube in rule.cubes.iter() {
            let mut packets = HeaderSpace::full();
            for (key, set) in cube {
                let field = keys.get(usize::from(*key)).and_then(|key| matchable(program, *key));
                match field {
                    Some(field) => {
                        packets = packets.intersect(&HeaderSpace::test(field, set), MOST_CUBES)?;
                    }
                    None => exact = false,
                }
            }
            matched = matched.union(&packets, MOST_CUBES)?;
        }
        if let Some(to) = arms.get(rule.arm as usize) {
            ways.push((*to, rest.intersect(&matched, MOST_CUBES)?));
        }
        if exact {
            rest = rest.subtract(&matched, MOST_CUBES)?;
        }
    }
    ways.push((otherwise, rest));
    Ok(ways)
}

impl TrafficClass {
    /// Two halves of the class, by a bit of the source address, the lowest being 0; `None` if one of
    /// them is empty or the other not simple enough.
    pub fn halves(&self, bit: u16) -> Option<[Self; 2]> {
        let source = IP_SRC.field;
        let field = Field::bits(source.base, source.offset + source.width.checked_sub(bit + 1)?, 1);
        let half = |value| {
            let half = HeaderSpace::test(field, &IntervalSet::single(value));
            let space = self.space.intersect(&half, MOST_CUBES).ok()?;
            (!space.is_empty()).then(|| Self { space, ..self.clone() })
        };
        Some([half(0)?, half(1)?])
    }
}
