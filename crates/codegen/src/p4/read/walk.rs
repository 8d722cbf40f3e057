//! From place to place: instructions are executed until the packet decides.

use std::collections::HashMap;

use ir::IntervalSet;
use ir::field::meta;
use ir::program::{Atom, Term, TermId};

use super::code::Instr;
use super::entries::Match;
use super::machine::{
    Argument, Ask, Cond, Continuation, Locals, Machine, Next, Scope, State, Stop, Val, fail,
    undefined,
};
use super::parser::Progress;
use super::syntax::{Expr, Statement};
use crate::symbolic::graph::Rules;

/// Intervals that are kept of what was found out.
const MOST_INTERVALS: usize = 8;

impl Machine<'_> {
    /// Widths of the keys of tables.
    pub(super) fn widths(&mut self) -> Result<Vec<Vec<u16>>, (usize, String)> {
        let mut all = Vec::new();
        let scope = self.scope.clone();
        for table in &self.control.tables {
            let mut widths = Vec::new();
            for (key, _, kind) in &table.keys {
                if !["exact", "lpm", "ternary", "range"].contains(&kind.as_str()) {
                    return Err((table.line, format!("'{kind}' is no match kind")));
                }
                widths.push(self.width(&scope, key).map_err(|why| (table.line, why))?);
            }
            all.push(widths);
        }
        Ok(all)
    }

    fn width(&mut self, scope: &Scope, of: &Expr) -> Result<u16, String> {
        // With every header there, all is known of a key but its number.
        let valid = (0..self.headers.len()).map(|header| (header, true)).collect();
        let mut state = State { valid, ..State::default() };
        for header in &self.headers {
            for (field, width) in &header.fields {
                state.vars.insert(
                    format!("hdr.{}.{field}", header.name),
                    Val { width: *width, of: None },
                );
            }
        }
        match self.eval(scope, of, &mut state, &Locals::new(), None) {
            Ok(of) => Ok(of.width),
            Err(Stop::Ask(_) | Stop::Undefined) => Err("a key depends on the packet".into()),
            Err(Stop::Fail(why)) => Err(why),
        }
    }

    /// Executes until the packet decides.
    pub(super) fn go(&mut self, place: &Continuation) -> Result<Next, (usize, String)> {
        let (mut at, mut state) = (place.at, place.state.clone());
        if let Some((action, arguments)) = &place.first {
            let control = self.control;
            let action = &control.actions[*action];
            let widths = action.parameters.iter().map(|of| of.1);
            let argument = |(argument, width): (&Argument, u16)| match argument {
                Argument::Number(value) => self.known(*value, width),
                Argument::Found(of) => Val { width, of: Some(*of) },
            };
            let arguments = arguments.iter().zip(widths).map(argument).collect();
            let mut after = state.clone();
            match self.perform(action, arguments, &mut after) {
                Ok(()) => state = after,
                Err(Stop::Fail(why)) => {
                    return Err((0, format!("action '{}': {why}", action.name)));
                }
                Err(Stop::Undefined) => return Ok(undefined(state)),
                Err(Stop::Ask(ask)) => return Ok(self.asked(place, *ask)),
            }
        }
        loop {
            let here = Continuation { at, first: None, state: state.clone() };
            let Some(instr) = self.code.get(at) else { return Ok(Next::End(state)) };
            let mut after = state.clone();
            let scope = self.scope.clone();
            let (line, done) = match instr {
                Instr::Jump(to) => {
                    at = *to;
                    if self.spend().is_err() {
                        return Err((0, "it takes too long".into()));
                    }
                    continue;
                }
                Instr::Do(statement) => {
                    let line = match statement {
                        Statement::Assign(line, ..) | Statement::Call(line, ..) => *line,
                        _ => 0,
                    };
                    let statement = statement.clone();
                    (line, self.run(&statement, &mut after, &mut Locals::new()))
                }
                Instr::Call(line, action, arguments) => {
                    let (line, arguments, control) = (*line, arguments.clone(), self.control);
                    let action = &control.actions[*action];
                    let mut values = Vec::new();
                    let mut all = Ok(());
                    for (of, (_, width)) in arguments.iter().zip(&action.parameters) {
                        match self.eval(&scope, of, &mut after, &Locals::new(), Some(*width)) {
                            Ok(value) => values.push(value),
                            Err(stop) => {
                                all = Err(stop);
                                break;
                            }
                        }
                    }
                    let same = arguments.len() == action.parameters.len();
                    let done = match all {
                        Ok(()) if !same => fail("it has other parameters"),
                        Ok(()) => self.perform(action, values, &mut after),
                        Err(stop) => Err(stop),
                    };
                    (line, done)
                }
                Instr::Branch(line, of, yes, no) => {
                    let (line, of, yes, no) = (*line, of.clone(), *yes, *no);
                    match self.cond(&scope, &of, &mut after, &Locals::new()) {
                        Ok(Cond::Known(holds)) => {
                            (at, state) = (if holds { yes } else { no }, after);
                            continue;
                        }
                        Ok(Cond::Is(atom, is)) => {
                            let place = |at, holds| {
                                let mut state = after.clone();
                                self.learn(&mut state, &atom, holds);
                                Continuation { at, first: None, state }
                            };
                            let (yes, no) = if is { (yes, no) } else { (no, yes) };
                            let (yes, no) = (place(yes, true), place(no, false));
                            return Ok(Next::Test(Box::new((atom, yes, no))));
                        }
                        Err(stop) => (line, Err(stop)),
                    }
                }
                Instr::Apply(line, table) => {
                    let (line, table) = (*line, *table);
                    match self.apply(table, at, &mut after) {
                        Ok(next) => return Ok(next),
                        Err(stop) => (line, Err(stop)),
                    }
                }
            };
            match done {
                Ok(()) => (at, state) = (at + 1, after),
                Err(Stop::Fail(why)) => return Err((line, why)),
                Err(Stop::Undefined) => return Ok(undefined(here.state)),
                Err(Stop::Ask(ask)) => return Ok(self.asked(&here, *ask)),
            }
        }
    }

    /// Keeps what was found out of bits of the packet.
    pub(super) fn learn(&self, state: &mut State, atom: &Atom, holds: bool) {
        let Atom::Test(of, set) = atom else { return };
        let width = match self.terms.term(*of) {
            Term::Input(field) => field.width,
            _ => return,
        };
        let set = if holds { (**set).clone() } else { set.complement(width) };
        self.keep(state, *of, &set);
    }

    fn keep(&self, state: &mut State, of: TermId, set: &IntervalSet) {
        let mut set = state.known.get(&of).map_or(set.clone(), |known| known.intersect(set));
        // Of lengths the least and the greatest matter.
        if *self.terms.term(of) == Term::Input(meta::LEN)
            && let (Some(low), Some(high)) = (IntervalSet::min(&set), IntervalSet::max(&set))
        {
            set = IntervalSet::range(low, high);
        }
        if set.intervals().len() <= MOST_INTERVALS {
            state.known.insert(of, set);
        }
    }

    /// Keeps what rules that lead to a place say of the packet.
    fn learn_rules(
        &self,
        state: &mut State,
        keys: &[TermId],
        rules: &Rules,
        (to, is_otherwise): (usize, bool),
    ) {
        for (at, key) in keys.iter().enumerate() {
            let Term::Input(field) = self.terms.term(*key) else { continue };
            let of = |rule: &&(Vec<(usize, IntervalSet)>, usize)| {
                rule.0.iter().find(|test| test.0 == at).map(|test| test.1.clone())
            };
            let mine: Option<Vec<IntervalSet>> =
                rules.iter().filter(|rule| rule.1 == to).map(|rule| of(&rule)).collect();
            let Some(mut sets) = mine else { continue };
            if is_otherwise {
                // What no rule takes that looks at nothing else.
                let alone =
                    rules.iter().filter(|rule| rule.0.len() == 1).filter_map(|rule| of(&rule));
                let alone: Vec<IntervalSet> = alone.collect();
                sets.push(IntervalSet::union_of(&alone).complement(field.width));
            }
            self.keep(state, *key, &IntervalSet::union_of(&sets));
        }
    }

    fn asked(&self, place: &Continuation, ask: Ask) -> Next {
        let with = |parse: Progress, holds: bool| {
            let mut place = place.clone();
            place.state.parse = parse;
            self.learn(&mut place.state, &ask.atom, holds);
            place
        };
        let (yes, no) = (with(ask.yes, true), with(ask.no, false));
        Next::Test(Box::new((ask.atom, yes, no)))
    }

    fn apply(&mut self, at_table: usize, at: usize, state: &mut State) -> Result<Next, Stop> {
        let (control, entries) = (self.control, self.entries);
        let table = &control.tables[at_table];
        let scope = self.scope.clone();
        let mut keys = Vec::new();
        for (key, ..) in &table.keys {
            keys.push(self.eval(&scope, key, state, &Locals::new(), None)?);
        }
        let none = Vec::new();
        let entries = entries.get(at_table).unwrap_or(&none);
        let Some((name, arguments)) = &table.otherwise else {
            return fail(format!("'{}' has no default action", table.name));
        };
        let default =
            control.actions.iter().position(|of| of.name == *name && table.actions.contains(name));
        let Some(default) = default else {
            return fail(format!("the table has no action '{name}'"));
        };
        let parameters = &control.actions[default].parameters;
        if parameters.len() != arguments.len() {
            return fail(format!("'{name}' has other parameters"));
        }
        let mut values = Vec::new();
        for (of, (_, width)) in arguments.iter().zip(parameters) {
            match self.constant(of, *width) {
                Some(value) => values.push(value),
                None => return fail("an argument of a default action is no constant"),
            }
        }
        if let Some(next) = self.looked_up(&keys, entries, (default, &values), at, state)? {
            return Ok(next);
        }
        let mut places: Vec<Continuation> = Vec::new();
        let mut index: HashMap<(usize, Vec<u128>, bool), usize> = HashMap::new();
        let end = self.code.len();
        let mut lead = |action: usize, arguments: &Vec<u128>, state: &State, undefined: bool| {
            *index.entry((action, arguments.clone(), undefined)).or_insert_with(|| {
                let state = State { undefined, ..state.clone() };
                places.push(match undefined {
                    true => Continuation { at: end, first: None, state },
                    false => {
                        let arguments = arguments.iter().map(|of| Argument::Number(*of)).collect();
                        Continuation { at: at + 1, first: Some((action, arguments)), state }
                    }
                });
                places.len() - 1
            })
        };
        let mut rules: Rules = Vec::new();
        let mut otherwise = None;
        'entries: for entry in entries {
            self.spend()?;
            let mut sets = Vec::new();
            // Where a header is not there, anything may happen to packets that match for what else it says.
            let mut is_undefined = false;
            for (at, (of, key)) in entry.matches.iter().zip(&keys).enumerate() {
                let width = key.width;
                let set = match *of {
                    Match::Any => continue,
                    Match::Exact(value) => IntervalSet::single(value),
                    Match::Prefix(value, length) => IntervalSet::prefix(width, value, length),
                    Match::Range(low, high) => IntervalSet::range(low, high),
                    Match::Masked(value, mask) => match IntervalSet::masked(width, value, mask) {
                        Some(set) => set,
                        None => return fail("a mask has many gaps"),
                    },
                };
                let Some(term) = key.of else {
                    is_undefined = true;
                    continue;
                };
                match self.within(state, term, set.clone()) {
                    Cond::Known(true) => {}
                    Cond::Known(false) => continue 'entries,
                    Cond::Is(..) => sets.push((at, set)),
                }
            }
            let to = lead(entry.action, &entry.arguments, state, is_undefined);
            if sets.is_empty() {
                otherwise = Some(to);
                break;
            }
            rules.push((sets, to));
        }
        let otherwise = otherwise.unwrap_or_else(|| lead(default, &values, state, false));
        let zero = self.terms.constant(0);
        let keys: Vec<TermId> = keys.iter().map(|key| key.of.unwrap_or(zero)).collect();
        for (to, place) in places.iter_mut().enumerate() {
            self.learn_rules(&mut place.state, &keys, &rules, (to, to == otherwise));
        }
        Ok(Next::Table { keys, rules, places, otherwise })
    }
}
