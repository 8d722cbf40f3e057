//! What a chain takes of a core, in memory: all of it, and what a device in front leaves to do.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use compiler::partition::{self, Compiled, on_cores};
use dataplane::ProgramUse;
use dataplane::clock::RealClock;
use dataplane::io::{self, Wire, Wires, wires_behind};
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use engine::session::{Cut, Path as Execution};
use lab::divided::Loaded;
use lab::front::Front;
use net::{Batch, Pool};

use crate::in_kernel;
use crate::support::{self, Frames, Running, Source, Spread, percentile};

/// Packets that a source gives at a time.
const BURST: u32 = 32;
/// Where an 802.1ad tag stands.
const BEHIND_ADDRESSES: usize = 12;

/// A chain in a file, and frames that come from one of its wires.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    /// The device or file that they come from.
    pub(crate) wire: String,
    pub(crate) frames: Vec<Vec<u8>>,
}

/// What cores do for a case.
pub(crate) struct Loads {
    pub(crate) whole: Load,
    /// By device; none if it cannot be given anything.
    pub(crate) behind: Vec<Option<Behind>>,
}

/// What cores do behind a device.
pub(crate) struct Behind {
    /// Shares of the frames that no core sees, and for which cores decide nothing again.
    pub(crate) done: f64,
    pub(crate) decided: f64,
    /// Frames that come one after the other with the same tag, on the average.
    pub(crate) in_a_row: f64,
    /// For the frames that they are given; none if there are none.
    pub(crate) load: Option<Load>,
    pub(crate) is_proven: bool,
    /// If the device is the kernel: nanoseconds a frame of the program by round, without those of one that does nothing.
    pub(crate) program: Vec<f64>,
}

/// Times by round.
#[derive(Default)]
pub(crate) struct Load {
    /// Nanoseconds of CPU time a packet.
    pub(crate) times: Vec<f64>,
    /// Median and 99th percentile of what a burst takes, in nanoseconds.
    pub(crate) bursts: Vec<[f64; 2]>,
}

impl Load {
    pub(crate) fn time(&self) -> Spread {
        Spread::of(self.times.iter().copied())
    }

    pub(crate) fn burst(&self, at: usize) -> Spread {
        Spread::of(self.bursts.iter().map(|burst| burst[at]))
    }
}

impl Behind {
    /// Nanoseconds of cores' time for a frame that comes to the device, by round; none if no core sees any.
    pub(crate) fn times(&self) -> Vec<f64> {
        let times = self.load.iter().flat_map(|load| &load.times);
        times.map(|time| time * (1.0 - self.done)).collect()
    }
}

/// A wire that brings nothing.
struct Silent;

impl Device for Silent {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Ok(())
    }
}

/// An interface that brings frames, and keeps none.
struct Line(Source<Arc<Frames>>);

impl Device for Line {
    fn receive(
        &mut self,
        n: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        self.0.receive(n, batch, pool)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        Silent.send(batch, pool)
    }
}

/// The name of a device or file, and whether it is received from.
fn asked(request: &DeviceRequest) -> (&str, bool) {
    match request {
        DeviceRequest::CaptureIn { path } => (path, true),
        DeviceRequest::CaptureOut { path, .. } => (path, false),
        DeviceRequest::Interface { name, receive } => (name, *receive),
    }
}

/// Frames come from one wire.
struct Alone<'a>(&'a str, &'a Rc<Frames>);

impl Devices for Alone<'_> {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        Ok(match asked(request) {
            (name, true) if name == self.0 => Box::new(Source::new(Rc::clone(self.1))),
            _ => Box::new(Silent),
        })
    }
}

/// All wires are behind a device.
struct Uplinked<F> {
    names: Vec<String>,
    open: F,
}

impl<F: Fn(&str, bool) -> Box<dyn Device + Send>> Devices for Uplinked<F> {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        let (name, receives) = asked(request);
        let known = self.names.iter().find(|of| *of == name);
        Ok(known.map_or(Box::new(Silent), |name| (self.open)(name, receives)))
    }
}

/// A chain that runs, and what it took.
struct Run(Running, Load);

impl Run {
    fn of(case: &Case, frames: &Frames, devices: &mut dyn Devices, cut: Option<Cut>) -> Self {
        let text = fs::read_to_string(&case.file).expect("the chain");
        let folder = case.file.parent().unwrap_or(Path::new("."));
        let clock = Box::new(RealClock::new());
        let name = case.file.display().to_string();
        let (path, how) = (Execution::Synthesised, (ProgramUse::WhereFaster, cut));
        let (_, router) = support::load(&name, text, folder, devices, clock, path, how);
        Self(Running::new(&case.name, router, BURST, frames), Load::default())
    }

    fn round(&mut self, packets: u64) {
        let Self(running, load) = self;
        running.warm();
        load.times.push(running.take(packets));
        let mut bursts = running.bursts(packets);
        bursts.sort_by(f64::total_cmp);
        load.bursts.push([0.5, 0.99].map(|share| percentile(&bursts, share)));
    }
}

/// A frame with the tag of the place where a device stopped.
fn tagged(frame: &[u8], number: u16) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(BEHIND_ADDRESSES);
    [addresses, &[0x88, 0xa8], &number.to_be_bytes(), rest].concat()
}

/// The frames that a device hands to cores; shares of those that it does not, and of those that it decides, and how many have one
/// tag in a row.
fn handed(part: &partition::Divided, frames: &[Vec<u8>]) -> (Vec<Vec<u8>>, [f64; 3]) {
    let mut pool = Pool::new();
    let mut handed = Vec::new();
    let (mut decided, mut runs, mut last) = (0, 0, None);
    for frame in frames {
        let packet = pool.packet(frame);
        let path = part.follow(&packet, &mut pool).expect("programs are right");
        pool.recycle(packet);
        if let Some(tag) = path.tag {
            let exit = part.offload.handoffs.get(&tag).and_then(|handoff| handoff.exit);
            decided += usize::from(exit.is_some() && exit == path.exit);
            runs += usize::from(last.replace(tag) != Some(tag));
            handed.push(tagged(frame, tag.0));
        }
    }
    let in_a_row = handed.len() as f64 / runs.max(1) as f64;
    let share = |n: usize| n as f64 / frames.len() as f64;
    let shares = [share(frames.len() - handed.len()), share(decided), in_a_row];
    (handed, shares)
}

/// Frames that the kernel runs a program on, at most.
const IN_KERNEL: usize = 2000;

/// A device in front of a chain that runs.
struct Divided {
    run: Option<Run>,
    behind: Behind,
    /// The kernel's program, the number of its entry, and frames.
    program: Option<(io::Loaded, usize, Vec<Vec<u8>>)>,
}

impl Divided {
    /// `None` if the device cannot be given anything of the case's wire.
    fn of(case: &Case, loaded: &Loaded, front: &Front) -> Option<Self> {
        let compiled = loaded.divide(*front)?;
        let entry = compiled.parts.iter().position(|part| part.wires.contains(&case.wire))?;
        let part = &compiled.parts[entry];
        let (frames, [done, decided, in_a_row]) = handed(part, &case.frames);
        let names: Vec<String> = loaded.wires.names().into_iter().map(Into::into).collect();
        let run = (!frames.is_empty()).then(|| on_a_core(case, &compiled, names, frames));
        let program = (front.target == "ebpf").then(|| {
            let step = case.frames.len().div_ceil(IN_KERNEL).max(1);
            let frames = case.frames.iter().step_by(step).cloned().collect();
            (in_kernel::load(&case.name, &compiled.files), entry, frames)
        });
        let is_proven = part.proof.holds();
        let behind = Behind { done, decided, in_a_row, load: None, is_proven, program: Vec::new() };
        Some(Self { run, behind, program })
    }

    fn round(&mut self, packets: u64, nothing: &io::Loaded) {
        self.run.iter_mut().for_each(|run| run.round(packets));
        if let Some((program, entry, frames)) = &self.program {
            let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
            // What others left in the caches goes.
            in_kernel::run(program, *entry, &frames);
            let took = in_kernel::run(program, *entry, &frames);
            self.behind.program.push(took - in_kernel::run(nothing, 0, &frames));
        }
    }
}

/// What cores run behind a device, for frames that it tagged.
fn on_a_core(case: &Case, compiled: &Compiled, names: Vec<String>, frames: Vec<Vec<u8>>) -> Run {
    let wire = |(name, port): (&String, u16)| {
        let part = compiled.parts.iter().find(|part| part.wires.first() == Some(name));
        let numbers = part.iter().flat_map(|part| part.offload.handoffs.keys()).map(|to| to.0);
        Wire { name: name.clone(), port, tags: numbers.collect() }
    };
    let wires: Vec<Wire> = names.iter().zip(1..).map(wire).collect();
    let frames = Arc::new(Frames::raw(frames));
    let open = wires_behind(
        Box::new(Line(Source::new(Arc::clone(&frames)))),
        Arc::new(Wires::new(&wires)),
    );
    let cut: Cut = Arc::new(on_cores(compiled));
    Run::of(case, &frames, &mut Uplinked { names, open }, Some(cut))
}

/// Measures cases by turns.
pub(crate) fn measure(cases: &[Case], fronts: &[Front], rounds: usize, packets: u64) -> Vec<Loads> {
    let start = |case: &Case| {
        eprintln!("  {} …", case.name);
        let loaded = Loaded::read(&case.file);
        let frames = Rc::new(Frames::raw(case.frames.iter().cloned()));
        let whole = Run::of(case, &frames, &mut Alone(&case.wire, &frames), None);
        let behind = fronts.iter().map(|front| Divided::of(case, &loaded, front));
        (whole, behind.collect::<Vec<_>>())
    };
    let mut runs: Vec<_> = cases.iter().map(start).collect();
    let nothing = in_kernel::nothing();
    for _ in 0..rounds {
        for (whole, behind) in &mut runs {
            whole.round(packets);
            behind.iter_mut().flatten().for_each(|divided| divided.round(packets, &nothing));
        }
    }
    let ended =
        |Divided { run, behind, .. }: Divided| Behind { load: run.map(|run| run.1), ..behind };
    let loads = |(whole, behind): (Run, Vec<Option<Divided>>)| Loads {
        whole: whole.1,
        behind: behind.into_iter().map(|divided| divided.map(ended)).collect(),
    };
    runs.into_iter().map(loads).collect()
}
