//! Programs that choose the worker of each frame: the same choice for the sockets of AF_PACKET, whose
//! group of sockets the kernel asks, and for drivers, where an XDP program hands frames to sockets
//! of AF_XDP.
//!
//! A tag says what group a frame is of, and a map where the group is. Without one,
//! a flow's worker follows from a hash that is the same for both directions: sums of addresses and
//! of TCP's and UDP's ports. Fragments have no ports, and what is not IP is the first worker's.
//! What is sent to addresses and ports that a worker allocates is that worker's, and an ICMP error
//! goes where the flow is that it tells of.

use std::io::Result;
use std::os::fd::OwnedFd;

use elements::device::OwnedPorts;

use super::bpf::*;
use super::dispatch::{Dispatch, DispatchMode, MAC_TAG, Tags};

const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
/// The pointer to what the program keeps.
const STACK: u8 = 10;

/// What a worker is chosen by.
pub(super) struct Steering<'a> {
    /// What is allocated.
    pub(super) owned: &'a [OwnedPorts],
    /// How many workers there are.
    pub(super) workers: usize,
    /// How a frame's worker is found.
    pub(super) dispatch: &'a Dispatch,
    /// Whether frames come on queues of the interface's own.
    pub(super) has_queues: bool,
}

impl Steering<'_> {
    fn shares(&self) -> usize {
        self.workers + self.dispatch.groups()
    }

    /// Where to go with the number of a share in register 0: the first shares are the workers'.
    fn with_share(&self) -> AsmLine {
        let label = if self.dispatch.groups() > 0 { "share" } else { "chosen" };
        If(ALWAYS, 0, 0, 0, label)
    }

    /// Chooses by the number of a group, if there are so many; it is in register 0.
    fn with_group(&self, else_to: &'static str) -> [AsmLine; 3] {
        [
            If(AT_LEAST, 0, 0, self.dispatch.groups() as i32, else_to),
            Do(advance(0, self.workers as i32)),
            self.with_share(),
        ]
    }

    /// Looks up at which worker a share is.
    fn look_up(&self) -> Result<Vec<AsmLine>> {
        if self.dispatch.groups() == 0 {
            return Ok(Vec::new());
        }
        let [first, second] = load_map(1, self.dispatch.map()?.descriptor());
        Ok(vec![
            Label("share"),
            Do(store_word(STACK, -4, 0)),
            Do(copy(2, STACK)),
            Do(advance(2, -4)),
            Do(first),
            Do(second),
            Do(call(MAP_LOOKUP)),
            If(EQUAL, 0, 0, 0, "first"),
            Do(load_memory(WORD, 0, 0, 0)),
            If(ALWAYS, 0, 0, 0, "chosen"),
        ])
    }
}

/// Where a program runs: how it reads a frame follows from that.
///
/// Registers: 0 what was loaded, in the end the worker; 6 the context, 7 the sum, 8 where the
/// transport header is (its offset from the network header; in drivers a pointer), 9 the address
/// whose ports are looked at. In drivers also 1 the end of the frame and 2 its network header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hook {
    Socket,
    Driver,
}
use Hook::{Driver, Socket};

impl Hook {
    /// Register 0 = a number of the frame, counted from the network header, or from the transport
    /// header. A frame that is too short is the first worker's.
    fn load(self, size: u8, transport: bool, offset: i32) -> Vec<AsmLine> {
        if self == Socket {
            return vec![Do(load_network(size, transport.then_some(8), offset))];
        }
        let length = [4, 2, 1][usize::from(size / HALF)];
        let from = if transport { 8 } else { 2 };
        let mut lines = vec![
            Do(copy(4, from)),
            Do(advance(4, offset + length)),
            If(GREATER, 4, 1, 0, "first"),
            Do(load_memory(size, 0, from, offset as i16)),
        ];
        if size != BYTE {
            lines.push(Do(from_network(0, length * 8)));
        }
        lines
    }

    /// Adds numbers of this size to the sum.
    fn sum(self, size: u8, transport: bool, at: impl IntoIterator<Item = i32>) -> Vec<AsmLine> {
        let one = |offset| [self.load(size, transport, offset), vec![Do(add(7, 0))]].concat();
        at.into_iter().flat_map(one).collect()
    }

    /// Register 0 = length of the IPv4 header that begins at this offset.
    fn header_length(self, transport: bool, offset: i32) -> Vec<AsmLine> {
        let mut lines = self.load(BYTE, transport, offset);
        lines.extend([Do(and(0, 15)), Do(shift_left(0, 2))]);
        lines
    }

    /// Register 8 = where the transport header is, behind an IPv4 header whose length is in
    /// register 0.
    fn behind_header(self) -> Vec<AsmLine> {
        match self {
            Socket => vec![Do(copy(8, 0))],
            Driver => [vec![Do(copy(8, 2))], self.advance_by_length()].concat(),
        }
    }

    /// Register 8 += the length of an IPv4 header in register 0.
    fn advance_by_length(self) -> Vec<AsmLine> {
        if self == Socket {
            return vec![Do(add(8, 0))];
        }
        // Bit by bit: who lacks CAP_PERFMON adds no number that is not known to a pointer.
        let bit = |bit| {
            [
                Do(copy(4, 0)),
                Do(and(4, bit)),
                Do(instruction(EQUAL, 4, 0, 1, 0)),
                Do(advance(8, bit)),
            ]
        };
        [4, 8, 16, 32].into_iter().flat_map(bit).collect()
    }

    /// Register 0 = the frame's protocol as it stands there, behind one VLAN tag. A frame with the
    /// tag of a group has its worker.
    fn protocol(self, steering: &Steering<'_>) -> Vec<AsmLine> {
        if self == Socket {
            let mut lines = self.group(steering);
            lines.push(Do(load_memory(WORD, 0, 6, PROTOCOL)));
            return lines;
        }
        let by_vlan = matches!(steering.dispatch.mode(), DispatchMode::Tags(Tags::Vlan(_)));
        let mut lines = vec![
            Do(load_memory(WORD, 2, 6, DATA)),
            Do(load_memory(WORD, 1, 6, DATA_END)),
            Do(copy(3, 2)),
            Do(advance(3, 14)),
            If(GREATER, 3, 1, 0, "first"),
        ];
        if !by_vlan {
            lines.extend(self.group(steering));
        }
        lines.extend([
            Do(load_memory(HALF, 0, 2, 12)),
            Do(advance(2, 14)),
            If(EQUAL, 0, 0, in_frame(VLAN), "tag"),
            If(NOT_EQUAL, 0, 0, in_frame(SERVICE_VLAN), "no tag"),
            Label("tag"),
            Do(copy(3, 2)),
            Do(advance(3, 4)),
            If(GREATER, 3, 1, 0, "first"),
        ]);
        if by_vlan {
            lines.push(If(NOT_EQUAL, 0, 0, in_frame(VLAN), "no group"));
            lines.extend(self.group(steering));
        }
        lines.extend([Do(load_memory(HALF, 0, 2, 2)), Do(advance(2, 4)), Label("no tag")]);
        lines
    }

    /// Chooses by the tag of a group, if the frame has one. In drivers register 2 is the frame's
    /// first byte, or that of its VLAN tag.
    fn group(self, steering: &Steering<'_>) -> Vec<AsmLine> {
        let mut lines = match (steering.dispatch.mode(), self) {
            (DispatchMode::Tags(Tags::Mac), Socket) => vec![
                Do(load_link(WORD, 0)),
                If(NOT_EQUAL, 0, 0, i32::from_be_bytes(MAC_TAG), "no group"),
                Do(load_link(HALF, 4)),
            ],
            (DispatchMode::Tags(Tags::Mac), Driver) => vec![
                Do(load_memory(WORD, 0, 2, 0)),
                If(NOT_EQUAL, 0, 0, i32::from_ne_bytes(MAC_TAG), "no group"),
                Do(load_memory(HALF, 0, 2, 4)),
                Do(from_network(0, 16)),
            ],
            (DispatchMode::Tags(Tags::Vlan(_)), Socket) => vec![
                Do(load_memory(WORD, 0, 6, VLAN_PRESENT)),
                If(EQUAL, 0, 0, 0, "no group"),
                Do(load_memory(WORD, 0, 6, VLAN_PROTOCOL)),
                If(NOT_EQUAL, 0, 0, in_frame(VLAN), "no group"),
                Do(load_memory(WORD, 0, 6, VLAN_TCI)),
            ],
            (DispatchMode::Tags(Tags::Vlan(_)), Driver) => {
                vec![Do(load_memory(HALF, 0, 2, 0)), Do(from_network(0, 16))]
            }
            _ => return Vec::new(),
        };
        if let DispatchMode::Tags(Tags::Vlan(first)) = steering.dispatch.mode() {
            lines.extend([Do(and(0, 0xfff)), Do(advance(0, -i32::from(first)))]);
        }
        lines.extend(steering.with_group("no group"));
        lines.push(Label("no group"));
        lines
    }

    /// Answers of neighbours, which all workers hear besides: drivers leave them to the host's
    /// stack, and of the sockets the first worker's gets them.
    fn neighbours(self) -> Vec<AsmLine> {
        let mut lines = vec![If(NOT_EQUAL, 0, 0, in_frame(ARP), "no ARP")];
        lines.extend(self.load(HALF, false, 6));
        lines.extend([
            If(EQUAL, 0, 0, 2, "pass"),
            If(ALWAYS, 0, 0, 0, "first"),
            Label("no ARP"),
            If(NOT_EQUAL, 0, 0, in_frame(IPV6), "no answer"),
        ]);
        lines.extend(self.load(BYTE, false, 6));
        lines.push(If(NOT_EQUAL, 0, 0, ICMPV6, "IPv6"));
        lines.extend(self.load(BYTE, false, 40));
        lines.extend([
            If(EQUAL, 0, 0, NEIGHBOR_ADVERTISEMENT, "pass"),
            If(ALWAYS, 0, 0, 0, "IPv6"),
            Label("no answer"),
        ]);
        lines
    }

    /// Register 0 = the worker.
    fn worker(self, steering: &Steering<'_>) -> Result<Vec<AsmLine>> {
        let mut lines = vec![Do(copy(6, 1)), Do(set(7, 0))];
        lines.extend(self.protocol(steering));
        lines.extend(self.neighbours());
        lines.extend(match steering.dispatch.mode() {
            DispatchMode::Queue | DispatchMode::HandOff if steering.has_queues => self.by_queue(),
            DispatchMode::Queue
            | DispatchMode::HandOff
            | DispatchMode::Hash
            | DispatchMode::Tags(_) => self.by_flow(steering),
            // The first worker hands them on.
            DispatchMode::Software => vec![Label("IPv6"), Do(set(0, 0))],
        });
        let modulo = |number: usize| Do(instruction(0x94, 0, 0, 0, number as i32));
        let workers = steering.workers;
        match steering.dispatch.is_elastic() {
            false => lines.extend([modulo(workers), If(ALWAYS, 0, 0, 0, "chosen")]),
            // The group, and the worker that it is at.
            true => lines.extend([
                modulo(steering.dispatch.groups()),
                Do(advance(0, workers as i32)),
                steering.with_share(),
            ]),
        }
        lines.extend(steering.look_up()?);
        if self == Socket {
            lines.push(Label("pass"));
        }
        lines.extend([Label("first"), Do(set(0, 0)), Label("chosen")]);
        Ok(lines)
    }

    /// Register 0 = the queue.
    fn by_queue(self) -> Vec<AsmLine> {
        let at = if self == Socket { QUEUE_MAPPING } else { RX_QUEUE_INDEX };
        vec![Label("IPv6"), Do(load_memory(WORD, 0, 6, at))]
    }

    /// Register 0 = a hash of the flow, if nobody has given it out.
    fn by_flow(self, steering: &Steering<'_>) -> Vec<AsmLine> {
        let owners = || steering.owned.iter().flat_map(|own| owner(own, steering));
        let mut lines = Vec::new();
        lines.extend([
            If(EQUAL, 0, 0, in_frame(IPV6), "IPv6"),
            If(NOT_EQUAL, 0, 0, in_frame(IPV4), "first"),
        ]);
        lines.extend(self.sum(WORD, false, [12, 16]));
        lines.push(Do(copy(9, 0)));
        lines.extend(self.load(HALF, false, 6));
        // Of a fragment: more follow, or some come before.
        lines.extend([Do(and(0, 0x3fff)), If(NOT_EQUAL, 0, 0, 0, "hash")]);
        lines.extend(self.header_length(false, 0));
        lines.extend(self.behind_header());
        lines.extend(self.load(BYTE, false, 9));
        lines.extend([
            If(EQUAL, 0, 0, libc::IPPROTO_TCP, "IPv4 ports"),
            If(EQUAL, 0, 0, libc::IPPROTO_UDP, "IPv4 ports"),
            If(NOT_EQUAL, 0, 0, libc::IPPROTO_ICMP, "hash"),
        ]);
        lines.extend(self.load(BYTE, true, 0));
        lines.extend(ICMP_ERRORS.map(|kind| If(EQUAL, 0, 0, kind, "ICMP error")));
        // The identifier of a ping.
        lines.extend(self.load(HALF, true, 4));
        lines.extend(owners());
        lines.extend([If(ALWAYS, 0, 0, 0, "hash"), Label("ICMP error")]);
        lines.extend(self.named_by_error());
        lines.extend(self.load(HALF, true, 0));
        lines.extend([If(ALWAYS, 0, 0, 0, "owned?"), Label("IPv4 ports")]);
        lines.extend(self.load(HALF, true, 2));
        lines.push(Label("owned?"));
        lines.extend(owners());
        lines.extend([If(ALWAYS, 0, 0, 0, "ports"), Label("IPv6")]);
        lines.extend(self.sum(WORD, false, (8..40).step_by(4)));
        lines.extend(match self {
            Socket => vec![Do(set(8, 40))],
            Driver => vec![Do(copy(8, 2)), Do(advance(8, 40))],
        });
        lines.extend(self.load(BYTE, false, 6));
        lines.extend([
            If(EQUAL, 0, 0, libc::IPPROTO_TCP, "ports"),
            If(NOT_EQUAL, 0, 0, libc::IPPROTO_UDP, "hash"),
            Label("ports"),
        ]);
        lines.extend(self.sum(HALF, true, [0, 2]));
        lines.extend([
            Label("hash"),
            // Multiplied by a large odd number (the golden ratio's), of which the upper half is
            // taken.
            Do(copy(0, 7)),
            Do(instruction(0x24, 0, 0, 0, 0x9e37_79b1_u32 as i32)),
            Do(instruction(0x74, 0, 0, 0, 16)),
        ]);
        lines
    }

    /// Goes on with the packet that an ICMP error quotes: its source in register 9, its
    /// addresses summed, its transport header at register 8. The error's own header begins there
    /// before.
    fn named_by_error(self) -> Vec<AsmLine> {
        let mut lines = vec![Do(set(7, 0))];
        lines.extend(self.sum(WORD, true, [8 + 16, 8 + 12]));
        lines.push(Do(copy(9, 0)));
        lines.extend(self.load(BYTE, true, 8 + 9));
        lines.push(Do(store(STACK, -8, 0)));
        lines.extend(self.header_length(true, 8));
        lines.extend(self.advance_by_length());
        lines.extend([
            Do(advance(8, 8)),
            Do(load_stored(0, STACK, -8)),
            If(EQUAL, 0, 0, libc::IPPROTO_TCP, "error ports"),
            If(EQUAL, 0, 0, libc::IPPROTO_UDP, "error ports"),
            If(ALWAYS, 0, 0, 0, "hash"),
            Label("error ports"),
        ]);
        lines
    }
}

/// Unreachable, source quench, redirect, time exceeded, parameter problem.
const ICMP_ERRORS: [i32; 5] = [3, 4, 5, 11, 12];

/// Ends with the share that it is in, if the address in register 9 and the port in register 0
/// are in the ranges.
fn owner(own: &OwnedPorts, steering: &Steering<'_>) -> [AsmLine; 13] {
    let (addresses, ports) = (own.addresses, own.ports);
    let (number, low, high) = match own.by_address() {
        true => (9, addresses.0, addresses.1),
        false => (0, ports.0.into(), ports.1.into()),
    };
    let size = u64::from(high) - u64::from(low) + 1;
    // The inverse of `WorkerShare::share`: ((number - low + 1) * shares - 1) / size.
    [
        Do(instruction(BELOW, 9, 0, 12, addresses.0 as i32)),
        Do(instruction(ABOVE, 9, 0, 11, addresses.1 as i32)),
        Do(instruction(BELOW, 0, 0, 10, ports.0.into())),
        Do(instruction(ABOVE, 0, 0, 9, ports.1.into())),
        Do(copy(0, number)),
        Do(instruction(0x04, 0, 0, 0, (low as i32).wrapping_neg())),
        Do(advance(0, 1)),
        Do(instruction(0x27, 0, 0, 0, steering.shares() as i32)),
        Do(advance(0, -1)),
        Do(load_number(3, size)[0]),
        Do(load_number(3, size)[1]),
        Do(instruction(0x3f, 0, 3, 0, 0)),
        steering.with_share(),
    ]
}

/// A program that spreads frames over the sockets of workers.
///
/// # Errors
/// The kernel's.
pub(super) fn for_sockets(steering: &Steering<'_>) -> Result<OwnedFd> {
    let mut lines = Socket.worker(steering)?;
    lines.push(Do(EXIT));
    load_for_sockets(&lines)
}

/// An XDP program that hands every frame to a socket: with several workers to that of its flow's,
/// see [`socket_number`]; frames for which there is none go to the host. `pieces` lets it be given
/// frames in several pieces.
///
/// # Errors
/// The kernel's.
pub(super) fn for_driver(
    map: &SocketMap,
    steering: &Steering<'_>,
    pieces: bool,
) -> Result<OwnedFd> {
    let workers = steering.workers;
    let mut lines = match workers {
        1 => vec![Do(copy(6, 1)), Do(set(0, 0))],
        _ => Driver.worker(steering)?,
    };
    let [first, second] = load_map(1, map.descriptor());
    lines.extend([
        Do(load_memory(WORD, 2, 6, RX_QUEUE_INDEX)),
        Do(instruction(0x24, 2, 0, 0, workers as i32)),
        Do(add(2, 0)),
        Do(first),
        Do(second),
        Do(set(3, XDP_PASS)),
        Do(call(REDIRECT_MAP)),
        Do(EXIT),
    ]);
    if workers > 1 {
        lines.extend([Label("pass"), Do(set(0, XDP_PASS)), Do(EXIT)]);
    }
    load_for_driver(&lines, pieces)
}

/// The number of the socket that a worker has on a queue.
pub(super) fn socket_number(queue: u32, worker: usize, workers: usize) -> u32 {
    queue * workers as u32 + worker as u32
}
