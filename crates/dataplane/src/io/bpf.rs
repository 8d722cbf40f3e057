//! Programs and maps of the kernel's virtual machine, through bpf(2): raw instruction words, no
//! compiler and no object files. What is attached here goes when this process does.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};

use super::sys::{self, BpfCommand, BpfOpens};

const MAP_CREATE: c_int = 0;
const MAP_UPDATE: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;
const LINK_UPDATE: c_int = 29;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_SOCKET_FILTER: u32 = 1;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const ATTACH_TCX_INGRESS: u32 = 46;
/// The program can be given a frame in several pieces.
const HAS_FRAGMENTS: u32 = 1 << 5;

pub(super) const XDP_PASS: i32 = 2;
const XDP_GENERIC: u32 = 1 << 1;
const XDP_IN_DRIVER: u32 = 1 << 2;
const TCX_DROP: i32 = 2;

/// An instruction: what it does, to and from which register, at which offset, with which number.
pub(super) const fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    (code as u64)
        | (((to | from << 4) as u64) << 8)
        | ((offset as u16 as u64) << 16)
        | ((number as u32 as u64) << 32)
}

/// `to = number`
pub(super) const fn set(to: u8, number: i32) -> u64 {
    instruction(0xb7, to, 0, 0, number)
}

/// `to = map`
pub(super) const fn load_map(to: u8, map: i32) -> [u64; 2] {
    [instruction(0x18, to, 1, 0, map), 0]
}

/// Calls a function of the kernel: arguments in registers 1 to 5, the result in 0.
pub(super) const fn call(function: i32) -> u64 {
    instruction(0x85, 0, 0, 0, function)
}

pub(super) const EXIT: u64 = instruction(0x95, 0, 0, 0, 0);

/// `to = from`
pub(super) const fn copy(to: u8, from: u8) -> u64 {
    instruction(0xbf, to, from, 0, 0)
}

/// `to += from`, on 32 bits.
pub(super) const fn add(to: u8, from: u8) -> u64 {
    instruction(0x0c, to, from, 0, 0)
}

/// `to &= number`
pub(super) const fn and(to: u8, number: i32) -> u64 {
    instruction(0x54, to, 0, 0, number)
}

/// `to <<= bits`
pub(super) const fn shift_left(to: u8, bits: i32) -> u64 {
    instruction(0x64, to, 0, 0, bits)
}

/// Turns a number of so many bits round from network byte order.
pub(super) const fn from_network(to: u8, bits: i32) -> u64 {
    instruction(0xdc, to, 0, 0, bits)
}

/// `to = number`, of 64 bits.
pub(super) const fn load_number(to: u8, number: u64) -> [u64; 2] {
    [instruction(0x18, to, 0, 0, number as i32), number >> 32 << 32]
}

/// `*(to + offset) = from`, of 32 bits.
pub(super) const fn store_word(to: u8, offset: i16, from: u8) -> u64 {
    instruction(0x63, to, from, offset, 0)
}

/// `*(to + offset) = from`, of 64 bits.
pub(super) const fn store(to: u8, offset: i16, from: u8) -> u64 {
    instruction(0x7b, to, from, offset, 0)
}

/// `to = *(from + offset)`, of 64 bits.
pub(super) const fn load_stored(to: u8, from: u8, offset: i16) -> u64 {
    instruction(0x79, to, from, offset, 0)
}

/// `to += number`, also for pointers.
pub(super) const fn advance(to: u8, number: i32) -> u64 {
    instruction(0x07, to, 0, 0, number)
}

/// How many bytes are loaded.
pub(super) const WORD: u8 = 0x00;
pub(super) const HALF: u8 = 0x08;
pub(super) const BYTE: u8 = 0x10;

/// `to = *(from + offset)`, as the bytes stand in memory.
pub(super) const fn load_memory(size: u8, to: u8, from: u8, offset: i16) -> u64 {
    instruction(0x61 | size, to, from, offset, 0)
}

/// Register 0 = a number of the frame that a socket is given, counted from the network header and
/// from a register, if one is named. A frame that is too short ends the program with 0. The context
/// must be in register 6; registers 1 to 5 are lost.
pub(super) const fn load_network(size: u8, plus: Option<u8>, offset: i32) -> u64 {
    let (code, plus) = match plus {
        None => (0x20, 0),
        Some(register) => (0x40, register),
    };
    instruction(code | size, 0, plus, 0, libc::SKF_NET_OFF + offset)
}

/// Codes of jumps: always, equal to a number, not equal to it, greater than a register.
pub(super) const ALWAYS: u8 = 0x05;
pub(super) const EQUAL: u8 = 0x15;
pub(super) const NOT_EQUAL: u8 = 0x55;
pub(super) const GREATER: u8 = 0x2d;
/// Not less than a number, without sign.
pub(super) const AT_LEAST: u8 = 0x35;
/// On 32 bits, without sign: less than a number, greater than it.
pub(super) const BELOW: u8 = 0xa6;
pub(super) const ABOVE: u8 = 0x26;

/// Register 0 = a number of the frame that a socket is given, counted from its first byte; see
/// [`load_network`].
pub(super) const fn load_link(size: u8, offset: i32) -> u64 {
    instruction(0x20 | size, 0, 0, 0, libc::SKF_LL_OFF + offset)
}

/// A line of a program.
#[derive(Clone, Copy)]
pub(super) enum Line {
    Do(u64),
    /// Jumps to a label if register and register or number compare so.
    If(u8, u8, u8, i32, &'static str),
    Label(&'static str),
}
pub(super) use Line::{Do, If, Label};

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
pub(super) const fn in_frame(number: u16) -> i32 {
    number.to_be() as i32
}

pub(super) const ARP: u16 = 0x0806;
pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const ICMPV6: i32 = 58;
pub(super) const NEIGHBOR_ADVERTISEMENT: i32 = 136;
/// Where a `struct __sk_buff` has the frame's type: whose it is, or that it is sent.
const PACKET_TYPE: i16 = 4;
/// Where it has the protocol.
pub(super) const PROTOCOL: i16 = 16;
/// Where it has the queue that a frame came on, whether the kernel took a VLAN tag out of it, which
/// one and of what protocol.
pub(super) const QUEUE_MAPPING: i16 = 12;
pub(super) const VLAN_PRESENT: i16 = 20;
pub(super) const VLAN_TCI: i16 = 24;
pub(super) const VLAN_PROTOCOL: i16 = 28;

/// `bpf_redirect_map(map, key, action if there is no entry)`
pub(super) const REDIRECT_MAP: i32 = 51;
/// `bpf_map_lookup_elem(map, pointer to the key)`: a pointer to the value, or 0.
pub(super) const MAP_LOOKUP: i32 = 1;
/// Where a `struct xdp_md` has the frame's first byte, and the one behind its last.
pub(super) const DATA: i16 = 0;
pub(super) const DATA_END: i16 = 4;
/// Where a `struct xdp_md` has the queue that a frame came on.
pub(super) const RX_QUEUE_INDEX: i16 = 16;

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

// SAFETY: no pointers.
unsafe impl BpfCommand for MapCreate {
    const NUMBER: c_int = MAP_CREATE;
}

// SAFETY: it returns a descriptor.
unsafe impl BpfOpens for MapCreate {}

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
unsafe impl BpfCommand for MapUpdate<'_> {
    const NUMBER: c_int = MAP_UPDATE;
}

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
unsafe impl BpfCommand for ProgLoad<'_> {
    const NUMBER: c_int = PROG_LOAD;
}

// SAFETY: it returns a descriptor.
unsafe impl BpfOpens for ProgLoad<'_> {}

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
unsafe impl BpfCommand for LinkCreate {
    const NUMBER: c_int = LINK_CREATE;
}

// SAFETY: it returns a descriptor.
unsafe impl BpfOpens for LinkCreate {}

#[repr(C)]
struct LinkUpdate {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

// SAFETY: no pointers.
unsafe impl BpfCommand for LinkUpdate {
    const NUMBER: c_int = LINK_UPDATE;
}

/// Sockets by number, which an XDP program hands frames to.
pub(super) struct SocketMap(OwnedFd);

impl SocketMap {
    /// A map for this many sockets.
    pub(super) fn new(sockets: u32) -> Result<Self> {
        create_map(MAP_TYPE_XSKMAP, sockets).map(Self)
    }

    /// Enters a socket.
    pub(super) fn set(&self, number: u32, socket: &OwnedFd) -> Result<()> {
        update_map(&self.0, number, socket.as_raw_fd() as u32)
    }

    /// The map's descriptor, for programs.
    pub(super) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// Numbers by number, which programs look up and anybody may change.
#[derive(Debug)]
pub(super) struct NumberMap(OwnedFd);

impl NumberMap {
    /// A map for the numbers below this one, with zeros.
    pub(super) fn new(entries: u32) -> Result<Self> {
        create_map(MAP_TYPE_ARRAY, entries).map(Self)
    }

    /// Sets what is there for a number.
    pub(super) fn set(&self, number: u32, to: u32) -> Result<()> {
        update_map(&self.0, number, to)
    }

    /// The map's descriptor, for programs.
    pub(super) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

fn create_map(map_type: u32, max_entries: u32) -> Result<OwnedFd> {
    let map = MapCreate { map_type, key_size: 4, value_size: 4, max_entries, flags: 0 };
    sys::bpf_open(&map)
}

fn update_map(map: &OwnedFd, key: u32, value: u32) -> Result<()> {
    let update = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: Pointer::to(&key),
        value: Pointer::to(&value),
        flags: 0,
    };
    sys::bpf(&update).map(drop)
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
    sys::bpf_open(&program)
}

/// A program for sockets, such as a filter.
///
/// # Errors
/// The kernel's.
pub(super) fn load_for_sockets(program: &[Line]) -> Result<OwnedFd> {
    load(PROG_TYPE_SOCKET_FILTER, &assemble(program), 0, 0)
}

/// A program for drivers; `pieces` lets it be given frames in several pieces.
///
/// # Errors
/// The kernel's.
pub(super) fn load_for_driver(program: &[Line], pieces: bool) -> Result<OwnedFd> {
    let flags = if pieces { HAS_FRAGMENTS } else { 0 };
    load(PROG_TYPE_XDP, &assemble(program), flags, ATTACH_XDP)
}

/// A program that is attached to an interface until this is dropped.
pub(super) struct Attached(OwnedFd);

impl Attached {
    fn attach(program: &OwnedFd, ifindex: u32, attach_type: u32, flags: u32) -> Result<Self> {
        let program = program.as_raw_fd() as u32;
        let link = LinkCreate { program, ifindex, attach_type, flags, relative: [0; 2] };
        sys::bpf_open(&link).map(Self)
    }

    /// Attaches an XDP program, in the driver or in the kernel's stack.
    ///
    /// # Errors
    /// The kernel's; `EBUSY` or `EEXIST` if another program is attached.
    pub(super) fn xdp(program: &OwnedFd, ifindex: u32, in_driver: bool) -> Result<Self> {
        let mode = if in_driver { XDP_IN_DRIVER } else { XDP_GENERIC };
        Self::attach(program, ifindex, ATTACH_XDP, mode)
    }

    /// Lets another program take its place; no frame is without one.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn replace(&self, program: &OwnedFd) -> Result<()> {
        let (link, program) = (self.0.as_raw_fd() as u32, program.as_raw_fd() as u32);
        let update = LinkUpdate { link, program, flags: 0, old_program: 0 };
        sys::bpf(&update).map(drop)
    }
}

/// A filter that lets answers of neighbours through: ARP replies and IPv6 neighbour
/// advertisements; those that come in on an interface, or those that the host sends on it.
///
/// # Errors
/// The kernel's.
pub(super) fn only_neighbours(sent_by_host: bool) -> Result<OwnedFd> {
    load_for_sockets(&[
        Do(copy(6, 1)),
        Do(load_memory(WORD, 0, 6, PACKET_TYPE)),
        If(
            if sent_by_host { NOT_EQUAL } else { EQUAL },
            0,
            0,
            i32::from(libc::PACKET_OUTGOING),
            "drop",
        ),
        Do(load_memory(WORD, 0, 6, PROTOCOL)),
        If(EQUAL, 0, 0, in_frame(ARP), "ARP"),
        If(NOT_EQUAL, 0, 0, in_frame(IPV6), "drop"),
        Do(load_network(BYTE, None, 6)),
        If(NOT_EQUAL, 0, 0, ICMPV6, "drop"),
        Do(load_network(BYTE, None, 40)),
        If(EQUAL, 0, 0, NEIGHBOR_ADVERTISEMENT, "keep"),
        If(ALWAYS, 0, 0, 0, "drop"),
        Label("ARP"),
        Do(load_network(HALF, None, 6)),
        If(EQUAL, 0, 0, 2, "keep"),
        Label("drop"),
        Do(set(0, 0)),
        Do(EXIT),
        Label("keep"),
        Do(set(0, 0xffff)),
        Do(EXIT),
    ])
}

/// Keeps the host's own protocols from the frames that come in on an interface: they see none.
/// AF_PACKET sockets see all.
///
/// # Errors
/// The kernel's; before Linux 6.6 it cannot.
pub(super) fn keep_from_host(ifindex: u32) -> Result<Attached> {
    let program = load(PROG_TYPE_SCHED_CLS, &[set(0, TCX_DROP), EXIT], 0, ATTACH_TCX_INGRESS)?;
    Attached::attach(&program, ifindex, ATTACH_TCX_INGRESS, 0)
}
