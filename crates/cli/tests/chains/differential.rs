//! Whole chains under hostile traffic: every execution mode gives the same packets in
//! the same order, the same counts by reason, the same state and the same handlers.
//!
//! Chains are put together at random from network functions that packets cross in both directions.
//! The traffic knows what left: it answers, it quotes, it goes on with connections.

pub mod functions;
pub mod traffic;

use std::io::Cursor;
use std::path::Path as Folder;

use dataplane::Rest;
use net::pcap::{Options, Reader, Writer};

use crate::outcome::{self, Arrivals, Seen, Tallies};
use crate::support::{MODES, Mode, Started, start};
use functions::Chain;
use lab::{seeds, shared};
use traffic::{Frame, Traffic};

/// How packets are handed in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Burst {
    One,
    Many,
}

/// The chain in one execution mode.
struct Run {
    mode: Mode,
    burst: Burst,
    started: Started,
    /// It carried a burst in an order of its own, so that its state may be another since.
    lost: bool,
}

/// What happens at a step.
struct Step {
    pause: u64,
    write: Option<(String, String)>,
    input: usize,
    frames: Vec<Frame>,
}

/// What left on both outputs.
type Left = [Vec<Seen>; 2];

/// All that can be seen of a chain but the packets.
#[derive(PartialEq)]
struct Rested {
    tallies: Tallies,
    arrivals: Arrivals,
    state: ir::Store,
    handlers: Vec<(String, Result<String, String>)>,
}

impl Run {
    /// Whether bursts are carried from element to element as a whole.
    fn carries_bursts(&self) -> bool {
        self.burst == Burst::Many && !self.mode.path.is_synthesised()
    }

    /// Whether parts of bursts may be carried from element to element as a whole.
    fn parts_bursts(&self) -> bool {
        self.burst == Burst::Many && self.mode.path.is_synthesised()
    }

    fn take(&mut self, step: &Step) -> Left {
        self.started.clock.advance(step.pause);
        settle(&mut self.started);
        if let Some((handler, value)) = &step.write {
            let written = self.started.router.write_handler(handler, value);
            written.unwrap_or_else(|why| panic!("{handler}: {why}"));
            // Time stands still: what is not true any more is made anew at once.
            settle(&mut self.started);
        }
        let size = match self.burst {
            Burst::One => 1,
            Burst::Many => step.frames.len().max(1),
        };
        for frames in step.frames.chunks(size) {
            outcome::feed(&mut self.started, &format!("in{}", step.input), frames);
        }
        settle(&mut self.started);
        ["out0", "out1"].map(|queue| outcome::drain(&mut self.started, queue))
    }

    fn rested(&mut self) -> Rested {
        let router = &mut self.started.router;
        let names: Vec<String> =
            self.started.chain.graph.nodes.iter().map(|n| n.name.clone()).collect();
        Rested {
            tallies: outcome::tallies(router),
            arrivals: outcome::arrivals(router),
            state: outcome::state(router),
            handlers: names.iter().flat_map(|name| outcome::handlers(router, name)).collect(),
        }
    }
}

impl Rested {
    /// What differs, in a few lines.
    fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        let (a, b) = (&self.tallies, &other.tallies);
        lines.extend(a.iter().filter(|l| !b.contains(l)).map(|l| format!("not counted: {l:?}")));
        lines.extend(b.iter().filter(|l| !a.contains(l)).map(|l| format!("counted: {l:?}")));
        for (wanted, got) in self.arrivals.iter().zip(&other.arrivals).filter(|(a, b)| a != b) {
            lines.push(format!("{:?} came to {} instead of {:?}", got.1, wanted.0, wanted.1));
        }
        for (wanted, got) in self.handlers.iter().zip(&other.handlers).filter(|(a, b)| a != b) {
            lines.push(format!("{} is {:?} instead of {:?}", wanted.0, got.1, wanted.1));
        }
        for (owner, name, value) in self.state.iter() {
            if other.state.get(owner, name) != Some(value) {
                let got = other.state.get(owner, name);
                lines.push(format!("{name} of {owner} is\n  {got:?} instead of\n  {value:?}"));
            }
        }
        lines.join("\n")
    }
}

/// Runs tasks and timers that are due until nothing is left to do at once.
pub fn settle(started: &mut Started) {
    for _ in 0..100_000 {
        if started.router.round() != Rest::Busy {
            return;
        }
    }
    panic!("it is never idle");
}

/// Packets in an order that does not depend on the one in which they left.
fn sorted(seen: &[Seen]) -> Vec<Seen> {
    let mut all = seen.to_vec();
    all.sort();
    all
}

fn describe(seen: Option<&Seen>) -> String {
    seen.map_or("nothing".to_string(), |seen| {
        format!("{}\n    {seen:?}", net::notation::describe(&seen.bytes(), true))
    })
}

/// The first packet that is not what one of the references says, in order or in any.
fn difference(references: &[&Left], got: &Left, any_order: bool) -> Option<String> {
    let same = |left: &[Seen], got: &[Seen]| match any_order {
        true => sorted(left) == sorted(got),
        false => left == got,
    };
    let output = (0..2).find(|&o| !references.iter().any(|left| same(&left[o], &got[o])))?;
    let (wanted, got) = (&references[0][output], &got[output]);
    let n = wanted.len().max(got.len());
    let at = (0..n).find(|&i| wanted.get(i) != got.get(i)).unwrap_or(n);
    let (wanted, got) = (describe(wanted.get(at)), describe(got.get(at)));
    Some(format!("output {output}, packet {at}:\n  wanted {wanted}\n  got {got}"))
}

/// Puts a chain to the test; gives how many packets left, and whether a run diverged.
fn put_to_the_test(chain: &Chain, folder: &Folder, seed: u64, steps: usize) -> (usize, bool) {
    let mut runs: Vec<Run> = [Burst::One, Burst::Many]
        .into_iter()
        .flat_map(|burst| MODES.map(|mode| (mode, burst)))
        .map(|(mode, burst)| {
            let started = start("chain", &chain.text, folder, mode);
            let started = started.unwrap_or_else(|(diagnostics, _)| {
                let words: Vec<String> = diagnostics.iter().map(|d| d.message.clone()).collect();
                panic!("{words:?}: {}", chain.text)
            });
            Run { mode, burst, started, lost: false }
        })
        .collect();
    let mut traffic = Traffic::new(seed, &chain.text);
    traffic.captured.clone_from(&chain.captured);
    let (mut left, mut order_matters) = (0, false);
    for number in 0..steps {
        let step = Step {
            pause: traffic.pause(),
            write: chain.write(&mut traffic.rng),
            input: usize::from(traffic.rng.u8(..3) == 0),
            frames: traffic.burst(),
        };
        let place = || {
            let frames = step.frames.iter().map(|f| net::notation::describe(f, true));
            let frames: Vec<String> = frames.collect();
            format!(
                "seed {seed}, step {number} (input {}, after {} ns, {:?}):\n  {}\nof\n{}",
                step.input,
                step.pause,
                step.write,
                frames.join("\n  "),
                chain.text
            )
        };
        let lefts: Vec<Left> = runs.iter_mut().map(|run| run.take(&step)).collect();
        // In bursts, packets may change order where paths of one burst part and meet again, and
        // take what is left of some state in another order. Packet by packet there is one order.
        let in_bursts: Vec<usize> = (0..runs.len()).filter(|&i| runs[i].carries_bursts()).collect();
        order_matters |= in_bursts.iter().any(|&i| lefts[i] != lefts[0]);
        for (i, (run, got)) in runs.iter_mut().zip(&lefts).enumerate().skip(1) {
            if in_bursts.contains(&i) || run.lost {
                continue;
            }
            let others = in_bursts.iter().filter(|_| run.parts_bursts());
            let references: Vec<&Left> =
                std::iter::once(&0).chain(others).map(|&i| &lefts[i]).collect();
            let any_order = run.parts_bursts() && order_matters;
            if let Some(difference) = difference(&references, got, any_order) {
                run.lost = any_order;
                let (mode, burst) = (run.mode, run.burst);
                assert!(run.lost, "{mode:?} {burst:?}, {difference}\n{}", place());
            }
        }
        for seen in lefts[0].iter().flatten() {
            left += 1;
            traffic.saw(seen.bytes());
        }
        if number % 16 == 15 || number + 1 == steps {
            let rested: Vec<Rested> = runs.iter_mut().map(Run::rested).collect();
            // What was dropped, or has not left yet, may have changed order, too: then only numbers that are kept differ.
            order_matters |= in_bursts.iter().any(|&i| rested[i] != rested[0]);
            for (i, (run, got)) in runs.iter_mut().zip(&rested).enumerate().skip(1) {
                let mut others = in_bursts.iter().filter(|_| run.parts_bursts());
                let same = *got == rested[0] || others.any(|&i| *got == rested[i]);
                if !same && !in_bursts.contains(&i) && !run.lost {
                    run.lost = run.parts_bursts() && order_matters;
                    let difference = rested[0].difference(got);
                    let (mode, burst) = (run.mode, run.burst);
                    assert!(run.lost, "{mode:?} {burst:?}: {difference}\n{}", place());
                }
            }
        }
    }
    for run in &runs {
        let errors = &run.started.heard.0.borrow().errors;
        assert!(errors.is_empty(), "{:?} {:?}: {errors:?} in\n{}", run.mode, run.burst, chain.text);
    }
    (left, runs.iter().any(|run| run.lost))
}

/// `CASES` asks for more chains, `SEED` for one, or for `fresh` ones.
#[test]
fn random_chains_are_the_same_in_every_mode() {
    let seeds = seeds(40);
    let cases = (seeds.end - seeds.start) as usize;
    let (mut left, mut lost) = (0, 0);
    for seed in seeds {
        let chain = Chain::random(seed);
        let (packets, is_lost) = put_to_the_test(&chain, Folder::new("."), seed, 48);
        left += packets;
        lost += usize::from(is_lost);
    }
    // Most of what is sent must not simply be dropped, and most bursts keep their order, or meet no meter behind.
    assert!(cases == 1 || left > 40 * cases, "only {left} packets left");
    assert!(cases == 1 || lost * 3 <= cases, "{lost} of {cases} runs got lost");
}

#[test]
fn each_function_is_the_same_in_every_mode() {
    for (i, chain) in functions::each().iter().enumerate() {
        put_to_the_test(chain, Folder::new("."), i as u64, 96);
    }
}

#[test]
fn the_benchmarks_chains_are_the_same_in_every_mode() {
    let Some(folder) = shared("data/bench-chains") else { return };
    let functions = std::fs::read_to_string(folder.join("nfs.click")).expect("nfs.click");
    let router = |i| format!("-> R({i}, 172.16.{i}.1, 02:00:00:00:01:01, 02:00:00:00:01:02) ");
    let napt = |i| format!("-> N(30.0.{i}.1, 02:00:00:01:01:01, 02:00:00:01:01:02) ");
    let filter = "-> F(../isp-acl/acl1-250.ipfilter.gz, 02:00:00:02:01:01, 02:00:00:02:01:02) \
                  -> RI(1, 172.16.1.1, 02:00:00:00:01:01, 02:00:00:00:01:02) ";
    let chains = [
        (1..=3).map(router).collect(),
        (1..=10).map(router).collect(),
        (1..=4).map(napt).collect(),
        format!("{filter}{}", napt(1)),
    ];
    let captured = capture(&folder.join("../isp-acl/acl1-250.pcap.gz"), 400);
    for (i, body) in chains.into_iter().enumerate() {
        let mut chain = Chain::forward(&functions, &body);
        chain.captured.clone_from(&captured.1);
        put_to_the_test(&chain, &folder, i as u64, 64);
    }
}

/// The link type of a capture, and its first frames.
fn capture(path: &Folder, frames: usize) -> (u32, Vec<Frame>) {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut reader = Reader::open(Cursor::new(bytes)).expect("it is a capture");
    let link = reader.link_type().map_or(1, |l| l.0);
    let mut read = Vec::new();
    while let Some(record) = reader.next().expect("it is a capture") {
        if read.len() == frames {
            break;
        }
        read.push(record.data.to_vec());
    }
    (link, read)
}

/// Runs an example in a folder of its own; gives what it wrote and what can be seen of it then.
fn run_example(examples: &Folder, name: &str, mode: Mode) -> (Vec<Vec<Frame>>, Rested) {
    let scratch =
        std::env::temp_dir().join(format!("catena-{}-{mode:?}-{name}", std::process::id()));
    std::fs::create_dir_all(&scratch).expect("there is room for a folder");
    for entry in std::fs::read_dir(examples).expect("examples").map(|e| e.expect("a file").path()) {
        let to = scratch.join(entry.file_name().expect("files have names"));
        if entry.is_dir() {
            continue;
        }
        if entry.to_string_lossy().contains(".pcap") {
            // A part of it, to interpret thousands of rules on.
            let (link, frames) = capture(&entry, 250);
            let mut options = Options::for_file_name(&to);
            options.link_type = net::pcap::LinkType(link);
            let mut writer = Writer::new(Vec::new(), &options).expect("memory takes it");
            for frame in frames {
                writer.write(0, &frame, frame.len() as u32).expect("memory takes it");
            }
            std::fs::write(to, writer.finish().expect("memory takes it")).expect("there is room");
        } else {
            std::fs::copy(&entry, to).expect("there is room");
        }
    }
    let text = std::fs::read_to_string(examples.join(name)).expect("the example");
    // Packet by packet: the order of packets within a burst may decide which port a flow gets.
    let one = ".pcap.gz, BURST 1";
    let text = text.replace(one, ".pcap.gz").replace("(lan.pcap.gz", &format!("(lan{one}"));
    let text = text.replace("(wan.pcap.gz", &format!("(wan{one}"));
    let text = text.replace("(isp-customers.pcap.gz", &format!("(isp-customers{one}"));
    let started = start(name, &text, &scratch, mode);
    let started = started.unwrap_or_else(|(d, _)| panic!("{name} is refused: {d:?}"));
    let mut run = Run { mode, burst: Burst::Many, started, lost: false };
    let mut rounds = 0;
    run.started.router.run(|_, _| {
        rounds += 1;
        rounds > 100_000
    });
    run.started.router.finish();
    let rested = run.rested();
    let errors = run.started.heard.0.borrow().errors.clone();
    assert!(errors.is_empty(), "{name}, {mode:?}: {errors:?}");
    let prefix = name.trim_end_matches("click");
    let mut written: Vec<_> = std::fs::read_dir(&scratch)
        .expect("the folder")
        .map(|e| e.expect("a file").path())
        .filter(|p| {
            let file = p.file_name().expect("files have names").to_string_lossy();
            file.starts_with(prefix) && file.ends_with(".pcap")
        })
        .collect();
    written.sort();
    let written = written.iter().map(|p| capture(p, usize::MAX).1).collect();
    let _ = std::fs::remove_dir_all(&scratch);
    (written, rested)
}

#[test]
fn examples_are_the_same_in_every_mode() {
    let examples = Folder::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let mut names: Vec<String> = std::fs::read_dir(examples)
        .expect("examples")
        .map(|e| e.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".click"))
        .collect();
    names.sort();
    // Those on live interfaces are run there.
    names.retain(|name| {
        let text = std::fs::read_to_string(examples.join(name)).expect("the example");
        !text.contains("FromDevice(")
    });
    for name in names {
        let [first, others @ ..] = MODES;
        let (written, rested) = run_example(examples, &name, first);
        assert!(written.iter().any(|frames| !frames.is_empty()), "{name} writes nothing");
        for mode in others {
            let other = run_example(examples, &name, mode);
            for (wanted, got) in written.iter().zip(&other.0) {
                let n = wanted.len().max(got.len());
                let differs = (0..n).find(|&i| wanted.get(i) != got.get(i));
                assert_eq!(differs, None, "{name}, {mode:?}: a frame that is written differs");
            }
            let same = rested == other.1;
            assert!(same, "{name}, {mode:?}: {}", rested.difference(&other.1));
        }
    }
}
