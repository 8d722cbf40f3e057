//! The deparser: headers in the order in which they leave, and checksums that change before.

use super::lexer::Failure;
use super::machine::{Machine, Root, Scope, State, Val};
use super::parser::{self, Header};
use super::syntax::{Control, Expr, Op, Statement};
use ir::program::{Term, TermId};

/// A checksum that changes.
pub(super) struct Update {
    /// Metadata of one bit, and what they have to be.
    when: Vec<(String, u128)>,
    /// The header that it lies in, and its field.
    pub(super) header: usize,
    pub(super) field: String,
    of: Vec<Word>,
    /// Whether 0xffff is put in the place of 0.
    no_zero: bool,
}

/// What a checksum is over.
enum Word {
    Field(usize, String),
    Metadata(String),
}

/// What a deparser does.
pub(super) struct Deparser {
    pub(super) updates: Vec<Update>,
    /// Headers in the order in which they leave.
    pub(super) emitted: Vec<usize>,
}

impl Deparser {
    pub(super) fn new(
        control: &Control,
        scope: &Scope,
        headers: &[Header],
    ) -> Result<Self, Failure> {
        let mut deparser = Self { updates: Vec::new(), emitted: Vec::new() };
        let mut units: Vec<&String> = Vec::new();
        for statement in &control.apply {
            if let Statement::If(line, when, yes, no) = statement {
                let [Statement::Assign(_, path, value)] = &yes[..] else {
                    return Err((*line, "a checksum is updated there, and no more".into()));
                };
                let (unit, update) = update(control, scope, headers, (when, path, value))
                    .filter(|_| no.is_empty())
                    .ok_or_else(|| (*line, "a checksum is updated by one bit".to_string()))?;
                let is_same =
                    |of: &Update| (of.header, &of.field) == (update.header, &update.field);
                if units.contains(&unit) || deparser.updates.iter().any(is_same) {
                    return Err((*line, "a checksum is updated twice".into()));
                }
                if !deparser.emitted.is_empty() {
                    return Err((*line, "a header has left before its checksum is updated".into()));
                }
                units.push(unit);
                deparser.updates.push(update);
                continue;
            }
            let Statement::Call(line, path, arguments) = statement else {
                return Err((control.line, "a deparser emits".into()));
            };
            let header = match (&path[..], &arguments[..]) {
                ([packet, call], [Expr::Path(of)])
                    if call == "emit" && scope.get(packet) == Some(&Root::Packet) =>
                {
                    match &of[..] {
                        [root, header] if scope.get(root) == Some(&Root::Headers) => {
                            headers.iter().position(|known| known.name == *header)
                        }
                        _ => None,
                    }
                }
                _ => None,
            };
            let header = header.ok_or_else(|| (*line, "a header is emitted".to_string()))?;
            if deparser.emitted.contains(&header) {
                return Err((*line, "a header is emitted twice".into()));
            }
            deparser.emitted.push(header);
        }
        Ok(deparser)
    }
}

fn update<'c>(
    control: &'c Control,
    scope: &Scope,
    headers: &[Header],
    (when, path, value): (&Expr, &[String], &Expr),
) -> Option<(&'c String, Update)> {
    let metadata = |path: &[String]| match path {
        [root, field] if scope.get(root) == Some(&Root::Metadata) => Some(field.clone()),
        _ => None,
    };
    let mut all = Vec::new();
    let mut waiting = vec![when];
    while let Some(of) = waiting.pop() {
        match of {
            Expr::Binary(Op::And, a, b) => waiting.extend([&**a, &**b]),
            Expr::Binary(Op::Equal, a, b) => match (&**a, &**b) {
                (Expr::Path(path), Expr::Number(Some(1), value @ (0 | 1))) => {
                    all.push((metadata(path)?, *value));
                }
                _ => return None,
            },
            _ => return None,
        }
    }
    let hdr = scope.iter().find(|of| *of.1 == Root::Headers)?.0;
    let field = |path: &[String]| {
        let found = parser::fields(headers, hdr, &[Expr::Path(path.to_vec())], 0).ok()?;
        found.into_iter().next()
    };
    let Expr::Call(call, arguments) = value else { return None };
    let [unit, call] = &call[..] else { return None };
    let unit = control.checksums.iter().find(|of| *of == unit).filter(|_| call == "update")?;
    let (of, no_zero) = match &arguments[..] {
        [Expr::List(of)] => (of, false),
        [Expr::List(of), Expr::Path(word)] if word[..] == ["true"] => (of, true),
        [Expr::List(of), Expr::Path(word)] if word[..] == ["false"] => (of, false),
        _ => return None,
    };
    let word = |of: &Expr| {
        let Expr::Path(path) = of else { return None };
        match metadata(path) {
            Some(field) => Some(Word::Metadata(field)),
            None => field(path).map(|(header, field)| Word::Field(header, field)),
        }
    };
    let of = of.iter().map(word).collect::<Option<Vec<_>>>()?;
    let (header, field) = field(path)?;
    let is_word = headers[header].fields.iter().any(|of| of.0 == field && of.1 == 16);
    is_word.then_some((unit, Update { when: all, header, field, of, no_zero }))
}

impl Update {
    /// Metadata that it reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = &String> {
        let of_words = self.of.iter().filter_map(|word| match word {
            Word::Metadata(field) => Some(field),
            Word::Field(..) => None,
        });
        self.when.iter().map(|of| &of.0).chain(of_words)
    }

    /// Whether it is done to a packet; nothing if that is not known.
    pub(super) fn is_done(
        &self,
        machine: &Machine<'_>,
        state: &State,
    ) -> Result<Option<bool>, String> {
        for (field, is) in &self.when {
            let value = state.vars.get(&format!("meta.{field}")).and_then(|of| of.of);
            let Some(value) = value else { return Ok(None) };
            match machine.terms.value(value) {
                Some(value) if value == *is => {}
                Some(_) => return Ok(Some(false)),
                None => return Err(format!("'{field}' is no constant at the end")),
            }
        }
        Ok(Some(true))
    }

    /// The checksum; nothing if it is made from what is not there.
    pub(super) fn value(
        &self,
        machine: &mut Machine<'_>,
        numbers: impl Fn(&mut Machine<'_>, usize, &str) -> Result<Option<(u16, TermId)>, String>,
        state: &State,
    ) -> Result<Option<TermId>, String> {
        let mut all: Vec<(u16, TermId)> = Vec::new();
        for word in &self.of {
            let number = match word {
                Word::Field(header, field) => numbers(machine, *header, field)?,
                Word::Metadata(field) => match state.vars.get(&format!("meta.{field}")) {
                    Some(Val { width, of: Some(of) }) => Some((*width, *of)),
                    _ => None,
                },
            };
            let Some(number) = number else { return Ok(None) };
            all.push(number);
        }
        let words = machine.terms.words(&all).ok_or("a checksum is over parts of words")?;
        let sum = machine.terms.checksum(&words);
        Ok(Some(match self.no_zero {
            true => machine.terms.add(Term::NonZero(sum)),
            false => sum,
        }))
    }
}
