//! Blocks of exits: counters, writes, edges, and where a packet goes.

use std::collections::BTreeMap;

use ir::Program;
use ir::field::meta;
use ir::program::{Effect, End, Exit, StepId, Term, TermId};

use super::super::insn::{self, Cond, Op};
use super::super::object::{Map, MapKind, PORTS_MAP};
use super::lease::prolongs;
use super::number::{pieces, size};
use super::{
    ABORT, ADJUST_HEAD, ADJUST_TAIL, CONTEXT, DATA, Emitter, LENGTH, MAP_LOOKUP, REDIRECT_MAP,
    STACK, XDP_DROP, XDP_TX,
};
use crate::Lack;

/// Ports have lower numbers.
const PORTS: u32 = 4096;
/// 802.1ad.
pub(in crate::ebpf) const TAG: u16 = 0x88a8;

/// The map of the device's ports: interfaces by number.
pub(in crate::ebpf) fn ports_map() -> Map {
    Map {
        name: PORTS_MAP.into(),
        kind: MapKind::DevMap,
        key: 4,
        value: 4,
        room: PORTS,
        flags: 0,
        entries: Vec::new(),
    }
}

/// The lengths that an exit counts packets by, each once; that of the frame as it came is not among
/// them.
fn lengths(program: &Program, exit: &Exit) -> Vec<TermId> {
    let mut all = Vec::new();
    for effect in &exit.effects {
        if let Effect::Count { length, .. } = effect
            && *program.term(*length) != Term::Input(meta::LEN)
            && !all.contains(length)
        {
            all.push(*length);
        }
    }
    all
}

/// The most such lengths of an exit.
pub(super) fn counted_lengths(program: &Program) -> usize {
    program.exits().map(|(_, exit)| lengths(program, exit).len()).max().unwrap_or(0)
}

/// What is stored, as it lies in memory.
enum Stored {
    Number(u64),
    Held(i16),
}

impl Emitter<'_, '_> {
    /// What no device of this kind does.
    fn refuse(&self, exit: &Exit) -> Result<(), Lack> {
        if !exit.copies.is_empty() {
            return Err(Lack::Copy);
        }
        for effect in &exit.effects {
            match effect {
                Effect::Set { .. } => return Err(Lack::Cells),
                Effect::Update { .. } => prolongs(self.program, effect)?,
                Effect::Count { .. } | Effect::Note { .. } => {}
            }
        }
        if !exit.writes.carried.is_empty() {
            return Err(Lack::Found);
        }
        Ok(())
    }

    /// Computes what is written from the packet as it came in, then writes it.
    pub(super) fn exit(&mut self, at: StepId, exit: &Exit) -> Result<(), Lack> {
        self.refuse(exit)?;
        let before = self.held;
        self.note_uses(exit)?;
        self.count(at, exit)?;
        match exit.end {
            End::Drop { .. } => {
                self.op(insn::set(0, XDP_DROP));
                self.op(insn::EXIT);
            }
            End::Handoff { to } => self.hand_off(to.0)?,
            End::Push { to, .. } => {
                self.write(exit)?;
                let port = match self.around.device {
                    Some(device) => *device.egress.get(&to).ok_or(Lack::Element)?,
                    None => 0,
                };
                self.leave(port)?;
            }
        }
        self.held = before;
        self.checked = None;
        Ok(())
    }

    fn count(&mut self, at: StepId, exit: &Exit) -> Result<(), Lack> {
        let before = self.held;
        let mut held = Vec::new();
        for length in lengths(self.program, exit) {
            let value = self.value(length, 0)?;
            let slot = self.hold(8)?;
            self.op(insn::store(STACK, slot, value));
            held.push(slot);
        }
        let key = self.hold(8)?;
        self.op(insn::store_number(insn::WORD, STACK, key, at.0 as i32));
        self.ops(insn::load_map(1, self.counters as i32));
        self.op(insn::copy(2, STACK));
        self.op(insn::advance(2, key.into()));
        self.op(insn::call(MAP_LOOKUP));
        self.jump_number(Cond::Eq, 0, 0, u64::MAX, ABORT, 0);
        let mut add = |place: i16, with: Option<i16>| {
            self.op(insn::load_stored(1, 0, place));
            match (place, with) {
                (_, Some(slot)) => {
                    self.op(insn::load_stored(2, STACK, slot));
                    self.op(insn::alu(Op::Add, 1, 2));
                }
                (0, None) => self.op(insn::alu_number(Op::Add, 1, 1)),
                (_, None) => self.op(insn::alu(Op::Add, 1, LENGTH)),
            }
            self.op(insn::store(0, place, 1));
        };
        add(0, None);
        add(8, None);
        for (place, slot) in (16..).step_by(8).zip(held) {
            add(place, Some(slot));
        }
        self.held = before;
        Ok(())
    }

    /// What is written at which bytes, from the packet as it came in.
    fn written(&mut self, exit: &Exit) -> Result<Vec<(i32, u8, Stored)>, Lack> {
        let (writes, mut all) = (&exit.writes, Vec::new());
        let mut there: BTreeMap<i32, i32> = BTreeMap::new();
        for write in &writes.bytes {
            let end = write.offset + i32::from(write.length);
            there.insert(write.offset, end);
            // What lies before the data that is left is not seen.
            let from = write.offset.max(writes.start);
            if from >= end {
                continue;
            }
            let mut low = 8 * (end - from) as u32;
            for (offset, bytes) in pieces(from, (end - from) as usize) {
                low -= 8 * u32::from(bytes);
                all.push((offset, bytes, self.stored(write.value, low, bytes)?));
            }
        }
        // Bytes that appear and are not written.
        let mut next = writes.start;
        for (from, end) in there.into_iter().chain([(0, 0)]) {
            if next < from.min(0) {
                let bytes = (from.min(0) - next) as usize;
                all.extend(pieces(next, bytes).map(|(at, bytes)| (at, bytes, Stored::Number(0))));
            }
            next = next.max(end);
        }
        Ok(all)
    }

    fn stored(&mut self, value: TermId, low: u32, bytes: u8) -> Result<Stored, Lack> {
        let bits = 8 * u32::from(bytes);
        if let Term::Const(value) = self.program.term(value) {
            let number = value.checked_shr(low).unwrap_or(0) as u64;
            return Ok(Stored::Number(number.swap_bytes() >> (64 - bits)));
        }
        let reg = self.bits(value, low, bits, 0)?;
        if bytes > 1 {
            self.op(insn::from_network(reg, bits as i32));
        }
        let slot = self.hold(8)?;
        self.op(insn::store(STACK, slot, reg));
        Ok(Stored::Held(slot))
    }

    fn write(&mut self, exit: &Exit) -> Result<(), Lack> {
        let writes = &exit.writes;
        let all = self.written(exit)?;
        let length = match writes.length {
            Some(length) => {
                self.exact(length)?;
                let reg = self.value(length, 0)?;
                let slot = self.hold(8)?;
                self.op(insn::store(STACK, slot, reg));
                Some(slot)
            }
            None => None,
        };
        if i16::try_from(writes.start).is_err() {
            return Err(Lack::Move(writes.start));
        }
        self.adjust_head(writes.start);
        let end = all.iter().map(|(at, bytes, _)| at + i32::from(*bytes) - writes.start).max();
        if let Some(end) = end {
            let end = u32::try_from(end).ok().filter(|end| *end < 0x7fff);
            self.require(end.ok_or(Lack::Move(writes.start))?, ABORT);
        }
        for (at, bytes, what) in all {
            let at = (at - writes.start) as i16;
            match what {
                Stored::Number(number) => self.store(at, bytes, number),
                Stored::Held(slot) => {
                    self.op(insn::load_stored(1, STACK, slot));
                    self.op(insn::store_memory(size(bytes), DATA, at, 1));
                }
            }
        }
        if let Some(slot) = length {
            self.cut(slot, writes.start);
        }
        Ok(())
    }

    fn store(&mut self, at: i16, bytes: u8, number: u64) {
        match (bytes, i32::try_from(number as i64)) {
            (1 | 2 | 4, _) => {
                self.op(insn::store_number(size(bytes), DATA, at, number as u32 as i32));
            }
            (_, Ok(number)) => self.op(insn::store_number(size(bytes), DATA, at, number)),
            (_, Err(_)) => {
                self.set(1, number);
                self.op(insn::store_memory(size(bytes), DATA, at, 1));
            }
        }
    }

    /// Cuts what is behind so many bytes.
    fn cut(&mut self, slot: i16, start: i32) {
        let done = self.label();
        self.op(insn::load_stored(2, STACK, slot));
        self.op(insn::copy(1, LENGTH));
        if start != 0 {
            self.op(insn::alu_number(Op::Sub, 1, start));
        }
        self.jump(Cond::Ge, 2, 1, done);
        self.op(insn::alu(Op::Sub, 2, 1));
        self.op(insn::copy(1, CONTEXT));
        self.op(insn::call(ADJUST_TAIL));
        self.jump_number(Cond::Ne, 0, 0, u64::MAX, ABORT, 0);
        self.checked = Some(0);
        self.bind(done);
    }

    fn adjust_head(&mut self, by: i32) {
        if by == 0 {
            return;
        }
        self.op(insn::copy(1, CONTEXT));
        self.op(insn::set(2, by));
        self.op(insn::call(ADJUST_HEAD));
        self.jump_number(Cond::Ne, 0, 0, u64::MAX, ABORT, 0);
        self.reload();
    }

    /// Out of a port.
    fn leave(&mut self, port: u32) -> Result<(), Lack> {
        if self.ingress == [port] {
            self.op(insn::set(0, XDP_TX));
            self.op(insn::EXIT);
            return Ok(());
        }
        if port >= PORTS {
            return Err(Lack::Room("ports", port as usize, PORTS as usize));
        }
        let ports = match self.around.ports {
            Some(ports) => ports,
            None => {
                let number = self.map(ports_map());
                self.around.ports = Some(number);
                number
            }
        };
        self.ops(insn::load_map(1, ports as i32));
        self.set(2, port.into());
        self.set(3, 0);
        self.op(insn::call(REDIRECT_MAP));
        self.op(insn::EXIT);
        Ok(())
    }

    /// Behind an 802.1ad tag in front of all other tags, to the cores.
    fn hand_off(&mut self, number: u16) -> Result<(), Lack> {
        if number >= 0xfff || number == 0 {
            return Err(Lack::Room("continuations", number.into(), 4094));
        }
        self.adjust_head(-4);
        self.require(18, ABORT);
        for (offset, bytes) in pieces(0, 12) {
            self.op(insn::load_memory(size(bytes), 1, DATA, (offset + 4) as i16));
            self.op(insn::store_memory(size(bytes), DATA, offset as i16, 1));
        }
        let tag = (u32::from(TAG) << 16 | u32::from(number)).swap_bytes();
        self.store(12, 4, tag.into());
        let cores = self.around.device.map_or(0, |device| device.cores);
        self.leave(cores)
    }
}
