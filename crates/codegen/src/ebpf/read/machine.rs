//! One path through instructions: what registers, stack and frame hold.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use foldhash::HashMap;

use super::super::object::{Map, MapKind};
use super::decode::{Alu, Comparison, Insn, Source};
use super::flows::{Flow, Known, Lease, is_use};
use super::live::{Live, place};
use super::numbers::{Node, Num, Numbers, Of, Piece, WINDOW};

/// What a register holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Num(Num),
    Context,
    /// A byte of the frame, counted from where it began as it came in.
    Data(i32),
    DataEnd,
    Stack(i32),
    Map(usize),
    /// An entry of an array that is there.
    Entry {
        map: usize,
        key: u64,
        offset: i32,
    },
    /// Words of a counter, and what was added to them.
    Word {
        map: usize,
        key: u64,
        offset: i32,
        plus: Option<Num>,
    },
    /// An entry of a table, or none.
    Found {
        lookup: u16,
        offset: i32,
    },
    /// Where the number of a slot is, by the lookup of flows; or nowhere.
    Index(u16),
    /// In a slot, or nowhere.
    Slot(u16, i32),
    /// Whether moving an edge failed.
    Failed,
    /// Whether copying bytes failed: of so many, from an offset on.
    Beyond {
        offset: u16,
        length: Num,
    },
    /// The answer that lets a frame leave by a port.
    Redirect(u64),
}

/// What a jump depends on.
pub(super) enum Question {
    /// A number and one that is known.
    Test {
        num: Num,
        how: Comparison,
        than: u64,
    },
    Compare {
        a: Num,
        how: Comparison,
        b: Num,
    },
    /// Whether the frame has at least so many bytes.
    Long {
        bytes: i32,
        if_so: bool,
    },
    /// Whether a lookup found nothing.
    Missed {
        lookup: u16,
        if_so: bool,
    },
    /// Whether bytes lie within the frame.
    Within {
        offset: u16,
        length: Num,
        if_so: bool,
    },
    /// What says whether a lease is there.
    Leased {
        lease: Lease,
        if_so: bool,
    },
    Decided(bool),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct State {
    pub(super) registers: [Option<Value>; 11],
    /// Bytes of the stack by offset: parts of numbers.
    stack: Arc<BTreeMap<i32, (Num, u8)>>,
    /// Where the frame starts.
    pub(super) start: i32,
    /// Bytes that were written.
    pub(super) written: Arc<BTreeMap<i32, (Num, u8)>>,
    /// How long the frame is now, if it was cut or is known to be that long.
    pub(super) length: Option<Num>,
    is_cut: bool,
    /// Lengths that are no less than that of the frame.
    covers: Option<Num>,
    /// The most that a number is.
    most: Option<(Num, u64)>,
    /// Which class was counted, and what was added to its counters.
    pub(super) class: Option<u64>,
    pub(super) counted: Arc<BTreeMap<i32, Num>>,
    /// By lookup of flows: what is known of its slot.
    slots: BTreeMap<u16, Known>,
    /// The lookups whose flows were noted to have had a packet.
    pub(super) used: BTreeSet<u16>,
}

/// What lies around instructions.
pub(super) struct Around<'a> {
    pub(super) numbers: Numbers,
    pub(super) maps: &'a [Map],
    /// Lookups that were met: the map, and the key's bits with the lowest first.
    pub(super) lookups: Vec<(usize, Vec<Piece>)>,
    /// By array: where its entries stand among what it holds from the beginning.
    holds: HashMap<usize, HashMap<u64, usize>>,
    /// The segment's lookups of flows.
    pub(super) flows: Vec<Flow>,
}

impl<'a> Around<'a> {
    pub(super) fn new(numbers: Numbers, maps: &'a [Map], flows: Vec<Flow>) -> Self {
        let number =
            |key: &[u8]| key.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let arrays = maps.iter().enumerate().filter(|(_, map)| map.kind == MapKind::Array);
        let entries = |map: &Map| {
            let all = map.entries.iter().enumerate();
            all.map(|(at, (key, _))| (number(key), at)).collect()
        };
        let holds = arrays.map(|(at, map)| (at, entries(map))).collect();
        Self { numbers, maps, lookups: Vec::new(), holds, flows }
    }

    /// A number of an array's entry; entries that are not given are 0.
    fn held(&self, map: usize, key: u64, at: i32, bytes: u8) -> Option<u64> {
        let (of, entries) = (self.maps.get(map)?, self.holds.get(&map)?);
        let range = usize::try_from(at).ok()?;
        let range = range..range + usize::from(bytes);
        if range.end > of.value as usize {
            return None;
        }
        let Some(entry) = entries.get(&key) else { return Some(0) };
        let bytes = of.entries.get(*entry)?.1.get(range)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

type Step<T> = Result<T, String>;

fn unlike<T>(what: &str) -> Step<T> {
    Err(what.into())
}

impl State {
    pub(super) fn new() -> Self {
        let mut state = Self::default();
        state.registers[1] = Some(Value::Context);
        state.registers[10] = Some(Value::Stack(0));
        state
    }

    /// Without what nobody reads.
    pub(super) fn keep(&mut self, live: Live) {
        for (number, register) in self.registers.iter_mut().enumerate() {
            if number < 10 && live.registers >> number & 1 == 0 {
                *register = None;
            }
        }
        let lives = |at: &i32| place(*at).is_some_and(|place| live.stack >> place & 1 == 1);
        if !self.stack.keys().all(lives) {
            Arc::make_mut(&mut self.stack).retain(|at, _| lives(at));
        }
    }

    fn get(&self, register: usize) -> Step<Value> {
        self.registers[register].clone().ok_or_else(|| format!("r{register} holds nothing"))
    }

    fn num(&self, around: &mut Around<'_>, source: Source) -> Step<Num> {
        match source {
            Source::Number(value) => Ok(around.numbers.number(value)),
            Source::Register(register) => match self.get(register)? {
                Value::Num(num) => Ok(num),
                other => Err(format!("r{register} is no number but {other:?}")),
            },
        }
    }

    fn set(&mut self, register: usize, value: Value) -> Step<()> {
        if register >= 10 {
            return unlike("r10 is written");
        }
        self.registers[register] = Some(value);
        Ok(())
    }

    /// How long the frame is from where it starts now, as it was not cut yet.
    fn uncut(&self, around: &mut Around<'_>) -> Num {
        let length = around.numbers.intern(Node::Length);
        let start = around.numbers.number(self.start.unsigned_abs().into());
        around.numbers.sum(length, start, if self.start < 0 { 1 } else { -1 })
    }

    pub(super) fn alu(
        &mut self,
        around: &mut Around<'_>,
        (op, wide): (Alu, bool),
        to: usize,
        from: Source,
    ) -> Step<()> {
        if let (Alu::Mov, true, Source::Register(from)) = (op, wide, from) {
            let value = self.get(from)?;
            return self.set(to, value);
        }
        let value = match (op, self.registers[to].clone()) {
            (Alu::Mov, _) | (_, Some(Value::Num(_))) | (_, None) => None,
            (_, value) => value,
        };
        // Pointers.
        if let Some(value) = value {
            if !wide {
                return unlike("a pointer is cut");
            }
            if let (Alu::Sub, Value::DataEnd, Source::Register(other)) = (op, &value, from) {
                let (Value::Data(at), false) = (self.get(other)?, self.is_cut) else {
                    return unlike("a difference of pointers");
                };
                let length = around.numbers.intern(Node::Length);
                let at = around.numbers.number(i64::from(at) as u64);
                let left = around.numbers.apply(Alu::Sub, length, at);
                return self.set(to, Value::Num(left));
            }
            let num = self.num(around, from)?;
            if let (Alu::Add, Value::Word { map, key, offset, plus: None }) = (op, &value) {
                let plus = Some(num);
                let value = Value::Word { map: *map, key: *key, offset: *offset, plus };
                return self.set(to, value);
            }
            let by = around.numbers.as_number(num).map(|by| by as i64);
            let by = by.and_then(|by| i32::try_from(by).ok()).filter(|by| by.abs() < 1 << 16);
            let by = match (op, by) {
                (Alu::Add, Some(by)) => by,
                (Alu::Sub, Some(by)) => -by,
                _ => return unlike("a pointer is moved by no constant"),
            };
            let moved = |at: i32| at.checked_add(by).filter(|at| at.abs() < 1 << 20);
            let value = match value {
                Value::Data(at) => moved(at).map(Value::Data),
                Value::Stack(at) => moved(at).map(Value::Stack),
                Value::Entry { map, key, offset } => {
                    moved(offset).map(|offset| Value::Entry { map, key, offset })
                }
                Value::Found { lookup, offset } => {
                    moved(offset).map(|offset| Value::Found { lookup, offset })
                }
                Value::Slot(flow, offset) => moved(offset).map(|to| Value::Slot(flow, to)),
                _ => None,
            };
            return match value {
                Some(value) => self.set(to, value),
                None => unlike("a pointer is moved"),
            };
        }
        let mut b = self.num(around, from)?;
        let mut a = match op {
            Alu::Mov => b,
            _ => self.num(around, Source::Register(to))?,
        };
        if !wide {
            (a, b) = (around.numbers.slice(a, 0, 32), around.numbers.slice(b, 0, 32));
        }
        let mut value = around.numbers.apply(op, a, b);
        if !wide {
            value = around.numbers.slice(value, 0, 32);
        }
        self.set(to, Value::Num(value))
    }

    pub(super) fn reverse(&mut self, around: &mut Around<'_>, to: usize, bits: u8) -> Step<()> {
        let num = self.num(around, Source::Register(to))?;
        let value = around.numbers.reversed(num, bits);
        self.set(to, Value::Num(value))
    }

    pub(super) fn truncate(&mut self, around: &mut Around<'_>, to: usize, bits: u8) -> Step<()> {
        let num = self.num(around, Source::Register(to))?;
        let value = around.numbers.slice(num, 0, bits);
        self.set(to, Value::Num(value))
    }

    /// Parts of numbers beside each other, the lowest first.
    fn joined(around: &mut Around<'_>, parts: &[(Num, u8)]) -> Num {
        let mut pieces = Vec::new();
        for (num, low) in parts {
            let byte = around.numbers.slice(*num, *low, 8);
            let bits = around.numbers.pieces(byte);
            let mut left = 8;
            for piece in bits {
                let width = piece.width.min(left);
                let of = match piece.of {
                    Of::Number(value) if width < 64 => Of::Number(value & ((1 << width) - 1)),
                    of => of,
                };
                pieces.push(Piece { width, of });
                left -= width;
            }
        }
        pieces.retain(|piece| piece.width > 0);
        around.numbers.bits(pieces)
    }

    /// What is at a byte of the frame.
    pub(super) fn byte(&self, around: &mut Around<'_>, at: i32) -> Step<(Num, u8)> {
        if let Some(byte) = self.written.get(&at) {
            return Ok(*byte);
        }
        match u32::try_from(at) {
            Ok(at) if at < 8000 => Ok((around.numbers.data(8 * at, 8), 0)),
            _ => unlike("a byte is read that nobody wrote"),
        }
    }

    pub(super) fn load(
        &mut self,
        around: &mut Around<'_>,
        bytes: u8,
        to: usize,
        (base, offset): (usize, i32),
    ) -> Step<()> {
        let value = match self.get(base)? {
            Value::Context if bytes == 4 => match offset {
                0 => Value::Data(self.start),
                4 => Value::DataEnd,
                _ => return unlike("the context is read"),
            },
            Value::Data(at) => {
                let parts: Step<Vec<(Num, u8)>> = (0..i32::from(bytes))
                    .map(|more| self.byte(around, at + offset + more))
                    .collect();
                Value::Num(Self::joined(around, &parts?))
            }
            Value::Stack(at) => {
                let part = |more| self.stack.get(&(at + offset + more)).copied();
                let parts: Option<Vec<(Num, u8)>> = (0..i32::from(bytes)).map(part).collect();
                let parts = parts.ok_or("the stack holds nothing there")?;
                Value::Num(Self::joined(around, &parts))
            }
            Value::Entry { map, key, offset: at } if around.holds.contains_key(&map) => {
                let number = around.held(map, key, at + offset, bytes);
                Value::Num(around.numbers.number(number.ok_or("it lies beside an entry")?))
            }
            Value::Entry { map, key, offset: at } if bytes == 8 => {
                Value::Word { map, key, offset: at + offset, plus: None }
            }
            Value::Found { lookup, offset: at } if bytes == 8 => {
                let at = at + offset;
                let map = around.lookups.get(usize::from(lookup)).map(|lookup| lookup.0);
                let room = map.and_then(|map| around.maps.get(map)).map_or(0, |map| map.value);
                let place = u32::try_from(at).ok().filter(|at| at % 8 == 0 && at + 8 <= room);
                let place = place.ok_or("it lies beside an entry's numbers")?;
                let bound = Node::Bound(lookup, (place / 16) as u8, (place / 8 % 2) as u8);
                Value::Num(around.numbers.intern(bound))
            }
            Value::Index(flow) if bytes == 4 && offset == 0 => {
                Value::Num(around.numbers.intern(Node::Slot(flow)))
            }
            Value::Slot(flow, at) if bytes == 8 => {
                Value::Num(around.slot_word(flow, self.slots.get(&flow), at + offset)?)
            }
            _ => return unlike("a place is read that is none of these"),
        };
        self.set(to, value)
    }

    pub(super) fn store(
        &mut self,
        around: &mut Around<'_>,
        bytes: u8,
        (base, offset): (usize, i32),
        from: Source,
    ) -> Step<()> {
        match self.get(base)? {
            Value::Entry { map, key, offset: at } => {
                let place = at + offset;
                let word = match from {
                    Source::Register(from) => self.get(from)?,
                    Source::Number(_) => return unlike("a counter is set"),
                };
                let is_counters =
                    around.maps.get(map).is_some_and(|map| map.kind == MapKind::PerCpuArray);
                match word {
                    Value::Word { map: m, key: k, offset: o, plus: Some(num) }
                        if (m, k, o) == (map, key, place) && bytes == 8 && is_counters =>
                    {
                        if self.class.is_some_and(|class| class != key) {
                            return unlike("two classes are counted");
                        }
                        self.class = Some(key);
                        if Arc::make_mut(&mut self.counted).insert(place, num).is_some() {
                            return unlike("a class is counted twice");
                        }
                        Ok(())
                    }
                    _ => unlike("what is stored is no sum of a counter"),
                }
            }
            base @ (Value::Data(_) | Value::Stack(_)) => {
                let num = self.num(around, from)?;
                for more in 0..i32::from(bytes) {
                    let part = (num, 8 * more as u8);
                    match base {
                        Value::Data(at) => {
                            if self.is_cut {
                                return unlike("it is written behind a cut");
                            }
                            Arc::make_mut(&mut self.written).insert(at + offset + more, part);
                        }
                        Value::Stack(at) => {
                            let at = at + offset + more;
                            if !(-512..0).contains(&at) {
                                return unlike("it lies beside the stack");
                            }
                            Arc::make_mut(&mut self.stack).insert(at, part);
                        }
                        _ => {}
                    }
                }
                Ok(())
            }
            Value::Slot(flow, at) if bytes == 8 && is_use(at + offset) => {
                let num = self.num(around, from)?;
                if around.numbers.as_number(num) != Some(1)
                    || !around.is_lease(flow, self.slots.get(&flow))
                {
                    return unlike("it is noted that packets came, where there may be no lease");
                }
                self.used.insert(flow);
                Ok(())
            }
            _ => unlike("a place is written that is none of these"),
        }
    }

    fn pointer(&self, register: usize) -> Step<i32> {
        match self.get(register)? {
            Value::Stack(at) => Ok(at),
            _ => Err(format!("r{register} does not point into the stack")),
        }
    }

    fn constant(&self, around: &mut Around<'_>, register: usize) -> Step<u64> {
        let num = self.num(around, Source::Register(register))?;
        around.numbers.as_number(num).ok_or_else(|| format!("r{register} is no constant"))
    }

    pub(super) fn call(&mut self, around: &mut Around<'_>, function: i32) -> Step<()> {
        let value = match function {
            1 => self.look_up(around)?,
            160 => Value::Num(around.numbers.intern(Node::Tick)),
            44 => {
                let by = self.constant(around, 2)? as u32 as i32;
                if self.get(1)? != Value::Context || self.is_cut || by.abs() > 4096 {
                    return unlike("an edge is moved by code that is not understood");
                }
                self.start += by;
                self.covers = None;
                self.forget_pointers();
                Value::Failed
            }
            51 => {
                let Value::Map(map) = self.get(1)? else { return unlike("r1 is no map") };
                if around.maps.get(map).is_none_or(|map| map.kind != MapKind::DevMap) {
                    return unlike("the map is none of ports");
                }
                Value::Redirect(self.constant(around, 2)?)
            }
            65 => {
                if self.get(1)? != Value::Context || self.is_cut {
                    return unlike("an edge is moved by code that is not understood");
                }
                let by = self.num(around, Source::Register(2))?;
                let before = self.uncut(around);
                self.length = Some(around.numbers.sum(before, by, 1));
                self.is_cut = true;
                self.forget_pointers();
                Value::Failed
            }
            189 => self.copy(around)?,
            other => return Err(format!("function {other} is not known here")),
        };
        self.registers[1..6].fill(None);
        self.most = None;
        self.set(0, value)
    }

    fn forget_pointers(&mut self) {
        for register in &mut self.registers {
            if matches!(register, Some(Value::Data(_) | Value::DataEnd)) {
                *register = None;
            }
        }
    }

    /// Bytes of the frame to the stack.
    fn copy(&mut self, around: &mut Around<'_>) -> Step<Value> {
        let (to, length) = (self.pointer(3)?, self.num(around, Source::Register(4))?);
        let offset = u16::try_from(self.constant(around, 2)?).map_err(|_| "far behind")?;
        let fits = self.most == Some((length, WINDOW.into()))
            || around.numbers.most(length) <= u64::from(WINDOW);
        if self.get(1)? != Value::Context || self.start != 0 || !fits || !self.written.is_empty() {
            return unlike("bytes are copied by code that is not understood");
        }
        let zero = around.numbers.number(0);
        for at in 0..WINDOW {
            let place = to + i32::from(at);
            let before = self.stack.get(&place).copied();
            let is_zero =
                before.is_some_and(|(num, low)| around.numbers.slice(num, low, 8) == zero);
            if !is_zero {
                return unlike("bytes are copied over others than zeros");
            }
            let byte = around.numbers.intern(Node::Window { offset, length, at });
            Arc::make_mut(&mut self.stack).insert(place, (byte, 0));
        }
        Ok(Value::Beyond { offset, length })
    }

    fn look_up(&mut self, around: &mut Around<'_>) -> Step<Value> {
        let Value::Map(map) = self.get(1)? else { return unlike("r1 is no map") };
        let at = self.pointer(2)?;
        let of = around.maps.get(map).ok_or("there is no such map")?;
        let (kind, size, room) = (of.kind, of.key, of.room);
        let bytes: Option<Vec<(Num, u8)>> =
            (0..size as i32).map(|more| self.stack.get(&(at + more)).copied()).collect();
        let bytes = bytes.ok_or("a key is not on the stack")?;
        match kind {
            MapKind::Hash => {
                let words = bytes.chunks(8).map(|word| Self::joined(around, word));
                let key: Vec<Num> = words.collect();
                let flow = around.led_by(map, &key);
                flow.map(Value::Index).ok_or("the segment looks no flow up by this key".into())
            }
            MapKind::PerCpuArray | MapKind::Array => {
                let key = Self::joined(around, &bytes);
                if around.is_of_slots(map) {
                    let flow = around.slot_of(map, key);
                    return flow
                        .map(|flow| Value::Slot(flow, 0))
                        .ok_or("a slot that no flow's key leads to".into());
                }
                let key = around.numbers.as_number(key).filter(|key| *key < room.into());
                let key = key.ok_or("a key that may have no entry")?;
                Ok(Value::Entry { map, key, offset: 0 })
            }
            MapKind::LpmTrie => {
                if bytes.len() < 5 {
                    return unlike("a key without a prefix");
                }
                let length = Self::joined(around, &bytes[..4]);
                let width = 8 * (bytes.len() as u64 - 4);
                if around.numbers.as_number(length) != Some(width) {
                    return unlike("a key that is not whole");
                }
                let mut pieces = Vec::new();
                for part in bytes[4..].iter().rev() {
                    let byte = Self::joined(around, &[*part]);
                    let mut left = 8;
                    for piece in around.numbers.pieces(byte) {
                        let width = piece.width.min(left);
                        pieces.push(Piece { width, ..piece });
                        left -= width;
                    }
                }
                pieces.retain(|piece| piece.width > 0);
                let asked = (map, pieces);
                let known = around.lookups.iter().position(|other| *other == asked);
                let lookup = known.unwrap_or_else(|| {
                    around.lookups.push(asked);
                    around.lookups.len() - 1
                });
                let lookup = u16::try_from(lookup).map_err(|_| "too many lookups")?;
                Ok(Value::Found { lookup, offset: 0 })
            }
            MapKind::DevMap => unlike("a map of ports is looked up"),
        }
    }

    /// What decides whether a jump is made.
    pub(super) fn question(
        &self,
        around: &mut Around<'_>,
        (how, wide): (Comparison, bool),
        a: usize,
        b: Source,
    ) -> Step<Question> {
        let left = self.get(a)?;
        let right = match b {
            Source::Register(register) => self.get(register)?,
            Source::Number(value) => Value::Num(around.numbers.number(value)),
        };
        let zero = around.numbers.number(0);
        let is_equal = match how {
            Comparison::Eq => Some(true),
            Comparison::Ne => Some(false),
            _ => None,
        };
        let (how, left, right) = match (left, right) {
            (Value::DataEnd, right @ Value::Data(_)) => (how.turned(), right, Value::DataEnd),
            (left, right) => (how, left, right),
        };
        if let (Value::Num(a), Value::Num(b), true) = (&left, &right, wide)
            && let Some((lease, if_so)) = around.about_lease(*a, how, *b)
        {
            return Ok(Question::Leased { lease, if_so });
        }
        Ok(match (left, right) {
            (Value::Num(a), Value::Num(b)) => {
                let (a, b) = match wide {
                    true => (a, b),
                    false => (around.numbers.slice(a, 0, 32), around.numbers.slice(b, 0, 32)),
                };
                match (around.numbers.as_number(a), around.numbers.as_number(b)) {
                    (_, Some(than)) => Question::Test { num: a, how, than },
                    (Some(than), None) => Question::Test { num: b, how: how.turned(), than },
                    (None, None) => Question::Compare { a, how, b },
                }
            }
            (Value::Data(at), Value::DataEnd) if !self.is_cut && wide => match how {
                Comparison::Gt => Question::Long { bytes: at, if_so: false },
                Comparison::Le => Question::Long { bytes: at, if_so: true },
                Comparison::Ge => Question::Long { bytes: at + 1, if_so: false },
                Comparison::Lt => Question::Long { bytes: at + 1, if_so: true },
                Comparison::Eq | Comparison::Ne => return unlike("the frame's end is compared"),
            },
            (Value::Entry { .. } | Value::Failed, Value::Num(b)) if b == zero => {
                match (&self.registers[a], is_equal) {
                    // It is there; edges move.
                    (Some(Value::Entry { .. }), Some(equal)) => Question::Decided(!equal),
                    (Some(Value::Failed), Some(equal)) => Question::Decided(equal),
                    _ => return unlike("an answer is compared"),
                }
            }
            (Value::Index(flow), Value::Num(b)) if b == zero => match is_equal {
                Some(equal) => Question::Leased { lease: Lease::Leads(flow), if_so: !equal },
                None => return unlike("a pointer is compared"),
            },
            (Value::Slot(flow, 0), Value::Num(b)) if b == zero => match is_equal {
                // There are as many slots as there were.
                Some(equal) if self.slots.contains_key(&flow) => Question::Decided(!equal),
                Some(equal) => Question::Leased { lease: Lease::Is(flow), if_so: !equal },
                None => return unlike("a pointer is compared"),
            },
            (Value::Found { lookup, offset: 0 }, Value::Num(b)) if b == zero => match is_equal {
                Some(if_so) => Question::Missed { lookup, if_so },
                None => return unlike("a pointer is compared"),
            },
            (Value::Beyond { offset, length }, Value::Num(b)) if b == zero => match is_equal {
                Some(if_so) => Question::Within { offset, length, if_so },
                None => return unlike("an answer is compared"),
            },
            _ => return unlike("what is compared is not understood"),
        })
    }

    /// Learns from a jump that was made or not, where a call behind it depends on it.
    pub(super) fn learn(
        &mut self,
        around: &mut Around<'_>,
        question: &Question,
        jumped: bool,
        (cuts, copies): (bool, bool),
    ) {
        match question {
            Question::Compare { a, how, b } if cuts && jumped => {
                let (covers, length) = match how {
                    Comparison::Ge | Comparison::Eq => (*a, *b),
                    Comparison::Le => (*b, *a),
                    _ => return,
                };
                if length == self.uncut(around) {
                    self.length = Some(covers);
                }
            }
            Question::Leased { lease, if_so } => {
                let flow = lease.flow();
                let before = self.slots.remove(&flow);
                if jumped == *if_so
                    && let Some(known) = around.with(*lease, before)
                {
                    self.slots.insert(flow, known);
                }
            }
            Question::Test { num, how: Comparison::Gt, than } if copies && !jumped => {
                self.most = Some((*num, *than));
            }
            // A sum over bytes that are not all there is 0: where 0 stands for it, it is the sum.
            Question::Within { offset, length, if_so } if jumped != *if_so => {
                let zero = around.numbers.number(0);
                let sum = Node::Sum16 { offset: *offset, length: *length };
                let sum = around.numbers.intern(sum);
                for register in self.registers.iter_mut().flatten() {
                    if *register == Value::Num(zero) {
                        *register = Value::Num(sum);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn run(&mut self, around: &mut Around<'_>, insn: Insn) -> Step<()> {
        match insn {
            Insn::Alu { op, wide, to, from } => self.alu(around, (op, wide), to, from),
            Insn::Reverse { to, bits } => self.reverse(around, to, bits),
            Insn::Truncate { to, bits } => self.truncate(around, to, bits),
            Insn::Number { to, value } => {
                let num = around.numbers.number(value);
                self.set(to, Value::Num(num))
            }
            Insn::Map { to, map } => self.set(to, Value::Map(map)),
            Insn::Load { bytes, to, base, offset } => self.load(around, bytes, to, (base, offset)),
            Insn::Store { bytes, base, offset, from } => {
                self.store(around, bytes, (base, offset), from)
            }
            Insn::Call(function) => self.call(around, function),
            Insn::Second => Ok(()),
            Insn::Jump { .. } | Insn::Goto { .. } | Insn::Exit => unlike("it goes on elsewhere"),
        }
    }
}
