//! Token buckets.

/// Tokens that come in at a rate and collect up to a capacity. Starts full. What is taken may
/// leave it in debt, so that a packet can be paid for after its length is known.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    /// Tokens per second; 0 for no limit.
    rate: u64,
    capacity: u64,
    /// In units of a token a second for a nanosecond: 10⁹ make a token.
    level: i128,
    /// When it was last filled, in nanoseconds.
    filled: u64,
}

const TOKEN: i128 = 1_000_000_000;

impl TokenBucket {
    /// A full bucket; it holds at least one token.
    pub(crate) fn new(rate: u64, capacity: u64) -> Self {
        let capacity = capacity.max(1);
        Self { rate, capacity, level: i128::from(capacity) * TOKEN, filled: 0 }
    }

    /// A bucket that holds what comes in during so many nanoseconds.
    pub(crate) fn with_duration(rate: u64, nanoseconds: u64) -> Self {
        let capacity = u128::from(rate) * u128::from(nanoseconds) / TOKEN as u128;
        Self::new(rate, u64::try_from(capacity).unwrap_or(u64::MAX))
    }

    /// Tokens per second; 0 for no limit.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// Changes rate and capacity; what it holds stays.
    pub(crate) fn change(&mut self, to: TokenBucket) {
        let level = self.level.min(to.level);
        *self = Self { level, filled: self.filled, ..to };
    }

    /// Lets tokens come in from now on, unless they do already.
    pub(crate) fn start(&mut self, now: u64) {
        if self.filled == 0 {
            self.filled = now;
        }
    }

    /// Takes in the tokens that have come until `now`.
    #[inline]
    pub(crate) fn fill(&mut self, now: u64) {
        let passed = i128::from(now.saturating_sub(self.filled));
        let full = i128::from(self.capacity) * TOKEN;
        let come = passed.saturating_mul(i128::from(self.rate));
        self.level = self.level.saturating_add(come).min(full);
        self.filled = self.filled.max(now);
    }

    /// Whole tokens that can be taken.
    #[inline]
    pub(crate) fn available(&self) -> u64 {
        match self.rate {
            0 => u64::MAX,
            _ => (self.level / TOKEN).max(0) as u64,
        }
    }

    /// Takes tokens, on credit if need be.
    #[inline]
    pub(crate) fn take(&mut self, tokens: u64) {
        if self.rate > 0 {
            self.level -= i128::from(tokens) * TOKEN;
        }
    }

    /// When so many tokens can be taken, counted from the last filling; never if the bucket is
    /// smaller than that.
    pub(crate) fn time_of(&self, tokens: u64) -> u64 {
        let missing = i128::from(tokens) * TOKEN - self.level;
        if missing <= 0 || self.rate == 0 {
            return self.filled;
        }
        let wait = (missing - 1) / i128::from(self.rate) + 1;
        self.filled.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_at_the_rate_and_no_more_than_fit() {
        let mut bucket = TokenBucket::new(10, 3);
        bucket.fill(5_000_000_000);
        assert_eq!(bucket.available(), 3);
        bucket.take(3);
        assert_eq!((bucket.available(), bucket.time_of(1)), (0, 5_100_000_000));
        bucket.fill(5_099_999_999);
        assert_eq!(bucket.available(), 0);
        bucket.fill(5_100_000_000);
        assert_eq!(bucket.available(), 1);
        bucket.fill(9_000_000_000);
        assert_eq!(bucket.available(), 3);
    }

    #[test]
    fn a_debt_is_paid_first() {
        let mut bucket = TokenBucket::new(1000, 100);
        bucket.fill(0);
        bucket.take(600);
        assert_eq!(bucket.available(), 0);
        assert_eq!(bucket.time_of(1), 501_000_000);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut bucket = TokenBucket::new(u64::MAX, u64::MAX);
        bucket.fill(u64::MAX);
        bucket.take(u64::MAX);
        bucket.take(u64::MAX);
        assert_eq!(bucket.available(), 0);
        let mut unlimited = TokenBucket::new(0, 0);
        unlimited.take(u64::MAX);
        assert_eq!(unlimited.available(), u64::MAX);
        assert_eq!(TokenBucket::with_duration(u64::MAX, u64::MAX).available(), u64::MAX);
    }
}
