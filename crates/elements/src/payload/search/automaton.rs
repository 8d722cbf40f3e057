//! The automaton that finds patterns of all rules in one pass, and goes on where it stopped.

use aho_corasick::automaton::StateID;
use aho_corasick::{Anchored, dfa, nfa::contiguous};

/// Bytes of patterns up to which a table has an entry for each state and byte: half a kilobyte each.
const SMALL: usize = 64 << 10;

pub(super) enum Automaton {
    Small(dfa::DFA),
    Large(contiguous::NFA),
}

/// Where a search stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped(StateID);

impl Automaton {
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
