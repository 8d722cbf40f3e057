//! What `catena run` does of scaling: its options, the policy, and what is told of decisions.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;
use dataplane::io::{Dispatch, DispatchMode};
use engine::scaling::{self, Decision, Scaling};
use scale::Action;
use view::paint::count;

use super::Policy;
use crate::constants;
use crate::log::Log;

/// Options of `catena run`.
#[derive(Args, Debug)]
pub(crate) struct ScaleOptions {
    /// Have a policy change the number of active workers and move flows between them, by load
    ///
    /// It begins with one worker, or with --workers. 'catena scale policies' lists the policies, and 'catena scale
    /// why' shows what this one decided.
    #[arg(long, value_name = "POLICY")]
    pub(crate) scale: Option<Policy>,
    /// Set a constant of the policy, such as rss_plus_plus.target=0.7 or guards.least=2
    #[arg(long, value_name = "KEY=VALUE", requires = "scale")]
    scale_set: Vec<String>,
    /// Write what the policy sees and decides to a file, a line of JSON each time, for 'catena scale replay'
    #[arg(long, value_name = "FILE", requires = "scale")]
    scale_log: Option<PathBuf>,
}

impl ScaleOptions {
    /// The policy with its constants, for a run with so many CPUs, on interfaces or not.
    pub(crate) fn scaling(
        &self,
        dispatch: &Dispatch,
        most: usize,
        is_live: bool,
    ) -> Result<Option<Scaling>, String> {
        let Some(Policy(policy)) = self.scale else { return Ok(None) };
        let name = policy.name();
        let settings = constants::policies(scaling::settings(), "--scale-set", &self.scale_set)?;
        if !is_live {
            return Err(format!(
                "--scale {name}: only packets of interfaces can go to other workers"
            ));
        }
        if !dispatch.is_elastic() {
            let why = match (most, dispatch.mode()) {
                (1, _) => "there is one CPU; --cores names those to use".to_string(),
                (_, DispatchMode::Hash) => {
                    "flows do not move between workers where a device chooses the worker"
                        .to_string()
                }
                (_, mode) => format!("flows do not move between workers with --dispatch {mode}"),
            };
            return Err(format!("--scale {name}: {why}"));
        }
        Ok(Some(Scaling::by(policy, &settings)))
    }

    /// What hears of decisions: the log, and the file for all of them.
    pub(crate) fn hear(&self, log: Log) -> Result<impl Fn(&Decision) + Send + use<>, String> {
        let file = self.scale_log.as_deref().map(create).transpose()?;
        let file = file.map(|(path, file)| (path, Mutex::new(Some(BufWriter::new(file)))));
        Ok(move |decision: &Decision| {
            if let Some(line) = told(decision) {
                log.info(&line);
            }
            let Some((path, file)) = &file else { return };
            let Ok(mut file) = file.lock() else { return };
            let written = file.as_mut().map_or(Ok(()), |file| {
                serde_json::to_writer(&mut *file, decision)?;
                file.write_all(b"\n")?;
                file.flush()
            });
            if let Err(why) = written {
                // The run goes on without it.
                log.error(&format!("--scale-log {}: {why}", path.display()));
                *file = None;
            }
        })
    }
}

fn create(path: &Path) -> Result<(PathBuf, File), String> {
    let file = File::create(path).map_err(|e| format!("--scale-log {}: {e}", path.display()))?;
    Ok((path.to_path_buf(), file))
}

/// A line of the log, if workers come or go, or something went wrong.
fn told(decision: &Decision) -> Option<String> {
    let is_change = |action: &&Action| matches!(action, Action::Add(_) | Action::Release(_));
    let changes: Vec<String> =
        decision.actions.iter().filter(is_change).map(ToString::to_string).collect();
    if changes.is_empty() && decision.failed.is_empty() {
        return None;
    }
    let mut line = format!("scaling: {}", changes.join(", "));
    if decision.groups > 0 {
        let (groups, waited) = (count(decision.groups, "group"), decision.waited_ms);
        line += &format!("; {groups} of flows moved, packets waited {waited:.1} ms at most");
    }
    for note in &decision.notes {
        line += &format!("; {}", note.why);
    }
    for why in &decision.failed {
        line += &format!("; not done: {why}");
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use scale::{Core, Group, Note, Observation};

    use super::*;

    #[test]
    fn workers_that_come_and_go_are_told_and_balancing_is_not() {
        let from = Core(0);
        let mut decision = Decision {
            seen: Observation::default(),
            actions: vec![Action::Move { group: Group(1), from, to: Core(1) }],
            notes: Vec::new(),
            groups: 1,
            waited_ms: 1.25,
            failed: Vec::new(),
        };
        assert_eq!(told(&decision), None);
        decision.actions.insert(0, Action::Add(Core(1)));
        decision.notes.push(Note { at: 0, why: "cores: 1 -> 2, at a load of 0.95".into() });
        let line = "scaling: add core 1; 1 group of flows moved, packets waited 1.2 ms at most; cores: 1 -> 2, at a \
                    load of 0.95";
        assert_eq!(told(&decision).unwrap(), line);
    }
}
