//! SYN cookies: initial sequence numbers that say what there is to know of a connection that begins.

use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    pub client: (IpAddr, u16),
    pub server: (IpAddr, u16),
}

/// Maximum segment sizes that cookies tell apart: what paths usually have, the least of IPv4 and IPv6 among them.
const SIZES: [u16; 8] = [216, 536, 1220, 1300, 1380, 1440, 1460, 8960];
/// Nanoseconds after which cookies look different. They are valid this long, and up to once more.
const PERIOD: u64 = 64_000_000_000;
/// How long a cookie may be valid.
pub(super) const LIFETIME: u64 = 2 * PERIOD;
/// Secrets of others that are kept.
const MOST_SECRETS: usize = 64;

/// What cookies are made with.
pub(super) type Secret = [u8; 16];

/// Makes and checks cookies: 5 bits of the period, 3 of the maximum segment size, and 24 of a keyed hash
/// (SipHash-2-4) of these, both ends, the client's initial sequence number and its options.
#[derive(Clone)]
pub(super) struct Cookies {
    /// The first makes cookies. The others are those of elements whose connections were taken over.
    secrets: Vec<Secret>,
}

/// The size that stands for a client's in a cookie, by its place: the largest that is not larger.
fn place(size: u16) -> usize {
    SIZES.iter().rposition(|&known| known <= size).unwrap_or(0)
}

fn hash(secret: &Secret, count: u64, place: usize, ends: &Ends, sequence: u32, options: u8) -> u32 {
    let mut hasher = SipHasher24::new_with_key(secret);
    for (address, port) in [ends.client, ends.server] {
        match address {
            IpAddr::V4(of) => hasher.write_u32(of.to_bits()),
            IpAddr::V6(of) => hasher.write_u128(of.to_bits()),
        }
        hasher.write_u16(port);
    }
    hasher.write_u32(sequence);
    hasher.write_u8(place as u8);
    hasher.write_u8(options);
    hasher.write_u64(count);
    hasher.finish() as u32 & 0xff_ffff
}

impl Cookies {
    pub(super) fn new(secret: Secret) -> Self {
        Self { secrets: vec![secret] }
    }

    /// Goes on making the cookies that another made who makes none any more.
    pub(super) fn follow(&mut self, secrets: Vec<Secret>) {
        if !secrets.is_empty() {
            self.secrets = secrets;
        }
    }

    pub(super) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Has cookies of others be valid, too, who go on making them.
    pub(super) fn trust(&mut self, secrets: &[Secret]) {
        for secret in secrets {
            if !self.secrets.contains(secret) && self.secrets.len() < MOST_SECRETS {
                self.secrets.push(*secret);
            }
        }
    }

    /// The cookie for a SYN with this sequence number, maximum segment size and options.
    pub(super) fn make(&self, now: u64, ends: &Ends, sequence: u32, size: u16, options: u8) -> u32 {
        let (count, place) = (now / PERIOD, place(size));
        let hash = hash(&self.secrets[0], count, place, ends, sequence, options);
        (count as u32 & 31) << 27 | (place as u32) << 24 | hash
    }

    /// The maximum segment size, if this is a cookie that was made for these.
    pub(super) fn check(
        &self,
        now: u64,
        cookie: u32,
        ends: &Ends,
        sequence: u32,
        options: u8,
    ) -> Option<u16> {
        let count = now / PERIOD;
        let age = (count as u32).wrapping_sub(cookie >> 27) & 31;
        let then = count.checked_sub(age.into()).filter(|_| age <= 1)?;
        let place = (cookie >> 24 & 7) as usize;
        let is = |secret| hash(secret, then, place, ends, sequence, options) == cookie & 0xff_ffff;
        self.secrets.iter().any(is).then_some(SIZES[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(client: u8) -> Ends {
        let address = |last| IpAddr::from([10, 0, 0, last]);
        Ends { client: (address(client), 5000), server: (address(200), 80) }
    }

    #[test]
    fn a_cookie_is_valid_for_its_connection_and_time_alone() {
        let cookies = Cookies::new([7; 16]);
        let second = 1_000_000_000;
        for start in [0, 40 * second, 3_000 * second] {
            let cookie = cookies.make(start, &ends(1), 99, 1400, 3);
            assert_eq!(cookies.check(start, cookie, &ends(1), 99, 3), Some(1380));
            assert_eq!(cookies.check(start + 63 * second, cookie, &ends(1), 99, 3), Some(1380));
            assert_eq!(cookies.check(start + 129 * second, cookie, &ends(1), 99, 3), None);
            // The period's number comes round after 32.
            let round = start + 32 * 64 * second;
            assert_eq!(cookies.check(round, cookie, &ends(1), 99, 3), None);
            assert_eq!(cookies.check(start, cookie, &ends(2), 99, 3), None);
            assert_eq!(cookies.check(start, cookie, &ends(1), 98, 3), None);
            assert_eq!(cookies.check(start, cookie, &ends(1), 99, 2), None);
            assert_eq!(cookies.check(start, cookie ^ 1 << 24, &ends(1), 99, 3), None);
            assert_eq!(cookies.check(start, cookie ^ 1, &ends(1), 99, 3), None);
        }
    }

    #[test]
    fn cookies_of_others_are_valid_once_they_are_trusted() {
        let (mut ours, theirs) = (Cookies::new([1; 16]), Cookies::new([2; 16]));
        let cookie = theirs.make(0, &ends(1), 1, 0, 0xff);
        assert_eq!(ours.check(0, cookie, &ends(1), 1, 0xff), None);
        ours.trust(theirs.secrets());
        assert_eq!(ours.check(0, cookie, &ends(1), 1, 0xff), Some(216));
        for n in 0..=255 {
            ours.trust(&[[n; 16]]);
        }
        assert_eq!(ours.secrets().len(), MOST_SECRETS);
        let mut next = Cookies::new([3; 16]);
        next.follow(theirs.secrets().to_vec());
        assert_eq!(next.make(0, &ends(1), 1, 0, 0xff), cookie);
    }

    #[test]
    fn sizes_are_rounded_down() {
        for (size, is) in [(0, 216), (535, 216), (536, 536), (1459, 1440), (65535, 8960)] {
            let cookies = Cookies::new([0; 16]);
            let cookie = cookies.make(0, &ends(1), 1, size, 0);
            assert_eq!(cookies.check(0, cookie, &ends(1), 1, 0), Some(is));
        }
    }

    #[test]
    fn guesses_are_as_good_as_chance() {
        let cookies = Cookies::new([3; 16]);
        let mut rng = fastrand::Rng::with_seed(5);
        let valid = (0..2_000_000)
            .filter(|_| cookies.check(0, rng.u32(..1 << 27), &ends(1), 1, 0).is_some())
            .count();
        // Expected are 2,000,000 / 2^24, which is 0.12.
        assert!(valid <= 4, "{valid} guesses of 2,000,000 were valid");
    }
}
