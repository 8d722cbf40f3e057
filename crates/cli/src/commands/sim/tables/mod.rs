//! `catena sim tables`: the evaluations of Ironside, Quadrant and Metron, with what they print beside what is simulated here.

mod goals;
mod page;
mod scaling;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sim::experiments::{
    Bed, CHAINS, Cell, TRACES, Window, fit_costs, rack, superbursts_of, traffic,
};
use sim::{Chain, Report, Superbursts, Traffic};

use crate::failure::Failure;
use crate::outputs;
use crate::terminal::{print, print_error};

/// Repeat the tables and figures on scaling of Ironside's, Quadrant's and Metron's evaluations
///
/// Of Ironside's, traces and costs are fitted to a few printed figures; the page says to which, and what else was chosen. Prints the
/// pages; all runs of Ironside's see the same part of each trace.
#[derive(Args, Debug)]
pub(super) struct Tables {
    /// Take 52 s of each trace instead of two; what is done is kept in the folder of --report, and gone on with
    #[arg(long, requires = "report")]
    full: bool,
    /// Write ironside.md, scaling.md and their plots into a folder
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
}

/// What was run, and on what.
pub(super) struct Ran {
    window: Window,
    /// The chains, with costs that are fitted.
    chains: Vec<Chain>,
    superbursts: Vec<(&'static str, Superbursts)>,
    cells: Vec<(Cell, Report)>,
}

/// A run that is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    cell: Cell,
    report: Report,
}

/// What is kept of a run that may be gone on with.
struct Store {
    path: PathBuf,
    /// What decides what comes of a cell: runs of other constants are not gone on with.
    made_of: String,
    done: Vec<(Cell, Report)>,
}

impl Store {
    fn open(folder: &Path, window: Window, chains: &[Chain]) -> Result<Self, Failure> {
        let path = folder.join("ironside-runs.jsonl");
        let traffic: Vec<Traffic> = TRACES.iter().filter_map(|of| traffic(of).ok()).collect();
        let made_of = json!({
            "window": window, "traffic": traffic, "chains": chains,
            "rack": rack(), "policies": scale::Settings::default(),
        })
        .to_string();
        let mut done = Vec::new();
        if let Ok(text) = std::fs::read_to_string(&path) {
            let mut lines = text.lines();
            if lines.next() == Some(&made_of) {
                // The last line may have been cut off.
                let kept = lines.map_while(|line| serde_json::from_str::<Kept>(line).ok());
                done.extend(kept.map(|of| (of.cell, of.report)));
            }
        }
        Ok(Self { path, made_of, done })
    }

    fn write(&self) -> Result<(), String> {
        let mut text = format!("{}\n", self.made_of);
        for (cell, report) in &self.done {
            let kept = json!({"cell": cell, "report": report});
            text.push_str(&format!("{kept}\n"));
        }
        outputs::write(&self.path, text)
    }
}

impl Tables {
    /// Runs the command.
    pub(super) fn main(&self) -> Result<ExitCode, Failure> {
        let window = if self.full { Window::FULL } else { Window::SHORT };
        if let Some(folder) = &self.report {
            std::fs::create_dir_all(folder)
                .map_err(|why| format!("{}: {why}", folder.display()))?;
        }
        let folder = self.report.as_deref().filter(|_| self.full);
        let ran = Ran::new(window, folder)?;
        let scaling = scaling::Ran::new()?;
        let (ironside, scaling) = (page::Page::of(&ran), scaling.page());
        match &self.report {
            Some(folder) => {
                ironside.write(folder, "ironside.md")?;
                scaling.write(folder, "scaling.md")?;
            }
            None => print(&format!("{}\n{}", ironside.text, scaling.text)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Ran {
    fn new(window: Window, folder: Option<&Path>) -> Result<Self, Failure> {
        let bed = |trace: &&str| Bed::new(trace, window);
        let beds: BTreeMap<&str, Bed> = TRACES.into_iter().zip(each(&TRACES, bed)?).collect();
        // Costs are those of the short window: a fit to the whole trace would take hours.
        let short = match window == Window::SHORT {
            true => None,
            false => Some(Bed::new("backbone", Window::SHORT)?),
        };
        let bed = short
            .as_ref()
            .or_else(|| beds.get("backbone"))
            .ok_or_else(|| "there is no trace".to_string())?;
        let chains = each(&CHAINS, |name| fit_costs(name, bed))?;
        let store = folder.map(|folder| Store::open(folder, window, &chains)).transpose()?;
        let superbursts = each(&TRACES, |trace| superbursts_of(trace))?;
        let superbursts = TRACES.into_iter().zip(superbursts).collect();
        let mut done = store.as_ref().map_or(Vec::new(), |store| store.done.clone());
        let all = Cell::all();
        let left: Vec<&Cell> =
            all.iter().filter(|cell| !done.iter().any(|(of, _)| of == *cell)).collect();
        let store = store.map(Mutex::new);
        let (ended, count) = (AtomicUsize::new(0), left.len());
        let is_shown = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let new = each(&left, |cell| {
            let chain =
                chains.iter().find(|of| of.name == cell.chain).ok_or("there is no such chain")?;
            let bed = beds.get(cell.trace.as_str()).ok_or("there is no such trace")?;
            let mut report = bed.run(cell, chain).map_err(|why| {
                format!("{} of {} on {}: {why}", cell.policy, cell.chain, cell.trace)
            })?;
            report.notes.clear();
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            if is_shown {
                print_error(&format!("\r\x1b[K{ended} of {count} runs"));
            }
            if let Some(store) = &store {
                let mut store = store.lock().map_err(|_| "a run broke off".to_string())?;
                store.done.push(((*cell).clone(), report.clone()));
                store.write()?;
            }
            Ok(report)
        })?;
        if is_shown {
            print_error("\r\x1b[K");
        }
        done.extend(left.into_iter().cloned().zip(new));
        Ok(Self { window, chains, superbursts, cells: done })
    }

    /// What came of a cell.
    fn report(&self, cell: &Cell) -> Option<&Report> {
        self.cells.iter().find(|(of, _)| of == cell).map(|(_, report)| report)
    }
}

/// Does what is to be done for each of some, as many at a time as there are CPUs; results are in their order.
fn each<T: Sync, R: Send>(
    all: &[T],
    run: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<R, String>)>> = Mutex::new(Vec::new());
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cpus.min(all.len()) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(number) else { break };
                    let result = run(one);
                    if let Ok(mut done) = done.lock() {
                        done.push((number, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_| "a run broke off".to_string())?;
    done.sort_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?)
}
