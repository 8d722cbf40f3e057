//! The return path: a frame from the cores leaves, without its tag, by the port that the tag names.

use super::emit::exit::{TAG, ports_map};
use super::emit::{ADJUST_HEAD, REDIRECT_MAP, XDP_DROP};
use super::insn::{self, AsmLine, Cond};
use super::object::{Code, Object};

/// Where a `struct xdp_md` has the frame's first byte, and the one behind its last.
const DATA: i16 = 0;
const DATA_END: i16 = 4;

/// Adds the program for the port towards the cores to an object, and the map of ports if there is none. Other frames than
/// those with a tag that names one of these are dropped.
pub fn back(object: &mut Object) {
    let ports = ports_map();
    let known = object.maps.iter().position(|map| map.name == ports.name);
    let map = known.unwrap_or_else(|| {
        object.maps.push(ports);
        object.maps.len() - 1
    });
    let in_frame = |number: u16| number.to_be().into();
    let [load, rest] = insn::load_map(1, 0);
    let lines = [
        AsmLine::Do(insn::copy(6, 1)),
        AsmLine::Do(insn::load_memory(insn::WORD, 2, 6, DATA)),
        AsmLine::Do(insn::load_memory(insn::WORD, 3, 6, DATA_END)),
        AsmLine::Do(insn::copy(4, 2)),
        AsmLine::Do(insn::advance(4, 18)),
        AsmLine::If(insn::GREATER, 4, 3, 0, "drop"),
        AsmLine::Do(insn::load_memory(insn::HALF, 4, 2, 12)),
        AsmLine::If(Cond::Ne.number(), 4, 0, in_frame(TAG), "drop"),
        AsmLine::Do(insn::load_memory(insn::HALF, 7, 2, 14)),
        AsmLine::Do(insn::from_network(7, 16)),
        AsmLine::Do(insn::and(7, 0xfff)),
        // The addresses move to where the tag was.
        AsmLine::Do(insn::load_memory(insn::WORD, 4, 2, 8)),
        AsmLine::Do(insn::load_memory(insn::WORD, 5, 2, 4)),
        AsmLine::Do(insn::load_memory(insn::WORD, 3, 2, 0)),
        AsmLine::Do(insn::store_memory(insn::WORD, 2, 12, 4)),
        AsmLine::Do(insn::store_memory(insn::WORD, 2, 8, 5)),
        AsmLine::Do(insn::store_memory(insn::WORD, 2, 4, 3)),
        AsmLine::Do(insn::copy(1, 6)),
        AsmLine::Do(insn::set(2, 4)),
        AsmLine::Do(insn::call(ADJUST_HEAD)),
        AsmLine::If(insn::NOT_EQUAL, 0, 0, 0, "drop"),
        AsmLine::Do(load),
        AsmLine::Do(rest),
        AsmLine::Do(insn::copy(2, 7)),
        AsmLine::Do(insn::set(3, XDP_DROP)),
        AsmLine::Do(insn::call(REDIRECT_MAP)),
        AsmLine::Do(insn::EXIT),
        AsmLine::Label("drop"),
        AsmLine::Do(insn::set(0, XDP_DROP)),
        AsmLine::Do(insn::EXIT),
    ];
    let words = insn::assemble(&lines).unwrap_or_default();
    let place = words.iter().position(|word| *word == load).unwrap_or_default();
    object.programs.push(Code {
        name: "back".into(),
        section: "xdp/back".into(),
        words,
        maps: vec![(place, map)],
    });
}
