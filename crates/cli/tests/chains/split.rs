//! Chains that were put together at random, split between devices and cores: for every target the parts are proven, and
//! do what the elements do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path as Folder;

use engine::session::Path;
use ir::Port;
use lab::front::{Front, receive, wires};
use lab::seeds;
use net::Batch;

use crate::differential::functions::Chain;
use crate::differential::settle;
use crate::differential::traffic::Traffic;
use crate::outcome::{Arrivals, arrivals, drain, handlers, state, tallies};
use crate::support::{Mode, Started, start};
use crate::tables::models;
use crate::targets::compiled;

/// Frames that leave on both outputs.
type Left = [Vec<Vec<u8>>; 2];

/// All that can be seen of a chain but the packets.
#[derive(PartialEq)]
struct Rested {
    tallies: Vec<(String, String, u64, u64)>,
    arrivals: Arrivals,
    state: ir::Store,
    handlers: Vec<(String, Result<String, String>)>,
}

impl Rested {
    fn of(started: &mut Started) -> Self {
        let names: Vec<String> =
            started.chain.graph.nodes.iter().map(|node| node.name.clone()).collect();
        let router = &mut started.router;
        let tally = |(name, reason, dropped, _, noted)| (name, reason, dropped, noted);
        Self {
            tallies: tallies(router).into_iter().map(tally).collect(),
            arrivals: arrivals(router),
            state: state(router),
            handlers: names.iter().flat_map(|name| handlers(router, name)).collect(),
        }
    }

    fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        let (a, b) = (&self.tallies, &other.tallies);
        lines.extend(a.iter().filter(|l| !b.contains(l)).map(|l| format!("not counted: {l:?}")));
        lines.extend(b.iter().filter(|l| !a.contains(l)).map(|l| format!("counted: {l:?}")));
        for (a, b) in self.arrivals.iter().zip(&other.arrivals).filter(|(a, b)| a != b) {
            lines.push(format!("what came is {b:?}, not {a:?}"));
        }
        for (a, b) in self.handlers.iter().zip(&other.handlers).filter(|(a, b)| a != b) {
            lines.push(format!("{a:?} is {b:?}"));
        }
        if self.state != other.state {
            lines.push("the state is another".into());
        }
        lines.join("\n")
    }
}

/// Hands a frame in as an interface does.
fn feed(started: &mut Started, input: usize, frame: &[u8]) {
    let graph = &started.chain.graph;
    let node = graph.find(&format!("in{input}")).expect("inputs are declared");
    let to = graph.successors(Port { node, port: 0 }).next().expect("inputs are connected");
    let mut packet = started.router.core().pool.packet(frame);
    receive(&mut packet);
    let mut batch = Batch::new();
    batch.push(packet);
    started.router.push(to, batch);
}

fn leave(started: &mut Started) -> Left {
    ["out0", "out1"]
        .map(|queue| drain(started, queue).iter().map(crate::outcome::Seen::bytes).collect())
}

fn is_same(front: Front, wanted: &Left, got: &Left) -> bool {
    let same = |(wanted, got): (&Vec<u8>, &Vec<u8>)| front.is_same(wanted, got);
    wanted
        .iter()
        .zip(got)
        .all(|(wanted, got)| wanted.len() == got.len() && wanted.iter().zip(got).all(same))
}

/// Takes traffic through a chain behind every device; what is wrong.
fn examine(seed: u64, steps: usize) -> Result<(), String> {
    let chain = Chain::random(seed);
    let text = &chain.text;
    let begin = |mode: Mode| {
        start("chain", text, Folder::new("."), mode).map_err(|(found, _)| format!("{found:?}"))
    };
    let mut elements = begin(Path::Native.into())?;
    let models = models(&mut elements);
    let graph = &elements.chain.graph;
    let mut faults = Vec::new();
    let wires = wires(graph, |_| false);
    compiled(graph, &models, &wires, &mut faults);
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let modes = Mode::behind_devices();
    let fronts: Vec<Front> = modes.iter().filter_map(|mode| mode.device).collect();
    // What an element makes of one packet is a burst, whose order elements may change, and programs others (as in
    // `differential`).
    let mut undivided = begin(Path::SynthesisedInterpreted.into())?;
    let mut runs: Vec<Started> = modes.into_iter().map(begin).collect::<Result<_, _>>()?;
    let mut traffic = Traffic::new(seed, text);
    for number in 0..steps {
        let (pause, write) = (traffic.pause(), chain.write(&mut traffic.rng));
        let input = usize::from(traffic.rng.u8(..3) == 0);
        let frames = traffic.burst();
        let take = |started: &mut Started| {
            started.clock.advance(pause);
            settle(started);
            if let Some((handler, value)) = &write {
                let written = started.router.write_handler(handler, value);
                written.unwrap_or_else(|why| panic!("{handler}: {why}"));
                settle(started);
            }
            frames.iter().for_each(|frame| feed(started, input, frame));
            settle(started);
            leave(started)
        };
        let wanted = take(&mut elements);
        let other = take(&mut undivided);
        for (run, front) in runs.iter_mut().zip(&fronts) {
            let got = take(run);
            if !is_same(*front, &wanted, &got) && !is_same(*front, &other, &got) {
                let frames: Vec<String> =
                    frames.iter().map(|frame| net::notation::describe(frame, true)).collect();
                let frames = frames.join("\n  ");
                return Err(format!(
                    "{front:?}, step {number} (input {input}, {write:?}):\n  {frames}\nwanted {wanted:02x?}\ngot {got:02x?}"
                ));
            }
        }
        for frame in wanted.into_iter().flatten() {
            traffic.saw(frame);
        }
    }
    let (wanted, other) = (Rested::of(&mut elements), Rested::of(&mut undivided));
    for (run, front) in runs.iter_mut().zip(&fronts) {
        let got = Rested::of(run);
        if got != wanted && got != other {
            return Err(format!("{front:?}: {}", wanted.difference(&got)));
        }
        let errors = &run.heard.0.borrow().errors;
        if !errors.is_empty() {
            return Err(format!("{front:?}: {errors:?}"));
        }
    }
    Ok(())
}

/// `CASES` asks for more chains, `SEED` for one, or for `fresh` ones.
#[test]
fn random_chains_are_the_same_behind_devices() {
    let mut faults = Vec::new();
    for seed in seeds(20) {
        let result = catch_unwind(AssertUnwindSafe(|| examine(seed, 24)));
        if let Err(why) = result.unwrap_or_else(|_| Err("panics".into())) {
            faults.push(format!("seed {seed}: {why}\nof\n{}", Chain::random(seed).text));
        }
    }
    assert!(faults.is_empty(), "{} failures:\n{}", faults.len(), faults.join("\n\n"));
}
