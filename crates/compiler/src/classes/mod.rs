//! The traffic classes of an input as header spaces over what switches and cards can match (SNF
//! §7.1, Metron §2.3.1): the fields that all packets of a flow in one direction have in common.
//!
//! What a program asks of anything else (lengths, the TTL, flows) does not distinguish classes, so
//! that all packets of a flow are of one class, whatever becomes of each. Later fragments, which have
//! no ports, and packets with extension headers, whose ports nobody finds at once, are of the class
//! that they would be of without ports.

mod questions;
mod regions;

use std::collections::{BTreeMap, BTreeSet};

use ir::field::{eth, icmp, ip, ip6, transport};
use ir::layout::Kind;
use ir::program::{End, Exit, Step, StepId};
use ir::{Base, Cube, Field, Graph, HeaderSpace, IntervalSet, Model, Program};

use questions::Questions;

/// Cubes of all classes of an input together: beyond that, classes are not made more exact.
const MOST_CUBES: usize = 1024;

/// A field of a frame that a switch can match; see [`FIELDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matchable {
    /// The field of the catalogue that it is.
    pub named: Field,
    /// Where it is in a frame without VLAN tags, behind an IPv4 header without options, or an IPv6
    /// header without extension headers.
    pub field: Field,
    /// The frames that have it.
    pub of: Option<Family>,
}

/// Frames that carry one version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    Ip4,
    /// IPv6.
    Ip6,
}

/// A field of a header that starts at a byte of such frames.
const fn field(named: Field, header: u16, of: Option<Family>) -> Matchable {
    let field = Field::bits(Base::Data, 8 * header + named.offset, named.width);
    Matchable { named, field, of }
}

/// Bytes before the network header, and before what follows IPv4 and IPv6.
const NETWORK: u16 = Kind::Ethernet.length();
const BEHIND_IP4: u16 = NETWORK + Kind::Ipv4.length();
const BEHIND_IP6: u16 = NETWORK + Kind::Ipv6.length();

/// Ethernet's type.
pub const ETH_TYPE: Matchable = field(eth::TYPE, 0, None);
/// The version of IP.
pub const IP_VERSION: Matchable = field(ip::VERSION, NETWORK, None);
/// Protocol of IPv4.
pub const IP_PROTO: Matchable = field(ip::PROTO, NETWORK, Some(Family::Ip4));
/// Next header of IPv6.
pub const IP6_NEXT: Matchable = field(ip6::NEXT, NETWORK, Some(Family::Ip6));
/// Types of ICMP and ICMPv6, where ports are otherwise.
pub const ICMP_TYPE: Matchable = field(icmp::TYPE, BEHIND_IP4, Some(Family::Ip4));
/// See [`ICMP_TYPE`].
pub const ICMP6_TYPE: Matchable = field(icmp::TYPE, BEHIND_IP6, Some(Family::Ip6));
const IP_SRC: Matchable = field(ip::SRC, NETWORK, Some(Family::Ip4));
const IP6_SRC: Matchable = field(ip6::SRC, NETWORK, Some(Family::Ip6));

/// The fields that classes are distinguished by.
pub const FIELDS: [Matchable; 13] = [
    ETH_TYPE,
    IP_VERSION,
    field(ip::FRAG, NETWORK, Some(Family::Ip4)),
    IP_PROTO,
    IP_SRC,
    field(ip::DST, NETWORK, Some(Family::Ip4)),
    field(transport::SPORT, BEHIND_IP4, Some(Family::Ip4)),
    field(transport::DPORT, BEHIND_IP4, Some(Family::Ip4)),
    IP6_NEXT,
    IP6_SRC,
    field(ip6::DST, NETWORK, Some(Family::Ip6)),
    field(transport::SPORT, BEHIND_IP6, Some(Family::Ip6)),
    field(transport::DPORT, BEHIND_IP6, Some(Family::Ip6)),
];

impl Matchable {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.named.name().unwrap_or("?")
    }

    /// Whether a field is this one, or some of its bits.
    pub fn holds(&self, field: Field) -> bool {
        let end = |field: Field| field.offset + field.width;
        let Field { base, offset, .. } = self.field;
        base == field.base && offset <= field.offset && end(field) <= end(self.field)
    }
}

impl Family {
    const ALL: [Self; 2] = [Self::Ip4, Self::Ip6];

    /// Ethernet's type, and the version.
    fn numbers(self) -> (u128, u128) {
        match self {
            Self::Ip4 => (0x0800, 4),
            Self::Ip6 => (0x86dd, 6),
        }
    }

    /// What the frames of a cube carry: Ethernet's type says so, else the version. `None` if neither
    /// does.
    pub fn of(cube: &Cube) -> Option<Self> {
        let single = |of: Matchable| cube.get(of.field).and_then(IntervalSet::as_single);
        let (kind, version) = (single(ETH_TYPE), single(IP_VERSION));
        Self::ALL.into_iter().find(|family| match kind {
            Some(kind) => kind == family.numbers().0,
            None => version == Some(family.numbers().1),
        })
    }
}

/// Whether frames have a field.
enum Standing {
    There,
    /// Those of this Ethernet's type have it.
    In(u128),
    Missing,
}

/// Whether the frames of a cube have a field.
fn standing(cube: &Cube, field: Field) -> Standing {
    let mut those = FIELDS.iter().filter(|known| known.holds(field)).map(|known| known.of);
    let family = Family::of(cube);
    if those.clone().any(|of| of.is_none() || of == family) {
        return Standing::There;
    }
    let may_be = |of: &Family| {
        let known = cube.get(ETH_TYPE.field);
        known.is_none_or(|known| known.contains(of.numbers().0) && known.as_single().is_none())
    };
    match (family, those.find_map(|of| of.filter(may_be))) {
        (None, Some(of)) => Standing::In(of.numbers().0),
        _ => Standing::Missing,
    }
}

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

/// The classes of packets that come through the chain or go on in it, of those that come to the
/// entry of a program; disjoint. Packets that are dropped are of none, as far as they are distinguished.
pub fn traffic_classes(program: &Program, graph: &Graph, models: &[Model]) -> Vec<TrafficClass> {
    let is_end = |exit| match program.step(exit) {
        Step::Exit(exit) => goes_on(exit, graph, models),
        _ => false,
    };
    let questions = Questions::of(program, is_end);
    let mut classes: BTreeMap<Vec<StepId>, (Vec<Cube>, BTreeSet<String>)> = BTreeMap::new();
    for region in regions::regions(&questions) {
        let (cubes, tables) = classes.entry(region.exits).or_default();
        cubes.push(region.cube);
        tables.extend(region.lookups.iter().filter_map(|step| questions.tables.get(step).cloned()));
    }
    let class = |(exits, (cubes, tables))| {
        let mut space = HeaderSpace::of_disjoint(cubes);
        space.compact();
        TrafficClass { space, tables, exits }
    };
    classes.into_iter().map(class).collect()
}

/// Whether packets of an exit leave the chain or go on where models do not look; those that only
/// an odd header brings to an element's native code are of the classes of others.
fn goes_on(exit: &Exit, graph: &Graph, models: &[Model]) -> bool {
    let End::Push { to, native } = exit.end else { return false };
    let leaves = graph.nodes.get(to.node).is_some_and(|node| node.outputs.is_empty());
    let is_opaque = models.get(to.node).is_none_or(Model::is_opaque);
    leaves || is_opaque || !native
}

impl TrafficClass {
    /// Two halves of the class, by a bit of the source address, the lowest being 0; what has none is of
    /// the first. `None` if one of them is empty or the other not simple enough.
    pub fn halves(&self, bit: u16) -> Option<[Self; 2]> {
        let mut halves = [Vec::new(), Vec::new()];
        for cube in self.space.cubes() {
            let mut rest = HeaderSpace::from(cube.clone());
            for family in Family::ALL {
                let kind =
                    HeaderSpace::test(ETH_TYPE.field, &IntervalSet::single(family.numbers().0));
                let these = match Family::of(cube) {
                    Some(of) if of == family => std::mem::take(&mut rest),
                    Some(_) => continue,
                    None => {
                        let these = rest.intersect(&kind, MOST_CUBES).ok()?;
                        rest = rest.subtract(&kind, MOST_CUBES).ok()?;
                        these
                    }
                };
                let Field { base, offset, width } = match family {
                    Family::Ip4 => IP_SRC.field,
                    Family::Ip6 => IP6_SRC.field,
                };
                let field = Field::bits(base, offset + width.checked_sub(bit + 1)?, 1);
                for (half, value) in halves.iter_mut().zip([0, 1]) {
                    let has = HeaderSpace::test(field, &IntervalSet::single(value));
                    half.extend_from_slice(these.intersect(&has, MOST_CUBES).ok()?.cubes());
                }
            }
            halves[0].extend_from_slice(rest.cubes());
        }
        let simple = |cubes: &Vec<Cube>| (1..=MOST_CUBES).contains(&cubes.len());
        let half = |cubes| Self { space: HeaderSpace::of_disjoint(cubes), ..self.clone() };
        halves.iter().all(simple).then(|| halves.map(half))
    }
}
