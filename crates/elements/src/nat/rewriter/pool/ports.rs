//! Sets of ports.

/// Which of 65,536 numbers are taken.
pub(super) struct PortSet {
    words: Box<[u64; WORDS]>,
}

const WORDS: usize = 1 << 10;

/// Every second number, beginning with 0.
const EVEN: u64 = 0x5555_5555_5555_5555;

impl Default for PortSet {
    fn default() -> Self {
        Self { words: Box::new([0; WORDS]) }
    }
}

impl PortSet {
    pub(super) fn contains(&self, port: u16) -> bool {
        self.words[usize::from(port >> 6)] >> (port & 63) & 1 == 1
    }

    pub(super) fn insert(&mut self, port: u16) {
        self.words[usize::from(port >> 6)] |= 1 << (port & 63);
    }

    pub(super) fn remove(&mut self, port: u16) {
        self.words[usize::from(port >> 6)] &= !(1 << (port & 63));
    }

    /// The first number that is not taken from `start` to `high`, then from `low` on; with a parity, of those that are
    /// odd or even alone.
    pub(super) fn first_free(
        &self,
        (low, high): (u16, u16),
        start: u16,
        odd: Option<bool>,
    ) -> Option<u16> {
        let start = start.clamp(low, high);
        self.first_between(start, high, odd).or_else(|| self.first_between(low, start, odd))
    }

    fn first_between(&self, low: u16, high: u16, odd: Option<bool>) -> Option<u16> {
        let wanted = match odd {
            None => u64::MAX,
            Some(false) => EVEN,
            Some(true) => !EVEN,
        };
        (low >> 6..=high >> 6).find_map(|word| {
            let mut free = !self.words[usize::from(word)] & wanted;
            if word == low >> 6 {
                free &= u64::MAX << (low & 63);
            }
            if word == high >> 6 {
                free &= u64::MAX >> (63 - (high & 63));
            }
            (free != 0).then(|| word << 6 | free.trailing_zeros() as u16)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_numbers_are_found_as_by_search() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2000 {
            let mut ports = PortSet::default();
            let low = random.u16(..);
            let high = low.saturating_add(random.u16(..200));
            let start = random.u16(low..=high);
            let share = random.f64();
            (low..=high).filter(|_| random.f64() < share).for_each(|port| ports.insert(port));
            for odd in [None, Some(false), Some(true)] {
                let fits = |port: &u16| {
                    !ports.contains(*port) && odd.is_none_or(|odd| odd == (port & 1 == 1))
                };
                let expected = (start..=high).chain(low..start).find(fits);
                assert_eq!(ports.first_free((low, high), start, odd), expected);
            }
            ports.insert(start);
            ports.remove(start);
            assert_eq!(ports.first_free((start, start), start, None), Some(start));
        }
    }
}
