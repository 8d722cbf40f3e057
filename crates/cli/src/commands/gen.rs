//! `catena gen`: sends traffic, open loop.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use bench::Machine;
use bench::arrivals::Arrivals;
use bench::send::{BURST, Pace, Plan, Rate, Sent, Source, Turns, send_from};
use bench::stamp::{HostClock, StampClock};
use clap::Args;
use dataplane::clock::Time;
use dataplane::io::{Binding, Bindings, Generator, Interfaces};
use dataplane::worker;
use elements::configure::WorkerShare;
use elements::device::{Device, DeviceRequest};
use engine::supervision::Handle;

use super::run::choose_io;
use crate::cores;
use crate::failure::Failure;
use crate::log::{self, Log};
use crate::numbers::within;
use crate::signals::Signals;
use crate::terminal::print;

/// Send traffic on an interface, each packet at its time, or write it to a capture file
///
/// The load is open: when a packet is due follows from the rate and the arrival process, or from the times
/// of a capture, and never from what was sent before. Packets that are due are sent, late if it must be; a
/// sender that did not keep up says so. --stamp has 'catena recv' see what was lost and how long it took.
/// The same options and seed send the same packets. In a capture file, times count from 0.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXIT_STATUS)]
pub(crate) struct Gen {
    /// Generated traffic (gen:KEY=VALUE,…), a capture file, or replay:FILE, which is kept in memory
    #[arg(default_value = "gen")]
    source: String,
    /// Interface to send on (dev:, tap: and dpdk: as in 'catena run'), or capture file to write
    #[arg(long, value_name = "INTERFACE|FILE")]
    out: String,
    /// Packets per second, such as 250, 100k or 1.5M, or a share of what the link carries, such as 10%
    ///
    /// Default: that of gen:rate=N, or the times that a capture recorded.
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Send a capture so many times as fast as it was recorded
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["rate", "arrivals"], value_parser = within(1e-6, 1e6))]
    speed: Option<f64>,
    /// How packets arrive at a rate: constant, poisson, trains=N or bursts=ON:OFF
    ///
    /// A train is N packets at once. ON and OFF are the mean durations of bursts and of the pauses between them, such as 200us:1ms.
    #[arg(long, value_name = "PROCESS")]
    arrivals: Option<Arrivals>,
    /// Send so many packets; the source begins anew where it has fewer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Send packets that are due within so many seconds; the source begins anew where it has fewer
    ///
    /// Packets that are late are sent late, for as long again and a second at least: then it ends.
    #[arg(long, value_name = "SECONDS", value_parser = within(1e-6, 1e9))]
    seconds: Option<f64>,
    /// Seed of arrivals and of generated traffic; default: 1, and that of gen:seed=N
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write a stamp into the payload of each packet of UDP, TCP or ICMP echo that has 18 bytes of it
    ///
    /// It holds the stream, the sequence number and when the packet was due. Checksums are adapted.
    #[arg(long)]
    stamp: bool,
    /// CPUs to send from, such as 2-3: one sender on each, which take turns
    ///
    /// All of them together send what one would, each packet at the same time. Of stamps, each has a stream of its own,
    /// from --stream on.
    #[arg(long, value_name = "CPUS")]
    cores: Option<String>,
    /// Number of the stream in stamps; senders to one receiver take different ones
    #[arg(long, value_name = "0-255", default_value_t = 0, requires = "stamp")]
    stream: u8,
    /// Clock of stamps: monotonic (sender and receiver are on this host) or realtime (hosts synchronise it)
    #[arg(long, value_name = "CLOCK", default_value = "monotonic", requires = "stamp")]
    clock: StampClock,
    /// Select the I/O mode, as in 'catena run'
    #[arg(long, value_name = "MODE[,batch=N][,shared]")]
    io: Option<String>,
    /// Arguments of DPDK's environment abstraction layer, instead of --in-memory --no-telemetry
    #[cfg(feature = "dpdk")]
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    dpdk_eal: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  sent, or interrupted (SIGINT, SIGTERM); a sender that was slower than asked says so
  1  something failed
  2  the command line is wrong";

/// The names of what is read and written.
const IN: &str = "source";
const OUT: &str = "out";

pub(crate) fn main(args: &Gen) -> Result<ExitCode, Failure> {
    let interfaces = Interfaces::default();
    let done = run(args, &interfaces);
    interfaces.leave();
    log::flush();
    let (plan, sent) = done?;
    match args.json {
        true => {
            let mut document = serde_json::to_value(&sent).map_err(|e| e.to_string())?;
            document["remarks"] = sent.remarks(&plan).into();
            print(&format!("{document}\n"));
        }
        false => print(&sent.render(&plan)),
    }
    Ok(ExitCode::SUCCESS)
}

fn run(args: &Gen, interfaces: &Interfaces) -> Result<(Plan, Sent), Failure> {
    let output = Binding::sink(&args.out).map_err(|why| format!("--out {}: {why}", args.out))?;
    let (input, cpus) = understand(args, &output).map_err(Failure::Usage)?;
    let mut bindings = Bindings { interfaces: interfaces.clone(), ..Bindings::default() };
    bindings.inputs.insert(IN.into(), input.clone());
    bindings.outputs.insert(OUT.into(), output.clone());
    #[cfg(feature = "dpdk")]
    bindings.eal.clone_from(&args.dpdk_eal);
    choose_io(&mut bindings, args.io.as_slice())?;
    let is_live = bindings.is_live();
    let clock = if is_live { args.clock } else { StampClock::Relative };
    let whole = Plan {
        pace: pace(args, (&input, &output), &bindings).map_err(Failure::Usage)?,
        count: args.count,
        seconds: args.seconds,
        stamp: args.stamp.then_some((clock, args.stream)),
        turns: Turns::default(),
        burst: BURST,
    };
    let handle = Handle::default();
    let left = interfaces.clone();
    let signals = Signals::catch(handle.clone(), false, move || left.leave());
    let clock = HostClock::new(args.clock);
    let has_failed = AtomicBool::new(false);
    let is_stopped = || handle.is_stopped() || has_failed.load(Ordering::Relaxed);
    let task =
        Task { args, output: &output, clock: is_live.then_some(&clock), is_stopped: &is_stopped };
    let count = cpus.len();
    let sent = std::thread::scope(|scope| -> Result<Sent, String> {
        let (ready, all_ready) = channel();
        let mut senders = Vec::new();
        for (index, cpu) in cpus.into_iter().enumerate() {
            let (start, started) = channel();
            let part = WorkerShare { index, count, groups: 0 };
            let bindings = Bindings { part, ..bindings.clone() };
            let turns = Turns { index: index as u64, count: count as u64 };
            let stamp = whole.stamp.map(|(clock, first)| (clock, first + index as u8));
            let plan = Plan { turns, stamp, ..whole.clone() };
            let (ready, task, has_failed) = (ready.clone(), &task, &has_failed);
            let work = move || {
                let done = task.run((cpu, bindings), &plan, (&ready, &started));
                has_failed.fetch_or(done.is_err(), Ordering::Relaxed);
                done
            };
            senders.push((start, scope.spawn(work)));
        }
        drop(ready);
        // One that fails does not say that it is ready.
        if all_ready.iter().take(count).count() == count {
            signals.started();
            bindings.take_lines().iter().for_each(|line| Log::Text.info(line));
            let begin = clock.now() + LEAD;
            senders.iter().for_each(|(start, _)| _ = start.send(begin));
        }
        let ends = senders.into_iter().map(|(start, sender)| {
            drop(start);
            sender.join().unwrap_or_else(|_| Err("a sender broke off".into()))
        });
        let mut all = Vec::new();
        let mut wrong = Vec::new();
        for end in ends {
            match end {
                Ok(sent) => all.extend(sent),
                Err(why) => wrong.push(why),
            }
        }
        match wrong.into_iter().next() {
            Some(why) => Err(why),
            None => Ok(Sent::together(all)),
        }
    })?;
    Ok((whole, sent))
}

/// What is said of a source, without its name.
const NAMELESS: [&str; 2] = ["there are no packets", "its packets "];

/// What all senders know.
struct Task<'a> {
    args: &'a Gen,
    output: &'a Binding,
    /// Nothing where a capture is written.
    clock: Option<&'a HostClock>,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Task<'_> {
    /// Sends a sender's packets on a CPU, once all are ready; nothing if another one is not.
    fn run(
        &self,
        (cpu, mut bindings): (Option<usize>, Bindings),
        plan: &Plan,
        (ready, started): (&Sender<()>, &Receiver<u64>),
    ) -> Result<Option<Sent>, String> {
        if cpu.is_some() {
            Machine::bind(cpu).map_err(|why| format!("--cores: {why}"))?;
        }
        // What the source's device says has the source's name in it.
        let named = |why: String| match why.starts_with(NAMELESS[0]) || why.starts_with(NAMELESS[1])
        {
            true => format!("{}: {why}", self.args.source),
            false => why,
        };
        let mut reading = bindings.clone();
        let request = DeviceRequest::Interface { name: IN.into(), receive: true };
        let mut open = || Ok(reading.open_device(&request)? as Box<dyn Device>);
        let mut source = Source::new(&mut open).map_err(named)?;
        let mut device = bindings.open_device(&match self.output {
            Binding::Capture(path) => DeviceRequest::CaptureOut {
                path: path.display().to_string(),
                snap_length: 0,
                link_type: 1,
                nanoseconds: true,
                unbuffered: false,
            },
            _ => DeviceRequest::Interface { name: OUT.into(), receive: false },
        })?;
        let _ = ready.send(());
        let Ok(begin) = started.recv() else { return Ok(None) };
        let time = self.clock.map(|clock| (clock as &dyn Time, begin));
        let sent = send_from(&mut *device, &mut source, plan, time, &|| (self.is_stopped)())
            .map_err(
                |why| if why.starts_with("there are no packets") { named(why) } else { why },
            )?;
        // What the kernel has not sent yet it drops with the interface.
        if let Some(clock) = self.clock {
            let begin = clock.now();
            let worker = bindings.part.index;
            while !bindings.interfaces.is_sent(worker) && clock.now() - begin < LINGER {
                std::thread::yield_now();
            }
        }
        Ok(Some(sent))
    }
}

/// Refuses several senders where they cannot be.
fn check_cores(
    args: &Gen,
    (input, output): (&Binding, &Binding),
    count: usize,
) -> Result<(), String> {
    let refused =
        |why: &str| Err(format!("--cores {}: {why}", args.cores.as_deref().unwrap_or("")));
    if count < 2 {
        return Ok(());
    }
    if usize::from(args.stream) + count > 256 {
        return refused("streams after --stream go up to 255, and each sender has its own");
    }
    if matches!(output, Binding::Capture(_)) {
        return refused("a capture file has one writer");
    }
    if matches!(input, Binding::Capture(path) if path == Path::new("-")) {
        return refused("the standard input has one reader");
    }
    Ok(())
}

/// From when all senders are ready until the first packet can be due, in nanoseconds.
const LEAD: u64 = 2_000_000;
/// How long the kernel may take to send what it was given, in nanoseconds.
const LINGER: u64 = 1_000_000_000;

/// What is read, and the CPUs of the senders.
fn understand(args: &Gen, output: &Binding) -> Result<(Binding, Vec<Option<usize>>), String> {
    let input = source(args)?;
    let cpus = match &args.cores {
        Some(text) => cores::parse(text, &worker::cpus())?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    check_cores(args, (&input, output), cpus.len())?;
    Ok((input, cpus))
}

fn source(args: &Gen) -> Result<Binding, String> {
    let text = &args.source;
    let mut binding = Binding::source(text).map_err(|why| format!("{text}: {why}"))?;
    match &mut binding {
        Binding::Generator(generator) => {
            if let Some(seed) = args.seed {
                generator.seed = seed;
            }
            if args.count.is_some() || args.seconds.is_some() {
                generator.count = 0;
            }
        }
        Binding::Interface(spec) => {
            return Err(format!(
                "{text}: {} is an interface; what is sent is generated (gen:…), a capture file or replay:FILE",
                spec.name
            ));
        }
        Binding::Replay(replay) => replay.timed = args.rate.is_none(),
        // No words name a wire behind a switch.
        Binding::Capture(_) | Binding::Uplink(_) => {}
    }
    Ok(binding)
}

/// When packets are due.
fn pace(
    args: &Gen,
    (input, output): (&Binding, &Binding),
    bindings: &Bindings,
) -> Result<Pace, String> {
    let rate = match (args.rate, input) {
        (Some(Rate::Packets(rate)), _) => rate,
        (Some(Rate::OfLink(share)), _) => {
            let Binding::Interface(spec) = output else {
                return Err(
                    "--rate: a capture file has no link; say how many packets a second".into()
                );
            };
            let speed = link_speed(&spec.name).ok_or_else(|| {
                format!(
                    "--rate: the speed of {} is unknown; say how many packets a second",
                    spec.name
                )
            })?;
            let mut reading = bindings.clone();
            let request = DeviceRequest::Interface { name: IN.into(), receive: true };
            let mut open = || Ok(reading.open_device(&request)? as Box<dyn Device>);
            let source = Source::new(&mut open);
            let length = source.and_then(|mut source| source.mean_length());
            let length = length.map_err(|why| format!("{}: {why}", args.source))?;
            share * speed / ((length + ON_WIRE) * 8.0)
        }
        (None, Binding::Generator(Generator { rate: rate @ 1.., .. })) => *rate as f64,
        (None, Binding::Capture(_) | Binding::Replay(_))
            if matches!(args.arrivals, None | Some(Arrivals::Recorded)) =>
        {
            return Ok(Pace::Recorded(args.speed.unwrap_or(1.0)));
        }
        (None, _) => {
            return Err(format!("{}: say by --rate how many packets a second", args.source));
        }
    };
    if args.arrivals == Some(Arrivals::Recorded) {
        return Err(
            "--arrivals recorded is for captures without --rate; --speed scales their times".into(),
        );
    }
    if args.speed.is_some() {
        return Err(format!("--speed: {} has no recorded times", args.source));
    }
    Ok(Pace::Rate(rate, args.arrivals.unwrap_or_default(), args.seed.unwrap_or(1)))
}

/// Bytes that a frame takes on the wire besides its own: check sequence, preamble, delimiter and gap.
const ON_WIRE: f64 = 24.0;

/// Bits per second that a link carries, if its driver says so.
fn link_speed(interface: &str) -> Option<f64> {
    let file = Path::new("/sys/class/net").join(interface).join("speed");
    let megabits: f64 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
    (megabits > 0.0).then_some(megabits * 1e6)
}
