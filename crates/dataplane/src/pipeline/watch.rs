//! Whether the flow cache pays. A line costs as much as several packets by elements, so it must be used some times; where
//! flows do not come again, or lines give way to others before, elements do better. So lines are made on credit, which
//! their use pays back, and packets are no slower for them than by elements, but for what is lent at first and a small share.

/// Packets after which it is judged whether looking them up pays.
const STRETCH: usize = 1 << 17;
/// It does if more than one of so many is of a flow that came before.
pub(super) const SHARE: usize = 8;
/// If not, so many packets go by unseen.
const UNSEEN: usize = 7 * STRETCH;

/// What a line costs, in hundredths of what a packet takes by elements.
const LINE: usize = 512;
/// What each of its uses saves,
const USE: usize = 64;
/// and what every packet may add.
const MORE: usize = 4;
/// What is lent at first, and the most that is put by.
const LENT: usize = LINE << 16;
/// Once nothing is left, lines are made again when so much is: many in a row, as bursts of which all packets are known
/// are quicker.
const PUT_BY: usize = LINE << 11;

/// What was seen of packets.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    /// How many were of flows that did not come lately.
    pub(super) new: usize,
    /// How many were of flows with lines.
    pub(super) known: usize,
    /// How many made lines, or tried to.
    pub(super) lines: usize,
}

/// See the module.
pub(super) struct Watch {
    /// Packets that are still to go by unseen.
    unseen: usize,
    packets: usize,
    new: usize,
    credit: usize,
    /// Whether no lines are made until enough is put by.
    saves: bool,
}

impl Watch {
    pub(super) fn new() -> Self {
        Self { unseen: 0, packets: 0, new: 0, credit: LENT, saves: false }
    }

    /// Whether these packets are not to be looked up.
    #[inline]
    pub(super) fn passes_over(&mut self, packets: usize) -> bool {
        let passes = self.unseen > 0;
        self.unseen = self.unseen.saturating_sub(packets);
        passes
    }

    /// Whether lines may be made.
    #[inline]
    pub(super) fn affords_lines(&self) -> bool {
        !self.saves
    }

    /// So many packets were looked up.
    #[inline]
    pub(super) fn saw(&mut self, packets: usize, seen: Seen) {
        self.packets += packets;
        self.new += seen.new;
        if self.packets >= STRETCH {
            if (self.packets - self.new) * SHARE <= self.packets {
                self.unseen = UNSEEN;
            }
            (self.packets, self.new) = (0, 0);
        }
        let more = self.credit + packets * MORE + seen.known * USE;
        self.credit = more.saturating_sub(seen.lines * LINE).min(LENT);
        self.saves = self.credit < if self.saves { PUT_BY } else { LINE };
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

    /// Makes as many lines as can be afforded.
    fn spend(watch: &mut Watch) -> usize {
        let mut lines = 0;
        while watch.affords_lines() {
            watch.saw(0, Seen { lines: 1, ..Seen::default() });
            lines += 1;
        }
        lines
    }

    #[test]
    fn lines_that_are_used_pay_for_others() {
        let mut watch = Watch::new();
        assert_eq!(spend(&mut watch), LENT / LINE);
        let known = Seen { known: 1, ..Seen::default() };
        (1..PUT_BY / USE).for_each(|_| watch.saw(0, known));
        assert!(!watch.affords_lines(), "not enough for many in a row");
        watch.saw(0, known);
        assert_eq!(spend(&mut watch), PUT_BY / LINE);
        (0..2 * LENT / USE).for_each(|_| watch.saw(0, known));
        assert_eq!(spend(&mut watch), LENT / LINE, "no more is put by");
    }

    #[test]
    fn packets_whose_lines_are_not_used_pay_for_few() {
        let mut watch = Watch::new();
        spend(&mut watch);
        let (mut lines, packets) = (0, 100 * PUT_BY / MORE);
        for _ in 0..packets {
            watch.saw(1, Seen::default());
            lines += spend(&mut watch);
        }
        assert_eq!(lines, packets * MORE / LINE);
    }
}
