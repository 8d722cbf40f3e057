//! Records under stable numbers, in chunks, so that growing never moves any.

/// Records of a chunk.
const CHUNK: usize = 1024;

/// A record that has room for the number of another while it is not in use.
pub(super) trait Linked: Copy + Default {
    fn link(&mut self) -> &mut u32;
}

/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// See the module.
pub(super) struct Slab<T> {
    chunks: Vec<Box<[T; CHUNK]>>,
    free: u32,
    used: usize,
}

impl<T: Linked> Slab<T> {
    pub(super) fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, used: 0 }
    }

    /// Number of records in use.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Number of records that there is memory for.
    pub(super) fn room(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &T {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    /// Brings a record near.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        if let Some(chunk) = self.chunks.get(number as usize / CHUNK) {
            classify::prefetch(&chunk[..], number as usize % CHUNK);
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    /// Keeps a record and tells its number.
    pub(super) fn insert(&mut self, record: T) -> u32 {
        if self.free == NONE {
            let first = (self.chunks.len() * CHUNK) as u32;
            let mut chunk = vec![T::default(); CHUNK];
            for (i, record) in chunk.iter_mut().enumerate() {
                *record.link() = if i + 1 < CHUNK { first + i as u32 + 1 } else { NONE };
            }
            self.chunks.extend(chunk.into_boxed_slice().try_into().ok());
            self.free = first;
        }
        let number = self.free;
        let place = self.get_mut(number);
        let next = *place.link();
        *place = record;
        self.free = next;
        self.used += 1;
        number
    }

    /// Gives a record up.
    pub(super) fn remove(&mut self, number: u32) -> T {
        let free = self.free;
        let place = self.get_mut(number);
        let record = *place;
        *place.link() = free;
        self.free = number;
        self.used -= 1;
        record
    }
}
