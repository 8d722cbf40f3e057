//! A worker's hold on an interface: the port that carries its frames, kept open through links
//! that flap and interfaces that go and come back.

use std::collections::VecDeque;
use std::io::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use elements::device::{Device, Event, OwnedPorts, Received, Wake};
use net::{Batch, Packet, Pool};

use super::dispatch::DispatchMode;
use super::hand_off::HandOff;
use super::interface::Interface;
use super::netdev::{Link, Monitor, in_words};
use super::port::{LINK_DOWN, Losses, MOST, Multiplexing, OVERRUN, Port, WorkerShare, give_up};
use super::sys;
use crate::thread_owned::ThreadOwned;

/// Rounds without a frame after which it is looked whether the interface changed.
const EMPTY_ROUNDS: u32 = 16;
/// Rounds after which the kernel is asked what it dropped.
const ROUNDS: u32 = 4096;
/// Batches after which a worker that sends looks whether the interface changed: it may not receive.
const SENDS: u32 = 64;
/// Rounds after which a worker that others feed looks for frames of its own.
const FED_ROUNDS: u32 = 32;
/// Packets that are put aside while their group moves.
const MOST_PARKED: usize = 1 << 17;

/// What a worker has open on an interface.
pub(super) struct Live {
    interface: Arc<Interface>,
    part: WorkerShare,
    /// Absent while the interface is.
    port: Option<Box<dyn Port + Send>>,
    /// Which opening of the interface the port is of.
    opening: u64,
    link: Option<Link>,
    /// What the interface is called by now.
    name: String,
    monitor: Monitor,
    /// Readable when a frame comes or an interface changes.
    descriptor: OwnedFd,
    multiplexing: Multiplexing,
    losses: Losses,
    rounds: u32,
    empty: u32,
    /// Batches that were sent.
    sends: u32,
    /// The interface's MAC address.
    address: [u8; 6],
    /// What is allocated, to each worker from its share.
    owned: Vec<OwnedPorts>,
    /// The groups whose packets are put aside until all of them is here.
    awaited: Vec<u16>,
    /// Packets of groups that were awaited, which come before all others.
    parked: VecDeque<Packet>,
    /// The channel to other workers, where workers hand frames to each other.
    hand_off: Option<Box<HandOff>>,
    /// Whether next to nothing comes but from other workers.
    is_fed: bool,
}

impl Live {
    /// Takes a worker's part of an interface.
    ///
    /// # Errors
    /// A message.
    pub(super) fn open(
        interface: &Arc<Interface>,
        part: WorkerShare,
    ) -> std::result::Result<Self, String> {
        let (port, opening) = interface.fetch(part, false)?;
        let explain = |e: Error| format!("{}: {}", interface.name(), in_words(&e));
        let monitor = Monitor::new().map_err(explain)?;
        let hand_off = interface.fetch_hand_off(part).map(Box::new);
        let descriptor = watch(&monitor, Some(&*port), hand_off.as_deref()).map_err(explain)?;
        Ok(Self {
            interface: Arc::clone(interface),
            part,
            port: Some(port),
            opening,
            link: interface.find().map(|found| found.link),
            name: interface.name().to_string(),
            monitor,
            descriptor,
            multiplexing: Multiplexing::new(interface.batch()),
            losses: Losses::default(),
            rounds: 0,
            empty: 0,
            sends: 0,
            address: interface.address(),
            owned: Vec::new(),
            awaited: Vec::new(),
            parked: VecDeque::new(),
            is_fed: interface.dispatch().mode() == DispatchMode::Software && part.index > 0,
            hand_off,
        })
    }

    /// Receives what comes to this worker and what others have handed to it, and of the former
    /// hands on what is others'.
    fn receive(&mut self, most: usize, batch: &mut Batch, pool: &mut Pool) -> Result<Received> {
        if self.hand_off.is_none() {
            return self.receive_own(most, batch, pool).map(|()| Received::More);
        }
        let (before, mut left, mut handed_on) = (batch.len(), most, false);
        let mut result = Ok(());
        // In turn, so that neither waits for ever while the other has as many as are asked for.
        let others_first = self.is_fed || self.rounds.is_multiple_of(2);
        if others_first {
            left -= self.take_handed(left, batch, pool);
        }
        let is_content = self.is_fed && left < most && !self.rounds.is_multiple_of(FED_ROUNDS);
        if left == 0 || is_content {
            self.rounds = self.rounds.wrapping_add(1);
        } else {
            let own = batch.len();
            result = self.receive_own(left, batch, pool);
            handed_on = self.hand_on(own, batch, pool);
            left = left.saturating_sub(batch.len() - own);
        }
        if !others_first {
            self.take_handed(left, batch, pool);
        }
        let worked = handed_on || batch.len() > before;
        if let Some(hand_off) = &mut self.hand_off {
            match worked {
                true => hand_off.worked(),
                false => hand_off.rest(),
            }
        }
        if !worked {
            self.take_handed(most, batch, pool);
        }
        result.map(|()| if handed_on { Received::HandedOn } else { Received::More })
    }

    /// Takes what other workers have handed to this one; how many frames.
    fn take_handed(&mut self, most: usize, batch: &mut Batch, pool: &mut Pool) -> usize {
        self.hand_off.as_mut().map_or(0, |hand_off| hand_off.take(most, batch, pool))
    }

    /// Hands on what is others' of the frames from one on; whether there was any.
    fn hand_on(&mut self, from: usize, batch: &mut Batch, pool: &mut Pool) -> bool {
        let Some(hand_off) = &mut self.hand_off else { return false };
        let (worker, dispatch) = (self.part.index, self.interface.dispatch());
        let home = |packet: &Packet| dispatch.home(packet, &self.owned);
        let mut any = false;
        hand_off.hand_on(from, batch, pool, &mut self.losses, home, |to, packets| {
            dispatch.count_handed(worker, to, packets);
            any = true;
        });
        any
    }

    /// Receives what comes to this worker.
    fn receive_own(&mut self, most: usize, batch: &mut Batch, pool: &mut Pool) -> Result<()> {
        if self.awaited.is_empty() && !self.parked.is_empty() {
            let count = most.min(self.parked.len());
            batch.extend(self.parked.drain(..count));
            return Ok(());
        }
        let Some(port) = &mut self.port else {
            self.watch_link();
            return Ok(());
        };
        let asked = self.multiplexing.ask(most);
        let before = batch.len();
        let result = port.receive(asked, batch, pool, &mut self.losses);
        let came = batch.len() - before;
        let frames = batch.as_mut_slice().get_mut(before..).unwrap_or_default();
        let dispatch = self.interface.dispatch();
        dispatch.sort(self.part.index, frames, self.address, &self.owned);
        self.came(asked, came);
        if !self.awaited.is_empty() {
            self.park(before, batch, pool);
        }
        match result {
            Err(error) if is_down(&error) => {
                self.look();
                Ok(())
            }
            result => result,
        }
    }

    /// So many frames came of those that were asked for.
    fn came(&mut self, asked: usize, came: usize) {
        self.multiplexing.came(asked, came);
        self.rounds = self.rounds.wrapping_add(1);
        self.empty = if came == 0 { self.empty.wrapping_add(1) } else { 0 };
        let is_time = self.rounds.is_multiple_of(ROUNDS) || self.empty == EMPTY_ROUNDS;
        if let Some(port) = self.port.as_mut().filter(|_| is_time) {
            port.count_overruns(&mut self.losses);
        }
        if came == 0 && self.empty.is_multiple_of(EMPTY_ROUNDS) {
            self.watch_link();
        }
    }

    /// Shows what comes to this worker, if nothing of it is for others or put aside.
    fn receive_each(&mut self, most: usize, read: &mut dyn FnMut(&[u8])) -> Option<usize> {
        if self.hand_off.is_some() || !self.awaited.is_empty() || !self.parked.is_empty() {
            return None;
        }
        let asked = self.multiplexing.ask(most);
        let came = self.port.as_mut()?.receive_each(asked, read, &mut self.losses)?;
        self.came(asked, came);
        Some(came)
    }

    /// Puts aside what is of groups that are awaited.
    #[cold]
    fn park(&mut self, from: usize, batch: &mut Batch, pool: &mut Pool) {
        let mut new = Batch::default();
        batch.split_to(from, &mut new);
        let (dispatch, owned) = (self.interface.dispatch(), self.interface.owned());
        for packet in new.drain() {
            let of_group = match packet.group() {
                0 => dispatch.group_of_answer(&packet, &owned),
                of => of,
            };
            match self.awaited.contains(&of_group) {
                false => batch.push(packet),
                true if self.parked.len() < MOST_PARKED => self.parked.push_back(packet),
                true => {
                    self.losses.received(OVERRUN, 1, packet.len() as u64);
                    pool.recycle(packet);
                }
            }
        }
    }

    /// Puts packets of these groups aside from now on, and no others.
    pub(super) fn await_groups(&mut self, groups: &[u16]) {
        self.awaited = groups.to_vec();
    }

    /// Forgets what came while this worker stood by.
    pub(super) fn forget(&mut self) {
        self.port.iter_mut().for_each(|port| port.forget());
    }

    /// How many frames wait for this worker: in the kernel's queue, in those of other workers, and put aside. None if
    /// the kernel does not say how many wait there.
    pub(super) fn waiting(&mut self) -> Option<u64> {
        let received = self.port.as_mut().map_or(Some(0), |port| port.waiting())?;
        let handed = self.hand_off.as_ref().map_or(0, |hand_off| hand_off.waiting());
        Some(received + handed + self.parked.len() as u64)
    }

    /// The interface's name in the configuration.
    pub(super) fn interface(&self) -> &str {
        self.interface.name()
    }

    /// Remembers what waits to be received now.
    pub(super) fn mark(&mut self) {
        self.port.iter_mut().for_each(|port| port.mark());
    }

    /// Whether all has been received that waited at the last mark.
    pub(super) fn is_drained(&mut self) -> bool {
        self.parked.is_empty() && self.port.as_mut().is_none_or(|port| port.is_drained())
    }

    /// Whether the kernel has taken all frames that were sent.
    pub(super) fn is_sent(&mut self) -> bool {
        self.port.as_mut().is_none_or(|port| port.is_sent())
    }

    /// Looks from time to time what became of the interface; whether its link carries nothing.
    fn finds_link_off(&mut self) -> bool {
        self.sends = self.sends.wrapping_add(1);
        let is_time = self.sends.is_multiple_of(SENDS);
        match self.is_off() {
            // Word that the link is back may have been lost.
            true if is_time => self.look(),
            true => self.watch_link(),
            false if is_time => self.watch_link(),
            false => {}
        }
        self.is_off()
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<()> {
        // The kernel drops what an AF_XDP socket sends there, and does not say so.
        let is_off = self.finds_link_off();
        let Some(port) = self.port.as_mut().filter(|_| !is_off) else {
            give_up(LINK_DOWN, batch, pool, &mut self.losses);
            return Ok(());
        };
        match port.send(batch, pool, &mut self.losses) {
            Err(error) => {
                give_up(LINK_DOWN, batch, pool, &mut self.losses);
                if is_down(&error) { Ok(()) } else { Err(error) }
            }
            Ok(()) => Ok(()),
        }
    }

    fn send_prepared(&mut self, count: usize, write: &mut dyn FnMut(&mut [u8])) -> usize {
        let is_off = self.finds_link_off();
        match self.port.as_mut().filter(|_| !is_off) {
            Some(port) => port.send_prepared(count, write, &mut self.losses),
            None => {
                self.losses.sent(LINK_DOWN, count as u64, 0);
                count
            }
        }
    }

    /// Whether the link carries nothing, as far as is known.
    fn is_off(&self) -> bool {
        self.link.is_some_and(|link| link != Link::Up)
    }

    /// Looks what became of the interface, if it changed.
    #[cold]
    fn watch_link(&mut self) {
        if self.monitor.changed() {
            self.look();
        }
    }

    /// Looks what became of the interface.
    #[cold]
    fn look(&mut self) {
        let name = self.interface.name().to_string();
        let found = self.interface.find();
        let opening = found.as_ref().and_then(|found| found.opening);
        if self.port.is_some() && opening != Some(self.opening) {
            self.port = None;
            self.tell(format!("{name}: the interface is gone; waiting for it"));
            self.rewatch();
        }
        let Some(found) = found else { return };
        if self.port.is_none() {
            // One that is off cannot be opened; there will be word when it is switched on.
            if found.link != Link::Down {
                self.reopen();
            }
            return;
        }
        if self.name != found.name {
            self.tell(format!("{name}: the interface is called {} now", found.name));
            self.name = found.name;
        }
        if self.link != Some(found.link) {
            let state = match found.link {
                Link::Up => "up",
                Link::Down => "switched off",
                Link::NoCarrier => "down: nothing is connected to it",
            };
            self.tell(format!("{name}: the link is {state}"));
            self.link = Some(found.link);
        }
    }

    /// Tells what every worker sees: one does.
    fn tell(&mut self, text: String) {
        if self.part.index == 0 {
            self.losses.notice(text);
        }
    }

    fn reopen(&mut self) {
        match self.interface.fetch(self.part, true) {
            Ok((port, opening)) => {
                (self.port, self.opening) = (Some(port), opening);
                self.address = self.interface.address();
                self.name = self.interface.name().to_string();
                self.link = self.interface.find().map(|found| found.link);
                self.interface.replace_obstacle("");
                let told = self.interface.describe();
                self.tell(format!("{told}; it is back"));
                if let Err(why) = self.steer() {
                    self.losses.notice(why);
                }
                self.rewatch();
            }
            Err(why) if self.interface.replace_obstacle(&why) => {
                self.losses.notice(format!("{why}; trying again when the interface changes"));
            }
            Err(_) => {}
        }
    }

    fn steer(&mut self) -> std::result::Result<(), String> {
        let program = self.interface.steer(&self.owned)?;
        match (program, &mut self.port) {
            (Some(program), Some(port)) => port
                .spread_by(&program)
                .map_err(|e| format!("{}: spreading frames: {e}", self.interface.name())),
            _ => Ok(()),
        }
    }

    fn rewatch(&mut self) {
        // Without it the worker is awake more often than it had to be, no more.
        let (port, hand_off) = (self.port.as_deref(), self.hand_off.as_deref());
        if let Ok(descriptor) = watch(&self.monitor, port, hand_off) {
            self.descriptor = descriptor;
        }
    }
}

/// Whether an error says that the interface is off or gone.
fn is_down(error: &Error) -> bool {
    matches!(
        sys::number(error),
        libc::ENETDOWN | libc::ENODEV | libc::ENXIO | libc::EBADFD | libc::EIO
    )
}

fn watch(
    monitor: &Monitor,
    port: Option<&(dyn Port + Send)>,
    hand_off: Option<&HandOff>,
) -> Result<OwnedFd> {
    let mut of = port.map(|port| port.descriptors()).unwrap_or_default();
    of.push(monitor.descriptor().as_raw_fd());
    of.extend(hand_off.map(HandOff::descriptor));
    sys::any_of(&of)
}

/// The interface as one element has it: it receives or it sends. Elements of one worker share it, those of the chain
/// that comes next included, and for a moment the thread that moves a group of flows.
pub(super) struct Handle {
    live: ThreadOwned<Live>,
    receives: bool,
    /// Whether there may be something to report.
    reports: bool,
}

impl Handle {
    pub(super) fn new(live: ThreadOwned<Live>, receives: bool) -> Self {
        Self { live, receives, reports: true }
    }

    fn with<R>(
        &mut self,
        work: impl FnOnce(&mut Live) -> Result<R>,
    ) -> std::result::Result<R, String> {
        let (result, reports) = self.live.with(|live| {
            let result = work(live);
            let result = result.map_err(|error| format!("{}: {error}", live.interface.name()));
            (result, !live.losses.is_empty())
        });
        self.reports = reports;
        result
    }
}

impl Device for Handle {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> std::result::Result<Received, String> {
        self.with(|live| live.receive(burst, batch, pool))
    }

    fn receive_each(
        &mut self,
        burst: usize,
        read: &mut dyn FnMut(&[u8]),
    ) -> std::result::Result<Option<usize>, String> {
        self.with(|live| Ok(live.receive_each(burst, read)))
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> std::result::Result<(), String> {
        self.with(|live| live.send(batch, pool))
    }

    fn prepare_copies(&mut self, frame: &[u8]) -> bool {
        self.live.with(|live| live.port.as_mut().is_some_and(|port| port.prepare_copies(frame)))
    }

    fn send_prepared(
        &mut self,
        count: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> std::result::Result<usize, String> {
        self.with(|live| Ok(live.send_prepared(count, write)))
    }

    fn share(&self) -> Option<Box<dyn Device + Send>> {
        Some(Box::new(Self::new(self.live.clone(), self.receives)))
    }

    fn flush(&mut self) -> std::result::Result<(), String> {
        self.live.with(|live| {
            live.watch_link();
            if let Some(port) = &mut live.port {
                port.count_overruns(&mut live.losses);
            }
        });
        self.reports = true;
        Ok(())
    }

    fn wait_on(&self) -> Option<Wake> {
        self.receives.then(|| {
            self.live.with(|live| match live.interface.is_polled() {
                true => Wake::Polled,
                false => Wake::Readable(live.descriptor.as_raw_fd()),
            })
        })
    }

    fn steer(&mut self, owned: &[OwnedPorts]) -> std::result::Result<(), String> {
        self.reports = true;
        self.live.with(|live| {
            live.owned = owned.to_vec();
            live.steer()
        })
    }

    fn next_event(&mut self) -> Option<Event> {
        if !self.reports {
            return None;
        }
        let event = self.live.with(|live| live.losses.next(!self.receives));
        self.reports = event.is_some();
        event
    }

    fn burst(&self) -> Option<usize> {
        self.receives.then_some(MOST)
    }
}
