//! Memory for packets' bytes: their own, or lent by a device whose frames are received, changed
//! and sent where they lie.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, slice_from_raw_parts_mut};

/// How a kind of lent buffers is given back.
#[derive(Debug)]
pub struct Lender {
    /// Gives a buffer back to its owner: what [`Buffer::lent`] was told, and the buffer's start. Any
    /// thread may do it, at any time.
    pub give_back: unsafe fn(owner: NonNull<()>, start: NonNull<u8>),
}

/// Memory for a packet's bytes. One that was lent goes back to its owner when it is dropped.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    /// Who gets it back; not read unless there is a lender.
    owner: NonNull<()>,
    lender: Option<&'static Lender>,
}

// SAFETY: nobody else touches the bytes, and lenders take buffers back from any thread.
unsafe impl Send for Buffer {}
// SAFETY: through `&Buffer` the bytes are only read.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// No bytes and no memory.
    pub(crate) const EMPTY: Self =
        Self { start: NonNull::dangling(), length: 0, owner: NonNull::dangling(), lender: None };

    /// A buffer of zeros.
    pub(crate) fn new(length: usize) -> Self {
        let bytes = NonNull::from(Box::leak(vec![0_u8; length].into_boxed_slice()));
        Self { start: bytes.cast(), length, ..Self::EMPTY }
    }

    /// A buffer that somebody lends.
    ///
    /// # Safety
    /// The `length` bytes from `start` on are initialised, and nobody else touches them until the
    /// buffer is given back, which may happen once.
    #[inline]
    pub unsafe fn lent(
        start: NonNull<u8>,
        length: usize,
        owner: NonNull<()>,
        lender: &'static Lender,
    ) -> Self {
        Self { start, length, owner, lender: Some(lender) }
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

    /// Its owner, if it was lent by this lender.
    #[inline]
    pub fn owner(&self, lender: &'static Lender) -> Option<NonNull<()>> {
        self.lender.is_some_and(|of| std::ptr::eq(of, lender)).then_some(self.owner)
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        match self.lender {
            // SAFETY: it was lent with this owner, and is given back once, here.
            Some(lender) => unsafe { (lender.give_back)(self.owner, self.start) },
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
    use std::sync::Mutex;

    use crate::{Batch, HEADROOM, Header, Packet, Pool};

    use super::*;

    /// Lends boxes, and counts those that are out.
    struct Shelf(Mutex<usize>);

    const LENGTH: usize = 512;

    static FROM_SHELF: Lender = Lender { give_back };

    unsafe fn give_back(owner: NonNull<()>, start: NonNull<u8>) {
        // SAFETY: the owner is a shelf that outlives what it lends, the buffer one of its boxes.
        unsafe {
            *owner.cast::<Shelf>().as_ref().0.lock().unwrap() -= 1;
            drop(Box::from_raw(slice_from_raw_parts_mut(start.as_ptr(), LENGTH)));
        }
    }

    impl Shelf {
        fn take(&self, bytes: &[u8]) -> NonNull<u8> {
            *self.0.lock().unwrap() += 1;
            let mut room = vec![0xee; LENGTH].into_boxed_slice();
            room[HEADROOM..HEADROOM + bytes.len()].copy_from_slice(bytes);
            NonNull::from(Box::leak(room)).cast()
        }

        fn buffer(&self, start: NonNull<u8>) -> Buffer {
            // SAFETY: the bytes come from `take`, which `give_back` frees, and are lent once.
            unsafe { Buffer::lent(start, LENGTH, NonNull::from(self).cast(), &FROM_SHELF) }
        }

        fn lend(&self, bytes: &[u8], pool: &mut Pool) -> Packet {
            let mut batch = Batch::new();
            let lent = (self.buffer(self.take(bytes)), HEADROOM, bytes.len());
            pool.lend(&mut batch, [lent].into_iter());
            batch.pop().unwrap()
        }

        fn out(&self) -> usize {
            *self.0.lock().unwrap()
        }
    }

    #[test]
    fn what_was_lent_is_changed_in_place_and_given_back() {
        let (shelf, mut pool) = (Shelf(Mutex::new(0)), Pool::new());
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
        let (shelf, mut pool) = (Shelf(Mutex::new(0)), Pool::new());
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
        let (shelf, mut pool) = (Shelf(Mutex::new(0)), Pool::new());
        let mut packet = shelf.lend(b"abcdef", &mut pool);
        packet.set_header_offset(Header::Network, 2);
        packet.set_timestamp(7);
        let copy = pool.copy(&packet);
        packet.push(HEADROOM + 1);
        assert_eq!(shelf.out(), 0, "what did not fit has moved");
        assert_eq!(packet.network(), Some(&b"cdef"[..]));
        assert_eq!((copy.network(), copy.timestamp()), (Some(&b"cdef"[..]), 7));
        assert_eq!((copy.owner(&FROM_SHELF), packet.owner(&FROM_SHELF)), (None, None));
        pool.recycle(packet);
        pool.recycle(copy);
        assert_eq!(pool.outstanding(), 0);
    }

    #[test]
    fn a_device_takes_its_own_back_once() {
        let (shelf, mut pool) = (Shelf(Mutex::new(0)), Pool::new());
        let starts: Vec<NonNull<u8>> = (0..4).map(|n| shelf.take(&[n; 3])).collect();
        let mut batch = Batch::new();
        let lent: Vec<_> = starts.iter().map(|&start| (shelf.buffer(start), HEADROOM, 3)).collect();
        pool.lend(&mut batch, lent.into_iter());
        assert!(batch.iter().zip(0..).all(|(packet, n)| packet.data() == [n; 3]));
        let owner = batch.as_slice()[0].owner(&FROM_SHELF).unwrap();
        assert_eq!(owner.as_ptr().addr(), std::ptr::from_ref(&shelf).addr());
        pool.recycle_sent(2, &mut batch, &FROM_SHELF);
        assert_eq!((shelf.out(), pool.outstanding()), (4, 2), "the device has them");
        batch.push(pool.packet(b"own"));
        assert_eq!(batch.as_slice()[2].owner(&FROM_SHELF), None);
        pool.recycle_sent(3, &mut batch, &FROM_SHELF);
        assert_eq!((shelf.out(), pool.outstanding()), (4, 0), "one's own among them");
        assert_eq!(pool.packet(b"again").data(), b"again");
        for start in starts {
            // SAFETY: the packets are gone, and did not give them back.
            unsafe { give_back(owner, start) };
        }
        assert_eq!(shelf.out(), 0);
    }

    #[test]
    fn packets_that_are_dropped_anywhere_are_given_back() {
        let (shelf, mut pool) = (Shelf(Mutex::new(0)), Pool::new());
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
