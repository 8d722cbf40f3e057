//! Where a path ends: what became of the frame.

use std::collections::BTreeSet;

use ir::field::meta;
use ir::model::Reason;
use ir::program::{
    Continuation, Effect, End, Exit, LookupId, Mark, Step, StepId, Term, Write, Writes,
};
use ir::{Port, Program};

use super::machine::{Around, State, Value};
use super::numbers::{Node, Num, Of, Piece};
use super::terms::Terms;
use crate::{Device, Segment};

/// A tag in front of all else tells the cores where to go on.
const TAG: u64 = 0x88a8;

/// What becomes of a frame when the program fails.
pub(super) fn abort(segment: &Program) -> Exit {
    let end = End::Drop { element: segment.entry.node, reason: Reason("aborted") };
    Exit {
        effects: Vec::new(),
        writes: Writes::default(),
        end,
        barrier: None,
        visited: vec![segment.entry],
        copies: Vec::new(),
    }
}

/// The exit that a path is; none if the program fails there.
pub(super) fn end(
    state: &State,
    around: &mut Around<'_>,
    terms: &mut Terms,
    segment: &Segment,
    device: &Device<'_>,
) -> Result<Option<Exit>, String> {
    let port = match &state.registers[0] {
        Some(Value::Redirect(port)) => *port,
        Some(Value::Num(num)) => match around.numbers.as_number(*num) {
            Some(0) => return Ok(None),
            Some(1) => {
                let mut exit = counted(state, around, terms, segment)?;
                match exit.end {
                    End::Drop { .. } => {}
                    _ => exit = Exit { effects: exit.effects, ..abort(&segment.program) },
                }
                return Ok(Some(exit));
            }
            Some(3) => match segment.ingress[..] {
                [port] => port.into(),
                _ => return Err("it leaves where it came in, which may be several ports".into()),
            },
            _ => return Err("it ends with no answer that is known here".into()),
        },
        _ => return Err("it ends with no answer".into()),
    };
    let exit = counted(state, around, terms, segment)?;
    if port == u64::from(device.cores)
        && let Some(number) = tagged(state, around)?
    {
        let to = Continuation(number);
        let handoff = Exit::handoff(to, Vec::new());
        return Ok(Some(Exit { effects: exit.effects, visited: exit.visited, ..handoff }));
    }
    let leads = |to: &Port| device.egress.get(to).is_some_and(|other| u64::from(*other) == port);
    let to = match exit.end {
        End::Push { to, native } if leads(&to) => Some((to, native)),
        _ => device.egress.keys().find(|to| leads(to)).map(|to| (*to, false)),
    };
    let (to, native) = to.ok_or_else(|| format!("port {port} is none of the chain's"))?;
    let bytes = written(state, around, terms, &exit.writes)?;
    let length = match state.length {
        Some(length) => Some(terms.length(length, &around.numbers)?),
        None => None,
    };
    let writes =
        Writes { start: state.start, length, bytes, marks: [Mark::Keep; 3], ..Writes::default() };
    Ok(Some(Exit { writes, end: End::Push { to, native }, ..exit }))
}

/// The exit of the class that was counted, with the lengths that were added up.
fn counted(
    state: &State,
    around: &mut Around<'_>,
    terms: &mut Terms,
    segment: &Segment,
) -> Result<Exit, String> {
    let Some(class) = state.class else {
        return match state.used.is_empty() {
            true => Ok(abort(&segment.program)),
            false => Err("a flow is noted to have had a packet that is not counted".into()),
        };
    };
    let step = segment.program.steps.get(class as usize);
    let Some(Step::Exit(exit)) = step else {
        return Err(format!("class {class} is no exit of the segment"));
    };
    let mut exit = (**exit).clone();
    let one = around.numbers.number(1);
    if state.counted.get(&0) != Some(&one) {
        return Err(format!("packets of class {class} are not counted one by one"));
    }
    let length = around.numbers.intern(Node::Length);
    if state.counted.get(&8) != Some(&length) {
        return Err(format!("bytes of class {class} are not counted"));
    }
    let mut slots: Vec<ir::program::TermId> = Vec::new();
    for effect in &mut exit.effects {
        let Effect::Count { length, .. } = effect else { continue };
        if segment.program.term(*length) == &Term::Input(meta::LEN) {
            continue;
        }
        let slot = slots.iter().position(|known| known == length).unwrap_or_else(|| {
            slots.push(*length);
            slots.len() - 1
        });
        let counted = state.counted.get(&(16 + 8 * slot as i32));
        let counted = counted.ok_or_else(|| format!("a length of class {class} is not counted"))?;
        *length = terms.length(*counted, &around.numbers)?;
    }
    prolonged(state, around, terms, segment, &mut exit)
        .map_err(|why| format!("class {class}: {why}"))?;
    if state.counted.len() != 2 + slots.len() {
        return Err(format!("class {} counts more than there is", StepId(class as u32).0));
    }
    Ok(exit)
}

/// What becomes of flows: those that are noted to have had a packet live longer, and are not changed.
fn prolonged(
    state: &State,
    around: &Around<'_>,
    terms: &mut Terms,
    segment: &Segment,
    exit: &mut Exit,
) -> Result<(), String> {
    let mut used: BTreeSet<LookupId> = BTreeSet::new();
    for flow in &state.used {
        used.extend(around.flows.get(usize::from(*flow)).map(|flow| flow.lookup));
    }
    for effect in &mut exit.effects {
        let Effect::Update { lookup, common, .. } = effect else { continue };
        if !used.remove(lookup) {
            return Err("a flow is not noted to have had a packet".into());
        }
        let of = segment.program.lookups.get(usize::from(lookup.0));
        let of = of.ok_or("there is no such lookup")?;
        let values = of.values;
        if common.len() > usize::from(of.common) {
            return Err("more of a flow is kept than was found".into());
        }
        for (term, index) in common.iter_mut().zip(values..) {
            *term = terms.bound(*lookup, index);
        }
    }
    match used.is_empty() {
        true => Ok(()),
        false => Err("a flow is noted to have had a packet that does not prolong it".into()),
    }
}

fn byte(state: &State, around: &mut Around<'_>, at: i32) -> Result<Num, String> {
    let (num, low) = state.byte(around, at)?;
    Ok(around.numbers.slice(num, low, 8))
}

/// The number in the tag, if nothing else was done to the frame.
fn tagged(state: &State, around: &mut Around<'_>) -> Result<Option<u16>, String> {
    if state.start != -4 || state.length.is_some() || state.written.keys().any(|at| *at >= 12) {
        return Ok(None);
    }
    for at in 0..12 {
        let was = around.numbers.data(8 * at, 8);
        if byte(state, around, at as i32 - 4)? != was {
            return Ok(None);
        }
    }
    let mut tag = 0;
    for at in 8..12 {
        let byte = byte(state, around, at)?;
        let Some(value) = around.numbers.as_number(byte) else { return Ok(None) };
        tag = tag << 8 | value;
    }
    Ok((tag >> 16 == TAG && tag & 0xffff < 0xfff).then_some(tag as u16))
}

/// Bytes that differ from what they were.
fn written(
    state: &State,
    around: &mut Around<'_>,
    terms: &mut Terms,
    of_class: &Writes,
) -> Result<Vec<Write>, String> {
    for at in state.start..0 {
        if !state.written.contains_key(&at) {
            return Err("a byte that was pushed is not written".into());
        }
    }
    // Numbers are recognised best as they are written there.
    let of_class_ends = |write: &Write| [write.offset, write.offset + i32::from(write.length)];
    let ends: Vec<i32> = of_class.bytes.iter().flat_map(of_class_ends).collect();
    let mut runs: Vec<(i32, Vec<Num>)> = Vec::new();
    for at in state.written.keys().filter(|at| **at >= state.start) {
        let num = byte(state, around, *at)?;
        if let Ok(bit) = u32::try_from(8 * *at)
            && around.numbers.data(bit, 8) == num
        {
            continue;
        }
        // Bytes that are pushed and not written are zero: where the segment leaves it at that, they are.
        let zero = around.numbers.number(0);
        let is_written =
            |write: &Write| (write.offset..write.offset + i32::from(write.length)).contains(at);
        if *at < 0 && num == zero && !of_class.bytes.iter().any(is_written) {
            continue;
        }
        match runs.last_mut() {
            Some((from, bytes))
                if *from + bytes.len() as i32 == *at && bytes.len() < 8 && !ends.contains(at) =>
            {
                bytes.push(num);
            }
            _ => runs.push((*at, vec![num])),
        }
    }
    let mut all = Vec::new();
    for (offset, bytes) in runs {
        let mut pieces: Vec<Piece> = Vec::new();
        for num in bytes.iter().rev() {
            let mut left = 8;
            for piece in around.numbers.pieces(*num) {
                let width = piece.width.min(left);
                let of = match piece.of {
                    Of::Number(value) if width < 64 => Of::Number(value & ((1 << width) - 1)),
                    of => of,
                };
                pieces.push(Piece { width, of });
                left -= width;
            }
        }
        let num = around.numbers.bits(pieces);
        let value = terms.term(num, &around.numbers)?;
        all.push(Write { offset, length: bytes.len() as u8, value });
    }
    Ok(all)
}
