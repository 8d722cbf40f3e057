//! Programs and maps of the kernel's virtual machine, through bpf(2): raw instruction words, no
//! compiler and no object files. What is attached here goes when this process does.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};

use super::sys::{self, BpfAttributes};

const MAP_CREATE: c_int = 0;
const MAP_UPDATE: c_int = 2;
const PROG_LOAD: c_int = 5;
const LINK_CREATE: c_int = 28;

const MAP_TYPE_XSKMAP: u32 = 17;
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
/// without one go to the host. `fragments` lets it be given frames in several pieces.
///
/// # Errors
/// The kernel's; `EBUSY` or `EEXIST` if another program is attached.
pub(super) fn redirect_to_sockets(
    ifindex: u32,
    map: &SocketMap,
    in_driver: bool,
    fragments: bool,
) -> Result<Attached> {
    let [first, second] = load_map(1, map.0.as_raw_fd());
    let program = [
        load_word(2, 1, RX_QUEUE_INDEX),
        first,
        second,
        set(3, XDP_PASS),
        call(REDIRECT_MAP),
        EXIT,
    ];
    let flags = if fragments { HAS_FRAGMENTS } else { 0 };
    let program = load(PROG_TYPE_XDP, &program, flags, ATTACH_XDP)?;
    let mode = if in_driver { XDP_IN_DRIVER } else { XDP_GENERIC };
    link(&program, ifindex, ATTACH_XDP, mode).map(Attached)
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
