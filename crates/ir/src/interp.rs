//! The reference interpreter: a model's meaning, executed on real packets as simply as possible.

use std::fmt;

use net::{Header, Packet, PacketType};

use crate::field::{Base, Field, meta};
use crate::model::{
    Block, Cond, Expr, FlowSide, Model, Op, Reason, Reg, Rule, StateKind, StateRef,
};
use crate::state::{Flow, Flows, StateValue, Store};
use crate::verify::MAX_ALLOCATION;
use crate::{PrefixEntry, PrefixTable};

/// Pushes and extensions beyond this many bytes are faults: no model means that.
const MAX_LENGTH: usize = 1 << 24;

/// How a packet's path through a model ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It leaves on this port.
    Emit(usize),
    /// It is dropped.
    Drop(Reason),
    /// The element's native code must take it; nothing was changed.
    Opaque(&'static str),
}

/// A model did what no model may do: a bug in the element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A field beyond the packet's bytes was read or written.
    OutOfBounds(String),
    /// A register was read before it was written, or state is not of the kind that was declared.
    Malformed(String),
    /// No operation ended the packet's path.
    NoEnd,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::OutOfBounds(what) => write!(f, "{what} is beyond the packet"),
            Fault::Malformed(what) => write!(f, "malformed model: {what}"),
            Fault::NoEnd => f.write_str("the model neither emits nor drops the packet"),
        }
    }
}

impl std::error::Error for Fault {}

/// What surrounds a model while it runs.
pub trait Environment {
    /// Nanoseconds of the worker's clock.
    fn now(&self) -> u64;
    /// A random number of `low..=high`.
    fn random(&mut self, low: u64, high: u64) -> u64;
    /// A copy of the packet leaves on a port.
    fn emit_copy(&mut self, port: usize, packet: &Packet);
    /// A reason was counted without a drop.
    fn note(&mut self, reason: Reason);
    /// A rule of a match was chosen, or none.
    fn matched(&mut self, _rule: Option<&Rule>) {}
    /// A key was looked up in a table.
    fn looked_up(&mut self, _key: u128, _table: &PrefixTable, _entry: Option<&PrefixEntry>) {}
    /// A flow table was asked or changed.
    fn flow(&mut self, _event: FlowEvent<'_>) {}
}

/// What happens at a flow table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowEvent<'a> {
    /// A lookup found a flow and bound these numbers.
    Found {
        /// What was looked up.
        key: &'a [u128],
        /// Whether the packet is of the reply direction.
        reverse: bool,
        /// What the lookup bound.
        values: &'a [u128],
    },
    /// A lookup found no flow under this key.
    Missed(&'a [u128]),
    /// A flow is to be added.
    Adding(&'a Flow),
    /// There was no room for it.
    Full,
}

/// Runs the model of `element`, a packet having come in on `input`.
///
/// # Errors
/// A [`Fault`] if the model is wrong; the packet and the state are then unspecified.
pub fn interpret(
    model: &Model,
    element: &str,
    input: usize,
    packet: &mut Packet,
    store: &mut Store,
    environment: &mut dyn Environment,
) -> Result<End, Fault> {
    let block = model.input(input).ok_or(Fault::NoEnd)?;
    let mut run = Run { model, element, packet, store, environment, registers: Vec::new() };
    match run.block(block)? {
        Step::End(end) => Ok(end),
        Step::Next | Step::Break => Err(Fault::NoEnd),
    }
}

/// What comes after an operation.
enum Step {
    Next,
    Break,
    End(End),
}

struct Run<'a> {
    model: &'a Model,
    element: &'a str,
    packet: &'a mut Packet,
    store: &'a mut Store,
    environment: &'a mut dyn Environment,
    registers: Vec<Option<u128>>,
}

impl Run<'_> {
    fn block(&mut self, block: &Block) -> Result<Step, Fault> {
        for op in block {
            match self.op(op)? {
                Step::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Step::Next)
    }

    fn op(&mut self, op: &Op) -> Result<Step, Fault> {
        match op {
            Op::Let(reg, expr) => {
                let value = self.expr(expr)?;
                self.bind(*reg, value);
            }
            Op::Set(field, expr) => {
                let value = self.expr(expr)?;
                self.write(*field, value)?;
            }
            Op::Store { base, offset, width, value } => {
                let (offset, value) = (self.expr(offset)?, self.expr(value)?);
                let at = usize::try_from(offset).ok();
                let length = bytes_of(*width)?;
                let bytes =
                    at.and_then(|at| self.bytes_mut(*base)?.get_mut(at..at.checked_add(length)?));
                let Some(bytes) = bytes else {
                    return Err(Fault::OutOfBounds(format!("{base}[{offset}] of {width} bits")));
                };
                bytes.copy_from_slice(&value.to_be_bytes()[16 - length..]);
            }
            Op::If(cond, then, otherwise) => {
                let block = if self.cond(cond)? { then } else { otherwise };
                return self.block(block);
            }
            Op::Match { rules, arms, otherwise } => {
                for rule in rules.iter() {
                    if self.cond(&rule.when)? {
                        self.environment.matched(Some(rule));
                        let arm = arms.get(rule.arm as usize);
                        return self
                            .block(arm.ok_or_else(|| Fault::Malformed("no such arm".into()))?);
                    }
                }
                self.environment.matched(None);
                return self.block(otherwise);
            }
            Op::Lookup { table, key, bind, miss } => {
                let key = self.expr(key)?;
                let entry = table.lookup(key);
                self.environment.looked_up(key, table, entry);
                match entry {
                    Some(entry) => {
                        bind.iter().zip(entry.row.iter()).for_each(|(&r, &v)| self.bind(r, v))
                    }
                    None => return self.block(miss),
                }
            }
            Op::Repeat { limit, body } => {
                for _ in 0..*limit {
                    match self.block(body)? {
                        Step::Next => {}
                        Step::Break => break,
                        end => return Ok(end),
                    }
                }
            }
            Op::Break => return Ok(Step::Break),
            Op::Expect(_) => {}
            Op::Pull(expr) => {
                let n = self.expr(expr)? as i128;
                match usize::try_from(n) {
                    Ok(n) => self.packet.pull(n),
                    Err(_) if n < 0 && n > -65536 => {
                        self.grow(n.unsigned_abs() as usize)?;
                        self.packet.push(n.unsigned_abs() as usize);
                    }
                    Err(_) => return Err(Fault::Malformed(format!("pull of {n} bytes"))),
                }
            }
            Op::Truncate(expr) => {
                let length = self.expr(expr)?;
                self.packet.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            }
            Op::Extend(expr) => {
                let n = self.expr(expr)?;
                match usize::try_from(n) {
                    Ok(n) if n <= 65536 => {
                        self.grow(n)?;
                        self.packet.put(n);
                    }
                    _ => return Err(Fault::Malformed(format!("extension by {n} bytes"))),
                }
            }
            Op::Mark(header, expr) => {
                let offset = self.expr(expr)? as i128;
                match i32::try_from(offset) {
                    Ok(offset) => self.packet.set_header_offset(*header, offset as isize),
                    Err(_) => return Err(Fault::Malformed(format!("mark at {offset}"))),
                }
            }
            Op::Unmark(header) => self.packet.clear_header(*header),
            Op::Fresh => {
                *self.packet.annotations_mut() = net::Annotations::default();
                self.packet.set_timestamp(0);
                self.packet.set_packet_type(PacketType::Host);
                for header in [Header::Mac, Header::Network, Header::Transport] {
                    self.packet.clear_header(header);
                }
            }
            Op::Count(state) => {
                let length = self.packet.len() as u64;
                match self.state(*state)? {
                    StateValue::Counter { packets, bytes } => {
                        *packets += 1;
                        *bytes += length;
                    }
                    _ => return Err(Fault::Malformed("not a counter".into())),
                }
            }
            Op::Read(reg, state, index) => {
                let index = self.expr(index)?;
                let value = *self.cell(*state, index)?;
                self.bind(*reg, value);
            }
            Op::Write(state, index, expr) => {
                let (index, value) = (self.expr(index)?, self.expr(expr)?);
                let width = match self.model.state.get(usize::from(state.0)).map(|d| &d.kind) {
                    Some(StateKind::Cells { width, .. }) => *width,
                    _ => return Err(Fault::Malformed("not cells".into())),
                };
                let unused =
                    128u16.checked_sub(width).and_then(|n| u128::MAX.checked_shr(n.into()));
                let max = unused.ok_or_else(|| bad_width(width))?;
                *self.cell(*state, index)? = value & max;
            }
            Op::FlowLookup { flows, key, value, common, miss } => {
                let (key, now) = (self.numbers(key)?, self.environment.now());
                let found = self
                    .flows(*flows)?
                    .find(&key, now)
                    .map(|(f, side)| (f.values[side].clone(), f.common.clone(), side == 1));
                match found {
                    Some((values, commons, reverse)) => {
                        let event = FlowEvent::Found { key: &key, reverse, values: &values };
                        self.environment.flow(event);
                        value.iter().zip(values).for_each(|(&r, v)| self.bind(r, v));
                        common.iter().zip(commons).for_each(|(&r, v)| self.bind(r, v));
                    }
                    None => {
                        self.environment.flow(FlowEvent::Missed(&key));
                        return self.block(miss);
                    }
                }
            }
            Op::FlowUpdate { flows, key, common, expiry, guarantee } => {
                let (key, common) = (self.numbers(key)?, self.numbers(common)?);
                let (expiry, guarantee) = (self.time(expiry)?, self.time(guarantee)?);
                let now = self.environment.now();
                self.fit(*flows, &common)?;
                self.flows(*flows)?.update(&key, common, expiry, guarantee, now);
            }
            Op::FlowInsert { flows, forward, reverse, common, expiry, guarantee, full } => {
                let (fk, fv) = self.side(forward)?;
                let (rk, rv) = self.side(reverse)?;
                let flow = Flow {
                    keys: [fk, rk],
                    values: [fv, rv],
                    common: self.numbers(common)?,
                    expiry: self.time(expiry)?,
                    guarantee: self.time(guarantee)?,
                };
                let now = self.environment.now();
                for values in &flow.values {
                    self.fit(*flows, &[&values[..], &flow.common].concat())?;
                }
                self.environment.flow(FlowEvent::Adding(&flow));
                if !self.flows(*flows)?.insert(flow, now) {
                    self.environment.flow(FlowEvent::Full);
                    return self.block(full);
                }
            }
            Op::Allocate { bind, range: (low, high), start, flows, key, exhausted } => {
                let start = self.expr(start)?.max(*low).min(*high);
                let now = self.environment.now();
                let mut free = None;
                for candidate in (start..=*high).chain(*low..start).take(MAX_ALLOCATION as usize) {
                    self.bind(*bind, candidate);
                    let key = self.numbers(key)?;
                    if self.flows(*flows)?.find(&key, now).is_none() {
                        free = Some(candidate);
                        break;
                    }
                }
                if free.is_none() {
                    return self.block(exhausted);
                }
            }
            Op::Note(reason) => self.environment.note(*reason),
            Op::EmitCopy(port) => {
                let port = self.port(port)?;
                self.environment.emit_copy(port, self.packet);
            }
            Op::Emit(port) => return Ok(Step::End(End::Emit(self.port(port)?))),
            Op::Drop(reason) => return Ok(Step::End(End::Drop(*reason))),
            Op::Opaque(why) => return Ok(Step::End(End::Opaque(why))),
        }
        Ok(Step::Next)
    }

    fn port(&mut self, port: &Expr) -> Result<usize, Fault> {
        Ok(usize::try_from(self.expr(port)?).unwrap_or(usize::MAX))
    }

    fn time(&mut self, expr: &Expr) -> Result<u64, Fault> {
        Ok(u64::try_from(self.expr(expr)?).unwrap_or(u64::MAX))
    }

    fn side(&mut self, side: &FlowSide) -> Result<(Vec<u128>, Vec<u128>), Fault> {
        Ok((self.numbers(&side.key)?, self.numbers(&side.value)?))
    }

    fn numbers(&mut self, exprs: &[Expr]) -> Result<Vec<u128>, Fault> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn bind(&mut self, reg: Reg, value: u128) {
        let i = usize::from(reg.0);
        if self.registers.len() <= i {
            self.registers.resize(i + 1, None);
        }
        self.registers[i] = Some(value);
    }

    fn state(&mut self, state: StateRef) -> Result<&mut StateValue, Fault> {
        let declared = self.model.state.get(usize::from(state.0));
        let declared = declared.ok_or_else(|| Fault::Malformed("undeclared state".into()))?;
        Ok(self.store.entry(self.element, declared))
    }

    fn flows(&mut self, state: StateRef) -> Result<&mut Flows, Fault> {
        match self.state(state)? {
            StateValue::Flows(flows) => Ok(flows),
            _ => Err(Fault::Malformed("not a flow table".into())),
        }
    }

    /// Faults if the last numbers that a lookup in these flows binds do not fit their widths.
    fn fit(&self, state: StateRef, last: &[u128]) -> Result<(), Fault> {
        let kind = self.model.state.get(usize::from(state.0)).map(|d| &d.kind);
        let Some(StateKind::Flows { widths, .. }) = kind else { return Ok(()) };
        let fits = |(&width, &number): (&u16, &u128)| number >> (width - 1) >> 1 == 0;
        match widths.iter().rev().zip(last.iter().rev()).all(fits) {
            true => Ok(()),
            false => Err(Fault::Malformed("a number of a flow is wider than declared".into())),
        }
    }

    fn cell(&mut self, state: StateRef, index: u128) -> Result<&mut u128, Fault> {
        match self.state(state)? {
            StateValue::Cells(cells) => usize::try_from(index)
                .ok()
                .and_then(|i| cells.get_mut(i))
                .ok_or_else(|| Fault::Malformed(format!("no cell {index}"))),
            _ => Err(Fault::Malformed("not cells".into())),
        }
    }

    fn cond(&mut self, cond: &Cond) -> Result<bool, Fault> {
        Ok(match cond {
            Cond::Const(value) => *value,
            Cond::Test(expr, set) => set.contains(self.expr(expr)?),
            Cond::Compare(op, a, b) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                op.holds(a, b)
            }
            Cond::All(all) => {
                for c in all {
                    if !self.cond(c)? {
                        return Ok(false);
                    }
                }
                true
            }
            Cond::Any(any) => {
                for c in any {
                    if self.cond(c)? {
                        return Ok(true);
                    }
                }
                false
            }
            Cond::Not(inner) => !self.cond(inner)?,
            Cond::FlowExists(flows, key) => {
                let (key, now) = (self.numbers(key)?, self.environment.now());
                self.flows(*flows)?.find(&key, now).is_some()
            }
        })
    }

    fn expr(&mut self, expr: &Expr) -> Result<u128, Fault> {
        Ok(match expr {
            Expr::Const(value) => *value,
            Expr::Field(field) => read(self.packet, *field)?,
            Expr::Reg(reg) => {
                self.registers.get(usize::from(reg.0)).copied().flatten().ok_or_else(|| {
                    Fault::Malformed(format!("register {} is read before it is written", reg.0))
                })?
            }
            Expr::Load { base, offset, width } => {
                let length = Expr::Const(bytes_of(*width)? as u128);
                let bytes = self.run_of_bytes(*base, offset, &length)?;
                bytes.iter().fold(0, |v, &b| v << 8 | u128::from(b))
            }
            Expr::Position(header) => match self.packet.header_offset(*header) {
                Some(offset) => offset as i128 as u128,
                None => {
                    return Err(Fault::OutOfBounds(format!(
                        "position of {}",
                        Base::Header(*header)
                    )));
                }
            },
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                op.apply(a, b)
            }
            Expr::Choose(cond, then, otherwise) => {
                let chosen = if self.cond(cond)? { then } else { otherwise };
                self.expr(chosen)?
            }
            Expr::Sum16 { base, offset, length } => {
                sum16(self.run_of_bytes(*base, offset, length)?)
            }
            Expr::ByteSum { base, offset, length } => {
                self.run_of_bytes(*base, offset, length)?.iter().map(|&b| u128::from(b)).sum()
            }
            Expr::Fold16(sum) => fold16(self.expr(sum)?),
            Expr::Hash(function, numbers) => function.hash(self.numbers(numbers)?).into(),
            Expr::Now => u128::from(self.environment.now()),
            Expr::Random(low, high) => match (u64::try_from(*low), u64::try_from(*high)) {
                (Ok(low), Ok(high)) if low <= high => self.environment.random(low, high).into(),
                _ => return Err(Fault::Malformed(format!("a number of {low}..{high}"))),
            },
        })
    }

    fn bytes_mut(&mut self, base: Base) -> Option<&mut [u8]> {
        match base {
            Base::Data => Some(self.packet.data_mut()),
            Base::Header(header) => self.packet.header_mut(header),
            Base::Annotation => Some(&mut self.packet.annotations_mut().bytes_mut()[..]),
            Base::Carried | Base::Meta => None,
        }
    }

    /// Faults if the packet cannot grow by so many bytes.
    fn grow(&self, bytes: usize) -> Result<(), Fault> {
        match self.packet.len() + bytes <= MAX_LENGTH {
            true => Ok(()),
            false => Err(Fault::Malformed("the packet grows without end".into())),
        }
    }

    fn run_of_bytes(&mut self, base: Base, offset: &Expr, length: &Expr) -> Result<&[u8], Fault> {
        let (offset, length) = (self.expr(offset)?, self.expr(length)?);
        let range = || {
            let (at, n) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
            bytes(self.packet, base)?.get(at..at.checked_add(n)?)
        };
        range().ok_or_else(|| Fault::OutOfBounds(format!("{base}[{offset}] of {length} bytes")))
    }

    fn write(&mut self, field: Field, value: u128) -> Result<(), Fault> {
        if field.base == Base::Meta {
            match field {
                meta::TYPE => self.packet.set_packet_type(PacketType::from_u8(value as u8)),
                meta::TIMESTAMP => self.packet.set_timestamp(value as u64),
                _ => return Err(Fault::Malformed(format!("{field} cannot be written"))),
            }
            return Ok(());
        }
        let (first, last) = bits_of(field)?;
        let touched = first / 8..last.div_ceil(8);
        let Some(bytes) = self.bytes_mut(field.base).and_then(|b| b.get_mut(touched)) else {
            return Err(Fault::OutOfBounds(field.to_string()));
        };
        for (i, bit) in (first..last).rev().enumerate() {
            let byte = &mut bytes[bit / 8 - first / 8];
            let mask = 1 << (7 - bit % 8);
            if value >> i & 1 == 1 { *byte |= mask } else { *byte &= !mask }
        }
        Ok(())
    }
}

fn bytes(packet: &Packet, base: Base) -> Option<&[u8]> {
    match base {
        Base::Data => Some(packet.data()),
        Base::Header(header) => packet.header(header),
        Base::Annotation => Some(&packet.annotations().bytes()[..]),
        Base::Carried => Some(&packet.carried()[..]),
        Base::Meta => None,
    }
}

/// Reads a field of a packet; faults if it lies beyond the packet's bytes.
pub fn read(packet: &Packet, field: Field) -> Result<u128, Fault> {
    if field.base == Base::Meta {
        return read_meta(packet, field);
    }
    let (first, last) = bits_of(field)?;
    let bytes = bytes(packet, field.base).and_then(|b| b.get(first / 8..last.div_ceil(8)));
    let bytes = bytes.ok_or_else(|| Fault::OutOfBounds(field.to_string()))?;
    // A field of 128 bits that is not byte-aligned touches 17 bytes: take it bit by bit.
    let mut value = 0u128;
    for bit in first..last {
        let byte = bytes[bit / 8 - first / 8];
        value = value << 1 | u128::from(byte >> (7 - bit % 8) & 1);
    }
    Ok(value)
}

fn read_meta(packet: &Packet, field: Field) -> Result<u128, Fault> {
    let available = |h| packet.header(h).map_or(0, <[u8]>::len) as u128;
    let has = |h| u128::from(packet.header_offset(h).is_some());
    Ok(match field {
        meta::LEN => packet.len() as u128,
        meta::AVAIL_MAC => available(Header::Mac),
        meta::AVAIL_NET => available(Header::Network),
        meta::AVAIL_TRANSPORT => available(Header::Transport),
        meta::HAS_MAC => has(Header::Mac),
        meta::HAS_NET => has(Header::Network),
        meta::HAS_TRANSPORT => has(Header::Transport),
        meta::TYPE => packet.packet_type() as u128,
        meta::TIMESTAMP => u128::from(packet.timestamp()),
        meta::HEADROOM => packet.headroom() as u128,
        _ => return Err(Fault::Malformed(format!("no property {field}"))),
    })
}

/// Ones' complement sum of bytes (RFC 1071), folded to 16 bits and not inverted.
pub fn sum16(bytes: &[u8]) -> u128 {
    let word = |c: &[u8]| u64::from(c[0]) << 8 | u64::from(c.get(1).copied().unwrap_or(0));
    fold16(bytes.chunks(2).map(word).sum::<u64>().into())
}

/// A sum of 16-bit words folded to 16 bits with end-around carries (RFC 1071): 0 for 0 only.
pub fn fold16(sum: u128) -> u128 {
    match u64::try_from(sum) {
        Ok(0) => 0,
        Ok(sum) => ((sum - 1) % 0xffff + 1).into(),
        Err(_) => (sum - 1) % 0xffff + 1,
    }
}

fn bad_width(width: u16) -> Fault {
    Fault::Malformed(format!("a width of {width} bits"))
}

/// Whole bytes of a width.
fn bytes_of(width: u16) -> Result<usize, Fault> {
    match width {
        8..=128 if width.is_multiple_of(8) => Ok(usize::from(width / 8)),
        _ => Err(bad_width(width)),
    }
}

/// The first bit of a field and one past the last.
fn bits_of(field: Field) -> Result<(usize, usize), Fault> {
    match field.width {
        1..=128 => Ok((field.offset.into(), usize::from(field.offset) + usize::from(field.width))),
        width => Err(bad_width(width)),
    }
}
