//! Well-formedness of models.
//!
//! A model that is well formed (without errors) reads no register that nothing wrote, ends
//! every path in a terminal operation with nothing right behind it, declares its state and uses it
//! as declared, and is opaque only while nothing has been changed. A register that is written on
//! some paths only is a warning, since conditions may exclude each other unseen. Whether every byte that it
//! reads is there depends on tests of lengths; a conservative dataflow follows them. Reads at a
//! fixed place whose guard it does not see are warnings; computed places, whose bounds it often
//! cannot know, are notes. A model without errors, warnings and notes never makes the
//! interpreter fault.

mod facts;

use std::fmt;

use net::{Header, annotation};

use crate::PrefixTable;
use crate::diagnostic::Severity;
use crate::field::{Base, Field, meta};
use crate::interval::IntervalSet;
use crate::model::{
    BinaryOp, Block, CompareOp, Cond, Expr, FlowSide, Model, Op, Reg, StateKind, StateRef,
};
use facts::{Facts, Range};

/// How deeply conditions and expressions may be nested; a block counts as four.
pub const MAX_DEPTH: usize = 400;
const BLOCK_DEPTH: usize = 4;
/// How deeply loops may be nested.
pub const MAX_LOOPS: usize = 4;
/// How many numbers an allocation may have to try.
pub const MAX_ALLOCATION: u128 = 1 << 24;

/// Something wrong or doubtful in a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// An error, a warning, or a note on what could not be shown.
    pub severity: Severity,
    /// Stable identifier in kebab case.
    pub code: &'static str,
    /// The path to the operation, such as `input 0, op 2, then, op 0`.
    pub place: String,
    /// One sentence without a full stop.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {} [{}]", self.severity, self.place, self.message, self.code)
    }
}

/// Everything that is wrong or doubtful in a model, in the order of its text.
pub fn verify(model: &Model) -> Vec<Problem> {
    let mut verifier = Verifier {
        model,
        problems: Vec::new(),
        place: Vec::new(),
        depth: 0,
        muted: false,
        loops: Vec::new(),
    };
    verifier.declarations();
    for (i, block) in model.inputs.iter().enumerate() {
        verifier.at("input", Some(i), |v| {
            if v.block(block, Facts::default()).is_some() {
                v.error("no-end", "a path ends without `emit`, `drop` or `opaque`");
            }
        });
    }
    verifier.problems
}

/// Whether a model has no errors; see [`verify`] for what is wrong with it.
pub fn is_well_formed(model: &Model) -> bool {
    verify(model).iter().all(|p| p.severity < Severity::Error)
}

struct Verifier<'a> {
    model: &'a Model,
    problems: Vec<Problem>,
    place: Vec<(&'static str, Option<usize>)>,
    depth: usize,
    /// While a loop is looked at to find what always holds in it.
    muted: bool,
    /// For each loop around, what holds where it is left.
    loops: Vec<Option<Facts>>,
}

/// What holds on either of two paths, a path that is never taken being `None`.
fn either(a: Option<Facts>, b: Option<Facts>) -> Option<Facts> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.join(&b)),
        (a, b) => a.or(b),
    }
}

impl<'a> Verifier<'a> {
    fn at<T>(
        &mut self,
        name: &'static str,
        index: Option<usize>,
        what: impl FnOnce(&mut Self) -> T,
    ) -> T {
        self.place.push((name, index));
        let result = what(self);
        self.place.pop();
        result
    }

    fn report(&mut self, severity: Severity, code: &'static str, message: impl Into<String>) {
        if self.muted {
            return;
        }
        let steps = self.place.iter().map(|(name, index)| match index {
            Some(i) => format!("{name} {i}"),
            None => (*name).to_string(),
        });
        let place = steps.collect::<Vec<_>>().join(", ");
        self.problems.push(Problem { severity, code, place, message: message.into() });
    }

    fn error(&mut self, code: &'static str, message: impl Into<String>) {
        self.report(Severity::Error, code, message);
    }

    fn warning(&mut self, code: &'static str, message: impl Into<String>) {
        self.report(Severity::Warning, code, message);
    }

    fn note(&mut self, message: impl Into<String>) {
        self.report(Severity::Note, "unproven", message);
    }

    /// Whether one may go deeper.
    fn deeper(&mut self, by: usize) -> bool {
        if self.depth + by > MAX_DEPTH {
            self.error("too-deep", "the model is nested too deeply");
            return false;
        }
        self.depth += by;
        true
    }

    fn declarations(&mut self) {
        for (i, declared) in self.model.state.iter().enumerate() {
            self.at("state", Some(i), |v| {
                let same = |d: &crate::model::StateDecl| {
                    (&d.owner, d.name) == (&declared.owner, declared.name)
                };
                if v.model.state[..i].iter().any(same) {
                    v.error("duplicate-state", format!("`{}` is declared twice", declared.name));
                }
                if let StateKind::Cells { width, initial } = &declared.kind {
                    v.width(*width, 1);
                    let max = u128::MAX >> (128 - (*width).clamp(1, 128));
                    if initial.iter().any(|&value| value > max) {
                        v.error("constant-too-large", format!("a cell has {width} bits"));
                    }
                }
            });
        }
    }

    fn width(&mut self, width: u16, unit: u16) {
        if width == 0 || width > 128 || !width.is_multiple_of(unit) {
            let bytes = if unit == 8 { ", in bytes" } else { "" };
            self.error("bad-width", format!("a width is 1 to 128 bits{bytes}, not {width}"));
        }
    }

    fn kind(&mut self, state: StateRef) -> Option<&'a StateKind> {
        let kind = self.model.state.get(usize::from(state.0)).map(|d| &d.kind);
        if kind.is_none() {
            self.error("undeclared-state", format!("there is no state #{}", state.0));
        }
        kind
    }

    fn flows(&mut self, state: StateRef) {
        if !matches!(self.kind(state), None | Some(StateKind::Flows { .. })) {
            self.error("wrong-state", format!("state #{} is not a flow table", state.0));
        }
    }

    /// The cells' width, their index having been checked.
    fn cell(&mut self, state: StateRef, index: &Expr, facts: &mut Facts) -> Option<u16> {
        let at = self.expr(index, facts);
        match self.kind(state)? {
            StateKind::Cells { width, initial } => {
                let count = initial.len() as u128;
                if at.low >= count {
                    self.error("no-such-cell", format!("there are only {count} cells"));
                } else if at.high >= count {
                    self.note("the index may be beyond the last cell");
                }
                Some(*width)
            }
            _ => {
                self.error("wrong-state", format!("state #{} is not cells", state.0));
                None
            }
        }
    }

    /// Reading or writing so many bytes of a base, from a fixed or computed offset on.
    fn place(&mut self, base: Base, fixed: bool, at: Range, bytes: u128, facts: &Facts) {
        let readable = u128::from(facts.readable(base));
        let set = !matches!(base, Base::Header(header) if !facts.is_set(header));
        if base == Base::Meta {
            self.error("bad-field", "properties of the packet have no bytes");
        } else if base == Base::Carried {
            self.error("bad-field", "only parts of programs carry bytes");
        } else if set && at.high.checked_add(bytes).is_some_and(|end| end <= readable) {
        } else if base == Base::Annotation && at.low.saturating_add(bytes) > readable {
            self.error("bad-field", "this is beyond the annotations");
        } else if fixed {
            self.unguarded(&format!("{base}[{}] of {bytes} bytes", at.low), base, readable);
        } else {
            self.note(format!("a computed place may be beyond the end of {base}"));
        }
    }

    fn unguarded(&mut self, what: &str, base: Base, known: u128) {
        let message = format!("{what} is not guarded: {base} is known to have {known} bytes");
        self.warning("unguarded", message);
    }

    /// Reading or writing a field.
    fn field(&mut self, field: Field, write: bool, facts: &Facts) {
        self.width(field.width, 1);
        let end = (u32::from(field.offset) + u32::from(field.width)).div_ceil(8);
        let readable = facts.readable(field.base);
        match field.base {
            Base::Meta => {
                let known = Field::all_named().any(|(_, f)| f == field);
                if !known || write && field != meta::TYPE && field != meta::TIMESTAMP {
                    let done = if write { "written" } else { "read" };
                    self.error("bad-field", format!("{field} cannot be {done}"));
                }
            }
            Base::Carried => self.error("bad-field", "only parts of programs carry bytes"),
            Base::Annotation if end as usize > annotation::SIZE => {
                self.error("bad-field", format!("{field} is beyond the annotations"));
            }
            base if u64::from(end) > readable => {
                self.unguarded(&field.to_string(), base, readable.into());
            }
            _ => {}
        }
    }

    /// The sum of bytes from an offset on.
    fn run(&mut self, base: Base, offset: &Expr, length: &Expr, facts: &mut Facts) -> Range {
        let (at, n) = (self.expr(offset, facts), self.expr(length, facts));
        let spare = facts.at_most_available(length, base);
        if spare.is_some_and(|spare| at.high <= spare) {
            if let Base::Header(header) = base
                && !facts.is_set(header)
            {
                self.warning("unguarded", format!("{base} may not be set"));
            }
        } else {
            let fixed = is_const(offset) && is_const(length);
            self.place(base, fixed, at, n.high, facts);
        }
        n
    }

    fn exprs(&mut self, exprs: &[Expr], facts: &mut Facts) {
        for expr in exprs {
            self.expr(expr, facts);
        }
    }

    /// Checks an expression and finds the range of its values.
    fn expr(&mut self, expr: &Expr, facts: &mut Facts) -> Range {
        if !self.deeper(1) {
            return Range::ANY;
        }
        let range = self.expr_within(expr, facts);
        self.depth -= 1;
        range
    }

    fn expr_within(&mut self, expr: &Expr, facts: &mut Facts) -> Range {
        match expr {
            Expr::Const(value) => Range::single(*value),
            Expr::Field(field) => {
                self.field(*field, false, facts);
                if (1..=128).contains(&field.width) { facts.field(*field) } else { Range::ANY }
            }
            Expr::Reg(reg) => facts.register(*reg).unwrap_or_else(|| {
                if facts.is_perhaps_written(*reg) {
                    self.warning(
                        "unwritten-register",
                        format!("{reg} is not written on every path"),
                    );
                } else {
                    self.error("unwritten-register", format!("{reg} is read before it is written"));
                }
                Range::ANY
            }),
            Expr::Load { base, offset, width } => {
                self.width(*width, 8);
                let at = self.expr(offset, facts);
                self.place(*base, is_const(offset), at, u128::from(width / 8), facts);
                Range::new(0, u128::MAX >> (128 - (*width).clamp(1, 128)))
            }
            Expr::Position(header) => {
                if !facts.is_set(*header) {
                    let base = Base::Header(*header);
                    self.warning("unguarded", format!("{base} may not be set"));
                }
                Range::ANY
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(a, facts), self.expr(b, facts));
                Range::binary(*op, a, b)
            }
            Expr::Choose(cond, then, otherwise) => {
                let (held, failed) = self.cond(cond, facts.clone());
                let branches = [(held, then), (failed, otherwise)];
                let mut range: Option<Range> = None;
                for (branch, expr) in branches {
                    if let Some(mut branch) = branch {
                        let this = self.expr(expr, &mut branch);
                        range = Some(range.map_or(this, |r| r.hull(this)));
                        facts.changed |= branch.changed;
                    }
                }
                range.unwrap_or(Range::ANY)
            }
            Expr::Sum16 { base, offset, length } => {
                self.run(*base, offset, length, facts);
                Range::new(0, 0xffff)
            }
            Expr::ByteSum { base, offset, length } => {
                let n = self.run(*base, offset, length, facts);
                Range::binary(BinaryOp::Mul, Range::new(0, n.high), Range::single(255))
            }
            Expr::Fold16(sum) => {
                self.expr(sum, facts);
                Range::new(0, 0xffff)
            }
            Expr::Hash(_, numbers) => {
                self.exprs(numbers, facts);
                Range::new(0, u64::MAX.into())
            }
            Expr::Now => Range::new(0, u64::MAX.into()),
            Expr::Random(low, high) => {
                if low > high || *high > u128::from(u64::MAX) {
                    self.error("bad-range", format!("{low}..{high} is no range of 64-bit numbers"));
                    return Range::ANY;
                }
                // The generator moves on.
                facts.changed = true;
                Range::new(*low, *high)
            }
        }
    }

    /// Checks a condition; what holds where it is true, and where it is false.
    fn cond(&mut self, cond: &Cond, facts: Facts) -> (Option<Facts>, Option<Facts>) {
        if !self.deeper(1) {
            return (Some(facts.clone()), Some(facts));
        }
        let branches = self.cond_within(cond, facts);
        self.depth -= 1;
        branches
    }

    fn cond_within(&mut self, cond: &Cond, mut facts: Facts) -> (Option<Facts>, Option<Facts>) {
        match cond {
            Cond::Const(true) => (Some(facts), None),
            Cond::Const(false) => (None, Some(facts)),
            Cond::Test(expr, set) => {
                let range = self.expr(expr, &mut facts);
                if let Expr::Field(field) = expr
                    && (1..=128).contains(&field.width)
                    && set.max().is_some_and(|max| max > Field::max(*field))
                {
                    let message =
                        format!("{field} is tested for more than its {} bits", field.width);
                    self.warning("constant-too-large", message);
                }
                let possible = IntervalSet::range(range.low, range.high);
                let (inside, outside) = (possible.intersect(set), possible.subtract(set));
                (within(&facts, expr, &inside), within(&facts, expr, &outside))
            }
            Cond::Compare(op, a, b) => {
                let (x, y) = (self.expr(a, &mut facts), self.expr(b, &mut facts));
                let compared = |op| compared(&facts, op, (a, x), (b, y));
                let opposite = match op {
                    CompareOp::Eq => CompareOp::Ne,
                    CompareOp::Ne => CompareOp::Eq,
                    CompareOp::Lt => CompareOp::Ge,
                    CompareOp::Le => CompareOp::Gt,
                    CompareOp::Gt => CompareOp::Le,
                    CompareOp::Ge => CompareOp::Lt,
                };
                (compared(*op), compared(opposite))
            }
            Cond::All(all) => {
                let (mut held, mut failed) = (Some(facts), None);
                for cond in all {
                    let Some(facts) = held else { break };
                    let (yes, no) = self.cond(cond, facts);
                    (held, failed) = (yes, either(failed, no));
                }
                (held, failed)
            }
            Cond::Any(any) => {
                let (mut held, mut failed) = (None, Some(facts));
                for cond in any {
                    let Some(facts) = failed else { break };
                    let (yes, no) = self.cond(cond, facts);
                    (held, failed) = (either(held, yes), no);
                }
                (held, failed)
            }
            Cond::Not(inner) => {
                let (yes, no) = self.cond(inner, facts);
                (no, yes)
            }
            Cond::FlowExists(flows, key) => {
                self.flows(*flows);
                self.exprs(key, &mut facts);
                (Some(facts.clone()), Some(facts))
            }
        }
    }

    /// What holds behind a block; `None` if it is never left at its end.
    fn block(&mut self, block: &Block, facts: Facts) -> Option<Facts> {
        if !self.deeper(BLOCK_DEPTH) {
            return Some(facts);
        }
        let mut facts = Some(facts);
        for (i, op) in block.iter().enumerate() {
            let Some(before) = facts.take() else {
                let severity = match &block[i - 1] {
                    Op::Emit(_) | Op::Drop(_) | Op::Opaque(_) | Op::Break => Severity::Error,
                    op if is_last(op) => Severity::Warning,
                    _ => break,
                };
                self.at("op", Some(i), |v| v.report(severity, "unreachable", "no path leads here"));
                break;
            };
            facts = self.at("op", Some(i), |v| v.op(op, before));
        }
        self.depth -= BLOCK_DEPTH;
        facts
    }

    fn branch(&mut self, name: &'static str, block: &Block, facts: Facts) -> Option<Facts> {
        self.at(name, None, |v| v.block(block, facts))
    }

    /// What holds behind an operation; `None` if no path goes on there.
    fn op(&mut self, op: &Op, mut facts: Facts) -> Option<Facts> {
        match op {
            Op::Let(reg, expr) => {
                let range = self.expr(expr, &mut facts);
                facts.bind(*reg, range, Some(expr));
            }
            Op::Set(field, expr) => {
                self.expr(expr, &mut facts);
                self.field(*field, true, &facts);
                self.fits(expr, field.width, &field.to_string());
                facts.changed = true;
            }
            Op::Store { base, offset, width, value } => {
                self.width(*width, 8);
                let at = self.expr(offset, &mut facts);
                self.expr(value, &mut facts);
                self.place(*base, is_const(offset), at, u128::from(width / 8), &facts);
                self.fits(value, *width, "what is stored");
                facts.changed = true;
            }
            Op::If(cond, then, otherwise) => {
                let (held, failed) = self.at("condition", None, |v| v.cond(cond, facts));
                let then = held.and_then(|facts| self.branch("then", then, facts));
                let otherwise = failed.and_then(|facts| self.branch("else", otherwise, facts));
                return either(then, otherwise);
            }
            Op::Match { rules, arms, otherwise } => {
                let mut entries: Vec<Option<Facts>> = vec![None; arms.len()];
                let mut used = vec![false; arms.len()];
                let mut failed = Some(facts);
                for (i, rule) in rules.iter().enumerate() {
                    let arm = rule.arm as usize;
                    if let Some(used) = used.get_mut(arm) {
                        *used = true;
                    } else {
                        let message = format!("there is no arm {arm}");
                        self.at("rule", Some(i), |v| v.error("no-such-arm", message));
                    }
                    let Some(facts) = failed.take() else { continue };
                    let (held, not) = self.at("rule", Some(i), |v| v.cond(&rule.when, facts));
                    failed = not;
                    if let Some(entry) = entries.get_mut(arm) {
                        *entry = either(entry.take(), held);
                    }
                }
                let mut after = failed.and_then(|facts| self.branch("else", otherwise, facts));
                for (i, (arm, entry)) in arms.iter().zip(entries).enumerate() {
                    if !used[i] {
                        let message = "no rule leads to this arm";
                        self.at("arm", Some(i), |v| v.warning("unused-arm", message));
                    }
                    if let Some(facts) = entry {
                        let end = self.at("arm", Some(i), |v| v.block(arm, facts));
                        after = either(after, end);
                    }
                }
                return after;
            }
            Op::Lookup { table, key, bind, miss } => {
                self.expr(key, &mut facts);
                self.table(table, bind.len());
                let missed = self.branch("else", miss, facts.clone());
                for (i, reg) in bind.iter().enumerate() {
                    let values = table.entries().filter_map(|e| e.row.get(i));
                    let hull = values.map(|&v| Range::single(v)).reduce(Range::hull);
                    facts.bind(*reg, hull.unwrap_or(Range::ANY), None);
                }
                let found = Some(facts).filter(|_| !table.is_empty());
                return either(found, missed);
            }
            Op::Repeat { limit, body } => return self.repeat(*limit, body, facts),
            Op::Break => {
                match self.loops.last_mut() {
                    Some(left) => *left = either(left.take(), Some(facts)),
                    None => self.error("stray-break", "`break` stands outside of `repeat`"),
                }
                return None;
            }
            Op::Pull(expr) => {
                let n = self.expr(expr, &mut facts);
                let adds = n.low > u128::MAX - 65535;
                if !adds && n.high > u128::from(u32::MAX) {
                    self.note("this may be no number of bytes");
                } else if adds && !self.loops.is_empty() {
                    self.note("the packet grows in a loop");
                }
                facts.pull(n);
            }
            Op::Truncate(expr) => {
                let length = self.expr(expr, &mut facts);
                facts.truncate(length);
            }
            Op::Extend(expr) => {
                let n = self.expr(expr, &mut facts);
                if n.high > 65536 {
                    self.note("this may be no number of bytes");
                } else if !self.loops.is_empty() {
                    self.note("the packet grows in a loop");
                }
                facts.extend(n);
            }
            Op::Mark(header, expr) => {
                self.expr(expr, &mut facts);
                let (from, rest) = counted_from(expr);
                // What is counted from there was checked with the whole.
                let muted = std::mem::replace(&mut self.muted, true);
                let offset = rest.map_or(Range::single(0), |rest| self.expr(rest, &mut facts));
                self.muted = muted;
                if offset.low <= u128::MAX - 65535 && offset.high > 65535 {
                    self.note("this may be no position");
                } else if from.is_some() && !self.loops.is_empty() {
                    self.note("a header moves in a loop");
                }
                facts.mark(*header, from, offset);
            }
            Op::Expect(cond) => {
                let (held, failed) = self.at("condition", None, |v| v.cond(cond, facts));
                return either(held, failed);
            }
            Op::Unmark(header) => facts.unmark(*header),
            Op::Fresh => {
                for header in [Header::Mac, Header::Network, Header::Transport] {
                    facts.unmark(header);
                }
            }
            Op::Count(state) => {
                if !matches!(self.kind(*state), None | Some(StateKind::Counter)) {
                    self.error("wrong-state", format!("state #{} is not a counter", state.0));
                }
                facts.changed = true;
            }
            Op::Read(reg, state, index) => {
                let width = self.cell(*state, index, &mut facts).unwrap_or(128).clamp(1, 128);
                facts.bind(*reg, Range::new(0, u128::MAX >> (128 - width)), None);
            }
            Op::Write(state, index, value) => {
                let width = self.cell(*state, index, &mut facts);
                self.expr(value, &mut facts);
                self.fits(value, width.unwrap_or(128), "the cell");
                facts.changed = true;
            }
            Op::FlowLookup { flows, key, value, common, miss } => {
                self.flows(*flows);
                self.exprs(key, &mut facts);
                self.arity(*flows, value.len(), common.len());
                let missed = self.branch("else", miss, facts.clone());
                for reg in value.iter().chain(common) {
                    facts.bind(*reg, Range::ANY, None);
                }
                return either(Some(facts), missed);
            }
            Op::FlowUpdate { flows, key, common, expiry, guarantee } => {
                self.flows(*flows);
                self.exprs(key, &mut facts);
                self.exprs(common, &mut facts);
                self.expr(expiry, &mut facts);
                self.expr(guarantee, &mut facts);
                facts.changed = true;
            }
            Op::FlowInsert { flows, forward, reverse, common, expiry, guarantee, full } => {
                self.flows(*flows);
                for FlowSide { key, value } in [forward, reverse] {
                    self.exprs(key, &mut facts);
                    self.exprs(value, &mut facts);
                }
                self.exprs(common, &mut facts);
                self.expr(expiry, &mut facts);
                self.expr(guarantee, &mut facts);
                facts.changed = true;
                let refused = self.branch("else", full, facts.clone());
                return either(Some(facts), refused);
            }
            Op::Allocate { bind, range: (low, high), start, flows, key, exhausted } => {
                self.flows(*flows);
                self.expr(start, &mut facts);
                if low > high || high - low >= MAX_ALLOCATION {
                    let message = format!("{low}..{high} is not 1 to {MAX_ALLOCATION} numbers");
                    self.error("bad-range", message);
                }
                let none = self.branch("else", exhausted, facts.clone());
                facts.bind(*bind, Range::new(*low, *high), None);
                self.exprs(key, &mut facts);
                if !key.iter().any(|e| mentions(e, *bind)) {
                    self.error("idle-key", format!("the key does not depend on {bind}"));
                }
                return either(Some(facts), none);
            }
            Op::Note(_) => facts.changed = true,
            Op::EmitCopy(port) => {
                self.expr(port, &mut facts);
                facts.changed = true;
            }
            Op::Emit(port) => {
                self.expr(port, &mut facts);
                return None;
            }
            Op::Drop(_) => return None,
            Op::Opaque(_) => {
                if facts.changed {
                    self.error("late-opaque", "something may have been changed before `opaque`");
                }
                return None;
            }
        }
        Some(facts)
    }

    fn fits(&mut self, value: &Expr, width: u16, what: &str) {
        if let Expr::Const(value) = *value
            && value.checked_shr(width.into()).unwrap_or(0) != 0
        {
            self.error("constant-too-large", format!("{value} does not fit {what}"));
        }
    }

    fn repeat(&mut self, limit: u32, body: &Block, mut facts: Facts) -> Option<Facts> {
        if limit == 0 {
            self.warning("empty-loop", "this is repeated no times");
            return Some(facts);
        }
        if self.loops.len() >= MAX_LOOPS {
            self.error("too-deep", "loops are nested too deeply");
            return Some(facts);
        }
        // What holds at the start of every round: found by going round until it settles, and
        // giving up on what keeps changing.
        let muted = std::mem::replace(&mut self.muted, true);
        for round in 0.. {
            self.loops.push(None);
            let end = self.block(body, facts.clone());
            self.loops.pop();
            let Some(end) = end else { break };
            let next = facts.clone().join(&end);
            if next == facts {
                break;
            }
            facts = if round < 2 { next } else { next.widen(&facts) };
        }
        self.muted = muted;
        self.loops.push(None);
        let end = self.branch("body", body, facts);
        either(self.loops.pop().flatten(), end)
    }

    fn table(&mut self, table: &PrefixTable, bound: usize) {
        self.width(table.width(), 1);
        if !(1..=128).contains(&table.width()) {
            return;
        }
        for (i, entry) in table.entries().enumerate() {
            let max = u128::MAX >> (128 - table.width());
            let free = u32::from(table.width().saturating_sub(entry.length));
            let behind = 1u128.checked_shl(free).map_or(u128::MAX, |end| end - 1);
            let message = if entry.length > table.width() || entry.prefix > max {
                format!("the prefix is longer than {} bits", table.width())
            } else if entry.prefix & behind != 0 {
                "the prefix has bits behind its length".into()
            } else if entry.row.len() < bound {
                format!("the row has {} numbers, and {bound} are bound", entry.row.len())
            } else {
                continue;
            };
            self.at("entry", Some(i), |v| v.error("bad-table", message));
        }
    }

    /// A lookup must not bind more numbers than this model's own insertions provide.
    fn arity(&mut self, flows: StateRef, values: usize, commons: usize) {
        let mut least: Option<(usize, usize)> = None;
        for block in &self.model.inputs {
            insertions(block, flows, &mut least);
        }
        if let Some((v, c)) = least
            && (values > v || commons > c)
        {
            let message = format!("{values} and {commons} numbers are bound, {v} and {c} are kept");
            self.error("flow-arity", message);
        }
    }
}

/// The fewest values and common cells that insertions into a flow table provide.
fn insertions(block: &Block, table: StateRef, least: &mut Option<(usize, usize)>) {
    for op in block {
        if let Op::FlowInsert { flows, forward, reverse, common, .. } = op
            && *flows == table
        {
            let values = forward.value.len().min(reverse.value.len());
            let (v, c) = least.unwrap_or((usize::MAX, usize::MAX));
            *least = Some((v.min(values), c.min(common.len())));
        }
        op.blocks().for_each(|block| insertions(block, table, least));
    }
}

/// What holds where a number is in a set; `None` if it never is.
fn within(facts: &Facts, expr: &Expr, set: &IntervalSet) -> Option<Facts> {
    let mut facts = facts.clone();
    facts.assume(expr, Range::new(set.min()?, set.max()?)).then_some(facts)
}

/// What holds where two numbers compare so; `None` if they never do.
fn compared(
    facts: &Facts,
    op: CompareOp,
    (a, x): (&Expr, Range),
    (b, y): (&Expr, Range),
) -> Option<Facts> {
    let less = |strict: u128, x: Range, y: Range| {
        // x <= y - strict
        let high = y.high.checked_sub(strict)?.min(x.high);
        let low = x.low.checked_add(strict)?.max(y.low);
        (x.low <= high && low <= y.high).then(|| (Range::new(x.low, high), Range::new(low, y.high)))
    };
    let swap = |(y, x)| (x, y);
    let (x, y) = match op {
        CompareOp::Eq => {
            let both = Range::new(x.low.max(y.low), x.high.min(y.high));
            (both.low <= both.high).then_some((both, both))?
        }
        CompareOp::Ne => (x.low != x.high || x != y).then_some((x, y))?,
        CompareOp::Lt => less(1, x, y)?,
        CompareOp::Le => less(0, x, y)?,
        CompareOp::Gt => less(1, y, x).map(swap)?,
        CompareOp::Ge => less(0, y, x).map(swap)?,
    };
    let mut facts = facts.clone();
    (facts.assume(a, x) && facts.assume(b, y)).then_some(facts)
}

/// The header from which a position is counted, and what is added to it.
fn counted_from(expr: &Expr) -> (Option<Header>, Option<&Expr>) {
    match expr {
        Expr::Position(from) => (Some(*from), None),
        Expr::Binary(BinaryOp::Add, a, b) => match (&**a, &**b) {
            (Expr::Position(from), e) | (e, Expr::Position(from)) => (Some(*from), Some(e)),
            _ => (None, Some(expr)),
        },
        _ => (None, Some(expr)),
    }
}

fn is_const(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(_))
}

/// Whether no path goes on behind an operation, whatever its conditions.
fn is_last(op: &Op) -> bool {
    let ends = |block: &Block| block.last().is_some_and(is_last);
    match op {
        Op::Emit(_) | Op::Drop(_) | Op::Opaque(_) | Op::Break => true,
        Op::If(..) | Op::Match { .. } => op.blocks().all(ends),
        _ => false,
    }
}

/// Whether an expression reads a register.
fn mentions(expr: &Expr, reg: Reg) -> bool {
    match expr {
        Expr::Reg(r) => *r == reg,
        Expr::Const(_) | Expr::Field(_) | Expr::Position(_) | Expr::Now | Expr::Random(..) => false,
        Expr::Load { offset: e, .. } | Expr::Fold16(e) => mentions(e, reg),
        Expr::Binary(_, a, b) => mentions(a, reg) || mentions(b, reg),
        Expr::Choose(_, a, b) => mentions(a, reg) || mentions(b, reg),
        Expr::Sum16 { offset, length, .. } | Expr::ByteSum { offset, length, .. } => {
            mentions(offset, reg) || mentions(length, reg)
        }
        Expr::Hash(_, numbers) => numbers.iter().any(|e| mentions(e, reg)),
    }
}
