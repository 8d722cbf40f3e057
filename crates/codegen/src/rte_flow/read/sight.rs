//! What a card sees of a packet, by what was found out of the packet so far: which patterns match, do not, or may.

use ir::field::meta;
use ir::model::{BinaryOp, CompareOp};
use ir::program::Atom;
use ir::{Field, IntervalSet};

use super::text::{Bits, Entry, HAS_VLAN, Kind};
use crate::draft::{Terms, data};

/// Types of frames that are lengths are below.
const FIRST_TYPE: u128 = 0x600;

/// What an 802.1Q tag begins with.
const TAG: u128 = 0x8100;

/// What other tags begin with.
const OTHER_TAGS: [u128; 4] = [0x88a8, 0x9100, 0x9200, 0x9300];

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Frame {
    /// It has a type and no tag.
    Plain,
    /// It has one tag, with a type behind it.
    Tagged,
    /// It has a tag, and behind it no type, or another tag.
    Nested,
    /// It has a tag that is cut off.
    Cut,
    /// It has a length instead of a type.
    Untyped,
    /// It begins with a tag that not all cards know.
    Strange,
    /// It is cut off.
    Short,
}

/// What follows the frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    Ipv4,
    Ipv6,
    /// A header of that kind that is not right.
    Broken(Kind),
    Other,
}

/// What follows an IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Transport {
    Whole(Kind),
    /// A header of that kind that is cut off, or in a fragment.
    Broken(Kind),
    Other,
}

/// Protocols, and the bytes that their headers have at least.
const TRANSPORTS: [(Kind, u128, u128); 4] =
    [(Kind::Tcp, 6, 20), (Kind::Udp, 17, 8), (Kind::Icmp, 1, 8), (Kind::Sctp, 132, 12)];

/// What was found out of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sight {
    frame: Option<Frame>,
    network: Option<Network>,
    transport: Option<Transport>,
    /// How many checks of the next of these were made.
    checks: u8,
    /// Which of several kinds is tried.
    kind: u8,
}

/// What is to be found out first: whether a condition holds, and what is known then.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) atom: Atom,
    pub(super) yes: Sight,
    pub(super) no: Sight,
}

/// Whether a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Match {
    No,
    /// Where fields of the packet are in these sets; not certain there, if `certain` does not hold.
    Where {
        sets: Vec<(Field, Bits)>,
        certain: bool,
    },
}

type Asked<T> = Result<T, Box<Question>>;

impl Sight {
    fn ask<T>(atom: Atom, yes: Sight, no: Sight) -> Asked<T> {
        Err(Box::new(Question { atom, yes, no }))
    }

    fn is_in(terms: &mut Terms, field: Field, set: IntervalSet) -> Atom {
        Atom::Test(terms.input(field), set.into())
    }

    fn within(terms: &mut Terms, field: Field, low: u128, high: u128) -> Atom {
        Self::is_in(terms, field, IntervalSet::range(low, high))
    }

    /// Whether the packet has so many bytes.
    fn reaches(terms: &mut Terms, bytes: u16) -> Atom {
        Self::within(terms, meta::LEN, bytes.into(), u32::MAX.into())
    }

    fn frame(&self, terms: &mut Terms) -> Asked<Frame> {
        if let Some(frame) = self.frame {
            return Ok(frame);
        }
        let is = |frame| Sight { frame: Some(frame), checks: 0, ..*self };
        let then = |checks| Sight { checks, ..*self };
        let typed = IntervalSet::range(FIRST_TYPE, 0xffff);
        match self.checks {
            0 => Self::ask(Self::reaches(terms, 14), then(1), is(Frame::Short)),
            1 => Self::ask(Self::within(terms, data(96, 16), TAG, TAG), then(2), then(4)),
            2 => Self::ask(Self::reaches(terms, 18), then(3), is(Frame::Cut)),
            3 => {
                let tags = OTHER_TAGS.into_iter().chain([TAG]).map(IntervalSet::single);
                let tags = IntervalSet::union_of(&tags.collect::<Vec<_>>());
                let atom = Self::is_in(terms, data(128, 16), typed.subtract(&tags));
                Self::ask(atom, is(Frame::Tagged), is(Frame::Nested))
            }
            4 => {
                let tags = IntervalSet::union_of(&OTHER_TAGS.map(IntervalSet::single));
                Self::ask(Self::is_in(terms, data(96, 16), tags), is(Frame::Strange), then(5))
            }
            _ => {
                let atom = Self::is_in(terms, data(96, 16), typed);
                Self::ask(atom, is(Frame::Plain), is(Frame::Untyped))
            }
        }
    }

    /// What follows the frame's header, at this byte.
    fn network(&self, terms: &mut Terms, at: u16) -> Asked<Network> {
        if let Some(network) = self.network {
            return Ok(network);
        }
        let is = |network| Sight { network: Some(network), checks: 0, kind: 0, ..*self };
        let next = Sight { checks: self.checks + 1, ..*self };
        let bits = 8 * at;
        let (kind, number) =
            if self.kind == 0 { (Kind::Ipv4, 0x0800) } else { (Kind::Ipv6, 0x86dd) };
        let broken = is(Network::Broken(kind));
        if self.checks == 0 {
            let other = match kind {
                Kind::Ipv4 => Sight { kind: 1, ..*self },
                _ => is(Network::Other),
            };
            return Self::ask(
                Self::within(terms, data(bits - 16, 16), number, number),
                next,
                other,
            );
        }
        let fits = |terms: &mut Terms, length: Field, before: u16| {
            let (length, all) = (terms.input(length), terms.input(meta::LEN));
            Atom::Compare(CompareOp::Le, terms.with(BinaryOp::Add, length, before.into()), all)
        };
        let atom = match (kind, self.checks) {
            (Kind::Ipv4, 1) => Self::reaches(terms, at + 20),
            (Kind::Ipv4, 2) => Self::within(terms, data(bits, 4), 4, 4),
            (Kind::Ipv4, 3) => Self::within(terms, data(bits + 4, 4), 5, 5),
            (Kind::Ipv4, 4) => Self::within(terms, data(bits + 16, 16), 20, 0xffff),
            (Kind::Ipv4, _) => {
                let atom = fits(terms, data(bits + 16, 16), at);
                return Self::ask(atom, is(Network::Ipv4), broken);
            }
            (_, 1) => Self::reaches(terms, at + 40),
            (_, 2) => Self::within(terms, data(bits, 4), 6, 6),
            _ => {
                let atom = fits(terms, data(bits + 32, 16), at + 40);
                return Self::ask(atom, is(Network::Ipv6), broken);
            }
        };
        Self::ask(atom, next, broken)
    }

    /// What follows the IPv4 header at this byte.
    fn transport(&self, terms: &mut Terms, at: u16) -> Asked<Transport> {
        if let Some(transport) = self.transport {
            return Ok(transport);
        }
        let is = |transport| Sight { transport: Some(transport), checks: 0, kind: 0, ..*self };
        let next = Sight { checks: self.checks + 1, ..*self };
        let (kind, protocol, least) = TRANSPORTS[usize::from(self.kind) % TRANSPORTS.len()];
        let (broken, whole) = (is(Transport::Broken(kind)), is(Transport::Whole(kind)));
        let (bits, from) = (8 * at, 8 * (at + 20));
        let length = data(bits + 16, 16);
        match self.checks {
            0 => {
                let other = match usize::from(self.kind) + 1 == TRANSPORTS.len() {
                    true => is(Transport::Other),
                    false => Sight { kind: self.kind + 1, ..*self },
                };
                let atom = Self::within(terms, data(bits + 72, 8), protocol, protocol);
                Self::ask(atom, next, other)
            }
            1 => Self::ask(Self::within(terms, data(bits + 50, 14), 0, 0), next, broken),
            2 => {
                let atom = Self::within(terms, length, 20 + least, 0xffff);
                Self::ask(atom, if kind == Kind::Tcp { next } else { whole }, broken)
            }
            3 => Self::ask(Self::within(terms, data(from + 96, 4), 5, 15), next, broken),
            _ => {
                let (words, all) = (terms.input(data(from + 96, 4)), terms.input(length));
                let header = terms.with(BinaryOp::Mul, words, 4);
                let end = terms.with(BinaryOp::Add, header, 20);
                Self::ask(Atom::Compare(CompareOp::Le, end, all), whole, broken)
            }
        }
    }

    /// Whether a rule's pattern matches.
    pub(super) fn matches(&self, terms: &mut Terms, entry: &Entry) -> Asked<Match> {
        let mut found = Found { sets: Vec::new(), certain: true };
        let of = |kind: Kind| entry.when.iter().filter(move |bits| bits.place.kind == kind);
        if entry.when.is_empty() && entry.items.len() <= 1 {
            return Ok(found.done());
        }
        let frame = self.frame(terms)?;
        let tag = of(Kind::Eth).find(|bits| bits.place == HAS_VLAN).map(|bits| bits.value == 1);
        let mentions = entry.items.contains(&Kind::Vlan);
        if tag == Some(false) && mentions {
            return Ok(Match::No);
        }
        match (tag, frame) {
            (Some(true), Frame::Plain | Frame::Untyped) => return Ok(Match::No),
            (Some(false), Frame::Tagged | Frame::Nested | Frame::Cut) => return Ok(Match::No),
            (Some(_), Frame::Strange | Frame::Short) => found.certain = false,
            _ => {}
        }
        if mentions && matches!(frame, Frame::Plain | Frame::Untyped) {
            return Ok(Match::No);
        }
        let is_odd = matches!(frame, Frame::Strange | Frame::Short);
        for bits in of(Kind::Eth).filter(|bits| bits.place != HAS_VLAN) {
            let is_type = bits.place.from == 96;
            match frame {
                Frame::Short => found.certain = false,
                Frame::Untyped | Frame::Strange if is_type => found.certain = false,
                Frame::Tagged | Frame::Nested | Frame::Cut if is_type && !mentions => {
                    found.certain = false
                }
                _ => found.add(bits, 0),
            }
        }
        if mentions {
            match frame {
                Frame::Tagged => of(Kind::Vlan).for_each(|bits| found.add(bits, 112)),
                _ => found.certain &= !is_odd && of(Kind::Vlan).next().is_none(),
            }
        }
        let inside = entry.items.iter().copied().find(|k| matches!(k, Kind::Ipv4 | Kind::Ipv6));
        let Some(inside) = inside else { return Ok(found.done()) };
        let at = match frame {
            Frame::Plain => 14,
            Frame::Tagged if mentions || tag == Some(true) => 18,
            _ => {
                found.certain = false;
                return Ok(found.done());
            }
        };
        match (self.network(terms, at)?, inside) {
            (Network::Ipv4, Kind::Ipv4) | (Network::Ipv6, Kind::Ipv6) => {
                of(inside).for_each(|bits| found.add(bits, 8 * at));
            }
            (Network::Broken(kind), _) if kind == inside => found.certain = false,
            _ => return Ok(Match::No),
        }
        let last = entry.items.last().copied().filter(|last| *last > Kind::Ipv6);
        let Some(last) = last else { return Ok(found.done()) };
        if self.network != Some(Network::Ipv4) {
            found.certain = false;
            return Ok(found.done());
        }
        match self.transport(terms, at)? {
            Transport::Whole(kind) if kind == last => {
                of(last).for_each(|bits| found.add(bits, 8 * (at + 20)));
            }
            Transport::Broken(kind) if kind == last => found.certain = false,
            _ => return Ok(Match::No),
        }
        Ok(found.done())
    }

    /// Where the IPv4 header is, if it is certain that there is one.
    pub(super) fn ip(&self, terms: &mut Terms) -> Asked<Option<u16>> {
        let at = match self.frame(terms)? {
            Frame::Plain => 14,
            Frame::Tagged => 18,
            _ => return Ok(None),
        };
        Ok((self.network(terms, at)? == Network::Ipv4).then_some(at))
    }

    /// Whether there is a tag in front, if that is certain.
    pub(super) fn tagged(&self, terms: &mut Terms) -> Asked<Option<bool>> {
        Ok(match self.frame(terms)? {
            Frame::Plain => Some(false),
            Frame::Tagged | Frame::Nested => Some(true),
            _ => None,
        })
    }
}

struct Found {
    sets: Vec<(Field, Bits)>,
    certain: bool,
}

impl Found {
    /// Bits of a field of a header that starts at a bit of the packet.
    fn add(&mut self, bits: &Bits, start: u16) {
        let place = bits.place;
        self.sets.push((data(start + place.from, place.width), bits.clone()));
    }

    fn done(mut self) -> Match {
        self.sets.sort_unstable_by_key(|set| set.0);
        Match::Where { sets: self.sets, certain: self.certain }
    }
}
