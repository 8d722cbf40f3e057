//! Devices whose frames are numbered, and chains that run on them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catena_engine::Error;
use catena_engine::instance::{Configuration, Instance, Options};
use catena_engine::session::Path;
use dataplane::ports::{Opener, Ports};
use dataplane::{Listener, Router, Transcript};
use elements::device::{Device, DeviceRequest, Received};
use net::{Batch, Packet, Pool};

/// How many flows there are.
pub const FLOWS: u64 = 50;

/// What goes in and comes out.
#[derive(Default)]
pub struct Wire {
    /// Frames that were received, and the most that there are to receive.
    pub taken: AtomicU64,
    pub limit: AtomicU64,
    /// Frames that were sent.
    pub sent: AtomicU64,
    pub seen: Mutex<Seen>,
}

/// What came out.
#[derive(Default)]
pub struct Seen {
    /// By flow the number of its next packet, and the source port that all of them have.
    flows: HashMap<u16, (u64, u16)>,
    pub wrong: Vec<String>,
}

impl Wire {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Lets frames flow, as many as there is time for.
    pub fn open(&self) {
        self.limit.store(u64::MAX, Ordering::SeqCst);
    }

    /// Lets no further frame in.
    pub fn close(&self) {
        self.limit.store(0, Ordering::SeqCst);
    }

    /// Number of flows that came out, each with the source port that it got.
    pub fn ports(&self) -> HashMap<u16, u16> {
        let seen = self.seen.lock().unwrap();
        seen.flows.iter().map(|(&flow, &(_, port))| (flow, port)).collect()
    }
}

/// The frame of a number: a UDP packet of one flow of many, with the place that it has in its flow
/// as payload.
fn frame(number: u64) -> Vec<u8> {
    let (flow, place) = (number % FLOWS, number / FLOWS);
    let mut bytes = vec![2; 12];
    bytes.extend([8, 0]);
    bytes.extend([0x45, 0, 0, 36, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 20, 0, 0, 1]);
    let sum = net::checksum::checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.extend((5000 + flow as u16).to_be_bytes());
    // The destination port tells the flow when the source port was rewritten.
    bytes.extend((1000 + flow as u16).to_be_bytes());
    bytes.extend([0, 16, 0, 0]);
    bytes.extend(place.to_be_bytes());
    bytes
}

impl Seen {
    fn add(&mut self, packet: &Packet) {
        let bytes = packet.data();
        let Some(&[a, b, c, d]) = bytes.get(34..38) else {
            self.wrong.push(format!("{bytes:02x?}"));
            return;
        };
        let (port, flow) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let place =
            bytes.get(42..50).map_or(u64::MAX, |p| u64::from_be_bytes(p.try_into().unwrap()));
        let (next, own) = self.flows.entry(flow).or_insert((0, port));
        if (*next, *own) != (place, port) && self.wrong.len() < 10 {
            let expected = (*next, *own);
            self.wrong.push(format!("flow {flow}: {place} of port {port}, not {expected:?}"));
        }
        *next = place + 1;
    }
}

/// `in` receives numbered frames, `out` checks them.
pub struct Wired(pub Arc<Wire>);

struct End(Arc<Wire>);

impl Device for End {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let number = self.0.taken.load(Ordering::SeqCst);
        let left = self.0.limit.load(Ordering::SeqCst).saturating_sub(number);
        for i in 0..left.min(burst as u64) {
            batch.push(pool.packet(&frame(number + i)));
        }
        self.0.taken.fetch_add(left.min(burst as u64), Ordering::SeqCst);
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        let mut seen = self.0.seen.lock().unwrap();
        batch.iter().for_each(|packet| seen.add(packet));
        self.0.sent.fetch_add(batch.len() as u64, Ordering::SeqCst);
        pool.recycle_all(batch);
        Ok(())
    }
}

impl Opener for Wired {
    fn open(&mut self, _: &str, request: &DeviceRequest) -> Result<Box<dyn Device + Send>, String> {
        match request {
            DeviceRequest::Interface { name, .. } if name.starts_with("no") => {
                Err(format!("there is no {name}"))
            }
            _ => Ok(Box::new(End(Arc::clone(&self.0)))),
        }
    }

    fn create(&mut self, _: &str) -> Result<Box<dyn std::io::Write + Send>, String> {
        Ok(Box::new(std::io::sink()))
    }
}

pub fn configuration(text: &str) -> Configuration {
    Configuration::of_text("test", text, &Default::default()).expect("it can be read")
}

/// A chain that runs on as many workers as there are wires.
pub fn start(text: &str, wires: &[Arc<Wire>], path: Path) -> Instance {
    let cpus = vec![None; wires.len()];
    start_on(cpus, text, wires, path, || Box::new(Transcript::default()))
}

/// The same on these CPUs, and told to such a listener.
pub fn start_on(
    cpus: Vec<Option<usize>>,
    text: &str,
    wires: &[Arc<Wire>],
    path: Path,
    listener: fn() -> Box<dyn Listener>,
) -> Instance {
    let options = Options { cpus, listener, ..options(path) };
    start_with(options, text, wires, |_| Ok(()))
}

/// Options for a worker.
pub fn options(path: Path) -> Options {
    Options {
        seed: 1,
        path,
        patience: Duration::MAX,
        listener: || Box::new(Transcript::default()),
        ..Options::default()
    }
}

/// A chain with such options, each of whose routers something is done to before it runs.
pub fn start_with(
    options: Options,
    text: &str,
    wires: &[Arc<Wire>],
    ready: fn(&mut Router) -> Result<(), String>,
) -> Instance {
    let ports = wires.iter().map(|wire| Ports::new(Box::new(Wired(Arc::clone(wire))))).collect();
    let staged = Instance::stage(configuration(text), ports, options, ready);
    let staged = staged.unwrap_or_else(|why: Error| panic!("{why}"));
    staged.begin().expect("it begins")
}

/// Lets workers carry packets until so many more came in.
pub fn run(wire: &Wire, packets: u64) {
    let until = wire.taken.load(Ordering::SeqCst) + packets;
    while wire.taken.load(Ordering::SeqCst) < until {
        std::thread::yield_now();
    }
}

/// Lets no further frame in, and all that came in come out.
pub fn drain(instance: &Instance, wires: &[Arc<Wire>]) {
    wires.iter().for_each(|wire| wire.close());
    // Each answer comes a round later at the earliest.
    let held = || -> usize { instance.fleet().holdings().values().map(|h| h.packets).sum() };
    while held() > 0 {}
}

/// What a handler reads on all workers.
pub fn read(instance: &Instance, handler: &str) -> String {
    instance.read(handler).expect(handler)
}
