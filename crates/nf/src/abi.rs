//! The ABI's numbers: `docs/nf-abi.md` explains them. `c/catena_nf.h` has the same.

/// The version; another one is refused.
pub const VERSION: u32 = 2;

/// What every message begins with: its kind, and the version.
pub(crate) mod kind {
    pub(crate) const HELLO: u32 = 0x4e46_0001;
    pub(crate) const ATTACH: u32 = 0x4e46_0002;
    pub(crate) const ATTACHED: u32 = 0x4e46_0003;
    pub(crate) const BEGIN: u32 = 0x4e46_0004;
    pub(crate) const READY: u32 = 0x4e46_0005;
    pub(crate) const REFUSED: u32 = 0x4e46_0006;
    pub(crate) const READ: u32 = 0x4e46_0007;
    pub(crate) const VALUES: u32 = 0x4e46_0008;
    pub(crate) const UPDATE: u32 = 0x4e46_0009;
}

/// Bytes of a message at most, and so of a configuration.
pub const LONGEST_MESSAGE: usize = 1 << 16;

/// Descriptors of a message at most.
pub(crate) const MOST_DESCRIPTORS: usize = 8;

/// Flags of [`kind::ATTACH`].
pub(crate) mod flag {
    /// The NF may write to packets.
    pub(crate) const WRITES: u32 = 1;
    /// The NF has a region of its own, to which packets are copied.
    pub(crate) const COPIES: u32 = 2;
    /// The host keeps state of flows.
    pub(crate) const STORE: u32 = 4;
    /// Packets whose state cannot be read pass the NF, and are dropped else.
    pub(crate) const OPEN: u32 = 8;
}

/// Offsets in a page, in bytes.
pub(crate) mod at {
    /// The last round that its owner has finished.
    pub(crate) const ROUND: usize = 0;
    /// Of the host's page: packets of the round.
    pub(crate) const COUNT: usize = 8;
    /// Of the host's page: how to wait, [`State`](crate::State).
    pub(crate) const STATE: usize = 16;
    /// From here on, what an NF's runtime counts: a word each.
    pub(crate) const RECEIVED: usize = 64;
    pub(crate) const PASSED: usize = 72;
    pub(crate) const DROPPED: usize = 80;
    pub(crate) const MALFORMED: usize = 88;
    pub(crate) const OUT_OF_TURN: usize = 96;
    pub(crate) const BUSY: usize = 104;
    pub(crate) const BATCHES: usize = 112;
    /// An NF's own counters.
    pub(crate) const COUNTERS: usize = 512;
    /// Entries, one a packet.
    pub(crate) const ENTRIES: usize = 4096;
}

/// An NF's own counters at most.
pub const MOST_COUNTERS: usize = 64;
/// An NF's reasons to drop at most.
pub const MOST_REASONS: usize = 32;
/// The reason of packets that the NF before passed on with bounds outside of their buffers.
pub const MALFORMED: u16 = u16::MAX;

/// The reason of packets that were dropped as the state of their flow could not be read.
pub const NO_STATE: u16 = u16::MAX - 1;

/// Bytes of a flow.
pub const FLOW: usize = 40;

/// Bytes that are kept of a flow at most.
pub const LONGEST_VALUE: usize = 1024;

/// In the place of a value's length: there is none.
pub(crate) const ABSENT: u16 = 0xffff;
/// The same: it cannot be read now.
pub(crate) const AWAY: u16 = 0xfffe;

/// Flows that an NF's runtime holds where it is not said.
pub const CACHE: u32 = 1 << 16;

/// Bytes of an entry.
pub(crate) const ENTRY: usize = 32;

/// Packets of a round at most.
pub const MOST_PACKETS: u32 = 1024;

/// Bytes of a page for rounds of so many packets.
pub(crate) fn page_length(capacity: u32) -> usize {
    (at::ENTRIES + ENTRY * capacity as usize).next_multiple_of(4096)
}
