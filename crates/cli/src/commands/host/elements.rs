//! `catena host elements`: a network function of Catena's own elements, in a process like any other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::process::ExitCode;
use std::rc::Rc;

use dataplane::clock::RealClock;
use dataplane::{ProgramUse, Rest, Router};
use elements::configure::{Devices, WorkerShare};
use elements::device::{Device, DeviceRequest, Received};
use elements::process::ProcessSpec;
use engine::Disk;
use engine::session::{self, Path, Setup};
use ir::{Sources, has_errors};
use net::{Batch as Frames, Pool};
use nf::{Batch, NetworkFunction, Reason};
use view::diagnostics;

/// Rounds of the chain's scheduler for one batch, at the most.
const MOST_ROUNDS: u32 = 64;

/// A frame: its place in the batch, when it came, and where its bytes are.
type Frame = (usize, u64, Range<usize>);

/// What goes into the elements, and what comes out of them.
#[derive(Default)]
struct Exchange {
    /// Frames that are to come in, the last first.
    incoming: Vec<Frame>,
    /// Which packet of the batch is in which buffer.
    places: HashMap<usize, usize>,
    /// Frames that came out.
    left: Vec<Frame>,
    /// The bytes of all of them.
    bytes: Vec<u8>,
}

impl Exchange {
    fn add(&mut self, bytes: &[u8]) -> Range<usize> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        begin..self.bytes.len()
    }
}

struct Port(Rc<RefCell<Exchange>>);

impl Device for Port {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Frames,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let exchange = &mut *self.0.borrow_mut();
        for _ in 0..burst {
            let Some((place, time, bytes)) = exchange.incoming.pop() else { break };
            let mut packet = pool.packet(&exchange.bytes[bytes]);
            packet.set_timestamp(time);
            exchange.places.insert(packet.identity(), place);
            batch.push(packet);
        }
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Frames, pool: &mut Pool) -> Result<(), String> {
        let exchange = &mut *self.0.borrow_mut();
        for packet in batch.drain() {
            // Others are none of the batch: copies, replies, and such as waited in a queue.
            if let Some(place) = exchange.places.remove(&packet.identity()) {
                let bytes = exchange.add(packet.data());
                exchange.left.push((place, packet.timestamp(), bytes));
            }
            pool.recycle(packet);
        }
        Ok(())
    }
}

struct Ports(Rc<RefCell<Exchange>>);

impl Devices for Ports {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        match request {
            DeviceRequest::Interface { .. } => Ok(Box::new(Port(Rc::clone(&self.0)))),
            _ => Err("elements of a host chain read and write no captures: its `io:` does".into()),
        }
    }

    fn start(&mut self, spec: &ProcessSpec) -> Result<Box<dyn std::any::Any>, String> {
        Err(format!("{}: elements of a host chain start no programs: its `nfs:` do", spec.element))
    }

    fn create(&mut self, path: &str) -> Result<Box<dyn std::io::Write>, String> {
        Err(format!("{path}: elements of a host chain write no files"))
    }
}

struct Elements {
    router: Router,
    exchange: Rc<RefCell<Exchange>>,
    dropped: Reason,
    read_only: Reason,
}

impl NetworkFunction for Elements {
    fn init(config: &str, setup: &mut nf::Setup) -> Result<Self, String> {
        let exchange = Rc::new(RefCell::new(Exchange::default()));
        let mut sources = Sources::new();
        let text = format!("FromDevice(in) -> {{ {config}\n }} -> ToDevice(out);");
        let file = sources.add("elements", text);
        let how = Setup {
            part: WorkerShare::default(),
            files: &mut Disk::default(),
            devices: &mut Ports(Rc::clone(&exchange)),
            clock: Box::new(RealClock::new()),
            listener: crate::log::Log::Text.listener()(),
            seed: session::system_seed(),
            path: Path::Synthesised,
            background: None,
            program_use: ProgramUse::WhereFaster,
            cut: None,
            unproven: false,
        };
        let mut found = Vec::new();
        let started = session::start(&mut sources, file, Vec::new(), how, &mut found);
        match started.filter(|_| !has_errors(&found)) {
            Some((_, router)) => Ok(Self {
                router,
                exchange,
                dropped: setup.reason("dropped-by-elements"),
                read_only: setup.reason("changed-but-writes-none"),
            }),
            None => Err(diagnostics::render(&found, &sources, false)),
        }
    }

    fn process(&mut self, batch: &mut Batch) {
        {
            let exchange = &mut *self.exchange.borrow_mut();
            exchange.places.clear();
            exchange.left.clear();
            exchange.bytes.clear();
            for place in (0..batch.len()).rev() {
                let Some(packet) = batch.packet(place) else { continue };
                let bytes = exchange.add(packet.bytes());
                exchange.incoming.push((place, packet.time(), bytes));
            }
        }
        for _ in 0..MOST_ROUNDS {
            let is_taken = self.exchange.borrow().incoming.is_empty();
            if self.router.round() != Rest::Busy && is_taken {
                break;
            }
        }
        let exchange = &mut *self.exchange.borrow_mut();
        // What no element took, as one of them stopped the chain.
        exchange.incoming.clear();
        let dropped = self.dropped;
        batch.for_each(|packet| packet.drop(dropped));
        for (place, _, bytes) in &exchange.left {
            let bytes = &exchange.bytes[bytes.clone()];
            let Some(mut packet) = batch.packet(*place) else { continue };
            if packet.bytes() == bytes {
                packet.pass();
                continue;
            }
            let room = packet.headroom() + packet.bytes().len();
            // Headers came or went in front: what is behind stays where it was.
            let more = bytes.len() as isize - packet.bytes().len() as isize;
            let fits = match usize::try_from(more) {
                Ok(more) if more <= packet.headroom() => packet.push(more),
                Ok(_) => packet.resize(bytes.len()),
                Err(_) => bytes.len() < room && packet.pull(more.unsigned_abs()),
            };
            match packet.bytes_mut().filter(|_| fits || more == 0) {
                Some(to) if to.len() == bytes.len() => {
                    to.copy_from_slice(bytes);
                    packet.pass();
                }
                _ => packet.drop(self.read_only),
            }
        }
    }
}

/// Runs the command.
pub(crate) fn main() -> ExitCode {
    nf::main::<Elements>()
}
