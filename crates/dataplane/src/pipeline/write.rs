//! Writing what plans say into the packets of a burst: column by column, into a window on each
//! packet.

use net::{Header, Packet, PacketType};

use super::lanes::{LANES, Lanes, lanes_of};
use super::plan::{NewMark, Plan, Store, WINDOW};

/// The numbers of all lanes.
const ALL: [usize; LANES] = {
    let mut all = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        all[lane] = lane;
        lane += 1;
    }
    all
};

/// What is written into a burst.
pub(super) struct Written {
    /// The lanes of packets that go on, plan by plan.
    lanes: [usize; LANES],
    /// By lane: where its window lies.
    windows: [i32; LANES],
    /// Plans, and where their lanes start and end.
    plans: Vec<(u32, u8, u8)>,
}

impl Written {
    /// Nothing yet; `plans` must be empty.
    pub(super) fn new(plans: Vec<(u32, u8, u8)>) -> Self {
        Self { lanes: ALL, windows: [0; LANES], plans }
    }

    /// Adds what a plan writes into the lanes of a mask, which no other plan writes into; gives
    /// their numbers.
    #[inline]
    pub(super) fn add(&mut self, number: u32, plan: &Plan, mask: u32) -> &[usize] {
        let first = self.plans.last().map_or(0, |&(.., end)| end);
        let mut end = usize::from(first);
        if mask == u32::MAX {
            end = LANES;
        } else {
            for lane in lanes_of(mask) {
                self.lanes[end] = lane;
                end += 1;
            }
        }
        self.plans.push((number, first, end as u8));
        let these = &self.lanes[usize::from(first)..end];
        these.iter().for_each(|&lane| self.windows[lane] = plan.window);
        these
    }

    /// Writes it; gives back the room for plans.
    #[inline(never)]
    pub(super) fn write(
        mut self,
        plans: &[Plan],
        lanes: &Lanes,
        packets: &mut [Packet],
    ) -> Vec<(u32, u8, u8)> {
        let all = self.plans.iter().map(|&(plan, first, end)| {
            (&plans[plan as usize], &self.lanes[usize::from(first)..usize::from(end)])
        });
        if all.clone().any(|(plan, _)| !plan.annotations.is_empty()) {
            let mut none = [[0; _]; LANES];
            let mut areas = none.each_mut();
            for (area, packet) in areas.iter_mut().zip(packets.iter_mut()) {
                *area = packet.annotations_mut().bytes_mut();
            }
            for (plan, numbers) in all.clone() {
                plan.annotations.iter().for_each(|one| store(one, lanes, numbers, &mut areas));
            }
        }
        if all.clone().any(|(plan, _)| !plan.stores.is_empty()) {
            let mut none = [[0; WINDOW]; LANES];
            let mut windows = none.each_mut();
            for ((window, packet), &at) in windows.iter_mut().zip(packets).zip(&self.windows) {
                if packet.window::<WINDOW>(at).is_none() {
                    make_room(at, packet);
                }
                if let Some(bytes) = packet.window_mut(at) {
                    *window = bytes;
                }
            }
            for (plan, numbers) in all {
                plan.stores.iter().for_each(|one| store(one, lanes, numbers, &mut windows));
            }
        }
        self.plans.clear();
        self.plans
    }
}

/// Says where frames and their headers start and end.
#[inline(never)]
pub(super) fn place(plan: &Plan, lanes: &Lanes, packets: &mut [Packet], numbers: &[usize]) {
    let length = plan.length.map(|reg| lanes.column(reg));
    let [mac, network, transport] = plan.marks;
    // Mostly, all are in the frame and known.
    let offset = |mark| match mark {
        NewMark::At(at) => u32::try_from(at).ok(),
        _ => None,
    };
    let offsets = match [offset(mac), offset(network), offset(transport)] {
        [Some(mac), Some(network), Some(transport)] => Some([mac, network, transport]),
        _ => None,
    };
    for &lane in numbers {
        let packet = &mut packets[lane];
        match plan.start {
            0 => {}
            start @ 1.. => packet.pull(start as usize),
            start => packet.push(start.unsigned_abs() as usize),
        }
        if let Some(length) = length {
            packet.truncate(length[lane % LANES] as usize);
        }
        if let Some(offsets) = offsets {
            packet.set_header_offsets(offsets);
            continue;
        }
        let mut mark = |header, mark| match mark {
            NewMark::Keep => {}
            NewMark::Clear => packet.clear_header(header),
            NewMark::At(at) => packet.set_header_offset(header, at as isize),
            NewMark::Computed(reg) => {
                let at = lanes.column(reg)[lane % LANES] as i32 as isize;
                packet.set_header_offset(header, at - plan.start as isize);
            }
        };
        mark(Header::Mac, mac);
        mark(Header::Network, network);
        mark(Header::Transport, transport);
    }
    if let Some(reg) = plan.packet_type {
        let column = lanes.column(reg);
        for &lane in numbers {
            packets[lane].set_packet_type(PacketType::from_u8(column[lane % LANES] as u8));
        }
    }
    if let Some(time) = plan.timestamp {
        numbers.iter().for_each(|&lane| packets[lane].set_timestamp(time));
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

/// Stores into areas of the packets of these numbers.
fn store<const N: usize>(
    store: &Store,
    lanes: &Lanes,
    numbers: &[usize],
    areas: &mut [&mut [u8; N]; LANES],
) {
    match *store {
        Store::One(at, byte) => put(areas, numbers, at, |_| [byte]),
        Store::Two(at, bytes) => put(areas, numbers, at, |_| bytes),
        Store::Four(at, bytes) => put(areas, numbers, at, |_| bytes),
        Store::Eight(at, bytes) => put(areas, numbers, at, |_| bytes),
        Store::Low8(at, reg) => {
            let column = lanes.column(reg);
            put(areas, numbers, at, |lane| [column[lane] as u8]);
        }
        Store::Low16(at, reg) => {
            let column = lanes.column(reg);
            put(areas, numbers, at, |lane| (column[lane] as u16).to_be_bytes());
        }
        Store::Low32(at, reg) => {
            let column = lanes.column(reg);
            put(areas, numbers, at, |lane| column[lane].to_be_bytes());
        }
    }
}

#[inline(always)]
fn put<const N: usize, const M: usize>(
    areas: &mut [&mut [u8; N]; LANES],
    numbers: &[usize],
    at: u8,
    bytes: impl Fn(usize) -> [u8; M],
) {
    let at = usize::from(at);
    debug_assert!(at + M <= N, "stores lie in their area");
    for lane in numbers {
        let lane = lane % LANES;
        if let Some(place) = areas[lane].get_mut(at..).and_then(|area| area.first_chunk_mut()) {
            *place = bytes(lane);
        }
    }
}
