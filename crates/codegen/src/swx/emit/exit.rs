//! What an exit does to a packet as instructions.

use ir::program::{End, Exit};
use net::wire::ether_type;

use super::code::{Label, containers};
use super::number::{Numbers, WORD};
use crate::Lack;
use crate::headers::{Instance, Need};
use crate::leave::{self, Bits, beside, moved};
use crate::number::ones;

/// Where packets leave, by the instructions at the program's end.
pub(super) struct Ends {
    /// Sends the packet by the port that the metadata hold.
    pub(super) send: Label,
    /// Has the frame tagged with the place that the number 0 holds, and sends it to the cores.
    pub(super) hand_off: Label,
}

/// What a container gets.
enum Value {
    Constant(u128),
    /// What an operand holds.
    Of(String),
}

/// Writes the instructions of an exit, which is counted under a number: what has to hold of its packets.
///
/// # Errors
/// What SWX cannot do.
pub(super) fn exit(
    numbers: &mut Numbers<'_>,
    exit: &Exit,
    number: u32,
    port: Option<u32>,
    ends: &Ends,
) -> Result<Vec<Need>, Lack> {
    beside(exit)?;
    numbers.code.run(format!("regadd {} {number:#x} 0x1", super::super::CLASSES));
    match exit.end {
        End::Drop { .. } => numbers.code.run("drop".into()),
        End::Handoff { to } => {
            numbers.set(0, to.0.into())?;
            numbers.code.headers.extend([Instance::Ethernet, Instance::Tag]);
            numbers.code.go(ends.hand_off);
        }
        End::Push { .. } => {
            let needs = write(numbers, exit)?;
            numbers.code.run(format!("mov m.port_out {:#x}", port.unwrap_or(0)));
            numbers.code.go(ends.send);
            return Ok(needs);
        }
    }
    Ok(Vec::new())
}

/// The instructions behind those of all exits.
pub(super) fn ends(numbers: &mut Numbers<'_>, ends: &Ends, cores: u32) -> Result<(), Lack> {
    let place = numbers.code.number(0)?;
    let code = &mut *numbers.code;
    if code.headers.contains(&Instance::Tag) {
        code.place(ends.hand_off);
        for line in [
            "validate h.tag".into(),
            format!("mov h.tag.pcp_dei_vid {place}"),
            "mov h.tag.ether_type h.ethernet.ether_type".into(),
            format!("mov h.ethernet.ether_type {:#x}", ether_type::QINQ),
            format!("mov m.port_out {cores:#x}"),
        ] {
            code.run(line);
        }
    }
    code.place(ends.send);
    for header in code.headers.clone() {
        code.run(format!("emit h.{}", header.name()));
    }
    code.run("tx m.port_out".into());
    Ok(())
}

fn write(numbers: &mut Numbers<'_>, exit: &Exit) -> Result<Vec<Need>, Lack> {
    let placed = numbers.placed;
    if exit.writes.length.is_some() {
        return Err(Lack::Cut);
    }
    let moved = moved(exit, placed)?;
    let mut touched = moved.needs.clone();
    let mut covered: Vec<(i32, i32)> = Vec::new();
    // All is computed from what came in before anything is written.
    let mut set: Vec<(String, Value)> = Vec::new();
    let (mut count, mut wide) = (0, 0);
    for leaving in &moved.leaving {
        covered.push((leaving.bit, leaving.bit + leaving.instance.bits()));
        let mut is_set = false;
        for container in containers(leaving.instance) {
            let (bit, width) = (leaving.bit + container.bit, container.width);
            let own = leaving.was.map(|was| was + container.bit);
            let bits = match leave::bits(exit, bit, width) {
                None if own == Some(bit) => continue,
                None => vec![(Bits::Came(bit.max(0) as u16), width)],
                Some(bits) => bits,
            };
            // What comes to be what it was is not written.
            if let ([(Bits::Came(at), _)], Some(own)) = (&bits[..], own)
                && i32::from(*at) == own
            {
                continue;
            }
            let name = format!("h.{}.{}", leaving.instance.name(), container.name);
            let value = match width <= WORD {
                true => word(numbers, &bits, width, &mut count)?,
                false => whole(numbers, &bits, width, &mut wide)?,
            };
            is_set = true;
            set.push((name, value));
        }
        if is_set || leaving.was.is_none() {
            numbers.code.headers.insert(leaving.instance);
            touched.extend(placed.iter().position(|of| of.instance == leaving.instance));
        }
    }
    leave::covers(exit, &covered)?;
    let read = numbers.read.clone();
    touched.extend((0..placed.len()).filter(|at| read.contains(&placed[*at].instance)));
    for leaving in moved.leaving.iter().filter(|leaving| leaving.was.is_none()) {
        numbers.code.run(format!("validate h.{}", leaving.instance.name()));
    }
    for (name, value) in set {
        match value {
            Value::Constant(value) => numbers.code.run(format!("mov {name} {value:#x}")),
            Value::Of(operand) => numbers.code.run(format!("mov {name} {operand}")),
        }
    }
    for gone in &moved.gone {
        numbers.code.headers.insert(*gone);
        numbers.code.run(format!("invalidate h.{}", gone.name()));
    }
    let mut needs = Vec::new();
    for at in touched {
        numbers.code.headers.insert(placed[at].instance);
        needs.extend(placed[at].needs.iter().cloned());
    }
    Ok(needs)
}

/// A number of at most 64 bits.
fn word(
    numbers: &mut Numbers<'_>,
    bits: &[(Bits, u16)],
    width: u16,
    count: &mut usize,
) -> Result<Value, Lack> {
    let constant = bits.iter().try_fold(0_u128, |all, (of, count)| {
        let part = match *of {
            Bits::Zero => 0,
            Bits::Written(term, low) => numbers.value(term)?.checked_shr(low.into()).unwrap_or(0),
            Bits::Came(_) => return None,
        };
        Some(all << count | part & ones((*count).into()))
    });
    if let Some(value) = constant {
        return Ok(Value::Constant(value & ones(width.into())));
    }
    let to = *count;
    *count += 1;
    for (at, (of, count)) in bits.iter().enumerate() {
        let to = to + usize::from(at > 0);
        match *of {
            Bits::Zero => numbers.set(to, 0)?,
            Bits::Written(term, low) => numbers.bits(term, low, *count, to)?,
            Bits::Came(bit) => numbers.data(bit.into(), *count, to)?,
        }
        if at > 0 {
            numbers.append(to - 1, *count)?;
        }
    }
    Ok(Value::Of(numbers.code.number(to)?))
}

/// A number of 128 bits, which is moved as a whole.
fn whole(
    numbers: &mut Numbers<'_>,
    bits: &[(Bits, u16)],
    width: u16,
    count: &mut usize,
) -> Result<Value, Lack> {
    let operand = match bits {
        [(Bits::Written(term, 0), _)] => match numbers.operand(*term) {
            None => return Err(Lack::Number("a number of that size")),
            operand => operand,
        },
        [(Bits::Came(bit), _)] => numbers.whole((*bit).into(), width),
        _ => None,
    };
    let operand = operand.ok_or_else(|| Lack::Write(format!("a part of {width} bits")))?;
    let to = numbers.code.wide(*count);
    *count += 1;
    numbers.code.run(format!("mov {to} {operand}"));
    Ok(Value::Of(to))
}
