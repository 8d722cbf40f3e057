//! Chains on live interfaces beside what does the same work: the kernel, Open vSwitch, DPDK's testpmd; latency by
//! how many packets a system call carries; and what it costs to bring a frame to its worker. Everything runs in network
//! namespaces of the bench's own, on two CPUs: what is measured on CPU 1, what loads it on CPU 0. Only root can make them.
//!
//! `cargo bench -p catena-cli --bench live -- kernel|multiplexing|single|dispatch|dpdk [--rounds N] [--seconds S] [--rules N]`
//!
//! Rules and traffic are those of the shared data folder (`isp-acl`); `dpdk` needs the feature of this name.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../../bench/benches/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod dispatch;
mod dpdk;
mod kernel;
mod load;
mod multiplexing;
mod rules;
mod single;
mod testbed;

/// What the command line says.
pub(crate) struct Arguments {
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    /// The sizes of access lists; all of them if none is given.
    pub(crate) rules: Vec<u32>,
    /// Parts of the names of what is measured; all if none is given.
    pub(crate) filters: Vec<String>,
    /// Raised by signals, so that everything is left as it was found.
    interrupted: Arc<AtomicBool>,
}

impl Arguments {
    /// Whether it is to end.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether something of this name is to be measured.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| name.contains(filter.as_str()))
    }
}

fn main() {
    let mut what = None;
    let mut arguments = Arguments {
        rounds: 3,
        seconds: 1.0,
        rules: Vec::new(),
        filters: Vec::new(),
        interrupted: Arc::default(),
    };
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&arguments.interrupted)).expect("a signal");
    }
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|n| n.parse::<f64>().ok()).expect("a number");
        match word.as_str() {
            "--rounds" => arguments.rounds = number() as usize,
            "--seconds" => arguments.seconds = number(),
            "--rules" => arguments.rules.push(number() as u32),
            "--bench" => {}
            _ if what.is_none() => what = Some(word),
            _ => arguments.filters.push(word),
        }
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: network namespaces are made by root");
        return;
    }
    let _ahead = testbed::Ahead::new();
    match what.as_deref() {
        Some("kernel") => kernel::run(&arguments),
        Some("multiplexing") => multiplexing::run(&arguments),
        Some("single") => single::run(&arguments),
        Some("dispatch") => dispatch::run(&arguments),
        Some("dpdk") => dpdk::run(&arguments),
        _ => eprintln!("not run: say which: kernel, multiplexing, single, dispatch or dpdk"),
    }
}
