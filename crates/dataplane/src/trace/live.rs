//! Tracing packets through a chain that runs.
//!
//! A tap at each connection by which packets come in looks for them. One that is chosen goes
//! through the elements' native code, with all its effects, while the packets behind it wait; what
//! models and programs would say of it is asked for on copies. Where an element keeps it, it is
//! waited for: it carries a trace id, which nothing reads while no packet is traced.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use elements::selector::Selector;
use ir::{NodeId, Port, Program};
use net::{Batch, Packet};

use super::{Journey, Step};
use crate::{Router, Stage, StageContext, Taker, Tap};

/// A packet's path through the chain.
#[derive(Clone, Debug)]
pub struct TracedPacket {
    /// The number of the place where it came in.
    pub place: u32,
    /// The worker.
    pub worker: u32,
    /// The visits, in their order.
    pub steps: Vec<Step>,
    /// Why it was not traced to its end, if it was not; where it was then, it was kept last.
    pub unfinished: Option<&'static str>,
}

/// Which packets are traced, and who hears of it.
pub struct Tracing<M> {
    /// Which packets.
    pub selector: Selector,
    /// How many more.
    pub left: Arc<AtomicU64>,
    /// What the chain became.
    pub programs: Arc<[Program]>,
    /// Hears of each.
    pub to: Sender<M>,
}

impl<M> Clone for Tracing<M> {
    fn clone(&self) -> Self {
        Self {
            selector: self.selector.clone(),
            left: Arc::clone(&self.left),
            programs: Arc::clone(&self.programs),
            to: self.to.clone(),
        }
    }
}

impl<M: From<TracedPacket> + 'static> Tracing<M> {
    /// Traces what comes in by a connection of a worker's router. What is pulled over it is not
    /// traced. `None` if there is no such connection.
    pub fn tap(
        self,
        router: &mut Router,
        (from, to): (Port, Port),
        place: u32,
        worker: u32,
    ) -> Option<Tap> {
        router.taps().insert_stage(from, to, |tap| Inlet { tracing: self, tap, place, worker })
    }
}

struct Inlet<M> {
    tracing: Tracing<M>,
    tap: NodeId,
    place: u32,
    worker: u32,
}

impl<M> Inlet<M> {
    /// Whether one more is to be traced.
    fn take(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.tracing.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

impl<M: From<TracedPacket> + 'static> Inlet<M> {
    /// The journey of a packet that is chosen.
    fn journey(&self) -> Journey {
        let (to, place, worker) = (self.tracing.to.clone(), self.place, self.worker);
        let tell = move |steps: Vec<Step>, unfinished: Option<&'static str>| {
            // Nobody may listen any more.
            let _ = to.send(M::from(TracedPacket { place, worker, steps, unfinished }));
        };
        Journey::new(self.tap, Arc::clone(&self.tracing.programs), Box::new(tell))
    }
}

impl<M: From<TracedPacket> + 'static> Stage for Inlet<M> {
    fn process(&mut self, batch: &mut Batch, cx: &mut StageContext<'_>) {
        let Tracing { selector, left, .. } = &self.tracing;
        let Some(next) = cx.behind_tap(self.tap) else { return };
        let mut packets = cx.core.batch();
        packets.append(batch);
        let chosen = |batch: &Batch, cx: &StageContext<'_>| {
            let some = left.load(Ordering::Relaxed) > 0 && cx.can_trace();
            // A packet that another trace has stays with that.
            let chosen = |packet: &Packet| !cx.is_traced(packet) && selector.chooses(packet);
            some.then(|| batch.iter().position(chosen)).flatten()
        };
        while let Some(at) = chosen(&packets, cx).filter(|_| self.take()) {
            let mut behind = cx.core.batch();
            packets.split_to(at, &mut behind);
            let mut all = behind.drain();
            let traced = all.next();
            let mut rest = cx.core.batch();
            all.for_each(|packet| rest.push(packet));
            cx.core.recycle_batch(behind);
            cx.carry(next, packets);
            packets = rest;
            if let Some(packet) = traced {
                cx.begin_trace(next, packet, self.journey());
            }
        }
        if packets.is_empty() {
            cx.core.recycle_batch(packets);
        } else {
            cx.push(next, packets, Taker::Stage, 0);
        }
    }
}
