//! From one plan to the next, and what the failure of a server would cost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use placement::{
    Backup, Document, MOVE, NotPlaced, Plan, Problem, Switch, WORTH, backup, change, check,
    transition, without_hosts,
};
use view::paint::shown;
use view::placement::rate;

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
    let chains: BTreeSet<usize> = changed.moved.iter().map(|(chain, _)| *chain).collect();
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
        let meanwhile = match (step.keeps_its_least, before[step.chain].is_some()) {
            (true, true) => "it keeps its least rate".to_string(),
            (true, false) => "it was nowhere".into(),
            (false, _) => format!(
                "until then it gets {} of at least {}",
                rate(step.meanwhile),
                rate(chain.slo.min)
            ),
        };
        let name = shown(&chain.name);
        let _ = writeln!(
            text,
            "{}. put {name} on its new places, then send packets there, in about {:.2} s: {meanwhile}",
            number + 1,
            step.takes
        );
    }
    Ok((changed.plan, text))
}

/// More servers than this are not taken down one by one.
const MANY: usize = 32;

/// What follows a plan if a server fails, by its name.
pub(super) type Backups = BTreeMap<String, Option<Backup>>;

/// What follows the failure of each server; as many as there is time for.
pub(super) fn backups(
    (problem, switch): (&Problem, &dyn Switch),
    plan: &Plan,
    document: &Document,
    go_on: &mut dyn FnMut() -> bool,
) -> Backups {
    let mut all = Backups::new();
    if (2..=MANY).contains(&problem.hosts.len()) {
        for (at, host) in problem.hosts.iter().enumerate() {
            if host.cores == 0 && host.card.is_none() {
                continue;
            }
            if !all.is_empty() && !go_on() {
                break;
            }
            let next = match backup(problem, switch, plan, at, go_on) {
                Ok(changed) => Some(document.backup(problem, &changed)),
                // What was not found in time may be there.
                Err(NotPlaced::Interrupted) => break,
                Err(_) if !go_on() => break,
                Err(_) => None,
            };
            all.insert(host.name.clone(), next);
        }
    }
    all
}

/// Servers whose failure was not looked at, where there are few enough; in words.
pub(super) fn left_out(problem: &Problem, backups: &Backups) -> Option<String> {
    let hosts = problem.hosts.iter().filter(|host| host.cores > 0 || host.card.is_some());
    let missing = hosts.filter(|host| !backups.contains_key(&host.name));
    let names: Vec<String> = missing.map(|host| shown(&host.name).to_string()).collect();
    let is_asked = (2..=MANY).contains(&problem.hosts.len()) && !names.is_empty();
    is_asked.then(|| {
        format!(
            "there are no backups for {}; --time gives more time to find them",
            names.join(", ")
        )
    })
}

/// What the failure of each server costs by the backups of a plan, each of which is checked.
///
/// # Errors
/// Which backup does not hold, in words.
pub(super) fn failures(
    (problem, switch): (&Problem, &dyn Switch),
    (plan, document): (&Plan, &Document),
) -> Result<String, String> {
    let mut text = String::new();
    let before: f64 = document.chains.iter().map(|chain| chain.rate).sum();
    for (at, host) in problem.hosts.iter().enumerate() {
        let name = shown(&host.name);
        let Some(backup) = document.backups.get(&host.name) else { continue };
        let (Some(backup), Some(next)) = (backup, document.after(problem, &host.name)) else {
            let _ = writeln!(text, "if {name} fails: the others do not hold all chains");
            continue;
        };
        let less = without_hosts(problem, &[at]);
        let wrong = |why: String| format!("the backup for {} does not hold:\n  {why}", host.name);
        let next = next.map_err(wrong)?;
        check(&less, switch, &next).map_err(|why| wrong(why.join("\n  ")))?;
        let found = document.backup(problem, &transition(problem, plan, at, next.clone()));
        // Numbers of a file are not to the last bit.
        let is_long = (found.takes - backup.takes).abs() > 1e-6 * (1.0 + found.takes);
        if is_long || (found.moves, &found.short) != (backup.moves, &backup.short) {
            return Err(wrong(format!(
                "{} in {:.2} s, and {} short of their least rates, but it says {} in {:.2} s, and {}",
                moves(found.moves),
                found.takes,
                found.short.len(),
                backup.moves,
                backup.takes,
                backup.short.len()
            )));
        }
        let short = match &backup.short[..] {
            [] => "all keep their least rates".to_string(),
            short => {
                let some = short.iter().take(SHOWN).map(|of| shown(of).to_string());
                let more = match short.len().saturating_sub(SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "{}{more} {} short of {} for about {:.2} s",
                    some.collect::<Vec<_>>().join(", "),
                    if short.len() == 1 { "falls" } else { "fall" },
                    if short.len() == 1 { "the least rate" } else { "their least rates" },
                    backup.takes
                )
            }
        };
        let _ = writeln!(
            text,
            "if {name} fails: {}, {:.2} Gb/s in all remain of {:.2}; {short}",
            moves(backup.moves),
            next.rate() / 1e9,
            before / 1e9
        );
    }
    if let Some(left_out) = left_out(problem, &document.backups) {
        let _ = writeln!(text, "{left_out}");
    }
    Ok(text)
}

/// Chains that are named.
const SHOWN: usize = 4;
