//! Long lists of rules: trees in arrays that a loop walks.
//!
//! An entry of the array is a cache line with a comparison and the two that may follow it, or one with the ranges of a rule, of
//! which those of wide numbers take two lines. It says
//! where each outcome leads: to another entry, or to an arm. The numbers that are compared stand side
//! by side on the stack. An entry also says how many may follow it, which are fewer than the one
//! before it says: so the verifier sees that the loop ends (seen on Linux 6.18), and the reader that whoever
//! comes to an entry is in one state, however it came there.

use std::collections::HashMap;

use ir::program::{ClassifyRule, StepId, TermId};

use super::super::insn::{self, AsmLine, Cond, Op};
use super::super::object::{Map, MapKind};
use super::tree::{Cube, Cut, Node, To, Tree, columns};
use super::{ABORT, Emitter, LENGTH, MAP_LOOKUP, STACK};
use crate::Lack;

/// Numbers that are compared, at most.
const COLUMNS: usize = 16;
/// Where an entry of comparisons says where outcomes lead, and which numbers are compared, by their bytes on the
/// stack; three numbers that they are compared with stand in front.
const LEADS: i16 = 24;
const COMPARED: i16 = 40;
/// Numbers from here on are those of arms.
const ARMS: u32 = 1 << 31;

/// How entries are laid out.
#[derive(Clone, Copy)]
struct Layout {
    /// Columns that rules have ranges of.
    columns: usize,
    /// Bytes of an end of a range; the ranges stand in front.
    end: usize,
    /// Bytes of ranges at most. Behind them stand where a rule leads that holds, and one that does not; how many
    /// may follow, in two bytes; and which of the two an entry is.
    ranges: usize,
}

impl Layout {
    /// For numbers of these columns. Without ranges where they have no room.
    fn of(most: &[u128]) -> Self {
        let columns = columns(most);
        let is_narrow = most.iter().all(|most| *most <= u32::MAX.into());
        match columns {
            ..=6 if is_narrow => Self { columns, end: 4, ranges: 48 },
            ..=7 => Self { columns, end: 8, ranges: 112 },
            _ => Self { columns: 0, end: 4, ranges: 48 },
        }
    }

    fn has_rules(self) -> bool {
        self.columns > 0
    }

    /// Where the range of a column stands.
    fn range(self, column: usize) -> usize {
        2 * self.end * column
    }

    fn holds(self) -> usize {
        self.ranges
    }

    fn misses(self) -> usize {
        self.ranges + 4
    }

    fn follow(self) -> usize {
        self.ranges + 8
    }

    fn is_rule(self) -> usize {
        self.ranges + 10
    }

    /// Bytes of an entry.
    fn size(self) -> usize {
        self.ranges + 16
    }
}

/// A comparison, and the two that may follow.
fn three(tree: &Tree, first: Cut) -> ([Cut; 3], [To; 4]) {
    // Where there is no comparison, all numbers are at least 0.
    let next = |to: To| match to {
        To::Node(number) if let Node::Cut(cut) = tree.nodes[number as usize] => cut,
        _ => Cut { column: 0, cut: 0, below: to, from: to },
    };
    let (below, from) = (next(first.below), next(first.from));
    ([first, below, from], [below.below, below.from, from.below, from.from])
}

/// Where an entry's outcomes lead.
fn leads(tree: &Tree, node: Node) -> Vec<To> {
    match node {
        Node::Cut(cut) => three(tree, cut).1.to_vec(),
        Node::Rule { yes, no, .. } => vec![no, yes],
    }
}

/// The entries of a tree's array; the first is the root's, and what is asked next mostly stands next.
fn entries(tree: &Tree, root: u32, layout: Layout) -> Vec<Vec<u8>> {
    // What a node leads to stands before it.
    let mut follow: Vec<u16> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let behind = |to: To| match to {
            To::Node(number) => follow[number as usize].saturating_add(1),
            To::Arm(_) => 0,
        };
        let most = leads(tree, *node).into_iter().map(behind).max();
        follow.push(most.unwrap_or(0));
    }
    let (mut numbers, mut order, mut waiting) = (HashMap::new(), Vec::new(), vec![root]);
    while let Some(number) = waiting.pop() {
        if numbers.contains_key(&number) {
            continue;
        }
        numbers.insert(number, order.len() as u32);
        order.push(number);
        let next = leads(tree, tree.nodes[number as usize]).into_iter().rev();
        waiting.extend(next.filter_map(|to| match to {
            To::Node(number) => Some(number),
            To::Arm(_) => None,
        }));
    }
    let lead = |to: To| match to {
        To::Arm(arm) => ARMS | arm,
        To::Node(number) => numbers[&number],
    };
    let entry = |number: &u32| {
        let mut entry = vec![0; layout.size()];
        let mut put = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
        put(layout.follow(), &follow[*number as usize].to_le_bytes());
        match tree.nodes[*number as usize] {
            Node::Cut(first) => {
                let (cuts, to) = three(tree, first);
                for (index, cut) in cuts.iter().enumerate() {
                    put(8 * index, &cut.cut.to_le_bytes());
                    put(COMPARED as usize + index, &[8 * cut.column]);
                }
                for (index, to) in to.into_iter().enumerate() {
                    put(LEADS as usize + 4 * index, &lead(to).to_le_bytes());
                }
            }
            Node::Rule { cube, yes, no } => {
                put(layout.is_rule(), &[1]);
                put(layout.holds(), &lead(yes).to_le_bytes());
                put(layout.misses(), &lead(no).to_le_bytes());
                let of = tree.ranges[cube as usize].as_deref().unwrap_or(&[]);
                for column in 0..layout.columns {
                    let range = of.iter().find(|range| usize::from(range.0) == column);
                    let (low, high) = range.map_or((0, u64::MAX), |(_, low, high)| (*low, *high));
                    for (at, number) in [(0, low), (layout.end, high)] {
                        put(layout.range(column) + at, &number.to_le_bytes()[..layout.end]);
                    }
                }
            }
        }
        entry
    };
    order.iter().map(entry).collect()
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
        let layout = Layout::of(&most);
        let tree = Tree::grow(&most, &cubes, place(otherwise), layout.has_rules())?;
        let root = match tree.root {
            To::Node(root) => root,
            To::Arm(arm) => {
                self.goto(places[arm as usize].0);
                return Ok(());
            }
        };
        let entries = entries(&tree, root, layout);
        let first = entries.first().and_then(|entry| entry[layout.follow()..].first_chunk());
        let follow = first.map_or(0, |bytes| u16::from_le_bytes(*bytes));
        let mut held: Vec<(Vec<u8>, Vec<u8>)> = (0_u32..)
            .zip(&entries)
            .map(|(number, entry)| (number.to_le_bytes().to_vec(), entry.clone()))
            .collect();
        held.sort_unstable();
        let map = self.map(Map {
            name: format!("rules{}_{}", self.number, at.0),
            kind: MapKind::Array,
            key: 4,
            value: layout.size() as u32,
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
        self.op(insn::load_memory(insn::HALF, 2, 0, layout.follow() as i16));
        self.jump(Cond::Ge, 2, LENGTH, ABORT);
        self.op(insn::copy(LENGTH, 2));
        let (upper, lead, rule) = (self.label(), self.label(), self.label());
        if layout.has_rules() {
            self.op(insn::load_memory(insn::BYTE, 2, 0, layout.is_rule() as i16));
            self.jump_number(Cond::Ne, 2, 0, 0xff, rule, 3);
        }
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
        if layout.has_rules() {
            self.bind(rule);
            self.in_ranges(layout, first, lead);
        }
        self.bind(lead);
        self.jump_number(Cond::Lt, 1, ARMS.into(), u32::MAX.into(), next, 0);
        self.op(insn::load_stored(LENGTH, STACK, length));
        self.held = before;
        let numbers = (ARMS..).zip(&places).map(|(number, step)| (number.into(), step.0)).collect();
        self.lead(1, numbers);
        Ok(())
    }

    /// Where an entry leads that is a rule's.
    fn in_ranges(&mut self, layout: Layout, first: i16, lead: super::Label) {
        let size = if layout.end == 4 { insn::WORD } else { insn::DOUBLE };
        let misses = self.label();
        self.op(insn::load_memory(insn::WORD, 1, 0, layout.misses() as i16));
        for column in 0..layout.columns {
            let at = layout.range(column);
            self.op(insn::load_stored(3, STACK, first + 8 * column as i16));
            for (at, outside) in [(at, Cond::Lt), (at + layout.end, Cond::Gt)] {
                self.op(insn::load_memory(size, 4, 0, at as i16));
                self.jump(outside, 3, 4, misses);
            }
        }
        self.op(insn::load_memory(insn::WORD, 1, 0, layout.holds() as i16));
        self.bind(misses);
        self.goto(lead);
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
        self.lines.push(AsmLine::If(Cond::Ge.register(), 3, 4, 0, not_less));
    }
}
