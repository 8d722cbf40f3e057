//! Instruction words as instructions, those that programs of this kind are made of.

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    Shl,
    Shr,
    Rem,
    Xor,
    Mov,
}

/// How numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// The same of the numbers in reverse order.
    pub(super) fn turned(self) -> Self {
        match self {
            Self::Eq | Self::Ne => self,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Register(usize),
    Number(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insn {
    Alu {
        op: Alu,
        wide: bool,
        to: usize,
        from: Source,
    },
    /// Reverses the bytes of the low bits, and clears those above.
    Reverse {
        to: usize,
        bits: u8,
    },
    /// Clears all but the low bits.
    Truncate {
        to: usize,
        bits: u8,
    },
    Number {
        to: usize,
        value: u64,
    },
    Map {
        to: usize,
        map: usize,
    },
    Load {
        bytes: u8,
        to: usize,
        base: usize,
        offset: i32,
    },
    Store {
        bytes: u8,
        base: usize,
        offset: i32,
        from: Source,
    },
    Jump {
        how: Comparison,
        wide: bool,
        a: usize,
        b: Source,
        to: usize,
    },
    Goto {
        to: usize,
    },
    Call(i32),
    Exit,
    /// The second word of an instruction of two.
    Second,
}

/// Decodes a program; maps by the instruction that loads them.
///
/// # Errors
/// The first instruction that is none, and why.
pub(super) fn decode(words: &[u64], maps: &[(usize, usize)]) -> Result<Vec<Insn>, (usize, String)> {
    let mut all = Vec::with_capacity(words.len());
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        let insn = one(word, at, words, maps).map_err(|why| (at, why))?;
        all.push(insn);
        at += 1;
        if matches!(insn, Insn::Number { .. } | Insn::Map { .. }) && word as u8 == 0x18 {
            all.push(Insn::Second);
            at += 1;
        }
    }
    for (at, insn) in all.iter().enumerate() {
        if let Insn::Jump { to, .. } | Insn::Goto { to } = insn
            && all.get(*to).is_none_or(|insn| *insn == Insn::Second)
        {
            return Err((at, "it leads to no instruction".into()));
        }
    }
    Ok(all)
}

fn one(word: u64, at: usize, words: &[u64], maps: &[(usize, usize)]) -> Result<Insn, String> {
    let code = word as u8;
    let (to, from) = ((word >> 8 & 0xf) as usize, (word >> 12 & 0xf) as usize);
    let offset = (word >> 16) as u16 as i16;
    let number = (word >> 32) as u32 as i32;
    let unknown = || format!("code {code:#04x} is not known here");
    if to > 10 || from > 10 {
        return Err("there are 11 registers".into());
    }
    let source = match code & 8 {
        0 => Source::Number(number as i64 as u64),
        _ => Source::Register(from),
    };
    let bytes = match code & 0x18 {
        0x00 => 4,
        0x08 => 2,
        0x10 => 1,
        _ => 8,
    };
    let target = |by: i64| {
        let to = (at as i64).checked_add(1).and_then(|next| next.checked_add(by));
        to.and_then(|to| usize::try_from(to).ok()).ok_or("it leads out of the program".to_string())
    };
    match code & 7 {
        0 if code == 0x18 => {
            let second = *words.get(at + 1).ok_or("its second word is missing")?;
            if second as u32 != 0 {
                return Err("its second word is none".into());
            }
            match from {
                0 => Ok(Insn::Number { to, value: u64::from(number as u32) | second >> 32 << 32 }),
                1 => {
                    let map = maps.iter().find(|map| map.0 == at);
                    Ok(Insn::Map { to, map: map.ok_or("it names no map")?.1 })
                }
                _ => Err(unknown()),
            }
        }
        1 if code & 0xe0 == 0x60 => Ok(Insn::Load { bytes, to, base: from, offset: offset.into() }),
        2 if code & 0xe0 == 0x60 => {
            let from = Source::Number(number as i64 as u64);
            Ok(Insn::Store { bytes, base: to, offset: offset.into(), from })
        }
        3 if code & 0xe0 == 0x60 => {
            let from = Source::Register(from);
            Ok(Insn::Store { bytes, base: to, offset: offset.into(), from })
        }
        4 | 7 => {
            let wide = code & 7 == 7;
            let op = match code & 0xf0 {
                0x00 => Alu::Add,
                0x10 => Alu::Sub,
                0x20 => Alu::Mul,
                0x30 => Alu::Div,
                0x40 => Alu::Or,
                0x50 => Alu::And,
                0x60 => Alu::Shl,
                0x70 => Alu::Shr,
                0x90 => Alu::Rem,
                0xa0 => Alu::Xor,
                0xb0 => Alu::Mov,
                0xd0 => {
                    let bits = match number {
                        16 | 32 | 64 => number as u8,
                        _ => return Err(unknown()),
                    };
                    return match (wide, code & 8) {
                        (false, 0) => Ok(Insn::Truncate { to, bits }),
                        (false, _) | (true, 0) => Ok(Insn::Reverse { to, bits }),
                        _ => Err(unknown()),
                    };
                }
                _ => return Err(unknown()),
            };
            // Signed variants.
            match offset {
                0 => Ok(Insn::Alu { op, wide, to, from: source }),
                _ => Err(unknown()),
            }
        }
        5 if code == 0x95 => Ok(Insn::Exit),
        5 if code == 0x85 && from == 0 => Ok(Insn::Call(number)),
        5 if code == 0x05 => Ok(Insn::Goto { to: target(offset.into())? }),
        6 if code == 0x06 => Ok(Insn::Goto { to: target(number.into())? }),
        5 | 6 => {
            let how = match code & 0xf0 {
                0x10 => Comparison::Eq,
                0x20 => Comparison::Gt,
                0x30 => Comparison::Ge,
                0x50 => Comparison::Ne,
                0xa0 => Comparison::Lt,
                0xb0 => Comparison::Le,
                _ => return Err(unknown()),
            };
            let wide = code & 7 == 5;
            Ok(Insn::Jump { how, wide, a: to, b: source, to: target(offset.into())? })
        }
        _ => Err(unknown()),
    }
}
