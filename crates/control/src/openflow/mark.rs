//! Whose entries are whose: what Catena and its chains write into cookies.

use codegen::openflow::{Class, FlowEntry};

/// The sixteen highest bits of cookies that Catena writes.
const PREFIX: u64 = 0xca7e;

/// Bits that tell a chain.
const CHAIN: u32 = 12;

/// What the cookies of a chain's entries begin with: Catena's prefix, and twelve bits of the chain's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// The bits of a cookie in which it stands.
    pub const MASK: u64 = u64::MAX << Class::BITS;

    /// That of a chain of this name.
    pub fn of(chain: &str) -> Self {
        let folded = crate::number(chain) & ((1 << CHAIN) - 1);
        Self(PREFIX << 48 | folded << Class::BITS)
    }

    /// As a cookie without a class.
    pub fn cookie(self) -> u64 {
        self.0
    }

    /// Whether a cookie bears it.
    pub fn is_on(self, cookie: u64) -> bool {
        cookie & Self::MASK == self.0
    }

    /// Whether a cookie bears that of any chain.
    pub fn is_any_on(cookie: u64) -> bool {
        cookie >> 48 == PREFIX
    }

    /// Marks entries.
    pub fn put_on(self, entries: &mut [FlowEntry]) {
        for entry in entries {
            entry.flow.cookie = self.0 | entry.flow.cookie & !Self::MASK;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_chains_and_others() {
        let (a, b) = (Mark::of("fw"), Mark::of("router"));
        assert_ne!(a, b);
        let class = Class::Exit(3, 77);
        let cookie = a.cookie() | class.number();
        assert!(a.is_on(cookie) && !b.is_on(cookie) && Mark::is_any_on(cookie));
        assert_eq!(Class::of(cookie), Some(class));
        for foreign in [0, 1, class.number(), u64::MAX, cookie ^ 1 << 63] {
            assert!(!Mark::is_any_on(foreign) && !a.is_on(foreign), "{foreign:#x}");
        }
    }
}
