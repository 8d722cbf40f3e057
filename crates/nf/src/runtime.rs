//! What runs a network function in its process: it attaches to the host, waits for the turn, and hands batches over.

use std::collections::HashSet;
use std::io::{Error, ErrorKind, Result, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::Instant;

use foldhash::fast::RandomState;
use rustix::process::Signal;

use crate::abi::{MALFORMED, MOST_COUNTERS, MOST_REASONS, NO_STATE, flag, kind};
use crate::cache::{Away, Cache};
use crate::channel::{Names, expect, is_name, send};
use crate::flow::Flow;
use crate::memory::Mapping;
use crate::page::{Arrival, Counts, Extent, Layout, Page, State, Verdict};

/// A network function.
pub trait NetworkFunction: Sized {
    /// Makes it by its configuration, the text that the chain's manifest gives it.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    fn init(config: &str, setup: &mut Setup) -> std::result::Result<Self, String>;

    /// Processes a batch. Packets of which it says nothing pass.
    fn process(&mut self, batch: &mut Batch);
}

/// A counter, which reads like an element's.
#[derive(Clone, Copy, Debug)]
pub struct Counter(usize);

/// A reason to drop packets.
#[derive(Clone, Copy, Debug)]
pub struct Reason(u16);

/// What an NF says of itself when it is made.
#[derive(Debug, Default)]
pub struct Setup {
    names: Names,
    fields: Option<u8>,
    wrong: Option<String>,
}

impl Setup {
    /// Names a counter.
    pub fn counter(&mut self, name: &str) -> Counter {
        Counter(self.add(name, false))
    }

    /// Names a reason to drop packets.
    pub fn reason(&mut self, name: &str) -> Reason {
        Reason(self.add(name, true) as u16)
    }

    /// Says that it keeps state of flows, and which [fields](crate::field) of a packet make its flow: before each batch, the
    /// state of these flows is read.
    pub fn state(&mut self, fields: u8) {
        self.names.has_state = true;
        self.fields = Some(fields);
    }

    fn add(&mut self, name: &str, is_reason: bool) -> usize {
        let (all, most) = match is_reason {
            true => (&mut self.names.reasons, MOST_REASONS),
            false => (&mut self.names.counters, MOST_COUNTERS),
        };
        if let Some(number) = all.iter().position(|other| other == name) {
            return number;
        }
        if !is_name(name) || all.len() == most {
            self.wrong.get_or_insert_with(|| format!("'{name}' is no name, or one too many"));
            return 0;
        }
        all.push(name.to_string());
        all.len() - 1
    }
}

/// A packet of a batch, as the runtime keeps it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its position in the round.
    index: u32,
    /// Where its buffer begins.
    start: usize,
    extent: Extent,
    verdict: Verdict,
    arrival: Arrival,
    /// The last update that it waits for.
    update: u64,
}

/// A batch of packets: those that the NF before passed on, in their order.
#[derive(Debug)]
pub struct Batch {
    slots: Vec<Slot>,
    region: Mapping,
    layout: Layout,
    writes: bool,
    counters: [u64; MOST_COUNTERS],
    cache: Cache,
}

impl Batch {
    /// How many packets.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// One of its packets.
    #[inline]
    pub fn packet(&mut self, number: usize) -> Option<Packet<'_>> {
        let slot = self.slots.get_mut(number)?;
        Some(Packet {
            slot,
            region: &mut self.region,
            size: self.layout.buffer_size,
            writes: self.writes,
            counters: &mut self.counters,
            cache: &mut self.cache,
        })
    }

    /// Does something with each packet.
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(&mut Packet<'_>)) {
        for number in 0..self.len() {
            if let Some(mut packet) = self.packet(number) {
                each(&mut packet);
            }
        }
    }

    /// Adds to a counter.
    pub fn count(&mut self, counter: Counter, more: u64) {
        add(&mut self.counters, counter, more);
    }
}

fn add(counters: &mut [u64; MOST_COUNTERS], counter: Counter, more: u64) {
    if let Some(value) = counters.get_mut(counter.0) {
        *value = value.wrapping_add(more);
    }
}

/// A packet.
#[derive(Debug)]
pub struct Packet<'a> {
    slot: &'a mut Slot,
    region: &'a mut Mapping,
    size: u32,
    writes: bool,
    counters: &'a mut [u64; MOST_COUNTERS],
    cache: &'a mut Cache,
}

impl Packet<'_> {
    /// Its bytes, from the Ethernet header on.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        let Extent { head, length } = self.slot.extent;
        self.region.bytes(self.slot.start + usize::from(head), length as usize)
    }

    /// Its bytes, to be written to; `None` if the manifest has `writes: none`.
    #[inline]
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let Extent { head, length } = self.slot.extent;
        let at = self.slot.start + usize::from(head);
        self.writes.then(|| self.region.bytes_mut(at, length as usize))
    }

    /// Bytes that are free in front of it.
    pub fn headroom(&self) -> usize {
        usize::from(self.slot.extent.head)
    }

    /// Bytes that are free behind it.
    pub fn tailroom(&self) -> usize {
        let Extent { head, length } = self.slot.extent;
        self.size as usize - usize::from(head) - length as usize
    }

    /// Adds bytes in front, whose content is what was there; whether there was room.
    pub fn push(&mut self, count: usize) -> bool {
        let room = self.headroom();
        self.reframe(room.checked_sub(count), self.bytes().len().checked_add(count))
    }

    /// Takes bytes away in front; whether there were so many.
    pub fn pull(&mut self, count: usize) -> bool {
        let room = self.headroom();
        self.reframe(room.checked_add(count), self.bytes().len().checked_sub(count))
    }

    /// Makes it so long, by bytes more or fewer at its end; whether there was room.
    pub fn resize(&mut self, length: usize) -> bool {
        let room = self.headroom();
        self.reframe(Some(room), Some(length))
    }

    fn reframe(&mut self, head: Option<usize>, length: Option<usize>) -> bool {
        let (Some(Ok(head)), Some(Ok(length))) =
            (head.map(u16::try_from), length.map(u32::try_from))
        else {
            return false;
        };
        let extent = Extent { head, length };
        let layout = Layout { buffers: 1, buffer_size: self.size, capacity: 1 };
        let fits = layout.has(extent) && self.writes;
        if fits {
            self.slot.extent = extent;
            if let Verdict::Pass(passed) = &mut self.slot.verdict {
                *passed = extent;
            }
        }
        fits
    }

    /// It goes on to what comes next. That is so for packets of which nothing is said.
    #[inline]
    pub fn pass(&mut self) {
        self.slot.verdict = Verdict::Pass(self.slot.extent);
    }

    /// It is dropped.
    #[inline]
    pub fn drop(&mut self, reason: Reason) {
        self.slot.verdict = Verdict::Drop(reason.0);
    }

    /// When it came: nanoseconds since 1970.
    pub fn time(&self) -> u64 {
        self.slot.arrival.time
    }

    /// A hash of its flow; 0 if it is not known.
    pub fn hash(&self) -> u32 {
        self.slot.arrival.hash
    }

    /// The port at which it came.
    pub fn port(&self) -> u16 {
        self.slot.arrival.port
    }

    /// The group of its flow; 0 if it has none.
    pub fn group(&self) -> u16 {
        self.slot.arrival.group
    }

    /// Adds to a counter.
    #[inline]
    pub fn count(&mut self, counter: Counter, more: u64) {
        add(self.counters, counter, more);
    }

    /// Its flow as it is now, by the fields that [`Setup::state`] says; none if it is not IP.
    pub fn flow(&self) -> Option<Flow> {
        Flow::of(self.bytes(), self.cache.fields?)
    }

    /// What is kept of a flow. The packet leaves the chain after all updates of that flow before.
    ///
    /// # Errors
    /// If it cannot be read now.
    pub fn read(&mut self, flow: &Flow) -> std::result::Result<Option<&[u8]>, Away> {
        let (value, update) = self.cache.read(flow)?;
        self.slot.update = self.slot.update.max(update);
        Ok(value)
    }

    /// Keeps a value of a flow, of [`LONGEST_VALUE`](crate::LONGEST_VALUE) bytes at most. The packet leaves the chain
    /// when that is stored. Whether the value is short enough.
    pub fn update(&mut self, flow: &Flow, value: &[u8]) -> bool {
        self.keep(flow, Some(value))
    }

    /// Keeps nothing of a flow from now on. The packet leaves the chain when that is stored.
    pub fn remove(&mut self, flow: &Flow) {
        self.keep(flow, None);
    }

    fn keep(&mut self, flow: &Flow, value: Option<&[u8]>) -> bool {
        let number = self.cache.update(flow, value);
        self.slot.update = self.slot.update.max(number.unwrap_or(0));
        number.is_some()
    }
}

/// An NF that is attached to its host.
struct Attached {
    layout: Layout,
    host: Page,
    before: Page,
    own: Page,
    wake: OwnedFd,
    wake_next: OwnedFd,
    /// Where packets come, if they are copied from there.
    from: Option<Mapping>,
    batch: Batch,
    counts: Counts,
    /// How many counters it named.
    counters: usize,
    /// Whether packets pass whose state cannot be read.
    opens: bool,
    round: u64,
}

/// Runs a network function until its host ends: the whole of a program's `main`.
pub fn main<N: NetworkFunction>() -> ExitCode {
    match run::<N>() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a network function until its host ends.
///
/// # Errors
/// Why it was not attached; the host was told.
pub fn run<N: NetworkFunction>() -> Result<()> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    if rustix::net::sockopt::socket_type(&socket).is_err() {
        let help = "this is a network function, which its host starts: `catena nf run PROGRAM --pcap FILE`";
        return Err(Error::other(help));
    }
    // It ends with its host.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    send(&socket, kind::HELLO, &[], &[])?;
    match attach::<N>(&socket) {
        Ok((mut function, mut attached)) => attached.serve(&mut function),
        Err(why) => {
            let _ = send(&socket, kind::REFUSED, why.to_string().as_bytes(), &[]);
            Err(why)
        }
    }
}

fn attach<N: NetworkFunction>(socket: &OwnedFd) -> Result<(N, Attached)> {
    let few = || Error::new(ErrorKind::InvalidData, "too few descriptors or numbers");
    let (body, mut files) = expect(socket, kind::ATTACH)?;
    let mut numbers =
        body.chunks_exact(4).filter_map(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let mut number = || numbers.next().ok_or_else(few);
    let flags = number()?;
    let layout = Layout { buffers: number()?, buffer_size: number()?, capacity: number()? };
    let capacity = number()? as usize;
    if !layout.is_valid() {
        return Err(Error::new(ErrorKind::InvalidData, "a layout that the ABI has not"));
    }
    let mut file = || files.next().ok_or_else(few);
    let own = Page::attach(file()?, &layout, true)?;
    let (wake, wake_next) = (file()?, file()?);
    let (writes, copies) = (flags & flag::WRITES != 0, flags & flag::COPIES != 0);
    let written = match writes || copies {
        true => Some(Mapping::new(file()?, layout.region(), true)?),
        false => None,
    };
    send(socket, kind::ATTACHED, &[], &[])?;
    let (config, mut files) = expect(socket, kind::BEGIN)?;
    let mut file = || files.next().ok_or_else(few);
    let host = Page::attach(file()?, &layout, false)?;
    let before = Page::attach(file()?, &layout, false)?;
    let mut read = || Mapping::new(file()?, layout.region(), false);
    let (from, region) = match written {
        Some(written) if copies => (Some(read()?), written),
        Some(written) => (None, written),
        None => (None, read()?),
    };
    region.lock();
    let config =
        String::from_utf8(config).map_err(|_| Error::other("a configuration that is no UTF-8"))?;
    let mut setup = Setup::default();
    let function = N::init(&config, &mut setup).map_err(Error::other)?;
    if let Some(wrong) = setup.wrong {
        return Err(Error::other(wrong));
    }
    send(socket, kind::READY, setup.names.text().as_bytes(), &[])?;
    let slots = Vec::with_capacity(layout.capacity as usize);
    let has_store = flags & flag::STORE != 0 && setup.fields.is_some();
    let socket = has_store.then(|| socket.try_clone()).transpose()?;
    let cache = Cache::new(setup.fields, socket, capacity);
    let batch = Batch { slots, region, layout, writes, counters: [0; MOST_COUNTERS], cache };
    let (counts, round) = (Counts::default(), own.round());
    let counters = setup.names.counters.len();
    Ok((
        function,
        Attached {
            layout,
            host,
            before,
            own,
            wake,
            wake_next,
            from,
            batch,
            counts,
            counters,
            opens: flags & flag::OPEN != 0,
            round,
        },
    ))
}

impl Attached {
    fn serve<N: NetworkFunction>(&mut self, function: &mut N) -> Result<()> {
        while self.wait() {
            self.take();
            self.fetch()?;
            let begin = Instant::now();
            function.process(&mut self.batch);
            self.counts.busy += begin.elapsed().as_nanos() as u64;
            // Before the host sees which updates packets wait for, it has them.
            self.batch.cache.flush()?;
            self.give();
        }
        Ok(())
    }

    /// Reads the state of the batch's flows that is not known, in one request. Packets of those that cannot be read are not
    /// processed.
    fn fetch(&mut self) -> Result<()> {
        let batch = &mut self.batch;
        let Some(fields) = batch.cache.fields.filter(|_| batch.cache.socket.is_some()) else {
            return Ok(());
        };
        let flow = |slot: &Slot, region: &Mapping| {
            let Extent { head, length } = slot.extent;
            Flow::of(region.bytes(slot.start + usize::from(head), length as usize), fields)
        };
        let mut asked = HashSet::with_hasher(RandomState::default());
        let mut missing = Vec::new();
        for slot in &batch.slots {
            if let Some(flow) = flow(slot, &batch.region)
                && !batch.cache.has(&flow)
                && asked.insert(flow)
            {
                missing.push(flow);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let away: HashSet<Flow> = batch.cache.fetch(&missing)?.into_iter().collect();
        if away.is_empty() {
            return Ok(());
        }
        let (region, opens) = (&batch.region, self.opens);
        let (own, counts) = (&mut self.own, &mut self.counts);
        batch.slots.retain(|slot| {
            let is_away = flow(slot, region).is_some_and(|flow| away.contains(&flow));
            if is_away && opens {
                counts.passed += 1;
                own.set_verdict(slot.index, slot.verdict);
                own.set_update(slot.index, 0);
            } else if is_away {
                counts.dropped += 1;
                own.set_verdict(slot.index, Verdict::Drop(NO_STATE));
            }
            !is_away
        });
        Ok(())
    }

    /// Waits for the turn; whether there is one.
    fn wait(&mut self) -> bool {
        let mut woke = false;
        loop {
            let round = self.host.round();
            if round != self.round && self.before.round() == round {
                self.round = round;
                return self.host.state() != State::Stop;
            }
            if woke {
                self.counts.out_of_turn += 1;
                self.own.set_out_of_turn(self.counts.out_of_turn);
            }
            match self.host.state() {
                State::Stop => return false,
                State::Yield => {
                    rustix::thread::sched_yield();
                    woke = false;
                }
                State::Baton | State::Idle => {
                    let mut times = [0; 8];
                    // Signals interrupt it.
                    woke = rustix::io::read(&self.wake, &mut times).is_ok();
                }
            }
        }
    }

    /// Takes the packets that the one before passed on.
    fn take(&mut self) {
        let batch = &mut self.batch;
        batch.slots.clear();
        let count = self.host.count().min(u64::from(self.layout.capacity)) as u32;
        for index in 0..count {
            let verdict = self.before.verdict(index);
            let arrival = self.host.arrival(index);
            let Verdict::Pass(extent) = verdict else {
                self.own.set_verdict(index, Verdict::Absent);
                continue;
            };
            self.counts.received += 1;
            if !self.layout.has(extent) || arrival.buffer >= self.layout.buffers {
                self.counts.malformed += 1;
                self.own.set_verdict(index, Verdict::Drop(MALFORMED));
                continue;
            }
            let start = arrival.buffer as usize * self.layout.buffer_size as usize;
            batch.slots.push(Slot { index, start, extent, verdict, arrival, update: 0 });
            batch.region.prefetch(start + usize::from(extent.head));
        }
        if let Some(from) = &self.from {
            for slot in &batch.slots {
                let (at, length) =
                    (slot.start + usize::from(slot.extent.head), slot.extent.length as usize);
                batch.region.bytes_mut(at, length).copy_from_slice(from.bytes(at, length));
            }
        }
    }

    /// Says what became of them, and hands the turn on.
    fn give(&mut self) {
        for slot in &self.batch.slots {
            match slot.verdict {
                Verdict::Pass(_) => self.counts.passed += 1,
                Verdict::Drop(_) | Verdict::Absent => self.counts.dropped += 1,
            }
            self.own.set_verdict(slot.index, slot.verdict);
            if self.batch.cache.socket.is_some() {
                self.own.set_update(slot.index, slot.update);
            }
        }
        self.counts.batches += 1;
        self.own.set_counts(&self.counts);
        for (number, value) in self.batch.counters.iter().enumerate().take(self.counters) {
            self.own.set_counter(number, *value);
        }
        self.own.finish(self.round);
        if self.host.state() != State::Yield {
            let _ = rustix::io::write(&self.wake_next, &1u64.to_ne_bytes());
        }
    }
}
