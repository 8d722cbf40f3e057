//! Token buckets.

use ir::model::{Block, Reg, StateKind};
use ir::{Expr, Model, Op};

use crate::cells::Cells;
use crate::element_state::ElementState;

/// Tokens that come in at a rate and collect up to a capacity. Starts full. What is taken may
/// leave it in debt, so that a packet can be paid for after its length is known.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    shape: BucketShape,
    /// [`LEVEL`] and [`FILLED`].
    cells: Cells,
}

/// Rate and capacity, which many buckets may have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BucketShape {
    /// Tokens per second; 0 for no limit.
    rate: u64,
    /// The level when it is full.
    full: u64,
    /// No more time passes than this until it is full, in nanoseconds.
    longest: u64,
}

/// How much comes at once after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    /// So many tokens.
    Tokens(u64),
    /// What comes in during so many nanoseconds.
    Duration(u64),
}

impl Burst {
    /// Buckets of this rate that let so much through at once.
    pub(crate) fn at(self, rate: u64) -> BucketShape {
        match self {
            Burst::Tokens(tokens) => BucketShape::new(rate, tokens),
            Burst::Duration(nanoseconds) => BucketShape::with_duration(rate, nanoseconds),
        }
    }
}

/// What a bucket holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BucketLevel {
    /// As in the cell [`LEVEL`].
    level: u64,
    /// When it was last filled, in nanoseconds.
    filled: u64,
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

impl BucketShape {
    /// Buckets of this rate and capacity; they hold at least one token.
    pub(crate) fn new(rate: u64, capacity: u64) -> Self {
        let full = EMPTY + capacity.clamp(1, MOST) * TOKEN;
        let longest = full.checked_div(rate).map_or(0, |time| time + 1);
        Self { rate, full, longest }
    }

    /// Buckets that hold what comes in during so many nanoseconds.
    pub(crate) fn with_duration(rate: u64, nanoseconds: u64) -> Self {
        let capacity = u128::from(rate) * u128::from(nanoseconds) / u128::from(TOKEN);
        Self::new(rate, u64::try_from(capacity).unwrap_or(u64::MAX))
    }

    /// Tokens per second; 0 for no limit.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// A full bucket.
    #[inline]
    pub(crate) fn full(&self, now: u64) -> BucketLevel {
        BucketLevel { level: self.full, filled: now }
    }

    /// Whether a bucket is full.
    #[inline]
    pub(crate) fn is_full(&self, bucket: BucketLevel) -> bool {
        bucket.level >= self.full
    }

    /// A bucket with the tokens that have come until `now`.
    #[inline]
    pub(crate) fn fill(&self, BucketLevel { level, filled }: BucketLevel, now: u64) -> BucketLevel {
        let passed = now.saturating_sub(filled).min(self.longest);
        let come = passed.saturating_mul(self.rate);
        BucketLevel { level: level.saturating_add(come).min(self.full), filled: filled.max(now) }
    }

    /// Whether there is a token.
    #[inline]
    pub(crate) fn has_token(&self, bucket: BucketLevel) -> bool {
        self.rate == 0 || bucket.level >= EMPTY + TOKEN
    }

    /// A bucket without so many tokens, on credit if need be.
    #[inline]
    pub(crate) fn take(&self, bucket: BucketLevel, tokens: u64) -> BucketLevel {
        match self.rate {
            0 => bucket,
            _ => {
                let taken = tokens.saturating_mul(TOKEN);
                BucketLevel { level: bucket.level.saturating_sub(taken), ..bucket }
            }
        }
    }

    /// When so many tokens can be taken, counted from the last filling; never if the bucket is
    /// smaller than that.
    pub(crate) fn time_of(&self, bucket: BucketLevel, tokens: u64) -> u64 {
        let wanted = u128::from(EMPTY) + u128::from(tokens) * u128::from(TOKEN);
        let missing = wanted.saturating_sub(bucket.level.into());
        if missing == 0 || self.rate == 0 {
            return bucket.filled;
        }
        let wait = missing.div_ceil(self.rate.into());
        bucket.filled.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

impl From<BucketShape> for TokenBucket {
    fn from(shape: BucketShape) -> Self {
        Self { shape, cells: Cells::new([shape.full, 0]) }
    }
}

impl TokenBucket {
    /// A full bucket; it holds at least one token.
    pub(crate) fn new(rate: u64, capacity: u64) -> Self {
        Self::from(BucketShape::new(rate, capacity))
    }

    /// A bucket that holds what comes in during so many nanoseconds.
    pub(crate) fn with_duration(rate: u64, nanoseconds: u64) -> Self {
        Self::from(BucketShape::with_duration(rate, nanoseconds))
    }

    /// Tokens per second; 0 for no limit.
    pub(crate) fn rate(&self) -> u64 {
        self.shape.rate
    }

    /// Rate and capacity.
    pub(crate) fn shape(&self) -> BucketShape {
        self.shape
    }

    /// Changes rate and capacity; what it holds stays.
    pub(crate) fn change(&mut self, shape: BucketShape) {
        self.shape = shape;
        self.cells.set(LEVEL, self.bucket().level.min(self.shape.full));
    }

    /// Lets tokens come in from now on, unless they do already.
    pub(crate) fn start(&mut self, now: u64) {
        if self.bucket().filled == 0 {
            self.cells.set(FILLED, now);
        }
    }

    #[inline]
    fn bucket(&self) -> BucketLevel {
        BucketLevel { level: self.cells.get(LEVEL), filled: self.cells.get(FILLED) }
    }

    #[inline]
    fn set(&self, BucketLevel { level, filled }: BucketLevel) {
        self.cells.set(LEVEL, level);
        self.cells.set(FILLED, filled);
    }

    /// Takes in the tokens that have come until `now`.
    #[inline]
    pub(crate) fn fill(&mut self, now: u64) {
        self.set(self.shape.fill(self.bucket(), now));
    }

    /// Whole tokens that can be taken.
    #[inline]
    pub(crate) fn available(&self) -> u64 {
        match self.shape.rate {
            0 => u64::MAX,
            _ => self.bucket().level.saturating_sub(EMPTY) / TOKEN,
        }
    }

    /// Whether there is a token.
    #[inline]
    pub(crate) fn has_token(&self) -> bool {
        self.shape.has_token(self.bucket())
    }

    /// Takes tokens, on credit if need be.
    #[inline]
    pub(crate) fn take(&mut self, tokens: u64) {
        self.set(self.shape.take(self.bucket(), tokens));
    }

    /// When so many tokens can be taken, counted from the last filling; never if the bucket is
    /// smaller than that.
    pub(crate) fn time_of(&self, tokens: u64) -> u64 {
        self.shape.time_of(self.bucket(), tokens)
    }

    /// A model that fills the bucket, and takes so many tokens and runs `then` if there is one, or else runs
    /// `otherwise`. Uses registers from 0 to 2.
    pub(crate) fn model(&self, tokens: impl Into<Expr>, then: Block, otherwise: Block) -> Model {
        const LEFT: Reg = Reg(0);
        const BEFORE: Reg = Reg(1);
        const TIME: Reg = Reg(2);
        let BucketShape { rate, full, longest } = self.shape;
        if rate == 0 {
            return Model::from_block(then);
        }
        let mut model = Model::default();
        let initial = vec![full.into(), 0];
        let bucket = model.declare(NAME, StateKind::Cells { width: 64, initial });
        let set = |cell: usize, value: Expr| Op::Write(bucket, cell.into(), value);
        let come = (Expr::from(TIME) - BEFORE).min(longest) * rate;
        let taken = tokens.into() * TOKEN;
        let left = Expr::from(LEFT).max(taken.clone()) - taken;
        let take = [vec![set(LEVEL, left)], then].concat();
        let leave = [vec![set(LEVEL, LEFT.into())], otherwise].concat();
        model.inputs = vec![vec![
            Op::Read(LEFT, bucket, LEVEL.into()),
            Op::Read(BEFORE, bucket, FILLED.into()),
            Op::Let(TIME, Expr::Now.max(BEFORE)),
            set(FILLED, TIME.into()),
            Op::Let(LEFT, (Expr::from(LEFT) + come).min(full)),
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
        if self.shape.rate > 0 {
            self.cells.export(element, NAME, to);
        }
    }

    /// Takes what it held, as far as it fits.
    pub(crate) fn import(&mut self, element: &str, from: &ElementState) {
        self.cells.import(element, NAME, from);
        self.cells.set(LEVEL, self.bucket().level.min(self.shape.full));
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
