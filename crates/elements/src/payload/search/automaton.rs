//! The automaton that finds patterns of all rules in one pass, and goes on where it stopped.

use aho_corasick::automaton::StateID;
use aho_corasick::{Anchored, dfa, nfa::contiguous};

/// Bytes of patterns up to which a table has an entry for each state and byte. With the rules of Snort's community, 1400 bytes
/// take a quarter to a third less time than without (bench `payload`, two interleaved runs).
const SMALL: usize = 64 << 10;
/// Bytes of memory that a byte of patterns takes at the most, with such a table and without.
const TABLE_BYTES: u64 = 1 << 10;
const NFA_BYTES: u64 = 256;
/// What an automaton takes besides.
const OVERHEAD: u64 = 16 << 10;

pub(super) enum Automaton {
    Small(dfa::DFA),
    Large(contiguous::NFA),
}

/// Where a search stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped(StateID);

impl Automaton {
    /// Bytes of memory that patterns of so many bytes take at the most.
    pub(super) fn bytes_of(patterns: usize) -> u64 {
        let each = if patterns <= SMALL { TABLE_BYTES } else { NFA_BYTES };
        OVERHEAD + patterns as u64 * each
    }

    /// Finds patterns in any case.
    ///
    /// # Errors
    /// It would be too large.
    pub(super) fn new(patterns: &[Vec<u8>]) -> Result<Self, String> {
        let bytes: usize = patterns.iter().map(Vec::len).sum();
        let built = match bytes <= SMALL {
            true => {
                dfa::Builder::new().ascii_case_insensitive(true).build(patterns).map(Self::Small)
            }
            false => {
                let mut builder = contiguous::Builder::new();
                builder.ascii_case_insensitive(true).build(patterns).map(Self::Large)
            }
        };
        built.map_err(|why| why.to_string())
    }

    /// Goes on with more bytes, from the start or where a search stopped. `found` hears of each pattern, and of where it
    /// begins: before these bytes, if below 0.
    pub(super) fn find(
        &self,
        from: Option<Stopped>,
        bytes: &[u8],
        found: impl FnMut(usize, isize),
    ) -> Stopped {
        match self {
            Self::Small(automaton) => find(automaton, from, bytes, found),
            Self::Large(automaton) => find(automaton, from, bytes, found),
        }
    }
}

fn find(
    automaton: &impl aho_corasick::automaton::Automaton,
    from: Option<Stopped>,
    bytes: &[u8],
    mut found: impl FnMut(usize, isize),
) -> Stopped {
    let start = || automaton.start_state(Anchored::No).expect("searches are not anchored");
    let mut state = from.map_or_else(start, |Stopped(state)| state);
    for (at, &byte) in bytes.iter().enumerate() {
        state = automaton.next_state(Anchored::No, state, byte);
        if automaton.is_special(state) && automaton.is_match(state) {
            for n in 0..automaton.match_len(state) {
                let pattern = automaton.match_pattern(state, n);
                let length = automaton.pattern_len(pattern) as isize;
                found(pattern.as_usize(), at as isize + 1 - length);
            }
        }
    }
    Stopped(state)
}

#[cfg(test)]
mod tests {
    use aho_corasick::automaton::Automaton as _;

    use super::*;

    #[test]
    fn automata_take_no_more_memory_than_is_said() {
        let mut rng = fastrand::Rng::with_seed(3);
        for (count, length, bytes) in
            [(1, 1, 0..=255), (200, 60, 0..=255), (3000, 20, b'a'..=b'z'), (9000, 8, 0..=255)]
        {
            let pattern = |_| (0..length).map(|_| rng.u8(bytes.clone())).collect::<Vec<u8>>();
            let patterns: Vec<Vec<u8>> = (0..count).map(pattern).collect();
            let taken = match Automaton::new(&patterns).unwrap() {
                Automaton::Small(table) => table.memory_usage(),
                Automaton::Large(nfa) => nfa.memory_usage(),
            };
            let said = Automaton::bytes_of(count * length);
            assert!(taken as u64 <= said, "{count} of {length}: {taken} > {said}");
        }
    }
}
