//! The rings of an AF_XDP socket: memory in which this process and the kernel hand one another
//! entries, each at its own end.
#![allow(unsafe_code)]

use std::io::{Error, Result};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys::{self, Mapping};

/// One of a socket's rings: the kernel's name for it, and where it lies.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    option: i32,
    offset: i64,
    place: fn(&libc::xdp_mmap_offsets) -> &libc::xdp_ring_offset,
}

pub(super) const RECEIVE: Kind =
    Kind { option: libc::XDP_RX_RING, offset: 0, place: |all| &all.rx };
pub(super) const SEND: Kind =
    Kind { option: libc::XDP_TX_RING, offset: 0x8000_0000, place: |all| &all.tx };
pub(super) const FILL: Kind =
    Kind { option: libc::XDP_UMEM_FILL_RING, offset: 0x1_0000_0000, place: |all| &all.fr };
pub(super) const COMPLETION: Kind =
    Kind { option: libc::XDP_UMEM_COMPLETION_RING, offset: 0x1_8000_0000, place: |all| &all.cr };

/// A frame, or a piece of one, in the shared memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) options: u32,
}

/// What rings hold: descriptors or addresses.
pub(super) trait Entry: Copy {}

impl Entry for Descriptor {}
impl Entry for u64 {}

/// One end of a ring. `next` is the next entry that this end writes or reads; the other end sees
/// it once it is published.
struct Ring<T> {
    _memory: Mapping,
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    next: u32,
    kind: PhantomData<T>,
}

// SAFETY: the pointers are into the mapping that the ring owns, whatever thread that is on.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Entry> Ring<T> {
    /// Makes a socket's ring of this kind; `size` is a power of two.
    fn new(socket: &OwnedFd, kind: Kind, size: u32) -> Result<Self> {
        debug_assert!(size.is_power_of_two());
        sys::set(socket, libc::SOL_XDP, kind.option, &size)?;
        let offsets: libc::xdp_mmap_offsets =
            sys::get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let place = (kind.place)(&offsets);
        let offset = |at: u64| usize::try_from(at).map_err(Error::other);
        let bytes = size as usize * size_of::<T>();
        let length = offset(place.desc)?.saturating_add(bytes);
        let memory = Mapping::of(socket, length, kind.offset)?;
        let at = |at: u64, size: usize| {
            let at = offset(at)?;
            if at.saturating_add(size) > memory.length() || !at.is_multiple_of(align_of::<u32>()) {
                return Err(Error::other("the kernel places a ring outside of its memory"));
            }
            // SAFETY: `at` is inside of the mapping, as was just seen.
            Ok(unsafe { memory.start().add(at) })
        };
        let word = size_of::<AtomicU32>();
        let entries = at(place.desc, bytes)?.cast::<T>();
        if !entries.is_aligned() {
            return Err(Error::other("the kernel places a ring's entries across words"));
        }
        Ok(Self {
            producer: at(place.producer, word)?.cast(),
            consumer: at(place.consumer, word)?.cast(),
            flags: at(place.flags, word)?.cast(),
            entries,
            size,
            next: 0,
            kind: PhantomData,
            _memory: memory,
        })
    }

    fn word(&self, at: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: the three words lie in the mapping, aligned, as long as the ring lives; the
        // kernel, too, touches them by atomic operations only.
        unsafe { at.as_ref() }
    }

    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is taken modulo the number of entries that the mapping has room for.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }
}

/// A ring that this process writes.
pub(super) struct Producer<T>(Ring<T>);

impl<T: Entry> Producer<T> {
    /// Makes a socket's ring of this kind; `size` is a power of two.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(socket: &OwnedFd, kind: Kind, size: u32) -> Result<Self> {
        Ring::new(socket, kind, size).map(Self)
    }

    /// Entries that were written and that the kernel has not taken.
    #[inline]
    pub(super) fn waiting(&self) -> u32 {
        let taken = self.0.word(self.0.consumer).load(Ordering::Acquire);
        self.0.next.wrapping_sub(taken).min(self.0.size)
    }

    /// Entries for which there is room.
    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.0.size - self.waiting()
    }

    /// Writes an entry; there must be room.
    #[inline]
    pub(super) fn write(&mut self, value: T) {
        let to = self.0.entry(self.0.next);
        // SAFETY: the entry lies in the mapping, and is this end's until it is published.
        unsafe { to.write(value) };
        self.0.next = self.0.next.wrapping_add(1);
    }

    /// Gives the kernel what was written.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.0.word(self.0.producer).store(self.0.next, Ordering::Release);
    }

    /// Whether the kernel sleeps and must be told.
    #[inline]
    pub(super) fn needs_wakeup(&self) -> bool {
        self.0.word(self.0.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that this process reads.
pub(super) struct Consumer<T>(Ring<T>);

impl<T: Entry> Consumer<T> {
    /// Makes a socket's ring of this kind; `size` is a power of two.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(socket: &OwnedFd, kind: Kind, size: u32) -> Result<Self> {
        Ring::new(socket, kind, size).map(Self)
    }

    /// Entries that can be read.
    #[inline]
    pub(super) fn available(&self) -> u32 {
        let written = self.0.word(self.0.producer).load(Ordering::Acquire);
        written.wrapping_sub(self.0.next).min(self.0.size)
    }

    /// Reads an entry; there must be one.
    #[inline]
    pub(super) fn read(&mut self) -> T {
        let from = self.0.entry(self.0.next);
        // SAFETY: the entry lies in the mapping; any bytes are an entry, and the kernel leaves it
        // alone until it is released.
        let value = unsafe { from.read() };
        self.0.next = self.0.next.wrapping_add(1);
        value
    }

    /// Gives the entries that were read back to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        self.0.word(self.0.consumer).store(self.0.next, Ordering::Release);
    }
}

/// The memory that frames lie in, for this process and the kernel.
pub(super) struct Umem(Mapping);

impl Umem {
    /// Memory of this many bytes.
    pub(super) fn new(length: usize) -> Result<Self> {
        Mapping::anonymous(length).map(Self)
    }

    /// Has a socket use it, in chunks of this size.
    pub(super) fn register(&self, socket: &OwnedFd, chunk: u32) -> Result<()> {
        let mut registration: libc::xdp_umem_reg = sys::zero();
        registration.addr = self.0.start().as_ptr().expose_provenance() as u64;
        registration.len = self.0.length() as u64;
        registration.chunk_size = chunk;
        sys::set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)
    }

    /// Copies bytes out; `None` if they are not inside.
    #[inline]
    pub(super) fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        self.0.read(address, to)
    }

    /// Copies bytes in; `None` if they would not be inside.
    #[inline]
    pub(super) fn write(&self, address: u64, from: &[u8]) -> Option<()> {
        self.0.write(address, from)
    }
}
