//! Whether the flow cache pays. A line costs several times what it saves at a packet, so it must be used some
//! times; where flows do not come again, or are so many that lines give way to others before, elements
//! do better.

/// Packets after which it is judged whether looking them up pays.
const STRETCH: usize = 1 << 17;
/// It does if more than one of so many is of a flow that came before.
pub(super) const SHARE: usize = 8;
/// If not, so many packets go by unseen.
const UNSEEN: usize = 7 * STRETCH;
/// Lines after which it is first judged whether they pay. Twice as many each time that they do not: perhaps there were
/// too few of them yet.
const FIRST_TRIAL: usize = 1 << 16;
const LONGEST_TRIAL: usize = 1 << 22;
/// How often lines must be used to pay, on average.
const USES: usize = 4;
/// If they are not, so many packets for each go by unseen.
const REST: usize = 8;

/// What was seen of packets.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// How many were of flows that did not come lately.
    pub(super) new: usize,
    /// How many used lines.
    pub(super) hits: usize,
    /// How many made lines, or tried to.
    pub(super) lines: usize,
}

/// See the module.
pub(super) struct Watch {
    /// Packets that are still to go by unseen.
    unseen: usize,
    packets: usize,
    new: usize,
    hits: usize,
    lines: usize,
    trial: usize,
    /// Whether lines paid when it was last judged.
    paid: bool,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self { unseen: 0, packets: 0, new: 0, hits: 0, lines: 0, trial: FIRST_TRIAL, paid: false }
    }

    /// Whether these packets are not to be looked up.
    #[inline]
    pub(super) fn passes_over(&mut self, packets: usize) -> bool {
        let passes = self.unseen > 0;
        self.unseen = self.unseen.saturating_sub(packets);
        passes
    }

    /// So many packets were looked up.
    #[inline]
    pub(super) fn saw(&mut self, packets: usize, seen: Seen) {
        self.packets += packets;
        self.new += seen.new;
        self.hits += seen.hits;
        self.lines += seen.lines;
        if self.packets >= STRETCH {
            if (self.packets - self.new) * SHARE <= self.packets {
                self.unseen = UNSEEN;
            }
            (self.packets, self.new) = (0, 0);
        }
        if self.lines >= self.trial {
            self.judge();
        }
    }

    #[cold]
    fn judge(&mut self) {
        let paid = self.hits >= self.lines * USES;
        if !paid {
            self.unseen = self.lines * REST;
            self.trial = if self.paid { FIRST_TRIAL } else { LONGEST_TRIAL.min(2 * self.trial) };
        }
        (self.paid, self.hits, self.lines) = (paid, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_flows_that_never_come_again_go_by_unseen_for_a_while() {
        let mut watch = Watch::new();
        let mut stretch = |new: usize| {
            let mut unseen = 0;
            for i in 0..STRETCH {
                match watch.passes_over(1) {
                    true => unseen += 1,
                    false => watch.saw(1, Seen { new: usize::from(i < new), ..Seen::default() }),
                }
            }
            unseen
        };
        let few = STRETCH / SHARE;
        assert_eq!(stretch(STRETCH - few - 1), 0);
        assert_eq!(stretch(STRETCH - few), 0, "enough came again before");
        let unseen: Vec<usize> = (0..UNSEEN / STRETCH).map(|_| stretch(STRETCH)).collect();
        assert!(unseen.iter().all(|&count| count == STRETCH), "{unseen:?}");
        assert_eq!(stretch(0), 0, "they are looked at again");
        assert_eq!(stretch(STRETCH), 0, "and came again");
    }

    /// Makes so many lines, each of which is used so often; how many packets go by unseen then.
    fn rest_after(watch: &mut Watch, lines: usize, uses: usize) -> usize {
        watch.saw(0, Seen { lines, hits: lines * uses, new: 0 });
        let mut unseen = 0;
        while watch.passes_over(1) {
            unseen += 1;
        }
        unseen
    }

    #[test]
    fn lines_that_are_not_used_are_made_more_and_more_seldom() {
        let mut watch = Watch::new();
        let mut lines = FIRST_TRIAL;
        while lines <= LONGEST_TRIAL {
            assert_eq!(rest_after(&mut watch, lines - 1, 0), 0, "not yet");
            assert_eq!(rest_after(&mut watch, 1, USES - 1), lines * REST);
            lines *= 2;
        }
        assert_eq!(rest_after(&mut watch, LONGEST_TRIAL, USES), 0, "they pay");
        assert_eq!(rest_after(&mut watch, LONGEST_TRIAL, 0), LONGEST_TRIAL * REST);
        assert_eq!(rest_after(&mut watch, FIRST_TRIAL, 0), FIRST_TRIAL * REST, "from the start");
    }
}
