use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use catena_engine::Error;
use catena_engine::instance::{Configuration, Extent, Instance, TapPoint, Tapping, Watcher};
use catena_engine::session::Path;
use dataplane::capture::{Capture, Captured};
use dataplane::ports::InUse;
use dataplane::{Router, Tap};
use elements::selector::Selector;

use crate::support::{FLOWS, Wire, configuration, drain, read, run, start};

/// Captures on one connection.
struct Watch {
    between: [&'static str; 2],
    capture: Capture<Vec<Captured>>,
    ended: Mutex<Vec<String>>,
}

impl Watcher for Watch {
    fn places(&self, configuration: &Configuration, _: &InUse) -> Result<Vec<TapPoint>, Error> {
        let graph = &configuration.chain().graph;
        let [from, to] = self.between.map(|name| graph.find(name));
        let meant = |edge: &&ir::Edge| (Some(edge.from.node), Some(edge.to.node)) == (from, to);
        let edge = graph.edges.iter().find(meant).ok_or("it is gone")?;
        let (name, landmark) = (String::new(), String::new());
        Ok(vec![TapPoint { from: edge.from, to: edge.to, name, landmark }])
    }

    fn begins(&self, _: u32, _: &[TapPoint]) {}

    fn tap(&self, router: &mut Router, place: &TapPoint, number: u32, worker: u32) -> Option<Tap> {
        let point = self.capture.clone().point(number, worker);
        router.taps().insert(place.from, place.to, point)
    }

    fn ends(&self, why: &str) {
        self.ended.lock().unwrap().push(why.to_string());
    }
}

fn watch(between: [&'static str; 2], filter: &str) -> (Arc<Watch>, Receiver<Vec<Captured>>) {
    let (to, from): (Sender<_>, _) = channel();
    let selector = Selector::new(filter).unwrap();
    let capture = Capture { selector, snap_length: 1 << 16, counts: Arc::default(), to };
    (Arc::new(Watch { between, capture, ended: Mutex::default() }), from)
}

/// A translator; all but the queue becomes one program.
fn chain(middle: &str) -> String {
    format!(
        "FromDevice(in) -> Strip(14) -> s :: MarkIPHeader
           -> f :: IPFilter(allow all)
           -> nat :: IPRewriter(pattern 1.0.0.1 20000-30000# - - 0 0)
           -> c :: Counter {middle}
           -> e :: EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)
           -> q :: Queue(5000) -> out :: ToDevice(out);"
    )
}

/// What was captured, checked to be all there was between its first packet and its last: by
/// flow, the source address and port, and the places of its packets.
fn flows(all: &[Captured], start: usize) -> HashMap<u16, (Vec<u8>, Vec<u64>)> {
    let mut flows: HashMap<u16, (Vec<u8>, Vec<u64>)> = HashMap::new();
    for packet in all {
        let ip = &packet.data[start..];
        let flow = u16::from_be_bytes([ip[22], ip[23]]);
        let source = [&ip[12..16], &ip[20..22]].concat();
        let place = u64::from_be_bytes(ip[28..36].try_into().unwrap());
        let (own, places) = flows.entry(flow).or_insert((source.clone(), Vec::new()));
        assert_eq!(*own, source, "flow {flow}");
        if let Some(last) = places.last() {
            assert_eq!(place, last + 1, "flow {flow}");
        }
        places.push(place);
        assert_eq!(net::checksum::checksum(&ip[..20]), 0, "a wrong sum");
    }
    flows
}

fn taken(from: &Receiver<Vec<Captured>>) -> Vec<Captured> {
    from.try_iter().flatten().collect()
}

#[track_caller]
fn captured(instance: &Instance, wire: &Wire, path: Path) {
    // Where the program began, where elements were fused, and where packets are pulled.
    let edges = [["s", "f"], ["nat", "c"], ["q", "out"]];
    let starts = [0, 0, 14];
    let watches: Vec<_> = edges.map(|edge| watch(edge, "src or dst host 20.0.0.1")).into();
    let tap = |(watch, _): &(Arc<Watch>, _)| instance.tap(Arc::clone(watch) as _).ok().unwrap();
    let tapping: Vec<Tapping<'_>> = watches.iter().map(tap).collect();
    run(wire, 20 * FLOWS);
    // It goes on in another configuration, and in that of before.
    for _ in 0..2 {
        instance
            .change(configuration(&chain("-> d :: Counter -> CheckIPHeader")), Extent::Change)
            .unwrap();
        run(wire, 20 * FLOWS);
        instance.roll_back(Extent::Change).unwrap();
        run(wire, 20 * FLOWS);
    }
    drop(tapping);
    let mut all = Vec::new();
    for ((watch, from), start) in watches.iter().zip(starts) {
        let packets = taken(from);
        let chosen = watch.capture.counts.chosen.load(Ordering::Relaxed);
        assert_eq!(chosen, packets.len() as u64, "{path:?}");
        let flows = flows(&packets, start);
        assert_eq!(flows.len() as u64, FLOWS, "{path:?}");
        assert!(flows.values().all(|(_, places)| places.len() >= 100), "{path:?}");
        all.push(flows);
    }
    // Before the translator and behind it.
    let source = |flows: &HashMap<u16, (Vec<u8>, Vec<u64>)>, flow: u16| flows[&flow].0.clone();
    let port = |flow: u16| [&[10, 0, 0, 1][..], &(4000 + flow).to_be_bytes()].concat();
    assert!(all[0].keys().all(|&flow| source(&all[0], flow) == port(flow)));
    assert!(all[1].keys().all(|&flow| source(&all[1], flow)[..4] == [1, 0, 0, 1]));
    assert!(all[1].keys().all(|&flow| source(&all[1], flow) == source(&all[2], flow)));
}

/// Every packet of a connection is captured once and in order, as it is there, while the chain
/// runs, is changed and is changed back; and none is lost for that.
#[test]
fn what_passes_is_captured() {
    for path in [Path::Synthesised, Path::Native, Path::SynthesisedInterpreted] {
        let wire = Wire::new();
        let wires = [Arc::clone(&wire)];
        wire.open();
        let instance = start(&chain(""), &wires, path);
        run(&wire, 5 * FLOWS);
        captured(&instance, &wire, path);
        drain(&instance, &wires);
        let (taken, sent) = (wire.taken.load(Ordering::SeqCst), wire.sent.load(Ordering::SeqCst));
        assert_eq!(wire.seen.lock().unwrap().wrong, Vec::<String>::new());
        assert_eq!((taken, read(&instance, "c.count")), (sent, taken.to_string()));
    }
}

#[test]
fn filters_choose_and_several_captures_share_a_connection() {
    let wire = Wire::new();
    let instance = start(&chain(""), &[Arc::clone(&wire)], Path::Synthesised);
    let of = |filter: &str| {
        let (watch, from) = watch(["nat", "c"], filter);
        (instance.tap(watch).ok().unwrap(), from)
    };
    let (all, one, none) = (of(""), of("udp dst port 1007"), of("tcp"));
    let let_in = |packets: u64| {
        wire.limit.store(packets, Ordering::SeqCst);
        // A worker that found nothing sleeps until it is asked something.
        while wire.sent.load(Ordering::SeqCst) < packets {
            read(&instance, "c.count");
        }
    };
    let_in(10 * FLOWS);
    // The one in the middle is taken out first.
    let from = [one, all, none].map(|(tapping, from)| {
        drop(tapping);
        from
    });
    let_in(11 * FLOWS);
    let counts = from.map(|from| taken(&from).len() as u64);
    assert_eq!(counts, [10, 10 * FLOWS, 0]);
}

#[test]
fn a_connection_that_goes_ends_the_capture() {
    let wire = Wire::new();
    let instance = start(&chain(""), &[Arc::clone(&wire)], Path::Synthesised);
    let (gone, _from) = watch(["s", "nowhere"], "");
    assert_eq!(instance.tap(gone).err().map(|why| why.to_string()).as_deref(), Some("it is gone"));
    let (watch, _from) = watch(["c", "e"], "");
    let tapping = instance.tap(Arc::clone(&watch) as Arc<dyn Watcher>).ok().unwrap();
    instance.change(configuration(&chain("-> d :: Counter")), Extent::Change).unwrap();
    assert_eq!(*watch.ended.lock().unwrap(), ["it is gone"]);
    drop(tapping);
}
