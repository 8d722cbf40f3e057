//! Moving packets: from a device into the chain, and from the chain to a device.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use dataplane::io::{Polling, Waiter};
use elements::device::{Device, Event, Received, Wake};
use net::{Batch, Pool};
use nf::{Arrival, State};

use super::coming::Coming;
use super::held::Held;
use super::{Chosen, Shared, locked};
use crate::chain::{Broken, Chain, LONGEST_PACKET, Outcome};
use crate::scheduler;

/// The longest sleep, after which it looks whether it is to end.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// Rounds after which the batch is looked at again.
const REVISED: u64 = 1024;

/// Packets of a batch at most where that is found by the costs.
const MOST: u64 = 512;

pub(super) struct Mover {
    pub(super) devices: (Box<dyn Device + Send>, Box<dyn Device + Send>),
    pub(super) shared: Arc<Shared>,
    pub(super) chosen: Chosen,
    pub(super) spares: Receiver<Chain>,
    pub(super) is_auto: bool,
    pub(super) overhead: f64,
    pub(super) held: Held,
    /// Becomes readable when state was stored.
    pub(super) stored: Arc<OwnedFd>,
    /// Whether it was stored since packets that wait for it were looked at.
    pub(super) is_new: bool,
}

impl Mover {
    /// Moves packets until there are none or it is stopped.
    pub(super) fn run(mut self, first: Chain) {
        let moved = self.go(first);
        if let Err(why) = moved {
            locked(&self.shared.error).get_or_insert(why);
        }
    }

    fn go(&mut self, mut chain: Chain) -> Result<(), String> {
        // That it is over is said before the chain ends, and its NFs with it.
        let _over = Over(Arc::clone(&self.shared));
        let state = if self.chosen.yields { State::Yield } else { State::Baton };
        let place = || -> std::io::Result<()> {
            scheduler::pin(None, self.chosen.core)?;
            self.chosen.class.map_or(Ok(()), |class| scheduler::set_class(0, class))
        };
        place().map_err(|why| {
            format!("the host's thread cannot be scheduled as it is to be: {why}")
        })?;
        self.shared.active.store(chain.number, Ordering::Release);
        let mut coming = Coming::default();
        chain.begin();
        coming.begin(&chain);
        let (mut sent, mut pool) = (Batch::new(), Pool::new());
        let mut waiter = Waiter::new(Polling::Adaptive);
        // Who stores and reads state may need this core.
        let mut patient = Waiter::new(Polling::Sleep);
        let mut since = (0, 0);
        let mut is_over = false;
        loop {
            if self.shared.is_stopped() {
                break;
            }
            self.release(&mut sent, &mut pool)?;
            let is_done = is_over && coming.is_empty();
            if chain.has_failed() && !is_done {
                let Some(next) = self.spare() else { break };
                chain = next;
                chain.begin();
                coming.begin(&chain);
            }
            let most =
                self.shared.batch.load(Ordering::Relaxed).min(u64::from(chain.layout.capacity));
            let most = (most as usize).min(self.held.room(coming.packets()));
            let mut came = false;
            if most > 0 && !is_over && coming.has_room() {
                let mut batch = coming.batch();
                let received = self.devices.0.receive(most, &mut batch, &mut pool)?;
                self.events(true)?;
                came = !batch.is_empty();
                is_over = received == Received::End && !came;
                coming.push(batch);
            }
            if coming.is_empty() {
                let has_held = !self.held.is_empty();
                if is_over && !has_held {
                    break;
                }
                if is_over || most == 0 {
                    patient.wait(&[self.stored.as_raw_fd()], false, self.longest_sleep());
                    continue;
                }
                chain.set_state(State::Idle);
                let (mut on, polled) = self.input();
                if has_held {
                    on.push(self.stored.as_raw_fd());
                }
                waiter.wait(&on, polled, self.longest_sleep());
                continue;
            }
            if !coming.is_ready() {
                if came || self.has_stored() {
                    continue;
                }
                if self.chosen.yields {
                    chain.set_state(State::Idle);
                }
                let (mut on, polled) = match most > 0 && !is_over && coming.has_room() {
                    true => self.input(),
                    false => (Vec::new(), false),
                };
                on.push(self.stored.as_raw_fd());
                patient.wait(&on, polled, self.longest_sleep());
                continue;
            }
            let Some(mut next) = coming.pop() else { continue };
            waiter.worked();
            chain.set_state(state);
            let begin = Instant::now();
            let count = self.fill(&mut chain, &mut next.batch, &mut pool);
            let ran = chain.run(count);
            let took = begin.elapsed().as_nanos() as u64;
            let mut totals = locked(&self.shared.totals);
            totals.rounds += 1;
            totals.busy += took;
            match ran {
                Ok(()) => {
                    let forger = collect(
                        &chain,
                        count,
                        &next.batch,
                        &mut sent,
                        &mut pool,
                        &mut totals.dropped,
                        &mut self.held,
                    );
                    drop(totals);
                    if let Some(seat) = forger {
                        self.forged(&chain, seat);
                    }
                }
                Err(why) => {
                    totals.lost_in_nf += u64::from(count);
                    totals.failures += 1;
                    drop(totals);
                    if let Broken::Forged(seat) = why {
                        self.forged(&chain, seat);
                    }
                }
            }
            coming.end(next, &mut pool);
            self.send(&mut sent, &mut pool)?;
            since = (since.0 + 1, since.1 + took);
            if self.is_auto && since.0 == REVISED {
                self.revise(&chain, &mut since);
            }
        }
        // What waits is dropped: for its state to be stored, or, having come, for the turn.
        self.held.end(&mut pool);
        let left = coming.packets() as u64;
        self.held.counts.dropped += left;
        let mut totals = locked(&self.shared.totals);
        totals.received += left;
        totals.held = self.held.counts;
        drop(totals);
        self.devices.1.flush()
    }

    fn send(&mut self, sent: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        if !sent.is_empty() {
            locked(&self.shared.totals).sent += sent.len() as u64;
        }
        while !sent.is_empty() && !self.shared.is_stopped() {
            self.devices.1.send(sent, pool)?;
            self.events(false)?;
        }
        Ok(())
    }

    /// Sends packets that waited for state to be stored, and need not any more.
    fn release(&mut self, sent: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.has_stored();
        let is_new = std::mem::take(&mut self.is_new);
        self.held.release(is_new, sent, pool);
        locked(&self.shared.totals).held = self.held.counts;
        self.send(sent, pool)
    }

    /// Whether state was stored or read since this was asked last. What is from now on wakes this thread once more.
    fn has_stored(&mut self) -> bool {
        let is_new = rustix::io::read(&*self.stored, &mut [0; 8]).is_ok();
        self.is_new |= is_new;
        is_new
    }

    /// What becomes readable when packets come, and whether they may come without that.
    fn input(&self) -> (Vec<RawFd>, bool) {
        match self.devices.0.wait_on() {
            Some(Wake::Readable(fd)) => (vec![fd], false),
            _ => (Vec::new(), true),
        }
    }

    fn longest_sleep(&self) -> Duration {
        let left = self.held.due().map(|due| due.saturating_duration_since(Instant::now()));
        left.map_or(LONGEST_SLEEP, |left| left.clamp(Duration::from_millis(1), LONGEST_SLEEP))
    }

    /// Puts what came into the chain; how many packets there are. Those that do not fit are counted.
    fn fill(&self, chain: &mut Chain, batch: &mut Batch, pool: &mut Pool) -> u32 {
        let came = batch.len() as u64;
        if batch.iter().any(|packet| packet.len() > LONGEST_PACKET) {
            let (long, fit): (Vec<_>, Vec<_>) =
                batch.drain().partition(|packet| packet.len() > LONGEST_PACKET);
            locked(&self.shared.totals).too_long += long.len() as u64;
            long.into_iter().for_each(|packet| pool.recycle(packet));
            fit.into_iter().for_each(|packet| batch.push(packet));
        }
        locked(&self.shared.totals).received += came;
        for (packet, index) in batch.iter().zip(0..) {
            let hash = dataplane::io::dispatch_hash(packet.data());
            let arrival = Arrival {
                buffer: 0,
                hash,
                time: packet.timestamp(),
                port: 0,
                group: packet.group(),
            };
            chain.put(index, packet.data(), arrival);
        }
        batch.len() as u32
    }

    /// Says that an NF does what it must not, and ends it.
    fn forged(&self, chain: &Chain, seat: usize) {
        let watched = locked(&self.shared.watched);
        if let Some(of) = watched.iter().find(|of| of.number == chain.number) {
            let name = of.seats.get(seat).map_or("", |seat| &seat.name);
            locked(&self.shared.said)
                .push(format!("the NF '{name}' forged what it has to say: its chain is replaced"));
            of.fail();
        }
        drop(watched);
        self.shared.wake();
    }

    /// A chain that stands by, once there is one; none if it is stopped.
    fn spare(&self) -> Option<Chain> {
        loop {
            match self.spares.recv_timeout(LONGEST_SLEEP) {
                Ok(chain) if chain.has_failed() => {}
                Ok(chain) => {
                    self.shared.active.store(chain.number, Ordering::Release);
                    return Some(chain);
                }
                Err(RecvTimeoutError::Timeout) if !self.shared.is_stopped() => {}
                Err(_) => return None,
            }
        }
    }

    /// Counts what devices report.
    fn events(&mut self, input: bool) -> Result<(), String> {
        let device = if input { &mut self.devices.0 } else { &mut self.devices.1 };
        while let Some(event) = device.next_event() {
            let mut totals = locked(&self.shared.totals);
            match event {
                Event::Lost { packets, .. } => totals.not_sent += packets,
                Event::Notice(line) => totals.lines.push(line),
                Event::Heard { .. } => {}
            }
        }
        Ok(())
    }

    /// Finds the batch whose hand-offs take the share of time that they may (Quadrant's equation 3.1): N·C / (B·S) <= p, with
    /// what N NFs took for the packets of the last rounds, and C what the rounds took beyond that.
    fn revise(&self, chain: &Chain, since: &mut (u64, u64)) {
        let (rounds, took) = std::mem::take(since);
        let watched = locked(&self.shared.watched);
        let Some(of) = watched.iter().find(|of| of.number == chain.number) else { return };
        let counts: Vec<nf::Counts> = of.seats.iter().map(|seat| seat.page.counts()).collect();
        drop(watched);
        let per_packet: f64 =
            counts.iter().map(|of| of.busy as f64 / of.received.max(1) as f64).sum();
        let per_batch: f64 =
            counts.iter().map(|of| of.busy as f64 / of.batches.max(1) as f64).sum();
        // Per round, what was not spent in NFs: N hand-offs, and copying.
        let handing = (took as f64 / rounds as f64 - per_batch).max(0.0);
        let least = handing / (self.overhead * per_packet.max(1.0));
        let batch = (least.ceil() as u64).clamp(u64::from(super::BATCH), MOST);
        self.shared.batch.store(batch, Ordering::Relaxed);
    }
}

struct Over(Arc<Shared>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.0.wake();
    }
}

/// Reads what became of the packets of a round; who forged something. Those that passed are in `sent`.
fn collect(
    chain: &Chain,
    count: u32,
    batch: &Batch,
    sent: &mut Batch,
    pool: &mut Pool,
    dropped: &mut [std::collections::BTreeMap<u16, u64>],
    held: &mut Held,
) -> Option<usize> {
    let mut forger = None;
    let has_state = chain.sessions().next().is_some();
    held.begin();
    for (index, came) in (0..count).zip(batch.iter()) {
        match chain.outcome(index) {
            Outcome::Passed(extent) => {
                let mut packet = pool.packet(chain.bytes(index, extent));
                packet.set_timestamp(came.timestamp());
                packet.set_group(came.group());
                if has_state || !held.is_empty() {
                    held.take(packet, chain.hash(index), chain.updates(index), sent, pool);
                } else {
                    sent.push(packet);
                }
            }
            Outcome::Dropped(seat, reason) => {
                if let Some(of) = dropped.get_mut(seat) {
                    *of.entry(reason).or_default() += 1;
                }
            }
            Outcome::Forged(seat) => {
                if let Some(of) = dropped.get_mut(seat) {
                    *of.entry(nf::MALFORMED).or_default() += 1;
                }
                forger = Some(seat);
            }
        }
    }
    forger
}
