//! A chain that runs: its memory, its NFs, and the turn that goes through them.
//!
//! One batch is in the chain at a time. The host's thread puts it into memory and has the turn; each NF has it once; then
//! the host reads what became of each packet.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nf::{
    Arrival, Extent, HostEnd, Kept, Layout, Mapping, Memory, Names, Offer, Page, State, Trouble,
    Verdict,
};
use rustix::event::{EventfdFlags, eventfd};

use crate::launch::{Environment, Packets, Running, Start};
use crate::manifest::{HostChain, Within};
use crate::state::{self, Session, Store};
use crate::{Failure, Journal, Process, log};

/// Bytes of a buffer.
const BUFFER: u32 = 2048;

/// Bytes that are free in front of a packet that comes.
pub(crate) const HEADROOM: u16 = 128;

/// Bytes of a packet at most: some are left free behind it.
pub(crate) const LONGEST_PACKET: usize = (BUFFER - HEADROOM as u32) as usize - 64;

/// How long an NF may take to start, and to initialise itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The program and arguments of an NF.
pub(crate) type Program = (std::path::PathBuf, Vec<String>);

/// A chain, as the thread has it that moves packets.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) number: u64,
    pub(crate) layout: Layout,
    host: Page,
    /// Where packets are put.
    first: Mapping,
    /// Where they are at the end, if not there.
    last: Option<Mapping>,
    pages: Vec<Page>,
    /// What wakes each NF, and in the end the host.
    wakes: Arc<Vec<OwnedFd>>,
    failed: Arc<AtomicBool>,
    state: State,
    round: u64,
    /// Of NFs that keep state.
    sessions: Vec<Option<Arc<Session>>>,
}

/// The same chain, as it is watched.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) number: u64,
    pub(crate) seats: Vec<Seat>,
    host: Page,
    wakes: Arc<Vec<OwnedFd>>,
    failed: Arc<AtomicBool>,
}

/// An NF of a chain.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) running: Running,
    pub(crate) page: Page,
    pub(crate) names: Names,
    /// If it keeps state.
    pub(crate) session: Option<Arc<Session>>,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All NFs passed it.
    Passed(Extent),
    /// One dropped it, for a reason of its own.
    Dropped(usize, u16),
    /// One says what it cannot: of a packet that was dropped before it, or with bounds outside of the buffer.
    Forged(usize),
}

/// Why a round did not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// An NF ended.
    Ended,
    /// One handed on a turn that it had not.
    Forged(usize),
}

/// Why an NF did not start.
pub(crate) fn explain(name: &str, why: Trouble, process: &Process, threads: u32) -> Failure {
    let text = match why {
        Trouble::Ended => {
            let ending =
                process.ending_soon().unwrap_or_else(|| "it closed its standard input".into());
            // What Go's own runtime ends with.
            let hint = match threads == 1 && ending == "it exited with status 2" {
                true => format!(
                    " A program in Go needs `threads: {}`, as Go starts some by itself.",
                    nf::sources::GO_THREADS
                ),
                false => String::new(),
            };
            format!(
                "the NF '{name}' ended before it was ready: {ending}; is it made with the NF runtime?{hint}"
            )
        }
        Trouble::Silent => {
            format!("the NF '{name}' was not ready within {} s", PATIENCE.as_secs())
        }
        Trouble::Version(version) => format!(
            "the NF '{name}' has version {version} of the NF ABI, and this host {}: build it anew",
            nf::VERSION
        ),
        Trouble::Refused(why) => format!("the NF '{name}' refuses to start: {why}"),
        Trouble::Abi(why) => format!("the NF '{name}' does not keep to the NF ABI: {why}"),
        Trouble::System(why) => format!("the NF '{name}': {why}"),
    };
    Failure::Impossible(text)
}

/// Starts the NFs of a chain and gives them their memory.
pub(crate) fn assemble(
    spec: &HostChain,
    environments: &[Box<dyn Environment>],
    number: u64,
    (capacity, has_logs): (u32, bool),
    stores: &[Arc<Store>],
    journal: &Journal,
) -> Result<(Chain, Watched), Failure> {
    let layout = Layout { buffers: capacity, buffer_size: BUFFER, capacity };
    let at = |why: std::io::Error| Failure::File(journal.folder().into(), why);
    let memory = |name: &str, length: usize| Memory::new(name, length).map_err(at);
    let host_page = memory("catena-host", layout.page())?;
    let pages: Vec<Memory> =
        spec.nfs.iter().map(|_| memory("catena-nf", layout.page())).collect::<Result<_, _>>()?;
    let copies = spec.within == Within::Copy;
    // The host's, and where NFs copy packets, one of each.
    let count = if copies { 1 + spec.nfs.len() } else { 1 };
    let regions: Vec<Memory> =
        (0..count).map(|_| memory("catena-packets", layout.region())).collect::<Result<_, _>>()?;
    let wakes: Vec<OwnedFd> = (0..=spec.nfs.len())
        .map(|_| eventfd(0, EventfdFlags::CLOEXEC).map_err(|why| at(why.into())))
        .collect::<Result<_, _>>()?;
    let wakes = Arc::new(wakes);
    let host = Page::map(&host_page, true).map_err(at)?;
    let mut first = regions[0].map(true).map_err(at)?;
    first.bytes_mut(0, 1)[0] = 0;
    first.lock();
    let offer = |index: usize| Offer {
        layout,
        writes: spec.nfs[index].writes,
        page: &pages[index],
        wake: wakes[index].as_fd(),
        wake_next: wakes[index + 1].as_fd(),
        input: &regions[if copies { index } else { 0 }],
        own: copies.then(|| &regions[index + 1]),
        state: spec
            .state
            .as_ref()
            .map(|of| Kept { opens: of.away == state::Policy::Open, cache: of.cache }),
    };
    let mut logs = Vec::new();
    let mut start =
        |seat: usize, environment: &dyn Environment| -> Result<(HostEnd, Running), Failure> {
            let nf = &spec.nfs[seat];
            let (line, socket) = HostEnd::pair().map_err(at)?;
            line.set_patience(PATIENCE).map_err(at)?;
            let output = match has_logs {
                true => {
                    let (output, written) = log::watched(journal.folder(), &nf.name)?;
                    logs.push(written);
                    output
                }
                false => [Stdio::inherit(), Stdio::inherit()],
            };
            let packets = Packets::Shared(socket);
            let start = Start { chain: number, seat, limits: nf.limits, packets, output };
            Ok((line, environment.start(start, journal)?))
        };
    let end = |all: &[(HostEnd, Running)]| all.iter().for_each(|(_, running)| running.destroy());
    let mut started = Vec::new();
    for (seat, environment) in environments.iter().enumerate() {
        match start(seat, environment.as_ref()) {
            Ok(one) => started.push(one),
            Err(why) => {
                end(&started);
                return Err(why);
            }
        }
    }
    // Why it was not made, and whose fault that is.
    let made = || -> Result<Vec<Names>, (Failure, Option<usize>)> {
        let all = || started.iter().enumerate();
        let wrong = |index: usize, why| {
            let nf = &spec.nfs[index];
            let process = &started[index].1.process;
            (explain(&nf.name, why, process, nf.limits.threads), Some(index))
        };
        for (index, (line, _)) in all() {
            line.attach(&offer(index)).map_err(|why| wrong(index, why))?;
        }
        // Who writes has it. From now on, nobody else can.
        for memory in pages.iter().chain(&regions).chain([&host_page]) {
            memory.close_to_writers().map_err(|why| (at(why), None))?;
        }
        for (index, (line, _)) in all() {
            let before = if index == 0 { &host_page } else { &pages[index - 1] };
            let config = &spec.nfs[index].config;
            line.begin(&offer(index), &host_page, before, config)
                .map_err(|why| wrong(index, why))?;
        }
        all().map(|(index, (line, _))| line.ready().map_err(|why| wrong(index, why))).collect()
    };
    let names = made().map_err(|(why, seat)| {
        end(&started);
        // Nothing is printed any more; the log has it all when its thread has ended.
        let written = seat.and_then(|seat| logs.get(seat));
        let printed = seat.zip(written).and_then(|(seat, written)| {
            let _ = written.recv_timeout(PATIENCE);
            log::tail(journal.folder(), &spec.nfs[seat].name)
        });
        match printed {
            Some(printed) => Failure::Impossible(format!("{why}\n  it printed: {printed}")),
            None => why,
        }
    })?;
    let read = |memory: &Memory| Page::map(memory, false).map_err(at);
    let failed = Arc::new(AtomicBool::new(false));
    let mut sessions = Vec::new();
    let mut all = Vec::new();
    for ((index, (line, running)), names) in started.into_iter().enumerate().zip(&names) {
        // The others have nothing more to say.
        let session = match stores.get(index).filter(|_| names.has_state) {
            Some(store) => Some(store.hear(number, line)?),
            None => None,
        };
        sessions.push(session);
        all.push(running);
    }
    let chain = Chain {
        number,
        layout,
        host,
        first,
        last: if copies { Some(regions[count - 1].map(false).map_err(at)?) } else { None },
        pages: pages.iter().map(read).collect::<Result<_, _>>()?,
        wakes: Arc::clone(&wakes),
        failed: Arc::clone(&failed),
        state: State::Baton,
        round: 0,
        sessions: sessions.clone(),
    };
    let mut seats = Vec::new();
    let parts = spec.nfs.iter().zip(all).zip(&pages).zip(names).zip(sessions);
    for ((((nf, running), page), names), session) in parts {
        seats.push(Seat { name: nf.name.clone(), running, page: read(page)?, names, session });
    }
    let watched = Watched { number, seats, host: read(&host_page)?, wakes, failed };
    Ok((chain, watched))
}

impl Chain {
    /// How NFs wait from now on.
    pub(crate) fn set_state(&mut self, state: State) {
        if self.state != state {
            self.host.set_state(state);
            self.state = state;
            // They sleep, or may do so.
            self.wakes[..self.pages.len()].iter().for_each(wake);
        }
    }

    /// Puts a packet at a position of the next round.
    pub(crate) fn put(&mut self, index: u32, bytes: &[u8], arrival: Arrival) {
        let at = self.start(index) + usize::from(HEADROOM);
        self.first.bytes_mut(at, bytes.len()).copy_from_slice(bytes);
        self.host.set_arrival(index, Arrival { buffer: index, ..arrival });
        let extent = Extent { head: HEADROOM, length: bytes.len() as u32 };
        self.host.set_verdict(index, Verdict::Pass(extent));
    }

    fn start(&self, index: u32) -> usize {
        index as usize * self.layout.buffer_size as usize
    }

    /// Has the turn go once through all NFs with so many packets.
    pub(crate) fn run(&mut self, count: u32) -> Result<(), Broken> {
        self.round += 1;
        self.host.set_count(count);
        self.host.finish(self.round);
        if self.state == State::Baton {
            wake(&self.wakes[0]);
        }
        let last = &self.pages[self.pages.len() - 1];
        while last.round() != self.round {
            if self.failed.load(Ordering::Relaxed) {
                return Err(Broken::Ended);
            }
            if let Some(seat) = self.forged_turn() {
                return Err(Broken::Forged(seat));
            }
            if self.state == State::Yield {
                rustix::thread::sched_yield();
            } else {
                let _ = rustix::io::read(&self.wakes[self.pages.len()], &mut [0; 8]);
            }
        }
        self.forged_turn().map_or(Ok(()), |seat| Err(Broken::Forged(seat)))
    }

    /// The NF that is in a round in which it cannot be: before its turn, or in none that there is.
    fn forged_turn(&self) -> Option<usize> {
        // The last is read first: whoever is before one that has finished has done so, too.
        let (before, round) = (self.round - 1, self.round);
        let mut after = before;
        for (seat, page) in self.pages.iter().enumerate().rev() {
            let of = page.round();
            if after == round && of == before {
                return Some(seat + 1);
            }
            if of != before && of != round {
                return Some(seat);
            }
            after = of;
        }
        None
    }

    /// Whether one of its NFs ended.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// What became of a packet of the last round.
    pub(crate) fn outcome(&self, index: u32) -> Outcome {
        let mut extent = Extent::default();
        for (seat, page) in self.pages.iter().enumerate() {
            match page.verdict(index) {
                Verdict::Pass(of) if self.layout.has(of) => extent = of,
                Verdict::Pass(_) => return Outcome::Forged(seat),
                other => {
                    let rest = self.pages.iter().enumerate().skip(seat + 1);
                    let said =
                        rest.into_iter().find(|(_, page)| page.verdict(index) != Verdict::Absent);
                    return match (said, other) {
                        (Some((forger, _)), _) => Outcome::Forged(forger),
                        (None, Verdict::Drop(reason)) => Outcome::Dropped(seat, reason),
                        (None, _) => Outcome::Forged(seat),
                    };
                }
            }
        }
        Outcome::Passed(extent)
    }

    /// From now on, those of its NFs that keep state have their flows, and those of chains before have not.
    pub(crate) fn begin(&self) {
        self.sessions().for_each(|session| session.begin());
    }

    /// Those of its NFs that keep state.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.iter().flatten()
    }

    /// The hash of the flow of a packet of the last round, as it came.
    pub(crate) fn hash(&self, index: u32) -> u32 {
        self.host.arrival(index).hash
    }

    /// The updates that a packet of the last round waits for.
    pub(crate) fn updates(&self, index: u32) -> impl Iterator<Item = (&Arc<Session>, u64)> {
        let all = self.sessions.iter().zip(&self.pages);
        all.filter_map(move |(session, page)| Some((session.as_ref()?, page.update(index))))
    }

    /// The bytes of a packet at the end of the chain.
    pub(crate) fn bytes(&self, index: u32, extent: Extent) -> &[u8] {
        let region = self.last.as_ref().unwrap_or(&self.first);
        region.bytes(self.start(index) + usize::from(extent.head), extent.length as usize)
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        self.set_state(State::Stop);
    }
}

fn wake(of: &OwnedFd) {
    let _ = rustix::io::write(of, &1u64.to_ne_bytes());
}

impl Watched {
    /// The NF that has the turn, and the round; none if the host has it.
    pub(crate) fn turn(&self) -> Option<(usize, u64)> {
        let round = self.host.round();
        let seat = self.seats.iter().position(|seat| seat.page.round() != round)?;
        Some((seat, round))
    }

    /// Ends it: the thread that moves packets goes on with another one.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
        if let Some(host) = self.wakes.last() {
            wake(host);
        }
        self.seats.iter().for_each(|seat| seat.running.process.kill());
    }

    /// Whether it was ended.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether it has processed a batch.
    pub(crate) fn has_worked(&self) -> bool {
        self.host.round() > 0 && self.seats.iter().all(|seat| seat.page.round() > 0)
    }

    /// Does this with each thread of the NFs, but for those that end meanwhile.
    pub(crate) fn each_thread(&self, act: impl Fn(u32) -> io::Result<()>) -> io::Result<()> {
        self.seats.iter().try_for_each(|seat| seat.running.process.each_thread(&act))
    }
}
