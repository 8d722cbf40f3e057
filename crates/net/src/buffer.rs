//! Memory for packets' bytes: their own, or lent by a device whose frames are received, changed
//! and sent where they lie.
#![allow(unsafe_code)]

use std::any::TypeId;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, slice_from_raw_parts_mut};

/// A handle on memory that a device lends. Whoever has the handle has the memory; dropping it, on any thread,
/// gives the memory back.
///
/// # Safety
/// As long as a handle lives, be it as the pointer that [`Loan::into_raw`] made of it, [`Loan::memory`] is the same
/// initialised bytes; they may be read and written, and nobody does but who has the handle.
pub unsafe trait Loan: Send + 'static {
    /// The handle as a pointer, which gives nothing back by itself.
    fn into_raw(self) -> NonNull<()>;

    /// The memory.
    ///
    /// # Safety
    /// [`Loan::into_raw`] returned the pointer, and it is not used up.
    unsafe fn memory(raw: NonNull<()>) -> NonNull<[u8]>;

    /// The handle again.
    ///
    /// # Safety
    /// [`Loan::into_raw`] returned the pointer, and it is used up by this.
    unsafe fn from_raw(raw: NonNull<()>) -> Self;
}

/// A kind of loans.
#[derive(Debug)]
struct Lender {
    kind: TypeId,
    /// Drops the loan that became this pointer.
    give_back: unsafe fn(NonNull<()>),
}

impl Lender {
    const fn of<L: Loan>() -> &'static Self {
        // SAFETY: whoever calls it keeps to the contract of `from_raw`.
        const { &Self { kind: TypeId::of::<L>(), give_back: |raw| drop(unsafe { L::from_raw(raw) }) } }
    }
}

/// Memory for a packet's bytes. One that was lent is given back when it is dropped.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    /// The loan that it is; not read unless there is a lender.
    loan: NonNull<()>,
    lender: Option<&'static Lender>,
}

// SAFETY: nobody else touches the bytes, and loans may be given back by any thread.
unsafe impl Send for Buffer {}
// SAFETY: through `&Buffer` the bytes are only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// No bytes and no memory.
    pub(crate) const EMPTY: Self =
        Self { start: NonNull::dangling(), length: 0, loan: NonNull::dangling(), lender: None };

    /// A buffer of zeros.
    pub(crate) fn new(length: usize) -> Self {
        let bytes = NonNull::from(Box::leak(vec![0_u8; length].into_boxed_slice()));
        Self { start: bytes.cast(), length, ..Self::EMPTY }
    }

    /// A buffer that somebody lends.
    #[inline]
    pub fn lent<L: Loan>(loan: L) -> Self {
        let loan = loan.into_raw();
        // SAFETY: the pointer was just made.
        let memory = unsafe { L::memory(loan) };
        Self { start: memory.cast(), length: memory.len(), loan, lender: Some(Lender::of::<L>()) }
    }

    /// Puts another in its place; nobody gets this one back, which has no memory or was given back already.
    #[inline]
    pub(crate) fn replace(&mut self, by: Self) {
        debug_assert!(!self.is_own());
        std::mem::forget(std::mem::replace(self, by));
    }

    /// Whether somebody lent it.
    #[inline]
    pub fn is_lent(&self) -> bool {
        self.lender.is_some()
    }

    /// Whether it has memory that nobody lent.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.lender.is_none() && self.length > 0
    }

    /// The loan that it is, as [`Loan::into_raw`] made it, if it is one of this kind. The buffer keeps it.
    #[inline]
    pub fn loan<L: Loan>(&self) -> Option<NonNull<()>> {
        let is_it = |lender: &Lender| lender.kind == TypeId::of::<L>();
        self.lender.is_some_and(is_it).then_some(self.loan)
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        match self.lender {
            // SAFETY: `lent` was given the loan, which is used up here.
            Some(lender) => unsafe { (lender.give_back)(self.loan) },
            None if self.length > 0 => {
                let bytes = slice_from_raw_parts_mut(self.start.as_ptr(), self.length);
                // SAFETY: `new` leaked a box of these bytes.
                drop(unsafe { Box::from_raw(bytes) });
            }
            None => {}
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are this buffer's alone, and initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{Batch, HEADROOM, Header, Packet, Pool};

    use super::*;

    const LENGTH: usize = 512;

    /// Lends boxes, each of which holds on to it.
    struct Shelf(Arc<()>);

    struct FromShelf(Box<Lent>);

    struct Lent {
        bytes: [u8; LENGTH],
        _shelf: Arc<()>,
    }

    // SAFETY: the bytes are in the box that the handle owns.
    unsafe impl Loan for FromShelf {
        fn into_raw(self) -> NonNull<()> {
            NonNull::from(Box::leak(self.0)).cast()
        }

        unsafe fn memory(raw: NonNull<()>) -> NonNull<[u8]> {
            // SAFETY: a box that `into_raw` leaked.
            unsafe { NonNull::new_unchecked(&raw mut (*raw.cast::<Lent>().as_ptr()).bytes) }
        }

        unsafe fn from_raw(raw: NonNull<()>) -> Self {
            // SAFETY: a box that `into_raw` leaked.
            Self(unsafe { Box::from_raw(raw.cast().as_ptr()) })
        }
    }

    impl Shelf {
        fn new() -> Self {
            Self(Arc::new(()))
        }

        fn buffer(&self, bytes: &[u8]) -> Buffer {
            let mut lent = Lent { bytes: [0xee; LENGTH], _shelf: Arc::clone(&self.0) };
            lent.bytes[HEADROOM..HEADROOM + bytes.len()].copy_from_slice(bytes);
            Buffer::lent(FromShelf(Box::new(lent)))
        }

        fn lend(&self, bytes: &[u8], pool: &mut Pool) -> Packet {
            let mut batch = Batch::new();
            pool.lend(&mut batch, [(self.buffer(bytes), HEADROOM, bytes.len())].into_iter());
            batch.pop().unwrap()
        }

        fn out(&self) -> usize {
            Arc::strong_count(&self.0) - 1
        }
    }

    #[test]
    fn what_was_lent_is_changed_in_place_and_given_back() {
        let (shelf, mut pool) = (Shelf::new(), Pool::new());
        let mut packet = shelf.lend(b"abcdef", &mut pool);
        packet.pull(2);
        packet.data_mut()[0] = b'C';
        packet.push(1);
        assert_eq!(packet.data(), b"bCdef");
        assert_eq!(packet.tailroom(), LENGTH - HEADROOM - 6);
        assert_eq!((shelf.out(), pool.outstanding()), (1, 1));
        pool.recycle(packet);
        assert_eq!((shelf.out(), pool.outstanding()), (0, 0));
        // The packet's next bytes are its own, and so is the next packet's memory.
        assert_eq!(pool.packet(b"xyz").data(), b"xyz");
        assert_eq!(pool.outstanding(), 1);
    }

    #[test]
    fn a_batch_goes_back_whoever_lent_what() {
        let (shelf, mut pool) = (Shelf::new(), Pool::new());
        let mut batch = Batch::new();
        for i in 0..10 {
            batch.push(if i % 3 == 0 {
                pool.packet(b"own")
            } else {
                shelf.lend(b"lent", &mut pool)
            });
        }
        assert_eq!(shelf.out(), 6);
        pool.recycle_all(&mut batch);
        assert_eq!((batch.len(), shelf.out(), pool.outstanding()), (0, 0, 0));
    }

    #[test]
    fn copies_and_packets_that_grow_are_not_lent() {
        let (shelf, mut pool) = (Shelf::new(), Pool::new());
        let mut packet = shelf.lend(b"abcdef", &mut pool);
        packet.set_header_offset(Header::Network, 2);
        packet.set_timestamp(7);
        let copy = pool.copy(&packet);
        packet.push(HEADROOM + 1);
        assert_eq!(shelf.out(), 0, "what did not fit has moved");
        assert_eq!(packet.network(), Some(&b"cdef"[..]));
        assert_eq!((copy.network(), copy.timestamp()), (Some(&b"cdef"[..]), 7));
        assert_eq!((copy.loan::<FromShelf>(), packet.loan::<FromShelf>()), (None, None));
        pool.recycle(packet);
        pool.recycle(copy);
        assert_eq!(pool.outstanding(), 0);
    }

    #[test]
    fn a_device_takes_its_own_back_once() {
        let (shelf, mut pool) = (Shelf::new(), Pool::new());
        let mut batch = Batch::new();
        let lent: Vec<_> = (0..4).map(|n| (shelf.buffer(&[n; 3]), HEADROOM, 3)).collect();
        pool.lend(&mut batch, lent.into_iter());
        assert!(batch.iter().zip(0..).all(|(packet, n)| packet.data() == [n; 3]));
        let loans = batch.iter().map(|packet| packet.loan::<FromShelf>().unwrap());
        // SAFETY: all packets are recycled as sent below, before anything else is done to them.
        let taken: Vec<_> = loans.map(|raw| unsafe { FromShelf::from_raw(raw) }).collect();
        pool.recycle_sent::<FromShelf>(2, &mut batch);
        assert_eq!((shelf.out(), pool.outstanding()), (4, 2), "the device has them");
        batch.push(pool.packet(b"own"));
        assert_eq!(batch.as_slice()[2].loan::<FromShelf>(), None);
        pool.recycle_sent::<FromShelf>(3, &mut batch);
        assert_eq!((shelf.out(), pool.outstanding()), (4, 0), "one's own among them");
        assert_eq!(pool.packet(b"again").data(), b"again");
        drop(taken);
        assert_eq!(shelf.out(), 0);
    }

    #[test]
    fn packets_that_are_dropped_anywhere_are_given_back() {
        let (shelf, mut pool) = (Shelf::new(), Pool::new());
        let (one, two) = (shelf.lend(b"one", &mut pool), shelf.lend(b"two", &mut pool));
        pool.let_go();
        std::thread::scope(|threads| {
            let (shelf, other) = (
                &shelf,
                threads.spawn(move || {
                    let mut pool = Pool::new();
                    pool.adopt(&two);
                    assert_eq!(two.data(), b"two");
                    pool.recycle(two);
                    let bare = pool.bare();
                    pool.let_go();
                    (bare, pool.outstanding(), pool.created())
                }),
            );
            let (bare, outstanding, created) = other.join().unwrap();
            assert_eq!((outstanding, created), (0, 0), "what it was handed, it gave back");
            assert_eq!(shelf.out(), 1);
            pool.adopt(&bare);
            pool.recycle(bare);
            let again = shelf.lend(b"again", &mut pool);
            assert_eq!(pool.created(), 2, "there was one to lend to");
            pool.recycle(again);
        });
        drop(pool);
        drop(one);
        assert_eq!(shelf.out(), 0);
    }
}
