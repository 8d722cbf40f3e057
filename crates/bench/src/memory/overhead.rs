//! Measuring costs less than 2 % of the throughput: instructions of a packet, counted by callgrind, while it is measured and
//! while it is not.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

use dataplane::clock::Time;
use dataplane::io::{Binding, Bindings};
use dataplane::{ProgramUse, Router, Transcript};
use elements::configure::WorkerShare;
use elements::device::DeviceRequest;
use engine::Disk;
use engine::session::{self, Path, Setup};
use ir::Sources;
use lab::callgrind;

use super::tests::Simulated;
use super::{Harness, HarnessDevices};
use crate::arrivals::Arrivals;
use crate::traffic::Frames;

/// A firewall, a router and a NAPT, as synthesis makes them one.
const CHAIN: &str = "FromDevice(in) -> Strip(14) -> CheckIPHeader
    -> IPFilter(deny src port 7, allow dst port 80, allow udp)
    -> rt :: StaticIPLookup(20.0.0.0/8 0, 30.0.0.0/8 1, 0.0.0.0/0 1)
    -> DecIPTTL -> IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 0)
    -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(out);
    rt[1] -> Discard;";

/// Packets that are counted.
const PACKETS: u64 = 50_000;
/// Packets a second by the simulated clock: more than the chain takes, so that bursts are whole.
const RATE: f64 = 1e9;

fn start() -> (Harness, Router) {
    let time = Simulated::default();
    let mut harness = Harness::new(Arc::new(time.clone()));
    let mut generated = Bindings::default();
    let binding = Binding::source("gen:flows=1000,count=4000").unwrap();
    generated.inputs.insert("in".into(), binding);
    let frames =
        |request: &DeviceRequest| Ok(Rc::new(Frames::of(&mut *generated.open_device(request)?)?));
    let mut sources = Sources::new();
    let file = sources.add("chain", CHAIN);
    let setup = Setup {
        part: WorkerShare::default(),
        files: &mut Disk::default(),
        devices: &mut HarnessDevices { harness: &mut harness, frames },
        clock: time.clock().unwrap(),
        listener: Box::new(Transcript::default()),
        seed: 1,
        path: Path::Synthesised,
        background: None,
        program_use: ProgramUse::Always,
        cut: None,
        unproven: false,
    };
    let mut found = Vec::new();
    let started = session::start(&mut sources, file, Vec::new(), setup, &mut found);
    let (_, router) = started.unwrap_or_else(|| panic!("{found:?}"));
    (harness, router)
}

/// Takes packets without end: what the chain itself costs.
#[inline(never)]
fn counted_bare(harness: &Harness, router: &mut Router) {
    harness.saturate(router, PACKETS, &|| false).unwrap();
    black_box("bare");
}

/// Some bursts are timed, for what functions, elements and programs take.
#[inline(never)]
fn counted_sampled(harness: &Harness, router: &mut Router) {
    harness.saturate(router, PACKETS, &|| false).unwrap();
    black_box("sampled");
}

/// Packets are due at their times, as in the search for the throughput.
#[inline(never)]
fn counted_offered(harness: &Harness, router: &mut Router) -> u64 {
    let seconds = 2.0 * PACKETS as f64 / RATE;
    let even = (Arrivals::Constant, 0);
    let trial = harness.offer(router, (RATE, seconds), even, false, &|| false).unwrap().trial;
    black_box(trial.offered - trial.lost)
}

fn run_all() -> u64 {
    let (harness, mut router) = start();
    harness.saturate(&mut router, PACKETS, &|| false).unwrap();
    counted_bare(&harness, &mut router);
    router.sample_latency(true);
    counted_sampled(&harness, &mut router);
    router.sample_latency(false);
    counted_offered(&harness, &mut router)
}

#[test]
fn measuring_costs_less_than_two_per_cent() {
    let taken = run_all();
    if callgrind::is_counting() {
        return;
    }
    assert!(taken > PACKETS / 4, "{taken} packets got through");
    let test = "memory::overhead::measuring_costs_less_than_two_per_cent";
    let names = ["counted_bare", "counted_sampled", "counted_offered"];
    let counts = callgrind::count(test, &names);
    let each = |count: u64, packets: u64| count as f64 / packets as f64;
    let bare = each(counts[0], PACKETS);
    let (sampled, offered) = (each(counts[1], PACKETS), each(counts[2], taken));
    println!(
        "{taken} instructions a packet: {bare:.1}, sampled {sampled:.1}, offered {offered:.1}"
    );
    assert!(bare > 50.0, "{bare}: the chain was not counted");
    assert!(sampled < 1.02 * bare, "{sampled} instead of {bare} where bursts are timed");
    assert!(offered < 1.02 * bare, "{offered} instead of {bare} where packets are due");
}
