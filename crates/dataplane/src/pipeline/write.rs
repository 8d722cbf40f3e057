//! Writing what plans say into the packets of a burst: column by column, into a window on each
//! packet.

use net::{Header, Packet, PacketType};

use super::lanes::{LANES, Lanes, for_lanes, lanes_of};
use super::plan::{Constants, NewMark, Plan, Store, Stores, WINDOW, Width};
use super::{Copied, Outcome};
use crate::StageContext;

/// Where in each packet a burst's plans write: how far from the data's start, as it is afterwards.
pub(super) type Windows = [i32; LANES];

/// Says of the packets of these lanes where their frames and headers start and end and what else
/// is known of them, but for their bytes; and where those are written.
pub(super) fn place(
    plan: &Plan,
    lanes: &Lanes,
    packets: &mut [Packet],
    mask: u32,
    windows: &mut Windows,
) {
    let length = plan.length.map(|reg| lanes.column(reg));
    // Mostly, all headers are where they are in all packets.
    let offsets = match plan.marks {
        [NewMark::At(mac), NewMark::At(network), NewMark::At(transport)] => {
            Some([mac, network, transport])
        }
        _ => None,
    };
    for lane in lanes_of(mask) {
        let Some(packet) = packets.get_mut(lane) else { return };
        packet.reframe(plan.start, length.map_or(u32::MAX, |column| column[lane]));
        if let Some(offsets) = offsets {
            packet.set_header_offsets(offsets);
        }
    }
    if offsets.is_none() {
        mark(plan, lanes, packets, mask);
    }
    for_lanes(mask, |lane| windows[lane] = plan.window);
    if let Some(reg) = plan.packet_type {
        let column = lanes.column(reg);
        for lane in lanes_of(mask) {
            packets[lane].set_packet_type(PacketType::from_u8(column[lane] as u8));
        }
    }
    if let Some(words) = plan.timestamp {
        let [low, high] = words.map(|word| lanes.column(word));
        for lane in lanes_of(mask) {
            packets[lane].set_timestamp(u64::from(high[lane]) << 32 | u64::from(low[lane]));
        }
    }
}

/// Writes what plans say into the packets of their lanes.
pub(super) fn write<'a>(
    all: impl Iterator<Item = (&'a Plan, u32)> + Clone,
    lanes: &Lanes,
    packets: &mut [Packet],
    windows: &Windows,
) {
    let these = all.clone().fold(0, |these, (_, mask)| these | mask);
    if all.clone().any(|(plan, _)| !plan.annotations.is_empty()) {
        let mut areas = [const { None }; LANES];
        for_packets(packets, these, |lane, packet| {
            areas[lane] = Some(packet.annotations_mut().bytes_mut());
        });
        for (plan, mask) in all.clone() {
            store(&plan.annotations, lanes, mask, &mut areas);
        }
    }
    if all.clone().any(|(plan, _)| !plan.carried.is_empty()) {
        let mut areas = [const { None }; LANES];
        for_packets(packets, these, |lane, packet| areas[lane] = Some(packet.carried_mut()));
        for (plan, mask) in all.clone() {
            store(&plan.carried, lanes, mask, &mut areas);
        }
    }
    if all.clone().any(|(plan, _)| !plan.stores.is_empty()) {
        let mut areas = [const { None }; LANES];
        for_packets(packets, these, |lane, packet| {
            let at = windows[lane];
            if packet.window::<WINDOW>(at).is_none() {
                make_room(at, packet);
            }
            areas[lane] = packet.window_mut::<WINDOW>(at);
        });
        for (plan, mask) in all {
            store(&plan.stores, lanes, mask, &mut areas);
        }
    }
}

/// Makes the copies that a plan says of packets that nothing was written to yet.
#[inline(never)]
pub(super) fn copy(
    plan: &Plan,
    (lanes, mask): (&Lanes, u32),
    (packets, from): (&mut [Packet], usize),
    (outcomes, copies): (&mut [Outcome], &mut Vec<Copied>),
    cx: &mut StageContext<'_>,
) {
    for copy in &plan.copies {
        let outcome = &mut outcomes[copy.outcome as usize];
        outcome.count(copy, lanes, packets, mask);
        let Some(target) = outcome.target else { continue };
        // Each stands in its packet's place while it is written.
        let mut originals = [const { None }; LANES];
        for lane in lanes_of(mask) {
            let made = cx.core.pool.copy(&packets[lane]);
            originals[lane] = Some(std::mem::replace(&mut packets[lane], made));
        }
        let mut windows = [0; LANES];
        place(copy, lanes, packets, mask, &mut windows);
        write([(copy, mask)].into_iter(), lanes, packets, &windows);
        for lane in lanes_of(mask) {
            if let Some(original) = originals[lane].take() {
                let made = std::mem::replace(&mut packets[lane], original);
                let (before, order) = (from + lane, copies.len());
                copies.push(Copied { before, order, target, packet: made });
            }
        }
    }
}

/// Does something with the packets of these lanes, one after the other.
#[inline(always)]
fn for_packets<'p>(
    packets: &'p mut [Packet],
    these: u32,
    mut one: impl FnMut(usize, &'p mut Packet),
) {
    let (mut rest, mut next) = (packets.iter_mut(), 0);
    for_lanes(these, |lane| {
        if let Some(packet) = rest.nth(lane - next) {
            one(lane, packet);
        }
        next = lane + 1;
    });
}

/// Says where each header starts that is not kept where it is.
fn mark(plan: &Plan, lanes: &Lanes, packets: &mut [Packet], these: u32) {
    let all = [Header::Mac, Header::Network, Header::Transport];
    for (header, mark) in all.into_iter().zip(plan.marks) {
        match mark {
            NewMark::Keep => {}
            NewMark::Clear => lanes_of(these).for_each(|lane| packets[lane].clear_header(header)),
            NewMark::At(at) => for_lanes(these, |lane| {
                packets[lane].set_header_offset(header, at as isize);
            }),
            NewMark::Computed(reg) => {
                let column = lanes.column(reg);
                for lane in lanes_of(these) {
                    let at = column[lane] as i32 as isize;
                    packets[lane].set_header_offset(header, at - plan.start as isize);
                }
            }
        }
    }
}

/// Makes memory for a window.
#[cold]
fn make_room(window: i32, packet: &mut Packet) {
    if window < 0 && packet.headroom() < window.unsigned_abs() as usize {
        packet.push(window.unsigned_abs() as usize);
        packet.pull(window.unsigned_abs() as usize);
    }
    if packet.window::<WINDOW>(window).is_none() {
        let behind = packet.len();
        packet.put(WINDOW);
        packet.truncate(behind);
    }
}

/// An area of each packet that there is.
type Areas<'a, const N: usize> = [Option<&'a mut [u8; N]>; LANES];

/// Writes into the areas of these lanes.
#[inline(always)]
fn store<const N: usize>(stores: &Stores, lanes: &Lanes, mask: u32, areas: &mut Areas<'_, N>) {
    for Constants { at, keep, bytes } in &stores.constants {
        each(mask, areas, *at, |_, old: [u8; 16]| {
            std::array::from_fn(|i| old[i] & keep[i] | bytes[i])
        });
    }
    for Store { at, width, of } in &stores.columns {
        let column = lanes.column(*of);
        match width {
            Width::One => each(mask, areas, *at, |lane, _| [column[lane] as u8]),
            Width::Two => each(mask, areas, *at, |lane, _| (column[lane] as u16).to_be_bytes()),
            Width::Four => each(mask, areas, *at, |lane, _| column[lane].to_be_bytes()),
        }
    }
}

/// Changes bytes at the same place of the areas of these lanes.
#[inline(always)]
fn each<const N: usize, const M: usize>(
    mask: u32,
    areas: &mut Areas<'_, N>,
    at: u8,
    new: impl Fn(usize, [u8; M]) -> [u8; M],
) {
    let at = usize::from(at);
    debug_assert!(at + M <= N, "stores lie in their area");
    if at + M > N {
        return;
    }
    for_lanes(mask, |lane| {
        if let Some(area) = &mut areas[lane]
            && let Some(bytes) = area.get_mut(at..).and_then(|area| area.first_chunk_mut())
        {
            *bytes = new(lane, *bytes);
        }
    });
}
