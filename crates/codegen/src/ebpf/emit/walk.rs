//! Long lists of rules: trees in arrays that a loop walks.
//!
//! An entry of the array is a cache line with a comparison and the two that may follow it, and says
//! where each outcome leads: to another entry, or to an arm. The numbers that are compared stand side
//! by side on the stack. An entry also says how many may follow it, which are fewer than the one
//! before it says: so the verifier sees that the loop ends (seen on Linux 6.18), and the reader that whoever
//! comes to an entry is in one state, however it came there.

use std::collections::HashMap;

use ir::program::{ClassifyRule, StepId, TermId};

use super::super::insn::{self, Cond, Line, Op};
use super::super::object::{Map, MapKind};
use super::tree::{Cube, Node, To, Tree, columns};
use super::{ABORT, Emitter, LENGTH, MAP_LOOKUP, STACK};
use crate::Lack;

/// Numbers that are compared, at most.
const COLUMNS: usize = 16;
/// Bytes of an entry.
const ENTRY: u32 = 64;
/// Where an entry says where outcomes lead, and which numbers are compared, by their bytes on the
/// stack; three numbers that they are compared with stand in front.
const LEADS: i16 = 24;
const COMPARED: i16 = 40;
/// How many entries may follow, in two bytes.
const FOLLOW: i16 = 44;
/// Numbers from here on are those of arms.
const ARMS: u32 = 1 << 31;

/// The entries of a tree's array; the first is the root's.
fn entries(tree: &Tree, root: u32) -> Vec<[u8; ENTRY as usize]> {
    // Where one of two comparisons is none, all numbers are at least 0.
    let pair = |to: To| match to {
        To::Node(number) => tree.nodes[number as usize],
        To::Arm(_) => Node { column: 0, cut: 0, below: to, from: to },
    };
    let leads = |first: Node| {
        let (below, from) = (pair(first.below), pair(first.from));
        ([first, below, from], [below.below, below.from, from.below, from.from])
    };
    // What a node leads to stands before it.
    let mut follow: Vec<u16> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let behind = |to: To| match to {
            To::Node(number) => follow[number as usize].saturating_add(1),
            To::Arm(_) => 0,
        };
        let most = leads(*node).1.into_iter().map(behind).max();
        follow.push(most.unwrap_or(0));
    }
    let (mut numbers, mut order) = (HashMap::from([(root, 0_u32)]), vec![root]);
    let mut all = Vec::new();
    while let Some(number) = order.get(all.len()) {
        let (nodes, to) = leads(tree.nodes[*number as usize]);
        let mut entry = [0; ENTRY as usize];
        entry[FOLLOW as usize..][..2].copy_from_slice(&follow[*number as usize].to_le_bytes());
        for (index, node) in nodes.iter().enumerate() {
            entry[8 * index..][..8].copy_from_slice(&node.cut.to_le_bytes());
            entry[COMPARED as usize + index] = 8 * node.column;
        }
        for (index, to) in to.into_iter().enumerate() {
            let to = match to {
                To::Arm(arm) => ARMS | arm,
                To::Node(number) => *numbers.entry(number).or_insert_with(|| {
                    order.push(number);
                    order.len() as u32 - 1
                }),
            };
            entry[LEADS as usize + 4 * index..][..4].copy_from_slice(&to.to_le_bytes());
        }
        all.push(entry);
    }
    all
}

impl Emitter<'_, '_> {
    /// The greatest number that a key can be.
    fn greatest(&self, key: TermId) -> Result<u128, Lack> {
        if self.exact(key).is_ok() {
            return Ok(self.most(key).into());
        }
        match self.is_in_pieces(key) {
            true => Ok(self.program.numbers_where(key, |_| None).bounds.1.max(1 << 64)),
            false => Err(Lack::Number("numbers of more than 64 bits")),
        }
    }

    /// By a tree.
    pub(super) fn walk(
        &mut self,
        at: StepId,
        keys: &[TermId],
        rules: &[ClassifyRule],
        (arms, otherwise): (&[StepId], StepId),
    ) -> Result<(), Lack> {
        let most = keys.iter().map(|key| self.greatest(*key)).collect::<Result<Vec<u128>, _>>()?;
        let count = columns(&most).next_power_of_two();
        if count > COLUMNS {
            return Err(Lack::Room("numbers of 64 bits", count, COLUMNS));
        }
        // Arms that are one step are one arm.
        let mut places: Vec<StepId> = arms.iter().copied().chain([otherwise]).collect();
        places.sort_unstable();
        places.dedup();
        let place = |step: StepId| places.partition_point(|other| *other < step) as u32;
        let cubes: Vec<Cube<'_>> = rules
            .iter()
            .flat_map(|rule| {
                let arm = place(arms[rule.arm as usize]);
                rule.cubes.iter().map(move |tests| Cube { tests, arm })
            })
            .collect();
        let tree = Tree::grow(&most, &cubes, place(otherwise))?;
        let root = match tree.root {
            To::Node(root) => root,
            To::Arm(arm) => {
                self.goto(places[arm as usize].0);
                return Ok(());
            }
        };
        let entries = entries(&tree, root);
        let first = entries.first().and_then(|entry| entry[FOLLOW as usize..].first_chunk());
        let follow = first.map_or(0, |bytes| u16::from_le_bytes(*bytes));
        let mut held: Vec<(Vec<u8>, Vec<u8>)> = (0_u32..)
            .zip(&entries)
            .map(|(number, entry)| (number.to_le_bytes().to_vec(), entry.to_vec()))
            .collect();
        held.sort_unstable();
        let map = self.map(Map {
            name: format!("rules{}_{}", self.number, at.0),
            kind: MapKind::Array,
            key: 4,
            value: ENTRY,
            room: entries.len() as u32,
            flags: 0,
            entries: held,
        });
        let before = self.held;
        let (index, length) = (self.hold(8)?, self.hold(8)?);
        let first = self.hold(8 * count as i32)?;
        let mut slot = first;
        for (key, most) in keys.iter().zip(&most) {
            if *most > u64::MAX.into() {
                let upper = self.bits(*key, 64, 64, 0)?;
                self.op(insn::store(STACK, slot, upper));
                slot += 8;
            }
            let value = self.value(*key, 0)?;
            self.op(insn::store(STACK, slot, value));
            slot += 8;
        }
        while slot < length {
            self.op(insn::store_number(insn::DOUBLE, STACK, slot, 0));
            slot += 8;
        }
        self.op(insn::store(STACK, length, LENGTH));
        self.op(insn::set(LENGTH, i32::from(follow) + 1));
        self.op(insn::set(1, 0));
        let next = self.label();
        self.bind(next);
        self.op(insn::store(STACK, index, 1));
        self.ops(insn::load_map(1, map as i32));
        self.op(insn::copy(2, STACK));
        self.op(insn::advance(2, index.into()));
        self.op(insn::call(MAP_LOOKUP));
        self.jump_number(Cond::Eq, 0, 0, u64::MAX, ABORT, 0);
        self.op(insn::load_memory(insn::HALF, 2, 0, FOLLOW));
        self.jump(Cond::Ge, 2, LENGTH, ABORT);
        self.op(insn::copy(LENGTH, 2));
        let (upper, lead) = (self.label(), self.label());
        let mask = 8 * (count as i32 - 1);
        self.compared(0, first, mask, upper);
        for (half, label) in [(0, None), (1, Some(upper))] {
            if let Some(label) = label {
                self.bind(label);
            }
            self.op(insn::load_memory(insn::WORD, 1, 0, LEADS + 8 * half + 4));
            let not_less = self.label();
            self.compared(1 + half, first, mask, not_less);
            self.op(insn::load_memory(insn::WORD, 1, 0, LEADS + 8 * half));
            self.bind(not_less);
            self.goto(lead);
        }
        self.bind(lead);
        self.jump_number(Cond::Lt, 1, ARMS.into(), u32::MAX.into(), next, 0);
        self.op(insn::load_stored(LENGTH, STACK, length));
        self.held = before;
        let numbers = (ARMS..).zip(&places).map(|(number, step)| (number.into(), step.0)).collect();
        self.lead(1, numbers);
        Ok(())
    }

    /// Goes elsewhere unless the number that an entry says is less than its cut.
    fn compared(&mut self, number: i16, first: i16, mask: i32, not_less: super::Label) {
        self.op(insn::load_memory(insn::BYTE, 2, 0, COMPARED + number));
        self.op(insn::alu_number(Op::And, 2, mask));
        self.op(insn::copy(3, STACK));
        self.op(insn::alu(Op::Add, 3, 2));
        self.op(insn::load_stored(3, 3, first));
        self.op(insn::load_stored(4, 0, 8 * number));
        self.jumps(not_less);
        self.lines.push(Line::If(Cond::Ge.register(), 3, 4, 0, not_less));
    }
}
