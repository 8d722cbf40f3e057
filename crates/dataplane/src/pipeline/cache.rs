//! The fused flow cache: what becomes of the packets of a flow, found by one lookup, however many
//! tables are looked up on a packet's path.
//!
//! An entry says everything about packets with the same inputs to all lookups, as far as it does
//! not differ from packet to packet. The tables stay the owners of all state: an entry lives no
//! longer than the flows that it was made from, and dies when one of them changes. It is good as
//! it is until a time (mostly the end of a clock tick, from which on flows expire later); then
//! the flows must be prolonged first.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher};
use std::rc::Rc;

use net::flow::FlowHash;

use crate::router::Warmth;

/// How many numbers an entry can hold.
pub(super) const SLOTS: usize = 6;
/// Entries of a bucket: those that a key may be in.
const BUCKET: usize = 8;
/// Entries that keys move from and to at once when there are more.
const SEGMENT: usize = 64;
/// The tags of a segment's entries, 0 where there is none; the first are there twice, so that those of any key's bucket
/// lie side by side.
type Tags = [u8; SEGMENT + BUCKET];
const FEWEST: usize = 1 << 10;
/// How many keys that were looked up in vain are remembered.
const MISSED: usize = 1 << 21;
/// A key may get an entry if it was looked up in vain so often before: the first packets of a flow change its state, with
/// which its entries go.
pub(super) const OFTEN: u16 = 3;
/// Of such keys one in so many gets one each time, where an entry saves little: to make it takes as long as some ten
/// packets save by it, so short flows would not pay it back.
pub(super) const RARELY: u64 = 8;
/// Bytes that entries and their dependencies may take.
const MOST_BYTES: usize = 512 << 20;
const NONE: u32 = u32::MAX;

/// See the module.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct CacheEntry {
    pub(super) key: [u64; 2],
    /// Until when nothing need be done but what the plan says.
    pub(super) until: u64,
    /// Which conditions on the packet matter, and which of these hold.
    pub(super) relevant: u32,
    pub(super) holds: u32,
    /// The number of the plan.
    pub(super) plan: u32,
    /// Where in the program the key is looked up.
    pub(super) site: u16,
    /// How many flows it was made from.
    pub(super) flows: u16,
    pub(super) slots: [u32; SLOTS],
}

const _: () = assert!(size_of::<CacheEntry>() == 64);

const EMPTY: CacheEntry = CacheEntry {
    key: [0; 2],
    until: 0,
    relevant: 0,
    holds: 0,
    plan: 0,
    site: 0,
    flows: 0,
    slots: [0; SLOTS],
};

/// A flow that an entry was made from, in the list of all entries made from it.
#[derive(Clone, Copy, Debug)]
struct Link {
    number: u32,
    previous: u32,
    next: u32,
    table: u16,
    /// Whether packets prolong it.
    prolonged: bool,
}

impl Link {
    fn member(&self) -> Member {
        Member { table: self.table, number: self.number, prolonged: self.prolonged }
    }
}

/// A flow that an entry is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) table: u16,
    pub(super) number: u32,
    /// Whether packets prolong it.
    pub(super) prolonged: bool,
}

/// Which keys were looked up in vain lately. The programs of a router share it, also with those whose
/// places they take: it is large, and to make another one takes its time.
pub(crate) struct Missed {
    hash: FlowHash,
    /// By a part of a key's hash: another part, and in its lowest bits how often it was looked up, up to
    /// [`OFTEN`]. Empty until a cache looks keys up.
    marks: RefCell<Vec<u16>>,
    coin: Cell<u64>,
}

impl Default for Missed {
    fn default() -> Self {
        let seed = std::hash::RandomState::new().build_hasher().finish();
        Self { hash: FlowHash::new(seed), marks: RefCell::default(), coin: Cell::new(seed) }
    }
}

impl Missed {
    /// Where a key is remembered, and as what.
    #[inline]
    fn place(hash: u64) -> (usize, u16) {
        ((hash >> 28) as usize % MISSED, (hash >> 48) as u16 & !OFTEN)
    }

    /// How often a key was added, up to [`OFTEN`].
    #[inline]
    fn count(&self, hash: u64) -> u16 {
        let (place, mark) = Self::place(hash);
        let last = self.marks.borrow().get(place).copied().unwrap_or(mark | OFTEN);
        if last & !OFTEN == mark { last & OFTEN } else { 0 }
    }

    /// Adds a key; how often it was added before.
    fn add(&self, hash: u64) -> u16 {
        let count = self.count(hash);
        let (place, mark) = Self::place(hash);
        let marks = &mut *self.marks.borrow_mut();
        let Some(last) = marks.get_mut(place) else { return count };
        // Not always, or two keys that share a place would displace each other for ever.
        if *last == 0 || count > 0 || self.draw(2) {
            *last = mark | OFTEN.min(count + 1);
        }
        count
    }

    /// True one time in so many.
    #[inline]
    fn draw(&self, times: u64) -> bool {
        let coin = self.coin.get().wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        self.coin.set(coin);
        coin >> 32 < (1 << 32) / times
    }
}

const _: () = assert!((OFTEN + 1).is_power_of_two());

/// A bucket: the [`BUCKET`] entries of a segment that a key may be in; behind the segment's last comes its first.
#[derive(Clone, Copy, Default)]
pub(super) struct Bucket {
    segment: u32,
    first: u32,
}

impl Bucket {
    /// The number of an entry.
    #[inline]
    fn entry(self, slot: usize) -> usize {
        self.segment as usize * SEGMENT + (self.first as usize + slot) % SEGMENT
    }
}

/// Which entries of a [`Bucket`] have a key's tag: of each the highest bit of a byte.
#[derive(Clone, Copy, Default)]
pub(super) struct Tagged(u64);

impl Tagged {
    const LOW: u64 = u64::MAX / 0xff;

    /// What tells keys of a place apart, mostly.
    #[inline]
    fn tag(hash: u64) -> u8 {
        ((hash >> 56) as u8).max(1)
    }

    #[inline]
    fn new(tags: u64, hash: u64) -> Self {
        let low = Self::LOW * 0x7f;
        let differ = tags ^ (Self::LOW * u64::from(Self::tag(hash)));
        Self(!(((differ & low) + low) | differ | low))
    }

    /// Their numbers in the bucket.
    #[inline]
    fn numbers(self) -> impl Iterator<Item = usize> {
        let next = |rest: &u64| Some(rest & (rest - 1)).filter(|&rest| rest != 0);
        let first = Some(self.0).filter(|&all| all != 0);
        std::iter::successors(first, next).map(|rest| rest.trailing_zeros() as usize / 8)
    }
}

/// See the module.
pub(super) struct FlowCache {
    missed: Rc<Missed>,
    warmth: Cell<Warmth>,
    /// By segment. There are as many segments as there must be, whatever their number (linear hashing: W. Litwin,
    /// 1980), so that no packet waits until all entries have moved.
    entries: Vec<CacheEntry>,
    /// By segment.
    tags: Vec<Tags>,
    used: usize,
    most: usize,
    /// So many for each entry.
    links: Vec<Link>,
    stride: usize,
    /// By table and flow: its first link.
    heads: Vec<Vec<u32>>,
}

impl FlowCache {
    /// An empty cache for entries of at most `stride` flows in so many tables.
    pub(super) fn new(tables: usize, stride: usize, missed: Rc<Missed>) -> Self {
        let each = size_of::<CacheEntry>() + stride * size_of::<Link>();
        let mut most = if stride > 0 { 1 << (MOST_BYTES / each).ilog2() } else { FEWEST };
        let (entries, links) = loop {
            match (reserve(most, 1), reserve(most, stride)) {
                (Some(entries), Some(links)) => break (entries, links),
                _ if most > FEWEST => most /= 2,
                _ => break Default::default(),
            }
        };
        if stride > 0 && missed.marks.borrow().is_empty() {
            missed.marks.replace(vec![0; MISSED]);
        }
        let heads = vec![Vec::new(); tables];
        let mut cache = Self {
            missed,
            warmth: Cell::default(),
            entries,
            tags: Vec::new(),
            used: 0,
            most,
            links,
            stride,
            heads,
        };
        cache.resize(FEWEST);
        cache
    }

    fn resize(&mut self, entries: usize) {
        self.entries.clear();
        self.tags.clear();
        self.links.clear();
        self.add_entries(entries);
        self.heads.iter_mut().for_each(|heads| heads.fill(NONE));
        self.used = 0;
    }

    fn add_entries(&mut self, entries: usize) {
        let free = Link { number: 0, previous: NONE, next: NONE, table: 0, prolonged: false };
        self.entries.resize(self.entries.len() + entries, EMPTY);
        self.tags.resize(self.entries.len() / SEGMENT, [0; _]);
        self.links.resize(self.links.len() + entries * self.stride, free);
    }

    /// Adds a segment for half of what is in the first one that was not halved since their number doubled. Those that
    /// were not are twice as full as others: never more than four tenths, for the average is kept at two. At three,
    /// six keys of a thousand find their buckets full, take others' entries, and have to take one again whenever they come.
    #[cold]
    fn grow(&mut self) {
        let segments = self.entries.len() / SEGMENT;
        let halved = segments - (1 << segments.ilog2());
        self.add_entries(SEGMENT);
        let mut members = Vec::with_capacity(self.stride);
        for at in halved * SEGMENT..(halved + 1) * SEGMENT {
            let entry = self.entries[at];
            let hash = self.hash(entry.key, entry.site);
            if self.is_used(at) && self.bucket(hash).segment as usize != halved {
                members.clear();
                members.extend(self.members(at));
                self.remove(at);
                self.put(hash, entry, &members);
            }
        }
    }

    /// The entries that a key may be in.
    #[inline(always)]
    pub(super) fn bucket(&self, hash: u64) -> Bucket {
        let segments = self.tags.len();
        let mask = usize::MAX >> (segments - 1).leading_zeros();
        let mut segment = hash as usize & mask;
        if segment >= segments {
            segment &= mask >> 1;
        }
        Bucket { segment: segment as u32, first: (hash >> 32) as u32 % SEGMENT as u32 }
    }

    fn is_used(&self, at: usize) -> bool {
        self.tags[at / SEGMENT][at % SEGMENT] != 0
    }

    fn set_tag(&mut self, at: usize, tag: u8) {
        let (tags, slot) = (&mut self.tags[at / SEGMENT], at % SEGMENT);
        tags[slot] = tag;
        if slot < BUCKET {
            tags[SEGMENT + slot] = tag;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        if self.used > 0 {
            self.resize(self.entries.len());
        }
    }

    /// The hash of a key at a site.
    #[inline]
    pub(super) fn hash(&self, key: [u64; 2], site: u16) -> u64 {
        self.missed.hash.two(key[0] ^ u64::from(site) << 48, key[1])
    }

    /// Prefetches the tags of a bucket.
    #[inline]
    pub(super) fn prefetch_bucket(&self, bucket: Bucket) {
        classify::prefetch(&self.tags, bucket.segment as usize);
    }

    /// Which entries of a bucket have the tag of a key; prefetches the first of them.
    #[inline]
    pub(super) fn tagged(&self, bucket: Bucket, hash: u64) -> Tagged {
        let tags = self.tags[bucket.segment as usize][bucket.first as usize..].first_chunk();
        let tagged = Tagged::new(tags.copied().map_or(0, u64::from_le_bytes), hash);
        if let Some(slot) = tagged.numbers().next() {
            classify::prefetch(&self.entries, bucket.entry(slot));
        }
        tagged
    }

    #[inline]
    pub(super) fn entry(&self, at: usize) -> &CacheEntry {
        &self.entries[at]
    }

    #[inline]
    pub(super) fn set_until(&mut self, at: usize, until: u64) {
        self.entries[at].until = until;
    }

    /// Of entries with its tag, that of a key, if these conditions on the packet hold and no others.
    #[inline(always)]
    pub(super) fn find_tagged(
        &self,
        (bucket, tagged): (Bucket, Tagged),
        key: [u64; 2],
        site: u16,
        holds: u32,
    ) -> Option<usize> {
        tagged.numbers().map(|slot| bucket.entry(slot)).find(|&at| {
            let entry = &self.entries[at];
            entry.key == key && entry.holds == holds & entry.relevant && entry.site == site
        })
    }

    /// Prefetches how often a key was looked up in vain.
    #[inline]
    pub(super) fn prefetch_missed(&self, hash: u64) {
        classify::prefetch(&self.missed.marks.borrow(), Missed::place(hash).0);
    }

    /// Notes that a key was looked up in vain; whether to make it an entry, one of so many such keys.
    #[inline]
    pub(super) fn is_frequent(&self, hash: u64, one_of: u64) -> bool {
        let before = self.missed.add(hash);
        self.note(Warmth { seen: before.into(), ..Warmth::default() });
        before >= OFTEN && (one_of == 1 || self.missed.draw(one_of))
    }

    /// Notes that it was asked about so many packets of which so many have an entry.
    #[inline]
    pub(super) fn asked(&self, packets: u32, found: u32) {
        self.note(Warmth { packets: packets.into(), found: found.into(), seen: 0 });
    }

    #[inline]
    fn note(&self, new: Warmth) {
        let Warmth { packets, found, seen } = self.warmth.get();
        self.warmth.set(Warmth {
            packets: packets + new.packets,
            found: found + new.found,
            seen: seen + new.seen,
        });
    }

    /// How well it knows what it is asked about.
    pub(super) fn warmth(&self) -> Warmth {
        self.warmth.get()
    }

    /// Prefetches the links to the flows that an entry was made from.
    #[inline]
    pub(super) fn prefetch_members(&self, at: usize) {
        classify::prefetch(&self.links, at * self.stride);
    }

    /// The flows that an entry was made from.
    pub(super) fn members(&self, at: usize) -> impl Iterator<Item = Member> + '_ {
        let links = &self.links[at * self.stride..][..usize::from(self.entries[at].flows)];
        links.iter().map(Link::member)
    }

    /// Adds an entry, in the place of another if there must be.
    pub(super) fn insert(&mut self, hash: u64, entry: CacheEntry, members: &[Member]) {
        if members.len() > self.stride {
            return;
        }
        if self.used * 10 >= self.entries.len() * 2 && self.entries.len() < self.most {
            self.grow();
        }
        self.put(hash, entry, members);
    }

    fn put(&mut self, hash: u64, entry: CacheEntry, members: &[Member]) {
        let bucket = self.bucket(hash);
        let age = |at: &usize| if self.is_used(*at) { self.entries[*at].until.max(1) } else { 0 };
        let Some(at) = (0..BUCKET).map(|slot| bucket.entry(slot)).min_by_key(age) else { return };
        self.remove(at);
        self.set_tag(at, Tagged::tag(hash));
        self.entries[at] = CacheEntry { flows: members.len() as u16, ..entry };
        self.used += 1;
        for (i, member) in members.iter().enumerate() {
            let Some(heads) = self.heads.get_mut(usize::from(member.table)) else { continue };
            let number = member.number as usize;
            if heads.len() <= number {
                let more = (number + 1).next_power_of_two() - heads.len();
                heads.reserve_exact(more);
                classify::prefer_huge_pages(heads.spare_capacity_mut());
                heads.resize(heads.len() + more, NONE);
            }
            let link = (at * self.stride + i) as u32;
            let next = std::mem::replace(&mut heads[number], link);
            if next != NONE {
                self.links[next as usize].previous = link;
            }
            let Member { table, number, prolonged } = *member;
            let linked = Link { number, previous: NONE, next, table, prolonged };
            self.links[link as usize] = linked;
        }
    }

    /// Whether an entry is that of a key, if these conditions on the packet hold and no others.
    #[inline]
    pub(super) fn is(&self, at: usize, key: [u64; 2], site: u16, holds: u32) -> bool {
        let entry = &self.entries[at];
        let same = entry.key == key && entry.site == site && holds & entry.relevant == entry.holds;
        same && self.is_used(at)
    }

    /// Empties an entry.
    pub(super) fn remove(&mut self, at: usize) {
        if !self.is_used(at) {
            return;
        }
        let first = at * self.stride;
        for link in first..first + usize::from(self.entries[at].flows) {
            let Link { number, previous, next, table, .. } = self.links[link];
            match previous {
                NONE => self.heads[usize::from(table)][number as usize] = next,
                _ => self.links[previous as usize].next = next,
            }
            if next != NONE {
                self.links[next as usize].previous = previous;
            }
        }
        self.set_tag(at, 0);
        self.used -= 1;
    }

    /// Empties all entries that were made from a flow.
    pub(super) fn kill(&mut self, table: u16, number: u32) {
        let first = |cache: &Self| {
            let link = cache.heads.get(usize::from(table))?.get(number as usize);
            link.copied().filter(|&link| link != NONE)
        };
        while let Some(link) = first(self) {
            self.remove(link as usize / self.stride);
        }
    }
}

/// Room for `each` of so many entries, which takes memory as it is used; `None` if there is none.
fn reserve<T>(entries: usize, each: usize) -> Option<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(entries * each).ok()?;
    // A program whose flows are few need not wait for a huge page.
    if let Some(later) = all.spare_capacity_mut().get_mut(FEWEST * each..) {
        classify::prefer_huge_pages(later);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u64, plan: u32) -> CacheEntry {
        CacheEntry { key: [key, !key], until: 1, plan, ..EMPTY }
    }

    /// The entry of a key with this hash.
    fn find_hashed(cache: &FlowCache, hash: u64, key: u64, holds: u32) -> Option<&CacheEntry> {
        let bucket = cache.bucket(hash);
        let found = cache.find_tagged((bucket, cache.tagged(bucket, hash)), [key, !key], 0, holds);
        found.map(|at| cache.entry(at))
    }

    fn find(cache: &FlowCache, key: u64, holds: u32) -> Option<&CacheEntry> {
        find_hashed(cache, cache.hash([key, !key], 0), key, holds)
    }

    fn insert(cache: &mut FlowCache, entry: CacheEntry, numbers: &[u32]) {
        let member = |&number| Member { table: 0, number, prolonged: true };
        let members: Vec<Member> = numbers.iter().map(member).collect();
        cache.insert(cache.hash(entry.key, entry.site), entry, &members);
    }

    #[test]
    fn entries_outlive_growth_and_die_with_their_flows() {
        let mut cache = FlowCache::new(1, 2, Rc::default());
        let keys = 10 * FEWEST as u32;
        for key in 0..keys {
            // Each flow is in its own entry and in the one before.
            insert(&mut cache, entry(key.into(), key), &[key, key + 1]);
        }
        let (entries, used) = (cache.entries.len(), cache.used);
        assert!((entries * 2).abs_diff(used * 10) < 20 * SEGMENT, "{entries} for {used}");
        let found = |cache: &FlowCache| {
            let entries = (0..keys).filter_map(|key| Some((key, find(cache, key.into(), 0)?)));
            entries.inspect(|(key, entry)| assert_eq!(entry.plan, *key)).count()
        };
        // A few were evicted where many keys wanted to be in the same place.
        assert_eq!(found(&cache), used);
        assert!(used > keys as usize * 995 / 1000, "{used}");
        for at in (0..cache.entries.len()).filter(|&at| cache.is_used(at)) {
            let plan = cache.entry(at).plan;
            let numbers: Vec<u32> = cache.members(at).map(|member| member.number).collect();
            assert_eq!(numbers, [plan, plan + 1]);
        }
        for key in (0..=keys).step_by(2) {
            cache.kill(0, key);
            assert!(find(&cache, key.into(), 0).is_none());
            assert!(key == 0 || find(&cache, u64::from(key) - 1, 0).is_none());
        }
        assert_eq!((found(&cache), cache.used), (0, 0));
    }

    #[test]
    fn conditions_tell_entries_of_a_flow_apart() {
        let mut cache = FlowCache::new(1, 1, Rc::default());
        insert(&mut cache, CacheEntry { relevant: 0b110, holds: 0b010, ..entry(7, 1) }, &[0]);
        insert(&mut cache, CacheEntry { relevant: 0b110, holds: 0b100, ..entry(7, 2) }, &[0]);
        let plan = |holds| find(&cache, 7, holds).map(|entry| entry.plan);
        assert_eq!(plan(0b010), Some(1));
        assert_eq!(plan(0b011), Some(1), "what does not matter is not asked");
        assert_eq!(plan(0b101), Some(2));
        assert_eq!(plan(0b111), None);
        cache.kill(0, 0);
        assert_eq!(cache.used, 0);
    }

    #[test]
    fn keys_that_come_again_are_known() {
        let cache = FlowCache::new(1, 1, Rc::default());
        // They share the place where they are remembered. A thousand rounds would not do one time in thirty.
        let mut waiting: Vec<u64> = (0..4).map(|mark| mark << 50).collect();
        for _ in 0..20_000 {
            waiting.retain(|&key| cache.missed.add(key) < OFTEN);
        }
        assert!(waiting.is_empty(), "{waiting:?}");
        let cache = FlowCache::new(1, 1, Rc::default());
        for times in 0..=OFTEN + 1 {
            let times_of = |key: u64| cache.missed.add(key << 28);
            assert!((1..1000).all(|key| times_of(key) == times.min(OFTEN)), "{times}");
        }
    }

    #[test]
    fn of_frequent_keys_one_in_some_gets_an_entry_each_time() {
        let cache = FlowCache::new(1, 1, Rc::default());
        assert!((0..OFTEN).all(|_| !cache.is_frequent(7 << 28, 1)));
        assert!((0..100).all(|_| cache.is_frequent(7 << 28, 1)));
        let times = (0..32_000).filter(|_| cache.is_frequent(7 << 28, RARELY)).count();
        assert!((2000..8000).contains(&times), "{times}");
    }

    #[test]
    fn keys_that_collide_take_bounded_room() {
        let mut cache = FlowCache::new(1, 1, Rc::default());
        for number in 0..1000 {
            let member = Member { table: 0, number, prolonged: false };
            cache.insert(
                42,
                CacheEntry { until: number.into(), ..entry(number.into(), number) },
                &[member],
            );
        }
        assert_eq!(cache.used, BUCKET);
        let there = |number: u64| find_hashed(&cache, 42, number, 0).is_some();
        assert!((1000 - BUCKET as u64..1000).all(there), "the oldest are evicted");
        (0..1000).for_each(|number| cache.kill(0, number));
        assert_eq!(cache.used, 0);
    }
}
