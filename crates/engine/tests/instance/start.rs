//! Chains that start before their programs are synthesised.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catena_engine::instance::Options;
use catena_engine::session::Path;
use dataplane::{Listener, Router};

use crate::support::{FLOWS, Wire, drain, options, read, run, start_with};

const MEANWHILE: &str = "programs are being synthesised; elements run until then";
const READY: &str = "programs are synthesised and installed";

/// A listener, and what it hears.
type Scribe = (fn() -> Box<dyn Listener>, &'static Mutex<Vec<String>>);

/// A listener that notes what is said.
macro_rules! scribe {
    ($said:ident) => {{
        static $said: Mutex<Vec<String>> = Mutex::new(Vec::new());
        struct Noting;
        impl Listener for Noting {
            fn message(&mut self, text: &str) {
                $said.lock().unwrap().push(text.to_string());
            }
            fn output(&mut self, _: &str) {}
            fn error(&mut self, element: &str, text: &str) {
                $said.lock().unwrap().push(format!("{element}: {text}"));
            }
        }
        let listener: fn() -> Box<dyn Listener> = || Box::new(Noting);
        (listener, &$said)
    }};
}

fn at_once(path: Path, listener: fn() -> Box<dyn Listener>) -> Options {
    Options { patience: Duration::ZERO, listener, ..options(path) }
}

fn elements_run_until_programs_are_there(path: Path, (listener, said): Scribe) {
    let text =
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> f :: IPFilter(deny src port 1, allow all)
           -> nat :: IPRewriter(pattern 1.0.0.1 20000-30000# - - 0 0) -> c :: Counter
           -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(out);";
    let wire = Wire::new();
    wire.open();
    let wires = [Arc::clone(&wire)];
    let instance = start_with(at_once(path, listener), text, &wires, |_| Ok(()));
    while said.lock().unwrap().len() < 2 {
        run(&wire, FLOWS);
    }
    run(&wire, 20 * FLOWS);
    drain(&instance, &wires);
    assert_eq!(*said.lock().unwrap(), [MEANWHILE, READY]);
    assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
    let (taken, sent) = (wire.taken.load(Ordering::SeqCst), wire.sent.load(Ordering::SeqCst));
    assert_eq!(taken, sent, "packets were lost");
    assert_eq!(wire.ports().len() as u64, FLOWS);
    assert_eq!(read(&instance, "c.count"), taken.to_string());
}

#[test]
fn elements_run_until_programs_are_there_and_nothing_is_lost() {
    elements_run_until_programs_are_there(Path::Synthesised, scribe!(SAID));
}

#[test]
fn interpreted_elements_run_until_programs_are_there_and_nothing_is_lost() {
    elements_run_until_programs_are_there(Path::SynthesisedInterpreted, scribe!(SAID));
}

/// What was synthesised of a chain that a handler has changed meanwhile is not installed.
#[test]
fn programs_are_those_of_the_chain_as_it_is_when_they_are_there() {
    let (listener, said) = scribe!(SAID);
    let text = "FromDevice(in) -> Strip(14) -> CheckIPHeader -> s :: Switch(0) -> d :: Discard;
                s[1] -> e :: Counter -> Discard;";
    let wire = Wire::new();
    let options = at_once(Path::SynthesisedInterpreted, listener);
    let write = |router: &mut Router| router.write_handler("s.switch", "1");
    let instance = start_with(options, text, &[Arc::clone(&wire)], write);
    wire.open();
    // A device that nobody can wait on: a worker that came to rest already is told that there is more.
    instance.fleet().call_all(|_| ());
    while said.lock().unwrap().len() < 2 {
        run(&wire, FLOWS);
    }
    run(&wire, 20 * FLOWS);
    drain(&instance, &[Arc::clone(&wire)]);
    assert_eq!(*said.lock().unwrap(), [MEANWHILE, READY]);
    assert_eq!(read(&instance, "d.count"), "0");
    assert_eq!(read(&instance, "e.count"), wire.taken.load(Ordering::SeqCst).to_string());
}
