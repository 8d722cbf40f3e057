//! What a card presumes of packets whose fields it looks at. Documents say how cards treat packets whose headers are
//! whole, have no options and are no fragments; of others, nothing.

use std::collections::BTreeSet;

use ir::field::{eth, ip, ip6, meta, vlan};
use ir::layout::{Header, Kind, Layout};
use ir::program::{Step, StepId, Term, TermId};
use ir::{Base, Field, IntervalSet, Program};
use net::wire::ip_protocol;

use super::field::Key;
use super::{Driver, LEAST_TYPE, TAGS};
use crate::rule::layout_of;
use crate::{Lack, Presumed, Presumption};

/// What is presumed where a step is decided.
pub(super) fn presumed(
    driver: &Driver,
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Vec<Presumption> {
    let mut all = Vec::new();
    let mut presume = |layout: &Layout, terms: Vec<TermId>| {
        let mut presuming = Presuming { driver, layout, when: Vec::new(), all: &mut all };
        fields(program, terms).into_iter().for_each(|field| presuming.field(field));
    };
    match program.step(step) {
        Step::Classify { keys, rules, .. } => {
            // A rule on ports says itself that it is about TCP.
            for cube in rules.iter().flat_map(|rule| rule.cubes.iter()) {
                let terms = cube.iter().filter_map(|(key, _)| keys.get(usize::from(*key)));
                presume(&layout_of(program, layout, keys, cube), terms.copied().collect());
            }
        }
        Step::Lookup { lookup, .. } => {
            let asked = program.lookups.get(usize::from(lookup.0));
            presume(layout, asked.map_or_else(Vec::new, |asked| asked.key.clone()));
        }
        step => presume(layout, step.terms()),
    }
    all
}

/// The fields of the packet that numbers are made from.
fn fields(program: &Program, mut terms: Vec<TermId>) -> BTreeSet<Field> {
    let (mut seen, mut fields) = (BTreeSet::new(), BTreeSet::new());
    while let Some(term) = terms.pop() {
        if seen.insert(term) {
            terms.extend(program.term(term).operands());
            if let Term::Input(field) = program.term(term)
                && field.base == Base::Data
            {
                fields.insert(*field);
            }
        }
    }
    fields
}

struct Presuming<'a> {
    driver: &'a Driver,
    layout: &'a Layout,
    /// Of which packets only, at present.
    when: Vec<(Field, IntervalSet)>,
    all: &'a mut Vec<Presumption>,
}

/// A field of a header, as the packet has it.
fn of(header: &Header, field: Field) -> Field {
    Field::bits(Base::Data, u16::try_from(header.bit(field)).unwrap_or(u16::MAX), field.width)
}

impl Presuming<'_> {
    fn add(&mut self, holds: Presumed, lack: Lack) {
        let presumption = Presumption { when: self.when.clone(), holds, lack: Some(lack) };
        if !self.all.contains(&presumption) {
            self.all.push(presumption);
        }
    }

    fn is_in(&mut self, header: &Header, field: Field, set: IntervalSet) {
        let name = header.field_name(field);
        self.add(Presumed::In(of(header, field), set), Lack::Field(name));
    }

    fn long_enough(&mut self, bytes: i32) {
        let set = IntervalSet::range(u128::try_from(bytes).unwrap_or(0), meta::LEN.max());
        self.add(Presumed::In(meta::LEN, set), Lack::Length);
    }

    fn fits(&mut self, field: Field, times: u32, plus: i32, within: Field) {
        let plus = u32::try_from(plus).unwrap_or(0);
        self.add(Presumed::Fits { field, times, plus, within }, Lack::Length);
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
        let types = field.offset >= eth::TYPE.offset;
        for before in headers.iter().filter(|other| other.offset <= header.offset) {
            self.follow(before);
            self.there(before, types);
        }
        if header.kind == Kind::Ipv4 && of(header, ip::FRAG).overlaps(field) {
            self.no_fragment(header);
        }
    }

    /// What follows is of packets only that have this header.
    fn follow(&mut self, header: &Header) {
        let headers = self.layout.headers();
        let before = headers.iter().rev().find(|before| before.offset < header.offset);
        if let (Some(select), Some(before)) = (header.select, before) {
            self.when.push((of(before, select.field), IntervalSet::single(select.value)));
        }
    }

    /// What has to hold of a header that fields are looked at in, or in a later one.
    fn there(&mut self, header: &Header, types: bool) {
        let at = header.offset;
        match header.kind {
            Kind::Ethernet => {
                self.long_enough(14);
                if types {
                    self.types(header);
                }
            }
            Kind::Vlan => {
                self.long_enough(18);
                let types = IntervalSet::range(LEAST_TYPE, vlan::TYPE.max());
                let tags = TAGS.map(IntervalSet::single);
                let types = types.subtract(&IntervalSet::union_of(&tags));
                self.is_in(header, vlan::TYPE, types);
            }
            Kind::Ipv4 => {
                self.long_enough(at + 20);
                self.is_in(header, ip::VERSION, IntervalSet::single(4));
                self.is_in(header, ip::HL, IntervalSet::single(5));
                let length = of(header, ip::LEN);
                let least = IntervalSet::range(20, ip::LEN.max());
                self.add(Presumed::In(length, least), Lack::Length);
                self.fits(length, 1, at, meta::LEN);
            }
            Kind::Ipv6 => {
                self.long_enough(at + 40);
                self.is_in(header, ip6::VERSION, IntervalSet::single(6));
                self.fits(of(header, ip6::PLEN), 1, at + 40, meta::LEN);
            }
            Kind::Tcp | Kind::Udp | Kind::Icmp | Kind::Ports => self.transport(header),
            _ => {}
        }
    }

    /// The type of a frame is one, and no tag follows that the card need not take for one.
    fn types(&mut self, header: &Header) {
        let knows = self.driver.knows(Key::Tagged);
        if !knows {
            let (untagged, all) = (IntervalSet::single(TAGS[0]), eth::TYPE.width);
            let holds = Presumed::In(of(header, eth::TYPE), untagged.complement(all));
            self.add(holds, Lack::Field("whether there is a VLAN tag".into()));
        }
        let types = IntervalSet::range(LEAST_TYPE, eth::TYPE.max());
        let tags = IntervalSet::union_of(
            &TAGS[1..].iter().map(|t| IntervalSet::single(*t)).collect::<Vec<_>>(),
        );
        self.is_in(header, eth::TYPE, types.subtract(&tags));
    }

    /// It is not a fragment, not even the first.
    fn no_fragment(&mut self, network: &Header) {
        // MF, and the offset behind it.
        let fragment = Field { offset: ip::MF.offset, width: 14, ..ip::MF };
        let none = Presumed::In(of(network, fragment), IntervalSet::single(0));
        self.add(none, Lack::Field("ip.frag".into()));
    }

    /// The transport header is there, as a whole and in no fragment.
    fn transport(&mut self, header: &Header) {
        let network = self.layout.network().filter(|network| network.kind == Kind::Ipv4).copied();
        let Some(network) = network else { return };
        let (known, at) = (self.when.len(), header.offset);
        self.no_fragment(&network);
        for (protocol, bytes) in super::TRANSPORTS {
            self.when.push((of(&network, ip::PROTO), IntervalSet::single(protocol.into())));
            let least = IntervalSet::range(20 + u128::from(bytes), ip::LEN.max());
            self.add(Presumed::In(of(&network, ip::LEN), least), Lack::Length);
            if protocol == ip_protocol::TCP {
                // It says itself how long it is.
                let words = Field::bits(Base::Data, 8 * at as u16 + 96, 4);
                self.add(Presumed::In(words, IntervalSet::range(5, 15)), Lack::Length);
                self.fits(words, 4, 20, of(&network, ip::LEN));
            }
            self.when.truncate(known);
        }
    }
}
