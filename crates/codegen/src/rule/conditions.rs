//! What a rule matches: bits of fields.

use std::fmt;
use std::hash::Hash;

/// A field that rules of a device match. Its order is that in which fields are written: each stands behind those that
/// it needs.
pub(crate) trait Key: Copy + Ord + Hash + fmt::Debug {
    /// Bits, at most 128.
    fn width(self) -> u16;

    /// All its bits.
    fn ones(self) -> u128 {
        u128::MAX >> (128 - self.width())
    }
}

/// A conjunction: some bits of some fields, in the order of the fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Conditions<K>(Vec<(K, u128, u128)>);

impl<K> Default for Conditions<K> {
    /// What everything matches.
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Key> Conditions<K> {
    /// All bits of a field.
    pub(crate) fn exact(key: K, value: u128) -> Self {
        Self::masked(key, value, key.ones())
    }

    /// Some bits of a field.
    pub(crate) fn masked(key: K, value: u128, mask: u128) -> Self {
        match mask {
            0 => Self::default(),
            mask => Self(vec![(key, value & mask, mask)]),
        }
    }

    /// Fields, numbers and masks.
    pub(crate) fn fields(&self) -> &[(K, u128, u128)] {
        &self.0
    }

    /// Number and mask of a field.
    pub(crate) fn of(&self, key: K) -> Option<(u128, u128)> {
        self.0.iter().find(|one| one.0 == key).map(|one| (one.1, one.2))
    }

    /// What matches both; `None` if nothing does.
    pub(crate) fn and(&self, other: &Self) -> Option<Self> {
        if !self.meets(other) {
            return None;
        }
        let mut all = self.0.clone();
        for &(key, value, mask) in &other.0 {
            match all.binary_search_by_key(&key, |one| one.0) {
                Ok(at) => (all[at].1, all[at].2) = (all[at].1 | value, all[at].2 | mask),
                Err(at) => all.insert(at, (key, value, mask)),
            }
        }
        Some(Self(all))
    }

    /// Whether some packet matches both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let differs = |(key, value, mask): &(K, u128, u128)| {
            other.of(*key).is_some_and(|(v, m)| (value ^ v) & mask & m != 0)
        };
        !self.0.iter().any(differs)
    }

    /// Whether it matches whatever the other matches.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.0.iter().all(|(key, value, mask)| {
            other.of(*key).is_some_and(|(v, m)| mask & !m == 0 && (value ^ v) & mask == 0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    enum Field {
        Service,
        Ttl,
        Destination,
    }

    impl Key for Field {
        fn width(self) -> u16 {
            if self == Field::Destination { 32 } else { 8 }
        }
    }

    #[test]
    fn a_conjunction_is_empty_where_bits_differ() {
        let a = Conditions::masked(Field::Destination, 0x0a00_0000, 0xff00_0000);
        let b = Conditions::masked(Field::Destination, 0x0a01_0000, 0xffff_0000);
        assert_eq!(a.and(&b), Some(b.clone()));
        assert!(a.covers(&b) && !b.covers(&a) && a.meets(&b));
        assert_eq!(b.and(&Conditions::exact(Field::Destination, 0x0a02_0000)), None);
        let both = Conditions::exact(Field::Ttl, 1).and(&Conditions::exact(Field::Service, 2));
        let fields: Vec<Field> = both.unwrap().fields().iter().map(|field| field.0).collect();
        assert_eq!(fields, [Field::Service, Field::Ttl]);
    }
}
