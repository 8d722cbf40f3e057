//! The statements of a control as instructions: conditions become branches, which only lead on.

use std::collections::BTreeSet;

use super::syntax::{Control, Expr, Op, Statement};

/// An instruction of a control.
#[derive(Debug)]
pub(super) enum Instr {
    Do(Statement),
    Branch(usize, Expr, usize, usize),
    Jump(usize),
    Apply(usize, usize),
    Call(usize, usize, Vec<Expr>),
}

/// Makes instructions of statements.
pub(super) fn compile(control: &Control) -> Result<Vec<Instr>, (usize, String)> {
    let mut code = Vec::new();
    block(control, &control.apply, &mut code)?;
    Ok(code)
}

fn block(
    control: &Control,
    all: &[Statement],
    code: &mut Vec<Instr>,
) -> Result<(), (usize, String)> {
    for statement in all {
        match statement {
            Statement::If(line, when, yes, no) => {
                let (mut to_yes, mut to_no) = (Vec::new(), Vec::new());
                condition(*line, when, code, &mut to_yes, &mut to_no);
                let here = code.len();
                patch(code, &to_yes, here);
                block(control, yes, code)?;
                let jump = code.len();
                code.push(Instr::Jump(0));
                let here = code.len();
                patch(code, &to_no, here);
                block(control, no, code)?;
                let end = code.len();
                code[jump] = Instr::Jump(end);
            }
            Statement::Call(line, path, arguments) => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                match path[..] {
                    [table, "apply"] if arguments.is_empty() => {
                        let found = control.tables.iter().position(|of| of.name == table);
                        let found =
                            found.ok_or_else(|| (*line, format!("there is no table '{table}'")))?;
                        code.push(Instr::Apply(*line, found));
                    }
                    [action] if control.actions.iter().any(|of| of.name == action) => {
                        let found =
                            control.actions.iter().position(|of| of.name == action).unwrap_or(0);
                        code.push(Instr::Call(*line, found, arguments.clone()));
                    }
                    _ => code.push(Instr::Do(statement.clone())),
                }
            }
            Statement::Declare(line, ..) => {
                return Err((*line, "variables are declared before 'apply'".into()));
            }
            Statement::Assign(..) => code.push(Instr::Do(statement.clone())),
        }
    }
    Ok(())
}

fn patch(code: &mut [Instr], all: &[(usize, bool)], to: usize) {
    for &(at, is_yes) in all {
        if let Instr::Branch(_, _, yes, no) = &mut code[at] {
            *(if is_yes { yes } else { no }) = to;
        }
    }
}

/// Branches of a condition: which of them lead on if it holds, and which if not.
fn condition(
    line: usize,
    when: &Expr,
    code: &mut Vec<Instr>,
    to_yes: &mut Vec<(usize, bool)>,
    to_no: &mut Vec<(usize, bool)>,
) {
    match when {
        Expr::Not(of) => condition(line, of, code, to_no, to_yes),
        Expr::Binary(op @ (Op::And | Op::Or), a, b) => {
            let mut next = Vec::new();
            match op {
                Op::And => condition(line, a, code, &mut next, to_no),
                _ => condition(line, a, code, to_yes, &mut next),
            }
            let here = code.len();
            patch(code, &next, here);
            condition(line, b, code, to_yes, to_no);
        }
        _ => {
            let at = code.len();
            code.push(Instr::Branch(line, when.clone(), 0, 0));
            to_yes.push((at, true));
            to_no.push((at, false));
        }
    }
}

/// Names that an expression reads.
fn names(of: &Expr, all: &mut BTreeSet<String>) {
    match of {
        Expr::Number(..) => {}
        Expr::Path(path) => {
            all.insert(path.last().cloned().unwrap_or_default());
        }
        Expr::Call(_, of) | Expr::List(of) => of.iter().for_each(|of| names(of, all)),
        Expr::Slice(of, ..) | Expr::Not(of) | Expr::Invert(of) | Expr::Cast(_, of) => {
            names(of, all)
        }
        Expr::Binary(_, a, b) => [a, b].into_iter().for_each(|of| names(of, all)),
        Expr::Choose(a, b, c) => [a, b, c].into_iter().for_each(|of| names(of, all)),
    }
}

pub(super) fn read_by(statements: &[Statement], all: &mut BTreeSet<String>) {
    for statement in statements {
        match statement {
            Statement::Assign(_, _, of) | Statement::Declare(_, _, _, Some(of)) => names(of, all),
            Statement::Call(_, _, of) => of.iter().for_each(|of| names(of, all)),
            _ => {}
        }
    }
}

/// By instruction: names that are read there or behind; `at_end` are those that are read behind all.
pub(super) fn live(
    control: &Control,
    code: &[Instr],
    at_end: BTreeSet<String>,
) -> Vec<BTreeSet<String>> {
    let mut all = vec![BTreeSet::new(); code.len() + 1];
    all[code.len()] = at_end;
    for (at, instr) in code.iter().enumerate().rev() {
        let mut here = all[at + 1].clone();
        match instr {
            Instr::Do(statement) => read_by(std::slice::from_ref(statement), &mut here),
            Instr::Branch(_, of, ..) => names(of, &mut here),
            Instr::Jump(_) => {}
            Instr::Apply(_, table) => {
                let table = &control.tables[*table];
                table.keys.iter().for_each(|key| names(&key.0, &mut here));
                let actions = control.actions.iter().filter(|of| table.actions.contains(&of.name));
                actions.for_each(|of| read_by(&of.body, &mut here));
            }
            Instr::Call(_, action, arguments) => {
                arguments.iter().for_each(|of| names(of, &mut here));
                read_by(&control.actions[*action].body, &mut here);
            }
        }
        all[at] = here;
    }
    all
}
