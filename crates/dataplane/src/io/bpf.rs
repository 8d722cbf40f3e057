//! Programs and maps of the kernel's virtual machine, through bpf(2): raw instruction words, no
//! compiler and no object files. What is attached here goes when this process does.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};

use elements::device::Owned;

use super::sys::{self, BpfAttributes};

const MAP_CREATE: c_int = 0;
const MAP_UPDATE: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_SOCKET_FILTER: u32 = 1;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const ATTACH_TCX_INGRESS: u32 = 46;
/// The program can be given a frame in several pieces.
const HAS_FRAGMENTS: u32 = 1 << 5;

const XDP_PASS: i32 = 2;
const XDP_GENERIC: u32 = 1 << 1;
const XDP_IN_DRIVER: u32 = 1 << 2;
const TCX_DROP: i32 = 2;

/// An instruction: what it does, to and from which register, at which offset, with which number.
const fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    (code as u64)
        | (((to | from << 4) as u64) << 8)
        | ((offset as u16 as u64) << 16)
        | ((number as u32 as u64) << 32)
}

/// `to = number`
const fn set(to: u8, number: i32) -> u64 {
    instruction(0xb7, to, 0, 0, number)
}

/// `to = *(u32 *)(from + offset)`
const fn load_word(to: u8, from: u8, offset: i16) -> u64 {
    instruction(0x61, to, from, offset, 0)
}

/// `to = map`
const fn load_map(to: u8, map: i32) -> [u64; 2] {
    [instruction(0x18, to, 1, 0, map), 0]
}

/// Calls a function of the kernel: arguments in registers 1 to 5, the result in 0.
const fn call(function: i32) -> u64 {
    instruction(0x85, 0, 0, 0, function)
}

const EXIT: u64 = instruction(0x95, 0, 0, 0, 0);

/// `to = from`
const fn copy(to: u8, from: u8) -> u64 {
    instruction(0xbf, to, from, 0, 0)
}

/// `to += from`, on 32 bits.
const fn add(to: u8, from: u8) -> u64 {
    instruction(0x0c, to, from, 0, 0)
}

/// `to += number`, also for pointers.
const fn advance(to: u8, number: i32) -> u64 {
    instruction(0x07, to, 0, 0, number)
}

/// Register 0 = 1, 2 or 4 bytes of the frame (`code` tells how many), counted from the network
/// header; plus a register, for [`WORD_AT`] and its like. A frame that is too short ends the
/// program with 0. The context must be in register 6.
const fn load_network(code: u8, plus: u8, offset: i32) -> u64 {
    instruction(code, 0, plus, 0, libc::SKF_NET_OFF + offset)
}

const WORD: u8 = 0x20;
const HALF: u8 = 0x28;
const BYTE: u8 = 0x30;
const HALF_AT: u8 = 0x48;

/// Codes of jumps: always, equal to a number, not equal to it, greater than a register.
const ALWAYS: u8 = 0x05;
const EQUAL: u8 = 0x15;
const NOT_EQUAL: u8 = 0x55;
const GREATER: u8 = 0x2d;
/// The same on 32 bits, without sign: less than a number, greater than it.
const BELOW: u8 = 0xa6;
const ABOVE: u8 = 0x26;

/// A line of a program.
enum Line {
    Do(u64),
    /// Jumps to a label if register and register or number compare so.
    If(u8, u8, u8, i32, &'static str),
    Label(&'static str),
}
use Line::{Do, If, Label};

/// Puts a program together: jumps are counted in instructions from the next one on.
fn assemble(lines: &[Line]) -> Vec<u64> {
    let is_code = |line: &&Line| !matches!(line, Label(_));
    let place = |label: &str| {
        let before = lines.iter().take_while(|line| !matches!(line, Label(l) if *l == label));
        before.filter(is_code).count() as i16
    };
    let code = lines.iter().filter(is_code).enumerate();
    code.map(|(at, line)| match *line {
        Do(instruction) => instruction,
        If(code, left, right, number, label) => {
            instruction(code, left, right, place(label) - at as i16 - 1, number)
        }
        Label(_) => 0,
    })
    .collect()
}

/// A number of two bytes as it stands in a frame.
const fn in_frame(number: u16) -> i32 {
    number.to_be() as i32
}

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ICMPV6: i32 = 58;
const NEIGHBOR_ADVERTISEMENT: i32 = 136;
/// Where a `struct __sk_buff` has the protocol.
const PROTOCOL: i16 = 16;

/// `bpf_redirect_map(map, key, action if there is no entry)`
const REDIRECT_MAP: i32 = 51;
/// Where a `struct xdp_md` has the queue that a frame came on.
const RX_QUEUE_INDEX: i16 = 16;

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

// SAFETY: no pointers.
unsafe impl BpfAttributes for MapCreate {}

#[repr(C)]
struct MapUpdate<'a> {
    map: u32,
    padding: u32,
    key: Pointer<'a>,
    value: Pointer<'a>,
    flags: u64,
}

/// A pointer as the kernel wants it, to something that is borrowed as long.
#[repr(transparent)]
struct Pointer<'a>(u64, std::marker::PhantomData<&'a u8>);

impl<'a> Pointer<'a> {
    fn to<T: ?Sized>(what: &'a T) -> Self {
        Self(
            std::ptr::from_ref(what).cast::<u8>().expose_provenance() as u64,
            std::marker::PhantomData,
        )
    }
}

// SAFETY: the pointers are to a key and a value of the sizes that the map has (4 bytes each), and
// are only read.
unsafe impl BpfAttributes for MapUpdate<'_> {}

#[repr(C)]
struct ProgLoad<'a> {
    prog_type: u32,
    count: u32,
    instructions: Pointer<'a>,
    license: Pointer<'a>,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    ifindex: u32,
    attach_type: u32,
}

// SAFETY: the pointers are to `count` instructions and to a license that ends with a zero byte;
// there is no log.
unsafe impl BpfAttributes for ProgLoad<'_> {}

#[repr(C)]
struct LinkCreate {
    program: u32,
    ifindex: u32,
    attach_type: u32,
    flags: u32,
    /// For programs behind one another: none is named, and nothing is expected.
    relative: [u64; 2],
}

// SAFETY: no pointers.
unsafe impl BpfAttributes for LinkCreate {}

/// Sockets by queue, which an XDP program hands frames to.
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    /// A map for this many queues.
    pub(super) fn new(queues: u32) -> Result<Self> {
        let map = MapCreate {
            map_type: MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queues,
            flags: 0,
        };
        sys::bpf(MAP_CREATE, &map).map(|fd| Self(sys::own(fd)))
    }

    /// Has the frames of a queue handed to a socket.
    pub(super) fn set(&self, queue: u32, socket: &OwnedFd) -> Result<()> {
        let socket = socket.as_raw_fd() as u32;
        let update = MapUpdate {
            map: self.0.as_raw_fd() as u32,
            padding: 0,
            key: Pointer::to(&queue),
            value: Pointer::to(&socket),
            flags: 0,
        };
        sys::bpf(MAP_UPDATE, &update).map(drop)
    }
}

fn load(kind: u32, instructions: &[u64], flags: u32, attach_type: u32) -> Result<OwnedFd> {
    let mut name = [0; 16];
    name[..6].copy_from_slice(b"catena");
    let program = ProgLoad {
        prog_type: kind,
        count: instructions.len() as u32,
        instructions: Pointer::to(instructions),
        license: Pointer::to(c"Apache-2.0"),
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags,
        name,
        ifindex: 0,
        attach_type,
    };
    sys::bpf(PROG_LOAD, &program).map(sys::own)
}

fn link(program: &OwnedFd, ifindex: u32, attach_type: u32, flags: u32) -> Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    let link = LinkCreate { program, ifindex, attach_type, flags, relative: [0; 2] };
    sys::bpf(LINK_CREATE, &link).map(sys::own)
}

/// A program that is attached to an interface until this is dropped.
#[allow(dead_code, reason = "held for as long as it is to be attached")]
pub(super) struct Attached(OwnedFd);

/// Attaches an XDP program that hands every frame to the socket of its queue; those of a queue
/// without one go to the host. `pieces` lets it be given frames in several pieces; `neighbours`
/// leaves answers of neighbours to the host's stack, where all workers hear them.
///
/// # Errors
/// The kernel's; `EBUSY` or `EEXIST` if another program is attached.
pub(super) fn redirect_to_sockets(
    ifindex: u32,
    map: &SocketMap,
    in_driver: bool,
    pieces: bool,
    neighbours: bool,
) -> Result<Attached> {
    let mut lines = vec![Do(copy(6, 1))];
    if neighbours {
        let half = |to, offset| Do(instruction(0x69, to, 2, offset, 0));
        let byte = |to, offset| Do(instruction(0x71, to, 2, offset, 0));
        lines.extend([
            // The frame and its end.
            Do(load_word(2, 1, 0)),
            Do(load_word(3, 1, 4)),
            Do(copy(4, 2)),
            Do(advance(4, 42)),
            If(GREATER, 4, 3, 0, "redirect"),
            half(5, 12),
            If(NOT_EQUAL, 5, 0, in_frame(ARP), "not ARP"),
            half(5, 20),
            If(EQUAL, 5, 0, in_frame(2), "pass"),
            Label("not ARP"),
            If(NOT_EQUAL, 5, 0, in_frame(IPV6), "redirect"),
            Do(copy(4, 2)),
            Do(advance(4, 55)),
            If(GREATER, 4, 3, 0, "redirect"),
            byte(5, 20),
            If(NOT_EQUAL, 5, 0, ICMPV6, "redirect"),
            byte(5, 54),
            If(EQUAL, 5, 0, NEIGHBOR_ADVERTISEMENT, "pass"),
        ]);
    }
    let [first, second] = load_map(1, map.0.as_raw_fd());
    lines.extend([
        Label("redirect"),
        Do(load_word(2, 6, RX_QUEUE_INDEX)),
        Do(first),
        Do(second),
        Do(set(3, XDP_PASS)),
        Do(call(REDIRECT_MAP)),
        Do(EXIT),
    ]);
    if neighbours {
        lines.extend([Label("pass"), Do(set(0, XDP_PASS)), Do(EXIT)]);
    }
    let flags = if pieces { HAS_FRAGMENTS } else { 0 };
    let program = load(PROG_TYPE_XDP, &assemble(&lines), flags, ATTACH_XDP)?;
    let mode = if in_driver { XDP_IN_DRIVER } else { XDP_GENERIC };
    link(&program, ifindex, ATTACH_XDP, mode).map(Attached)
}

/// A program that spreads frames over sockets by a hash of their flow, the same for both
/// directions: sums of addresses and of TCP's and UDP's ports. Fragments have no ports, and what
/// is not IP is the first socket's. What is sent to addresses and ports that a worker gives out
/// is that worker's.
///
/// # Errors
/// The kernel's.
pub(super) fn spread_flows(owned: &[(usize, Owned)]) -> Result<OwnedFd> {
    // Register 7 is the sum, 8 where the transport header is, 9 the destination address.
    let sum = |code, plus, offset| [Do(load_network(code, plus, offset)), Do(add(7, 0))];
    // Worker and end, if the address and the port in register 0 are in the ranges.
    let owner = |&(worker, own): &(usize, Owned)| {
        let (addresses, ports) = (own.addresses, own.ports);
        [
            Do(instruction(BELOW, 9, 0, 5, addresses.0 as i32)),
            Do(instruction(ABOVE, 9, 0, 4, addresses.1 as i32)),
            Do(instruction(BELOW, 0, 0, 3, ports.0.into())),
            Do(instruction(ABOVE, 0, 0, 2, ports.1.into())),
            Do(set(0, worker as i32)),
            Do(EXIT),
        ]
    };
    let mut lines = vec![
        Do(copy(6, 1)),
        Do(set(7, 0)),
        Do(load_word(0, 6, PROTOCOL)),
        If(EQUAL, 0, 0, in_frame(IPV6), "IPv6"),
        If(NOT_EQUAL, 0, 0, in_frame(IPV4), "first"),
    ];
    lines.extend([12, 16].into_iter().flat_map(|at| sum(WORD, 0, at)));
    lines.extend([
        Do(copy(9, 0)),
        Do(load_network(HALF, 0, 6)),
        // Of a fragment: more follow, or some come before.
        Do(instruction(0x54, 0, 0, 0, 0x3fff)),
        If(NOT_EQUAL, 0, 0, 0, "hash"),
        Do(load_network(BYTE, 0, 0)),
        Do(instruction(0x54, 0, 0, 0, 15)),
        Do(instruction(0x64, 0, 0, 0, 2)),
        Do(copy(8, 0)),
        Do(load_network(BYTE, 0, 9)),
        If(EQUAL, 0, 0, libc::IPPROTO_TCP, "IPv4 ports"),
        If(EQUAL, 0, 0, libc::IPPROTO_UDP, "IPv4 ports"),
        If(NOT_EQUAL, 0, 0, libc::IPPROTO_ICMP, "hash"),
        // The identifier of a ping.
        Do(load_network(HALF_AT, 8, 4)),
    ]);
    lines.extend(owned.iter().flat_map(owner));
    lines.extend([
        If(ALWAYS, 0, 0, 0, "hash"),
        Label("IPv4 ports"),
        Do(load_network(HALF_AT, 8, 2)),
    ]);
    lines.extend(owned.iter().flat_map(owner));
    lines.extend([If(ALWAYS, 0, 0, 0, "ports"), Label("IPv6")]);
    lines.extend((8..40).step_by(4).flat_map(|at| sum(WORD, 0, at)));
    lines.extend([
        Do(set(8, 40)),
        Do(load_network(BYTE, 0, 6)),
        If(EQUAL, 0, 0, libc::IPPROTO_TCP, "ports"),
        If(NOT_EQUAL, 0, 0, libc::IPPROTO_UDP, "hash"),
        Label("ports"),
    ]);
    lines.extend([0, 2].into_iter().flat_map(|at| sum(HALF_AT, 8, at)));
    lines.extend([
        Label("hash"),
        // Multiplied by a large odd number (the golden ratio's), of which the upper half is taken.
        Do(instruction(0x24, 7, 0, 0, 0x9e37_79b1_u32 as i32)),
        Do(instruction(0x74, 7, 0, 0, 16)),
        Do(copy(0, 7)),
        Do(EXIT),
        Label("first"),
        Do(set(0, 0)),
        Do(EXIT),
    ]);
    load(PROG_TYPE_SOCKET_FILTER, &assemble(&lines), 0, 0)
}

/// A filter that lets answers of neighbours through: ARP replies and IPv6 neighbour
/// advertisements.
///
/// # Errors
/// The kernel's.
pub(super) fn only_neighbours() -> Result<OwnedFd> {
    let program = assemble(&[
        Do(copy(6, 1)),
        Do(load_word(0, 6, PROTOCOL)),
        If(EQUAL, 0, 0, in_frame(ARP), "ARP"),
        If(NOT_EQUAL, 0, 0, in_frame(IPV6), "drop"),
        Do(load_network(BYTE, 0, 6)),
        If(NOT_EQUAL, 0, 0, ICMPV6, "drop"),
        Do(load_network(BYTE, 0, 40)),
        If(EQUAL, 0, 0, NEIGHBOR_ADVERTISEMENT, "keep"),
        If(ALWAYS, 0, 0, 0, "drop"),
        Label("ARP"),
        Do(load_network(HALF, 0, 6)),
        If(EQUAL, 0, 0, 2, "keep"),
        Label("drop"),
        Do(set(0, 0)),
        Do(EXIT),
        Label("keep"),
        Do(set(0, 0xffff)),
        Do(EXIT),
    ]);
    load(PROG_TYPE_SOCKET_FILTER, &program, 0, 0)
}

/// Keeps the host's own protocols from the frames that come in on an interface: they see none.
/// AF_PACKET sockets see all.
///
/// # Errors
/// The kernel's; before Linux 6.6 it cannot.
pub(super) fn keep_from_host(ifindex: u32) -> Result<Attached> {
    let program = load(PROG_TYPE_SCHED_CLS, &[set(0, TCX_DROP), EXIT], 0, ATTACH_TCX_INGRESS)?;
    link(&program, ifindex, ATTACH_TCX_INGRESS, 0).map(Attached)
}
