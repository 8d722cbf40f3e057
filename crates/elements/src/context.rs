//! What surrounds an element while it works.

use ir::{NodeId, Reason};
use net::{Batch, Packet, Pool};

use crate::element::Verdict;

/// The resources of a worker, which it lends to each element in turn.
pub struct WorkerResources {
    /// Where packets come from and go back to.
    pub pool: Pool,
    /// Nanoseconds since the Unix epoch, read once a round.
    pub now: u64,
    /// The worker's random numbers.
    pub rng: fastrand::Rng,
    batches: Vec<Batch>,
}

impl WorkerResources {
    /// A worker's resources, with the seed of its random numbers.
    pub fn new(seed: u64) -> Self {
        Self { pool: Pool::new(), now: 0, rng: fastrand::Rng::with_seed(seed), batches: Vec::new() }
    }

    /// An empty batch.
    #[inline]
    pub fn batch(&mut self) -> Batch {
        self.batches.pop().unwrap_or_default()
    }

    /// Takes an empty batch back, to use its storage again.
    #[inline]
    pub fn recycle_batch(&mut self, batch: Batch) {
        debug_assert!(batch.is_empty(), "packets would be lost");
        self.batches.push(batch);
    }
}

/// Packets that leave an element, by output, in the order of each one's first packet.
#[derive(Default)]
pub struct Outputs {
    batches: Vec<(usize, Batch)>,
    /// For each output, one past its index in `batches`; 0 if it has none.
    index: Vec<u32>,
}

impl Outputs {
    /// No packets, for an element with this many outputs.
    pub fn new(outputs: usize) -> Self {
        Self { batches: Vec::new(), index: vec![0; outputs] }
    }

    #[inline]
    fn emit(&mut self, port: usize, packet: Packet, core: &mut WorkerResources) {
        let slot = &mut self.index[port];
        if *slot == 0 {
            self.batches.push((port, core.batch()));
            *slot = self.batches.len() as u32;
        }
        self.batches[*slot as usize - 1].1.push(packet);
    }

    #[inline]
    fn emit_all(&mut self, port: usize, batch: &mut Batch, core: &mut WorkerResources) {
        let slot = &mut self.index[port];
        if *slot == 0 {
            // The usual case: the storage changes hands, no packet moves.
            self.batches.push((port, std::mem::replace(batch, core.batch())));
            *slot = self.batches.len() as u32;
        } else {
            self.batches[*slot as usize - 1].1.append(batch);
        }
    }

    /// Whether nothing was emitted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// What was emitted, by output.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Batch)> {
        self.batches.iter_mut().map(|(port, batch)| (*port, batch))
    }

    /// Takes what was emitted, the first emitted last: to be pushed on a stack.
    #[inline]
    pub fn drain_reversed(&mut self) -> impl Iterator<Item = (usize, Batch)> + '_ {
        self.index.fill(0);
        self.batches.drain(..).rev()
    }
}

/// One line of a [`Tally`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tallied {
    /// Why.
    pub reason: Reason,
    /// Packets dropped.
    pub dropped: u64,
    /// Bytes dropped.
    pub dropped_bytes: u64,
    /// Packets that left on an error output instead.
    pub noted: u64,
}

/// What an element dropped or sent to an error output, by reason.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    lines: Vec<Tallied>,
}

impl Tally {
    #[inline]
    fn line(&mut self, reason: Reason) -> &mut Tallied {
        // Most reasons are one and the same constant: the address tells without reading the text.
        let same = |l: &Tallied| std::ptr::eq(l.reason.0, reason.0) || l.reason == reason;
        let i = match self.lines.iter().position(same) {
            Some(i) => i,
            None => {
                self.lines.push(Tallied { reason, dropped: 0, dropped_bytes: 0, noted: 0 });
                self.lines.len() - 1
            }
        };
        &mut self.lines[i]
    }

    /// Counts a packet of `bytes` bytes as dropped.
    #[inline]
    pub fn drop(&mut self, reason: Reason, bytes: usize) {
        self.drop_all(reason, 1, bytes as u64);
    }

    /// Counts packets with this sum of bytes as dropped.
    #[inline]
    pub fn drop_all(&mut self, reason: Reason, packets: u64, bytes: u64) {
        let line = self.line(reason);
        line.dropped += packets;
        line.dropped_bytes += bytes;
    }

    /// Counts a packet as sent to an error output.
    #[inline]
    pub fn note(&mut self, reason: Reason) {
        self.note_all(reason, 1);
    }

    /// Counts packets as sent to an error output.
    #[inline]
    pub fn note_all(&mut self, reason: Reason, packets: u64) {
        self.line(reason).noted += packets;
    }

    /// All reasons so far.
    pub fn lines(&self) -> &[Tallied] {
        &self.lines
    }

    /// Packets dropped or noted for this reason.
    pub fn count(&self, reason: Reason) -> u64 {
        self.lines.iter().find(|l| l.reason == reason).map_or(0, |l| l.dropped + l.noted)
    }

    /// Packets dropped or noted for any reason.
    pub fn total(&self) -> u64 {
        self.lines.iter().map(|l| l.dropped + l.noted).sum()
    }

    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.lines.iter().map(|l| l.dropped).sum()
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.lines.clear();
    }
}

/// What the chain around an element can do for it.
pub trait Services {
    /// Pulls a packet through an input of an element.
    fn pull(&mut self, core: &mut WorkerResources, node: NodeId, input: usize) -> Option<Packet>;
    /// Asks for [`crate::element::Element::wake`] at a time, in nanoseconds of the worker's clock. The earliest
    /// of several counts.
    fn wake_at(&mut self, node: NodeId, time: u64);
    /// Tells the driver to stop, as one of possibly several that must.
    fn stop(&mut self);
    /// Reads a handler `element.handler parameter`, seen from `node`'s compound.
    ///
    /// # Errors
    /// A message for whoever asked.
    fn read_handler(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        handler: &str,
    ) -> Result<String, String>;
    /// Writes a handler `element.handler`, seen from `node`'s compound.
    ///
    /// # Errors
    /// A message for whoever asked.
    fn write_handler(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        handler: &str,
        value: &str,
    ) -> Result<(), String>;
    /// Writes a handler `element.handler` once the packets in flight have arrived and
    /// the element `node` is at rest; an error is shown to the user.
    fn write_later(&mut self, node: NodeId, handler: &str, value: &str);
    /// Whether there is a handler `element.handler` that can be read, or written.
    fn has_handler(&self, node: NodeId, handler: &str, write: bool) -> bool;
    /// Shows a line to the user.
    fn message(&mut self, text: &str);
    /// Writes text to the standard output as it is.
    fn output(&mut self, text: &str);
    /// Reads a whole regular file of at most `most` bytes; `-` is the standard input.
    ///
    /// # Errors
    /// A message such as “No such file or directory”.
    fn read_file(&mut self, path: &str, most: u64) -> Result<Vec<u8>, String>;
    /// Writes a whole file, or adds to its end.
    ///
    /// # Errors
    /// A message such as “Permission denied”.
    fn write_file(&mut self, path: &str, bytes: &[u8], append: bool) -> Result<(), String>;
    /// Shows an error to the user; the run ends with a failure.
    fn error(&mut self, node: NodeId, text: &str);
    /// How many tokens of [`Services::stop`] are left before the driver stops.
    fn runcount(&self) -> i64;
}

/// What an element may use while it works: the worker's possessions, its outputs, its tally, and
/// the chain around it.
pub struct Context<'a> {
    /// Pool, time and randomness of the worker.
    pub core: &'a mut WorkerResources,
    /// The element's own tally.
    pub tally: &'a mut Tally,
    outputs: &'a mut Outputs,
    services: &'a mut dyn Services,
    node: NodeId,
}

impl<'a> Context<'a> {
    /// Surrounds the element `node`.
    pub fn new(
        core: &'a mut WorkerResources,
        tally: &'a mut Tally,
        outputs: &'a mut Outputs,
        services: &'a mut dyn Services,
        node: NodeId,
    ) -> Self {
        Self { core, tally, outputs, services, node }
    }

    /// The same surroundings with other outputs, for whoever wants to look at what an element
    /// emits before it goes on.
    pub fn with_outputs<'b>(&'b mut self, outputs: &'b mut Outputs) -> Context<'b> {
        Context {
            core: self.core,
            tally: self.tally,
            outputs,
            services: self.services,
            node: self.node,
        }
    }

    /// Nanoseconds since the Unix epoch.
    #[inline]
    pub fn now(&self) -> u64 {
        self.core.now
    }

    /// A random number of `low..=high`.
    #[inline]
    pub fn random(&mut self, low: u64, high: u64) -> u64 {
        self.core.rng.u64(low..=high)
    }

    /// Number of connected outputs.
    #[inline]
    pub fn outputs(&self) -> usize {
        self.outputs.index.len()
    }

    /// Sends a packet out of a port; out of one that does not exist, drops it as `no-such-port`.
    #[inline]
    pub fn emit(&mut self, port: usize, packet: Packet) {
        if port < self.outputs.index.len() {
            self.outputs.emit(port, packet, self.core);
        } else {
            self.drop(packet, NO_SUCH_PORT);
        }
    }

    /// Sends all packets of a batch out of a port, emptying it.
    #[inline]
    pub fn emit_all(&mut self, port: usize, batch: &mut Batch) {
        if batch.is_empty() {
            return;
        }
        if port < self.outputs.index.len() {
            self.outputs.emit_all(port, batch, self.core);
        } else {
            self.drop_all(batch, NO_SUCH_PORT);
        }
    }

    /// Drops all packets of a batch, emptying it.
    #[inline]
    pub fn drop_all(&mut self, batch: &mut Batch, reason: Reason) {
        if !batch.is_empty() {
            self.tally.drop_all(reason, batch.len() as u64, batch.bytes());
            self.core.pool.recycle_all(batch);
        }
    }

    /// Drops a packet.
    #[inline]
    pub fn drop(&mut self, packet: Packet, reason: Reason) {
        self.tally.drop(reason, packet.len());
        self.core.pool.recycle(packet);
    }

    /// Sends a packet to an error output, or drops it if there is none.
    #[inline]
    pub fn reject(&mut self, port: usize, packet: Packet, reason: Reason) {
        if port < self.outputs.index.len() {
            self.tally.note(reason);
            self.outputs.emit(port, packet, self.core);
        } else {
            self.drop(packet, reason);
        }
    }

    /// Executes a verdict other than [`Verdict::Pass`] to output 0, which also works.
    #[inline]
    pub fn settle(&mut self, packet: Packet, verdict: Verdict) {
        match verdict {
            Verdict::Pass => self.emit(0, packet),
            Verdict::To(port) => self.emit(port, packet),
            Verdict::Reject(port, reason) => self.reject(port, packet, reason),
            Verdict::Drop(reason) => self.drop(packet, reason),
        }
    }

    /// Looks at each packet of a batch: those that pass stay, the others go where the verdict
    /// says. Nothing moves while all pass.
    #[inline]
    pub fn each(
        &mut self,
        batch: &mut Batch,
        mut process: impl FnMut(&mut Packet, &mut Self) -> Verdict,
    ) {
        let mut exception = None;
        let mut passed = 0;
        for packet in batch.iter_mut() {
            match process(packet, self) {
                Verdict::Pass | Verdict::To(0) => passed += 1,
                other => {
                    exception = Some(other);
                    break;
                }
            }
        }
        if let Some(verdict) = exception {
            self.each_mixed(batch, passed, verdict, &mut process);
        }
    }

    /// The rest of [`Context::each`] once a packet did not pass. It is one for all elements, so that
    /// what they do stands in a single place and is inlined there.
    #[inline(never)]
    fn each_mixed(
        &mut self,
        batch: &mut Batch,
        passed: usize,
        first: Verdict,
        process: &mut dyn FnMut(&mut Packet, &mut Self) -> Verdict,
    ) {
        let mut kept = self.core.batch();
        for (i, mut packet) in batch.drain().enumerate() {
            let verdict = match i {
                i if i < passed => Verdict::Pass,
                i if i == passed => first,
                _ => process(&mut packet, self),
            };
            match verdict {
                Verdict::Pass | Verdict::To(0) => kept.push(packet),
                other => self.settle(packet, other),
            }
        }
        std::mem::swap(batch, &mut kept);
        self.core.recycle_batch(kept);
    }

    /// Pulls a packet through an input.
    pub fn pull(&mut self, input: usize) -> Option<Packet> {
        self.services.pull(self.core, self.node, input)
    }

    /// Asks to be woken at a time, in nanoseconds of [`Context::now`]; at once if it has passed.
    /// The earliest of several counts.
    pub fn wake_at(&mut self, time: u64) {
        self.services.wake_at(self.node, time.max(self.core.now));
    }

    /// Tells the driver to stop.
    pub fn stop(&mut self) {
        self.services.stop();
    }

    /// Reads `element.handler parameter`, names being looked up from this element's compound.
    ///
    /// # Errors
    /// A message for whoever asked.
    pub fn read_handler(&mut self, handler: &str) -> Result<String, String> {
        self.services.read_handler(self.core, self.node, handler)
    }

    /// Writes `element.handler`, names being looked up from this element's compound.
    ///
    /// # Errors
    /// A message for whoever asked.
    pub fn write_handler(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.services.write_handler(self.core, self.node, handler, value)
    }

    /// Writes `element.handler` once the packets in flight have arrived and this
    /// element is at rest.
    pub fn write_later(&mut self, handler: &str, value: &str) {
        self.services.write_later(self.node, handler, value);
    }

    /// Whether there is a handler `element.handler` that can be read, or written.
    pub fn has_handler(&self, handler: &str, write: bool) -> bool {
        self.services.has_handler(self.node, handler, write)
    }

    /// Shows a line to the user.
    pub fn message(&mut self, text: &str) {
        self.services.message(text);
    }

    /// Writes text to the standard output as it is.
    pub fn output(&mut self, text: &str) {
        self.services.output(text);
    }

    /// Shows an error to the user; the run ends with a failure.
    pub fn error(&mut self, text: &str) {
        self.services.error(self.node, text);
    }

    /// The chain's services, for what is not offered here.
    pub fn services(&mut self) -> &mut dyn Services {
        self.services
    }
}

/// Counted when a packet is sent to a port that the element does not have.
pub const NO_SUCH_PORT: Reason = Reason("no-such-port");
