//! What signals ask of a program that runs on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::supervision::Handle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals as Caught;
use signal_hook::low_level::emulate_default_handler;

/// A flag that SIGINT and SIGTERM raise; a second one ends the process at once.
pub(crate) fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Where signals cannot be caught, they end the process as they would have.
        let _ = flag::register_conditional_default(signal, Arc::clone(&flag));
        let _ = flag::register(signal, Arc::clone(&flag));
    }
    flag
}

/// A flag that SIGHUP raises.
#[cfg(feature = "dpdk")]
pub(crate) fn hang_up_flag() -> Arc<AtomicBool> {
    let raised = Arc::new(AtomicBool::new(false));
    let _ = flag::register(SIGHUP, Arc::clone(&raised));
    raised
}

/// Signals to a run that must not end without having put things right.
pub(crate) struct Signals {
    started: Arc<AtomicBool>,
}

impl Signals {
    /// Catches SIGINT and SIGTERM, which end the run, and if it is to be SIGHUP, which has its configuration
    /// read again. One of the former ends the process
    /// once `leave` has put things right: the first while the run starts, whatever its other
    /// threads are at, and the second from then on. The next one ends it whatever `leave` does.
    pub(crate) fn catch(run: Handle, hang_up: bool, leave: impl FnOnce() + Send + 'static) -> Self {
        let signals = Self { started: Arc::default() };
        let (started, last) = (Arc::clone(&signals.started), Arc::new(AtomicBool::new(false)));
        let all = [SIGINT, SIGTERM, SIGHUP];
        let which = if hang_up { &all[..] } else { &all[..2] };
        // Where signals cannot be caught, they end the process as they would have.
        let Ok(mut caught) = Caught::new(which) else { return signals };
        for signal in [SIGINT, SIGTERM] {
            let _ = flag::register_conditional_default(signal, Arc::clone(&last));
        }
        let watch = move || {
            for signal in caught.forever() {
                if signal == SIGHUP {
                    run.reload();
                } else if run.stop() || !started.load(Ordering::Acquire) {
                    last.store(true, Ordering::Relaxed);
                    leave();
                    let _ = emulate_default_handler(signal);
                    return;
                }
            }
        };
        let _ = std::thread::Builder::new().name("signals".into()).spawn(watch);
        signals
    }

    /// Says that the run is supervised from now on.
    pub(crate) fn started(&self) {
        self.started.store(true, Ordering::Release);
    }
}

/// SIGINT and SIGTERM, to be waited for.
pub(crate) struct Interrupt(Option<Caught>);

impl Interrupt {
    /// Catches them from now on.
    pub(crate) fn catch() -> Self {
        // SIGHUP, too: whose terminal is closed takes down what was made.
        Self(Caught::new([SIGINT, SIGTERM, SIGHUP]).ok())
    }

    /// Waits for one that came since.
    pub(crate) fn wait(self) {
        if let Some(mut caught) = self.0 {
            caught.forever().next();
        }
    }
}
