//! Runtimes in every language: the same functions process the same batches, also hostile ones. What they write is equal.
//!
//! The test is the host: it has the memory and the socket, and speaks the ABI to one process.

extern crate nf as catena_nf;

mod support;

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use catena_host::manifest::Function;
use nf::{
    Answer, Arrival, Asked, Counts, Extent, Flow, HostEnd, Kept, Layout, Mapping, Memory, NO_STATE,
    Names, Offer, Page, State, Trouble, Update, Verdict,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use support::Folder;
use support::languages::{LANGUAGES, What, function};

/// How packets are given to a function.
#[derive(Clone, Copy, Debug)]
struct Mode {
    writes: bool,
    copies: bool,
    state: Option<Kept>,
}

const MODES: [Mode; 4] = [
    Mode { writes: true, copies: false, state: None },
    Mode { writes: false, copies: false, state: None },
    Mode { writes: true, copies: true, state: None },
    Mode { writes: false, copies: true, state: None },
];

/// A packet of a round, as the one before passed or dropped it.
#[derive(Clone, Debug)]
struct Given {
    arrival: Arrival,
    verdict: Verdict,
}

/// A round: its packets, and how many the host says there are.
#[derive(Clone, Debug)]
struct Round {
    packets: Vec<Given>,
    count: u32,
    state: State,
}

/// All that a function wrote.
#[derive(Debug, PartialEq)]
struct Wrote {
    names: Names,
    /// Of each round, at each position.
    verdicts: Vec<Vec<Verdict>>,
    /// The updates that packets wait for.
    updates: Vec<Vec<u64>>,
    state: BTreeMap<Flow, Vec<u8>>,
    counters: Vec<u64>,
    counts: Counts,
    bytes: Vec<u8>,
}

/// The process of a function, which ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn start(function: &Function, socket: OwnedFd) -> Self {
        let Function::Program(program, arguments) = function else { panic!("a program") };
        let mut command = Command::new(program);
        command.args(arguments).stdin(socket).stdout(Stdio::null());
        Self(command.env("PATH", "/usr/local/bin:/usr/bin:/bin").spawn().unwrap())
    }
}

/// A function that runs, and what it shares with this test.
struct Running {
    child: Process,
    wakes: [OwnedFd; 2],
    host: Page,
    before: Page,
    page: Page,
    input: Mapping,
    own: Option<Mapping>,
    names: Names,
    /// What keeps its state.
    store: JoinHandle<BTreeMap<Flow, Vec<u8>>>,
    _folder: Folder,
}

fn start(
    what: What,
    language: &str,
    config: &str,
    layout: Layout,
    mode: Mode,
) -> Result<Running, Trouble> {
    let folder = Folder::new(&format!("{language}-{}", config.replace(['/', '\n', ' '], "_")));
    let memory = |length: usize| Memory::new("test", length).unwrap();
    let (host_page, before_page, own_page) =
        (memory(layout.page()), memory(layout.page()), memory(layout.page()));
    let region = memory(layout.region());
    let copy = mode.copies.then(|| memory(layout.region()));
    let host = Page::map(&host_page, true).unwrap();
    let before = Page::map(&before_page, true).unwrap();
    let input = region.map(true).unwrap();
    let wakes = [(); 2].map(|()| eventfd(0, EventfdFlags::CLOEXEC).unwrap());
    let (line, socket) = HostEnd::pair().unwrap();
    line.set_patience(std::time::Duration::from_secs(20)).unwrap();
    let mut child = Process::start(&function(what, language, &folder, config).function, socket);
    let offer = Offer {
        layout,
        writes: mode.writes,
        page: &own_page,
        wake: wakes[0].as_fd(),
        wake_next: wakes[1].as_fd(),
        input: &region,
        own: copy.as_ref(),
        state: mode.state,
    };
    let ready = line.attach(&offer).and_then(|()| {
        for memory in [&host_page, &before_page, &own_page, &region].into_iter().chain(&copy) {
            memory.close_to_writers().unwrap();
        }
        line.begin(&offer, &host_page, &before_page, config)?;
        line.ready()
    });
    if ready.is_err() {
        assert!(!child.0.wait().unwrap().success(), "what refuses ends with an error");
    }
    let names = ready?;
    line.set_running(Duration::from_secs(20)).unwrap();
    Ok(Running {
        names,
        store: std::thread::spawn(move || keep(&line)),
        child,
        wakes,
        host,
        before,
        page: Page::map(&own_page, false).unwrap(),
        input,
        own: copy.map(|copy| copy.map(false).unwrap()),
        _folder: folder,
    })
}

/// Whether the state of a flow cannot be read.
fn is_away(flow: &Flow) -> bool {
    flow.0[11] == 3
}

/// Keeps the state of a function until it ends.
fn keep(line: &HostEnd) -> BTreeMap<Flow, Vec<u8>> {
    let (mut kept, mut last) = (BTreeMap::<Flow, Vec<u8>>::new(), 0);
    loop {
        match line.asked() {
            Ok(Asked::Read(flows)) => {
                let answer = |flow: &Flow| match kept.get(flow) {
                    _ if is_away(flow) => Answer::Away,
                    Some(value) => Answer::Value(value.clone()),
                    None => Answer::Absent,
                };
                line.answer(&flows.iter().map(answer).collect::<Vec<_>>()).unwrap();
            }
            Ok(Asked::Update(updates)) => {
                for Update { number, flow, value } in updates {
                    last += 1;
                    assert_eq!(number, last);
                    match value {
                        Some(value) => drop(kept.insert(flow, value)),
                        None => drop(kept.remove(&flow)),
                    }
                }
            }
            Err(Trouble::Ended) => return kept,
            Err(why) => panic!("{why:?}"),
        }
    }
}

impl Running {
    fn wake(&self) {
        rustix::io::write(&self.wakes[0], &1u64.to_ne_bytes()).unwrap();
    }

    /// Hands it the turn, and waits until it hands it on.
    fn round(&mut self, number: u64, round: &Round) {
        for (index, given) in round.packets.iter().enumerate() {
            self.host.set_arrival(index as u32, given.arrival);
            self.before.set_verdict(index as u32, given.verdict);
        }
        self.host.set_count(round.count);
        let was = self.host.state();
        self.host.set_state(round.state);
        self.host.finish(number);
        self.before.finish(number);
        if round.state != State::Yield || was != State::Yield {
            self.wake();
        }
        while self.page.round() != number {
            assert!(self.child.0.try_wait().unwrap().is_none(), "it has ended");
            let mut ready = [PollFd::new(&self.wakes[1], PollFlags::IN)];
            // It may have looked at the state before that was changed, and woken nobody: the page says what is true.
            poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 })).unwrap();
        }
    }

    /// Has it process rounds, and end.
    fn process(mut self, bytes: &[u8], rounds: &[Round]) -> Wrote {
        self.input.bytes_mut(0, bytes.len()).copy_from_slice(bytes);
        let (mut verdicts, mut updates) = (Vec::new(), Vec::new());
        for (number, round) in (1..).zip(rounds) {
            self.round(number, round);
            let all = 0..round.packets.len() as u32;
            verdicts.push(all.clone().map(|index| self.page.verdict(index)).collect());
            let passes = |index: &u32| matches!(self.page.verdict(*index), Verdict::Pass(_));
            updates.push(all.filter(passes).map(|index| self.page.update(index)).collect());
        }
        self.host.set_state(State::Stop);
        self.wake();
        assert!(self.child.0.wait().unwrap().success());
        let counts = self.page.counts();
        let bytes = self.own.as_ref().unwrap_or(&self.input).bytes(0, bytes.len()).to_vec();
        Wrote {
            verdicts,
            updates,
            state: self.store.join().unwrap(),
            counters: (0..self.names.counters.len()).map(|of| self.page.counter(of)).collect(),
            // These are times.
            counts: Counts { busy: 0, out_of_turn: 0, ..counts },
            bytes,
            names: self.names.clone(),
        }
    }
}

fn arrival(random: &mut fastrand::Rng, buffer: u32) -> Arrival {
    let (hash, time) = (random.u32(..), random.u64(..));
    Arrival { buffer, hash, time, port: random.u16(..), group: random.u16(..) }
}

/// Rounds of a layout: empty, full, with packets as long as buffers, with some that were dropped before, and with what no host says.
fn rounds(layout: Layout, random: &mut fastrand::Rng, state: State) -> Vec<Round> {
    let Layout { buffers, buffer_size, capacity } = layout;
    let mut all = Vec::new();
    for kind in 0..8 {
        let count = match kind {
            0 => 0,
            1 => 1,
            2..=5 => capacity,
            _ => random.u32(0..=capacity),
        };
        let packets = (0..count).map(|index| {
            // Those of a round are in different buffers.
            let mut arrival = arrival(random, index % buffers);
            let head = random.u32(0..=buffer_size.min(65_535));
            let mut extent =
                Extent { head: head as u16, length: random.u32(0..=buffer_size - head) };
            match kind {
                // As long as a buffer, and of no length, at both ends.
                2 => extent = Extent { head: 0, length: buffer_size },
                3 => {
                    let head = if index % 2 == 0 { 0 } else { buffer_size.min(65_535) as u16 };
                    extent = Extent { head, length: 0 };
                }
                4 => {
                    extent =
                        Extent { head: 64, length: random.u32(60..=buffer_size.min(1_600) - 64) }
                }
                // Outside of a buffer, or of the region.
                6 => match random.u8(..5) {
                    0 => extent.length = buffer_size - head + 1,
                    1 => extent.length = u32::MAX - random.u32(..70_000),
                    2 => arrival.buffer = buffers,
                    3 => arrival.buffer = u32::MAX,
                    _ => {}
                },
                _ => {}
            }
            let verdict = match (kind, random.u8(..4)) {
                (5, 0) => Verdict::Absent,
                (5, 1) => Verdict::Drop(random.u16(..)),
                _ => Verdict::Pass(extent),
            };
            Given { arrival, verdict }
        });
        let packets = packets.collect();
        // A host that says more than there can be.
        let count = if count == capacity && kind == 3 { u32::MAX } else { count };
        all.push(Round { packets, count, state });
    }
    all
}

/// A round of frames of IPv4, some of them from addresses that are denied.
fn frames(layout: Layout, random: &mut fastrand::Rng, bytes: &mut [u8]) -> Round {
    let packet = |index: u32| {
        let length = random.u32(0..=128);
        let start = (index * layout.buffer_size) as usize + 128;
        let frame = &mut bytes[start..start + length as usize];
        frame.iter_mut().for_each(|byte| *byte = random.u8(..));
        if let Some(kind) = frame.get_mut(12..14) {
            kind.copy_from_slice(if random.u8(..8) == 0 { &[8, 6] } else { &[8, 0] });
        }
        if let Some(source) = frame.get_mut(26..30) {
            source.copy_from_slice(&[10, 0, 0, random.u8(..4)]);
        }
        let verdict = Verdict::Pass(Extent { head: 128, length });
        Given { arrival: arrival(random, index), verdict }
    };
    let packets: Vec<Given> = (0..layout.capacity).map(packet).collect();
    Round { count: packets.len() as u32, packets, state: State::Baton }
}

const LAYOUTS: [Layout; 3] = [
    Layout { buffers: 40, buffer_size: 256, capacity: 32 },
    Layout { buffers: 1024, buffer_size: 2048, capacity: 1024 },
    Layout { buffers: 5, buffer_size: 65_536, capacity: 4 },
];

#[test]
fn the_same_functions_write_the_same_in_every_language() {
    let mut random = fastrand::Rng::with_seed(11);
    for (layout, mode) in LAYOUTS.into_iter().flat_map(|of| MODES.map(|mode| (of, mode))) {
        let mut bytes: Vec<u8> =
            std::iter::repeat_with(|| random.u8(..)).take(layout.region()).collect();
        let mut all = rounds(layout, &mut random, State::Baton);
        all.extend(rounds(layout, &mut random, State::Yield));
        all.extend(rounds(layout, &mut random, State::Idle));
        if layout.buffer_size == 2048 {
            all.push(frames(layout, &mut random, &mut bytes));
        }
        let acl = "deny 10.0.0.1\n\n  deny 10.0.0.3\n";
        for (what, config) in [(What::Same, "count 3"), (What::Same, "rewrite"), (What::Acl, acl)] {
            let by = |language: &str| {
                let function = start(what, language, config, layout, mode);
                let function = function.unwrap_or_else(|why| panic!("{language}: {why:?}"));
                function.process(&bytes, &all)
            };
            let expected = by(LANGUAGES[0]);
            for language in &LANGUAGES[1..] {
                let found = by(language);
                assert_eq!(expected.names, found.names, "{language}");
                for (number, (one, other)) in
                    expected.verdicts.iter().zip(&found.verdicts).enumerate()
                {
                    assert_eq!(
                        one, other,
                        "{language}, {config}, round {number}, {mode:?}, {layout:?}"
                    );
                }
                let [one, other] = [&expected, &found].map(|of| (&of.counters, of.counts));
                assert_eq!(one, other, "{language}, {config}, {mode:?}, {layout:?}");
                assert!(
                    expected.bytes == found.bytes,
                    "{language}, {config}, {mode:?}, {layout:?}"
                );
            }
            // All of it happened.
            let counts = expected.counts;
            assert_eq!(counts.batches, all.len() as u64);
            assert!(counts.malformed > 0 && counts.passed > 0);
            assert_eq!(counts.received, counts.passed + counts.dropped + counts.malformed);
            let is_due = |of: &u64| *of > 0 || (config == "rewrite" && !mode.writes);
            let has_frames = what != What::Acl || layout.buffer_size == 2048;
            assert!(!has_frames || expected.counters.iter().all(is_due), "{expected:?}");
            assert!(
                counts.dropped > 0 || !has_frames || layout.capacity < 32,
                "{config} {mode:?} {layout:?}"
            );
            assert!(mode.writes || mode.copies || expected.bytes == bytes);
        }
    }
}

#[test]
fn state_is_kept_alike_in_every_language() {
    let mut random = fastrand::Rng::with_seed(7);
    let layout = LAYOUTS[1];
    let mut bytes = vec![0; layout.region()];
    // Frames of all kinds whose flows come again, with tags, fragments, IPv6 and its extension headers, and some cut short.
    let mut round = frames(layout, &mut random, &mut bytes);
    for (index, given) in round.packets.iter_mut().enumerate() {
        let start = index * layout.buffer_size as usize + 128;
        let frame = &mut bytes[start..start + 128];
        frame.fill(0);
        let at = 4 * random.usize(..3);
        for tag in frame[12..12 + at].chunks_exact_mut(4) {
            tag.copy_from_slice(&[[0x81, 0, 0, 7], [0x88, 0xa8, 0, 7]][random.usize(..2)]);
        }
        let packet = &mut frame[12 + at..];
        if random.bool() {
            packet[..4].copy_from_slice(&[8, 0, 0x45 + random.u8(..2), 0]);
            packet[8] = [0, 0, 0, 0x20, 0x40][random.usize(..5)];
            packet[11] = [6, 17, 1, 132][random.usize(..4)];
            packet[14..22].copy_from_slice(&[10, 0, 0, random.u8(..4), 10, 0, 0, 9]);
        } else {
            packet[..3].copy_from_slice(&[0x86, 0xdd, 0x60]);
            packet[13] = random.u8(..4);
            for at in [8, 42, 50, 58] {
                packet[at] = [0, 43, 60, 44, 6, 17, 58][random.usize(..7)];
            }
            packet[43] = random.u8(..2);
        }
        packet[22 + random.usize(..4)] = random.u8(..3);
        let length = if random.u8(..4) == 0 { random.u32(..128) } else { 128 };
        given.verdict = Verdict::Pass(Extent { head: 128, length });
    }
    let kept = |opens, cache| Some(Kept { opens, cache });
    // The last function has nobody who keeps its state.
    for state in [kept(false, 1 << 16), kept(true, 1 << 16), kept(false, 8), None] {
        let mode = Mode { writes: true, copies: false, state };
        let is_small = state.is_some_and(|of| of.cache == 8);
        let rounds = vec![round.clone(); 3];
        let by = |language: &str| {
            let function = start(What::Quota, language, "4", layout, mode);
            let function = function.unwrap_or_else(|why| panic!("{language}: {why:?}"));
            function.process(&bytes, &rounds)
        };
        let expected = by(LANGUAGES[0]);
        for language in &LANGUAGES[1..] {
            let found = by(language);
            assert_eq!(expected.state, found.state, "{language}");
            assert_eq!(expected.verdicts, found.verdicts, "{language}, {state:?}");
            // What a small cache remembers is each runtime's own choice.
            assert!(is_small || expected.updates == found.updates, "{language}, {state:?}");
            assert!(is_small || expected == found, "{language}, {state:?}: {expected:?} {found:?}");
        }
        let has_updates = expected.updates.iter().flatten().any(|number| *number > 0);
        let is_unread = |verdict: &&Verdict| **verdict == Verdict::Drop(NO_STATE);
        let has_unread = expected.verdicts.iter().flatten().any(|of| is_unread(&of));
        assert_eq!(has_unread, state.is_some_and(|of| !of.opens));
        assert!(expected.names.has_state && expected.counts.dropped > 0);
        assert_eq!((expected.state.len() > 100, has_updates), (state.is_some(), state.is_some()));
        assert!(expected.state.keys().all(|flow| !is_away(flow)));
    }
}

#[test]
fn functions_are_refused_alike_in_every_language() {
    let (layout, mode) = (LAYOUTS[0], MODES[0]);
    for (config, expected) in [
        ("odd", "no act 'odd'"),
        ("name", "'bad name' is no name, or one too many"),
        ("many", "'c64' is no name, or one too many"),
    ] {
        for language in LANGUAGES {
            match start(What::Same, language, config, layout, mode) {
                Err(Trouble::Refused(why)) => assert_eq!(why, expected, "{language}"),
                Err(why) => panic!("{language}: {why:?}"),
                Ok(_) => panic!("{language}: {config} is not refused"),
            }
        }
    }
}

/// A message with descriptors, as the host sends it.
fn send(socket: &OwnedFd, words: &[u32], files: &[&OwnedFd]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(files.is_empty() || control.push(SendAncillaryMessage::ScmRights(&files)));
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

#[test]
fn what_no_host_says_is_refused_in_every_language() {
    let layout = LAYOUTS[0];
    let (page, short) =
        (Memory::new("page", layout.page()).unwrap(), Memory::new("short", 4096).unwrap());
    let open = rustix::fs::memfd_create("open", rustix::fs::MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&open, layout.page() as u64).unwrap();
    let wake = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let (attach, begin) = (0x4e46_0002, 0x4e46_0004);
    // With a kind, a version, and flags, buffers, bytes of a buffer, packets of a round and flows of a cache.
    let cases: [(&[u32], &[&OwnedFd]); 11] = [
        (&[attach, 1, 1, 40, 256, 32, 9], &[]),
        (&[begin, 2, 1, 40, 256, 32, 9], &[]),
        (&[u32::MAX, u32::MAX], &[]),
        (&[attach], &[]),
        (&[attach, 2, 1, 40, 256, 32], &[]),
        (&[attach, 2, 1, 40, 100, 32, 9], &[]),
        (&[attach, 2, 1, 40, 256, 1025, 9], &[]),
        (&[attach, 2, 1, u32::MAX, 1 << 31, 32, 9], &[]),
        (&[attach, 2, 1, 40, 256, 32, 9], &[]),
        (&[attach, 2, 1, 40, 256, 32, 9], &[short.file(), &wake, &wake, short.file()]),
        (&[attach, 2, 1, 40, 256, 32, 9], &[&open, &wake, &wake, page.file()]),
    ];
    for language in LANGUAGES {
        let folder = Folder::new(&format!("said-{language}"));
        let function = function(What::Same, language, &folder, "").function;
        for (number, (words, files)) in cases.iter().enumerate() {
            let (line, far) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                    .unwrap();
            let patience = Some(std::time::Duration::from_secs(20));
            set_socket_timeout(&line, Timeout::Recv, patience).unwrap();
            let mut process = Process::start(&function, far);
            let mut answer = [0; 256];
            let mut heard = || {
                let length = rustix::io::read(&line, &mut answer).unwrap();
                answer
                    .get(..4)
                    .filter(|_| length >= 8)
                    .map(|kind| u32::from_le_bytes(kind.try_into().unwrap()))
            };
            assert_eq!(heard(), Some(0x4e46_0001), "hello: {language}");
            send(&line, words, files);
            assert_eq!(heard(), Some(0x4e46_0006), "refused: {language}, {number}");
            assert!(!process.0.wait().unwrap().success(), "{language}, {number}");
        }
        // A host that ends says nothing.
        let (line, far) = HostEnd::pair().unwrap();
        let mut process = Process::start(&function, far);
        line.hello().unwrap();
        drop(line);
        assert!(!process.0.wait().unwrap().success(), "{language}");
    }
}
