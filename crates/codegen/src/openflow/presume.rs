//! What a switch presumes of packets whose fields it looks at: that headers are there as a whole, and that their
//! lengths are right. Open vSwitch takes all fields of other headers for 0, and looks behind an LLC and SNAP header.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use ir::field::{arp, eth, ip, ip6, meta, vlan};
use ir::layout::{Header, Kind, Layout};
use ir::program::{Step, StepId, Term, TermId};
use ir::{Base, Field, IntervalSet, Program};

use net::wire::ip_protocol;

use crate::rule::layout_of;
use crate::{Lack, Presumed, Presumption};

/// The least number in a field that is a type, not a length (IEEE 802.3 §3.2.6).
const LEAST_TYPE: u128 = 0x600;

/// What is presumed where a step is decided.
///
/// # Errors
/// If there is a tag that no switch takes for one.
pub(super) fn presumed(
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumption>, Lack> {
    let mut all = Vec::new();
    match program.step(step) {
        Step::Classify { keys, rules, .. } => {
            // A rule on ports says itself that it is about TCP, and perhaps that it is about no fragments.
            for cube in rules.iter().flat_map(|rule| rule.cubes.iter()) {
                let layout = layout_of(program, layout, keys, cube);
                let said = cube.iter().filter_map(|(key, set)| {
                    let term = *keys.get(usize::from(*key))?;
                    Some((term, set))
                });
                presume(program, &layout, &said.collect::<Vec<_>>(), &mut all)?;
            }
        }
        Step::Lookup { lookup, .. } => {
            let keys = &program.lookups[usize::from(lookup.0)].key;
            presume(program, layout, &unsaid(keys), &mut all)?;
        }
        step => presume(program, layout, &unsaid(&step.terms()), &mut all)?,
    }
    Ok(all)
}

/// Numbers that are looked at without a set that they are in.
fn unsaid(terms: &[TermId]) -> Vec<(TermId, &'static IntervalSet)> {
    static ANY: LazyLock<IntervalSet> = LazyLock::new(|| IntervalSet::range(0, u128::MAX));
    terms.iter().map(|term| (*term, &*ANY)).collect()
}

/// What is presumed where these numbers are looked at; those of a rule are all in these sets.
fn presume(
    program: &Program,
    layout: &Layout,
    said: &[(TermId, &IntervalSet)],
    all: &mut Vec<Presumption>,
) -> Result<(), Lack> {
    let fields = said.iter().filter_map(|(term, set)| match program.term(*term) {
        Term::Input(field) => Some((*field, *set)),
        _ => None,
    });
    let mut presuming = Presuming { layout, said: fields.collect(), when: Vec::new(), all };
    let mut terms: Vec<TermId> = said.iter().map(|(term, _)| *term).collect();
    if let Some(tag) = presuming.tag().filter(|tag| !TAGS.contains(tag)) {
        return Err(Lack::Field(format!("a tag of type {tag:#06x}")));
    }
    let mut seen = BTreeSet::new();
    while let Some(term) = terms.pop() {
        if !seen.insert(term) {
            continue;
        }
        terms.extend(program.term(term).operands());
        if let Term::Input(field) = program.term(term)
            && field.base == Base::Data
        {
            presuming.field(*field);
        }
    }
    Ok(())
}

/// Of which packets only an exit's writes are done: Open vSwitch changes no IP header whose protocol is 0.
pub(super) fn written(program: &Program, step: StepId, layout: &Layout) -> Vec<Presumed> {
    let Step::Exit(exit) = program.step(step) else { return Vec::new() };
    let ip = layout.headers().iter().find(|header| header.kind == Kind::Ipv4);
    let is_in = |header: &&Header| {
        let end = header.offset + i32::from(header.length);
        let mut bytes = exit.all().flat_map(|exit| &exit.writes.bytes);
        bytes.any(|write| {
            write.offset < end && header.offset < write.offset + i32::from(write.length)
        })
    };
    let protocol = |header: &Header| {
        let known = IntervalSet::range(1, ip::PROTO.max());
        Presumed::In(Presuming::of(header, ip::PROTO), known)
    };
    ip.filter(is_in).map(protocol).into_iter().collect()
}

/// What takes a tag's place (IEEE 802.1Q §9.5): no switch tells one from the other.
const TAGS: [u128; 2] = [0x8100, 0x88a8];

struct Presuming<'a> {
    layout: &'a Layout,
    /// What is looked at says itself that these fields are in these sets.
    said: Vec<(Field, &'a IntervalSet)>,
    /// Of which packets only, at present.
    when: Vec<(Field, IntervalSet)>,
    all: &'a mut Vec<Presumption>,
}

impl Presuming<'_> {
    fn add(&mut self, holds: Presumed, lack: Lack) {
        let presumption = Presumption { when: self.when.clone(), holds, lack: Some(lack) };
        if !self.all.contains(&presumption) {
            self.all.push(presumption);
        }
    }

    /// A field of a header, as the packet has it.
    fn of(header: &Header, field: Field) -> Field {
        Field::bits(Base::Data, u16::try_from(header.bit(field)).unwrap_or(u16::MAX), field.width)
    }

    fn is_in(&mut self, header: &Header, field: Field, low: u128, high: u128) {
        let name = header.field_name(field);
        let set = IntervalSet::range(low, high);
        self.add(Presumed::In(Self::of(header, field), set), Lack::Field(name));
    }

    fn long_enough(&mut self, bytes: i32) {
        let set = IntervalSet::range(u128::try_from(bytes).unwrap_or(0), meta::LEN.max());
        self.add(Presumed::In(meta::LEN, set), Lack::Length);
    }

    /// What a field needs.
    fn field(&mut self, field: Field) {
        let at = i32::from(field.offset) / 8;
        let headers = self.layout.headers();
        let is_in = |header: &&Header| {
            (header.offset..header.offset + i32::from(header.length)).contains(&at)
        };
        let Some(header) = headers.iter().rev().find(is_in) else { return };
        self.when.clear();
        for before in headers.iter().take_while(|before| before.offset < header.offset) {
            self.follow(before);
            self.behind(before);
        }
        self.follow(header);
        let addresses = [eth::DST, eth::SRC].map(|address| Self::of(header, address));
        match header.kind {
            Kind::Ethernet if addresses.iter().any(|address| address.overlaps(field)) => {
                self.long_enough(header.offset + 14);
            }
            _ => self.behind(header),
        }
        match header.kind {
            Kind::Tcp | Kind::Udp | Kind::Ports => {
                self.payload(header, Some(ip_protocol::TCP), 20);
                self.payload(header, Some(ip_protocol::UDP), 8);
            }
            Kind::Icmp | Kind::Icmp6 => self.payload(header, None, 8),
            _ => {}
        }
    }

    /// What follows is of packets only that have this header.
    fn follow(&mut self, header: &Header) {
        let headers = self.layout.headers();
        let before = headers.iter().rev().find(|before| before.offset < header.offset);
        if let (Some(select), Some(before)) = (header.select, before) {
            let set = IntervalSet::single(select.value);
            self.when.push((Self::of(before, select.field), set));
        }
    }

    fn ethernet(&self) -> Option<Header> {
        self.layout.headers().iter().find(|header| header.kind == Kind::Ethernet).copied()
    }

    /// The type that says that a tag follows, where one does.
    fn tag(&self) -> Option<u128> {
        let tag = self.layout.headers().iter().find(|header| header.kind == Kind::Vlan)?;
        Some(tag.select?.value)
    }

    /// What has to hold of a header so that the switch looks at it, and behind it.
    fn behind(&mut self, header: &Header) {
        let at = header.offset;
        match header.kind {
            Kind::Ethernet => {
                // One that says that a tag follows has it.
                self.long_enough(at + 18);
                let other = match self.tag() {
                    Some(tag) if tag == TAGS[1] => TAGS[0],
                    _ => TAGS[1],
                };
                let types = IntervalSet::range(LEAST_TYPE, eth::TYPE.max());
                let types = types.subtract(&IntervalSet::single(other));
                let name = header.field_name(eth::TYPE);
                self.add(Presumed::In(Self::of(header, eth::TYPE), types), Lack::Field(name));
            }
            Kind::Vlan | Kind::InnerVlan => {
                self.long_enough(at + 4);
                if let Some(ethernet) = self.ethernet() {
                    let tag = self.tag().unwrap_or(TAGS[0]);
                    self.is_in(&ethernet, eth::TYPE, tag, tag);
                }
                self.is_in(header, vlan::TYPE, LEAST_TYPE, vlan::TYPE.max());
            }
            Kind::Ipv4 => {
                self.long_enough(at + 20);
                self.is_in(header, ip::HL, 5, ip::HL.max());
                let length = Self::of(header, ip::LEN);
                let header_length = Self::of(header, ip::HL);
                let fits =
                    Presumed::Fits { field: header_length, times: 4, plus: 0, within: length };
                self.add(fits, Lack::Length);
                self.fits(length, at);
            }
            Kind::Ipv6 => {
                self.long_enough(at + 40);
                self.fits(Self::of(header, ip6::PLEN), at + 40);
            }
            Kind::Arp => {
                self.long_enough(at + 28);
                // Ethernet and IPv4, and an operation of one byte.
                let head = Field { width: 48, ..Self::of(header, arp::HTYPE) };
                let set = IntervalSet::single(0x0001_0800_0604);
                self.add(Presumed::In(head, set), Lack::Field("arp.htype".into()));
                self.is_in(header, arp::OP, 0, 0xff);
            }
            _ => {}
        }
    }

    /// Whether what is looked at says itself that a fragment's offset is 0.
    fn is_first(&self, offset: Field) -> bool {
        let end = |field: Field| field.offset + field.width;
        self.said.iter().any(|&(field, set)| {
            let around = field.base == offset.base
                && field.offset <= offset.offset
                && end(offset) <= end(field);
            let bits = u128::MAX >> (128 - offset.width);
            let above = u32::from(end(field).saturating_sub(end(offset)));
            let is_zero = |number: u128| number >> above & bits == 0;
            around
                && set
                    .intervals()
                    .iter()
                    .all(|&(low, high)| is_zero(low) && (high - low) >> above == 0 && is_zero(high))
        })
    }

    fn fits(&mut self, field: Field, plus: i32) {
        let plus = u32::try_from(plus).unwrap_or(0);
        self.add(Presumed::Fits { field, times: 1, plus, within: meta::LEN }, Lack::Length);
    }

    /// The transport header is there, so many bytes of it.
    fn payload(&mut self, header: &Header, protocol: Option<u8>, bytes: i32) {
        let before = self.layout.headers().iter().rev().find(|other| {
            other.offset < header.offset && matches!(other.kind, Kind::Ipv4 | Kind::Ipv6)
        });
        let Some(network) = before.copied() else { return };
        let number = if network.kind == Kind::Ipv4 { ip::PROTO } else { ip6::NEXT };
        let known = self.when.len();
        if let Some(protocol) = protocol {
            let set = IntervalSet::single(protocol.into());
            self.when.push((Self::of(&network, number), set));
        }
        let length = header.offset - network.offset;
        let (of, rest) = match network.kind {
            Kind::Ipv4 => (ip::LEN, length),
            _ => (ip6::PLEN, length - 40),
        };
        if network.kind == Kind::Ipv4 {
            let words = u128::try_from(length / 4).unwrap_or(0);
            self.is_in(&network, ip::HL, words, words);
            if !self.is_first(Self::of(&network, ip::FRAG)) {
                self.is_in(&network, ip::FRAG, 0, 0);
            }
        }
        self.is_in(&network, of, u128::try_from(rest + bytes).unwrap_or(0), of.max());
        if protocol == Some(ip_protocol::TCP) {
            // It says itself how long it is.
            let offset = Field::bits(Base::Data, 8 * header.offset as u16 + 96, 4);
            let set = IntervalSet::range(5, 15);
            self.add(Presumed::In(offset, set), Lack::Length);
            let (plus, within) = (u32::try_from(rest).unwrap_or(0), Self::of(&network, of));
            self.add(Presumed::Fits { field: offset, times: 4, plus, within }, Lack::Length);
        }
        self.when.truncate(known);
    }
}
