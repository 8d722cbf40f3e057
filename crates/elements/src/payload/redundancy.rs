//! Redundancy elimination: payloads in which bytes that a recent payload had, too, are replaced by references to it
//! (Spring and Wetherall, 2000). Repeated bytes are found by fingerprints of the kind of Rabin's, of windows that
//! their low bits choose.

use std::collections::VecDeque;

/// Bytes that a fingerprint is of.
const WINDOW: usize = 32;
/// One of so many windows is kept, on average.
const CHOSEN: u64 = 32;
/// Bytes of a reference: length, payload, offset.
const REFERENCE: usize = 8;
/// Bit of a length that says that a reference follows, and not bytes.
const IS_REFERENCE: u16 = 0x8000;
/// Bytes in front of what is coded: kind, number, and hash of the payload.
pub(super) const HEAD: usize = 9;
/// The kinds: bytes as they were, or with references.
const PLAIN: u8 = 0;
const CODED: u8 = 1;
/// Bytes that a payload in a cache takes besides.
const SLOT: usize = 32;
/// Numbers that a payload may be ahead of those before.
const MOST_AHEAD: u32 = 1 << 16;
/// A payload that can be coded has no more bytes.
pub(super) const MOST: usize = 0x7fff;

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is not what an encoder makes.
    Format,
    /// It refers to a payload that is not there.
    Reference,
}

/// A payload that was sent or received.
struct Slot {
    bytes: Box<[u8]>,
    /// Whether the other side has it.
    is_known: bool,
}

/// Recent payloads by number; the oldest go first.
struct Cache {
    /// From the number `first` on.
    slots: VecDeque<Option<Slot>>,
    first: u32,
    bytes: usize,
    limit: usize,
}

impl Cache {
    fn new(limit: usize) -> Self {
        Self { slots: VecDeque::new(), first: 0, bytes: 0, limit }
    }

    fn get(&self, number: u32) -> Option<&Slot> {
        self.slots.get(number.wrapping_sub(self.first) as usize)?.as_ref()
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut Slot> {
        self.slots.get_mut(number.wrapping_sub(self.first) as usize)?.as_mut()
    }

    /// Keeps a payload, unless it is older than all.
    fn keep(&mut self, number: u32, bytes: &[u8]) {
        if self.slots.is_empty() {
            self.first = number;
        }
        let mut at = number.wrapping_sub(self.first);
        if at >= 1 << 31 {
            return;
        }
        if at as usize >= self.slots.len() + MOST_AHEAD as usize {
            (self.slots, self.bytes, self.first, at) = (VecDeque::new(), 0, number, 0);
        }
        while self.slots.len() <= at as usize {
            self.slots.push_back(None);
            self.bytes += SLOT;
        }
        if let Some(slot @ None) = self.slots.get_mut(at as usize) {
            *slot = Some(Slot { bytes: bytes.into(), is_known: false });
            self.bytes += bytes.len();
        }
        while self.bytes > self.limit {
            let Some(oldest) = self.slots.pop_front() else { break };
            self.bytes -= SLOT + oldest.map_or(0, |slot| slot.bytes.len());
            self.first = self.first.wrapping_add(1);
        }
    }
}

/// Fingerprints of all windows of a text, by a polynomial in a secret base, modulo 2^64.
struct Rolling {
    base: u64,
    /// What a byte counts that leaves the window.
    last: u64,
}

impl Rolling {
    fn new(secret: u64) -> Self {
        let base = secret | 1;
        Self { base, last: (0..WINDOW - 1).fold(1u64, |power, _| power.wrapping_mul(base)) }
    }

    /// Calls `each` with the place and fingerprint of the windows that are chosen.
    fn chosen(&self, text: &[u8], mut each: impl FnMut(usize, u64)) {
        let mut hash = 0u64;
        for (end, &byte) in text.iter().enumerate() {
            if let Some(gone) = end.checked_sub(WINDOW) {
                hash = hash.wrapping_sub(self.value(text[gone]).wrapping_mul(self.last));
            }
            hash = hash.wrapping_mul(self.base).wrapping_add(self.value(byte));
            if end + 1 >= WINDOW {
                let mixed = mix(hash);
                if mixed.is_multiple_of(CHOSEN) {
                    each(end + 1 - WINDOW, mixed / CHOSEN);
                }
            }
        }
    }

    /// What a byte counts: no byte counts nothing.
    fn value(&self, byte: u8) -> u64 {
        u64::from(byte) + 1
    }
}

/// Spreads over all bits (the end of MurmurHash3).
fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// A hash by which a payload is known to be what was sent (FNV-1a of 64 bits, folded).
fn hash_of(payload: &[u8]) -> [u8; 4] {
    let fold = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = payload.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    ((hash >> 32) as u32 ^ hash as u32).to_be_bytes()
}

/// Where a window was.
#[derive(Clone, Copy)]
struct Place {
    fingerprint: u64,
    number: u32,
    offset: u16,
}

/// Replaces bytes that recent payloads had.
pub(super) struct Encoder {
    cache: Cache,
    rolling: Rolling,
    /// By the fingerprint's low bits; a newer one replaces an older one.
    places: Vec<Option<Place>>,
    /// The next payload's.
    number: u32,
    /// Whether only payloads are referred to that the other side says it has.
    waits: bool,
    chosen: Vec<(usize, u64)>,
}

impl Encoder {
    /// Takes so many bytes of memory, about. A quarter of the cache is left free, so that a decoder with one of the
    /// same size still has what late packets refer to.
    pub(super) fn new(memory: usize, secret: u64, first: u32, waits: bool) -> Self {
        let places = (memory / 4 / size_of::<Option<Place>>()).max(1).next_power_of_two();
        Self {
            cache: Cache::new(memory / 4 * 3),
            rolling: Rolling::new(secret),
            places: vec![None; places],
            number: first,
            waits,
            chosen: Vec::new(),
        }
    }

    /// Takes in that the other side has a payload.
    pub(super) fn known(&mut self, number: u32) {
        if let Some(slot) = self.cache.get_mut(number) {
            slot.is_known = true;
        }
    }

    /// Codes a payload of at most [`MOST`] bytes; it is at most [`HEAD`] bytes longer.
    pub(super) fn encode(&mut self, payload: &[u8], coded: &mut Vec<u8>) {
        let number = self.number;
        self.number = number.wrapping_add(1);
        let mut chosen = std::mem::take(&mut self.chosen);
        chosen.clear();
        self.rolling.chosen(payload, |at, fingerprint| chosen.push((at, fingerprint)));
        let head = |kind| {
            let [a, b, c, d] = number.to_be_bytes();
            let [e, f, g, h] = hash_of(payload);
            [kind, a, b, c, d, e, f, g, h]
        };
        coded.clear();
        coded.extend(head(CODED));
        // Up to here, all is coded.
        let mut done = 0;
        for &(at, fingerprint) in &chosen {
            if at < done {
                continue;
            }
            let Some((place, old)) = self.find(fingerprint) else { continue };
            let offset = usize::from(place.offset);
            if old.get(offset..offset + WINDOW) != payload.get(at..at + WINDOW) {
                continue;
            }
            let same = |(a, b): &(&u8, &u8)| a == b;
            let before = payload[done..at].iter().rev().zip(old[..offset].iter().rev());
            let before = before.take_while(same).count();
            let behind = payload[at..].iter().zip(&old[offset..]).take_while(same).count();
            literal(coded, &payload[done..at - before]);
            let length = (before + behind) as u16;
            coded.extend((IS_REFERENCE | length).to_be_bytes());
            coded.extend(place.number.to_be_bytes());
            coded.extend(((offset - before) as u16).to_be_bytes());
            done = at + behind;
        }
        literal(coded, &payload[done..]);
        if done == 0 || coded.len() >= HEAD + payload.len() {
            coded.clear();
            coded.extend(head(PLAIN));
            coded.extend(payload);
        }
        let mask = self.places.len() as u64 - 1;
        for &(at, fingerprint) in &chosen {
            let place = Place { fingerprint, number, offset: at as u16 };
            self.places[(fingerprint & mask) as usize] = Some(place);
        }
        self.chosen = chosen;
        self.cache.keep(number, payload);
    }

    /// The payload that had a window of this fingerprint, and that the other side has.
    fn find(&self, fingerprint: u64) -> Option<(Place, &[u8])> {
        let place = self.places[(fingerprint & (self.places.len() as u64 - 1)) as usize]?;
        let slot = self.cache.get(place.number).filter(|_| place.fingerprint == fingerprint)?;
        (slot.is_known || !self.waits).then_some((place, &slot.bytes))
    }
}

fn literal(coded: &mut Vec<u8>, bytes: &[u8]) {
    if !bytes.is_empty() {
        coded.extend((bytes.len() as u16).to_be_bytes());
        coded.extend(bytes);
    }
}

/// Puts in what references refer to.
pub(super) struct Decoder {
    cache: Cache,
}

impl Decoder {
    pub(super) fn new(memory: usize) -> Self {
        Self { cache: Cache::new(memory) }
    }

    /// Gives a payload back, and its number.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) fn decode(&mut self, coded: &[u8], payload: &mut Vec<u8>) -> Result<u32, Wrong> {
        let (&[kind, a, b, c, d, ref hash @ ..], mut rest) =
            coded.split_first_chunk::<HEAD>().ok_or(Wrong::Format)?;
        let number = u32::from_be_bytes([a, b, c, d]);
        payload.clear();
        match kind {
            PLAIN if rest.len() <= MOST => payload.extend(rest),
            CODED => {
                while !rest.is_empty() {
                    rest = self.token(rest, payload)?;
                }
            }
            _ => return Err(Wrong::Format),
        }
        if hash_of(payload) != *hash {
            return Err(Wrong::Reference);
        }
        self.cache.keep(number, payload);
        Ok(number)
    }

    /// Takes bytes or a reference; gives what follows.
    fn token<'a>(&self, coded: &'a [u8], payload: &mut Vec<u8>) -> Result<&'a [u8], Wrong> {
        let (&length, rest) = coded.split_first_chunk::<2>().ok_or(Wrong::Format)?;
        let word = u16::from_be_bytes(length);
        let length = usize::from(word & !IS_REFERENCE);
        if payload.len() + length > MOST || length == 0 {
            return Err(Wrong::Format);
        }
        if word & IS_REFERENCE == 0 {
            let (bytes, rest) = rest.split_at_checked(length).ok_or(Wrong::Format)?;
            payload.extend(bytes);
            return Ok(rest);
        }
        let (&[a, b, c, d, e, f], rest) =
            rest.split_first_chunk::<{ REFERENCE - 2 }>().ok_or(Wrong::Format)?;
        let offset = usize::from(u16::from_be_bytes([e, f]));
        let slot = self.cache.get(u32::from_be_bytes([a, b, c, d])).ok_or(Wrong::Reference)?;
        payload.extend(slot.bytes.get(offset..offset + length).ok_or(Wrong::Reference)?);
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Payloads with parts that come again, cut anywhere, and changed here and there.
    fn payloads(seed: u64, count: usize) -> Vec<Vec<u8>> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let texts: Vec<Vec<u8>> =
            (0..20).map(|_| (0..4000).map(|_| rng.u8(..)).collect()).collect();
        let payload = |rng: &mut fastrand::Rng| {
            let mut payload = Vec::new();
            while payload.len() < 1000 {
                if rng.u8(..4) == 0 {
                    payload.extend((0..rng.usize(1..200)).map(|_| rng.u8(..)));
                } else {
                    let text = &texts[rng.usize(..texts.len())];
                    let from = rng.usize(..text.len() - 1);
                    let to = (from + rng.usize(1..800)).min(text.len());
                    payload.extend(&text[from..to]);
                }
            }
            payload.truncate(rng.usize(1..=1400));
            payload
        };
        (0..count).map(|_| payload(&mut rng)).collect()
    }

    /// Whatever is lost, twice, or up to eight packets late, what arrives is given back, if the encoder hears of what arrived; and also if
    /// the memory is small.
    #[test]
    fn payloads_come_back_under_loss_and_reordering() {
        for (memory, least) in [(1 << 20, 40), (1 << 16, 10)] {
            let all = payloads(1, 4000);
            let mut rng = fastrand::Rng::with_seed(2);
            let first = u32::MAX - 100;
            let (mut encoder, mut decoder) =
                (Encoder::new(memory, 7, first, true), Decoder::new(memory));
            let (mut in_flight, mut acks) = (Vec::new(), Vec::new());
            let (mut coded, mut found) = (Vec::new(), Vec::new());
            let (mut bytes, mut sent) = (0, 0);
            for (turn, payload) in all.iter().enumerate() {
                encoder.encode(payload, &mut coded);
                assert!(coded.len() <= HEAD + payload.len());
                (bytes, sent) = (bytes + payload.len(), sent + coded.len());
                if rng.u8(..10) > 0 {
                    in_flight.push((coded.clone(), payload, turn));
                }
                if rng.u8(..20) == 0 {
                    in_flight.push((coded.clone(), payload, turn));
                }
                while in_flight.len() > 5 {
                    let is_due = in_flight[0].2 + 8 < turn;
                    let which = if is_due { 0 } else { rng.usize(..in_flight.len()) };
                    let (coded, payload, _) = in_flight.remove(which);
                    let number = decoder.decode(&coded, &mut found);
                    assert_eq!(&found, payload);
                    acks.push(number.unwrap());
                }
                while acks.len() > 3 {
                    let number = acks.swap_remove(rng.usize(..acks.len()));
                    if rng.u8(..10) > 0 {
                        encoder.known(number);
                    }
                }
                assert!(encoder.cache.bytes <= memory && decoder.cache.bytes <= memory);
            }
            let saved = 100 - sent * 100 / bytes;
            assert!(saved >= least, "{saved} % saved with {memory} bytes");
        }
    }

    /// A reference encoder that knows all payloads before and finds each repeated part of 32 bytes and more, at any
    /// place, saves not much more.
    #[test]
    fn most_of_what_repeats_is_found() {
        let all = payloads(3, 150);
        let (mut encoder, mut coded) = (Encoder::new(1 << 22, 9, 0, false), Vec::new());
        let (mut repeated, mut saved) = (0, 0);
        let mut windows = std::collections::HashSet::new();
        for payload in &all {
            encoder.encode(payload, &mut coded);
            saved += (HEAD + payload.len()) - coded.len();
            let mut covered = vec![false; payload.len()];
            for (at, window) in payload.windows(WINDOW).enumerate() {
                if windows.contains(window) {
                    covered[at..at + WINDOW].fill(true);
                }
            }
            repeated += covered.iter().filter(|covered| **covered).count();
            windows.extend(payload.windows(WINDOW));
        }
        assert!(saved * 10 >= repeated * 7, "{saved} of {repeated} repeated bytes are saved");
    }

    #[test]
    fn hostile_packets_are_refused() {
        let mut encoder = Encoder::new(1 << 16, 7, 0, false);
        let (mut coded, mut found) = (Vec::new(), Vec::new());
        let payload: Vec<u8> = (0..1000u32).map(|n| (n * n) as u8 ^ (n >> 3) as u8).collect();
        encoder.encode(&payload, &mut coded);
        let plain = coded.clone();
        encoder.encode(&payload, &mut coded);
        assert!(coded.len() < 100, "{}", coded.len());
        let mut decoder = Decoder::new(1 << 16);
        assert_eq!(decoder.decode(&coded, &mut found), Err(Wrong::Reference), "the first is lost");
        assert_eq!(decoder.decode(&plain, &mut found), Ok(0));
        assert_eq!((decoder.decode(&coded, &mut found), &found), (Ok(1), &payload));
        for at in (0..HEAD).filter(|at| !(1..5).contains(at)).chain(HEAD..coded.len()) {
            let mut wrong = coded.clone();
            wrong[at] ^= 0x41;
            let is_refused = decoder.decode(&wrong, &mut found).is_err();
            assert!(is_refused || found == payload, "{at}");
        }
        for end in 0..coded.len() {
            assert!(decoder.decode(&coded[..end], &mut found).is_err(), "{end}");
        }
        // Numbers far ahead take no memory.
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let mut wild = plain.clone();
            wild[1..5].copy_from_slice(&rng.u32(..).to_be_bytes());
            let _ = decoder.decode(&wild, &mut found);
            assert!(decoder.cache.bytes <= 1 << 16);
        }
    }
}
