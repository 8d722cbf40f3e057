//! What an exit writes as actions of a card.
//!
//! Actions are guessed from what the exit makes of packets that are made for it, and tried on others: an exit can be
//! done if the same bytes leave. That suffices here, as what was emitted is read back and proven.

use ir::layout::{Kind, Layout};
use ir::program::{Exit, Program};

use super::Driver;
use crate::Lack;
use crate::number::{Rows, evaluate};
use crate::rule::Packets;

/// What is done to a packet, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Takes a tag off.
    PopTag,
    SetDestination([u8; 6]),
    SetSource([u8; 6]),
    /// Counts the time to live down by one.
    Age,
}

/// Packets that an exit is tried on.
const SAMPLES: u64 = 16;

/// Routers that a packet can pass at once.
const MOST_HOPS: u8 = 16;

/// Bytes of a packet that is made.
const LENGTH: usize = 128;

/// The actions of an exit that sends packets on.
///
/// # Errors
/// What the card cannot do.
pub(super) fn actions(
    driver: &Driver,
    packets: Packets<'_>,
    exit: &Exit,
    rows: &Rows,
) -> Result<Vec<Action>, Lack> {
    let Packets { program, layout } = packets;
    if !driver.hairpin {
        return Err(Lack::Send);
    }
    let writes = &exit.writes;
    if writes.length.is_some() {
        return Err(Lack::Cut);
    }
    let beside = writes.packet_type.is_some() || writes.timestamp.is_some();
    if beside
        || !writes.annotations.is_empty()
        || writes.marks.iter().any(|mark| *mark != Default::default())
    {
        return Err(Lack::Write("what no frame shows".into()));
    }
    if !writes.carried.is_empty() {
        return Err(Lack::Found);
    }
    let has_tag = layout.headers().iter().any(|header| header.kind == Kind::Vlan);
    let made = Made { program, layout, exit, rows };
    let mut all = match writes.start {
        0 => Vec::new(),
        4 if has_tag => vec![Action::PopTag],
        start => return Err(Lack::Move(start)),
    };
    let (before, after) = (made.sample(0), made.written(&made.sample(0)));
    let address = |at: usize| <[u8; 6]>::try_from(after.get(at..at + 6)?).ok();
    let (to, from) = (address(0).ok_or(Lack::Element)?, address(6).ok_or(Lack::Element)?);
    if to[..] != before[..6] {
        all.push(Action::SetDestination(to));
    }
    if from[..] != before[6..12] {
        all.push(Action::SetSource(from));
    }
    if let Some(ip) = made.ip() {
        let ttl = after.get((ip + 8).saturating_sub(before.len() - after.len().min(before.len())));
        let hops = before[ip + 8].saturating_sub(*ttl.unwrap_or(&0));
        if (1..=MOST_HOPS).contains(&hops) {
            all.extend((0..hops).map(|_| Action::Age));
        }
    }
    for number in 0..SAMPLES {
        let frame = made.sample(number);
        let (written, done) = (made.written(&frame), made.act(&frame, &all));
        if written.len() != done.len() {
            return Err(Lack::Move(writes.start));
        }
        if let Some((at, _)) = (0..).zip(written.iter().zip(&done)).find(|(_, (a, b))| a != b) {
            let at = 8 * (writes.start + at);
            let name = [(at, 8), (at, 16), (at - 8, 16)]
                .into_iter()
                .find_map(|(at, width)| layout.name(at, width));
            return Err(Lack::Write(name.map_or_else(|| format!("data[{at}+8]"), |n| n.text)));
        }
    }
    Ok(all)
}

/// Packets that are made for an exit.
struct Made<'a> {
    program: &'a Program,
    layout: &'a Layout,
    exit: &'a Exit,
    rows: &'a Rows,
}

impl Made<'_> {
    /// Where the IPv4 header is.
    fn ip(&self) -> Option<usize> {
        let headers = self.layout.headers().iter();
        let ip = headers.into_iter().find(|h| h.kind == Kind::Ipv4 && h.depth == 0)?;
        usize::try_from(ip.offset).ok().filter(|ip| *ip < 40)
    }

    /// A packet as the layout has it.
    fn sample(&self, number: u64) -> Vec<u8> {
        let mut state = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        let mut frame: Vec<u8> = (0..LENGTH).map(|_| random()).collect();
        let headers = self.layout.headers();
        for header in headers {
            let before = headers.iter().rev().find(|before| before.offset < header.offset);
            let (Some(select), Some(before)) = (header.select, before) else { continue };
            let (at, bytes) = (before.bit(select.field) / 8, usize::from(select.field.width / 8));
            let at = usize::try_from(at).unwrap_or(0).min(LENGTH - bytes);
            let value = select.value.to_be_bytes();
            frame[at..at + bytes].copy_from_slice(&value[16 - bytes..]);
        }
        if let Some(ip) = self.ip() {
            frame[ip] = 0x45;
            frame[ip + 2..ip + 4].copy_from_slice(&((LENGTH - ip) as u16).to_be_bytes());
            frame[ip + 6..ip + 8].fill(0);
            frame[ip + 8] = MOST_HOPS + 1 + frame[ip + 8] % 200;
            // Some checksums are wrong.
            if number.is_multiple_of(2) {
                frame[ip + 10..ip + 12].fill(0);
                let sum = !folded(frame[ip..ip + 20].chunks_exact(2).map(word).sum());
                frame[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
            }
        }
        frame
    }

    /// What the exit makes of a packet.
    fn written(&self, frame: &[u8]) -> Vec<u8> {
        let writes = &self.exit.writes;
        let first = writes.bytes.iter().map(|write| write.offset).fold(0, i32::min);
        let mut bytes = vec![0; first.unsigned_abs() as usize];
        bytes.extend_from_slice(frame);
        for write in &writes.bytes {
            let value = evaluate(self.program, write.value, self.rows, Some(frame)).unwrap_or(0);
            let value = value.to_be_bytes();
            let tail = value.iter().rev().take(write.length.into()).rev();
            for (i, byte) in (0..).zip(tail) {
                let at = usize::try_from(write.offset - first + i).unwrap_or(usize::MAX);
                if let Some(place) = bytes.get_mut(at) {
                    *place = *byte;
                }
            }
        }
        let start = usize::try_from(writes.start - first).unwrap_or(0).min(bytes.len());
        bytes.split_off(start)
    }

    /// What a card makes of a packet.
    fn act(&self, frame: &[u8], actions: &[Action]) -> Vec<u8> {
        let (mut frame, mut ip) = (frame.to_vec(), self.ip());
        for action in actions {
            match action {
                Action::PopTag => {
                    frame.drain(12..16);
                    ip = ip.map(|ip| ip - 4);
                }
                Action::SetDestination(address) => frame[..6].copy_from_slice(address),
                Action::SetSource(address) => frame[6..12].copy_from_slice(address),
                Action::Age => {
                    let Some(ip) = ip else { continue };
                    let (sum, before) = (word(&frame[ip + 10..]), word(&frame[ip + 8..]));
                    frame[ip + 8] = frame[ip + 8].wrapping_sub(1);
                    let after = word(&frame[ip + 8..]);
                    let sum = !folded((0xffff - sum) + (0xffff - before) + after);
                    frame[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
                }
            }
        }
        frame
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from(bytes[0]) << 8 | u32::from(bytes[1])
}

fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
