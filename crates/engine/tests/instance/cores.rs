use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use catena_engine::instance::{Extent, Share};
use catena_engine::session::Path;
use dataplane::{Listener, Router};
use elements::element_state::Scope;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::support::{FLOWS, Wire, configuration, drain, read, run, start, start_on};

const CHAIN: &str = "FromDevice(in) -> c :: Counter -> s :: Switch(0) -> ToDevice(out);
    s[1] -> d :: Discard;";

#[test]
fn counts_of_two_workers_add_up_and_writes_reach_both() {
    let wires = [Wire::new(), Wire::new()];
    wires.iter().for_each(|wire| wire.open());
    let instance = start(CHAIN, &wires, Path::Synthesised);
    wires.iter().for_each(|wire| run(wire, 3 * FLOWS));
    drain(&instance, &wires);
    let taken: Vec<u64> = wires.iter().map(|wire| wire.taken.load(Ordering::SeqCst)).collect();
    assert_eq!(read(&instance, "c.count"), (taken[0] + taken[1]).to_string());
    let (each, sum) = instance.stats();
    let counted: Vec<u64> = each.iter().map(|(_, stats)| stats.packets().0).collect();
    assert_eq!(counted, taken);
    assert_eq!(sum.unwrap().packets(), (taken[0] + taken[1], taken[0] + taken[1]));
    // Both get what is written.
    instance.write("s.switch", "1").unwrap();
    assert_eq!(read(&instance, "s.switch"), "1");
    wires.iter().for_each(|wire| wire.open());
    // Devices that nobody can wait on: whoever came to rest is told that there is more.
    instance.fleet().call_all(|_| ());
    wires.iter().for_each(|wire| run(wire, FLOWS));
    drain(&instance, &wires);
    let discarded: u64 = read(&instance, "d.count").parse().unwrap();
    assert!(discarded >= 2 * FLOWS, "{discarded}");
    // What is not a count is told core by core where it differs.
    instance.fleet().call(1, |router| router.write_handler("s.switch", "0")).unwrap().unwrap();
    assert_eq!(read(&instance, "s.switch"), "worker 0: 1\nworker 1: 0\n");
    let refused = instance.write("s.nothing", "").unwrap_err();
    assert_eq!(
        (refused.code(), &*refused.to_string()),
        ("handler", "no handler named 's.nothing'")
    );
}

/// Chains in one process, on the same core: each has its own packets and state, and changes and ends for itself.
#[test]
fn chains_run_side_by_side() {
    let wires = [Wire::new(), Wire::new()];
    wires.iter().for_each(|wire| wire.open());
    let cpu =
        sched_getaffinity(None).ok().and_then(|all| (0..CpuSet::MAX_CPU).find(|&c| all.is_set(c)));
    let begin = |wire: &Arc<Wire>, text| {
        let listener = || -> Box<dyn Listener> { Box::new(dataplane::Transcript::default()) };
        start_on(vec![cpu], text, std::slice::from_ref(wire), Path::Synthesised, listener)
    };
    let one = begin(&wires[0], CHAIN);
    let other = begin(&wires[1], CHAIN);
    wires.iter().for_each(|wire| run(wire, 2 * FLOWS));
    for (instance, wire) in [&one, &other].into_iter().zip(&wires) {
        drain(instance, std::slice::from_ref(wire));
        let taken = wire.taken.load(Ordering::SeqCst);
        assert_eq!(read(instance, "c.count"), taken.to_string(), "its own packets, and no others");
    }
    one.write("s.switch", "1").unwrap();
    assert_eq!(read(&other, "s.switch"), "0");
    other
        .change(configuration("FromDevice(in) -> c :: Counter -> Discard;"), Extent::Change)
        .unwrap();
    assert_eq!((one.generation(), other.generation()), (1, 2));
    let state = one.export_state(Share::All).unwrap();
    one.close();
    wires[1].open();
    other.fleet().call_all(|_| ());
    run(&wires[1], FLOWS);
    drain(&other, &wires[1..]);
    let refused = other.import_state(&state).unwrap_err();
    assert_eq!(refused.code(), "state", "it has no 's': {refused}");
    other.close();
}

#[test]
fn all_workers_change() {
    let wires = [Wire::new(), Wire::new()];
    wires.iter().for_each(|wire| wire.open());
    let instance = start(CHAIN, &wires, Path::Synthesised);
    for _ in 0..5 {
        let changed = instance.change(configuration(CHAIN), Extent::Change).unwrap();
        assert_eq!(changed.swapped.len(), 2);
        wires.iter().for_each(|wire| run(wire, FLOWS));
    }
    drain(&instance, &wires);
    for wire in &wires {
        assert_eq!(wire.taken.load(Ordering::SeqCst), wire.sent.load(Ordering::SeqCst));
        assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
    }
    let taken: u64 = wires.iter().map(|wire| wire.taken.load(Ordering::SeqCst)).sum();
    assert_eq!(read(&instance, "c.count"), taken.to_string());
    assert_eq!(Arc::strong_count(&wires[0]), Arc::strong_count(&wires[1]));
}

/// The policies of the threads in which routers were taken apart; 5 is SCHED_IDLE.
static LEFT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Sees its router being taken apart.
struct Witness;

impl Listener for Witness {
    fn message(&mut self, _: &str) {}
    fn output(&mut self, _: &str) {}
    fn error(&mut self, _: &str, _: &str) {}
}

impl Drop for Witness {
    fn drop(&mut self) {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        // The 41st field of proc(5); two came before.
        let policy = fields.split_whitespace().nth(38).unwrap().to_string();
        LEFT.lock().unwrap().push(policy);
    }
}

/// Where workers have all CPUs, the routers of before are taken apart while no worker has anything
/// to do.
#[test]
fn what_was_before_gives_way_to_what_comes() {
    let mut cpus = dataplane::worker::cpus();
    cpus.truncate(2);
    let mut all = CpuSet::new();
    cpus.iter().for_each(|&cpu| all.set(cpu));
    // The threads that it starts have no others, either.
    sched_setaffinity(None, &all).unwrap();
    let workers = cpus.iter().cycle().take(2).map(|&cpu| Some(cpu)).collect();
    let wires = [Wire::new(), Wire::new()];
    let instance = start_on(workers, CHAIN, &wires, Path::Native, || Box::new(Witness));
    instance.change(configuration(CHAIN), Extent::Change).unwrap();
    while LEFT.lock().unwrap().len() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(*LEFT.lock().unwrap(), ["5", "5"]);
}

#[test]
fn a_worker_that_dies_takes_no_one_with_it() {
    let wires = [Wire::new(), Wire::new()];
    let instance = start(CHAIN, &wires, Path::Synthesised);
    let answer: Option<()> = instance.fleet().call(1, |_| panic!("told to"));
    assert_eq!(answer, None);
    assert_eq!(instance.fleet().call(1, |_| ()), None, "nobody waits for the dead");
    assert_eq!(instance.fleet().call(0, |_| ()), Some(()));
    assert!(instance.change(configuration(CHAIN), Extent::Change).is_err());
}

/// A translator with this pattern.
fn translator(pattern: &str) -> String {
    format!(
        "FromDevice(in) -> Strip(14) -> MarkIPHeader -> nat :: IPRewriter(pattern {pattern} 0 0)
           -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(out);"
    )
}

#[test]
fn workers_give_out_different_ports() {
    let wires = [Wire::new(), Wire::new(), Wire::new()];
    wires.iter().for_each(|wire| wire.open());
    let text = translator("1.0.0.1 20000-20299# - -");
    let instance = start(&text, &wires, Path::Synthesised);
    wires.iter().for_each(|wire| run(wire, 2 * FLOWS));
    instance.change(configuration(&text), Extent::Change).unwrap();
    wires.iter().for_each(|wire| run(wire, 2 * FLOWS));
    drain(&instance, &wires);
    for (worker, wire) in wires.iter().enumerate() {
        assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
        let (ports, first) = (wire.ports(), 20_000 + 100 * worker as u16);
        assert_eq!(ports.len() as u64, FLOWS);
        assert!(ports.values().all(|port| (first..first + 100).contains(port)), "{ports:?}");
    }
}

/// Each worker has its own cells; programs, elements and the chain that replaces another go on with them.
#[test]
fn workers_count_their_own_packets() {
    let text =
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> e :: GREEncap(0x0800, SEQUENCE true)
        -> t :: Tee -> Strip(8)
        -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(out);
        t[1] -> d :: Discard;";
    for path in [Path::Synthesised, Path::Native] {
        let wires = [Wire::new(), Wire::new()];
        wires.iter().for_each(|wire| wire.open());
        let instance = start(text, &wires, path);
        wires.iter().zip([2, 7]).for_each(|(wire, times)| run(wire, times * FLOWS));
        instance.change(configuration(text), Extent::Change).unwrap();
        wires.iter().zip([5, 3]).for_each(|(wire, times)| run(wire, times * FLOWS));
        drain(&instance, &wires);
        let mut all = 0;
        for (worker, wire) in wires.iter().enumerate() {
            assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
            let taken = wire.taken.load(Ordering::SeqCst);
            let next =
                |router: &mut Router| router.copy(Scope::All).cells("e", "sequence").to_vec();
            assert_eq!(instance.fleet().call(worker, next), Some(vec![taken.into()]));
            all += taken;
        }
        assert_eq!(read(&instance, "d.count"), all.to_string(), "a copy of each packet");
    }
}

#[test]
fn what_cannot_be_shared_out_is_refused_or_warned_of() {
    let wires = [Wire::new(), Wire::new()];
    let instance = start(&translator("1.0.0.1 20000-20299# - -"), &wires, Path::Native);
    let changed =
        instance.change(configuration(&translator("1.0.0.1 5000 - -")), Extent::Check).unwrap();
    assert!(changed.warnings.to_string().contains("workers-collide"), "{}", changed.warnings);
    let changed =
        instance.change(configuration(&translator("- - 1.0.0.1 80")), Extent::Check).unwrap();
    assert!(changed.warnings.is_empty(), "{}", changed.warnings);
    let wires = [Wire::new(), Wire::new(), Wire::new()];
    let instance = start(CHAIN, &wires, Path::Native);
    let few = configuration(&translator("1.0.0.1 20000-20001 - -"));
    let why = instance.change(few, Extent::Check).unwrap_err().to_string();
    assert!(why.contains("too few numbers for 3 workers"), "{why}");
}
