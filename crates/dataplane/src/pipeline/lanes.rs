//! Computing with a number of each packet of a burst at once: a column has a lane for each.
//!
//! Numbers have 32 bits; what needs more is computed packet by packet. Every operation is
//! defined for whatever a lane holds, so all lanes are always computed, and who comes to a step is
//! a mask of lanes.

use std::sync::Arc;

pub(super) use elements::flow_access::lanes_of;
use ir::model::CompareOp;
use ir::program::StateId;
use net::{Header, Packet};

use super::range_table::RangeTable;
use super::simd::{self, EIGHT, Isa, Level, Task};
pub(super) use super::simd::{Column, LANES};
use super::words::Layout;

/// Conditions that are tested at once.
pub(super) const MOST_TESTS: usize = 16;
/// Bytes at the start of the data that are within reach at once: headers of all usual packets.
const WINDOW: usize = 128;

/// Words that are read together if so many are wanted.
const FEWEST_TOGETHER: usize = 3;

/// The index of a column and of the operation that computes it.
pub(super) type Reg = u32;

/// A condition on columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cond {
    /// `low <= number <= low + span`.
    Range {
        of: Reg,
        low: u32,
        span: u32,
    },
    /// In one of the ranges, from their least to their greatest number.
    Ranges {
        of: Reg,
        ranges: Vec<(u32, u32)>,
    },
    Compare(CompareOp, Reg, Reg),
}

impl Cond {
    pub(super) fn operands(&self) -> [Option<Reg>; 2] {
        match *self {
            Cond::Range { of, .. } | Cond::Ranges { of, .. } => [Some(of), None],
            Cond::Compare(_, a, b) => [Some(a), Some(b)],
        }
    }
}

/// Bytes of a packet that words are taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Area {
    Data,
    Annotations,
    Carried,
}

impl Area {
    /// How many bytes at its start words are taken from.
    pub(super) fn size(self) -> usize {
        match self {
            Area::Data => WINDOW,
            Area::Annotations => net::annotation::SIZE,
            Area::Carried => net::CARRIED,
        }
    }
}

/// How a column is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Op {
    Const(u32),
    /// Four bytes of an area from `at` on; whatever lies there behind the end of the data.
    Word {
        area: Area,
        at: u8,
    },
    /// A word that is read with others before any column is computed.
    Shared,
    /// A number shifted right and masked.
    Bits {
        of: Reg,
        shift: u8,
        mask: u32,
    },
    /// `bytes` (at most 8) of the data at `at`, shifted right and masked; 0 if they lie beyond.
    Bytes {
        at: u16,
        bytes: u8,
        shift: u8,
        mask: u32,
    },
    /// The sum of the halves of some words.
    Sum(Box<[Reg]>),
    Length,
    Headroom,
    Type,
    Available(Header),
    Has(Header),
    Position(Header),
    Sum16 {
        at: u16,
        length: Reg,
    },
    Add(Reg, Reg),
    Sub(Reg, Reg),
    Mul(Reg, Reg),
    And(Reg, Reg),
    Or(Reg, Reg),
    Xor(Reg, Reg),
    Min(Reg, Reg),
    Max(Reg, Reg),
    /// By fewer than 32 bits.
    Shl(Reg, u8),
    Shr(Reg, u8),
    /// By as many bits as another number says.
    ShlBy(Reg, Reg),
    /// By a constant that is not 0.
    Div(Reg, u32),
    Rem(Reg, u32),
    Fold(Reg),
    NonZero(Reg),
    Choose(Box<(Cond, Reg, Reg)>),
    /// What a table, by number, maps a number to.
    Map {
        of: Reg,
        table: usize,
    },
    /// What was found in the flow cache.
    Slot(u8),
    /// A column of what a lookup bound, by its number: set where flows are looked up.
    Bound(u16, u8),
    /// What a cell holds: set before anything is computed from it.
    Cell(StateId, u16),
    /// 32 bits of the time: the word of this number.
    Now(u8),
}

impl Op {
    pub(super) fn operands(&self) -> impl Iterator<Item = Reg> {
        let all = match self {
            Op::Const(_)
            | Op::Word { .. }
            | Op::Shared
            | Op::Bytes { .. }
            | Op::Length
            | Op::Headroom
            | Op::Type
            | Op::Available(_)
            | Op::Has(_)
            | Op::Position(_)
            | Op::Slot(_)
            | Op::Now(_)
            | Op::Cell(..)
            | Op::Bound(..) => [None; 4],
            Op::Sum16 { length: a, .. }
            | Op::Bits { of: a, .. }
            | Op::Map { of: a, .. }
            | Op::Shl(a, _)
            | Op::Shr(a, _)
            | Op::Div(a, _)
            | Op::Rem(a, _)
            | Op::Fold(a)
            | Op::NonZero(a) => [Some(*a), None, None, None],
            Op::Add(a, b)
            | Op::Sub(a, b)
            | Op::Mul(a, b)
            | Op::And(a, b)
            | Op::Or(a, b)
            | Op::Xor(a, b)
            | Op::Min(a, b)
            | Op::Max(a, b)
            | Op::ShlBy(a, b) => [Some(*a), Some(*b), None, None],
            Op::Sum(_) => [None; 4],
            Op::Choose(choice) => {
                let (cond, a, b) = &**choice;
                let [c, d] = cond.operands();
                [Some(*a), Some(*b), c, d]
            }
        };
        let many = match self {
            Op::Sum(words) => &words[..],
            _ => &[],
        };
        all.into_iter().flatten().chain(many.iter().copied())
    }
}

/// The columns of what a lookup binds.
#[derive(Clone, Default)]
pub(super) struct Binding {
    /// How many of its columns are the direction's.
    pub(super) values: u8,
    /// With the index of what is found in each.
    pub(super) numbers: Vec<(Reg, u8)>,
    /// Columns that are computed from these.
    pub(super) derived: Vec<Reg>,
}

/// A column and what it holds. Vectors are loaded from it whole if it starts where cache lines do.
#[repr(C, align(64))]
struct Computed {
    column: Column,
    /// The epoch in which it was computed.
    known: u32,
    op: Op,
}

/// Words that follow each other in the data, read together.
struct Block {
    at: usize,
    /// The columns of those that are wanted.
    words: [Option<Reg>; EIGHT],
}

/// The columns of a program.
pub(super) struct Lanes {
    level: Level,
    columns: Vec<Computed>,
    tables: Vec<Arc<RangeTable>>,
    blocks: Vec<Block>,
    /// Columns of the time, and which of its words they hold.
    times: Vec<(Reg, u8)>,
    epoch: u32,
}

#[inline(always)]
fn zip(out: &mut Column, a: &Column, b: &Column, f: impl Fn(u32, u32) -> u32) {
    let mut results = [0; LANES];
    for lane in 0..LANES {
        results[lane] = f(a[lane], b[lane]);
    }
    *out = results;
}

#[inline(always)]
fn map(out: &mut Column, a: &Column, f: impl Fn(u32) -> u32) {
    zip(out, a, a, |a, _| f(a));
}

#[inline(always)]
fn each(out: &mut Column, packets: &Packets<'_>, f: impl Fn(&Packet) -> u32) {
    for (out, packet) in out.iter_mut().zip(packets.packets) {
        *out = f(packet);
    }
}

/// At most [`LANES`] packets, and what is within reach of their data.
pub(super) struct Packets<'a> {
    packets: &'a [Packet],
    windows: [&'a [u8; WINDOW]; LANES],
}

impl<'a> Packets<'a> {
    /// `spare` is for the data of packets that lie at the very end of their memory.
    #[inline]
    pub(super) fn new(packets: &'a [Packet], spare: &'a mut Spare) -> Self {
        let mut windows = [&[0; WINDOW]; LANES];
        let mut without = 0u32;
        for (lane, (window, packet)) in windows.iter_mut().zip(packets).enumerate() {
            match packet.window(0) {
                Some(bytes) => *window = bytes,
                None => without |= 1 << lane,
            }
        }
        if without != 0 {
            spare.fill(packets, without);
            for lane in lanes_of(without) {
                windows[lane] = &spare.0[lane];
            }
        }
        Self { packets, windows }
    }
}

/// Room for windows that packets have no memory for.
#[derive(Default)]
pub(super) struct Spare(Vec<[u8; WINDOW]>);

impl Spare {
    #[cold]
    fn fill(&mut self, packets: &[Packet], lanes: u32) {
        self.0.resize(LANES, [0; WINDOW]);
        for lane in lanes_of(lanes) {
            let data = packets[lane].data();
            let (window, length) = (&mut self.0[lane], data.len().min(WINDOW));
            window[..length].copy_from_slice(&data[..length]);
        }
    }
}

/// Does something for each lane of a mask, in order.
#[inline(always)]
pub(super) fn for_lanes(mask: u32, mut one: impl FnMut(usize)) {
    match mask {
        u32::MAX => (0..LANES).for_each(one),
        _ => lanes_of(mask).for_each(|lane| one(lane % LANES)),
    }
}

/// Big-endian words at an offset of each window.
#[inline(always)]
fn words<'a, const N: usize>(
    out: &mut Column,
    windows: impl Iterator<Item = &'a [u8; N]>,
    at: usize,
) {
    let at = at.min(N - 4);
    for (out, window) in out.iter_mut().zip(windows) {
        *out = window[at..].first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    }
}

/// Ones' complement sum of bytes, folded to 16 bits.
#[inline(always)]
fn sum16(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(0u64, |sum, word| sum + u64::from(u32::from_ne_bytes(*word)));
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let sum = sum + u64::from(u32::from_ne_bytes(last));
    // In the machine's byte order until the end: the sum's bytes are exchanged, no more.
    let sum = (sum >> 48) + (sum >> 32 & 0xffff) + (sum >> 16 & 0xffff) + (sum & 0xffff);
    u32::from(u16::from_be((fold(sum as u32)) as u16))
}

/// A sum folded with end-around carries.
#[inline(always)]
pub(super) fn fold(sum: u32) -> u32 {
    let sum = (sum & 0xffff) + (sum >> 16);
    (sum & 0xffff) + (sum >> 16)
}

impl Default for Lanes {
    fn default() -> Self {
        let (columns, tables, blocks, times) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { level: Level::widest(), columns, tables, blocks, times, epoch: 0 }
    }
}

impl Lanes {
    /// A column for the result of an operation.
    pub(super) fn add(&mut self, op: Op) -> Reg {
        let column = match op {
            Op::Const(number) => [number; LANES],
            _ => [0; LANES],
        };
        let reg = self.columns.len() as Reg;
        if let Op::Now(word) = op {
            self.times.push((reg, word));
        }
        self.columns.push(Computed { column, known: 0, op });
        reg
    }

    /// A table, to map numbers by; its number.
    pub(super) fn add_table(&mut self, table: Arc<RangeTable>) -> usize {
        self.tables.push(table);
        self.tables.len() - 1
    }

    pub(super) fn op(&self, reg: Reg) -> &Op {
        &self.columns[reg as usize].op
    }

    /// All operations, by their columns.
    pub(super) fn ops(&self) -> impl Iterator<Item = (Reg, &Op)> {
        (0..).zip(&self.columns).map(|(reg, column)| (reg, &column.op))
    }

    /// Has words that lie near each other read together. No column may be added after this.
    pub(super) fn share_words(&mut self) {
        let words = self.columns.iter().zip(0..).filter_map(|(column, reg)| match column.op {
            Op::Word { area: Area::Data, at } => Some((usize::from(at), reg)),
            _ => None,
        });
        let mut words: Vec<(usize, Reg)> = words.collect();
        words.sort_unstable();
        while let Some(&(first, _)) = words.first() {
            let at = first.min(WINDOW - 4 * EIGHT);
            let place = |word: usize| {
                let (place, rest) = ((word - at) / 4, (word - at) % 4);
                Some(place).filter(|&place| rest == 0 && place < EIGHT)
            };
            let mut block = Block { at, words: [None; EIGHT] };
            let near: Vec<_> = words.extract_if(.., |(word, _)| place(*word).is_some()).collect();
            words.retain(|&(word, _)| word != first);
            if near.len() < FEWEST_TOGETHER {
                continue;
            }
            for (word, reg) in near {
                self.columns[reg as usize].op = Op::Shared;
                place(word).into_iter().for_each(|place| block.words[place] = Some(reg));
            }
            self.blocks.push(block);
        }
    }

    /// The columns that must be computed for some, in order.
    pub(super) fn needs(&self, wanted: impl IntoIterator<Item = Reg>) -> Box<[Reg]> {
        let mut waiting: Vec<Reg> = wanted.into_iter().collect();
        let mut needed = std::collections::BTreeSet::new();
        while let Some(reg) = waiting.pop() {
            if !self.is_there(reg) && needed.insert(reg) {
                waiting.extend(self.op(reg).operands());
            }
        }
        needed.into_iter().collect()
    }

    /// Whether a column is there from the start.
    pub(super) fn is_there(&self, reg: Reg) -> bool {
        matches!(
            self.op(reg),
            Op::Const(_) | Op::Shared | Op::Bound(..) | Op::Cell(..) | Op::Now(_)
        )
    }

    /// By lookup: the columns of what it binds.
    pub(super) fn bindings(&self, layouts: &[Layout]) -> Vec<Binding> {
        let new = |layout: &Layout| Binding { values: layout.values, ..Binding::default() };
        let mut all: Vec<Binding> = layouts.iter().map(new).collect();
        for (lookup, binding) in all.iter_mut().enumerate() {
            let mut depends = vec![false; self.columns.len()];
            for (reg, Computed { op, .. }) in self.columns.iter().enumerate() {
                match *op {
                    Op::Bound(of, index) if usize::from(of) == lookup => {
                        binding.numbers.push((reg as Reg, index));
                        depends[reg] = true;
                    }
                    ref op if op.operands().any(|of| depends[of as usize]) => {
                        binding.derived.push(reg as Reg);
                        depends[reg] = true;
                    }
                    _ => {}
                }
            }
        }
        all
    }

    /// Sets some lanes of a column that nothing else computes.
    #[inline]
    pub(super) fn set(&mut self, reg: Reg, lanes: u32, numbers: &Column) {
        let column = &mut self.columns[reg as usize].column;
        for lane in 0..LANES {
            let these = (lanes >> lane & 1).wrapping_neg();
            column[lane] = column[lane] & !these | numbers[lane] & these;
        }
    }

    /// The lanes in which these numbers are this one.
    #[inline]
    pub(super) fn equal(&self, column: &Column, number: u32) -> u32 {
        simd::run(self.level, Equal { column, number })
    }

    /// Runs code with the vector instructions at hand.
    #[inline]
    pub(super) fn run<T: Task>(&self, task: T) -> T::Result {
        simd::run(self.level, task)
    }

    /// Has columns computed again.
    pub(super) fn forget(&mut self, regs: &[Reg]) {
        regs.iter().for_each(|&reg| self.columns[reg as usize].known = 0);
    }

    /// Tells the time.
    #[inline]
    pub(super) fn tell_time(&mut self, now: u64) {
        for &(reg, word) in &self.times {
            let bits = now.checked_shr(u32::from(word) * 32).unwrap_or(0);
            self.columns[reg as usize].column = [bits as u32; LANES];
        }
    }

    /// Forgets the packets before.
    pub(super) fn start(&mut self, packets: &Packets<'_>) {
        self.epoch = self.epoch.wrapping_add(1);
        if self.epoch == 0 {
            self.columns.iter_mut().for_each(|column| column.known = 0);
            self.epoch = 1;
        }
        if !self.blocks.is_empty() {
            simd::run(self.level, Read { lanes: self, packets });
        }
    }

    #[inline]
    pub(super) fn column(&self, reg: Reg) -> &Column {
        &self.columns[reg as usize].column
    }

    /// Whether columns were computed from the packets at hand.
    pub(super) fn knows(&self, regs: &[Reg]) -> bool {
        regs.iter().all(|&reg| self.columns[reg as usize].known == self.epoch)
    }

    /// Computes columns that are not known yet, each after those that it is computed from.
    #[inline]
    pub(super) fn compute(&mut self, needs: &[Reg], packets: &Packets<'_>, slots: &[Column]) {
        if !self.knows(needs) {
            simd::run(self.level, Compute { lanes: self, needs, packets, slots });
        }
    }

    /// The lanes in which each of some conditions holds, on columns that are computed first.
    #[inline]
    pub(super) fn tests(
        &mut self,
        needs: &[Reg],
        packets: &Packets<'_>,
        conds: &[Cond],
    ) -> [u32; MOST_TESTS] {
        let mut masks = [0; MOST_TESTS];
        simd::run(self.level, Tests { lanes: self, needs, packets, conds, masks: &mut masks });
        masks
    }

    /// The lanes in which a condition on known columns holds.
    #[inline]
    pub(super) fn mask(&self, cond: &Cond) -> u32 {
        simd::run(self.level, Mask { lanes: self, cond })
    }

    /// Keys made from known columns, and which of some conditions on such hold.
    #[inline]
    pub(super) fn keys(&self, parts: &[Part], conditions: &[Cond]) -> Keys {
        simd::run(self.level, Gather { lanes: self, parts, conditions })
    }
}

struct Equal<'a> {
    column: &'a Column,
    number: u32,
}

impl Task for Equal<'_> {
    type Result = u32;

    #[inline(always)]
    fn run(self, isa: impl Isa) -> u32 {
        isa.signs(&lanes_where(|lane| self.column[lane] == self.number))
    }
}

struct Read<'a> {
    lanes: &'a mut Lanes,
    packets: &'a Packets<'a>,
}

impl Task for Read<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, isa: impl Isa) {
        let (groups, _) = self.packets.windows.as_chunks::<EIGHT>();
        for Block { at, words } in &self.lanes.blocks {
            for (group, windows) in groups.iter().enumerate() {
                let rows = windows.map(|window| window[*at..].first_chunk().unwrap_or(&[0; _]));
                for (reg, numbers) in words.iter().zip(isa.words(rows)) {
                    if let Some(reg) = reg
                        && let Some(word) = self.lanes.columns.get_mut(*reg as usize)
                    {
                        word.column.as_chunks_mut().0[group] = numbers;
                    }
                }
            }
        }
    }
}

struct Compute<'a> {
    lanes: &'a mut Lanes,
    needs: &'a [Reg],
    packets: &'a Packets<'a>,
    slots: &'a [Column],
}

impl Task for Compute<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, isa: impl Isa) {
        let Lanes { columns, tables, epoch, .. } = self.lanes;
        for &reg in self.needs {
            let (before, rest) = columns.split_at_mut(reg as usize);
            if let Some(Computed { column, known, op }) = rest.first_mut()
                && *known != *epoch
            {
                *known = *epoch;
                compute(isa, op, column, (before, tables), self.packets, self.slots);
            }
        }
    }
}

struct Tests<'a> {
    lanes: &'a mut Lanes,
    needs: &'a [Reg],
    packets: &'a Packets<'a>,
    conds: &'a [Cond],
    masks: &'a mut [u32; MOST_TESTS],
}

impl Task for Tests<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self, isa: impl Isa) {
        let Tests { lanes, needs, packets, conds, masks } = self;
        Compute { lanes, needs, packets, slots: &[] }.run(isa);
        for (mask, cond) in masks.iter_mut().zip(conds) {
            *mask = Mask { lanes, cond }.run(isa);
        }
    }
}

struct Mask<'a> {
    lanes: &'a Lanes,
    cond: &'a Cond,
}

impl Task for Mask<'_> {
    type Result = u32;

    #[inline(always)]
    fn run(self, isa: impl Isa) -> u32 {
        let column = &|reg: &Reg| self.lanes.column(*reg);
        match self.cond {
            Cond::Ranges { of, ranges } => mask_of_ranges(isa, column(of), ranges),
            cond => isa.signs(&truth(isa, cond, column)),
        }
    }
}

/// What flows are looked up by, of each lane.
pub(super) struct Keys {
    pub(super) words: [[u64; LANES]; 2],
    /// Which conditions hold, as bits.
    pub(super) holds: Column,
}

/// Where a number goes in a key: into which word, how far to the left.
pub(super) type Part = (Reg, u8, u8);

struct Gather<'a> {
    lanes: &'a Lanes,
    parts: &'a [Part],
    conditions: &'a [Cond],
}

impl Task for Gather<'_> {
    type Result = Keys;

    #[inline(always)]
    fn run(self, isa: impl Isa) -> Keys {
        let mut keys = Keys { words: [[0; LANES]; 2], holds: [0; LANES] };
        for &(reg, word, shift) in self.parts {
            let column = self.lanes.column(reg);
            for (word, &number) in keys.words[usize::from(word)].iter_mut().zip(column) {
                *word |= u64::from(number) << shift;
            }
        }
        for (bit, cond) in self.conditions.iter().enumerate() {
            let truth = truth(isa, cond, &|reg: &Reg| self.lanes.column(*reg));
            for (holds, truth) in keys.holds.iter_mut().zip(truth) {
                *holds |= truth & 1 << bit;
            }
        }
        keys
    }
}

/// Computes a column from those before it.
#[inline(always)]
fn compute(
    isa: impl Isa,
    op: &Op,
    out: &mut Column,
    (before, tables): (&[Computed], &[Arc<RangeTable>]),
    packets: &Packets<'_>,
    slots: &[Column],
) {
    let of = |reg: &Reg| &before[*reg as usize].column;
    match op {
        Op::Const(number) => *out = [*number; LANES],
        Op::Shared => {}
        Op::Word { area: Area::Data, at } => {
            words(out, packets.windows.iter().copied(), usize::from(*at));
        }
        Op::Word { area: Area::Annotations, at } => {
            let areas = packets.packets.iter().map(|p| p.annotations().bytes());
            words(out, areas, usize::from(*at));
        }
        Op::Word { area: Area::Carried, at } => {
            words(out, packets.packets.iter().map(Packet::carried), usize::from(*at));
        }
        Op::Bits { of: a, shift, mask } => map(out, of(a), |a| a >> shift & mask),
        Op::Bytes { at, bytes, shift, mask } => each(out, packets, |p| {
            let at = usize::from(*at);
            let bytes = p.data().get(at..at + usize::from(*bytes)).unwrap_or(&[]);
            let value = bytes.iter().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
            (value >> shift) as u32 & mask
        }),
        Op::Sum(words) => {
            let mut sum = [0; LANES];
            for word in words {
                let before = sum;
                zip(&mut sum, &before, of(word), |sum, a| sum + (a >> 16) + (a & 0xffff));
            }
            *out = sum;
        }
        Op::Length => each(out, packets, |p| p.len() as u32),
        Op::Headroom => each(out, packets, |p| p.headroom() as u32),
        Op::Type => each(out, packets, |p| p.packet_type() as u32),
        Op::Available(header) => {
            each(out, packets, |p| p.header(*header).map_or(0, |h| h.len() as u32));
        }
        Op::Has(header) => {
            each(out, packets, |p| u32::from(p.header_offset(*header).is_some()));
        }
        Op::Position(header) => each(out, packets, |p| {
            p.header_offset(*header).map_or(0x8000_0000, |at| at as i32 as u32)
        }),
        Op::Sum16 { at, length } => {
            let at = usize::from(*at);
            for ((out, packet), length) in out.iter_mut().zip(packets.packets).zip(of(length)) {
                let bytes = packet.data().get(at..at.saturating_add(*length as usize));
                *out = bytes.map_or(0, sum16);
            }
        }
        Op::Add(a, b) => zip(out, of(a), of(b), u32::wrapping_add),
        Op::Sub(a, b) => zip(out, of(a), of(b), u32::wrapping_sub),
        Op::Mul(a, b) => zip(out, of(a), of(b), u32::wrapping_mul),
        Op::And(a, b) => zip(out, of(a), of(b), |a, b| a & b),
        Op::Or(a, b) => zip(out, of(a), of(b), |a, b| a | b),
        Op::Xor(a, b) => zip(out, of(a), of(b), |a, b| a ^ b),
        Op::Min(a, b) => zip(out, of(a), of(b), u32::min),
        Op::Max(a, b) => zip(out, of(a), of(b), u32::max),
        Op::Shl(a, by) => map(out, of(a), |a| a << by),
        Op::ShlBy(a, by) => zip(out, of(a), of(by), |a, by| a.checked_shl(by).unwrap_or(0)),
        Op::Shr(a, by) => map(out, of(a), |a| a >> by),
        Op::Div(a, by) => map(out, of(a), |a| a.checked_div(*by).unwrap_or(0)),
        Op::Rem(a, 0xffff) => map(out, of(a), |a| match fold(a) {
            0xffff => 0,
            folded => folded,
        }),
        Op::Rem(a, by) => map(out, of(a), |a| a.checked_rem(*by).unwrap_or(0)),
        Op::Fold(a) => map(out, of(a), fold),
        Op::NonZero(a) => map(out, of(a), |a| if a == 0 { 0xffff } else { a }),
        Op::Choose(choice) => {
            let (cond, a, b) = &**choice;
            let truth = truth(isa, cond, &of);
            zip(out, of(a), of(b), |a, b| a ^ b);
            zip(out, &{ *out }, &truth, |differ, truth| differ & truth);
            zip(out, &{ *out }, of(b), |differ, b| differ ^ b);
        }
        Op::Map { of: a, table } => tables[*table].find_all(of(a), out),
        Op::Slot(slot) => *out = slots[usize::from(*slot)],
        Op::Bound(..) | Op::Cell(..) | Op::Now(_) => {}
    }
}

/// All ones in lanes in which something holds, and 0 in all others.
#[inline(always)]
pub(super) fn lanes_where(holds: impl Fn(usize) -> bool) -> Column {
    let mut column = [0; LANES];
    for (lane, truth) in column.iter_mut().enumerate() {
        *truth = if holds(lane) { u32::MAX } else { 0 };
    }
    column
}

/// The lanes whose number is in one of some ranges.
#[inline(always)]
fn mask_of_ranges(isa: impl Isa, column: &Column, ranges: &[(u32, u32)]) -> u32 {
    if ranges.len() <= 40 {
        let one = |&(low, high): &(u32, u32)| {
            isa.signs(&lanes_where(|lane| column[lane].wrapping_sub(low) <= high - low))
        };
        let mut mask = 0;
        for range in ranges {
            mask |= one(range);
        }
        return mask;
    }
    isa.signs(&lanes_where(|lane| {
        let at = ranges.partition_point(|&(_, high)| high < column[lane]);
        ranges.get(at).is_some_and(|&(low, _)| low <= column[lane])
    }))
}

/// All ones in lanes in which a condition holds, and 0 in all others.
#[inline(always)]
fn truth<'a>(isa: impl Isa, cond: &Cond, column: &impl Fn(&Reg) -> &'a Column) -> Column {
    match cond {
        Cond::Range { of, low, span } => {
            let column = column(of);
            lanes_where(|lane| column[lane].wrapping_sub(*low) <= *span)
        }
        Cond::Ranges { of, ranges } => {
            let mask = mask_of_ranges(isa, column(of), ranges);
            lanes_where(|lane| mask >> lane & 1 == 1)
        }
        Cond::Compare(op, a, b) => {
            let (a, b) = (column(a), column(b));
            match op {
                CompareOp::Eq => lanes_where(|i| a[i] == b[i]),
                CompareOp::Ne => lanes_where(|i| a[i] != b[i]),
                CompareOp::Lt => lanes_where(|i| a[i] < b[i]),
                CompareOp::Le => lanes_where(|i| a[i] <= b[i]),
                CompareOp::Gt => lanes_where(|i| a[i] > b[i]),
                CompareOp::Ge => lanes_where(|i| a[i] >= b[i]),
            }
        }
    }
}

/// The sum of a column's lanes.
#[inline]
pub(super) fn sum(column: &Column, lanes: u32) -> u64 {
    if lanes == u32::MAX {
        return column.iter().map(|&n| u64::from(n)).sum();
    }
    if lanes.count_ones() <= 4 {
        return lanes_of(lanes).map(|i| u64::from(column[i])).sum();
    }
    let one = |i: usize| u64::from(column[i]) & (u64::from(lanes >> i & 1)).wrapping_neg();
    (0..LANES).map(one).sum()
}
