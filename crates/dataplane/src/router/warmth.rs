//! How a program's flow cache fills while elements take most bursts.
//!
//! Flows that elements take do not fill it, so a program takes some bursts before each trial. As long as the cache fills and
//! may pay, it takes twice as many each time: what filling costs is the same, however long it takes.

/// Bursts that a program takes before those that are timed.
pub(super) const WARMING: u32 = 32;
/// So many at the most until it is known whether its flow cache fills, and then.
const TRIED_WARMING: u32 = 1 << 8;
const MOST_WARMING: u32 = 1 << 10;
/// A flow cache still fills if its warmth grows by more than chance may do: by so much over the root of the packets that it
/// was asked about, a hundredth for a first trial's.
const WARMER: f32 = 0.4;
/// By so many more hits shows what they save. With less, what it takes to make entries hides that.
const MORE_HITS: f32 = 0.5;
/// As long as that is not known, a program takes no more bursts to fill its flow cache.
const MOST_UNKNOWN: u32 = 1 << 12;

/// How well a program's flow cache knows the packets that it is asked about, since the program began. By how long the
/// program takes, that shows too late: elements may take less time until most flows have an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmth {
    /// Packets that it was asked about.
    pub packets: u64,
    /// Those that had an entry.
    pub found: u64,
    /// How often those that had none came before, each up to three times.
    pub seen: u64,
}

impl Warmth {
    /// What was added since an earlier time.
    fn since(self, before: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(before.packets),
            found: self.found.saturating_sub(before.found),
            seen: self.seen.saturating_sub(before.seen),
        }
    }

    /// The part of the packets that had an entry.
    fn hits(self) -> f32 {
        self.found as f32 / self.packets.max(1) as f32
    }

    /// How far packets are on the path to an entry, on average: halfway when they came three times.
    fn progress(self) -> f32 {
        self.hits() + self.seen as f32 / (6 * self.packets).max(1) as f32
    }
}

/// See the module.
pub(super) struct Filling {
    /// Bursts that the program takes before those that are timed.
    bursts: u32,
    /// What it took so far, since it last was not to go on.
    taken: u32,
    /// How well the flow cache knew packets when the last trial ended, and when this one began.
    known: Warmth,
    began: Warmth,
    /// How far packets were on the path to an entry at the most.
    furthest: f32,
    /// In the first trial, the part that had an entry and the nanoseconds per packet of the program.
    cold: Option<(f32, f32)>,
    /// Whether it has not been tried yet if the flow cache fills: flows that come in turn all seem new for a while.
    is_new: bool,
}

impl Default for Filling {
    fn default() -> Self {
        let nothing = Warmth::default();
        Self {
            bursts: WARMING,
            taken: 0,
            known: nothing,
            began: nothing,
            furthest: 0.0,
            cold: None,
            is_new: true,
        }
    }
}

impl Filling {
    /// Bursts that the program takes before those of the next trial that are timed.
    #[inline]
    pub(super) fn bursts(&self) -> u32 {
        self.bursts
    }

    /// The program and its elements took turns: what was learned no longer holds.
    pub(super) fn reset(&mut self) {
        let Self { known, began, is_new, .. } = *self;
        *self = Self { known, began, is_new, ..Self::default() };
    }

    /// A trial begins.
    pub(super) fn begin(&mut self, warmth: Warmth) {
        self.began = warmth;
    }

    /// The program takes all bursts, so its flow cache fills anyhow.
    pub(super) fn skip(&mut self, warmth: Warmth) {
        (self.known, self.is_new) = (warmth, false);
    }

    /// A trial ended, after which elements take bursts. The program took so many nanoseconds per packet in it, and pays with
    /// less than `most`. Whether the flow cache fills, and may pay.
    pub(super) fn go_on(&mut self, warmth: Warmth, cost: f32, most: f32) -> bool {
        let hits = warmth.since(self.began).hits();
        let new = warmth.since(std::mem::replace(&mut self.known, warmth));
        let grows = new.progress() > self.furthest + WARMER / (new.packets as f32).sqrt();
        let is_tried = new.packets > 0 && self.is_new && self.bursts < TRIED_WARMING;
        self.furthest = self.furthest.max(new.progress());
        let goes_on = (grows || is_tried) && self.may_pay(hits, cost, most);
        if goes_on {
            self.bursts = MOST_WARMING.min(self.bursts * 2);
            self.taken += self.bursts;
        } else {
            (self.bursts, self.taken, self.is_new) = (WARMING, 0, false);
        }
        goes_on
    }

    /// Whether the program may take less than `most` once all packets have an entry, given the part that has one.
    fn may_pay(&mut self, hits: f32, cost: f32, most: f32) -> bool {
        let (before, cold) = *self.cold.get_or_insert((hits, cost));
        let more = hits - before;
        if more < MORE_HITS {
            return self.taken < MOST_UNKNOWN;
        }
        cost - (cold - cost) / more * (1.0 - hits) < most
    }
}
