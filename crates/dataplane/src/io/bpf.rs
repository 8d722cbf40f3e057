//! Programs and maps of the kernel's virtual machine, through bpf(2): raw instruction words, no
//! compiler and no object files. What is attached here goes when this process does.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd};

use super::sys::{self, BpfCommand, BpfOpens};

const MAP_CREATE: c_int = 0;
const MAP_LOOKUP_COMMAND: c_int = 1;
const MAP_UPDATE: c_int = 2;
const MAP_DELETE: c_int = 3;
const MAP_NEXT_KEY: c_int = 4;
const PROG_LOAD: c_int = 5;
const PROG_TEST_RUN: c_int = 10;
const PROG_BY_ID: c_int = 13;
const MAP_BY_ID: c_int = 14;
const INFO: c_int = 15;
const LINK_CREATE: c_int = 28;
const LINK_UPDATE: c_int = 29;

const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_PERCPU_ARRAY: u32 = 6;
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

pub(super) use AsmLine::{Do, If, Label};
pub(super) use codegen::ebpf::insn::*;

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

/// Bytes of a name, of which the last is 0.
const NAME: usize = 16;

/// A name as the kernel takes it.
fn name(text: &str) -> [u8; NAME] {
    let mut name = [0; NAME];
    for (to, from) in name.iter_mut().zip(text.bytes().take(NAME - 1)) {
        *to = from;
    }
    name
}

fn text(name: &[u8; NAME]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    String::from_utf8_lossy(&name[..end]).into_owned()
}

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; NAME],
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
    fn none() -> Self {
        Self(0, std::marker::PhantomData)
    }

    fn to<T: ?Sized>(what: &'a T) -> Self {
        Self(
            std::ptr::from_ref(what).cast::<u8>().expose_provenance() as u64,
            std::marker::PhantomData,
        )
    }
}

// SAFETY: the pointers are to a key and a value of the sizes that the map has, and are only read.
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
    log: PointerMut<'a>,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME],
    ifindex: u32,
    attach_type: u32,
}

// SAFETY: the pointers are to `count` instructions, to a license that ends with a zero byte, and to
// `log_size` bytes that may be written.
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
    AnyMap::create("", map_type, (4, 4), max_entries, 0)
}

fn update_map(map: &OwnedFd, key: u32, value: u32) -> Result<()> {
    update(map, &key, &value)
}

/// The key and the value have the sizes that the map has.
fn update<K: ?Sized, V: ?Sized>(map: &OwnedFd, key: &K, value: &V) -> Result<()> {
    let update = MapUpdate {
        map: map.as_raw_fd() as u32,
        padding: 0,
        key: Pointer::to(key),
        value: Pointer::to(value),
        flags: 0,
    };
    sys::bpf(&update).map(drop)
}

#[repr(C)]
struct MapLookup<'a> {
    map: u32,
    padding: u32,
    key: Pointer<'a>,
    value: PointerMut<'a>,
    flags: u64,
}

// SAFETY: the pointers are to a key of the size that the map has, and to room for its value, for each
// processor if it has one for each.
unsafe impl BpfCommand for MapLookup<'_> {
    const NUMBER: c_int = MAP_LOOKUP_COMMAND;
}

/// A pointer to something that the kernel fills, and that is borrowed as long.
#[repr(transparent)]
struct PointerMut<'a>(u64, std::marker::PhantomData<&'a mut u8>);

impl<'a> PointerMut<'a> {
    fn none() -> Self {
        Self(0, std::marker::PhantomData)
    }

    fn to(what: &'a mut [u8]) -> Self {
        Self(what.as_mut_ptr().expose_provenance() as u64, std::marker::PhantomData)
    }
}

#[repr(C)]
struct MapDelete<'a> {
    map: u32,
    padding: u32,
    key: Pointer<'a>,
}

// SAFETY: the pointer is to a key of the size that the map has, and is only read.
unsafe impl BpfCommand for MapDelete<'_> {
    const NUMBER: c_int = MAP_DELETE;
}

#[repr(C)]
struct MapNextKey<'a> {
    map: u32,
    padding: u32,
    key: Pointer<'a>,
    next: PointerMut<'a>,
}

// SAFETY: the pointers are to a key of the size that the map has, or to nothing, and to room for another.
unsafe impl BpfCommand for MapNextKey<'_> {
    const NUMBER: c_int = MAP_NEXT_KEY;
}

/// Opens what has a number.
#[repr(C)]
struct ById<const COMMAND: c_int> {
    id: u32,
    next: u32,
    flags: u32,
}

// SAFETY: no pointers.
unsafe impl<const COMMAND: c_int> BpfCommand for ById<COMMAND> {
    const NUMBER: c_int = COMMAND;
}

// SAFETY: it returns a descriptor.
unsafe impl BpfOpens for ById<PROG_BY_ID> {}

// SAFETY: as above.
unsafe impl BpfOpens for ById<MAP_BY_ID> {}

/// The beginning of a `struct bpf_map_info`.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
    key: u32,
    value: u32,
    room: u32,
    flags: u32,
    name: [u8; NAME],
}

/// The beginning of a `struct bpf_prog_info`.
#[repr(C)]
struct ProgInfo<'a> {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    lengths: [u32; 2],
    instructions: [u64; 2],
    loaded: u64,
    user: u32,
    map_count: u32,
    maps: PointerMut<'a>,
    name: [u8; NAME],
}

#[repr(C)]
struct Info<'a> {
    of: u32,
    size: u32,
    info: PointerMut<'a>,
}

// SAFETY: the pointer is to as many bytes as the size says, which may be written; `ask` makes it of nothing else.
unsafe impl BpfCommand for Info<'_> {
    const NUMBER: c_int = INFO;
}

/// What the kernel can tell of a descriptor.
///
/// # Safety
/// The beginning of what `BPF_OBJ_GET_INFO_BY_FD` fills for it: integers, and pointers that are good for writing as
/// many items as the count before them says.
unsafe trait Told {}

// SAFETY: integers.
unsafe impl Told for MapInfo {}

// SAFETY: two lengths of 0 before pointers to nothing; `program_info` counts the maps that there is room for.
unsafe impl Told for ProgInfo<'_> {}

fn ask<T: Told>(of: &OwnedFd, info: &mut T) -> Result<()> {
    let size = size_of::<T>() as u32;
    let info = std::ptr::from_mut(info).expose_provenance() as u64;
    let mut info =
        Info { of: of.as_raw_fd() as u32, size, info: PointerMut(info, std::marker::PhantomData) };
    sys::bpf_answer(&mut info).map(drop)
}

/// What the kernel says of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramInfo {
    pub(super) id: u32,
    pub(super) tag: [u8; 8],
    pub(super) name: String,
    /// Numbers of the maps that it uses.
    pub(super) maps: Vec<u32>,
}

/// The most maps that are asked for.
const MOST_MAPS: usize = 64;

/// What a program is.
///
/// # Errors
/// The kernel's.
pub(super) fn program_info(program: &OwnedFd) -> Result<ProgramInfo> {
    let mut maps = [0; 4 * MOST_MAPS];
    let mut info = ProgInfo {
        kind: 0,
        id: 0,
        tag: [0; 8],
        lengths: [0; 2],
        instructions: [0; 2],
        loaded: 0,
        user: 0,
        map_count: MOST_MAPS as u32,
        maps: PointerMut::to(&mut maps),
        name: [0; NAME],
    };
    ask(program, &mut info)?;
    let (id, tag, name, count) = (info.id, info.tag, text(&info.name), info.map_count as usize);
    let ids = maps.as_chunks().0.iter().map(|id| u32::from_ne_bytes(*id));
    Ok(ProgramInfo { id, tag, name, maps: ids.take(count).collect() })
}

/// The program with this number.
///
/// # Errors
/// The kernel's; only root may ask.
pub(super) fn program_by_id(id: u32) -> Result<OwnedFd> {
    sys::bpf_open(&ById::<PROG_BY_ID> { id, next: 0, flags: 0 })
}

#[repr(C)]
struct TestRun<'a> {
    program: u32,
    verdict: u32,
    size_in: u32,
    size_out: u32,
    data_in: Pointer<'a>,
    data_out: PointerMut<'a>,
    repeat: u32,
    duration: u32,
}

// SAFETY: the pointers are to as many bytes as the sizes beside them say.
unsafe impl BpfCommand for TestRun<'_> {
    const NUMBER: c_int = PROG_TEST_RUN;
}

/// A map of any kind.
#[derive(Debug)]
pub(super) struct AnyMap {
    map: OwnedFd,
    kind: u32,
    sizes: (u32, u32),
}

impl AnyMap {
    fn create(
        text: &str,
        map_type: u32,
        (key_size, value_size): (u32, u32),
        max_entries: u32,
        flags: u32,
    ) -> Result<OwnedFd> {
        let name = name(text);
        let (inner, node) = (0, 0);
        sys::bpf_open(&MapCreate {
            map_type,
            key_size,
            value_size,
            max_entries,
            flags,
            inner,
            node,
            name,
        })
    }

    /// # Errors
    /// The kernel's.
    pub(super) fn new(
        name: &str,
        kind: u32,
        sizes: (u32, u32),
        room: u32,
        flags: u32,
    ) -> Result<Self> {
        let map = Self::create(name, kind, sizes, room, flags)?;
        Ok(Self { map, kind, sizes })
    }

    /// The map with this number, and its name.
    ///
    /// # Errors
    /// The kernel's; only root may ask.
    pub(super) fn by_id(id: u32) -> Result<(String, Self)> {
        let map = sys::bpf_open(&ById::<MAP_BY_ID> { id, next: 0, flags: 0 })?;
        let mut info = MapInfo::default();
        ask(&map, &mut info)?;
        Ok((text(&info.name), Self { map, kind: info.kind, sizes: (info.key, info.value) }))
    }

    /// The kernel's number of it.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn id(&self) -> Result<u32> {
        let mut info = MapInfo::default();
        ask(&self.map, &mut info)?;
        Ok(info.id)
    }

    /// The key behind another one, or the first; none behind the last.
    ///
    /// # Errors
    /// The kernel's, or of a key of another size than the map's.
    pub(super) fn next(&self, behind: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let size = self.sizes.0 as usize;
        if behind.is_some_and(|key| key.len() != size) {
            return Err(std::io::Error::other("a key of another size"));
        }
        let mut next = vec![0; size];
        let ask = MapNextKey {
            map: self.map.as_raw_fd() as u32,
            padding: 0,
            key: behind.map_or_else(Pointer::none, Pointer::to),
            next: PointerMut::to(&mut next),
        };
        match sys::bpf(&ask) {
            Ok(_) => Ok(Some(next)),
            Err(error) if sys::number(&error) == libc::ENOENT => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The map's descriptor, for programs.
    pub(super) fn descriptor(&self) -> i32 {
        self.map.as_raw_fd()
    }

    /// # Errors
    /// The kernel's, or of a key or value of another size than the map's.
    pub(super) fn set(&self, key: &[u8], value: &[u8]) -> Result<()> {
        if (key.len(), value.len()) != (self.sizes.0 as usize, self.sizes.1 as usize)
            || self.kind == MAP_TYPE_PERCPU_ARRAY
        {
            return Err(std::io::Error::other("an entry of another size"));
        }
        update(&self.map, key, value)
    }

    /// Removes what is there.
    ///
    /// # Errors
    /// The kernel's, `ENOENT` if there is nothing, or of a key of another size than the map's.
    pub(super) fn remove(&self, key: &[u8]) -> Result<()> {
        if key.len() != self.sizes.0 as usize {
            return Err(std::io::Error::other("a key of another size"));
        }
        let map = self.map.as_raw_fd() as u32;
        sys::bpf(&MapDelete { map, padding: 0, key: Pointer::to(key) }).map(drop)
    }

    /// Bytes of a key and of a value.
    pub(super) fn sizes(&self) -> (u32, u32) {
        self.sizes
    }

    /// The values of an array that may be mapped, so many bytes in whole pages.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn mapped(&self, bytes: usize) -> Result<sys::Mapping> {
        sys::Mapping::of(&self.map, bytes.next_multiple_of(4096), 0)
    }

    /// What is there, of all processors.
    ///
    /// # Errors
    /// The kernel's, `ENOENT` if there is nothing, or of a key of another size than the map's.
    pub(super) fn get(&self, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        if key.len() != self.sizes.0 as usize {
            return Err(std::io::Error::other("a key of another size"));
        }
        let (copies, size) = match self.kind {
            MAP_TYPE_PERCPU_ARRAY => (processors()?, self.sizes.1.next_multiple_of(8) as usize),
            _ => (1, self.sizes.1 as usize),
        };
        let mut all = vec![0; copies * size];
        let lookup = MapLookup {
            map: self.map.as_raw_fd() as u32,
            padding: 0,
            key: Pointer::to(key),
            value: PointerMut::to(&mut all),
            flags: 0,
        };
        sys::bpf(&lookup)?;
        Ok(all.chunks(size.max(1)).map(<[u8]>::to_vec).collect())
    }
}

/// How many processors there may be, those that may be added included.
fn processors() -> Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = text.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<usize>().ok());
    last.map(|last| last + 1).ok_or_else(|| std::io::Error::other("processors without number"))
}

/// Runs a program on a frame as if it had come in, so many times: what it answers, the frame then, and
/// nanoseconds a time.
///
/// # Errors
/// The kernel's.
pub(super) fn test_run(
    program: &OwnedFd,
    frame: &[u8],
    repeat: u32,
) -> Result<(u32, Vec<u8>, u32)> {
    let mut out = vec![0; frame.len() + 512];
    let mut run = TestRun {
        program: program.as_raw_fd() as u32,
        verdict: 0,
        size_in: frame.len() as u32,
        size_out: out.len() as u32,
        data_in: Pointer::to(frame),
        data_out: PointerMut::to(&mut out),
        repeat,
        duration: 0,
    };
    sys::bpf_answer(&mut run)?;
    let (verdict, size, duration) = (run.verdict, run.size_out as usize, run.duration);
    out.truncate(size);
    Ok((verdict, out, duration))
}

/// A program for drivers as words; what the verifier wrote if it is refused.
///
/// # Errors
/// The kernel's.
pub(super) fn load_words(
    name: &str,
    words: &[u64],
) -> std::result::Result<OwnedFd, (std::io::Error, String)> {
    let named = |log| load_logged(name, PROG_TYPE_XDP, words, 0, ATTACH_XDP, log);
    let error = match named((0, 0, PointerMut::none())) {
        Ok(program) => return Ok(program),
        Err(error) => error,
    };
    let mut log = vec![0; 1 << 24];
    let size = log.len() as u32;
    let refused = named((1, size, PointerMut::to(&mut log)));
    let error = refused.err().unwrap_or(error);
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    Err((error, String::from_utf8_lossy(&log[..end]).into_owned()))
}

fn load(kind: u32, instructions: &[u64], flags: u32, attach_type: u32) -> Result<OwnedFd> {
    load_logged(OWN, kind, instructions, flags, attach_type, (0, 0, PointerMut::none()))
}

/// The name of programs that go when this process does.
const OWN: &str = "catena";

/// With how much the verifier is to write, and where to.
fn load_logged(
    text: &str,
    kind: u32,
    instructions: &[u64],
    flags: u32,
    attach_type: u32,
    (log_level, log_size, log): (u32, u32, PointerMut<'_>),
) -> Result<OwnedFd> {
    let name = name(text);
    let program = ProgLoad {
        prog_type: kind,
        count: instructions.len() as u32,
        instructions: Pointer::to(instructions),
        license: Pointer::to(c"Apache-2.0"),
        log_level,
        log_size,
        log,
        kernel_version: 0,
        flags,
        name,
        ifindex: 0,
        attach_type,
    };
    sys::bpf_open(&program)
}

fn words(program: &[AsmLine]) -> Result<Vec<u64>> {
    assemble(program).map_err(std::io::Error::other)
}

/// A program for sockets, such as a filter.
///
/// # Errors
/// The kernel's.
pub(super) fn load_for_sockets(program: &[AsmLine]) -> Result<OwnedFd> {
    load(PROG_TYPE_SOCKET_FILTER, &words(program)?, 0, 0)
}

/// A program for drivers; `pieces` lets it be given frames in several pieces.
///
/// # Errors
/// The kernel's.
pub(super) fn load_for_driver(program: &[AsmLine], pieces: bool) -> Result<OwnedFd> {
    let flags = if pieces { HAS_FRAGMENTS } else { 0 };
    load(PROG_TYPE_XDP, &words(program)?, flags, ATTACH_XDP)
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
