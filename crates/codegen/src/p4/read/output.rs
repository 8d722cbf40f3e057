//! Where a path ends: what leaves, and by which port.

use std::collections::BTreeSet;

use ir::model::Reason;
use ir::program::{Continuation, End, Exit, Step, Term, TermId, Write, Writes};
use ir::{Base, Port, Program};

use super::super::Arch;
use super::machine::{DROP_PORT, Machine, State, Val};
use super::parser::least_frame;
use crate::{Device, Segment};

/// The type of the tag that tells the cores where to go on.
const TAG: u128 = 0x88a8;

/// What becomes of packets that are dropped although no class is counted: why.
pub(super) fn lost(program: &Program, reason: &'static str) -> Exit {
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
pub(super) struct Output {
    /// By which port; none if it is dropped.
    pub(super) port: Option<u32>,
    /// Where the data starts, in bytes from where it started.
    start: i32,
    units: Vec<Unit>,
    cut: Option<TermId>,
    counted: Option<u128>,
}

/// Whether the parser has to go on for what leaves to be known.
pub(super) fn is_open(machine: &Machine<'_>, state: &State) -> bool {
    let behind: u32 =
        machine.parsing.may_follow(&state.parse).map(|header| machine.headers[header].bits).sum();
    // A Tofino drops what ends within a header.
    machine.arch == Arch::Tna
        && !state.parse.is_done()
        && state.parse.bits + behind > 8 * least_frame(machine.arch)
}

/// What a path sends; nothing that is known if that depends on what is not there. `emitted` are the headers in the
/// order in which they leave.
pub(super) fn output(
    machine: &mut Machine<'_>,
    state: &State,
    emitted: &[usize],
) -> Result<Option<Output>, String> {
    if state.undefined {
        return Ok(None);
    }
    // Numbers that are computed from the packet are none that ports may be.
    let known = |machine: &Machine<'_>, name: &str| -> Result<Option<Option<u128>>, String> {
        let Some(value) = state.vars.get(name) else { return Ok(None) };
        let Some(of) = value.of else { return Ok(Some(None)) };
        let value = machine.terms.value(of);
        value
            .map(|value| Some(Some(value)))
            .ok_or_else(|| format!("'{name}' is no constant at the end"))
    };
    let mut output = Output { port: None, start: 0, units: Vec::new(), cut: None, counted: None };
    if let Some(counted) = state.counted {
        let Some(of) = counted.of else { return Ok(None) };
        let number = machine.terms.value(of);
        output.counted = Some(number.ok_or("what is counted is no constant")?);
    }
    if machine.arch == Arch::Tna {
        let dropped = match known(machine, "drop")? {
            Some(None) => return Ok(None),
            Some(Some(bits)) => bits & 1 == 1,
            None => false,
        };
        if dropped || state.parse.failed {
            return Ok(Some(output));
        }
    }
    match known(machine, "egress")? {
        Some(Some(DROP_PORT)) if machine.arch == Arch::V1model => return Ok(Some(output)),
        Some(Some(port)) => output.port = u32::try_from(port).ok(),
        Some(None) | None => return Ok(None),
    }
    if let Some(length) = state.truncated {
        let Some(of) = length.of else { return Ok(None) };
        output.cut = Some(of);
    }
    let mut bit: u32 = 0;
    let mut fields: Vec<(u32, u16, TermId)> = Vec::new();
    for &header in emitted {
        let found = state.parse.found.iter().any(|found| found.0 == header);
        if !state.valid.get(&header).copied().unwrap_or(found) {
            continue;
        }
        for (field, width) in machine.headers[header].fields.clone() {
            let name = format!("hdr.{}.{field}", machine.headers[header].name);
            let value = match state.vars.get(&name) {
                Some(Val { of: Some(value), .. }) => *value,
                Some(_) => return Ok(None),
                None => {
                    let (from, width) = machine
                        .place(state, header, &field)
                        .ok_or_else(|| format!("'{name}' is not known"))?;
                    let from = u16::try_from(from).map_err(|_| "it is far behind".to_string())?;
                    machine.terms.data(from, width)
                }
            };
            fields.push((bit, width, value));
            bit += u32::from(width);
        }
    }
    output.start = (state.parse.bits as i32 - bit as i32) / 8;
    // Fields that share a byte are one.
    let mut pending: Option<(u32, u16, TermId)> = None;
    for (from, width, value) in fields {
        let (first, all, value) = match pending.take() {
            Some((first, before, high)) if before + width <= 128 => {
                (first, before + width, machine.terms.concat(high, value, width))
            }
            Some(_) => return Err("fields of more than 128 bits share a byte".into()),
            None => (from, width, value),
        };
        match (first + u32::from(all)) % 8 {
            0 => {
                let byte = first as i32 / 8 + output.start;
                output.units.push(Unit { byte, bytes: (all / 8) as u8, value });
            }
            _ => pending = Some((first, all, value)),
        }
    }
    Ok(Some(output))
}

/// The part of a number that some bytes of it are written.
fn written(machine: &Machine<'_>, value: TermId, bytes: u8) -> TermId {
    match machine.terms.term(value) {
        Term::Slice { of, low: 0, width } if u16::from(*width) == 8 * u16::from(bytes) => *of,
        _ => value,
    }
}

impl Output {
    /// What differs from what came in.
    fn writes(&self, machine: &mut Machine<'_>, of_class: &Writes) -> Writes {
        let ends: BTreeSet<i32> = of_class
            .bytes
            .iter()
            .flat_map(|write| [write.offset, write.offset + i32::from(write.length)])
            .collect();
        let mut bytes: Vec<Write> = Vec::new();
        for unit in &self.units {
            let same = match machine.terms.term(unit.value) {
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
                last.value =
                    machine.terms.concat(last.value, unit.value, 8 * u16::from(unit.bytes));
                last.length += unit.bytes;
                continue;
            }
            bytes.push(Write { offset: unit.byte, length: unit.bytes, value: unit.value });
        }
        for write in &mut bytes {
            write.value = written(machine, write.value, write.length);
        }
        Writes { start: self.start, length: self.cut, bytes, ..Writes::default() }
    }

    /// The number in a tag in front of all else, if nothing else was done to the frame.
    fn tagged(&self, machine: &mut Machine<'_>) -> Option<u16> {
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
                        Some(all.map_or(unit.value, |high| {
                            machine.terms.concat(high, unit.value, width)
                        }));
                    next += i32::from(unit.bytes);
                }
                false => rest.push(unit),
            }
        }
        let same = |unit: &&Unit| {
            let field =
                ir::Field::bits(Base::Data, 8 * unit.byte as u16, 8 * u16::from(unit.bytes));
            *machine.terms.term(unit.value) == Term::Input(field)
        };
        if next != 12 || !rest.iter().all(same) {
            return None;
        }
        let Term::Concat { high, low, width: 32 } = *machine.terms.term(all?) else { return None };
        let addresses = ir::Field::bits(Base::Data, 0, 96);
        if *machine.terms.term(high) != Term::Input(addresses) {
            return None;
        }
        let tag = machine.terms.value(low)?;
        (tag >> 16 == TAG && tag & 0xffff < 0xfff).then_some(tag as u16)
    }

    /// Whether all that was done is that the tag was taken off.
    pub(super) fn is_untagged(&self, machine: &Machine<'_>) -> bool {
        if self.start != 4 || self.cut.is_some() {
            return false;
        }
        self.units.iter().all(|unit| {
            let from = if unit.byte < 16 { unit.byte - 4 } else { unit.byte };
            let field =
                ir::Field::bits(Base::Data, (8 * from).max(0) as u16, 8 * u16::from(unit.bytes));
            *machine.terms.term(unit.value) == Term::Input(field)
        })
    }

    /// The exit that it is.
    pub(super) fn exit(
        &self,
        machine: &mut Machine<'_>,
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
            && let Some(number) = self.tagged(machine)
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
                let to = to.ok_or_else(|| format!("port {port} is no way out of the chain"))?;
                End::Push { to: *to, native: true }
            }
        };
        let writes = self.writes(machine, &exit.writes);
        Ok(Exit { end, writes, ..exit })
    }
}
