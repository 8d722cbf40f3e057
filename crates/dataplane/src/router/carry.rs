//! Carrying packets from element to element, or to the stage that stands there.

use elements::context::{Context, Core};
use ir::Port;
use net::Batch;

use super::cycles::{LOOP, Laps};
use super::{Cell, Delivery, Nodes, UNCONNECTED, drop_all};
use crate::latency::Of;
use crate::pipeline::Arrival;

impl Nodes {
    /// Carries everything on the stack to the end of its way.
    #[inline]
    pub(super) fn carry(&mut self, core: &mut Core) {
        if self.stack.is_empty() {
            return;
        }
        match self.sampler.is_due() {
            false => self.carry_all::<false>(core),
            true => self.carry_all::<true>(core),
        }
        self.laps = Laps::default();
    }

    /// The same, timed or not.
    fn carry_all<const TIMED: bool>(&mut self, core: &mut Core) {
        let mut timing = TIMED.then(|| self.sampler.begin());
        while let Some(Delivery { to, batch, native, laps }) = self.stack.pop() {
            self.laps.now = laps;
            let mut next = Some((to, batch, native));
            while let Some((to, batch, native)) = next.take() {
                if !self.journeys.is_empty() {
                    next = self.carry_watched(core, to, batch, native);
                    continue;
                }
                let packets = batch.len() as u64;
                match self.stage(to, native) {
                    Some(stage) => {
                        self.enter(core, stage, batch);
                        if let Some(timing) = &mut timing {
                            let elements = self.stages.elements(stage);
                            // One that begins at a tap is called after what comes behind that.
                            let at = (Of::Program, self.behind_taps(to));
                            let leaves = self.nodes[to.node].to.is_empty();
                            self.sampler.passed(timing, at, elements, (packets, leaves));
                        }
                    }
                    None => {
                        let on = self.visit::<false>(core, to, batch);
                        next = on.map(|(to, batch)| (to, batch, false));
                        if let Some(timing) = &mut timing
                            && to.node < self.elements
                        {
                            let leaves = self.nodes[to.node].to.is_empty();
                            let element = std::iter::once(to.node);
                            let at = (Of::Element, to);
                            self.sampler.passed(timing, at, element, (packets, leaves));
                        }
                    }
                }
            }
        }
        if TIMED {
            self.sampler.end();
        }
    }

    /// Takes a delivery through elements' own code at once, up to where packets may wait for their turn; gives what came
    /// there, in order, and whether that may not wait all the same. While packets are followed, nothing is taken
    /// anywhere.
    pub(super) fn run_ahead(
        &mut self,
        core: &mut Core,
        delivery: Delivery,
        arrivals: &[Arrival],
        out: &mut Vec<Delivery>,
    ) -> bool {
        let (base, laps, turns) = (self.stack.len(), self.laps.now, self.laps.turns);
        let arrival = |to: Port| arrivals.get(to.node).copied().unwrap_or(Arrival::Waits);
        let mut ended = !self.journeys.is_empty() || arrival(delivery.to) != Arrival::Runs;
        if ended {
            out.push(delivery);
            return ended;
        }
        self.laps.turns += delivery.laps;
        self.stack.push(Delivery { laps: laps + delivery.laps, ..delivery });
        while self.stack.len() > base
            && let Some(next) = self.stack.pop()
        {
            let arrival = if ended { Arrival::Waits } else { arrival(next.to) };
            ended |= arrival == Arrival::Ends;
            if arrival != Arrival::Runs {
                out.push(Delivery { laps: next.laps - laps, ..next });
                continue;
            }
            self.laps.now = next.laps;
            if let Some((to, batch)) = self.visit::<false>(core, next.to, next.batch) {
                let laps = self.laps.now;
                self.stack.push(Delivery { to, batch, native: false, laps });
            }
        }
        // Those of what waits are counted when it is sent.
        let later: u32 = out.iter().map(|delivery| delivery.laps).sum();
        self.laps.turns = self.laps.turns.saturating_sub(later).max(turns);
        self.laps.now = laps;
        ended
    }

    /// Carries a delivery on while packets are followed.
    #[cold]
    fn carry_watched(
        &mut self,
        core: &mut Core,
        to: Port,
        mut batch: Batch,
        native: bool,
    ) -> Option<(Port, Batch, bool)> {
        let native = self.single_out(core, to, &mut batch, native);
        match self.stage(to, native) {
            Some(stage) => {
                self.enter(core, stage, batch);
                None
            }
            None => {
                let on = self.visit::<true>(core, to, batch);
                on.map(|(to, batch)| (to, batch, false))
            }
        }
    }

    /// Pushes a batch into an element; what stays and has nothing emitted before it is returned.
    #[inline]
    fn visit<const WATCHED: bool>(
        &mut self,
        core: &mut Core,
        to: Port,
        mut batch: Batch,
    ) -> Option<(Port, Batch)> {
        let node = to.node;
        let lost = self.goes_round(node);
        let mut cell = self.nodes[node].cell.take().expect("elements are visited one at a time");
        let before = if WATCHED { self.look_at(&cell, Some(&batch)) } else { None };
        let Cell { element, outputs, tally } = &mut *cell;
        if lost {
            for packet in batch.drain() {
                tally.drop(LOOP, packet.len());
                core.pool.recycle(packet);
            }
        } else {
            let mut cx = Context::new(core, tally, outputs, self, node);
            element.push(to.port, &mut batch, &mut cx);
        }
        if let Some(before) = before {
            let stay = batch.iter_mut().map(|packet| (0, packet));
            self.look_back(core, node, &mut cell, stay, &before);
        }
        let mut next = None;
        if batch.is_empty() {
            core.recycle_batch(batch);
        } else {
            match self.nodes[node].leave(0, batch.len()) {
                Some(to) if cell.outputs.is_empty() => next = Some((to, batch)),
                Some(to) => {
                    let laps = self.laps.now;
                    self.stack.push(Delivery { to, batch, native: false, laps });
                }
                None => drop_all(core, &mut cell.tally, batch, UNCONNECTED),
            }
        }
        self.collect(core, node, &mut cell);
        self.nodes[node].cell = Some(cell);
        next
    }
}
