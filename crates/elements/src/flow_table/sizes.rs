//! Sizes from which a table does something else. What it gives does not depend on them.

/// See the module.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    /// Flows of each class that are removed before a pool's tree is asked, and further candidates that are tried if
    /// there are more to remove.
    pub(super) removed: u32,
    /// Flows that are looked at for a batch once pools, timeouts or the capacity changed.
    pub(super) looked_at: usize,
    /// Of a pool's numbers, multiples of this are counted; a power of two.
    pub(super) counted: u32,
    /// From so many counted numbers on, groups are crowded. In others, the first free number is at most about as many
    /// times `counted` away.
    pub(super) crowded: u32,
    /// Smaller pools can be full before so many counted numbers are taken. Their groups have a tree once
    /// somebody searches it, which notes what is taken: each number once, so that on average it costs
    /// a flow no more than a number.
    pub(super) small_pool: u32,
}

impl Sizes {
    pub(super) const USUAL: Self =
        Self { removed: 1024, looked_at: 1024, counted: 32, crowded: 16, small_pool: 2 * 32 * 16 };

    /// With these, tables of a few flows come to all that large ones do.
    #[cfg(test)]
    pub(super) const SMALL: Self =
        Self { removed: 20, looked_at: 4, counted: 8, crowded: 1, small_pool: 64 };

    #[inline]
    pub(super) fn is_counted(&self, number: u32) -> bool {
        number & (self.counted - 1) == 0
    }
}
