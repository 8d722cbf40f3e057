//! A packet as terms: what it is after some elements, in terms of what it was at the entry.

use ir::field::{Base, Field, meta};
use ir::layout::Kind;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Barrier, Mark, TermId, Write, Writes};
use net::Header;

use super::facts::Facts;
use super::terms::{Decided, Terms};

/// Bits that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// First bit.
    start: i32,
    /// Number of bits, at most 128.
    width: u32,
    value: TermId,
}

impl Segment {
    fn end(&self) -> i32 {
        self.start + self.width as i32
    }
}

/// A row of bits, some of which were written.
#[derive(Clone, Debug)]
pub(crate) struct Bits {
    base: Base,
    /// In order, disjoint.
    segments: Vec<Segment>,
}

impl Bits {
    fn new(base: Base) -> Self {
        Self { base, segments: Vec::new() }
    }

    /// The bits as a number; `None` if some of them are not known: they lie before the data that
    /// the packet had when it came in, or too far behind.
    pub(crate) fn read(&self, terms: &mut Terms, start: i32, width: u32) -> Option<TermId> {
        let end = start + width as i32;
        let (mut at, mut value) = (start, None);
        let mut join = |terms: &mut Terms, part: TermId, bits: u32| {
            value = Some(match value {
                None => (part, bits),
                // What is known on a path to fit need not show in the terms.
                Some((before, upper)) => {
                    let before = terms.slice(before, 0, upper);
                    (terms.concat(before, part, bits), upper + bits)
                }
            });
        };
        let touching = self.segments.iter().filter(|s| s.start < end && start < s.end());
        for segment in touching {
            if at < segment.start {
                let input = self.input(terms, at, segment.start)?;
                join(terms, input, (segment.start - at) as u32);
                at = segment.start;
            }
            let upto = segment.end().min(end);
            let (low, bits) = ((segment.end() - upto) as u32, (upto - at) as u32);
            // The value may have fewer bits than its place: then its upper bits are 0.
            let part = match at == segment.start && low == 0 {
                true => segment.value,
                false => terms.slice(segment.value, low, bits),
            };
            join(terms, part, bits);
            at = upto;
        }
        if at < end {
            let input = self.input(terms, at, end)?;
            join(terms, input, (end - at) as u32);
        }
        value.map(|(value, _)| value)
    }

    fn input(&self, terms: &mut Terms, start: i32, end: i32) -> Option<TermId> {
        let offset = u16::try_from(start).ok()?;
        u16::try_from(end).ok()?;
        Some(terms.input(Field::bits(self.base, offset, (end - start) as u16)))
    }

    pub(crate) fn write(&mut self, terms: &mut Terms, start: i32, width: u32, value: TermId) {
        let end = start + width as i32;
        let mut segments = Vec::with_capacity(self.segments.len() + 2);
        for segment in &self.segments {
            if segment.end() <= start || end <= segment.start {
                segments.push(*segment);
                continue;
            }
            if segment.start < start {
                let bits = (start - segment.start) as u32;
                let value = terms.slice(segment.value, segment.width - bits, bits);
                segments.push(Segment { start: segment.start, width: bits, value });
            }
            if end < segment.end() {
                let bits = (segment.end() - end) as u32;
                let value = terms.slice(segment.value, 0, bits);
                segments.push(Segment { start: end, width: bits, value });
            }
        }
        segments.push(Segment { start, width, value });
        segments.sort_unstable_by_key(|s| s.start);
        self.segments = segments;
    }

    /// The 16-bit words from bit `start` on, up to `length` bytes, of which a bit was written:
    /// where each lies.
    pub(crate) fn changed_words(&self, start: i32, length: u128) -> Vec<i32> {
        let end = i128::from(start) + 8 * i128::try_from(length).unwrap_or(i128::MAX / 16);
        let mut words: Vec<i32> = Vec::new();
        for segment in &self.segments {
            let mut at = segment.start.max(start);
            at -= (at - start) % 16;
            while at < segment.end() && i128::from(at) < end {
                words.push(at);
                at += 16;
            }
        }
        words.sort_unstable();
        words.dedup();
        words
    }

    /// All that was written, as whole bytes; what is as it was is left out.
    fn writes(&self, terms: &mut Terms) -> Option<Vec<Write>> {
        // Places that share a byte are written together.
        let mut places: Vec<(i32, i32)> = Vec::new();
        for segment in &self.segments {
            let start = segment.start.div_euclid(8);
            let end = segment.end() + 7;
            let end = end.div_euclid(8);
            match places.last_mut() {
                Some(last) if start < last.1 => last.1 = last.1.max(end),
                _ => places.push((start, end)),
            }
        }
        let mut writes = Vec::new();
        for (mut at, end) in places {
            while at < end {
                let length = (end - at).min(16);
                let value = self.read(terms, at * 8, length as u32 * 8)?;
                let unchanged =
                    at >= 0 && self.input(terms, at * 8, (at + length) * 8) == Some(value);
                if !unchanged {
                    writes.push(Write { offset: at, length: length as u8, value });
                }
                at += length;
            }
        }
        Some(writes)
    }
}

/// Where a header's mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkAt {
    /// Where it was when the packet came in, if it was anywhere.
    Entry,
    /// Nowhere.
    Nowhere,
    /// So many bytes (two's complement) from the start of the data at the entry.
    At(TermId),
}

/// Why a number cannot be told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// It could, were it known whether this holds.
    Split(Decided),
    /// Models can say it, terms cannot.
    Unsupported(Barrier),
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Where the data starts: bytes from where it started at the entry.
    pub start: i32,
    /// Where it ends.
    pub end: TermId,
    /// Where it ended at the entry.
    entry_end: TermId,
    pub data: Bits,
    pub annotations: Bits,
    pub marks: [MarkAt; 3],
    pub packet_type: Option<TermId>,
    pub timestamp: Option<TermId>,
    /// Whether headers are looked behind however long they are.
    explore_rare_paths: bool,
}

/// [`ir::program::Term::Position`] of a header that is not marked.
pub(crate) const UNMARKED: u128 = 0x8000_0000;
/// Where headers are expected that were marked before the entry: without and with Ethernet.
const POSITIONS: [[u128; 3]; 2] = [[0, 0, IP], [0, ETHERNET, ETHERNET + IP]];
const ETHERNET: u128 = Kind::Ethernet.length() as u128;
const IP: u128 = Kind::Ipv4.length() as u128;

impl Packet {
    /// The packet at the entry; `explore_rare_paths` as in [`super::execute::Chain`].
    pub(crate) fn new(terms: &mut Terms, explore_rare_paths: bool) -> Self {
        let end = terms.input(meta::LEN);
        Self {
            start: 0,
            end,
            entry_end: end,
            data: Bits::new(Base::Data),
            annotations: Bits::new(Base::Annotation),
            marks: [MarkAt::Entry; 3],
            packet_type: None,
            timestamp: None,
            explore_rare_paths,
        }
    }

    /// Length of the data.
    pub(crate) fn length(&self, terms: &mut Terms) -> TermId {
        let start = terms.constant(i128::from(self.start) as u128);
        terms.binary(BinaryOp::Sub, self.end, start)
    }

    /// Where a header is, in bytes from the entry's start; a number that may be negative.
    pub(crate) fn position(
        &self,
        terms: &mut Terms,
        facts: &Facts,
        header: Header,
    ) -> Result<TermId, Stop> {
        match self.marks[header as usize] {
            MarkAt::At(at) => Ok(at),
            MarkAt::Nowhere => Err(Stop::Unsupported(Barrier::UnmarkedHeader)),
            MarkAt::Entry => {
                let at = terms.position(header);
                if let Some(known) = facts.single(terms, at) {
                    return Ok(terms.constant(known));
                }
                // Where one of them lies tells where the other does.
                let known = |terms: &mut Terms, other: Header| {
                    let at = terms.position(other);
                    facts.single(terms, at).filter(|at| *at != UNMARKED)
                };
                let network = known(terms, Header::Network);
                let transport = known(terms, Header::Transport);
                for [mac, net, trans] in POSITIONS {
                    if network.is_some_and(|at| at != net)
                        || transport.is_some_and(|at| at != trans)
                    {
                        continue;
                    }
                    let candidate = [mac, net, trans][header as usize];
                    let test = terms.test(at, &ir::IntervalSet::single(candidate));
                    if facts.resolve(terms, &test).is_none() {
                        return Err(Stop::Split(test));
                    }
                }
                Err(Stop::Unsupported(Barrier::OddHeader))
            }
        }
    }

    /// The same as a plain number.
    fn known_position(
        &self,
        terms: &mut Terms,
        facts: &Facts,
        header: Header,
    ) -> Result<i32, Stop> {
        let at = self.position(terms, facts, header)?;
        let plain = |value: u128| i32::try_from(value as i128).ok();
        if let Some(at) = facts.single(terms, at).or_else(|| terms.as_constant(at)) {
            return plain(at).ok_or(Stop::Unsupported(Barrier::FarHeader));
        }
        // Behind another of unknown length: the usual is the shortest.
        let linear = terms.linear(at);
        if let [(part, factor)] = linear.terms[..]
            && factor > 0
        {
            let (least, _) = terms.bounds(part);
            let (known_least, _) = facts.bounds(terms, part);
            let mut usual = least.max(if factor == 4 { 5 } else { least });
            if self.explore_rare_paths && factor == 4 {
                usual = usual.max(known_least);
            }
            if known_least <= usual {
                let test = terms.test(part, &ir::IntervalSet::single(usual));
                if facts.resolve(terms, &test).is_none() {
                    return Err(Stop::Split(test));
                }
            }
        }
        Err(Stop::Unsupported(Barrier::Options))
    }

    /// Where a base lies, in bytes from the entry's start.
    pub(crate) fn base(&self, terms: &mut Terms, facts: &Facts, base: Base) -> Result<i32, Stop> {
        match base {
            Base::Data => Ok(self.start),
            Base::Header(header) => self.known_position(terms, facts, header),
            Base::Annotation | Base::Carried | Base::Meta => Ok(0),
        }
    }

    /// Whether a header is marked.
    pub(crate) fn has(&self, terms: &mut Terms, header: Header) -> Decided {
        match self.marks[header as usize] {
            MarkAt::At(_) => Decided::Known(true),
            MarkAt::Nowhere => Decided::Known(false),
            MarkAt::Entry => {
                let at = terms.position(header);
                terms.test(at, &ir::IntervalSet::single(UNMARKED)).negate()
            }
        }
    }

    /// Bytes from a header to the end of the data.
    fn available(&self, terms: &mut Terms, facts: &Facts, header: Header) -> Result<TermId, Stop> {
        let zero = terms.constant(0);
        let has = self.has(terms, header);
        match facts.resolve(terms, &has) {
            Some(false) => return Ok(zero),
            Some(true) => {}
            None => return Err(Stop::Split(has)),
        }
        let at = self.position(terms, facts, header)?;
        let inside = match terms.as_constant(at).map(|c| c as i128) {
            Some(negative) if negative < 0 => Decided::Known(true),
            _ => terms.compare(CompareOp::Le, at, self.end),
        };
        match facts.resolve(terms, &inside) {
            Some(true) => Ok(terms.binary(BinaryOp::Sub, self.end, at)),
            Some(false) => Ok(zero),
            None => Err(Stop::Split(inside)),
        }
    }

    /// Reads a field.
    pub(crate) fn read(
        &self,
        terms: &mut Terms,
        facts: &Facts,
        field: Field,
    ) -> Result<TermId, Stop> {
        let value = match field.base {
            Base::Meta => return self.read_meta(terms, facts, field),
            Base::Annotation => {
                self.annotations.read(terms, field.offset.into(), field.width.into())
            }
            base => {
                let at = 8 * self.base(terms, facts, base)? + i32::from(field.offset);
                self.data.read(terms, at, field.width.into())
            }
        };
        let value = value.ok_or(Stop::Unsupported(Barrier::UnwrittenBytes))?;
        // A number that is known needs not be read again.
        Ok(match facts.single(terms, value) {
            Some(known) => terms.constant(known),
            None => value,
        })
    }

    fn read_meta(&self, terms: &mut Terms, facts: &Facts, field: Field) -> Result<TermId, Stop> {
        let flag = |terms: &mut Terms, decided: Decided| {
            let (one, zero) = (terms.constant(1), terms.constant(0));
            match facts.resolve(terms, &decided) {
                Some(known) => {
                    if known {
                        one
                    } else {
                        zero
                    }
                }
                None => terms.choose(decided, one, zero),
            }
        };
        Ok(match field {
            meta::LEN => self.length(terms),
            meta::AVAIL_MAC => self.available(terms, facts, Header::Mac)?,
            meta::AVAIL_NET => self.available(terms, facts, Header::Network)?,
            meta::AVAIL_TRANSPORT => self.available(terms, facts, Header::Transport)?,
            meta::HAS_MAC => {
                let has = self.has(terms, Header::Mac);
                flag(terms, has)
            }
            meta::HAS_NET => {
                let has = self.has(terms, Header::Network);
                flag(terms, has)
            }
            meta::HAS_TRANSPORT => {
                let has = self.has(terms, Header::Transport);
                flag(terms, has)
            }
            meta::TYPE => match self.packet_type {
                Some(value) => value,
                None => terms.input(field),
            },
            meta::TIMESTAMP => match self.timestamp {
                Some(value) => value,
                None => terms.input(field),
            },
            _ => return Err(Stop::Unsupported(Barrier::Headroom)),
        })
    }

    /// Writes a field; the value fits it.
    pub(crate) fn write(
        &mut self,
        terms: &mut Terms,
        facts: &Facts,
        field: Field,
        value: TermId,
    ) -> Result<(), Stop> {
        match field.base {
            Base::Meta => match field {
                meta::TIMESTAMP => self.timestamp = Some(value),
                meta::TYPE => {
                    let known = terms.as_constant(value).and_then(|v| u8::try_from(v).ok());
                    let known = known.ok_or(Stop::Unsupported(Barrier::ComputedType))?;
                    let kept = net::PacketType::from_u8(known) as u128;
                    self.packet_type = Some(terms.constant(kept));
                }
                _ => return Err(Stop::Unsupported(Barrier::ReadOnly)),
            },
            Base::Annotation => {
                self.annotations.write(terms, field.offset.into(), field.width.into(), value);
            }
            base => {
                let at = 8 * self.base(terms, facts, base)? + i32::from(field.offset);
                self.data.write(terms, at, field.width.into(), value);
            }
        }
        Ok(())
    }

    /// Gives the packet fresh annotations and forgets marks; see [`ir::Op::Fresh`].
    pub(crate) fn refresh(&mut self, terms: &mut Terms) {
        let zero = terms.constant(0);
        for at in 0..net::annotation::SIZE as i32 / 16 {
            self.annotations.write(terms, at * 128, 128, zero);
        }
        self.marks = [MarkAt::Nowhere; 3];
        self.packet_type = Some(terms.constant(net::PacketType::Host as u128));
        self.timestamp = Some(zero);
    }

    /// What is to be written at an exit; for a packet that is dropped, only its length.
    pub(crate) fn writes(&self, terms: &mut Terms, dropped: bool) -> Option<Writes> {
        let length = (self.end != self.entry_end).then(|| self.length(terms));
        if dropped {
            return Some(Writes { start: self.start, length, ..Writes::default() });
        }
        let mark = |m: MarkAt| match m {
            MarkAt::Entry => Mark::Keep,
            MarkAt::Nowhere => Mark::Clear,
            MarkAt::At(at) => Mark::At(at),
        };
        Some(Writes {
            start: self.start,
            length,
            bytes: self.data.writes(terms)?,
            annotations: self.annotations.writes(terms)?,
            carried: Vec::new(),
            marks: self.marks.map(mark),
            packet_type: self.packet_type,
            timestamp: self.timestamp,
        })
    }
}

/// The field of so many bits from a byte on.
pub(super) fn field_at(base: Base, offset: u128, width: u16) -> Result<Field, Stop> {
    let far = Stop::Unsupported(Barrier::FarPlace);
    match u16::try_from(offset).ok().and_then(|o| o.checked_mul(8)) {
        Some(offset) if (1..=128).contains(&width) => Ok(Field::bits(base, offset, width)),
        _ => Err(far),
    }
}
