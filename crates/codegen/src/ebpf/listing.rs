//! Listings: instructions as the kernel's verifier shows them, block by block, with what each block
//! stands for.

use std::fmt::Write;

use super::object::{Code, Object};
use super::{Block, Compiled};
use crate::Device;

/// The programs of a device.
pub(super) fn listing(compiled: &Compiled, device: &Device<'_>) -> String {
    let mut text = String::new();
    for (number, code) in compiled.object.programs.iter().enumerate() {
        let _ = writeln!(text, "// {} in section {}", code.name, code.section);
        let mut blocks = compiled.blocks[number].iter().peekable();
        let mut at = 0;
        while at < code.words.len() {
            while let Some(block) = blocks.next_if(|block| block.first <= at) {
                let Block { step, element, span, .. } = block;
                let _ = writeln!(text, "// s{}: {}", step.0, (device.origin)(*element, *span));
            }
            let (insn, words) = show(&compiled.object, code, at);
            let _ = writeln!(text, "{at:5}: {insn}");
            at += words;
        }
    }
    text
}

/// An instruction, and how many words it has.
fn show(object: &Object, code: &Code, at: usize) -> (String, usize) {
    let word = code.words[at];
    let (op, to, from) = (word as u8, word >> 8 & 0xf, word >> 12 & 0xf);
    let (offset, number) = ((word >> 16) as u16 as i16, (word >> 32) as u32 as i32);
    let size = ["u32", "u16", "u8", "u64"][usize::from(op >> 3 & 3)];
    let place = |base: u64| format!("*({size} *)(r{base} {offset:+})");
    let target = |by: i64| at as i64 + 1 + by;
    let is_register = op & 8 != 0;
    let operand = match is_register {
        true => format!("r{from}"),
        false => number.to_string(),
    };
    let text = match op & 7 {
        0 => {
            let map = code.maps.iter().find(|map| map.0 == at);
            let text = match map.and_then(|map| object.maps.get(map.1)) {
                Some(map) => format!("r{to} = map {}", map.name),
                None => {
                    let high = code.words.get(at + 1).map_or(0, |word| word >> 32 << 32);
                    format!("r{to} = {:#x} ll", high | u64::from(number as u32))
                }
            };
            return (text, 2);
        }
        1 => format!("r{to} = {}", place(from)),
        2 => format!("{} = {number}", place(to)),
        3 => format!("{} = r{from}", place(to)),
        class @ (4 | 7) => {
            let register = if class == 7 { 'r' } else { 'w' };
            let operand = match is_register {
                true => format!("{register}{from}"),
                false => operand,
            };
            let sign = match op & 0xf0 {
                0x00 => "+=",
                0x10 => "-=",
                0x20 => "*=",
                0x30 => "/=",
                0x40 => "|=",
                0x50 => "&=",
                0x60 => "<<=",
                0x70 => ">>=",
                0x90 => "%=",
                0xa0 => "^=",
                0xb0 => "=",
                _ => return (format!("r{to} = be{number} r{to}"), 1),
            };
            format!("{register}{to} {sign} {operand}")
        }
        _ if op == 0x95 => "exit".into(),
        _ if op == 0x85 => match number {
            160 => "call bpf_ktime_get_coarse_ns#160".into(),
            1 => "call bpf_map_lookup_elem#1".into(),
            44 => "call bpf_xdp_adjust_head#44".into(),
            51 => "call bpf_redirect_map#51".into(),
            65 => "call bpf_xdp_adjust_tail#65".into(),
            189 => "call bpf_xdp_load_bytes#189".into(),
            number => format!("call #{number}"),
        },
        _ if op == 0x05 => format!("goto {}", target(offset.into())),
        _ if op == 0x06 => format!("goto {}", target(number.into())),
        class => {
            let register = if class == 5 { 'r' } else { 'w' };
            let sign = match op & 0xf0 {
                0x10 => "==",
                0x20 => ">",
                0x30 => ">=",
                0x50 => "!=",
                0xa0 => "<",
                _ => "<=",
            };
            let operand = match (is_register, class) {
                (true, _) => format!("{register}{from}"),
                (false, 6) => (number as u32).to_string(),
                (false, _) => operand,
            };
            format!("if {register}{to} {sign} {operand} goto {}", target(offset.into()))
        }
    };
    (text, 1)
}
