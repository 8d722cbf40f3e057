//! Supervision of a run: serves the control sockets of its elements, reads its configuration again when it is asked
//! to, and finds when the run is over, and how it ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dataplane::all_cores::AllCores;
use dataplane::control_socket::ControlServer;
use dataplane::worker::Status;

use crate::control::Controlled;
use crate::error::Error;
use crate::instance::{Changed, Extent, Instance};

/// How long it takes at most until a [`Handle`] is seen.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often control sockets are looked at.
const LOOK: Duration = Duration::from_millis(1);

/// Ends a run, or has its configuration read again: from any thread, and from signal handlers.
#[derive(Clone, Default)]
pub struct Handle(Arc<Asked>);

#[derive(Default)]
struct Asked {
    stop: AtomicBool,
    reload: AtomicBool,
}

impl Handle {
    /// Ends the run soon; whether that was asked for before.
    pub fn stop(&self) -> bool {
        self.0.stop.swap(true, Ordering::AcqRel)
    }

    /// Has the configuration's file read again soon.
    pub fn reload(&self) {
        self.0.reload.store(true, Ordering::Release);
    }

    /// Whether the file is to be read again, since the last call.
    pub fn take_reload(&self) -> bool {
        self.0.reload.swap(false, Ordering::AcqRel)
    }

    /// Whether the run is to end.
    pub fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Acquire)
    }
}

/// Hears what happens to a run.
pub trait Observer: Send + Sync {
    /// Called between two looks at the run, many times a second.
    fn looked(&self, _instance: &Instance) {}

    /// A control socket of an element has something to report.
    fn message(&self, _text: &str) {}

    /// The configuration is read again.
    fn reloading(&self) {}

    /// The configuration of this name runs now, or does not: then what ran before runs on.
    fn reloaded(&self, _name: &str, _result: Result<&Changed, &Error>) {}
}

/// A run that is supervised.
pub struct Supervision<'a> {
    /// The run.
    pub controlled: &'a Arc<Controlled>,
    /// The control sockets of its elements, and others for handlers.
    pub sockets: &'a mut ControlServer,
    /// The file of its configuration.
    pub file: &'a str,
    /// Whether it goes on though no worker has anything to do.
    pub stays: bool,
    /// Hears what happens.
    pub observer: Arc<dyn Observer>,
}

impl Supervision<'_> {
    /// Supervises the run until all workers have come to rest for good, or a [`Handle`] ends it; whether one did.
    pub fn run(self) -> bool {
        let Self { controlled, sockets, file, stays, observer } = self;
        let (instance, handle) = (&controlled.instance, &controlled.handle);
        let mut generation = instance.generation();
        loop {
            if instance.generation() != generation {
                generation = instance.generation();
                sockets.change(instance.control_sockets());
            }
            let worked = sockets.poll(&mut AllCores(instance.fleet()));
            sockets.take_messages().iter().for_each(|message| observer.message(message));
            observer.looked(instance);
            if handle.take_reload() {
                reload(controlled, file, &observer);
            }
            let is_stopped = handle.is_stopped();
            if is_stopped || instance.is_over(sockets.is_empty() && !stays) {
                return is_stopped;
            }
            instance.rest(match (worked, sockets.is_empty()) {
                (true, _) => Duration::ZERO,
                (false, false) => LOOK,
                (false, true) => PATIENCE,
            });
        }
    }
}

/// Lets what a file says now replace what runs; nothing waits for that.
fn reload(controlled: &Arc<Controlled>, file: &str, observer: &Arc<dyn Observer>) {
    let (controlled, observer) = (Arc::clone(controlled), Arc::clone(observer));
    let file = file.to_string();
    let work = move || {
        observer.reloading();
        let changed = match file.as_str() {
            "-" => Err(Error::SpentInput),
            file => controlled.reload(file, Extent::Change),
        };
        observer.reloaded(&file, changed.as_ref());
    };
    // Without a thread for it, it can be asked for again.
    let _ = std::thread::Builder::new().name("reload".into()).spawn(work);
}

/// Why nothing goes on in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A worker is dead.
    Dead,
    /// An element stopped the driver.
    Driver,
    /// No element has anything to do any more.
    Nothing,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// Whether a handler that was written from outside stopped the driver.
    pub was_stopped: bool,
    /// Whether a worker is dead, or an element met an error.
    pub failed: bool,
    /// Why nothing went on, if nobody stopped it.
    pub cause: Cause,
}

impl Instance {
    /// Ends what the elements do: they flush what they hold, and do no more.
    pub fn finish(&self) -> Ended {
        let fleet = self.fleet();
        let statuses: Vec<Status> = (0..fleet.len()).map(|worker| fleet.status(worker)).collect();
        let ends = fleet.call_all(|router| {
            router.finish();
            (router.errors(), router.was_stopped())
        });
        let cause = if statuses.contains(&Status::Dead) {
            Cause::Dead
        } else if statuses.contains(&Status::Stopped) {
            Cause::Driver
        } else {
            Cause::Nothing
        };
        Ended {
            was_stopped: ends.iter().any(|(_, (_, was_stopped))| *was_stopped),
            failed: ends.len() < fleet.len() || ends.iter().any(|(_, (errors, _))| *errors > 0),
            cause,
        }
    }
}
