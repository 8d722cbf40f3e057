//! Which registers and places on the stack an instruction, or one behind it, may read: nothing else
//! distinguishes states.

use super::decode::{Alu, Insn, Source};

/// Registers by number, and eight bytes of stack each from its end on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Live {
    pub(super) registers: u16,
    pub(super) stack: u64,
}

/// The place that an offset from the stack's end is in.
pub(super) fn place(offset: i32) -> Option<u32> {
    u32::try_from(offset + 512).ok().map(|at| at / 8).filter(|at| *at < 64)
}

fn range(from: i32, bytes: i32) -> u64 {
    (from..from.saturating_add(bytes)).filter_map(place).fold(0, |all, at| all | 1 << at)
}

/// By instruction: what is read from there on.
pub(super) fn live(code: &[Insn]) -> Vec<Live> {
    let mut all = vec![Live::default(); code.len() + 1];
    // Jumps that lead back: until nothing changes.
    loop {
        let mut changed = false;
        for (at, insn) in code.iter().enumerate().rev() {
            let mut now = match insn {
                Insn::Exit => Live::default(),
                Insn::Goto { to } => all[*to],
                Insn::Jump { to, .. } => Live {
                    registers: all[at + 1].registers | all[*to].registers,
                    stack: all[at + 1].stack | all[*to].stack,
                },
                _ => all[at + 1],
            };
            let reg = |number: &usize| 1_u16 << number;
            let source = |from: &Source| match from {
                Source::Register(number) => reg(number),
                Source::Number(_) => 0,
            };
            match insn {
                Insn::Alu { op, to, from, .. } => {
                    now.registers &= !reg(to);
                    if *op != Alu::Mov {
                        now.registers |= reg(to);
                    }
                    now.registers |= source(from);
                    // Whose address is taken may be read.
                    if let (Alu::Mov, Source::Register(10)) = (op, from) {
                        match code.get(at + 1) {
                            Some(Insn::Alu {
                                op: Alu::Add,
                                to: other,
                                from: Source::Number(by),
                                ..
                            }) if other == to => {
                                now.stack |= range(*by as i32, 64);
                            }
                            _ => now.stack = u64::MAX,
                        }
                    }
                }
                Insn::Number { to, .. } | Insn::Map { to, .. } => now.registers &= !reg(to),
                Insn::Load { bytes, to, base, offset } => {
                    now.registers &= !reg(to);
                    now.registers |= reg(base);
                    if *base == 10 {
                        now.stack |= range(*offset, (*bytes).into());
                    }
                }
                Insn::Store { bytes, base, offset, from } => {
                    if *base == 10 && *bytes == 8 && offset % 8 == 0 {
                        now.stack &= !range(*offset, 8);
                    }
                    now.registers |= reg(base) | source(from);
                }
                Insn::Jump { a, b, .. } => now.registers |= reg(a) | source(b),
                Insn::Call(_) => now.registers = now.registers & !0x3f | 0x3e,
                Insn::Exit => now.registers |= 1,
                Insn::Reverse { .. } | Insn::Truncate { .. } | Insn::Goto { .. } | Insn::Second => {
                }
            }
            if now != all[at] {
                all[at] = now;
                changed = true;
            }
        }
        if !changed {
            return all;
        }
    }
}
