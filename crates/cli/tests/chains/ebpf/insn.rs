//! Instructions after those of eBPF, what a verifier accepts of them, and a machine that runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use ir::model::Reason;
use ir::program::{Entries, LookupId, Program, StateId, StepId};
use ir::{NodeId, StateValue, Store};
use net::{HEADROOM, PacketType, annotation};

/// `r0` to `r5` are lost by calls, `r6` and `r7` are the data and its end, `r8` is the context,
/// `r10` the stack's end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reg(pub u8);

pub const ROW: Reg = Reg(0);
pub const DATA: Reg = Reg(6);
pub const DATA_END: Reg = Reg(7);
pub const CONTEXT: Reg = Reg(8);
pub const STACK: Reg = Reg(10);

/// The time, in nanoseconds.
pub const NOW: u64 = 1_000_000_000;

/// Bytes of the stack, as eBPF has them.
pub const STACK_SIZE: i32 = 512;

/// The context: the annotation area, the packet's type, its timestamp, and its headers' offsets from where the data
/// started when it came in.
pub mod context {
    pub const TYPE: i32 = 48;
    pub const TIMESTAMP: i32 = 56;
    pub const MARKS: i32 = 64;
    pub const SIZE: i32 = 76;
    pub const UNMARKED: u64 = 0x8000_0000;
}

#[derive(Clone, Copy)]
pub enum Operand {
    Reg(Reg),
    Imm(u64),
}

#[derive(Clone, Copy)]
pub enum Op {
    Mov,
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Lsh,
    Rsh,
}

#[derive(Clone, Copy)]
pub enum Cond {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    Step(StepId),
    Within(u32),
    /// Where checks lead that never fail.
    Abort,
}

#[derive(Clone, Copy)]
pub enum Call {
    /// `r0` is the row under the keys on the stack, or 0.
    Lookup(LookupId),
    /// Counts a packet of `r2` bytes.
    Count(StateId),
    Note(NodeId, Reason),
    /// `r0` is the ones' complement sum of `r2` bytes of data from an offset on; 0 if they are not there.
    Sum(u16),
    /// `r0` is the time.
    Now,
    /// `r0` is what a cell holds.
    Cell(StateId, u16),
    /// Writes `r2` to a cell.
    SetCell(StateId, u16),
    /// The data starts so many bytes later.
    AdjustHead(i32),
    /// No more than `r2` bytes of data are left.
    Truncate,
}

#[derive(Clone)]
pub enum Insn {
    Label(Label),
    Alu(Op, Reg, Operand),
    /// Bytes, register, base and offset.
    Load(u8, Reg, Reg, i32),
    Store(u8, Reg, i32, Operand),
    /// From network to host order and back, so many bits.
    Be(Reg, u8),
    Jump(Cond, Reg, Operand, Label),
    Goto(Label),
    /// Jumps if there are fewer bytes of data than that. If nothing but what is known of the program says that there
    /// are, so many are known to be there.
    Short(u32, Label, Option<u32>),
    Call(Call),
    /// Data and its end anew, after they have moved.
    Reload,
    Exit(StepId),
    Abort,
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reg(reg) => reg.fmt(f),
            Self::Imm(value) if *value > 0xffff => write!(f, "{value:#x}"),
            Self::Imm(value) => value.fmt(f),
        }
    }
}

impl Display for Label {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(step) => write!(f, "s{}", step.0),
            Self::Within(number) => write!(f, "l{number}"),
            Self::Abort => write!(f, "abort"),
        }
    }
}

impl Display for Insn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(label) => write!(f, "{label}:"),
            Self::Alu(op, to, from) => {
                let op = match op {
                    Op::Mov => "=",
                    Op::Add => "+=",
                    Op::Sub => "-=",
                    Op::Mul => "*=",
                    Op::And => "&=",
                    Op::Or => "|=",
                    Op::Xor => "^=",
                    Op::Lsh => "<<=",
                    Op::Rsh => ">>=",
                };
                write!(f, "  {to} {op} {from}")
            }
            Self::Load(bytes, to, base, at) => {
                write!(f, "  {to} = *(u{} *)({base} {at:+})", 8 * bytes)
            }
            Self::Store(bytes, base, at, from) => {
                write!(f, "  *(u{} *)({base} {at:+}) = {from}", 8 * bytes)
            }
            Self::Be(reg, bits) => write!(f, "  {reg} = be{bits} {reg}"),
            Self::Jump(cond, a, b, to) => {
                let cond = match cond {
                    Cond::Eq => "==",
                    Cond::Ne => "!=",
                    Cond::Lt => "<",
                    Cond::Le => "<=",
                    Cond::Gt => ">",
                    Cond::Ge => ">=",
                };
                write!(f, "  if {a} {cond} {b} goto {to}")
            }
            Self::Goto(to) => write!(f, "  goto {to}"),
            Self::Short(bytes, to, known) => {
                write!(f, "  if {DATA} + {bytes} > {DATA_END} goto {to}")?;
                known.map_or(Ok(()), |known| write!(f, " // never: there are {known} bytes"))
            }
            Self::Call(call) => match call {
                Call::Lookup(lookup) => write!(f, "  call lookup {lookup}"),
                Call::Count(counter) => write!(f, "  call count {}", counter.0),
                Call::Note(element, reason) => write!(f, "  call note {element} {reason}"),
                Call::Now => write!(f, "  call now"),
                Call::Sum(at) => write!(f, "  call sum {at}"),
                Call::Cell(cells, index) => write!(f, "  call cell {} {index}", cells.0),
                Call::SetCell(cells, index) => write!(f, "  call set_cell {} {index}", cells.0),
                Call::AdjustHead(by) => write!(f, "  call adjust_head {by}"),
                Call::Truncate => write!(f, "  call truncate"),
            },
            Self::Reload => {
                write!(f, "  {DATA} = {CONTEXT}->data; {DATA_END} = {CONTEXT}->data_end")
            }
            Self::Exit(step) => write!(f, "  exit s{}", step.0),
            Self::Abort => write!(f, "  exit aborted"),
        }
    }
}

/// What the verifier knows at an instruction.
#[derive(Clone, PartialEq)]
struct Known {
    /// So many bytes of data are there.
    data: u32,
    /// `r0` is a row.
    row: bool,
    registers: BTreeSet<u8>,
    /// Bytes of the stack that were written.
    stack: BTreeSet<i32>,
}

impl Known {
    fn join(&mut self, other: &Self) {
        self.data = self.data.min(other.data);
        self.row &= other.row;
        self.registers.retain(|register| other.registers.contains(register));
        self.stack.retain(|byte| other.stack.contains(byte));
    }

    fn read(&self, operand: Operand) -> Result<(), String> {
        match operand {
            Operand::Reg(reg) if !self.registers.contains(&reg.0) => {
                Err(format!("{reg} was not written"))
            }
            _ => Ok(()),
        }
    }

    /// Whether memory may be accessed.
    fn access(&self, base: Reg, at: i32, bytes: u8, writes: bool) -> Result<(), String> {
        self.read(Operand::Reg(base))?;
        let end = at + i32::from(bytes);
        let may = match base {
            DATA => at >= 0 && end as u32 <= self.data,
            CONTEXT => at >= 0 && end <= context::SIZE,
            STACK => {
                at >= -STACK_SIZE
                    && end <= 0
                    && (writes || (at..end).all(|byte| self.stack.contains(&byte)))
            }
            ROW => self.row && !writes && at >= 0,
            _ => false,
        };
        if may { Ok(()) } else { Err(format!("{bytes} bytes at {base} {at:+} may not be there")) }
    }
}

/// Whether every access is within bounds that instructions before it have checked, on all paths, and every jump leads
/// forward; by the instructions alone.
pub fn check(code: &[Insn]) -> Result<(), String> {
    let mut waiting: BTreeMap<Label, Known> = BTreeMap::new();
    let mut passed: BTreeSet<Label> = BTreeSet::new();
    let mut now = Some(Known {
        data: 0,
        row: false,
        registers: [DATA, DATA_END, CONTEXT, STACK].map(|reg| reg.0).into(),
        stack: BTreeSet::new(),
    });
    for (index, insn) in code.iter().enumerate() {
        let fault = |why: String| format!("{index}: {insn}: {why}");
        if let Insn::Label(label) = insn {
            passed.insert(*label);
            match (waiting.remove(label), &mut now) {
                (Some(there), Some(now)) => now.join(&there),
                (Some(there), now) => *now = Some(there),
                (None, _) => {}
            }
            continue;
        }
        let Some(known) = &mut now else { return Err(fault("nothing leads here".into())) };
        let mut jump = |to: &Label, known: &Known| {
            if passed.contains(to) {
                return Err(fault("leads back".into()));
            }
            waiting.entry(*to).and_modify(|there| there.join(known)).or_insert(known.clone());
            Ok(())
        };
        match insn {
            Insn::Label(_) => {}
            Insn::Alu(op, to, from) => {
                known.read(*from).map_err(fault)?;
                if !matches!(op, Op::Mov) {
                    known.read(Operand::Reg(*to)).map_err(fault)?;
                }
                if to.0 > 5 && to.0 != 9 {
                    return Err(fault("a pointer is changed".into()));
                }
                known.registers.insert(to.0);
            }
            Insn::Load(bytes, to, base, at) => {
                known.access(*base, *at, *bytes, false).map_err(fault)?;
                known.registers.insert(to.0);
            }
            Insn::Store(bytes, base, at, from) => {
                known.read(*from).map_err(fault)?;
                known.access(*base, *at, *bytes, true).map_err(fault)?;
                if *base == STACK {
                    known.stack.extend(*at..*at + i32::from(*bytes));
                }
            }
            Insn::Be(reg, _) => known.read(Operand::Reg(*reg)).map_err(fault)?,
            Insn::Jump(cond, a, b, to) => {
                known.read(Operand::Reg(*a)).map_err(fault)?;
                known.read(*b).map_err(fault)?;
                jump(to, known)?;
                known.row |= matches!((cond, *a, b), (Cond::Eq, ROW, Operand::Imm(0)));
            }
            Insn::Goto(to) => {
                jump(to, known)?;
                now = None;
            }
            Insn::Short(bytes, to, _) => {
                known.read(Operand::Reg(DATA)).map_err(fault)?;
                jump(to, known)?;
                known.data = known.data.max(*bytes);
            }
            Insn::Call(call) => {
                let has_argument = |call: &Call| {
                    use Call::{Count, SetCell, Sum, Truncate};
                    matches!(call, Count(_) | SetCell(..) | Sum(_) | Truncate)
                };
                if has_argument(call) {
                    known.read(Operand::Reg(Reg(2))).map_err(fault)?;
                }
                known.registers.retain(|register| *register > 5);
                known.registers.insert(ROW.0);
                known.row = false;
                if matches!(call, Call::AdjustHead(_) | Call::Truncate) {
                    known.data = 0;
                    known.registers.retain(|r| ![DATA.0, DATA_END.0].contains(r));
                }
            }
            Insn::Reload => known.registers.extend([DATA.0, DATA_END.0]),
            Insn::Exit(_) | Insn::Abort => now = None,
        }
    }
    match (now, waiting.first_key_value()) {
        (Some(_), _) => Err("the end is no exit".into()),
        (None, Some((label, _))) => Err(format!("there is no {label}")),
        (None, None) => Ok(()),
    }
}

/// What surrounds a packet, and the packet.
pub struct Machine<'a> {
    pub program: &'a Program,
    pub store: &'a mut Store,
    pub noted: Vec<(NodeId, Reason)>,
    /// The packet's memory, and its data in there.
    pub memory: Vec<u8>,
    pub data: (usize, usize),
    pub context: [u8; context::SIZE as usize],
    stack: [u8; STACK_SIZE as usize],
    registers: [u64; 11],
    /// The row that was found last.
    row: Vec<u128>,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program, store: &'a mut Store, packet: &net::Packet) -> Self {
        let mut context = [0; context::SIZE as usize];
        context[..annotation::SIZE].copy_from_slice(packet.annotations().bytes());
        context[context::TYPE as usize] = packet.packet_type() as u8;
        let timestamp = packet.timestamp().to_le_bytes();
        context[context::TIMESTAMP as usize..][..8].copy_from_slice(&timestamp);
        for (number, header) in super::HEADERS.into_iter().enumerate() {
            let at = packet.header_offset(header).map_or(context::UNMARKED as u32, |at| at as u32);
            context[context::MARKS as usize + 4 * number..][..4].copy_from_slice(&at.to_le_bytes());
        }
        let memory = [&[0; HEADROOM], packet.data()].concat();
        Self {
            program,
            store,
            noted: Vec::new(),
            data: (HEADROOM, memory.len()),
            memory,
            context,
            stack: [0xaa; STACK_SIZE as usize],
            registers: [0; 11],
            row: Vec::new(),
        }
    }

    fn get(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Reg(reg) => self.registers[usize::from(reg.0)],
            Operand::Imm(value) => value,
        }
    }

    fn set(&mut self, reg: Reg, value: u64) {
        self.registers[usize::from(reg.0)] = value;
    }

    fn reload(&mut self) {
        (self.registers[6], self.registers[7]) = (self.data.0 as u64, self.data.1 as u64);
    }

    fn bytes(&mut self, base: Reg, at: i32, bytes: u8) -> &mut [u8] {
        let bytes = usize::from(bytes);
        match base {
            CONTEXT => &mut self.context[at as usize..][..bytes],
            STACK => &mut self.stack[(STACK_SIZE + at) as usize..][..bytes],
            DATA => {
                let from = self.registers[6] as usize + at as usize;
                assert!(from + bytes <= self.data.1, "{bytes} bytes at {at} are not there");
                &mut self.memory[from..][..bytes]
            }
            base => panic!("{base} points nowhere"),
        }
    }

    fn load(&mut self, bytes: u8, base: Reg, at: i32) -> u64 {
        if base == ROW {
            assert_eq!((bytes, at % 8), (8, 0));
            return self.row[at as usize / 8] as u64;
        }
        let mut value = [0; 8];
        value[..usize::from(bytes)].copy_from_slice(self.bytes(base, at, bytes));
        u64::from_le_bytes(value)
    }

    fn state(&mut self, state: StateId) -> &mut StateValue {
        let of = &self.program.state[usize::from(state.0)];
        let declared = ir::model::StateDecl { owner: None, name: of.name, kind: of.kind.clone() };
        self.store.entry(&of.owner, &declared)
    }

    fn cell(&mut self, cells: StateId, index: u16) -> &mut u128 {
        match self.state(cells) {
            StateValue::Cells(cells) => &mut cells[usize::from(index)],
            other => panic!("{other:?} is no cells"),
        }
    }

    fn call(&mut self, call: Call) {
        let argument = self.registers[2];
        self.registers[..6].fill(0xbad);
        match call {
            Call::Lookup(lookup) => {
                let asked = &self.program.lookups[usize::from(lookup.0)];
                let table = &self.program.tables[usize::from(asked.table.0)];
                let Entries::Prefixes(prefixes) = &table.entries else {
                    panic!("not a table of routes")
                };
                let found = prefixes.lookup(self.load(8, STACK, super::key_slot(0)).into());
                self.set(ROW, found.is_some().into());
                self.row = found.map_or(Vec::new(), |entry| entry.row.to_vec());
                self.row.resize(asked.values.into(), 0);
            }
            Call::Count(counter) => match self.state(counter) {
                StateValue::Counter { packets, bytes } => {
                    (*packets, *bytes) = (*packets + 1, bytes.wrapping_add(argument));
                }
                other => panic!("{other:?} counts nothing"),
            },
            Call::Now => self.set(ROW, NOW),
            Call::Sum(at) => {
                let data = &self.memory[self.data.0..self.data.1];
                let end = usize::from(at) + argument as usize;
                let sum = data.get(at.into()..end).map_or(0, ir::interp::sum16);
                self.set(ROW, sum as u64);
            }
            Call::Cell(cells, index) => {
                let held = *self.cell(cells, index) as u64;
                self.set(ROW, held);
            }
            Call::SetCell(cells, index) => *self.cell(cells, index) = argument.into(),
            Call::Note(element, reason) => self.noted.push((element, reason)),
            Call::AdjustHead(by) => {
                let start = self.data.0.checked_add_signed(by as isize);
                self.data.0 = start.filter(|start| *start <= self.data.1).expect("there is room");
            }
            Call::Truncate => self.data.1 = self.data.1.min(self.data.0 + argument as usize),
        }
    }

    /// Where it ends.
    pub fn run(&mut self, code: &[Insn]) -> StepId {
        let label = |(at, insn): (usize, &Insn)| match insn {
            Insn::Label(label) => Some((*label, at)),
            _ => None,
        };
        let labels: BTreeMap<Label, usize> = code.iter().enumerate().filter_map(label).collect();
        self.reload();
        let mut at = 0;
        loop {
            let mut next = at + 1;
            match &code[at] {
                Insn::Label(_) => {}
                Insn::Alu(op, to, from) => {
                    let (a, b) = (self.get(Operand::Reg(*to)), self.get(*from));
                    let value = match op {
                        Op::Mov => b,
                        Op::Add => a.wrapping_add(b),
                        Op::Sub => a.wrapping_sub(b),
                        Op::Mul => a.wrapping_mul(b),
                        Op::And => a & b,
                        Op::Or => a | b,
                        Op::Xor => a ^ b,
                        Op::Lsh => a << b,
                        Op::Rsh => a >> b,
                    };
                    self.set(*to, value);
                }
                Insn::Load(bytes, to, base, offset) => {
                    let value = self.load(*bytes, *base, *offset);
                    self.set(*to, value);
                }
                Insn::Store(bytes, base, offset, from) => {
                    let value = self.get(*from).to_le_bytes();
                    let bytes = self.bytes(*base, *offset, *bytes);
                    bytes.copy_from_slice(&value[..bytes.len()]);
                }
                Insn::Be(reg, bits) => {
                    let value = self.get(Operand::Reg(*reg)) << (64 - bits);
                    self.set(*reg, value.swap_bytes());
                }
                Insn::Jump(cond, a, b, to) => {
                    let (a, b) = (self.get(Operand::Reg(*a)), self.get(*b));
                    let jumps = match cond {
                        Cond::Eq => a == b,
                        Cond::Ne => a != b,
                        Cond::Lt => a < b,
                        Cond::Le => a <= b,
                        Cond::Gt => a > b,
                        Cond::Ge => a >= b,
                    };
                    if jumps {
                        next = labels[to];
                    }
                }
                Insn::Goto(to) => next = labels[to],
                Insn::Short(bytes, to, _) => {
                    if self.registers[6] + u64::from(*bytes) > self.registers[7] {
                        next = labels[to];
                    }
                }
                Insn::Call(call) => self.call(*call),
                Insn::Reload => self.reload(),
                Insn::Exit(step) => return *step,
                Insn::Abort => panic!("a check failed that never does"),
            }
            at = next;
        }
    }

    /// Type, timestamp and marks in the context.
    pub fn outside(&mut self) -> (PacketType, u64, [u32; 3]) {
        let packet_type = self.load(1, CONTEXT, context::TYPE) as u8;
        let timestamp = self.load(8, CONTEXT, context::TIMESTAMP);
        let marks = [0, 4, 8].map(|at| self.load(4, CONTEXT, context::MARKS + at) as u32);
        (PacketType::from_u8(packet_type), timestamp, marks)
    }
}
