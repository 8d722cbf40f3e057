//! `catena gen`: sends traffic, open loop.

use std::path::Path;
use std::process::ExitCode;

use bench::arrivals::Arrivals;
use bench::send::{Pace, Plan, Rate, Sent, Source, send};
use bench::stamp::{HostClock, StampClock};
use clap::Args;
use dataplane::clock::Time;
use dataplane::io::{Binding, Bindings, Generator, Interfaces};
use elements::device::{Device, DeviceRequest};
use engine::supervision::Handle;

use super::run::choose_io;
use crate::failure::Failure;
use crate::log::{self, Log};
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
    #[arg(long, value_name = "FACTOR", conflicts_with_all = ["rate", "arrivals"])]
    speed: Option<f64>,
    /// How packets arrive at a rate: constant, poisson or bursts=ON:OFF
    ///
    /// ON and OFF are the mean durations of bursts and of the pauses between them, such as 200us:1ms.
    #[arg(long, value_name = "PROCESS")]
    arrivals: Option<Arrivals>,
    /// Send so many packets; the source begins anew where it has fewer
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Send packets that are due within so many seconds; the source begins anew where it has fewer
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Seed of arrivals and of generated traffic; default: 1, and that of gen:seed=N
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write a stamp into the payload of each packet of UDP, TCP or ICMP echo that has 18 bytes of it
    ///
    /// It holds the stream, the sequence number and when the packet was due. Checksums are adapted.
    #[arg(long)]
    stamp: bool,
    /// Number of the stream in stamps; senders to one receiver take different ones
    #[arg(long, value_name = "0-255", default_value_t = 0, requires = "stamp")]
    stream: u8,
    /// Clock of stamps: monotonic (sender and receiver are on this host) or realtime (hosts synchronise it)
    #[arg(long, value_name = "CLOCK", default_value = "monotonic", requires = "stamp")]
    clock: StampClock,
    /// Select the I/O mode, as in 'catena run'
    #[arg(long, value_name = "MODE[,batch=N][,shared]")]
    io: Option<String>,
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
    if args.count == Some(0) {
        return Err("--count 0: at least one packet".to_string().into());
    }
    check_range("--seconds", args.seconds, 1e-6, 1e9)?;
    check_range("--speed", args.speed, 1e-6, 1e6)?;
    let input = source(args)?;
    let output = Binding::sink(&args.out).map_err(|why| format!("--out {}: {why}", args.out))?;
    let mut bindings = Bindings { interfaces: interfaces.clone(), ..Bindings::default() };
    bindings.inputs.insert(IN.into(), input.clone());
    bindings.outputs.insert(OUT.into(), output.clone());
    choose_io(&mut bindings, args.io.as_slice())?;
    let named = |why| format!("{}: {why}", args.source);
    let mut reading = bindings.clone();
    let request = DeviceRequest::Interface { name: IN.into(), receive: true };
    let mut open = || Ok(reading.open_device(&request)? as Box<dyn Device>);
    let mut source = Source::new(&mut open).map_err(named)?;
    let is_live = bindings.is_live();
    let plan = Plan {
        pace: pace(args, &input, &output, &mut source)?,
        count: args.count,
        seconds: args.seconds,
        stamp: args
            .stamp
            .then_some((if is_live { args.clock } else { StampClock::Relative }, args.stream)),
    };
    let handle = Handle::default();
    let left = interfaces.clone();
    let signals = Signals::catch(handle.clone(), false, move || left.leave());
    let mut device = bindings.open_device(&match &output {
        Binding::Capture(path) => DeviceRequest::CaptureOut {
            path: path.display().to_string(),
            snap_length: 0,
            link_type: 1,
            nanoseconds: true,
            unbuffered: false,
        },
        _ => DeviceRequest::Interface { name: OUT.into(), receive: false },
    })?;
    signals.started();
    bindings.take_lines().iter().for_each(|line| Log::Text.info(line));
    let clock = HostClock::new(args.clock);
    let time = is_live.then_some(&clock as &dyn Time);
    let is_stopped = || handle.is_stopped();
    let sent = send(&mut *device, &mut source, &plan, time, &is_stopped)
        .map_err(|why| if why.starts_with("there are no packets") { named(why) } else { why })?;
    // What the kernel has not sent yet it drops with the interface.
    let begin = clock.now();
    while is_live && !interfaces.is_sent(0) && clock.now() - begin < LINGER {
        std::thread::yield_now();
    }
    Ok((plan, sent))
}

/// How long the kernel may take to send what it was given, in nanoseconds.
const LINGER: u64 = 1_000_000_000;

/// Refuses a number outside of what an option may have.
pub(super) fn check_range(
    option: &str,
    number: Option<f64>,
    least: f64,
    most: f64,
) -> Result<(), String> {
    match number.filter(|number| !(least..=most).contains(number)) {
        Some(number) => Err(format!("{option} {number}: {least} to {most}")),
        None => Ok(()),
    }
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
        // No words name a wire behind a switch.
        Binding::Capture(_) | Binding::Replay(_) | Binding::Uplink(_) => {}
    }
    Ok(binding)
}

/// When packets are due.
fn pace(
    args: &Gen,
    input: &Binding,
    output: &Binding,
    source: &mut Source<'_>,
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
            let length = source.mean_length().map_err(|why| format!("{}: {why}", args.source))?;
            share * speed / ((length + ON_WIRE) * 8.0)
        }
        (None, Binding::Generator(Generator { rate: rate @ 1.., .. })) => *rate as f64,
        (None, Binding::Capture(_)) if args.arrivals.is_none() => {
            return Ok(Pace::Recorded(args.speed.unwrap_or(1.0)));
        }
        (None, _) => {
            return Err(format!("{}: say by --rate how many packets a second", args.source));
        }
    };
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
