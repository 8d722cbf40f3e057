//! From one plan to another: servers whose part is the same are left alone, another chain is swapped into those that can go
//! on, and the others are started anew.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use dataplane::worker;
use engine::control::Client;
use engine::control::protocol::{Changed, Counters, Fate as StateFate, Swap};
use host::Journal;
use view::paint::shown;

use super::server::{start_all, too_few};
use super::status::{Server, State};
use super::{Home, words};
use crate::failure::Failure;
use crate::terminal::print;

/// What becomes of a server that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// It does the same by both plans.
    Untouched,
    /// Another chain is swapped in, as this is another than before. If its part is less, that is once the switch has changed.
    Swapped { is_late: bool, why: String },
    /// It is started anew, for a reason.
    Restarted(String),
}

/// Steps from a plan to another.
#[derive(Default)]
pub(super) struct Change {
    /// By name, servers of both plans.
    fates: Vec<(String, Fate)>,
    /// Servers of the plan before.
    before: Vec<Server>,
    /// Into which another chain was swapped.
    swapped: Vec<String>,
}

impl Change {
    /// What becomes of servers of an earlier plan that run; in the new one's state, those that go on are noted.
    pub(super) fn of(state: &mut State, before: &State) -> Self {
        let mut fates = Vec::new();
        let runs = |server: &&Server| {
            before.servers.iter().any(|of| of.name == server.name && of.process != 0)
        };
        let stays = |of: &&Server| state.servers.iter().any(|server| server.name == of.name);
        let taken: Vec<usize> =
            before.servers.iter().filter(stays).flat_map(|of| of.cpus.clone()).collect();
        let free = worker::cpus().iter().filter(|cpu| !taken.contains(cpu)).count();
        let new: usize =
            state.servers.iter().filter(|of| !runs(of)).map(|of| of.cores.max(1)).sum();
        let free = free.saturating_sub(new);
        let renumbered = state.is_renumbered(before);
        let (io, folder) = (state.io != before.io, state.folder != before.folder);
        for server in &mut state.servers {
            let Some(of) = before.servers.iter().find(|of| of.name == server.name) else {
                continue;
            };
            if of.process == 0 {
                continue;
            }
            let workers = of.cpus.len();
            let reason = if of.netns != server.netns || of.interface != server.interface {
                Some("it has another interface".into())
            } else if io {
                Some("--io is another".into())
            } else if folder {
                Some("files are in another folder".into())
            } else if server.cores.max(1) < workers || server.cores > workers && free > 0 {
                let cores = server.cores;
                Some(format!("{cores} cores instead of {workers}, and their number is fixed"))
            } else if renumbered {
                Some("tags are numbered anew".into())
            } else if !is_same_program(of.process) {
                Some("it runs another version of catena".into())
            } else {
                None
            };
            let fate = match (reason, server.part.differs(&of.part)) {
                (Some(why), _) => Fate::Restarted(why),
                (None, None) => Fate::Untouched,
                (None, Some(why)) => Fate::Swapped { is_late: server.part.is_less(&of.part), why },
            };
            if !matches!(fate, Fate::Restarted(_)) {
                server.goes_on(of);
                too_few(server);
            }
            fates.push((server.name.clone(), fate));
        }
        Self { fates, before: before.servers.clone(), swapped: Vec::new() }
    }

    /// The first steps: chains are swapped in, and servers are started, before any packet goes where it did not go before. Those
    /// that are started anew are away meanwhile.
    pub(super) fn begin(
        &mut self,
        (journal, at): (&mut Journal, &Home),
        state: &mut State,
        (io, is_interrupted): (Option<&str>, &dyn Fn() -> bool),
    ) -> Result<(), Failure> {
        self.swap(at, state, false);
        let anew = self.restarted();
        let is_new = |name: &str| !anew.iter().any(|of| of == name);
        for name in start_all(journal, at, state, io, is_interrupted, &is_new)? {
            print(&format!("{} started\n", shown(&name)));
        }
        self.restart((journal, at), state, (io, is_interrupted))
    }

    /// The last steps, once the switch sends no packet to where none goes any more.
    pub(super) fn end(
        &mut self,
        (journal, at): (&mut Journal, &Home),
        state: &mut State,
        (io, is_interrupted): (Option<&str>, &dyn Fn() -> bool),
    ) -> Result<(), Failure> {
        self.swap(at, state, true);
        self.restart((journal, at), state, (io, is_interrupted))?;
        let gone = |of: &&Server| {
            of.process != 0 && !state.servers.iter().any(|server| server.name == of.name)
        };
        for server in self.before.iter().filter(gone) {
            drain(server);
            print(&format!("{} ended: nothing is planned there\n", shown(&server.name)));
        }
        journal.change(&processes(&state.servers)).map_err(|why| words(&why))?;
        Ok(())
    }

    /// Says which servers were left alone.
    pub(super) fn untouched(&self) -> String {
        let untouched = self.fates.iter().filter(|(_, fate)| *fate == Fate::Untouched);
        let lines = untouched.map(|(name, _)| format!("{} runs on, untouched\n", shown(name)));
        lines.collect()
    }

    /// Swaps what ran before back in.
    pub(super) fn swap_back(&self, at: &Home) {
        for server in self.before.iter().filter(|of| self.swapped.contains(&of.name)) {
            if let Err(why) = swap(server, at) {
                print(&format!("warning: {}: {why}\n", shown(&server.name)));
            }
        }
    }

    /// Numbers of processes that a plan before had.
    pub(super) fn former(&self) -> Vec<u32> {
        processes(&self.before)
    }

    /// Servers that are to be started anew.
    fn restarted(&self) -> Vec<String> {
        let restarted = self.fates.iter().filter(|(_, fate)| matches!(fate, Fate::Restarted(_)));
        restarted.map(|(name, _)| name.clone()).collect()
    }

    /// Swaps the chain into servers whose turn it is. Those that refuse it are started anew.
    fn swap(&mut self, at: &Home, state: &mut State, late: bool) {
        for (name, fate) in &mut self.fates {
            let Fate::Swapped { is_late, why } = &*fate else { continue };
            let server = state.servers.iter_mut().find(|of| of.name == *name);
            let Some(server) = server.filter(|_| *is_late == late) else { continue };
            match swap(server, at) {
                Ok(changed) => {
                    print(&told(name, why, &changed));
                    self.swapped.push(name.clone());
                }
                Err(refused) => {
                    *fate = Fate::Restarted(format!("{why}; {}", refused.trim_end()));
                    server.process = 0;
                }
            }
        }
    }

    /// Starts servers anew that do not run any more or are not to.
    fn restart(
        &mut self,
        (journal, at): (&mut Journal, &Home),
        state: &mut State,
        (io, is_interrupted): (Option<&str>, &dyn Fn() -> bool),
    ) -> Result<(), Failure> {
        let waiting: Vec<String> =
            state.servers.iter().filter(|of| of.process == 0).map(|of| of.name.clone()).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        let others = self.before.iter().filter(|of| !waiting.contains(&of.name));
        let kept: Vec<u32> = others.chain(&state.servers).map(|of| of.process).collect();
        journal.change(&kept).map_err(|why| words(&why))?;
        let chains: Vec<String> = state.waiting().map(|name| shown(name).into_owned()).collect();
        let started = start_all(journal, at, state, io, is_interrupted, &|_| true)?;
        let time = begin.elapsed().as_secs_f64() * 1e3;
        for name in started {
            let why = self.fates.iter().find_map(|(of, fate)| match fate {
                Fate::Restarted(why) if *of == name => Some(format!(" ({why})")),
                _ => None,
            });
            print(&format!("{} restarted{}\n", shown(&name), why.unwrap_or_default()));
        }
        if !chains.is_empty() {
            print(&format!("{}: servers were away for {time:.0} ms\n", chains.join(", ")));
        }
        Ok(())
    }
}

fn processes(servers: &[Server]) -> Vec<u32> {
    servers.iter().map(|of| of.process).filter(|process| *process != 0).collect()
}

/// Whether a process runs this program.
fn is_same_program(process: u32) -> bool {
    let of = |path: String| {
        let about = std::fs::metadata(path).ok()?;
        Some((about.dev(), about.ino()))
    };
    let own = of("/proc/self/exe".into());
    own.is_some() && own == of(format!("/proc/{process}/exe"))
}

/// Has a server run the chain that its file has now.
fn swap(server: &Server, at: &Home) -> Result<Changed, String> {
    let mut client = Client::connect(Path::new(&server.socket)).map_err(|why| why.to_string())?;
    let request = Swap { path: at.chain(), text: None, check: false, force: false };
    client.ask(request).map_err(|why| why.to_string())
}

/// A swap, in words, with state that it lost.
fn told(name: &str, why: &str, changed: &Changed) -> String {
    let waited = changed.standstill_ms.iter().copied().fold(0.0, f64::max);
    let mut text = format!(
        "{} was swapped ({why}), in {:.0} ms; packets waited {waited:.3} ms at most\n",
        shown(name),
        changed.preparation_ms
    );
    let lost = changed.plan.iter().filter(|of| {
        matches!(of.fate, StateFate::Lost | StateFate::Partly) && of.flows + of.packets > 0
    });
    for of in lost {
        let (fate, flows) =
            (if of.fate == StateFate::Lost { "lost" } else { "partly lost" }, of.flows);
        text +=
            &format!("  {}: its state is {fate} ({flows} flows): {}\n", shown(&of.element), of.why);
    }
    text
}

/// How long a server may take until it has done with packets that were on their path.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at what a server took.
const OFTEN: Duration = Duration::from_millis(20);

/// Waits until a server that gets no packets any more has done with those that came.
fn drain(server: &Server) {
    let Ok(mut client) = Client::connect(Path::new(&server.socket)) else { return };
    let (begin, mut before) = (Instant::now(), None);
    while begin.elapsed() < PATIENCE {
        let Ok(counters) = client.ask(Counters {}) else { return };
        let taken: u64 = counters.workers.iter().map(|of| of.counts.taken).sum();
        let waits = counters.workers.iter().any(|of| of.waiting.values().any(|count| *count > 0));
        if before == Some(taken) && !waits {
            return;
        }
        before = Some(taken);
        std::thread::park_timeout(OFTEN);
    }
}
