//! What an exit makes of headers: which of them leave, where they lie then, and what their bits are.

use std::collections::BTreeSet;

use ir::program::{Effect, End, Exit, TermId};

use crate::Lack;
use crate::headers::{Instance, Placed};

/// Bits of a tag.
const TAG: i32 = 32;

/// A header that leaves: where it lies then, by the bits of the packet as it came in.
pub(crate) struct Leaving {
    pub(crate) instance: Instance,
    pub(crate) bit: i32,
    /// Where it was.
    pub(crate) was: Option<i32>,
}

/// What becomes of headers.
pub(crate) struct Moved {
    pub(crate) leaving: Vec<Leaving>,
    pub(crate) gone: Vec<Instance>,
    /// Which headers have to be there for that, among those that are placed.
    pub(crate) needs: BTreeSet<usize>,
}

/// What is missing for an exit whatever it writes.
///
/// # Errors
/// That.
pub(crate) fn beside(exit: &Exit) -> Result<(), Lack> {
    if !exit.copies.is_empty() {
        return Err(Lack::Copy);
    }
    for effect in &exit.effects {
        match effect {
            Effect::Set { .. } => return Err(Lack::Cells),
            Effect::Update { .. } => return Err(Lack::Flows),
            // Counters count packets under the exit's number.
            Effect::Count { .. } | Effect::Note { .. } => {}
        }
    }
    let writes = &exit.writes;
    match exit.end {
        End::Drop { .. } => Ok(()),
        _ if !writes.carried.is_empty() => Err(Lack::Found),
        _ if writes.packet_type.is_some()
            || writes.timestamp.is_some()
            || !writes.annotations.is_empty()
            || writes.marks.iter().any(|mark| *mark != Default::default()) =>
        {
            Err(Lack::Write("what no frame shows".into()))
        }
        _ => Ok(()),
    }
}

/// Which headers leave, and where.
///
/// # Errors
/// What is pushed or pulled is no tag.
pub(crate) fn moved(exit: &Exit, placed: &[Placed]) -> Result<Moved, Lack> {
    let start = 8 * exit.writes.start;
    let lack = || Err(Lack::Move(exit.writes.start));
    let is_tag = |placed: &&Placed| matches!(placed.instance, Instance::Vlan | Instance::InnerVlan);
    let tags: Vec<Instance> = placed.iter().filter(is_tag).map(|placed| placed.instance).collect();
    let gone: Vec<Instance> = match start {
        0 => Vec::new(),
        1.. if start % TAG == 0 => tags.iter().copied().take((start / TAG) as usize).collect(),
        ..0 if start == -TAG => Vec::new(),
        _ => return lack(),
    };
    if start > 0 && gone.len() as i32 * TAG != start {
        return lack();
    }
    let mut leaving = Vec::new();
    for of in placed.iter().filter(|of| !gone.contains(&of.instance)) {
        let bit = if of.instance == Instance::Ethernet { start } else { of.bit };
        leaving.push(Leaving { instance: of.instance, bit, was: Some(of.bit) });
    }
    if start < 0 {
        leaving.push(Leaving { instance: Instance::Pushed, bit: start + 112, was: None });
    }
    // Whatever is pushed or pulled behind the addresses moves these.
    let needs = placed.iter().enumerate().filter(|(_, of)| {
        start != 0 && (of.instance == Instance::Ethernet || gone.contains(&of.instance))
    });
    let needs = needs.map(|(at, _)| at).collect();
    Ok(Moved { leaving, gone, needs })
}

/// What bits that leave are.
pub(crate) enum Bits {
    /// Those of a number, from this one on.
    Written(TermId, u16),
    /// What appears and is not written.
    Zero,
    /// Those that came in there.
    Came(u16),
}

/// What some bits are as they leave, counted from the first bit of the data as it came in, and how many, the highest first;
/// `None` if they are what came in there.
pub(crate) fn bits(exit: &Exit, bit: i32, width: u16) -> Option<Vec<(Bits, u16)>> {
    let (end, mut at) = (bit + i32::from(width), bit);
    let mut parts = Vec::new();
    let mut is_written = false;
    let bytes = &exit.writes.bytes;
    while at < end {
        let byte = at.div_euclid(8);
        let inside =
            |w: &&ir::program::Write| (w.offset..w.offset + i32::from(w.length)).contains(&byte);
        let write = bytes.iter().find(inside);
        let stop = match write {
            Some(write) => end.min(8 * (write.offset + i32::from(write.length))),
            None => {
                let next = bytes.iter().map(|write| 8 * write.offset).filter(|from| *from > at);
                end.min(next.min().unwrap_or(end))
            }
        };
        let of = match write {
            Some(write) => {
                is_written = true;
                let low = 8 * (write.offset + i32::from(write.length)) - stop;
                Bits::Written(write.value, low as u16)
            }
            None if at < 0 => Bits::Zero,
            None => Bits::Came(at as u16),
        };
        parts.push((of, (stop - at) as u16));
        at = stop;
    }
    (is_written || bit < 0).then_some(parts)
}

/// Checks that all bytes that are written lie in headers that leave, which cover these bits.
///
/// # Errors
/// A byte that does not.
pub(crate) fn covers(exit: &Exit, covered: &[(i32, i32)]) -> Result<(), Lack> {
    for write in &exit.writes.bytes {
        let end = 8 * (write.offset + i32::from(write.length));
        let mut at = 8 * write.offset.max(exit.writes.start);
        while at < end {
            let around = covered.iter().find(|(from, to)| (*from..*to).contains(&at));
            at = around.ok_or_else(|| Lack::Write(format!("data[{at}+8]")))?.1;
        }
    }
    Ok(())
}
