//! System calls, each behind a function that is safe to call.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_ulong, c_void};
use std::io::{Error, Result};
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// Types of which every pattern of bytes is a value.
///
/// # Safety
/// Implemented for integers, and for arrays and `repr(C)` structures of such.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: integers.
unsafe impl Plain for c_int {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: structures of integers.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_nl {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_xdp {}
// SAFETY: as above.
unsafe impl Plain for libc::packet_mreq {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::ucred {}
// SAFETY: an array of integers.
unsafe impl<const N: usize> Plain for [u32; N] {}

/// What options of sockets are set to: the kernel only reads it.
///
/// # Safety
/// There is no address in it, whatever option the kernel takes it for.
pub(super) unsafe trait OptionValue: Plain {}

// SAFETY: shorter than every structure with an address in it.
unsafe impl OptionValue for c_int {}
// SAFETY: as above.
unsafe impl OptionValue for u32 {}
// SAFETY: an interface's number and a kind; no option of this length has an address in these places.
unsafe impl OptionValue for libc::packet_mreq {}
// SAFETY: lengths and counts; as above.
unsafe impl OptionValue for libc::tpacket_req {}

/// A value of zero bytes.
pub(super) fn zero<T: Plain>() -> T {
    // SAFETY: every pattern of bytes is a value of a plain type.
    unsafe { zeroed() }
}

/// What a system call returned, or the error that it left.
fn check(result: c_int) -> Result<c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// The number of the error, 0 if it is none of the kernel's.
pub(super) fn number(error: &Error) -> c_int {
    error.raw_os_error().unwrap_or(0)
}

/// Waits until one of the descriptors is readable or in error; `false` when the time passed or a
/// signal came first.
pub(super) fn wait_readable(on: &[RawFd], longest: Duration) -> bool {
    let mut fds: Vec<libc::pollfd> =
        on.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let timeout = libc::timespec {
        tv_sec: longest.as_secs().min(3600) as libc::time_t,
        tv_nsec: longest.subsec_nanos().into(),
    };
    // SAFETY: `fds` and `timeout` live through the call, the count is that of `fds`, and no
    // signal mask is passed. A number that is no descriptor is reported as such by the kernel.
    let n = unsafe {
        libc::ppoll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, &timeout, std::ptr::null())
    };
    n > 0
}

/// A socket that does not block and is not passed on to other programs.
pub(super) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: takes no pointer; the descriptor it returns is new, so nobody else owns it.
    unsafe { check(libc::socket(domain, kind, protocol)).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// Sets an option of a socket.
pub(super) fn set<T: OptionValue>(
    socket: &OwnedFd,
    level: c_int,
    name: c_int,
    value: &T,
) -> Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast::<c_void>();
    // SAFETY: the kernel reads `size` bytes of the value, which lives through the call, and in which it finds no address.
    unsafe { check(libc::setsockopt(socket.as_raw_fd(), level, name, value, size)).map(drop) }
}

/// Reads an option of a socket.
pub(super) fn get<T: Plain>(socket: &OwnedFd, level: c_int, name: c_int) -> Result<T> {
    let mut value: T = zero();
    let mut size = size_of::<T>() as libc::socklen_t;
    let to = std::ptr::from_mut(&mut value).cast::<c_void>();
    // SAFETY: the kernel writes at most `size` bytes into the value, which may hold any bytes.
    unsafe { check(libc::getsockopt(socket.as_raw_fd(), level, name, to, &mut size))? };
    Ok(value)
}

/// Binds a socket to an address of its family.
pub(super) fn bind<T: Plain>(socket: &OwnedFd, address: &T) -> Result<()> {
    let size = size_of::<T>() as libc::socklen_t;
    let address = std::ptr::from_ref(address).cast::<libc::sockaddr>();
    // SAFETY: the kernel reads `size` bytes of the address, which lives through the call.
    unsafe { check(libc::bind(socket.as_raw_fd(), address, size)).map(drop) }
}

/// The address that a socket is bound to, of its family.
pub(super) fn bound_to<T: Plain>(socket: &OwnedFd) -> Result<T> {
    let mut address: T = zero();
    let mut size = size_of::<T>() as libc::socklen_t;
    let to = std::ptr::from_mut(&mut address).cast::<libc::sockaddr>();
    // SAFETY: the kernel writes at most `size` bytes into the address, which may hold any bytes.
    unsafe { check(libc::getsockname(socket.as_raw_fd(), to, &mut size))? };
    Ok(address)
}

/// A descriptor that is readable while one of these is.
pub(super) fn any_of(of: &[RawFd]) -> Result<OwnedFd> {
    // SAFETY: takes no pointer; the descriptor is new.
    let epoll = unsafe {
        check(libc::epoll_create1(libc::EPOLL_CLOEXEC)).map(|fd| OwnedFd::from_raw_fd(fd))?
    };
    for &fd in of {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        // SAFETY: the event lives through the call.
        unsafe {
            check(libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event))?;
        }
    }
    Ok(epoll)
}

/// Reads a message and forgets it; whether there was one.
pub(super) fn discard(socket: &OwnedFd) -> bool {
    let mut buffer = [0u8; 8192];
    let (to, size) = (buffer.as_mut_ptr().cast::<c_void>(), buffer.len());
    // SAFETY: the kernel writes at most `size` bytes into the buffer.
    let n = unsafe { libc::recv(socket.as_raw_fd(), to, size, libc::MSG_DONTWAIT) };
    // A message that was lost for want of room is one, too.
    n > 0 || (n < 0 && number(&Error::last_os_error()) == libc::ENOBUFS)
}

/// Receives a message that is there already.
pub(super) fn receive_now(socket: &OwnedFd, to: &mut [u8]) -> Result<usize> {
    let (start, size) = (to.as_mut_ptr().cast::<c_void>(), to.len());
    // SAFETY: the kernel writes at most the slice's length into it.
    let n = unsafe { libc::recv(socket.as_raw_fd(), start, size, libc::MSG_DONTWAIT) };
    if n < 0 { Err(Error::last_os_error()) } else { Ok(n as usize) }
}

/// Reads from a descriptor.
pub(super) fn read(fd: &OwnedFd, to: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes at most the slice's length into it.
    let n = unsafe { libc::read(fd.as_raw_fd(), to.as_mut_ptr().cast(), to.len()) };
    if n < 0 { Err(Error::last_os_error()) } else { Ok(n as usize) }
}

/// Writes to a descriptor.
pub(super) fn write(fd: &OwnedFd, from: &[u8]) -> Result<usize> {
    // SAFETY: the kernel reads the slice.
    let n = unsafe { libc::write(fd.as_raw_fd(), from.as_ptr().cast(), from.len()) };
    if n < 0 { Err(Error::last_os_error()) } else { Ok(n as usize) }
}

/// Has a socket of AF_XDP keep frames in this memory, in chunks of this size.
pub(super) fn register(socket: &OwnedFd, memory: &Mapping, chunk: u32) -> Result<()> {
    // SAFETY: a structure of integers.
    let mut registration: libc::xdp_umem_reg = unsafe { zeroed() };
    registration.addr = memory.start.as_ptr().expose_provenance() as u64;
    registration.len = memory.length as u64;
    registration.chunk_size = chunk;
    let size = size_of_val(&registration) as libc::socklen_t;
    let (fd, value) = (socket.as_raw_fd(), (&raw const registration).cast::<c_void>());
    // SAFETY: the kernel reads the structure, which lives through the call. It holds the pages of the mapping itself,
    // also when that is gone.
    unsafe { check(libc::setsockopt(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, value, size)).map(drop) }
}

/// Waits until every program that the kernel is running, and every packet that it is handing on,
/// is through: who looks then at what was changed before sees the change.
pub(super) fn let_packets_through() -> Result<()> {
    /// `MEMBARRIER_CMD_GLOBAL`: waits for a grace period of RCU, under which packets are received.
    const GLOBAL: c_int = 1;
    // SAFETY: takes no pointers.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    check(result as c_int).map(drop)
}

/// Gives this thread the policy of those that run while nothing else does. It cannot be had back
/// without privileges.
pub(super) fn run_when_idle() {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: `none` lives through the call; 0 is the thread that calls. Where the kernel refuses,
    // the thread runs as before.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_IDLE, &raw const none) };
}

/// Has the allocator keep what is given back to it, for the next chain: to give 28 MB back to the kernel takes 4 ms, which
/// packets would wait for, as it falls to the thread that gives back the next large piece.
pub(super) fn keep_memory() {
    // SAFETY: a number is set, for all threads; nothing is touched.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, c_int::MAX);
    }
}

/// Has the kernel send what lies in a socket's ring.
pub(super) fn kick(socket: &OwnedFd) -> Result<()> {
    let fd = socket.as_raw_fd();
    // SAFETY: no bytes and no address are passed.
    let n =
        unsafe { libc::sendto(fd, std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
    if n < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel take the buffers that lie in a socket's fill ring.
pub(super) fn wake(socket: &OwnedFd) {
    let mut fd = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, which lives through the call.
    unsafe { libc::poll(&mut fd, 1, 0) };
}

/// What is asked about an interface by its name.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    /// Numbers and addresses, as the request has them.
    pub(super) value: [u8; 24],
}

impl InterfaceRequest {
    /// Asks about this interface.
    pub(super) fn new(name: &str) -> Result<Self> {
        let mut request = Self { name: [0; libc::IFNAMSIZ], value: [0; 24] };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(Error::from_raw_os_error(libc::ENODEV));
        }
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        Ok(request)
    }

    /// Asks about the interface with this number.
    pub(super) fn of(index: u32) -> Self {
        let mut request = Self { name: [0; libc::IFNAMSIZ], value: [0; 24] };
        request.value[..4].copy_from_slice(&index.to_ne_bytes());
        request
    }

    /// The interface's name.
    pub(super) fn name(&self) -> String {
        let name = self.name.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// The first four bytes of the value as a number.
    pub(super) fn number(&self) -> i32 {
        i32::from_ne_bytes([self.value[0], self.value[1], self.value[2], self.value[3]])
    }
}

/// What can be asked about an interface: requests that keep to [`InterfaceRequest`] and have no address in it.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(super) enum Question {
    Name = 0x8910,
    Flags = 0x8913,
    SetFlags = 0x8914,
    Mtu = 0x8921,
    HardwareAddress = 0x8927,
    Index = 0x8933,
    /// `TUNSETIFF`: has a file be a TAP interface.
    MakeTap = 0x4004_54ca,
}

/// Asks the kernel about an interface.
pub(super) fn ask(fd: &OwnedFd, question: Question, with: &mut InterfaceRequest) -> Result<()> {
    let with = std::ptr::from_mut(with);
    // SAFETY: the structure is laid out as `ifreq`, which the kernel reads and writes.
    unsafe { check(libc::ioctl(fd.as_raw_fd(), question as u32 as _, with)).map(drop) }
}

/// Has a program choose the queue of a TAP interface for each frame.
pub(super) fn steer_tap(tap: &OwnedFd, program: &OwnedFd) -> Result<()> {
    const TUNSETSTEERINGEBPF: c_ulong = 0x8004_54e0;
    let program = program.as_raw_fd();
    // SAFETY: the kernel reads a number where the pointer leads.
    unsafe { check(libc::ioctl(tap.as_raw_fd(), TUNSETSTEERINGEBPF as _, &raw const program)) }
        .map(drop)
}

/// A command of ethtool's whose structure has so many words, the first of which is the command.
#[derive(Clone, Copy)]
pub(super) struct Ethtool<const WORDS: usize>(u32);

/// The driver's name: words 1 to 8.
pub(super) const DRIVER: Ethtool<49> = Ethtool(0x03);
/// Queues: the most of each kind, then how many there are: receiving, sending, other, both.
pub(super) const CHANNELS: Ethtool<9> = Ethtool(0x3c);
/// Whether frames are merged before they are received (generic receive offload).
pub(super) const GRO: Ethtool<2> = Ethtool(0x2b);
pub(super) const SET_GRO: Ethtool<2> = Ethtool(0x2c);
/// Features that share a word, as bits.
pub(super) const FLAGS: Ethtool<2> = Ethtool(0x25);
pub(super) const SET_FLAGS: Ethtool<2> = Ethtool(0x26);

/// Asks the driver of an interface; the words of the structure are given and returned.
pub(super) fn ethtool<const WORDS: usize>(
    fd: &OwnedFd,
    name: &str,
    command: Ethtool<WORDS>,
    mut words: [u32; WORDS],
) -> Result<[u32; WORDS]> {
    const SIOCETHTOOL: c_ulong = 0x8946;
    words[0] = command.0;
    let mut request = InterfaceRequest::new(name)?;
    let pointer = words.as_mut_ptr().expose_provenance().to_ne_bytes();
    request.value[..pointer.len()].copy_from_slice(&pointer);
    let with = std::ptr::from_mut(&mut request);
    // SAFETY: the request holds a pointer to the words, which live through the call and are as many
    // as the command's structure has.
    unsafe { check(libc::ioctl(fd.as_raw_fd(), SIOCETHTOOL as _, with))? };
    Ok(words)
}

/// Memory shared with the kernel, and with no other thread.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Memory of a socket's ring, at an offset that names it, or of a map's values.
    pub(super) fn of(socket: &OwnedFd, length: usize, offset: i64) -> Result<Self> {
        Self::map(length, libc::MAP_SHARED | libc::MAP_POPULATE, socket.as_raw_fd(), offset)
    }

    /// New memory of zeros.
    pub(super) fn anonymous(length: usize) -> Result<Self> {
        Self::map(length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    fn map(length: usize, flags: c_int, fd: RawFd, offset: i64) -> Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place, so nothing that exists is mapped over.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| Error::other("mapped to nothing"))?;
        Ok(Self { start, length })
    }

    /// The same memory for its other end.
    ///
    /// # Safety
    /// One of the two is never dropped, and not used once the other is.
    #[cfg(test)]
    pub(super) unsafe fn again(&self) -> Self {
        Self { start: self.start, length: self.length }
    }

    /// Where it starts.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Its length in bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl Mapping {
    fn at(&self, offset: u64, length: usize) -> Option<NonNull<u8>> {
        let start = usize::try_from(offset).ok()?;
        let inside = start.checked_add(length)? <= self.length;
        // SAFETY: the bytes are inside of the mapping.
        inside.then(|| unsafe { self.start.add(start) })
    }

    /// Copies bytes out; `None` if they are not inside.
    #[inline]
    pub(super) fn read(&self, offset: u64, to: &mut [u8]) -> Option<()> {
        let length = to.len();
        let from = self.at(offset, length)?;
        // SAFETY: the bytes are inside, and `to` is not: it is borrowed, the mapping never is.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(to).cast(), length) };
        Some(())
    }

    /// Copies bytes in; `None` if they would not be inside.
    #[cfg(test)]
    pub(super) fn write(&mut self, offset: u64, from: &[u8]) -> Option<()> {
        // SAFETY: nobody else has the mapping.
        unsafe { self.write_shared(offset, from) }
    }

    /// The same where others have the mapping, too.
    ///
    /// # Safety
    /// Nobody else reads or writes these bytes meanwhile.
    #[inline]
    pub(super) unsafe fn write_shared(&self, offset: u64, from: &[u8]) -> Option<()> {
        let to = self.at(offset, from.len())?;
        // SAFETY: the bytes are inside, and `from` is not: it is borrowed, the mapping never is.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(from).cast(), from.len()) };
        Some(())
    }

    /// A word that the kernel, too, reads and writes; `None` if it is not inside.
    pub(super) fn word(&self, offset: u64) -> Option<&AtomicU32> {
        let word = self.at(offset, size_of::<AtomicU32>())?.cast::<AtomicU32>();
        if !word.is_aligned() {
            return None;
        }
        // SAFETY: it is inside and aligned, and lives as long as the mapping.
        Some(unsafe { word.as_ref() })
    }

    /// Eight bytes that the kernel's programs, too, read and write; `None` if they are not inside.
    pub(super) fn long(&self, offset: u64) -> Option<&AtomicU64> {
        let word = self.at(offset, size_of::<AtomicU64>())?.cast::<AtomicU64>();
        if !word.is_aligned() {
            return None;
        }
        // SAFETY: it is inside and aligned, and lives as long as the mapping.
        Some(unsafe { word.as_ref() })
    }
}

// SAFETY: the mapping is owned, whatever thread that is on.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this memory was mapped by `map`, and whoever points into it is gone with it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A command of bpf(2): the part of `bpf_attr` that it reads.
///
/// # Safety
/// `repr(C)` and laid out as the command's part of `bpf_attr`; the pointers in it are good for the
/// lengths beside them as long as the value lives, and for writing where the command writes.
pub(super) unsafe trait BpfCommand {
    /// The command's number.
    const NUMBER: c_int;
}

/// A command that returns a new descriptor.
///
/// # Safety
/// It does.
pub(super) unsafe trait BpfOpens: BpfCommand {}

/// The system call bpf(2).
pub(super) fn bpf<T: BpfCommand>(command: &T) -> Result<c_int> {
    let size = size_of_val(command);
    // SAFETY: the kernel reads `size` bytes of the attributes, and what their pointers point at;
    // `BpfCommand` promises that these are good.
    let result = unsafe { libc::syscall(libc::SYS_bpf, T::NUMBER, &raw const *command, size) };
    check(result as c_int)
}

/// The same for a command that the kernel writes its answer into.
pub(super) fn bpf_answer<T: BpfCommand>(command: &mut T) -> Result<c_int> {
    let size = size_of_val(command);
    // SAFETY: as above; the kernel also writes integers into the attributes.
    let result = unsafe { libc::syscall(libc::SYS_bpf, T::NUMBER, &raw mut *command, size) };
    check(result as c_int)
}

/// The same for what opens something.
pub(super) fn bpf_open<T: BpfOpens>(command: &T) -> Result<OwnedFd> {
    // SAFETY: the descriptor is new, so nobody else owns it.
    bpf(command).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}
