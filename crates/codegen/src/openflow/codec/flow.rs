//! Matches, instructions and actions (OpenFlow 1.3 §7.2), with the fields by OXM's and Nicira's numbers.

use super::super::flow::{Action, Bits, Field, Flow};
use super::reader::{Malformed, Reader};

/// An entry as a switch reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The entry.
    pub flow: Flow,
    /// Packets that it took.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Seconds without packets, and seconds, after which the switch takes it away; 0 for never.
    pub timeouts: [u16; 2],
}

/// Classes of fields: OpenFlow's, Nicira's, and those with a number of who defined them.
const BASIC: u16 = 0x8000;
const NICIRA: u16 = 0x0001;
const EXPERIMENTER: u16 = 0xffff;

/// Who defined TCP flags for OpenFlow 1.3.
const ONF: u32 = 0x4f4e_4600;

/// Class, number and bytes of each field.
fn known(field: Field) -> (u16, u8, u8) {
    match field {
        Field::InPort => (BASIC, 0, 4),
        Field::Metadata => (BASIC, 2, 8),
        Field::EthDst => (BASIC, 3, 6),
        Field::EthSrc => (BASIC, 4, 6),
        Field::EthType => (BASIC, 5, 2),
        Field::VlanId => (BASIC, 6, 2),
        Field::VlanPriority => (BASIC, 7, 1),
        Field::IpDscp => (BASIC, 8, 1),
        Field::IpEcn => (BASIC, 9, 1),
        Field::IpProto => (BASIC, 10, 1),
        Field::IpSrc => (BASIC, 11, 4),
        Field::IpDst => (BASIC, 12, 4),
        Field::TcpSrc => (BASIC, 13, 2),
        Field::TcpDst => (BASIC, 14, 2),
        Field::UdpSrc => (BASIC, 15, 2),
        Field::UdpDst => (BASIC, 16, 2),
        Field::SctpSrc => (BASIC, 17, 2),
        Field::SctpDst => (BASIC, 18, 2),
        Field::IcmpType => (BASIC, 19, 1),
        Field::IcmpCode => (BASIC, 20, 1),
        Field::ArpOp => (BASIC, 21, 2),
        Field::ArpSpa => (BASIC, 22, 4),
        Field::ArpTpa => (BASIC, 23, 4),
        Field::ArpSha => (BASIC, 24, 6),
        Field::ArpTha => (BASIC, 25, 6),
        Field::Ip6Src => (BASIC, 26, 16),
        Field::Ip6Dst => (BASIC, 27, 16),
        Field::Ip6Label => (BASIC, 28, 4),
        Field::Register0 => (NICIRA, 0, 4),
        Field::IpFrag => (NICIRA, 26, 1),
        Field::IpTtl => (NICIRA, 29, 1),
        Field::TcpFlags => (NICIRA, 34, 2),
        Field::Other(class, number) => (class, number, 16),
    }
}

/// The field of a class and number. Older numbers of Nicira's for fields of OpenFlow's are not in what switches send in
/// answer to OpenFlow 1.3.
fn named(class: u16, number: u8) -> Field {
    let same = |field: &&Field| {
        let (c, n, _) = known(**field);
        (c, n) == (class, number)
    };
    match (class, number) {
        (BASIC, 42) => Field::TcpFlags,
        _ => Field::ALL.iter().find(same).copied().unwrap_or(Field::Other(class, number)),
    }
}

/// The head of a field: class, number, whether there is a mask, bytes.
fn head(field: Field, masked: bool) -> ([u8; 4], usize) {
    let (class, number, bytes) = known(field);
    let [high, low] = class.to_be_bytes();
    let length = if masked { 2 * bytes } else { bytes };
    ([high, low, number << 1 | u8::from(masked), length], bytes.into())
}

fn put(value: u128, bytes: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.to_be_bytes()[16 - bytes.min(16)..]);
}

fn put_field(bits: &Bits, out: &mut Vec<u8>) {
    let masked = bits.mask != bits.field.ones();
    let (head, bytes) = head(bits.field, masked);
    out.extend(head);
    put(bits.value, bytes, out);
    if masked {
        put(bits.mask, bytes, out);
    }
}

/// Fills up to a multiple of eight bytes from a place on.
fn pad(out: &mut Vec<u8>, from: usize) {
    let length = (out.len() - from).next_multiple_of(8);
    out.resize(from + length, 0);
}

/// Writes the length of what began at a place, two bytes behind that.
fn set_length(out: &mut [u8], from: usize) {
    let length = u16::try_from(out.len() - from).unwrap_or(u16::MAX).to_be_bytes();
    out[from + 2..from + 4].copy_from_slice(&length);
}

pub(super) fn put_match(when: &[Bits], out: &mut Vec<u8>) {
    let from = out.len();
    out.extend([0, 1, 0, 0]);
    when.iter().for_each(|bits| put_field(bits, out));
    set_length(out, from);
    pad(out, from);
}

fn put_action(action: Action, out: &mut Vec<u8>) {
    let from = out.len();
    let number: u16 = match action {
        Action::Output(_) => 0,
        Action::PushVlan(_) => 17,
        Action::PopVlan => 18,
        Action::DecTtl => 24,
        Action::Set(..) => 25,
        Action::Other(number) => number,
        // They are no actions.
        Action::Meter(_) | Action::OtherInstruction(_) => return,
    };
    out.extend(number.to_be_bytes());
    out.extend([0, 0]);
    match action {
        Action::Output(port) => {
            out.extend(port.to_be_bytes());
            // So much of a packet goes to a controller: there is none.
            out.extend([0; 8]);
        }
        Action::PushVlan(ether_type) => {
            out.extend(ether_type.to_be_bytes());
            out.extend([0; 2]);
        }
        Action::Set(field, value) => {
            put_field(&Bits { field, value, mask: field.ones() }, out);
            pad(out, from);
        }
        _ => out.extend([0; 4]),
    }
    set_length(out, from);
}

pub(super) fn put_instructions(flow: &Flow, out: &mut Vec<u8>) {
    for action in &flow.actions {
        if let Action::Meter(meter) = action {
            out.extend([0, 6, 0, 8]);
            out.extend(meter.to_be_bytes());
        }
    }
    if flow.actions.iter().any(|action| !matches!(action, Action::Meter(_))) {
        let from = out.len();
        out.extend([0, 4, 0, 0, 0, 0, 0, 0]);
        flow.actions.iter().for_each(|action| put_action(*action, out));
        set_length(out, from);
    }
    if let Some((value, mask)) = flow.metadata {
        out.extend([0, 2, 0, 24, 0, 0, 0, 0]);
        out.extend(value.to_be_bytes());
        out.extend(mask.to_be_bytes());
    }
    if let Some(table) = flow.goto {
        out.extend([0, 1, 0, 8, table, 0, 0, 0]);
    }
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

fn read_field(reader: &mut Reader<'_>) -> Result<Bits, Malformed> {
    let class = reader.u16()?;
    let head = reader.u8()?;
    let (plain, masked) = (head >> 1, head & 1 == 1);
    let length = reader.u8()?;
    let mut body = reader.part(length.into(), "a field")?;
    let mut field = named(class, plain);
    if class == EXPERIMENTER {
        let who = body.u32()?;
        field = match (who, plain) {
            (ONF, 42) => Field::TcpFlags,
            _ => Field::Other(class, plain),
        };
    }
    let bytes = if masked { body.left() / 2 } else { body.left() };
    if masked && body.left() % 2 != 0 {
        return body.wrong("value and mask have not the same length");
    }
    if let Field::Other(..) = field {
        // Long ones are distinguished as far as they are kept.
        let [value, mask] = match masked {
            true => [number(body.bytes(bytes)?), number(body.bytes(bytes)?)],
            false => [number(body.bytes(bytes)?), u128::MAX],
        };
        return Ok(Bits { field, value, mask });
    }
    if bytes != usize::from(known(field).2) {
        return body.wrong("it has not the length that it always has");
    }
    let value = number(body.bytes(bytes)?);
    let mask = if masked { number(body.bytes(bytes)?) } else { field.ones() };
    let ones = field.ones();
    if value & !ones != 0 {
        return body.wrong("its value is too large");
    }
    // Bits that the field has not are not matched.
    let mask = mask & ones;
    Ok(Bits { field, value: value & mask, mask })
}

/// A match, with what fills it up.
pub(super) fn read_match(reader: &mut Reader<'_>) -> Result<Vec<Bits>, Malformed> {
    let kind = reader.u16()?;
    let length = usize::from(reader.u16()?);
    if kind != 1 || length < 4 {
        return reader.wrong("a match is none of OpenFlow 1.3");
    }
    let mut fields = reader.part(length - 4, "a match")?;
    reader.bytes(length.next_multiple_of(8) - length)?;
    let mut when: Vec<Bits> = Vec::new();
    while !fields.is_empty() {
        let bits = read_field(&mut fields)?;
        if !matches!(bits.field, Field::Other(..)) && when.iter().any(|b| b.field == bits.field) {
            return fields.wrong("a field stands there twice");
        }
        if bits.mask != 0 {
            when.push(bits);
        }
    }
    when.sort_unstable();
    Ok(when)
}

/// Type and body of something that has a length.
fn element<'a>(
    reader: &mut Reader<'a>,
    what: &'static str,
) -> Result<(u16, Reader<'a>), Malformed> {
    let kind = reader.u16()?;
    let length = usize::from(reader.u16()?);
    match length.checked_sub(4).filter(|_| length % 8 == 0) {
        Some(length) => Ok((kind, reader.part(length, what)?)),
        None => reader.wrong("a length is no multiple of 8"),
    }
}

fn read_actions(mut reader: Reader<'_>, actions: &mut Vec<Action>) -> Result<(), Malformed> {
    while !reader.is_empty() {
        let (kind, mut body) = element(&mut reader, "an action")?;
        actions.push(match kind {
            0 => Action::Output(body.u32()?),
            17 => Action::PushVlan(body.u16()?),
            18 => Action::PopVlan,
            24 => Action::DecTtl,
            25 => {
                let bits = read_field(&mut body)?;
                match bits.mask == bits.field.ones() {
                    true => Action::Set(bits.field, bits.value),
                    false => Action::Other(kind),
                }
            }
            _ => Action::Other(kind),
        });
    }
    Ok(())
}

pub(super) fn read_instructions(mut reader: Reader<'_>, flow: &mut Flow) -> Result<(), Malformed> {
    while !reader.is_empty() {
        let (kind, mut body) = element(&mut reader, "an instruction")?;
        match kind {
            1 => flow.goto = Some(body.u8()?),
            2 => {
                body.u32()?;
                flow.metadata = Some((body.u64()?, body.u64()?));
            }
            4 => {
                body.u32()?;
                read_actions(body, &mut flow.actions)?;
            }
            6 => flow.actions.insert(0, Action::Meter(body.u32()?)),
            _ => flow.actions.push(Action::OtherInstruction(kind)),
        }
    }
    Ok(())
}

impl Stats {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = usize::from(reader.u16()?);
        let Some(length) = length.checked_sub(2) else {
            return reader.wrong("an entry says that it has no bytes");
        };
        let mut reader = reader.part(length, "an entry")?;
        let table = reader.u8()?;
        reader.bytes(9)?;
        let priority = reader.u16()?;
        let timeouts = [reader.u16()?, reader.u16()?];
        reader.bytes(6)?;
        let (cookie, packets, bytes) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let when = read_match(&mut reader)?;
        let actions = Vec::new();
        let mut flow = Flow { cookie, table, priority, when, actions, metadata: None, goto: None };
        read_instructions(reader, &mut flow)?;
        Ok(Self { flow, packets, bytes, timeouts })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let from = out.len();
        let Self { flow, packets, bytes, timeouts } = self;
        out.extend([0, 0, flow.table, 0]);
        out.extend([0; 8]);
        out.extend(flow.priority.to_be_bytes());
        timeouts.iter().for_each(|seconds| out.extend(seconds.to_be_bytes()));
        out.extend([0; 6]);
        [flow.cookie, *packets, *bytes].iter().for_each(|number| out.extend(number.to_be_bytes()));
        put_match(&flow.when, out);
        put_instructions(flow, out);
        let length = u16::try_from(out.len() - from).unwrap_or(u16::MAX).to_be_bytes();
        out[from..from + 2].copy_from_slice(&length);
    }
}
