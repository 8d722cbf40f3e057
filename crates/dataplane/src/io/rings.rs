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

/// A frame, or a piece of one, in a chunk of the shared memory: its owner's alone, as the chunk.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Descriptor {
    address: u64,
    length: u32,
    options: u32,
}

impl Descriptor {
    /// Bytes of the frame or piece, as the kernel says.
    pub(super) fn length(&self) -> usize {
        self.length as usize
    }

    /// Whether another piece of the frame follows.
    pub(super) fn continues(&self) -> bool {
        self.options & libc::XDP_PKT_CONTD != 0
    }
}

/// A chunk of the shared memory that is its owner's alone until a ring hands it to the kernel. There is one of
/// each: [`Umem::new`] makes them, and rings carry them.
#[repr(transparent)]
#[derive(Debug)]
pub(super) struct Chunk(u64);

/// What rings hold.
///
/// # Safety
/// Any bytes are a value.
pub(super) unsafe trait Entry {}

// SAFETY: three integers.
unsafe impl Entry for Descriptor {}
// SAFETY: an integer.
unsafe impl Entry for Chunk {}

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
    /// Entries that can be read, as far as was looked.
    ready: u32,
    kind: PhantomData<T>,
}

/// An offset in this process's memory.
fn offset(at: u64) -> Result<usize> {
    usize::try_from(at).map_err(Error::other)
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
        let bytes = size as usize * size_of::<T>();
        let length = offset(place.desc)?.saturating_add(bytes);
        Self::inside(Mapping::of(socket, length, kind.offset)?, place, size)
    }

    /// A ring in memory that it lies in as the kernel says.
    fn inside(memory: Mapping, place: &libc::xdp_ring_offset, size: u32) -> Result<Self> {
        let at = |at: u64, size: usize| {
            let at = offset(at)?;
            if at.saturating_add(size) > memory.length() || !at.is_multiple_of(align_of::<u32>()) {
                return Err(Error::other("the kernel places a ring outside of its memory"));
            }
            // SAFETY: `at` is inside of the mapping, as was just seen.
            Ok(unsafe { memory.start().add(at) })
        };
        let word = size_of::<AtomicU32>();
        let entries = at(place.desc, size as usize * size_of::<T>())?.cast::<T>();
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
            ready: 0,
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

    /// Writes an entry; there must be room. That is not asserted: a chunk that comes back shows that the kernel took
    /// its entry out of the fill ring, but [`Producer::room`] may show it later, as the kernel hands over a frame
    /// before it publishes what it took for it.
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

    /// Whether the kernel sleeps and must be woken.
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
    pub(super) fn available(&mut self) -> u32 {
        let written = self.0.word(self.0.producer).load(Ordering::Acquire);
        self.0.ready = written.wrapping_sub(self.0.next).min(self.0.size);
        self.0.ready
    }

    /// Reads an entry, if there was one when [`Consumer::available`] last looked.
    #[inline]
    pub(super) fn read(&mut self) -> Option<T> {
        self.0.ready = self.0.ready.checked_sub(1)?;
        let from = self.0.entry(self.0.next);
        // SAFETY: the entry lies in the mapping; any bytes are an entry, which is read once, and the
        // kernel leaves it alone until it is released. A chunk that the kernel hands over was handed to it.
        let value = unsafe { from.read() };
        self.0.next = self.0.next.wrapping_add(1);
        Some(value)
    }

    /// Gives the entries that were read back to the kernel.
    #[inline]
    pub(super) fn release(&mut self) {
        self.0.word(self.0.consumer).store(self.0.next, Ordering::Release);
    }
}

/// The memory that frames lie in, for the kernel and all workers. Whoever has a chunk, and nobody else, touches its bytes.
pub(super) struct Umem {
    memory: Mapping,
    /// Bytes of a chunk.
    chunk: usize,
}

// SAFETY: bytes are read and written through chunks and descriptors only, of which one thread has each.
unsafe impl Sync for Umem {}

impl Umem {
    /// Memory of so many chunks of this size; all of them.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(count: usize, chunk: usize) -> Result<(Self, impl Iterator<Item = Chunk>)> {
        let memory = Mapping::anonymous(count.saturating_mul(chunk))?;
        let chunks = (0..count).map(move |i| Chunk((i * chunk) as u64));
        Ok((Self { memory, chunk }, chunks))
    }

    /// Has a socket use it.
    pub(super) fn register(&self, socket: &OwnedFd) -> Result<()> {
        sys::register(socket, &self.memory, self.chunk as u32)
    }

    /// Bytes of a chunk.
    pub(super) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Copies a frame's first bytes out; `None` if they are not inside of a chunk.
    #[inline]
    pub(super) fn read(&self, frame: &Descriptor, to: &mut [u8]) -> Option<()> {
        let inside = frame.address as usize % self.chunk + to.len() <= self.chunk;
        inside.then(|| self.memory.read(frame.address, to))?
    }

    /// The chunk that a frame lies in, which is not read any more.
    pub(super) fn emptied(&self, frame: Descriptor) -> Chunk {
        self.whole(Chunk(frame.address))
    }

    /// A chunk from its first byte on; the kernel names it by any.
    pub(super) fn whole(&self, Chunk(address): Chunk) -> Chunk {
        Chunk(address - address % self.chunk as u64)
    }

    /// Writes a frame, or a piece of one that `continues`, into a chunk, as much of it as there is room for.
    #[inline]
    pub(super) fn write(&self, Chunk(address): Chunk, from: &[u8], continues: bool) -> Descriptor {
        let from = &from[..from.len().min(self.chunk)];
        // SAFETY: the caller had the chunk, whose bytes nobody else touches.
        let inside = unsafe { self.memory.write_shared(address, from) }.is_some();
        debug_assert!(inside, "chunks are inside of the memory");
        let options = if continues { libc::XDP_PKT_CONTD } else { 0 };
        Descriptor { address, length: from.len() as u32, options }
    }
}

#[cfg(test)]
mod tests {
    use std::mem::ManuallyDrop;
    use std::thread;

    use super::*;

    const SIZE: u32 = 4;
    const PLACE: libc::xdp_ring_offset =
        libc::xdp_ring_offset { producer: 0, consumer: 64, flags: 128, desc: 192 };

    /// Both ends of a ring. The second is the kernel's, and does not outlive the first.
    fn ends() -> (Ring<Chunk>, ManuallyDrop<Ring<Chunk>>) {
        let memory = Mapping::anonymous(4096).unwrap();
        // SAFETY: it is never dropped, and `carry` borrows both.
        let again = unsafe { memory.again() };
        let ring = |memory| Ring::inside(memory, &PLACE, SIZE).unwrap();
        (ring(memory), ManuallyDrop::new(ring(again)))
    }

    /// Sends so many numbers from one end to the other, each in a thread.
    fn carry(producer: &mut Producer<Chunk>, consumer: &mut Consumer<Chunk>, count: u64) {
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut next = 0;
                while next < count {
                    for _ in 0..producer.room().min((count - next) as u32) {
                        producer.write(Chunk(next));
                        next += 1;
                    }
                    producer.publish();
                    thread::yield_now();
                }
            });
            scope.spawn(move || {
                let mut next = 0;
                while next < count {
                    assert!(consumer.available() <= SIZE);
                    while let Some(Chunk(number)) = consumer.read() {
                        assert_eq!(number, next);
                        next += 1;
                    }
                    consumer.release();
                    thread::yield_now();
                }
                assert_eq!(consumer.available(), 0);
            });
        });
    }

    #[test]
    fn entries_come_once_and_in_order() {
        let count = if cfg!(miri) { 50 } else { 100_000 };
        // Indexes of entries wrap around.
        for first in [0, u32::MAX - 5] {
            let (mut own, mut kernel) = ends();
            for ring in [&mut own, &mut *kernel] {
                ring.next = first;
                for end in [ring.producer, ring.consumer] {
                    ring.word(end).store(first, Ordering::Relaxed);
                }
            }
            let mut producer = Producer(own);
            // Not used after `producer`, whose memory it is in.
            let mut consumer = ManuallyDrop::new(Consumer(ManuallyDrop::into_inner(kernel)));
            carry(&mut producer, &mut consumer, count);
            assert_eq!((producer.room(), producer.needs_wakeup()), (SIZE, false));
        }
    }

    #[test]
    fn a_ring_outside_of_its_memory_is_refused() {
        let place = |change: fn(&mut libc::xdp_ring_offset)| {
            let mut place = PLACE;
            change(&mut place);
            let memory = Mapping::anonymous(4096).unwrap();
            Ring::<Chunk>::inside(memory, &place, SIZE).err().map(|error| error.to_string())
        };
        let outside = Some("the kernel places a ring outside of its memory".to_string());
        assert_eq!(place(|_| ()), None);
        assert_eq!(place(|of| of.desc = 4096 - 31), outside);
        assert_eq!(place(|of| of.desc = 4096 - 32), None);
        assert_eq!(place(|of| of.producer = u64::MAX), outside);
        assert_eq!(place(|of| of.flags = 2), outside);
        let across = Some("the kernel places a ring's entries across words".to_string());
        assert_eq!(place(|of| of.desc = 196), across);
    }
}
