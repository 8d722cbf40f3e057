//! Reader: from instruction words to programs, by symbolic execution.
//!
//! Every path is followed; states that agree in all that is read later are one, and become one step.
//! The reader shares nothing with what emits: it decodes words itself, and computes with numbers by
//! itself. Two things it takes for granted, as the kernel grants them: that a program was accepted by
//! the verifier, and that a frame has 14 bytes and room around it, so that checks that only lead to
//! `XDP_ABORTED` if there were none of that never fail.

mod decode;
mod end;
mod flows;
mod live;
mod machine;
mod numbers;
mod terms;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};
use indexmap::IndexSet;
use ir::Program;
use ir::field::meta;
use ir::model::CompareOp;
use ir::program::{Atom, Entries, Lookup, LookupId, Step, StepId, Table, TableId, Term};
use ir::{IntervalSet, PrefixEntry, PrefixTable};

use super::lease::{self, Promise};
use super::object::{Map, Object};
use crate::Device;
use decode::{Comparison, Insn, decode};
use live::live;
use machine::{Around, Question, State};
use numbers::{Num, Numbers};
use terms::Terms;

/// Instructions that are followed, over all paths: so many always, and for each entry that maps hold.
const BUDGET: (usize, usize) = (16_000_000, 500);
/// Different numbers.
const NUMBERS: usize = 2_000_000;
/// Instructions that a jump looks ahead for a call that depends on it.
const AHEAD: usize = 24;
/// A frame has a MAC header.
const LEAST: i32 = 14;

/// Where a path goes on.
type NodeIndex = usize;

/// What is asked at a place.
enum Asked {
    Atom(Atom, NodeIndex, NodeIndex),
    Found(u16, NodeIndex, NodeIndex),
    /// Whether a lease of a flow may be there, by the segment's lookup.
    Leased(flows::Lease, NodeIndex, NodeIndex),
    End(Box<ir::program::Exit>),
    /// Only what never happens leads there.
    Abort,
}

struct Reader<'a> {
    code: Vec<Insn>,
    around: Around<'a>,
    terms: Terms,
    /// By number of the place: where it is, and what holds there.
    places: IndexSet<(usize, State), RandomState>,
    waiting: Vec<NodeIndex>,
    asked: Vec<Option<Asked>>,
}

/// Reads the program of a segment.
///
/// # Errors
/// The first instruction that is not understood, and why.
pub(super) fn read(
    object: &Object,
    number: usize,
    device: &Device<'_>,
) -> Result<Program, (usize, String)> {
    let whole = |why: &str| (0, why.to_string());
    let code = object.programs.get(number).ok_or_else(|| whole("there is no such program"))?;
    let segment = device.segments.get(number).ok_or_else(|| whole("there is no such segment"))?;
    let insns = decode(&code.words, &code.maps)?;
    if insns.is_empty() {
        return Err(whole("there are no instructions"));
    }
    let live = live(&insns);
    let mut numbers = Numbers::new();
    let terms = Terms::new(&segment.program, &mut numbers);
    let all = lease::leases(device.segments.iter().map(|segment| &segment.program));
    let flows =
        flows::flows(&segment.program, &all, &object.maps, |term| terms.exact(term, &numbers));
    let flows = flows.map_err(|why| (0, why))?;
    let mut reader = Reader {
        code: insns,
        around: Around::new(numbers, &object.maps, flows),
        terms,
        places: IndexSet::default(),
        waiting: Vec::new(),
        asked: Vec::new(),
    };
    let first = reader.place(0, State::new());
    let entries: usize = object.maps.iter().map(|map| map.entries.len()).sum();
    let mut budget = BUDGET.0 + BUDGET.1.saturating_mul(entries);
    while let Some(place) = reader.waiting.pop() {
        let (mut at, mut state) = reader.places[place].clone();
        let asked = loop {
            budget = budget.checked_sub(1).ok_or((at, "it never ends".to_string()))?;
            if reader.around.numbers.len() > NUMBERS {
                return Err((at, "it computes too much".into()));
            }
            let insn = *reader.code.get(at).ok_or((at, "it has no end".to_string()))?;
            match insn {
                Insn::Goto { to } => {
                    state.keep(live[to]);
                    at = to;
                }
                Insn::Exit => {
                    let end =
                        end::end(&state, &mut reader.around, &mut reader.terms, segment, device);
                    break end
                        .map_err(|why| (at, why))?
                        .map_or(Asked::Abort, |exit| Asked::End(Box::new(exit)));
                }
                Insn::Jump { how, wide, a, b, to } => {
                    let question = state.question(&mut reader.around, (how, wide), a, b);
                    let question = question.map_err(|why| (at, why))?;
                    if let Some(jumps) = reader.decided(&question) {
                        at = if jumps { to } else { at + 1 };
                        continue;
                    }
                    let next = [at + 1, to].map(|next| {
                        let jumped = next == to;
                        let mut state = state.clone();
                        let ahead = reader.ahead(at);
                        state.learn(&mut reader.around, &question, jumped, ahead);
                        state.keep(live[next]);
                        reader.place(next, state)
                    });
                    break reader.ask(&question, next[1], next[0]).map_err(|why| (at, why))?;
                }
                insn => {
                    state.run(&mut reader.around, insn).map_err(|why| (at, why))?;
                    at += 1;
                }
            }
        };
        reader.asked[place] = Some(asked);
    }
    reader.program(first, &segment.program).map_err(|why| (0, why))
}

fn set(how: Comparison, than: u64) -> IntervalSet {
    let (than, most) = (u128::from(than), u128::from(u64::MAX));
    match how {
        Comparison::Eq => IntervalSet::single(than),
        Comparison::Ne => IntervalSet::single(than).complement(64),
        Comparison::Lt if than == 0 => IntervalSet::default(),
        Comparison::Lt => IntervalSet::range(0, than - 1),
        Comparison::Le => IntervalSet::range(0, than),
        Comparison::Gt if than == most => IntervalSet::default(),
        Comparison::Gt => IntervalSet::range(than + 1, most),
        Comparison::Ge => IntervalSet::range(than, most),
    }
}

impl Reader<'_> {
    fn place(&mut self, at: usize, state: State) -> NodeIndex {
        let (place, is_new) = self.places.insert_full((at, state));
        if is_new {
            self.asked.push(None);
            self.waiting.push(place);
        }
        place
    }

    /// Whether a call that cuts the frame, or that copies bytes, follows at once.
    fn ahead(&self, at: usize) -> (bool, bool) {
        let behind = self.code.iter().skip(at + 1).take(AHEAD);
        let call = behind.into_iter().find_map(|insn| match insn {
            Insn::Call(function) => Some(*function),
            _ => None,
        });
        (call == Some(65), call == Some(189))
    }

    fn numbers(&self, num: Num) -> IntervalSet {
        let (least, most) = self.around.numbers.deciding(num);
        IntervalSet::range(least.into(), most.into())
    }

    /// Whether a jump is made, if that is known.
    fn decided(&self, question: &Question) -> Option<bool> {
        match question {
            Question::Decided(jumps) => Some(*jumps),
            Question::Test { num, how, than } => {
                let (all, set) = (self.numbers(*num), set(*how, *than));
                if all.is_subset(&set) {
                    return Some(true);
                }
                (!all.intersects(&set)).then_some(false)
            }
            Question::Long { bytes, if_so } => (*bytes <= 0).then_some(*if_so),
            _ => None,
        }
    }

    fn ask(
        &mut self,
        question: &Question,
        jumped: NodeIndex,
        not: NodeIndex,
    ) -> Result<Asked, String> {
        let numbers = &self.around.numbers;
        let by = |if_so: bool| if if_so { (jumped, not) } else { (not, jumped) };
        Ok(match *question {
            Question::Test { num, how, than } => {
                let set = set(how, than).intersect(&self.numbers(num));
                Asked::Atom(self.terms.test(num, set, numbers)?, jumped, not)
            }
            Question::Compare { a, how, b } => {
                let (a, b) = (self.terms.term(a, numbers)?, self.terms.term(b, numbers)?);
                let how = match how {
                    Comparison::Eq => CompareOp::Eq,
                    Comparison::Ne => CompareOp::Ne,
                    Comparison::Lt => CompareOp::Lt,
                    Comparison::Le => CompareOp::Le,
                    Comparison::Gt => CompareOp::Gt,
                    Comparison::Ge => CompareOp::Ge,
                };
                Asked::Atom(Atom::Compare(how, a, b), jumped, not)
            }
            Question::Long { bytes, if_so } => {
                let length = self.around.numbers.intern(numbers::Node::Length);
                let length = self.terms.term(length, &self.around.numbers)?;
                let set = IntervalSet::range(bytes.max(0) as u128, meta::LEN.max());
                let (yes, no) = by(if_so);
                Asked::Atom(Atom::Test(length, set.into()), yes, no)
            }
            Question::Missed { lookup, if_so } => {
                let (miss, hit) = by(if_so);
                Asked::Found(lookup, hit, miss)
            }
            Question::Within { offset, length, if_so } => {
                let all = self.around.numbers.intern(numbers::Node::Length);
                let offset = self.around.numbers.number(offset.into());
                let end = self.around.numbers.sum(length, offset, 1);
                let numbers = &self.around.numbers;
                let (end, all) = (self.terms.term(end, numbers)?, self.terms.term(all, numbers)?);
                let (yes, no) = by(if_so);
                Asked::Atom(Atom::Compare(CompareOp::Le, end, all), yes, no)
            }
            Question::Leased { lease, if_so } => {
                let (there, not) = by(if_so);
                match lease {
                    flows::Lease::Leads(_) => Asked::Leased(lease, there, not),
                    lease => Asked::Atom(self.terms.is_one(lease.chance()), there, not),
                }
            }
            Question::Decided(_) => return Err("it is decided".into()),
        })
    }

    /// Places in an order in which each stands before those it leads to.
    fn order(&self, first: NodeIndex) -> Result<Vec<NodeIndex>, String> {
        // 0: not met, 1: what it leads to is being met, 2: done.
        let mut marks = vec![0_u8; self.asked.len()];
        let (mut stack, mut done) = (vec![first], Vec::new());
        while let Some(&place) = stack.last() {
            if marks[place] == 2 {
                stack.pop();
                continue;
            }
            let next: Vec<NodeIndex> = match &self.asked[place] {
                Some(Asked::Atom(_, a, b) | Asked::Found(_, a, b) | Asked::Leased(_, a, b)) => {
                    vec![*a, *b]
                }
                _ => Vec::new(),
            };
            if marks[place] == 1 {
                marks[place] = 2;
                done.push(place);
                stack.pop();
                continue;
            }
            marks[place] = 1;
            if next.iter().any(|next| marks[*next] == 1) {
                return Err("it leads back to where it was".into());
            }
            stack.extend(next.into_iter().filter(|next| marks[*next] == 0));
        }
        Ok(done)
    }

    fn program(mut self, first: NodeIndex, segment: &Program) -> Result<Program, String> {
        let order = self.order(first)?;
        let (mut tables, mut lookups) = (segment.tables.clone(), segment.lookups.clone());
        let own = lookups.len();
        let asked = std::mem::take(&mut self.around.lookups);
        let mut of_maps: HashMap<usize, TableId> = HashMap::new();
        for (map, key) in &asked {
            let element = segment.lookups.first().map_or(segment.entry.node, |l| l.element);
            let of = &self.around.maps[*map];
            let table = match of_maps.get(map) {
                Some(table) => *table,
                None => {
                    let (width, entries) = prefixes(of)?;
                    let id = TableId(u16::try_from(tables.len()).map_err(|_| "too many tables")?);
                    tables.push(Table {
                        element,
                        widths: vec![width],
                        entries: Entries::Prefixes(PrefixTable::new(width, entries).into()),
                    });
                    of_maps.insert(*map, id);
                    id
                }
            };
            let key = vec![self.terms.joined(key, &self.around.numbers)?];
            let values = (of.value / 16) as u8;
            lookups.push(Lookup { table, key, values, common: 0, element });
        }
        let lookup = |number: u16| {
            u16::try_from(own + usize::from(number)).map(LookupId).map_err(|_| "too many lookups")
        };
        // Equal steps are one, and a test whose outcomes are is none. A place is a step, or nothing
        // that happens.
        let mut steps: Vec<Step> = Vec::new();
        let mut same: HashMap<Same, StepId> = HashMap::new();
        let mut of_places: Vec<Option<StepId>> = vec![None; self.asked.len()];
        let node = segment.entry.node;
        let mut add = |one: Same| {
            *same.entry(one).or_insert_with_key(|one| {
                steps.push(match one.clone() {
                    Same::Test(atom, yes, no) => Step::Test { atom, yes, no, element: node },
                    Same::Lookup(lookup, hit, miss) => Step::Lookup { lookup, hit, miss },
                    Same::Exit(exit) => Step::Exit(exit),
                });
                StepId(steps.len() as u32 - 1)
            })
        };
        for place in order {
            let step = match self.asked[place].take() {
                Some(Asked::Atom(atom, yes, no)) => {
                    let (yes, no) = (of_places[yes], of_places[no]);
                    match (yes, no) {
                        (Some(yes), Some(no)) if yes != no => Some(add(Same::Test(atom, yes, no))),
                        (Some(same), Some(_)) => Some(same),
                        (None, None) => None,
                        // A frame has so many bytes.
                        (Some(yes), None) if is_granted(&self.terms, &atom) => Some(yes),
                        (yes, no) => {
                            let abort = end::abort(segment);
                            let abort = add(Same::Exit(Box::new(abort)));
                            let (yes, no) = (yes.unwrap_or(abort), no.unwrap_or(abort));
                            Some(add(Same::Test(atom, yes, no)))
                        }
                    }
                }
                Some(Asked::Found(number, hit, miss)) => {
                    let abort = end::abort(segment);
                    let mut or_abort = |step: Option<StepId>| {
                        step.unwrap_or_else(|| add(Same::Exit(Box::new(abort.clone()))))
                    };
                    let (hit, miss) = (or_abort(of_places[hit]), or_abort(of_places[miss]));
                    Some(add(Same::Lookup(lookup(number)?, hit, miss)))
                }
                Some(Asked::Leased(lease, hit, miss)) => {
                    let abort = end::abort(segment);
                    let mut or_abort = |step: Option<StepId>| {
                        step.unwrap_or_else(|| add(Same::Exit(Box::new(abort.clone()))))
                    };
                    let (hit, miss) = (or_abort(of_places[hit]), or_abort(of_places[miss]));
                    let flow = self.around.flows.get(usize::from(lease.flow()));
                    let lookup = flow.ok_or("there is no such lookup")?.lookup;
                    // Where a promise would be broken there is no lease.
                    let mut kept = hit;
                    for Promise { atom, holds, .. } in lease::promises(segment, lookup) {
                        let (yes, no) = if holds { (kept, miss) } else { (miss, kept) };
                        kept = add(Same::Test(atom, yes, no));
                    }
                    let found = add(Same::Lookup(lookup, kept, miss));
                    Some(add(Same::Test(self.terms.is_one(lease.chance()), found, miss)))
                }
                Some(Asked::End(exit)) => Some(add(Same::Exit(exit))),
                Some(Asked::Abort) | None => None,
            };
            of_places[place] = step;
        }
        let first = of_places[first].ok_or("it does nothing")?;
        // Steps stand behind those that they lead to: in reverse order.
        let last = first.0;
        let turn = |step: StepId| StepId(last - step.0);
        let mut steps: Vec<Step> = steps.into_iter().take(last as usize + 1).rev().collect();
        for step in &mut steps {
            step.map_next(turn);
        }
        let steps = reachable(steps);
        let program = Program {
            entry: segment.entry,
            continuation: segment.continuation,
            terms: self.terms.all,
            state: segment.state.clone(),
            tables,
            lookups,
            steps,
        };
        Ok(program.normal())
    }
}

/// What makes a step the same as another.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Same {
    Test(Atom, StepId, StepId),
    Lookup(LookupId, StepId, StepId),
    Exit(Box<ir::program::Exit>),
}

/// Without steps that none leads to.
fn reachable(steps: Vec<Step>) -> Vec<Step> {
    let mut reached = vec![false; steps.len()];
    reached[0] = true;
    for (index, step) in steps.iter().enumerate() {
        if reached[index] {
            step.next().for_each(|next| reached[next.0 as usize] = true);
        }
    }
    let mut numbers = Vec::with_capacity(steps.len());
    let mut count = 0;
    for reached in &reached {
        numbers.push(StepId(count));
        count += u32::from(*reached);
    }
    let kept = steps.into_iter().zip(reached).filter(|(_, reached)| *reached);
    let mut steps: Vec<Step> = kept.map(|(step, _)| step).collect();
    for step in &mut steps {
        step.map_next(|next| numbers[next.0 as usize]);
    }
    steps
}

/// Whether all frames are so.
fn is_granted(terms: &Terms, atom: &Atom) -> bool {
    let Atom::Test(term, set) = atom else { return false };
    let all = IntervalSet::range(LEAST as u128, meta::LEN.max());
    terms.all.get(term.0 as usize) == Some(&Term::Input(meta::LEN)) && all.is_subset(set)
}

/// The prefixes that a map holds.
fn prefixes(map: &Map) -> Result<(u16, Vec<PrefixEntry>), String> {
    let bytes = (map.key as usize).checked_sub(4).filter(|bytes| (1..=16).contains(bytes));
    let bytes = bytes.ok_or("its keys are no prefixes")?;
    let mut all = Vec::with_capacity(map.entries.len());
    for (key, value) in &map.entries {
        let fits = key.len() == 4 + bytes && value.len() == map.value as usize;
        let (length, prefix) = match key.split_first_chunk::<4>() {
            Some((length, prefix)) if fits => (u32::from_le_bytes(*length), prefix),
            _ => return Err("an entry of another size".into()),
        };
        if length as usize > 8 * bytes {
            return Err("a prefix that is too long".into());
        }
        let prefix = prefix.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        let free = (8 * bytes) as u32 - length;
        if prefix.trailing_zeros() < free && prefix != 0 {
            return Err("a prefix with bits behind it".into());
        }
        let number = |bytes: &[u8]| {
            bytes.iter().rev().fold(0_u128, |number, byte| number << 8 | u128::from(*byte))
        };
        let row: Vec<u128> = value.chunks(16).map(number).collect();
        all.push(PrefixEntry { prefix, length: length as u16, row: row.into(), span: None });
    }
    Ok((8 * bytes as u16, all))
}
