//! From one plan to the next, and what the failure of a server would cost.

use std::fmt::Write;

use placement::{Document, MOVE, Plan, Problem, Switch, WORTH, change, without_hosts};
use view::paint::shown;

/// Servers that failed, by their names.
pub(super) fn down(problem: &Problem, names: &[String]) -> Result<Vec<usize>, String> {
    let host = |name: &String| {
        let at = problem.hosts.iter().position(|host| host.name == *name);
        at.ok_or_else(|| {
            let all: Vec<&str> = problem.hosts.iter().map(|host| host.name.as_str()).collect();
            format!("--down {name}: there is no such server; there are {}", all.join(", "))
        })
    };
    names.iter().map(host).collect()
}

fn moves(functions: usize) -> String {
    match functions {
        1 => "1 function moves".into(),
        more => format!("{more} functions move"),
    }
}

/// The next plan, and in words what moves and in which order.
pub(super) fn next(
    (problem, switch): (&Problem, &dyn Switch),
    last: &Document,
    down: &[usize],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(Plan, String), String> {
    let before = last.placed(problem);
    let changed =
        change(problem, switch, &before, down, go_on).map_err(|why| why.words(problem))?;
    let mut text = String::new();
    let chains: std::collections::BTreeSet<usize> =
        changed.moved.iter().map(|(chain, _)| *chain).collect();
    let _ = writeln!(
        text,
        "{}, of {} {}; more would only for {:.0} % more, and {:.0} Mb/s for each function",
        moves(changed.moved.len()),
        chains.len(),
        if chains.len() == 1 { "chain" } else { "chains" },
        WORTH * 100.0,
        MOVE / 1e6
    );
    for (number, step) in changed.steps.iter().enumerate() {
        let chain = &problem.chains[step.chain];
        let keeps = match step.keeps_its_least {
            true => "it keeps its least rate",
            false => "it falls short of its least rate until then",
        };
        let name = shown(&chain.name);
        let _ = writeln!(
            text,
            "{}. put {name} on its new places, then send packets there: {keeps}",
            number + 1
        );
    }
    Ok((changed.plan, text))
}

/// More servers than this are not taken down one by one.
const MANY: usize = 32;

/// What each single failure of a server would cost, by the plan that would follow.
pub(super) fn failures(
    (problem, switch): (&Problem, &dyn Switch),
    plan: &Plan,
    go_on: &mut dyn FnMut() -> bool,
) -> String {
    let mut text = String::new();
    if !(2..=MANY).contains(&problem.hosts.len()) {
        return text;
    }
    let last: Vec<_> = plan.chains.iter().cloned().map(Some).collect();
    for (at, host) in problem.hosts.iter().enumerate() {
        if !go_on() {
            let _ = writeln!(text, "the time was over before all failures were looked at");
            break;
        }
        let less = without_hosts(problem, &[at]);
        let name = shown(&host.name);
        let _ = match change(&less, switch, &last, &[at], go_on) {
            Ok(next) => writeln!(
                text,
                "if {name} fails: {}, {:.2} Gb/s in all remain of {:.2}",
                moves(next.moved.len()),
                next.plan.rate() / 1e9,
                plan.rate() / 1e9
            ),
            Err(why) => writeln!(text, "if {name} fails: {}", why.words(problem)),
        };
    }
    text
}
