//! Mistakes that an optimiser could make.

use std::sync::Arc;

use ir::model::BinaryOp;
use ir::program::{
    Atom, Effect, End, Exit, LookupId, Mark, Program, Step, StepId, Term, TermId, Write,
};
use ir::{IntervalSet, RangeMap, Reason};

/// Numbers that look random and are the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, all: &'a mut [T]) -> Option<&'a mut T> {
        let at = self.below(all.len());
        all.get_mut(at)
    }
}

/// A class of mistakes: makes one somewhere, if there is a place for it.
pub(crate) type Mistake = fn(&mut Program, &mut Dice) -> bool;

/// All classes of mistakes, by name.
pub(crate) const MISTAKES: &[(&str, Mistake)] = &[
    ("a test is left out", leave_out_test),
    ("branches are swapped", swap_branches),
    ("a branch leads elsewhere", lead_elsewhere),
    ("an interval is off by one", off_by_one),
    ("a constant is wrong", wrong_constant),
    ("a rule is missing", remove_rule),
    ("rules are out of order", swap_rules),
    ("a rule leads elsewhere", lead_rule_elsewhere),
    ("cases of a switch are swapped", swap_cases),
    ("a table's number is wrong", wrong_number),
    ("exits are merged", merge_exits),
    ("a write is missing", remove_write),
    ("a write has the wrong place", move_write),
    ("a written number is wrong", wrong_write),
    ("an effect is missing", remove_effect),
    ("a counter counts the wrong length", wrong_length_counted),
    ("an update is missing", remove_update),
    ("an update's expiry is wrong", wrong_expiry),
    ("a lookup's key is wrong", wrong_key),
    ("flows are looked up in each other's tables", swap_tables),
    ("another number of a flow is taken", wrong_bound),
    ("a drop's reason is wrong", wrong_reason),
    ("a packet is dropped too early", drop_early),
    ("a packet is not dropped", drop_never),
    ("a packet goes to the wrong port", wrong_port),
    ("the data's start is wrong", wrong_start),
    ("the data's length is wrong", wrong_length),
    ("a mark is wrong", wrong_mark),
    ("an element on the path is forgotten", forget_element),
];

fn leave_out_test(program: &mut Program, dice: &mut Dice) -> bool {
    let tests = program.steps.iter_mut().filter_map(|s| match s {
        Step::Test { yes, no, .. } => Some((yes, no)),
        _ => None,
    });
    let mut tests: Vec<_> = tests.collect();
    let either = dice.below(2);
    match dice.pick(&mut tests) {
        Some((yes, no)) if either == 0 => **no = **yes,
        Some((yes, no)) => **yes = **no,
        None => return false,
    }
    true
}

fn swap_branches(program: &mut Program, dice: &mut Dice) -> bool {
    let tests = program.steps.iter_mut().filter_map(|s| match s {
        Step::Test { yes, no, .. } | Step::Lookup { hit: yes, miss: no, .. } => Some((yes, no)),
        _ => None,
    });
    let mut tests: Vec<_> = tests.collect();
    let Some((yes, no)) = dice.pick(&mut tests) else { return false };
    std::mem::swap(*yes, *no);
    true
}

fn lead_elsewhere(program: &mut Program, dice: &mut Dice) -> bool {
    let all = program.steps.len();
    let tests = program.steps.iter_mut().enumerate().filter_map(|(i, s)| match s {
        Step::Test { yes, .. } => Some((i, yes)),
        _ => None,
    });
    let mut tests: Vec<_> = tests.collect();
    let offset = dice.below(1 << 20);
    let Some((i, yes)) = dice.pick(&mut tests) else { return false };
    let later = all - *i - 1;
    **yes = StepId((*i + 1 + offset % later) as u32);
    true
}

fn shifted(set: &IntervalSet, dice: &mut Dice) -> IntervalSet {
    let mut intervals = set.intervals().to_vec();
    let (low, up) = (dice.below(2) == 0, dice.below(2) == 0);
    if let Some((l, h)) = dice.pick(&mut intervals) {
        match (low, up) {
            (true, true) if *l < *h => *l += 1,
            (true, false) if *l > 0 => *l -= 1,
            (false, false) if *l < *h => *h -= 1,
            _ => *h = h.saturating_add(1),
        }
    }
    IntervalSet::from_intervals(intervals)
}

fn off_by_one(program: &mut Program, dice: &mut Dice) -> bool {
    let has_set = |s: &&mut Step| {
        let test = matches!(s, Step::Test { atom: Atom::Test(..), .. });
        test || matches!(s, Step::Switch { .. } | Step::Classify { .. })
    };
    let mut places: Vec<&mut Step> = program.steps.iter_mut().filter(has_set).collect();
    let choice = dice.below(1 << 20);
    let Some(step) = dice.pick(&mut places) else { return false };
    match step {
        Step::Test { atom: Atom::Test(_, set), .. } => *set = Arc::new(shifted(set, dice)),
        Step::Switch { cases, .. } => {
            let Some((set, _)) = dice.pick(cases) else { return false };
            *set = shifted(set, dice);
        }
        Step::Classify { rules, .. } => {
            let mut all = rules.to_vec();
            let at = choice % all.len();
            let mut cubes = all[at].cubes.to_vec();
            let Some(cube) = dice.pick(&mut cubes) else { return false };
            let Some((_, set)) = dice.pick(cube) else { return false };
            *set = shifted(set, dice);
            all[at].cubes = cubes.into();
            *rules = all.into();
        }
        _ => return false,
    }
    true
}

fn wrong_constant(program: &mut Program, dice: &mut Dice) -> bool {
    let mut constants: Vec<&mut Term> =
        program.terms.iter_mut().filter(|t| matches!(t, Term::Const(_))).collect();
    let Some(Term::Const(value)) = dice.pick(&mut constants) else { return false };
    *value = value.wrapping_add(1);
    true
}

fn classify<'a>(program: &'a mut Program, dice: &mut Dice) -> Option<&'a mut Step> {
    let mut all: Vec<&mut Step> =
        program.steps.iter_mut().filter(|s| matches!(s, Step::Classify { .. })).collect();
    let at = dice.below(all.len());
    (at < all.len()).then(|| all.remove(at))
}

fn remove_rule(program: &mut Program, dice: &mut Dice) -> bool {
    let Some(Step::Classify { rules, .. }) = classify(program, dice) else { return false };
    let mut all = rules.to_vec();
    if all.is_empty() {
        return false;
    }
    all.remove(dice.below(all.len()));
    *rules = all.into();
    true
}

fn swap_rules(program: &mut Program, dice: &mut Dice) -> bool {
    let Some(Step::Classify { rules, .. }) = classify(program, dice) else { return false };
    let mut all = rules.to_vec();
    let (a, b) = (dice.below(all.len()), dice.below(all.len()));
    if a == b {
        return false;
    }
    all.swap(a, b);
    *rules = all.into();
    true
}

fn lead_rule_elsewhere(program: &mut Program, dice: &mut Dice) -> bool {
    let Some(Step::Classify { rules, arms, .. }) = classify(program, dice) else { return false };
    let mut all = rules.to_vec();
    let arm = dice.below(arms.len()) as u32;
    let Some(rule) = dice.pick(&mut all) else { return false };
    let other = rule.arm != arm;
    rule.arm = arm;
    *rules = all.into();
    other
}

fn wrong_number(program: &mut Program, dice: &mut Dice) -> bool {
    let tables = program.terms.iter_mut().filter_map(|term| match term {
        Term::Map(_, table) => Some(table),
        _ => None,
    });
    let mut tables: Vec<_> = tables.collect();
    let Some(table) = dice.pick(&mut tables) else { return false };
    let mut intervals = table.intervals().to_vec();
    let Some(interval) = dice.pick(&mut intervals) else { return false };
    match interval.0 < interval.1 {
        true => interval.1 -= 1,
        false => interval.2 ^= 1,
    }
    **table = Arc::new(RangeMap::new(intervals));
    true
}

fn swap_cases(program: &mut Program, dice: &mut Dice) -> bool {
    let switches = program.steps.iter_mut().filter_map(|s| match s {
        Step::Switch { cases, otherwise, .. } => Some((cases, otherwise)),
        _ => None,
    });
    let mut all: Vec<_> = switches.collect();
    let Some((cases, otherwise)) = dice.pick(&mut all) else { return false };
    let Some((_, to)) = dice.pick(cases) else { return false };
    std::mem::swap(to, *otherwise);
    true
}

fn exits(program: &Program) -> Vec<usize> {
    program.exits().map(|(step, _)| step.0 as usize).collect()
}

fn merge_exits(program: &mut Program, dice: &mut Dice) -> bool {
    let exits = exits(program);
    let (a, b) = (exits[dice.below(exits.len())], exits[dice.below(exits.len())]);
    program.steps[a] = program.steps[b].clone();
    a != b
}

/// Changes one of the exits for which something holds.
fn change(
    program: &mut Program,
    dice: &mut Dice,
    of: impl Fn(&Exit) -> bool,
    how: impl FnOnce(&mut Exit, &mut Vec<Term>, &mut Dice),
) -> bool {
    let mut places = exits(program);
    places.retain(|&i| matches!(&program.steps[i], Step::Exit(exit) if of(exit)));
    let Some(&at) = places.get(dice.below(places.len())) else { return false };
    if let Step::Exit(exit) = &mut program.steps[at] {
        how(exit, &mut program.terms, dice);
    }
    true
}

fn is_push(exit: &Exit) -> bool {
    matches!(exit.end, End::Push { .. })
}

fn add(terms: &mut Vec<Term>, term: Term) -> TermId {
    terms.push(term);
    TermId(terms.len() as u32 - 1)
}

/// A term plus one.
fn one_more(terms: &mut Vec<Term>, term: TermId) -> TermId {
    let one = add(terms, Term::Const(1));
    add(terms, Term::Binary(BinaryOp::Add, term, one))
}

fn remove_write(program: &mut Program, dice: &mut Dice) -> bool {
    let any =
        |e: &Exit| is_push(e) && !(e.writes.bytes.is_empty() && e.writes.annotations.is_empty());
    change(program, dice, any, |exit, _, dice| {
        let (bytes, rest) = (exit.writes.bytes.len(), exit.writes.annotations.len());
        match dice.below(bytes + rest) {
            n if n < bytes => drop(exit.writes.bytes.remove(n)),
            n => drop(exit.writes.annotations.remove(n - bytes)),
        }
    })
}

fn move_write(program: &mut Program, dice: &mut Dice) -> bool {
    let any = |e: &Exit| is_push(e) && !e.writes.bytes.is_empty();
    change(program, dice, any, |exit, _, _| {
        if let Some(Write { offset, .. }) = exit.writes.bytes.last_mut() {
            *offset += 1;
        }
    })
}

fn wrong_write(program: &mut Program, dice: &mut Dice) -> bool {
    let any = |e: &Exit| is_push(e) && !e.writes.bytes.is_empty();
    change(program, dice, any, |exit, terms, dice| {
        if let Some(Write { value, .. }) = dice.pick(&mut exit.writes.bytes) {
            *value = one_more(terms, *value);
        }
    })
}

fn remove_effect(program: &mut Program, dice: &mut Dice) -> bool {
    let counts = |e: &Effect| matches!(e, Effect::Count { .. } | Effect::Note { .. });
    change(
        program,
        dice,
        |e| e.effects.iter().any(counts),
        |exit, _, dice| {
            let mut all: Vec<usize> = (0..exit.effects.len()).collect();
            all.retain(|&i| counts(&exit.effects[i]));
            exit.effects.remove(all[dice.below(all.len())]);
        },
    )
}

fn wrong_length_counted(program: &mut Program, dice: &mut Dice) -> bool {
    let counts = |e: &Effect| matches!(e, Effect::Count { .. });
    change(
        program,
        dice,
        |e| e.effects.iter().any(counts),
        |exit, terms, _| {
            for effect in &mut exit.effects {
                if let Effect::Count { length, .. } = effect {
                    *length = one_more(terms, *length);
                }
            }
        },
    )
}

fn remove_update(program: &mut Program, dice: &mut Dice) -> bool {
    let updates = |e: &Effect| matches!(e, Effect::Update { .. });
    change(
        program,
        dice,
        |e| e.effects.iter().any(updates),
        |exit, _, _| {
            exit.effects.retain(|e| !updates(e));
        },
    )
}

fn wrong_expiry(program: &mut Program, dice: &mut Dice) -> bool {
    let updates = |e: &Effect| matches!(e, Effect::Update { .. });
    change(
        program,
        dice,
        |e| e.effects.iter().any(updates),
        |exit, terms, _| {
            for effect in &mut exit.effects {
                if let Effect::Update { expiry, .. } = effect {
                    *expiry = one_more(terms, *expiry);
                }
            }
        },
    )
}

fn wrong_key(program: &mut Program, dice: &mut Dice) -> bool {
    let Some(lookup) = dice.pick(&mut program.lookups) else { return false };
    let n = lookup.key.len();
    lookup.key.swap(n - 1, n / 2);
    true
}

fn swap_tables(program: &mut Program, dice: &mut Dice) -> bool {
    let count = program.lookups.len();
    let (a, b) = (dice.below(count), dice.below(count));
    let [Some(x), Some(y)] = [a, b].map(|at| program.lookups.get(at).map(|l| l.table)) else {
        return false;
    };
    let kind = |at: usize| program.flows_of(LookupId(at as u16)).map(|flows| &flows.kind);
    let alike = kind(a) == kind(b);
    if x == y || !alike {
        return false;
    }
    (program.lookups[a].table, program.lookups[b].table) = (y, x);
    true
}

fn wrong_bound(program: &mut Program, dice: &mut Dice) -> bool {
    let lookups = program.lookups.clone();
    let bound = program.terms.iter_mut().filter_map(|term| match term {
        Term::Bound(lookup, index) => Some((lookups[usize::from(lookup.0)].values, index)),
        _ => None,
    });
    let mut bound: Vec<_> = bound.filter(|(values, index)| **index < *values).collect();
    let Some((values, index)) = dice.pick(&mut bound) else { return false };
    let before = **index;
    **index = (before + 1) % *values;
    **index != before
}

/// The element that a drop somewhere is counted at, and its reason.
fn some_drop(program: &Program) -> Option<End> {
    program.exits().map(|(_, exit)| exit.end).find(|end| matches!(end, End::Drop { .. }))
}

fn drop_early(program: &mut Program, dice: &mut Dice) -> bool {
    let Some(drop) = some_drop(program) else { return false };
    change(program, dice, is_push, |exit, _, _| exit.end = drop)
}

fn drop_never(program: &mut Program, dice: &mut Dice) -> bool {
    let push =
        program.exits().map(|(_, exit)| exit.end).find(|end| !matches!(end, End::Drop { .. }));
    let Some(push) = push else { return false };
    change(program, dice, |exit| !is_push(exit), |exit, _, _| exit.end = push)
}

fn wrong_reason(program: &mut Program, dice: &mut Dice) -> bool {
    change(
        program,
        dice,
        |e| !is_push(e),
        |exit, _, _| {
            if let End::Drop { reason, .. } = &mut exit.end {
                *reason = Reason("mistaken");
            }
        },
    )
}

fn wrong_port(program: &mut Program, dice: &mut Dice) -> bool {
    change(program, dice, is_push, |exit, _, dice| {
        if let End::Push { to, native } = &mut exit.end {
            match dice.below(2) {
                0 => to.port += 1,
                _ => *native = !*native,
            }
        }
    })
}

fn wrong_start(program: &mut Program, dice: &mut Dice) -> bool {
    change(program, dice, is_push, |exit, _, _| exit.writes.start += 1)
}

fn wrong_length(program: &mut Program, dice: &mut Dice) -> bool {
    change(
        program,
        dice,
        |e| e.writes.length.is_some(),
        |exit, terms, _| {
            exit.writes.length = exit.writes.length.map(|length| one_more(terms, length));
        },
    )
}

fn wrong_mark(program: &mut Program, dice: &mut Dice) -> bool {
    change(program, dice, is_push, |exit, terms, dice| {
        let mark = &mut exit.writes.marks[dice.below(3)];
        *mark = match *mark {
            Mark::At(term) => Mark::At(one_more(terms, term)),
            Mark::Clear => Mark::At(add(terms, Term::Const(3))),
            Mark::Keep => Mark::At(add(terms, Term::Const(3))),
        };
    })
}

fn forget_element(program: &mut Program, dice: &mut Dice) -> bool {
    change(
        program,
        dice,
        |e| !e.visited.is_empty(),
        |exit, _, _| {
            exit.visited.pop();
        },
    )
}
