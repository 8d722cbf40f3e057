//! Token buckets.

use ir::model::{Block, Reg, StateKind};
use ir::{Expr, Model, Op};

use crate::cells::Cells;
use crate::element_state::ElementState;

/// Tokens that come in at a rate and collect up to a capacity. Starts full. What is taken may
/// leave it in debt, so that a packet can be paid for after its length is known.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    /// Tokens per second; 0 for no limit.
    rate: u64,
    /// The level when it is full.
    full: u64,
    /// No more time passes than this until it is full, in nanoseconds.
    longest: u64,
    /// [`LEVEL`] and [`FILLED`].
    cells: Cells,
}

/// The cell of the level, in parts of a token: a token a second is one a nanosecond. Below [`EMPTY`] it is in debt.
const LEVEL: usize = 0;
/// The cell of the time when it was last filled, in nanoseconds.
const FILLED: usize = 1;

/// Parts of a token.
const TOKEN: u64 = 1_000_000_000;
/// The level of an empty bucket; a debt is at most that large.
const EMPTY: u64 = (1 << 17) * TOKEN;
/// A bucket holds at most so many tokens; a full one, 63 bits.
const MOST: u64 = 9_000_000_000;

/// The name of the cells.
const NAME: &str = "bucket";

impl TokenBucket {
    /// A full bucket; it holds at least one token.
    pub(crate) fn new(rate: u64, capacity: u64) -> Self {
        let full = EMPTY + capacity.clamp(1, MOST) * TOKEN;
        let longest = full.checked_div(rate).map_or(0, |time| time + 1);
        Self { rate, full, longest, cells: Cells::new([full, 0]) }
    }

    /// A bucket that holds what comes in during so many nanoseconds.
    pub(crate) fn with_duration(rate: u64, nanoseconds: u64) -> Self {
        let capacity = u128::from(rate) * u128::from(nanoseconds) / u128::from(TOKEN);
        Self::new(rate, u64::try_from(capacity).unwrap_or(u64::MAX))
    }

    /// Tokens per second; 0 for no limit.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// Changes rate and capacity; what it holds stays.
    pub(crate) fn change(&mut self, to: TokenBucket) {
        let TokenBucket { rate, full, longest, .. } = to;
        (self.rate, self.full, self.longest) = (rate, full, longest);
        self.cells.set(LEVEL, self.level().min(full));
    }

    /// Lets tokens come in from now on, unless they do already.
    pub(crate) fn start(&mut self, now: u64) {
        if self.filled() == 0 {
            self.cells.set(FILLED, now);
        }
    }

    fn level(&self) -> u64 {
        self.cells.get(LEVEL)
    }

    fn filled(&self) -> u64 {
        self.cells.get(FILLED)
    }

    /// Takes in the tokens that have come until `now`.
    #[inline]
    pub(crate) fn fill(&mut self, now: u64) {
        let filled = self.filled();
        let passed = now.saturating_sub(filled).min(self.longest);
        let come = passed.saturating_mul(self.rate);
        self.cells.set(LEVEL, self.level().saturating_add(come).min(self.full));
        self.cells.set(FILLED, filled.max(now));
    }

    /// Whole tokens that can be taken.
    #[inline]
    pub(crate) fn available(&self) -> u64 {
        match self.rate {
            0 => u64::MAX,
            _ => self.level().saturating_sub(EMPTY) / TOKEN,
        }
    }

    /// Whether there is a token.
    #[inline]
    pub(crate) fn has_token(&self) -> bool {
        self.rate == 0 || self.level() >= EMPTY + TOKEN
    }

    /// Takes tokens, on credit if need be.
    #[inline]
    pub(crate) fn take(&mut self, tokens: u64) {
        if self.rate > 0 {
            let taken = tokens.saturating_mul(TOKEN);
            self.cells.set(LEVEL, self.level().saturating_sub(taken));
        }
    }

    /// When so many tokens can be taken, counted from the last filling; never if the bucket is
    /// smaller than that.
    pub(crate) fn time_of(&self, tokens: u64) -> u64 {
        let wanted = u128::from(EMPTY) + u128::from(tokens) * u128::from(TOKEN);
        let missing = wanted.saturating_sub(self.level().into());
        if missing == 0 || self.rate == 0 {
            return self.filled();
        }
        let wait = missing.div_ceil(self.rate.into());
        self.filled().saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }

    /// A model that fills the bucket, and takes so many tokens and runs `then` if there is one, or else runs
    /// `otherwise`. Uses registers from 0 to 2.
    pub(crate) fn model(&self, tokens: impl Into<Expr>, then: Block, otherwise: Block) -> Model {
        const LEFT: Reg = Reg(0);
        const BEFORE: Reg = Reg(1);
        const TIME: Reg = Reg(2);
        if self.rate == 0 {
            return Model::from_block(then);
        }
        let mut model = Model::default();
        let initial = vec![self.full.into(), 0];
        let bucket = model.declare(NAME, StateKind::Cells { width: 64, initial });
        let set = |cell: usize, value: Expr| Op::Write(bucket, cell.into(), value);
        let come = (Expr::from(TIME) - BEFORE).min(self.longest) * self.rate;
        let taken = tokens.into() * TOKEN;
        let left = Expr::from(LEFT).max(taken.clone()) - taken;
        let take = [vec![set(LEVEL, left)], then].concat();
        let leave = [vec![set(LEVEL, LEFT.into())], otherwise].concat();
        model.inputs = vec![vec![
            Op::Read(LEFT, bucket, LEVEL.into()),
            Op::Read(BEFORE, bucket, FILLED.into()),
            Op::Let(TIME, Expr::Now.max(BEFORE)),
            set(FILLED, TIME.into()),
            Op::Let(LEFT, (Expr::from(LEFT) + come).min(self.full)),
            Op::If(Expr::from(LEFT).ge(EMPTY + TOKEN), take, leave),
        ]];
        model
    }

    /// What the model keeps.
    pub(crate) fn cells(&self) -> Cells {
        self.cells.clone()
    }

    /// Writes what the model keeps.
    pub(crate) fn export(&self, element: &str, to: &mut ElementState) {
        if self.rate > 0 {
            self.cells.export(element, NAME, to);
        }
    }

    /// Takes what it held, as far as it fits.
    pub(crate) fn import(&mut self, element: &str, from: &ElementState) {
        self.cells.import(element, NAME, from);
        self.cells.set(LEVEL, self.level().min(self.full));
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
        assert_eq!(TokenBucket::with_duration(u64::MAX, u64::MAX).available(), MOST);
    }
}
