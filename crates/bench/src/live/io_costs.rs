//! What input and output over interfaces cost: two chains that do nothing else, one that receives and one that also sends,
//! in each I/O mode.
//!
//! A worker counts how long its rounds took that had something to do, so waiting for packets is no cost. What sending costs
//! is the difference between the two chains.

use std::path::Path;
use std::sync::Arc;

use dataplane::clock::Time;
use dataplane::io::{self, Choice, Generator, Mode};
use engine::control::Client;
use engine::control::protocol::{Counters, Counts};
use ir::costs::{Cost, IoCost, Sample};

use super::folder::Folder;
use super::system::{Catena, Running, System};
use super::tester::{Tester, Watch};
use super::{Endpoints, FRAMES, Link, Live, Testbed};
use crate::arrivals::Arrivals;
use crate::machine::Meter;
use crate::measure::{Failed, Request, Traffics};
use crate::report::DISTURBED;
use crate::statistics::Samples;

/// Rounds of each chain under each load, of which the median counts.
const ROUNDS: usize = 5;
/// Seconds of traffic before costs are taken, and between looks whether the chain receives.
const WARM: f64 = 0.05;
/// Packets a second that come one by one.
const SINGLE: f64 = 10_000.0;
/// Looks whether a chain receives, at the most.
const LOOKS: u32 = 50;

/// The names that the chains' elements have for interfaces.
const IN: &str = "in";
const OUT: &str = "out";
const CHAINS: [(&str, &str); 2] = [
    ("receive.click", "FromDevice(in) -> Discard;\n"),
    ("forward.click", "FromDevice(in) -> ToDevice(out);\n"),
];

/// A load, and what it is called.
struct Load {
    name: &'static str,
    /// Sizes of generated frames, if they are not the given ones.
    sizes: Option<&'static [u16]>,
    /// Packets a second; as many as the tester can send if nothing is said.
    rate: Option<f64>,
}

const LOADS: [Load; 3] = [
    Load { name: "as given", sizes: None, rate: None },
    Load { name: "as given, 10,000 a second", sizes: None, rate: Some(SINGLE) },
    Load { name: "frames of 1,518 bytes", sizes: Some(&[1514]), rate: None },
];

/// What was found.
#[derive(Default)]
pub(crate) struct IoCosts {
    pub(crate) io: Vec<IoCost>,
    /// Loads that costs were taken under.
    pub(crate) traffic: Vec<String>,
    pub(crate) remarks: Vec<String>,
}

/// Costs of each I/O mode that works between the first input and the first output of a chain, in cycles of a counter of
/// this frequency. This thread is where the tester is afterwards.
pub(crate) fn measure_io(
    request: &Request<'_>,
    live: &Live,
    (time, meter): (&Arc<dyn Time>, &dyn Meter),
    frequency: f64,
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<IoCosts, Failed> {
    let mut library = Traffics::new(request, &|_| ());
    library.by_default = FRAMES;
    let endpoints = Endpoints::find(request, live, time, &mut library)?;
    let testbed = Testbed::begin((request, live), (time, meter), &endpoints, is_stopped)?;
    let is_captured = library.captured().is_some();
    // Beginning another time would make other links.
    let mut loads = Vec::new();
    for load in &LOADS {
        let resized = |generator: &mut Generator| {
            load.sizes.iter().for_each(|sizes| generator.sizes = sizes.to_vec());
        };
        let mut library = Traffics::new(request, &resized);
        library.by_default = FRAMES;
        let sized = Endpoints::find(request, live, time, &mut library)?;
        if load.sizes.is_none() || !is_captured {
            loads.push((load, sized.frames));
        }
    }
    let folder = Folder::new().map_err(Failed::Message)?;
    for (name, text) in CHAINS {
        let file = folder.path().join(name);
        std::fs::write(&file, text)
            .map_err(|why| Failed::Message(format!("{}: {why}", file.display())))?;
    }
    let mut found = IoCosts {
        traffic: loads.iter().map(|(load, _)| load.name.to_string()).collect(),
        ..IoCosts::default()
    };
    let driver = match (&live.link, endpoints.ports.first()) {
        (Link::Veth, _) => Some("veth".to_string()),
        (Link::Interfaces { .. }, port) => port.and_then(|port| io::driver(&port.interface)),
    };
    for (device, io) in modes(live.catena.io.as_deref()).map_err(Failed::Message)? {
        let bench =
            Bench { testbed: &testbed, endpoints: &endpoints, folder: folder.path(), io: &io };
        let mut samples = [Vec::new(), Vec::new(), Vec::new()];
        let (mut busiest, mut is_within_noise) = (0.0f64, false);
        let mut measure = || -> Result<(), Failed> {
            for (load, frames) in &loads {
                progress(&format!("measuring input and output, {device}, {}", load.name));
                let mut tester = testbed.tester(&frames[..1], &endpoints)?;
                let [receive, forward] = [CHAINS[0].0, CHAINS[1].0]
                    .map(|chain| bench.rounds(chain, (&mut tester, load.rate)));
                let (receive, forward) = (receive?, forward?);
                busiest = busiest.max(receive.disturbed).max(forward.disturbed);
                let (both, receive_alone) =
                    (forward.nanoseconds.median, receive.nanoseconds.median);
                is_within_noise |= both < receive_alone;
                let sides = [both, receive_alone, (both - receive_alone).max(0.0)];
                let packets = [forward.packets, receive.packets, forward.packets];
                for ((samples, side), packets) in samples.iter_mut().zip(sides).zip(packets) {
                    let cycles = side * frequency / 1e9;
                    samples.push(Sample { traffic: load.name.into(), cycles, packets });
                }
            }
            Ok(())
        };
        match measure() {
            Ok(()) => {}
            Err(Failed::Interrupted) => return Err(Failed::Interrupted),
            Err(why) => {
                found.remarks.push(format!("{device} was not measured: {why}"));
                continue;
            }
        }
        if busiest > DISTURBED {
            found.remarks.push(format!(
                "{device}: its threads waited for a CPU up to {:.0} % as long as they were busy, so costs are too high; measure \
                 again when the machine is quiet",
                100.0 * busiest
            ));
        }
        if is_within_noise {
            found.remarks.push(format!(
                "{device}: receiving and sending took less than receiving alone: sending counts as nothing there"
            ));
        }
        let [cost, receive, send] = samples.map(Cost::of);
        found.io.extend(cost.map(|cost| IoCost {
            device,
            driver: driver.clone(),
            cost,
            receive,
            send,
        }));
    }
    Ok(found)
}

/// I/O modes by name, and as `catena run --io` takes them: the one that is asked for, or all.
fn modes(asked: Option<&str>) -> Result<Vec<(String, String)>, String> {
    let choice: Choice = match asked {
        Some(text) => text.parse().map_err(|why| format!("--io {text}: {why}"))?,
        None => return Ok(Mode::choices().map(|m| (m.to_string(), m.to_string())).collect()),
    };
    if choice.interface.is_some() {
        return Err("--costs takes an I/O mode that is for both interfaces".into());
    }
    let batch = choice.batch.map_or_else(String::new, |batch| format!(",batch={batch}"));
    let modes: Vec<Mode> = match choice.mode {
        Some(mode) => vec![mode],
        None => Mode::choices().collect(),
    };
    Ok(modes.into_iter().map(|mode| (mode.to_string(), format!("{mode}{batch}"))).collect())
}

/// Where chains are measured that do nothing but input and output.
struct Bench<'a> {
    testbed: &'a Testbed<'a>,
    endpoints: &'a Endpoints,
    /// Of the chains' files.
    folder: &'a Path,
    io: &'a str,
}

/// What a packet took.
struct Taken {
    nanoseconds: Samples,
    packets: u64,
    /// The time in which it wanted to run and could not, to the time that it was busy.
    disturbed: f64,
}

impl Bench<'_> {
    /// Runs a chain under a load.
    fn rounds(
        &self,
        chain: &str,
        (tester, rate): (&mut Tester, Option<f64>),
    ) -> Result<Taken, Failed> {
        let file = self.folder.join(chain).display().to_string();
        let catena = Catena {
            variables: Vec::new(),
            io: Some(self.io.into()),
            ..self.testbed.live.catena.clone()
        };
        let name = |element: &str, ends: &[(String, String)]| -> Vec<(String, String)> {
            let first = ends.iter().take(1);
            first.map(|(_, interface)| (element.to_string(), interface.clone())).collect()
        };
        let sends = chain == CHAINS[1].0;
        let (inputs, outputs) =
            (name(IN, &self.endpoints.inputs), name(OUT, &self.endpoints.outputs));
        let socket = self.folder.join("control");
        let system = System::Chain {
            file: &file,
            catena: &catena,
            inputs: &inputs,
            outputs: if sends { &outputs } else { &[] },
            control: Some(&socket),
        };
        let mut running = self.testbed.start(Some(&system), self.endpoints)?;
        let is_there = || Client::connect(&socket).is_ok();
        running.wait_until("its control socket", is_there).map_err(Failed::Message)?;
        let counts = |running: &mut Running| -> Result<Counts, Failed> {
            running.check().map_err(Failed::Message)?;
            let connected = Client::connect(&socket).map_err(|why| why.to_string());
            let answer = connected.and_then(|mut c| c.ask(Counters {}).map_err(|w| w.to_string()));
            let all = answer.map_err(|why| Failed::Message(format!("its counters: {why}")))?.all;
            all.ok_or_else(|| Failed::Message("it has no workers".into()))
        };
        let mut offer = |running: &mut Running, seconds: f64| -> Result<(), Failed> {
            let mut check = || running.check();
            let mut watch = Watch { is_stopped: self.testbed.is_stopped, check: &mut check };
            match rate {
                Some(rate) => {
                    tester.offer((rate, seconds), (Arrivals::Constant, 0), &mut watch).map(drop)
                }
                None => tester.capacity(seconds, &mut watch).map(drop),
            }
        };
        let mut looks = 0;
        let is_ready = |counts: &Counts| counts.taken > 0 && (!sends || counts.given > 0);
        while !is_ready(&counts(&mut running)?) {
            if looks == LOOKS {
                return Err(Failed::Message("no packet of the tester went through".into()));
            }
            looks += 1;
            offer(&mut running, WARM)?;
        }
        offer(&mut running, WARM)?;
        let (mut each, mut packets, mut busy) = (Vec::new(), 0, 0);
        let waited = running.waited();
        for _ in 0..ROUNDS {
            let before = counts(&mut running)?;
            offer(&mut running, self.testbed.request.effort.trial)?;
            let (taken, spent) = since(&before, &counts(&mut running)?);
            if taken == 0 {
                return Err(Failed::Message("nothing came through in a round".into()));
            }
            each.push(spent as f64 / taken as f64);
            (packets, busy) = (packets + taken, busy + spent);
        }
        let waited = running.waited().saturating_sub(waited);
        let disturbed = waited as f64 / busy.max(1) as f64;
        Ok(Taken { nanoseconds: Samples::of(each), packets, disturbed })
    }
}

/// Packets that came in between two readings of counters, and how long the rounds took that had something to do.
fn since(before: &Counts, after: &Counts) -> (u64, u64) {
    (after.taken.saturating_sub(before.taken), after.busy.saturating_sub(before.busy))
}
