//! Records under stable numbers, in chunks, so that growing never moves any.

/// Records of the first chunk; each further one has twice as many.
const FIRST: usize = 1024;

/// A record that has room for the number of another while it is not in use.
pub(crate) trait Linked: Sized {
    /// One that is not in use, and leads to none.
    const UNUSED: Self;

    fn link(&mut self) -> &mut u32;
}

/// How many records on it is prepared that one is kept.
const NEAR: u32 = 6;

/// No record.
pub(crate) const NONE: u32 = u32::MAX;

/// See the module.
pub(crate) struct Slab<T> {
    /// All but the last are full. Memory is only touched when used.
    chunks: Vec<Vec<T>>,
    /// The first and the last of the records that were given up and are not in use again, in the order in which they
    /// were: records that are given up in the order in which they came stay in it, so that those that follow one
    /// another mostly lie side by side.
    free: u32,
    last: u32,
    used: usize,
    room: usize,
}

/// The chunk of a record, and its place there.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let number = number as usize + FIRST;
    let size = number.ilog2();
    ((size - FIRST.ilog2()) as usize, number ^ 1 << size)
}

impl<T: Linked> Slab<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, last: NONE, used: 0, room: 0 }
    }

    /// Number of records in use.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Number of records that were ever in use: no number is greater.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &T {
        let (chunk, at) = place(number);
        &self.chunks[chunk][at]
    }

    /// Prefetches a record.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        let (chunk, at) = place(number);
        if let Some(chunk) = self.chunks.get(chunk) {
            classify::prefetch(chunk, at);
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        let (chunk, at) = place(number);
        &mut self.chunks[chunk][at]
    }

    /// The number of the record that is kept next.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        if self.free == NONE { self.room as u32 } else { self.free }
    }

    /// Keeps a record and returns its number.
    #[inline]
    pub(crate) fn insert(&mut self, record: T) -> u32 {
        self.used += 1;
        if self.free == NONE {
            self.grow();
        }
        let number = self.free;
        let place = self.get_mut(number);
        let next = *place.link();
        *place = record;
        self.free = next;
        // Where one of the next will be kept.
        self.prefetch(next.wrapping_add(NEAR));
        number
    }

    /// Makes a record that is not in use.
    #[inline(never)]
    fn grow(&mut self) {
        let size = FIRST << self.chunks.len();
        if self.chunks.last().is_none_or(|last| last.len() == size / 2) {
            let mut chunk = Vec::with_capacity(size);
            classify::prefer_huge_pages(chunk.spare_capacity_mut());
            self.chunks.push(chunk);
        }
        let at = self.chunks.len() - 1;
        self.chunks[at].push(T::UNUSED);
        (self.free, self.last) = (self.room as u32, self.room as u32);
        self.room += 1;
    }

    /// Gives up records that are linked, from the first to the last.
    #[inline]
    pub(crate) fn remove_linked(&mut self, first: u32, last: u32, count: usize) {
        *self.get_mut(last).link() = NONE;
        match self.free {
            NONE => self.free = first,
            _ => *self.get_mut(self.last).link() = first,
        }
        self.last = last;
        self.used -= count;
    }

    /// Gives a record up.
    #[inline]
    pub(crate) fn remove(&mut self, number: u32) {
        self.remove_linked(number, number, 1);
    }
}

/// Values beside the records of a [`Slab`], by the records' numbers. They never move either.
pub(crate) struct Beside<T>(Vec<Vec<T>>);

impl<T: Copy + Default> Beside<T> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> &T {
        let (chunk, at) = place(number);
        &self.0[chunk][at]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut T {
        let (chunk, at) = place(number);
        &mut self.0[chunk][at]
    }

    /// Prefetches a value.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        let (chunk, at) = place(number);
        if let Some(chunk) = self.0.get(chunk) {
            classify::prefetch(chunk, at);
        }
    }

    /// Sets a value; those before it that were never set are the default.
    #[inline]
    pub(crate) fn set(&mut self, number: u32, value: T) {
        let (chunk, at) = place(number);
        match self.0.get_mut(chunk).and_then(|chunk| chunk.get_mut(at)) {
            Some(place) => *place = value,
            None => self.grow(chunk, at, value),
        }
    }

    #[inline(never)]
    fn grow(&mut self, chunk: usize, at: usize, value: T) {
        while self.0.len() <= chunk {
            let mut new = Vec::with_capacity(FIRST << self.0.len());
            classify::prefer_huge_pages(new.spare_capacity_mut());
            self.0.push(new);
        }
        self.0[chunk].resize(at, T::default());
        self.0[chunk].push(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for (u32, u32) {
        const UNUSED: Self = (NONE, 0);

        fn link(&mut self) -> &mut u32 {
            &mut self.0
        }
    }

    #[test]
    fn places_are_taken_again_in_the_order_in_which_they_were_given_up() {
        let mut slab = Slab::new();
        (0..8).for_each(|n| assert_eq!(slab.insert((NONE, n)), n));
        // Three that are linked, and one more.
        (slab.get_mut(5).0, slab.get_mut(2).0) = (2, 7);
        slab.remove_linked(5, 7, 3);
        slab.remove(0);
        assert_eq!((slab.len(), slab.next()), (4, 5));
        assert_eq!([0; 5].map(|_| slab.insert((NONE, 0))), [5, 2, 7, 0, 8]);
        assert_eq!((slab.len(), slab.next()), (9, 9));
    }

    #[test]
    fn records_stay_where_they_are() {
        let mut slab = Slab::new();
        for n in 0..10_000 {
            assert_eq!(slab.insert((0, n)), n);
        }
        for n in (0..10_000).step_by(3) {
            slab.remove(n);
        }
        assert_eq!((slab.len(), slab.room()), (6666, 10_000));
        (0..3334).for_each(|n| assert_eq!(slab.insert((0, n)) % 3, 0));
        assert_eq!(slab.insert((0, 0)), 10_000);
        assert!((0..10_000u32).all(|n| n.is_multiple_of(3) || slab.get(n).1 == n));
    }

    #[test]
    fn values_stand_beside_their_records() {
        let mut beside = Beside::new();
        for n in [0, 5000, 1023, 1024, 3, 0] {
            beside.set(n, n + 1);
        }
        *beside.get_mut(1023) += 1;
        let all = [0, 3, 1023, 1024, 5000].map(|n| *beside.get(n));
        assert_eq!(all, [1, 4, 1025, 1025, 5001]);
        assert_eq!([2, 4999].map(|n| *beside.get(n)), [0, 0]);
        beside.prefetch(1_000_000);
    }
}
