//! Where a path ends: what leaves, and by which port.

use std::collections::BTreeSet;

use ir::model::Reason;
use ir::program::{Continuation, End, Exit, Step, Term, TermId, Write, Writes};
use ir::{Base, Port, Program};

use super::terms::{Terms, ones};
use crate::{Device, Segment};

/// The type of the tag that tells the cores where to go on.
const TAG: u128 = 0x88a8;

/// What becomes of packets that are dropped although no class is counted: why.
pub(crate) fn lost(program: &Program, reason: &'static str) -> Exit {
    Exit {
        effects: Vec::new(),
        writes: Writes::default(),
        end: End::Drop { element: program.entry.node, reason: Reason(reason) },
        barrier: None,
        visited: vec![program.entry],
        copies: Vec::new(),
    }
}

/// Bits that leave.
struct Unit {
    /// The first byte, and how many.
    byte: i32,
    bytes: u8,
    value: TermId,
}

/// What leaves.
#[derive(Default)]
pub(crate) struct Output {
    /// By which port; none if it is dropped.
    pub(crate) port: Option<u32>,
    /// The number that the port is, where it may be computed.
    pub(crate) leaves: Option<TermId>,
    /// Where the data starts, in bytes from where it started.
    pub(crate) start: i32,
    units: Vec<Unit>,
    /// Its length, if it is cut.
    pub(crate) cut: Option<TermId>,
    /// The class that it is counted under.
    pub(crate) counted: Option<u128>,
}

/// The part of a number that some bytes of it are written.
fn written(terms: &Terms, value: TermId, bytes: u8) -> TermId {
    match terms.term(value) {
        Term::Slice { of, low: 0, width } if u16::from(*width) == 8 * u16::from(bytes) => *of,
        _ => value,
    }
}

impl Output {
    /// Takes what leaves in the place of so many bits that came in: widths of fields, and their numbers.
    ///
    /// # Errors
    /// Bits that lie in no byte.
    pub(crate) fn fields(
        &mut self,
        terms: &mut Terms,
        came: u32,
        fields: &[(u16, TermId)],
    ) -> Result<(), String> {
        let bits: u32 = fields.iter().map(|field| u32::from(field.0)).sum();
        self.start = (came as i32 - bits as i32) / 8;
        let mut from = 0;
        // Fields that share a byte are one.
        let mut pending: Option<(u32, u16, TermId)> = None;
        for &(width, value) in fields {
            let (first, all, value) = match pending.take() {
                Some((first, before, high)) if before + width <= 128 => {
                    (first, before + width, terms.concat(high, value, width))
                }
                Some(_) => return Err("fields of more than 128 bits share a byte".into()),
                None => (from, width, value),
            };
            match (first + u32::from(all)) % 8 {
                0 => {
                    let byte = first as i32 / 8 + self.start;
                    self.units.push(Unit { byte, bytes: (all / 8) as u8, value });
                }
                _ => pending = Some((first, all, value)),
            }
            from += u32::from(width);
        }
        Ok(())
    }

    /// What differs from what came in.
    fn writes(&self, terms: &mut Terms, of_class: &Writes) -> Writes {
        let ends: BTreeSet<i32> = of_class
            .bytes
            .iter()
            .flat_map(|write| [write.offset, write.offset + i32::from(write.length)])
            .collect();
        let mut bytes: Vec<Write> = Vec::new();
        for unit in &self.units {
            let same = match terms.term(unit.value) {
                Term::Input(field) => {
                    field.base == Base::Data
                        && i32::from(field.offset) == 8 * unit.byte
                        && field.width == 8 * u16::from(unit.bytes)
                }
                _ => false,
            };
            if same {
                continue;
            }
            // Numbers are recognised best as they are written there.
            if let Some(last) = bytes.last_mut()
                && last.offset + i32::from(last.length) == unit.byte
                && last.length + unit.bytes <= 16
                && !ends.contains(&unit.byte)
            {
                last.value = terms.concat(last.value, unit.value, 8 * u16::from(unit.bytes));
                last.length += unit.bytes;
                continue;
            }
            bytes.push(Write { offset: unit.byte, length: unit.bytes, value: unit.value });
        }
        for write in &mut bytes {
            write.value = written(terms, write.value, write.length);
        }
        Writes { start: self.start, length: self.cut, bytes, ..Writes::default() }
    }

    /// The number in a tag in front of all else, if nothing else was done to the frame.
    fn tagged(&self, terms: &mut Terms) -> Option<u16> {
        if self.start != -4 || self.cut.is_some() {
            return None;
        }
        let mut all: Option<TermId> = None;
        let mut next = -4;
        let mut rest = Vec::new();
        for unit in &self.units {
            match unit.byte < 12 && unit.byte + i32::from(unit.bytes) <= 12 && next == unit.byte {
                true => {
                    let width = 8 * u16::from(unit.bytes);
                    all =
                        Some(all.map_or(unit.value, |high| terms.concat(high, unit.value, width)));
                    next += i32::from(unit.bytes);
                }
                false => rest.push(unit),
            }
        }
        let same = |unit: &&Unit| {
            let field =
                ir::Field::bits(Base::Data, 8 * unit.byte as u16, 8 * u16::from(unit.bytes));
            *terms.term(unit.value) == Term::Input(field)
        };
        if next != 12 || !rest.iter().all(same) {
            return None;
        }
        let Term::Concat { high, low, width: 32 } = *terms.term(all?) else { return None };
        let addresses = ir::Field::bits(Base::Data, 0, 96);
        if *terms.term(high) != Term::Input(addresses) {
            return None;
        }
        let tag = terms.value(low)?;
        (tag >> 16 == TAG && tag & 0xffff < 0xfff).then_some(tag as u16)
    }

    /// Whether all that was done is that the tag was taken off.
    pub(crate) fn is_untagged(&self, terms: &Terms) -> bool {
        if self.start != 4 || self.cut.is_some() {
            return false;
        }
        self.units.iter().all(|unit| {
            let from = if unit.byte < 16 { unit.byte - 4 } else { unit.byte };
            let field =
                ir::Field::bits(Base::Data, (8 * from).max(0) as u16, 8 * u16::from(unit.bytes));
            *terms.term(unit.value) == Term::Input(field)
        })
    }

    /// The exit that it is.
    pub(crate) fn exit(
        &self,
        terms: &mut Terms,
        segment: &Segment,
        base: u32,
        device: &Device<'_>,
    ) -> Result<Exit, String> {
        let program = &segment.program;
        let step = self
            .counted
            .and_then(|number| u32::try_from(number).ok())
            .and_then(|number| number.checked_sub(base));
        let exit = match step.and_then(|step| program.steps.get(step as usize)) {
            Some(Step::Exit(exit)) => (**exit).clone(),
            // Packets may be lost without being counted.
            _ if self.port.is_none() => return Ok(lost(program, "lost")),
            _ => return Err("what is counted is no exit of the segment".into()),
        };
        let Some(port) = self.port else {
            return Ok(match exit.end {
                End::Drop { .. } => exit,
                _ => Exit { effects: exit.effects, ..lost(program, "lost") },
            });
        };
        if port == device.cores
            && let Some(number) = self.tagged(terms)
        {
            if !matches!(exit.end, End::Handoff { .. }) {
                return Err("a packet is handed off, and counted as another".into());
            }
            let handoff = Exit::handoff(Continuation(number), Vec::new());
            return Ok(Exit { effects: exit.effects, ..handoff });
        }
        let leads = |to: &Port| device.egress.get(to) == Some(&port);
        let end = match exit.end {
            End::Push { to, .. } if leads(&to) => exit.end,
            End::Handoff { .. } => {
                return Err("a packet leaves that is counted as handed off".into());
            }
            _ => {
                let to = device.egress.keys().find(|to| leads(to));
                let to = to.ok_or_else(|| format!("port {port} does not lead out of the chain"))?;
                End::Push { to: *to, native: true }
            }
        };
        let writes = self.writes(terms, &exit.writes);
        Ok(Exit { end, writes, ..exit })
    }
}

/// The number that a term is of a frame from the cores whose tag names a port, if that says it.
pub(crate) fn of_tagged(terms: &Terms, term: TermId, port: u32) -> Option<u128> {
    match terms.term(term) {
        Term::Const(value) => Some(*value),
        Term::Input(field) if *field == ir::field::meta::LEN => Some(64),
        Term::Input(field) => {
            let tag = TAG << 16 | u128::from(port);
            let (from, end) = (u32::from(field.offset), u32::from(field.offset + field.width));
            // Priority and the bit behind it may be anything.
            let is_known = (from >= 96 && end <= 112) || (from >= 116 && end <= 128);
            is_known.then(|| tag >> (128 - end) & ones(field.width))
        }
        _ => None,
    }
}
