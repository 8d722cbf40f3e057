//! What the switch of a rack holds of the functions of all chains together.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use codegen::stages::{Hardware, Joint, Member, Members, Taken};
use placement::{Problem, Relief, Slack, Switch};

/// Functions that a switch could have, by chain and name.
pub(super) type Known = HashMap<(String, String), Member>;

/// Answers by functions.
type Answers<T> = Mutex<HashMap<Vec<(usize, usize)>, T>>;

/// A switch that was asked what it holds.
pub(crate) struct CachedSwitch {
    name: String,
    joint: Joint,
    /// Whether it holds them, and what they take: answers so far.
    held: Answers<bool>,
    taken: Answers<Result<Taken, String>>,
}

/// Answers that are kept.
const KEPT: usize = 1 << 14;

impl CachedSwitch {
    /// Of a problem whose functions are known to be such tables on the switch of that name.
    pub(super) fn new(
        (name, hardware): (&str, Option<Hardware>),
        problem: &Problem,
        known: &mut Known,
    ) -> Self {
        let members = |chain: &placement::Chain| Members {
            all: chain
                .functions
                .iter()
                .map(|of| known.remove(&(chain.name.clone(), of.name.clone())))
                .collect(),
            edges: chain.edges.iter().map(|edge| (edge.from, edge.to)).collect(),
        };
        let chains: Vec<Members> = problem.chains.iter().map(members).collect();
        let joint = Joint::new(&chains, hardware);
        Self { name: name.into(), joint, held: Mutex::default(), taken: Mutex::default() }
    }

    fn ask(&self, placed: &[(usize, usize)]) -> Result<Taken, String> {
        once(&self.taken, placed, |key| self.joint.fit(key))
    }
}

/// The answer to a question, which is asked once as long as answers are kept.
fn once<T: Clone>(
    answers: &Answers<T>,
    placed: &[(usize, usize)],
    ask: impl Fn(&[(usize, usize)]) -> T,
) -> T {
    let mut key = placed.to_vec();
    key.sort_unstable();
    let lock = || answers.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().get(&key) {
        return known.clone();
    }
    let answer = ask(&key);
    let mut answers = lock();
    if answers.len() >= KEPT {
        answers.clear();
    }
    answers.insert(key, answer.clone());
    answer
}

impl Switch for CachedSwitch {
    fn fits(&self, placed: &[(usize, usize)]) -> Result<(), String> {
        self.ask(placed).map(drop)
    }

    fn holds(&self, placed: &[(usize, usize)]) -> bool {
        once(&self.held, placed, |key| self.joint.holds(key))
    }

    fn relieved(&self, by: Relief) -> Option<Box<dyn Switch>> {
        let joint = match by {
            Relief::Stages(more) => self.joint.with_stages(u32::try_from(more).ok()?)?,
            Relief::Entries(chain, function, share) => {
                self.joint.with_entries((chain, function), share)
            }
        };
        let name = self.name.clone();
        Some(Box::new(Self { name, joint, held: Mutex::default(), taken: Mutex::default() }))
    }

    fn used(&self, placed: &[(usize, usize)]) -> Vec<Slack> {
        let Ok(taken) = self.ask(placed) else { return Vec::new() };
        let slack = |unit: &'static str, (used, limit): (usize, usize)| Slack {
            chain: None,
            what: format!("{}: {unit}", self.name),
            used: used as f64,
            limit: limit as f64,
            unit,
        };
        let stages = taken.stages.map(|of| slack("stages", of));
        let tables = taken.tables.map(|of| slack("tables", of));
        let numbers = Some(taken.numbers).filter(|of| of.0 > 0).map(|of| slack("tags", of));
        stages.into_iter().chain(tables).chain(numbers).collect()
    }
}
