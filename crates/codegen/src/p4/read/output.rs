//! Where a path ends: what leaves.

use ir::program::TermId;

use super::super::Arch;
use super::deparser::Update;
use super::machine::{DROP_PORT, Machine, State, Val};
use super::parser::least_frame;
use crate::symbolic::output::Output;

/// Whether the parser has to go on for what leaves to be known.
pub(super) fn is_open(machine: &Machine<'_>, state: &State) -> bool {
    let behind: u32 =
        machine.parsing.may_follow(&state.parse).map(|header| machine.headers[header].bits).sum();
    let is_done = |update: &Update| update.is_done(machine, state) == Ok(Some(true));
    // A Tofino drops what ends within a header. What is left of checksums is known where all was extracted.
    machine.arch == Arch::Tna
        && !state.parse.is_done()
        && (state.parse.bits + behind > 8 * least_frame(machine.arch)
            || machine.updates.iter().any(is_done))
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
    let mut output = Output::default();
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
    let mut sums: Vec<(usize, &str, TermId)> = Vec::new();
    for update in machine.updates {
        match update.is_done(machine, state)? {
            Some(true) if is_valid(state, update.header) => {
                match update.value(
                    machine,
                    |machine, of, field| number(machine, state, of, field),
                    state,
                )? {
                    Some(sum) => sums.push((update.header, &update.field, sum)),
                    None => return Ok(None),
                }
            }
            Some(_) => {}
            None => return Ok(None),
        }
    }
    let mut fields: Vec<(u16, TermId)> = Vec::new();
    for &header in emitted.iter().filter(|header| is_valid(state, **header)) {
        for (field, width) in machine.headers[header].fields.clone() {
            let sum = sums.iter().find(|sum| (sum.0, sum.1) == (header, &field[..]));
            match sum {
                Some(sum) => fields.push((width, sum.2)),
                None => match number(machine, state, header, &field)? {
                    Some(value) => fields.push(value),
                    None => return Ok(None),
                },
            }
        }
    }
    output.fields(&mut machine.terms, state.parse.bits, &fields)?;
    Ok(Some(output))
}

/// Whether a header leaves.
fn is_valid(state: &State, header: usize) -> bool {
    let found = state.parse.found.iter().any(|found| found.0 == header);
    state.valid.get(&header).copied().unwrap_or(found)
}

/// What a field of a header is where it leaves; nothing if that is not known.
fn number(
    machine: &mut Machine<'_>,
    state: &State,
    header: usize,
    field: &str,
) -> Result<Option<(u16, TermId)>, String> {
    if !is_valid(state, header) {
        return Ok(None);
    }
    let name = format!("hdr.{}.{field}", machine.headers[header].name);
    match state.vars.get(&name) {
        Some(Val { width, of }) => Ok(of.map(|of| (*width, of))),
        None => {
            let (from, width) = machine
                .place(state, header, field)
                .ok_or_else(|| format!("'{name}' is not known"))?;
            let from = u16::try_from(from).map_err(|_| "it is far behind".to_string())?;
            Ok(Some((width, machine.terms.data(from, width))))
        }
    }
}
