//! Programs that packets of a chain go through, as a chain's bindings have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use elements::process::{INTERFACES, ProcessSpec};

/// Starts programs between two interfaces.
pub trait Launcher: Send + Sync {
    /// Starts one, and keeps it running.
    ///
    /// # Errors
    /// A message that says why it cannot run.
    fn start(&self, spec: &ProcessSpec) -> Result<Arc<dyn Process>, String>;
}

/// A program that runs; it ends when nobody has it any more.
pub trait Process: Send + Sync {
    /// The interfaces of this host whose frames its own interfaces receive, in their order.
    fn ends(&self) -> &[String; 2];

    /// Ends it now, and its interfaces with it.
    fn end(&self);
}

/// The programs of a run; clones are of the same ones.
#[derive(Clone)]
pub struct Processes {
    launcher: Arc<dyn Launcher>,
    running: Arc<Mutex<Running>>,
}

/// The programs that run, by their names.
#[derive(Default)]
struct Running {
    processes: HashMap<String, Weak<dyn Process>>,
    /// Whether the run ends: nothing is started any more.
    is_over: bool,
}

impl Processes {
    /// None runs yet.
    pub fn new(launcher: Arc<dyn Launcher>) -> Self {
        Self { launcher, running: Arc::default() }
    }

    /// The program that is to run: one that does already, for whatever worker and chain, or a new one.
    pub(super) fn start(&self, spec: &ProcessSpec) -> Result<Arc<dyn Process>, String> {
        // Other workers wait until it runs.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_over {
            return Err(format!("{}: the run ends", spec.element));
        }
        let name = spec.name();
        if let Some(process) = running.processes.get(&name).and_then(Weak::upgrade) {
            return Ok(process);
        }
        let process =
            self.launcher.start(spec).map_err(|why| format!("{}: {why}", spec.element))?;
        running.processes.retain(|_, process| process.strong_count() > 0);
        running.processes.insert(name, Arc::downgrade(&process));
        Ok(process)
    }

    /// The program that has a device, and the interface of this host that it is.
    pub(super) fn find(&self, device: &str) -> Option<(Arc<dyn Process>, String)> {
        let (name, interface) = device.rsplit_once('.')?;
        let side = INTERFACES.iter().position(|known| *known == interface)?;
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let process = running.processes.get(name)?.upgrade()?;
        let end = process.ends()[side].clone();
        Some((process, end))
    }

    /// Ends all of them now, and starts none any more.
    pub fn end(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.is_over = true;
        let all: Vec<_> = running.processes.values().filter_map(Weak::upgrade).collect();
        drop(running);
        all.iter().for_each(|process| process.end());
    }
}
