//! Models: what an element means, as a small structured program over one packet.
//!
//! A model reads and writes [`Field`]s, moves the data's edges, works on declared state and ends
//! by emitting the packet, dropping it with a reason, or declaring it [`Op::Opaque`]: then the
//! element's native code runs, and no target but the CPU can. Everything that is not the element
//! itself (interpreter, synthesis, verification, targets) reads only this.
//!
//! Numbers are unsigned and at most 128 bits; arithmetic wraps; a value that is stored is cut to
//! the field's width. A read beyond the packet's bytes is a fault of the model, so every read is
//! guarded by a test on a length ([`crate::field::meta`]); [`Cond::All`] and [`Cond::Any`] stop at the first
//! condition that decides.

use std::sync::Arc;

use net::Header;

use crate::PrefixTable;
use crate::Span;
use crate::field::{Base, Field};
use crate::hash::HashFunction;
use crate::interval::IntervalSet;

/// Why a packet was dropped: a short phrase in kebab case, such as `ttl-expired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reason(pub &'static str);

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// A local variable of a model. Each is written before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u16);

/// A piece of state that the model declares; an index into [`Model::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateRef(pub u16);

/// Binary operations on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// Quotient; 0 if the divisor is 0.
    Div,
    /// Remainder; 0 if the divisor is 0.
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Min,
    Max,
}

impl BinaryOp {
    /// The operation on two numbers. Arithmetic wraps; a shift by 128 bits or more leaves 0.
    pub fn apply(self, a: u128, b: u128) -> u128 {
        let shift = u32::try_from(b).unwrap_or(u32::MAX);
        match self {
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Sub => a.wrapping_sub(b),
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::Div => a.checked_div(b).unwrap_or(0),
            BinaryOp::Rem => a.checked_rem(b).unwrap_or(0),
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Shl => a.checked_shl(shift).unwrap_or(0),
            BinaryOp::Shr => a.checked_shr(shift).unwrap_or(0),
            BinaryOp::Min => a.min(b),
            BinaryOp::Max => a.max(b),
        }
    }
}

/// A number computed from the packet, from state and from registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A constant.
    Const(u128),
    /// A field of the packet.
    Field(Field),
    /// A register.
    Reg(Reg),
    /// `width` bits at a computed byte offset from a base.
    Load {
        /// What the offset counts from.
        base: Base,
        /// Offset in bytes.
        offset: Box<Expr>,
        /// Width in bits, a multiple of 8.
        width: u16,
    },
    /// Bytes from the first data byte to a header, negative (two's complement) if it lies before.
    Position(Header),
    /// An operation on two numbers.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// The one of two numbers that a condition chooses.
    Choose(Box<Cond>, Box<Expr>, Box<Expr>),
    /// Ones' complement sum (RFC 1071) of `length` bytes at byte `offset` from a base, folded to
    /// 16 bits and not inverted.
    Sum16 {
        /// What the offset counts from.
        base: Base,
        /// Offset in bytes.
        offset: Box<Expr>,
        /// Number of bytes; an odd last byte counts as if a zero followed.
        length: Box<Expr>,
    },
    /// Plain sum of `length` bytes at byte `offset` from a base.
    ByteSum {
        /// What the offset counts from.
        base: Base,
        /// Offset in bytes.
        offset: Box<Expr>,
        /// Number of bytes.
        length: Box<Expr>,
    },
    /// A sum of 16-bit words folded to 16 bits with end-around carries (RFC 1071): 0 for 0 only.
    Fold16(Box<Expr>),
    /// A hash of numbers, for choices that only need to be consistent.
    Hash(HashFunction, Vec<Expr>),
    /// Nanoseconds of the worker's clock.
    Now,
    /// A random number of `low..=high` from the worker's generator.
    Random(u128, u128),
}

/// Comparisons of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// Whether two numbers compare so.
    pub fn holds(self, a: u128, b: u128) -> bool {
        match self {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            CompareOp::Lt => a < b,
            CompareOp::Le => a <= b,
            CompareOp::Gt => a > b,
            CompareOp::Ge => a >= b,
        }
    }
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cond {
    /// Always or never.
    Const(bool),
    /// The number is in the set. On a [`Expr::Field`] this is what classifiers are made from.
    Test(Expr, IntervalSet),
    /// Two numbers compare so.
    Compare(CompareOp, Expr, Expr),
    /// Every one holds; stops at the first that does not.
    All(Vec<Cond>),
    /// One holds; stops at the first that does.
    Any(Vec<Cond>),
    /// It does not hold.
    Not(Box<Cond>),
    /// The flow table has an entry under this key.
    FlowExists(StateRef, Vec<Expr>),
}

/// Operations in order. A block may end without a terminal operation; then what follows it goes on.
pub type Block = Vec<Op>;

/// One rule of a [`Op::Match`].
#[derive(Clone, Debug, Eq)]
pub struct Rule {
    /// What it matches. Lists that have a rule in common share it.
    pub when: Arc<Cond>,
    /// Index of the arm that runs.
    pub arm: u32,
    /// What was written in the configuration, for people.
    pub text: Arc<str>,
    /// Where it was written.
    pub span: Option<Span>,
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        // Lists are long, and mostly share their rules.
        let is_shared =
            Arc::ptr_eq(&self.when, &other.when) && Arc::ptr_eq(&self.text, &other.text);
        (self.arm, self.span) == (other.arm, other.span)
            && (is_shared || (&self.when, &self.text) == (&other.when, &other.text))
    }
}

/// One direction of a flow: the key that packets are looked up by and what the lookup yields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSide {
    /// The key's numbers.
    pub key: Vec<Expr>,
    /// The numbers that a lookup binds.
    pub value: Vec<Expr>,
}

/// An operation of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes a register.
    Let(Reg, Expr),
    /// Writes a field.
    Set(Field, Expr),
    /// Writes `width` bits at a computed byte offset.
    Store {
        /// What the offset counts from.
        base: Base,
        /// Offset in bytes.
        offset: Expr,
        /// Width in bits, a multiple of 8.
        width: u16,
        /// What is written.
        value: Expr,
    },
    /// Runs one of two blocks.
    If(Cond, Block, Block),
    /// Runs the arm of the first rule that matches, or `otherwise`.
    Match {
        /// In order of precedence.
        rules: Arc<[Rule]>,
        /// What rules lead to.
        arms: Vec<Block>,
        /// When no rule matches.
        otherwise: Block,
    },
    /// Looks a key up by longest prefix and binds the row's numbers.
    Lookup {
        /// The table.
        table: Arc<PrefixTable>,
        /// What is looked up.
        key: Expr,
        /// Receive the row.
        bind: Vec<Reg>,
        /// When no prefix matches.
        miss: Block,
    },
    /// Runs the body until [`Op::Break`], at most `limit` times.
    Repeat {
        /// Bound on the number of rounds.
        limit: u32,
        /// What is repeated.
        body: Block,
    },
    /// Leaves the innermost [`Op::Repeat`].
    Break,
    /// Says what nearly always holds, and changes nothing. A program may rely on it: packets for which it does not hold
    /// it leaves to the element's native code.
    Expect(Cond),
    /// Removes bytes from the front; a negative number (two's complement) adds bytes that were
    /// there before, or zeros. Removing more than there are leaves none.
    Pull(Expr),
    /// Cuts the data to at most this many bytes.
    Truncate(Expr),
    /// Adds zero bytes at the end.
    Extend(Expr),
    /// Marks a header at this many bytes from the first data byte (two's complement).
    Mark(Header, Expr),
    /// Forgets a header's mark.
    Unmark(Header),
    /// Gives the packet fresh annotations, timestamp 0, no header marks, and type host.
    Fresh,
    /// Counts the packet and its bytes in a [`StateKind::Counter`].
    Count(StateRef),
    /// Reads a cell of [`StateKind::Cells`].
    Read(Reg, StateRef, Expr),
    /// Writes a cell of [`StateKind::Cells`].
    Write(StateRef, Expr, Expr),
    /// Finds the flow of a key. Binds the direction's value and the flow's common cells.
    FlowLookup {
        /// The [`StateKind::Flows`].
        flows: StateRef,
        /// What is looked up.
        key: Vec<Expr>,
        /// Receive the direction's value.
        value: Vec<Reg>,
        /// Receive the cells that both directions share.
        common: Vec<Reg>,
        /// When there is no such flow.
        miss: Block,
    },
    /// Sets the common cells, the expiry and the guarantee of the flow of a key, if there is one.
    FlowUpdate {
        /// The [`StateKind::Flows`].
        flows: StateRef,
        /// Key of either direction.
        key: Vec<Expr>,
        /// New common cells.
        common: Vec<Expr>,
        /// When the flow expires, in nanoseconds of the worker's clock.
        expiry: Expr,
        /// Until when the flow may not be evicted for another.
        guarantee: Expr,
    },
    /// Adds a flow with both directions. Flows that held one of its keys are evicted. When the
    /// table is full, the flow that expires first among those without a guarantee is evicted; if
    /// there is none, or the new flow has no guarantee either and expires before it, `full` runs
    /// instead. [`crate::state::Flows`] says what happens in every case.
    FlowInsert {
        /// The [`StateKind::Flows`] of the forward direction.
        flows: StateRef,
        /// The direction of the packet at hand.
        forward: FlowSide,
        /// The direction of the answers.
        reverse: FlowSide,
        /// Cells that both directions share.
        common: Vec<Expr>,
        /// When the flow expires, in nanoseconds of the worker's clock.
        expiry: Expr,
        /// Until when the flow may not be evicted for another.
        guarantee: Expr,
        /// When the table is full of flows that may not be evicted.
        full: Block,
    },
    /// Finds the first number of `range`, from `start` on and around, for which no flow exists
    /// under `key` (which mentions `bind`).
    Allocate {
        /// Receives the number.
        bind: Reg,
        /// Least and greatest number.
        range: (u128, u128),
        /// Where the search starts.
        start: Expr,
        /// The flow table that must not hold the key.
        flows: StateRef,
        /// The key to try.
        key: Vec<Expr>,
        /// When every number is taken.
        exhausted: Block,
    },
    /// Counts a reason without dropping: the packet leaves on an error output.
    Note(Reason),
    /// Sends a copy out of a port and goes on with the packet.
    EmitCopy(Expr),
    /// Sends the packet out of a port. A port that does not exist drops it as `no-such-port`.
    Emit(Expr),
    /// Drops the packet.
    Drop(Reason),
    /// The element's native code takes the packet from here; the reason says why. Must come before
    /// any other effect on the packet or on state.
    Opaque(&'static str),
}

/// What a piece of state is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// Packets and bytes.
    Counter,
    /// Numbers of `width` bits with their initial values.
    Cells {
        /// Width in bits.
        width: u16,
        /// One a cell.
        initial: Vec<u128>,
    },
    /// Bidirectional flows.
    Flows {
        /// How many flows it holds.
        capacity: u64,
        /// Widths in bits of the numbers that a lookup binds: a direction's values, then the
        /// common cells. Those that are not told may have 128.
        widths: Vec<u16>,
    },
}

/// A piece of state that a model declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDecl {
    /// The element that owns it, if not the element itself.
    pub owner: Option<String>,
    /// Its name within the owner.
    pub name: &'static str,
    /// What it is.
    pub kind: StateKind,
}

/// What an element means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// State that the operations refer to.
    pub state: Vec<StateDecl>,
    /// One block an input port; the last serves all further ports.
    pub inputs: Vec<Block>,
}

impl StateKind {
    /// Width in bits of the `index`th number that a lookup in flows binds.
    pub fn width(&self, index: usize) -> u16 {
        match self {
            StateKind::Flows { widths, .. } => widths.get(index).copied().unwrap_or(128),
            _ => 128,
        }
    }
}

impl Model {
    /// The block of an input port.
    pub fn input(&self, port: usize) -> Option<&Block> {
        self.inputs.get(port).or(self.inputs.last())
    }

    /// A model whose packets always take the element's native code.
    pub fn opaque(why: &'static str) -> Self {
        Self::from_block(vec![Op::Opaque(why)])
    }

    /// A model that treats every input port alike, without state.
    pub fn from_block(block: Block) -> Self {
        Self { state: Vec::new(), inputs: vec![block] }
    }

    /// Declares a piece of state of the element itself.
    pub fn declare(&mut self, name: &'static str, kind: StateKind) -> StateRef {
        self.declare_of(None, name, kind)
    }

    /// Declares a piece of state that another element owns.
    pub fn declare_of(
        &mut self,
        owner: Option<String>,
        name: &'static str,
        kind: StateKind,
    ) -> StateRef {
        self.state.push(StateDecl { owner, name, kind });
        StateRef(self.state.len() as u16 - 1)
    }

    /// Whether every path ends in [`Op::Opaque`] at once.
    pub fn is_opaque(&self) -> bool {
        self.inputs.iter().all(|b| matches!(b.first(), Some(Op::Opaque(_))))
    }
}

// Short forms of expressions, conditions and operations.

impl From<Field> for Expr {
    fn from(field: Field) -> Self {
        Expr::Field(field)
    }
}

impl From<Reg> for Expr {
    fn from(reg: Reg) -> Self {
        Expr::Reg(reg)
    }
}

macro_rules! expr_from {
    ($($number:ty),*) => {$(
        impl From<$number> for Expr {
            fn from(value: $number) -> Self {
                Expr::Const(value as u128)
            }
        }
    )*};
}
expr_from!(u8, u16, u32, u64, u128, usize);

/// A negative constant in two's complement, as [`Op::Pull`] and [`Op::Mark`] take it.
impl From<i32> for Expr {
    fn from(value: i32) -> Self {
        Expr::Const(i128::from(value) as u128)
    }
}

macro_rules! expr_ops {
    ($($trait:ident $method:ident $op:ident),*) => {$(
        impl<T: Into<Expr>> std::ops::$trait<T> for Expr {
            type Output = Expr;
            fn $method(self, other: T) -> Expr {
                Expr::Binary(BinaryOp::$op, Box::new(self), Box::new(other.into()))
            }
        }
    )*};
}
expr_ops!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Rem, BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor, Shl shl Shl, Shr shr Shr);

impl Expr {
    /// The lesser of two.
    #[must_use]
    pub fn min(self, other: impl Into<Expr>) -> Expr {
        Expr::Binary(BinaryOp::Min, Box::new(self), Box::new(other.into()))
    }

    /// The greater of two.
    #[must_use]
    pub fn max(self, other: impl Into<Expr>) -> Expr {
        Expr::Binary(BinaryOp::Max, Box::new(self), Box::new(other.into()))
    }

    /// `width` bits at a computed byte offset from a base.
    pub fn load(base: Base, offset: impl Into<Expr>, width: u16) -> Expr {
        Expr::Load { base, offset: Box::new(offset.into()), width }
    }

    /// Ones' complement sum of a run of bytes.
    pub fn sum16(base: Base, offset: impl Into<Expr>, length: impl Into<Expr>) -> Expr {
        Expr::Sum16 { base, offset: Box::new(offset.into()), length: Box::new(length.into()) }
    }

    /// `then` if the condition holds, else `otherwise`.
    pub fn choose(cond: Cond, then: impl Into<Expr>, otherwise: impl Into<Expr>) -> Expr {
        Expr::Choose(Box::new(cond), Box::new(then.into()), Box::new(otherwise.into()))
    }

    /// Folds a sum of 16-bit words to 16 bits with end-around carries (RFC 1071).
    #[must_use]
    pub fn fold16(self) -> Expr {
        Expr::Fold16(Box::new(self))
    }

    /// The condition that the number is in a set.
    pub fn is_in(self, set: IntervalSet) -> Cond {
        Cond::Test(self, set)
    }

    /// Equal; a comparison with a constant becomes a test.
    #[allow(clippy::should_implement_trait)]
    pub fn eq(self, other: impl Into<Expr>) -> Cond {
        match other.into() {
            Expr::Const(value) => Cond::Test(self, IntervalSet::single(value)),
            other => Cond::Compare(CompareOp::Eq, self, other),
        }
    }

    /// Not equal.
    #[allow(clippy::should_implement_trait)]
    pub fn ne(self, other: impl Into<Expr>) -> Cond {
        self.eq(other).not()
    }

    /// Less.
    pub fn lt(self, other: impl Into<Expr>) -> Cond {
        match other.into() {
            Expr::Const(0) => Cond::Const(false),
            Expr::Const(value) => Cond::Test(self, IntervalSet::range(0, value - 1)),
            other => Cond::Compare(CompareOp::Lt, self, other),
        }
    }

    /// Less or equal.
    pub fn le(self, other: impl Into<Expr>) -> Cond {
        match other.into() {
            Expr::Const(value) => Cond::Test(self, IntervalSet::range(0, value)),
            other => Cond::Compare(CompareOp::Le, self, other),
        }
    }

    /// Greater.
    pub fn gt(self, other: impl Into<Expr>) -> Cond {
        self.le(other).not()
    }

    /// Greater or equal.
    pub fn ge(self, other: impl Into<Expr>) -> Cond {
        self.lt(other).not()
    }
}

impl Cond {
    /// It does not hold.
    #[allow(clippy::should_implement_trait)]
    #[must_use]
    pub fn not(self) -> Cond {
        match self {
            Cond::Const(value) => Cond::Const(!value),
            Cond::Not(inner) => *inner,
            other => Cond::Not(Box::new(other)),
        }
    }

    /// Both hold; the second is looked at only if the first holds.
    #[must_use]
    pub fn and(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::All(mut all), Cond::All(more)) => {
                all.extend(more);
                Cond::All(all)
            }
            (Cond::All(mut all), other) => {
                all.push(other);
                Cond::All(all)
            }
            (first, other) => Cond::All(vec![first, other]),
        }
    }

    /// One holds; the second is looked at only if the first does not.
    #[must_use]
    pub fn or(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::Any(mut any), other) => {
                any.push(other);
                Cond::Any(any)
            }
            (first, other) => Cond::Any(vec![first, other]),
        }
    }
}

impl Field {
    /// The field as an expression, to compute with.
    pub fn get(self) -> Expr {
        Expr::Field(self)
    }

    /// The condition that the field is in a set.
    pub fn is_in(self, set: IntervalSet) -> Cond {
        Cond::Test(Expr::Field(self), set)
    }

    /// Equal.
    #[allow(clippy::should_implement_trait)]
    pub fn eq(self, other: impl Into<Expr>) -> Cond {
        self.get().eq(other)
    }

    /// Not equal.
    #[allow(clippy::should_implement_trait)]
    pub fn ne(self, other: impl Into<Expr>) -> Cond {
        self.get().ne(other)
    }

    /// Less.
    pub fn lt(self, other: impl Into<Expr>) -> Cond {
        self.get().lt(other)
    }

    /// Less or equal.
    pub fn le(self, other: impl Into<Expr>) -> Cond {
        self.get().le(other)
    }

    /// Greater.
    pub fn gt(self, other: impl Into<Expr>) -> Cond {
        self.get().gt(other)
    }

    /// Greater or equal.
    pub fn ge(self, other: impl Into<Expr>) -> Cond {
        self.get().ge(other)
    }

    /// The field with some bits changed in the packet's memory: see [`Op::Set`].
    pub fn set(self, value: impl Into<Expr>) -> Op {
        Op::Set(self, value.into())
    }
}

impl Op {
    /// Sends the packet out of a port.
    pub fn emit(port: impl Into<Expr>) -> Op {
        Op::Emit(port.into())
    }

    /// Removes (or, if negative, adds) bytes at the front.
    pub fn pull(bytes: impl Into<Expr>) -> Op {
        Op::Pull(bytes.into())
    }

    /// Runs a block if a condition holds.
    pub fn when(cond: Cond, then: Block) -> Op {
        Op::If(cond, then, Vec::new())
    }

    /// The blocks that stand in the operation, in the order of its text.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        let (arms, last): (&[Block], Option<&Block>) = match self {
            Op::If(_, then, otherwise) => (std::slice::from_ref(then), Some(otherwise)),
            Op::Match { arms, otherwise, .. } => (arms, Some(otherwise)),
            Op::Repeat { body, .. } => (std::slice::from_ref(body), None),
            Op::Lookup { miss: block, .. }
            | Op::FlowLookup { miss: block, .. }
            | Op::FlowInsert { full: block, .. }
            | Op::Allocate { exhausted: block, .. } => (std::slice::from_ref(block), None),
            _ => (&[], None),
        };
        arms.iter().chain(last)
    }

    /// The same, to change.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        let (arms, last): (&mut [Block], Option<&mut Block>) = match self {
            Op::If(_, then, otherwise) => (std::slice::from_mut(then), Some(otherwise)),
            Op::Match { arms, otherwise, .. } => (arms, Some(otherwise)),
            Op::Repeat { body, .. } => (std::slice::from_mut(body), None),
            Op::Lookup { miss: block, .. }
            | Op::FlowLookup { miss: block, .. }
            | Op::FlowInsert { full: block, .. }
            | Op::Allocate { exhausted: block, .. } => (std::slice::from_mut(block), None),
            _ => (&mut [], None),
        };
        arms.iter_mut().chain(last)
    }

    /// Drops the packet.
    pub fn drop(reason: &'static str) -> Op {
        Op::Drop(Reason(reason))
    }
}

/// Sends a packet to an error output if the element has one, counting the reason, and else
/// drops it: Click's convention for optional error outputs.
pub fn reject(port: usize, outputs: usize, reason: Reason) -> Block {
    if port < outputs { vec![Op::Note(reason), Op::emit(port)] } else { vec![Op::Drop(reason)] }
}

/// The operations that write `bytes` at byte `offset` from `base`.
pub fn set_bytes(base: Base, offset: u16, bytes: &[u8]) -> Block {
    let mut at = offset;
    bytes
        .chunks(16)
        .map(|chunk| {
            let value = chunk.iter().fold(0u128, |v, &b| v << 8 | u128::from(b));
            let field = Field::bytes(base, at, chunk.len() as u16);
            at += chunk.len() as u16;
            field.set(value)
        })
        .collect()
}
