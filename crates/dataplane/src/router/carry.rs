//! Carrying packets from element to element, or to the stage that stands there.

use elements::context::{Context, WorkerResources};
use ir::program::{Continuation, Program};
use ir::{NodeId, Port};
use net::Batch;

use super::cycles::{LOOP, LoopCount};
use super::program_use::Timed;
use super::{Cell, Nodes, UNCONNECTED, drop_all};
use crate::latency::Of;
use crate::pipeline::Arrival;

/// What takes packets that come to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taker {
    /// The stage that stands there, or the element's native code if none does.
    Stage,
    /// The element's native code.
    Element,
    /// The part of the input's program that goes on here, or the element's native code if there is none.
    Continuation(Continuation),
}

impl Taker {
    /// What takes packets that a program, or a part of it, is to take.
    pub(crate) fn of(program: &Program) -> Self {
        program.continuation.map_or(Taker::Stage, Taker::Continuation)
    }
}

/// A batch on its path.
pub(crate) struct Delivery {
    pub(crate) to: Port,
    pub(crate) batch: Batch,
    pub(crate) taker: Taker,
    /// How often it came to the beginning of a cycle.
    pub(crate) loops: u32,
}

impl Nodes {
    /// Carries everything on the stack to the end of its path.
    #[inline]
    pub(super) fn carry(&mut self, core: &mut WorkerResources) {
        if self.stack.is_empty() {
            return;
        }
        match self.sampler.is_due() {
            false => self.carry_all::<false>(core),
            true => self.carry_all::<true>(core),
        }
        self.loops = LoopCount::default();
    }

    /// The same, timed or not.
    fn carry_all<const TIMED: bool>(&mut self, core: &mut WorkerResources) {
        let mut timing = TIMED.then(|| self.sampler.begin());
        let mut timed: Option<Timed> = None;
        while let Some(Delivery { to, mut batch, taker, loops }) = self.stack.pop() {
            self.loops.now = loops;
            let mut next = Some((to, taker));
            while let Some((to, taker)) = next {
                if !self.journeys.is_empty() {
                    let on = self.carry_watched(core, to, &mut batch, taker);
                    next = on.map(|to| (to, Taker::Stage));
                    continue;
                }
                let packets = if TIMED { batch.len() as u64 } else { 0 };
                match self.choose_stage(to, taker, batch.len(), &mut timed) {
                    Some(stage) => {
                        self.enter(core, stage, &mut batch);
                        next = None;
                        if let Some(timing) = &mut timing {
                            let elements = self.stages.elements(stage);
                            // One that begins at a tap is called after what comes behind that.
                            let at = (Of::Program, self.behind_taps(to));
                            let leaves = self.nodes[to.node].to.is_empty();
                            self.sampler.passed(timing, at, elements, (packets, leaves));
                        }
                    }
                    None => {
                        let on = self.visit::<false>(core, to, &mut batch);
                        next = on.map(|to| (to, Taker::Stage));
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
            core.recycle_batch(batch);
            if let Some(burst) = timed.take_if(|burst| burst.is_over(self.stack.len())) {
                self.was_timed(&burst);
            }
        }
        if TIMED {
            self.sampler.end();
        }
    }

    /// Takes a delivery through elements' native code at once, up to where packets may wait for their turn; gives what came
    /// there, in order, and whether that may not wait all the same. While packets are traced, nothing is taken
    /// anywhere.
    pub(super) fn run_ahead(
        &mut self,
        core: &mut WorkerResources,
        delivery: Delivery,
        arrivals: &[Arrival],
        out: &mut Vec<Delivery>,
    ) -> bool {
        let (base, loops, turns) = (self.stack.len(), self.loops.now, self.loops.turns);
        let arrival = |to: Port| arrivals.get(to.node).copied().unwrap_or(Arrival::Waits);
        let goes_on = matches!(delivery.taker, Taker::Continuation(_));
        let mut ended =
            !self.journeys.is_empty() || goes_on || arrival(delivery.to) != Arrival::Runs;
        if ended {
            out.push(delivery);
            return ended;
        }
        self.loops.turns += delivery.loops;
        self.stack.push(Delivery { loops: loops + delivery.loops, ..delivery });
        while self.stack.len() > base
            && let Some(next) = self.stack.pop()
        {
            let arrival = if ended { Arrival::Waits } else { arrival(next.to) };
            ended |= arrival == Arrival::Ends;
            if arrival != Arrival::Runs {
                out.push(Delivery { loops: next.loops - loops, ..next });
                continue;
            }
            let Delivery { to, mut batch, loops, .. } = next;
            self.loops.now = loops;
            match self.visit::<false>(core, to, &mut batch) {
                Some(to) => {
                    let loops = self.loops.now;
                    self.stack.push(Delivery { to, batch, taker: Taker::Stage, loops });
                }
                None => core.recycle_batch(batch),
            }
        }
        // Those of what waits are counted when it is sent.
        let later: u32 = out.iter().map(|delivery| delivery.loops).sum();
        self.loops.turns = self.loops.turns.saturating_sub(later).max(turns);
        self.loops.now = loops;
        ended
    }

    /// Carries a batch to one input while packets are traced; where to next, if anything is left
    /// of it.
    #[cold]
    fn carry_watched(
        &mut self,
        core: &mut WorkerResources,
        to: Port,
        batch: &mut Batch,
        taker: Taker,
    ) -> Option<Port> {
        let taker = self.single_out(core, to, batch, taker);
        match self.stage(to, taker) {
            Some(stage) => {
                self.enter(core, stage, batch);
                None
            }
            None => self.visit::<true>(core, to, batch),
        }
    }

    /// Pushes a batch into an element. Where to next, if packets stay in the batch and nothing was
    /// emitted before them; else the batch is empty.
    #[inline(always)]
    fn visit<const WATCHED: bool>(
        &mut self,
        core: &mut WorkerResources,
        to: Port,
        batch: &mut Batch,
    ) -> Option<Port> {
        let node = to.node;
        let lost = self.goes_round(node);
        let mut cell = self.nodes[node].cell.take().expect("elements are visited one at a time");
        let before = if WATCHED { self.look_at(&cell, Some(batch)) } else { None };
        let Cell { element, outputs, tally } = &mut *cell;
        if lost {
            drop_all(core, tally, batch, LOOP);
        } else {
            let mut cx = Context::new(core, tally, outputs, self, node);
            element.push(to.port, batch, &mut cx);
        }
        if let Some(before) = before {
            let stay = batch.iter_mut().map(|packet| (0, packet));
            self.look_back(core, node, &mut cell, stay, &before);
        }
        let at = &mut self.nodes[node];
        let next = if batch.is_empty() { None } else { at.leave(0, batch.len()) };
        if cell.outputs.is_empty() && (next.is_some() || batch.is_empty()) {
            at.cell = Some(cell);
            return next;
        }
        self.part(core, node, cell, batch, next);
        None
    }

    /// Puts what an element emitted on the stack, above what stays, which is for `next`.
    #[inline(never)]
    fn part(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        mut cell: Box<Cell>,
        batch: &mut Batch,
        next: Option<Port>,
    ) {
        match next {
            Some(to) => {
                let batch = std::mem::replace(batch, core.batch());
                let loops = self.loops.now;
                self.stack.push(Delivery { to, batch, taker: Taker::Stage, loops });
            }
            None => drop_all(core, &mut cell.tally, batch, UNCONNECTED),
        }
        self.collect(core, node, &mut cell);
        self.nodes[node].cell = Some(cell);
    }
}
