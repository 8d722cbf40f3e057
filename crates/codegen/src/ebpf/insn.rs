//! Assembler: instruction words of the kernel's virtual machine (RFC 9669).

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

/// An instruction: what it does, to and from which register, at which offset, with which number.
pub const fn instruction(code: u8, to: u8, from: u8, offset: i16, number: i32) -> u64 {
    (code as u64)
        | (((to | from << 4) as u64) << 8)
        | ((offset as u16 as u64) << 16)
        | ((number as u32 as u64) << 32)
}

/// `to = number`
pub const fn set(to: u8, number: i32) -> u64 {
    instruction(0xb7, to, 0, 0, number)
}

/// `to = map`
pub const fn load_map(to: u8, map: i32) -> [u64; 2] {
    [instruction(0x18, to, 1, 0, map), 0]
}

/// Calls a function of the kernel: arguments in registers 1 to 5, the result in 0.
pub const fn call(function: i32) -> u64 {
    instruction(0x85, 0, 0, 0, function)
}

/// Ends the program with the number in register 0.
pub const EXIT: u64 = instruction(0x95, 0, 0, 0, 0);

/// `to = from`
pub const fn copy(to: u8, from: u8) -> u64 {
    instruction(0xbf, to, from, 0, 0)
}

/// `to += from`, on 32 bits.
pub const fn add(to: u8, from: u8) -> u64 {
    instruction(0x0c, to, from, 0, 0)
}

/// `to &= number`, on 32 bits.
pub const fn and(to: u8, number: i32) -> u64 {
    instruction(0x54, to, 0, 0, number)
}

/// `to <<= bits`, on 32 bits.
pub const fn shift_left(to: u8, bits: i32) -> u64 {
    instruction(0x64, to, 0, 0, bits)
}

/// Turns a number of so many bits round from network byte order.
pub const fn from_network(to: u8, bits: i32) -> u64 {
    instruction(0xdc, to, 0, 0, bits)
}

/// `to = number`, of 64 bits.
pub const fn load_number(to: u8, number: u64) -> [u64; 2] {
    [instruction(0x18, to, 0, 0, number as i32), number >> 32 << 32]
}

/// `*(to + offset) = from`, of 32 bits.
pub const fn store_word(to: u8, offset: i16, from: u8) -> u64 {
    store_memory(WORD, to, offset, from)
}

/// `*(to + offset) = from`, of 64 bits.
pub const fn store(to: u8, offset: i16, from: u8) -> u64 {
    store_memory(DOUBLE, to, offset, from)
}

/// `to = *(from + offset)`, of 64 bits.
pub const fn load_stored(to: u8, from: u8, offset: i16) -> u64 {
    load_memory(DOUBLE, to, from, offset)
}

/// `to += number`, also for pointers.
pub const fn advance(to: u8, number: i32) -> u64 {
    instruction(0x07, to, 0, 0, number)
}

/// How many bytes are loaded or stored.
pub const WORD: u8 = 0x00;
/// Two bytes.
pub const HALF: u8 = 0x08;
/// One byte.
pub const BYTE: u8 = 0x10;
/// Eight bytes.
pub const DOUBLE: u8 = 0x18;

/// `to = *(from + offset)`, as the bytes stand in memory.
pub const fn load_memory(size: u8, to: u8, from: u8, offset: i16) -> u64 {
    instruction(0x61 | size, to, from, offset, 0)
}

/// `*(to + offset) = from`, as the bytes stand in memory.
pub const fn store_memory(size: u8, to: u8, offset: i16, from: u8) -> u64 {
    instruction(0x63 | size, to, from, offset, 0)
}

/// `*(to + offset) = number`
pub const fn store_number(size: u8, to: u8, offset: i16, number: i32) -> u64 {
    instruction(0x62 | size, to, 0, offset, number)
}

/// Operations on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    Lsh = 0x60,
    Rsh = 0x70,
    Mod = 0x90,
    Xor = 0xa0,
}

/// `to op= from`, on 64 bits.
pub const fn alu(op: Op, to: u8, from: u8) -> u64 {
    instruction(0x0f | op as u8, to, from, 0, 0)
}

/// `to op= number`, on 64 bits; the number's sign is extended.
pub const fn alu_number(op: Op, to: u8, number: i32) -> u64 {
    instruction(0x07 | op as u8, to, 0, 0, number)
}

/// `to op= number`, on 32 bits; the upper bits become 0.
pub const fn alu_word(op: Op, to: u8, number: i32) -> u64 {
    instruction(0x04 | op as u8, to, 0, 0, number)
}

/// `to = number`, on 32 bits; the upper bits become 0.
pub const fn set_word(to: u8, number: i32) -> u64 {
    instruction(0xb4, to, 0, 0, number)
}

/// `to = from`, of 32 bits.
pub const fn copy_word(to: u8, from: u8) -> u64 {
    instruction(0xbc, to, from, 0, 0)
}

/// Where a `struct __sk_buff` is loaded from by the instructions of the classic machine: counted
/// from the network header (`SKF_NET_OFF`), and from the first byte (`SKF_LL_OFF`).
const NETWORK: i32 = -0x10_0000;
const LINK: i32 = -0x20_0000;

/// Register 0 = a number of the frame that a socket is given, counted from the network header and
/// from a register, if one is named. A frame that is too short ends the program with 0. The context
/// must be in register 6; registers 1 to 5 are lost.
pub const fn load_network(size: u8, plus: Option<u8>, offset: i32) -> u64 {
    let (code, plus) = match plus {
        None => (0x20, 0),
        Some(register) => (0x40, register),
    };
    instruction(code | size, 0, plus, 0, NETWORK + offset)
}

/// Register 0 = a number of the frame that a socket is given, counted from its first byte; see
/// [`load_network`].
pub const fn load_link(size: u8, offset: i32) -> u64 {
    instruction(0x20 | size, 0, 0, 0, LINK + offset)
}

/// Code of a jump that is always made.
pub const ALWAYS: u8 = 0x05;
/// Equal to a number.
pub const EQUAL: u8 = 0x15;
/// Not equal to a number.
pub const NOT_EQUAL: u8 = 0x55;
/// Greater than a register, without sign.
pub const GREATER: u8 = 0x2d;
/// Not less than a number, without sign.
pub const AT_LEAST: u8 = 0x35;
/// Less than a number, on 32 bits, without sign.
pub const BELOW: u8 = 0xa6;
/// Greater than a number, on 32 bits, without sign.
pub const ABOVE: u8 = 0x26;

/// How a jump compares, without sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cond {
    Eq = 0x10,
    Gt = 0x20,
    Ge = 0x30,
    Ne = 0x50,
    Lt = 0xa0,
    Le = 0xb0,
}

impl Cond {
    /// The code of a jump that compares 64 bits with a register.
    pub const fn register(self) -> u8 {
        0x0d | self as u8
    }

    /// The code of a jump that compares 64 bits with a number whose sign is extended.
    pub const fn number(self) -> u8 {
        0x05 | self as u8
    }

    /// The code of a jump that compares 32 bits with a number.
    pub const fn word(self) -> u8 {
        0x06 | self as u8
    }
}

/// The code of a jump that is made if another is not; `None` if there is none.
pub const fn opposite(code: u8) -> Option<u8> {
    let other = match code & 0xf0 {
        0x10 => Cond::Ne,
        0x20 => Cond::Le,
        0x30 => Cond::Lt,
        0x50 => Cond::Eq,
        0xa0 => Cond::Ge,
        0xb0 => Cond::Gt,
        _ => return None,
    };
    Some(code & 0x0f | other as u8)
}

/// A line of a program.
#[derive(Clone, Copy, Debug)]
pub enum AsmLine<L = &'static str> {
    /// An instruction that is no jump, or one half of one of two words.
    Do(u64),
    /// Jumps to a label if register and register or number compare so.
    If(u8, u8, u8, i32, L),
    /// A place that jumps lead to.
    Label(L),
}

/// A jump leads further than its instruction can say, or nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooFar;

impl fmt::Display for TooFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a jump leads too far")
    }
}

impl std::error::Error for TooFar {}

/// A jump that is always made and says how far in 32 bits.
const ALWAYS_FAR: u8 = 0x06;

/// How far conditions jump themselves: the kernel puts instructions between those that it loads, and then has to say it in 16 bits, too.
const NEAR: i32 = 1 << 13;

/// Puts a program together: jumps are counted in instructions from the next one on.
///
/// # Errors
/// If a jump leads too far, or to no label.
pub fn assemble<L: Copy + Eq + Hash>(lines: &[AsmLine<L>]) -> Result<Vec<u64>, TooFar> {
    assemble_lines(lines).map(|(words, _)| words)
}

/// The same, with the instruction that each line begins at, and the end. A condition that leads further than its
/// instruction can say is turned round and skips a jump that can.
///
/// # Errors
/// Those of [`assemble`].
pub fn assemble_lines<L: Copy + Eq + Hash>(
    lines: &[AsmLine<L>],
) -> Result<(Vec<u64>, Vec<usize>), TooFar> {
    let mut is_far = vec![false; lines.len()];
    loop {
        let (mut starts, mut labels, mut count) = (Vec::new(), HashMap::new(), 0);
        for (line, is_far) in lines.iter().zip(&is_far) {
            starts.push(count);
            match line {
                AsmLine::Label(label) => drop(labels.insert(*label, count)),
                AsmLine::Do(_) | AsmLine::If(..) => count += 1 + usize::from(*is_far),
            }
        }
        starts.push(count);
        let by = |at: usize, to: &L| -> Result<i32, TooFar> {
            let to = i64::try_from(*labels.get(to).ok_or(TooFar)?).map_err(|_| TooFar)?;
            let next = i64::try_from(starts[at + 1]).map_err(|_| TooFar)?;
            i32::try_from(to - next).map_err(|_| TooFar)
        };
        let (mut words, mut grown) = (Vec::with_capacity(count), false);
        for (at, line) in lines.iter().enumerate() {
            match line {
                AsmLine::Label(_) => {}
                AsmLine::Do(word) => words.push(*word),
                AsmLine::If(code, left, right, number, to) => {
                    let by = by(at, to)?;
                    let near = i16::try_from(by).ok().filter(|_| (-NEAR..NEAR).contains(&by));
                    match near {
                        _ if is_far[at] => {
                            let code = opposite(*code).ok_or(TooFar)?;
                            words.push(instruction(code, *left, *right, 1, *number));
                            words.push(instruction(ALWAYS_FAR, 0, 0, 0, by));
                        }
                        Some(by) => words.push(instruction(*code, *left, *right, by, *number)),
                        None if *code == ALWAYS => {
                            words.push(instruction(ALWAYS_FAR, 0, 0, 0, by));
                        }
                        // What is longer may have others lead further.
                        None => (is_far[at], grown) = (true, true),
                    }
                }
            }
        }
        if !grown {
            return Ok((words, starts));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_count_from_the_next_instruction() {
        let line = |to| AsmLine::If(EQUAL, 1, 0, 7, to);
        let lines = [line("end"), AsmLine::Do(EXIT), AsmLine::Label("end"), AsmLine::Do(EXIT)];
        let words = assemble(&lines).unwrap();
        assert_eq!(words, [instruction(EQUAL, 1, 0, 1, 7), EXIT, EXIT]);
        assert_eq!(assemble(&[line("nowhere")]), Err(TooFar));
        let mut far = vec![AsmLine::If(ALWAYS, 0, 0, 0, "end")];
        far.resize(40_001, AsmLine::Do(EXIT));
        far.extend([AsmLine::Label("end"), AsmLine::Do(EXIT)]);
        assert_eq!(assemble(&far).unwrap()[0], instruction(0x06, 0, 0, 0, 40_000));
        far[0] = line("end");
        let (words, starts) = assemble_lines(&far).unwrap();
        assert_eq!(words[0], instruction(NOT_EQUAL, 1, 0, 1, 7));
        assert_eq!(words[1], instruction(0x06, 0, 0, 0, 40_000));
        assert_eq!((starts[..3].to_vec(), starts.last()), (vec![0, 2, 3], Some(&40_003)));
    }
}
