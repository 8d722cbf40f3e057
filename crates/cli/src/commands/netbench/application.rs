//! The applications of `catena netbench`, which a run starts in namespaces, or a user by hand.

use std::io::BufRead;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::mpsc::channel;

use bench::Machine;
use bench::netbench::application::{
    ABOVE_TURNS, Options, Order, Orders, Outcome, Role, Second, State, be_real_time, run,
};
use bench::netbench::{Carrier, Endpoint, SIZES, read_order, write_state};
use bench::send::Rate;
use clap::Args;
use dataplane::io::{Interfaces, Polling};
use engine::supervision::Handle;
use net::wire::EtherAddr;
use view::table::grouped;

use crate::commands::run::polling;
use crate::failure::Failure;
use crate::log;
use crate::numbers::within;
use crate::signals::Signals;
use crate::terminal::print;

#[derive(Args, Debug)]
pub(crate) struct Application {
    /// Own IP address
    local_ip: Ipv4Addr,
    /// Own MAC address
    #[arg(value_parser = mac)]
    local_mac: EtherAddr,
    /// IP address of the other application
    remote_ip: Ipv4Addr,
    /// MAC address of the other application
    #[arg(value_parser = mac)]
    remote_mac: EtherAddr,
    /// Carry frames over this interface by raw sockets, or as --io says: over a TAP interface or a socket of vhost-user or
    /// memif; UDP sockets carry packets without it
    #[arg(short = 'R', long, value_name = "INTERFACE")]
    raw: Option<String>,
    /// Carry many packets in a system call
    #[arg(short, long, conflicts_with = "io")]
    mmsg: bool,
    /// Sleep in the kernel until packets come, and never poll
    #[arg(short = 'B', long, conflicts_with = "poll")]
    blocking: bool,
    /// Print nothing before the end, not even what was done in each second
    #[arg(short, long)]
    silent: bool,
    /// Packets per second, such as 100k or 1.5M; as many as the interface takes by default
    #[arg(short, long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Bytes of a frame, without frame check sequence
    #[arg(short = 'p', long, value_name = "BYTES", default_value_t = 64)]
    size: usize,
    /// Packets that are due, and given to the interface, at a time
    #[arg(short, long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=4096))]
    burst: u16,
    /// Write and read each byte of payloads
    #[arg(short = 'c', long)]
    touch: bool,
    /// End after so many seconds; by default a sender and a client send for one, others until Ctrl-C
    #[arg(long, value_name = "SECONDS", value_parser = within(1e-3, 1e6))]
    seconds: Option<f64>,
    /// Select the I/O mode, as in 'catena run', or udp, udp-mmsg (one or many packets in a system call), tap, virtio-user,
    /// memif or dpdk:DEVICE
    #[arg(long, value_name = "MODE[,batch=N]")]
    io: Option<Carrier>,
    /// Start DPDK with these arguments, if it carries packets
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    dpdk_eal: Option<String>,
    /// How to wait for packets: adaptive (poll for a while, then sleep), busy (always poll), sleep (never poll) or
    /// yield (poll, in turns with others of this CPU, with real-time priority where that is allowed);
    /// default: adaptive
    #[arg(long, value_name = "MODE")]
    poll: Option<String>,
    /// Run on this CPU
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Number of the pair in stamps
    #[arg(long, value_name = "0-255", default_value_t = 0)]
    stream: u8,
    /// Take orders from 'catena netbench run'
    #[arg(long, hide = true)]
    orders: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

fn mac(text: &str) -> Result<EtherAddr, String> {
    EtherAddr::from_str(text)
        .map_err(|_| "takes a MAC address such as 02:00:00:00:00:01".to_string())
}

pub(super) fn main(args: &Application, role: Role) -> Result<ExitCode, Failure> {
    let rate = match args.rate {
        None if role == Role::Client => Some(10_000.0),
        None => None,
        Some(Rate::Packets(rate)) => Some(rate),
        Some(Rate::OfLink(_)) => {
            return Err(Failure::Usage(
                "--rate: is in packets per second here, not a share".into(),
            ));
        }
    };
    if !SIZES.contains(&args.size) {
        let (least, most) = (SIZES.start(), SIZES.end());
        return Err(Failure::Usage(format!("--size {}: takes {least} to {most} bytes", args.size)));
    }
    let carrier = args.io.clone();
    let carrier = carrier.unwrap_or_else(|| Carrier::sockets(args.raw.is_some(), args.mmsg));
    match (&carrier, &args.raw) {
        (Carrier::VirtioUser | Carrier::Memif, None) => {
            let why = format!("--io {carrier}: needs the path of a socket, --raw PATH");
            return Err(Failure::Usage(why));
        }
        (carrier, None) if carrier.needs_name() => {
            return Err(Failure::Usage(format!("--io {carrier}: needs an interface, --raw")));
        }
        (Carrier::Dpdk(_), Some(raw)) => {
            let why = format!("--io {carrier}: names the device itself, so has no --raw {raw}");
            return Err(Failure::Usage(why));
        }
        (Carrier::Udp { .. }, Some(raw)) => {
            let why =
                format!("--io {carrier}: the host's stack chooses the interface, not --raw {raw}");
            return Err(Failure::Usage(why));
        }
        _ => {}
    }
    carrier.look().map_err(|why| Failure::Usage(format!("--io {why}")))?;
    let poll = args.poll.as_deref().unwrap_or(if args.blocking { "sleep" } else { "adaptive" });
    let options = Options {
        role,
        local: Endpoint { ip: args.local_ip, mac: args.local_mac },
        remote: Endpoint { ip: args.remote_ip, mac: args.remote_mac },
        carrier,
        interface: args.raw.clone(),
        eal: args.dpdk_eal.clone(),
        rate,
        size: args.size,
        burst: usize::from(args.burst),
        touches: args.touch,
        seconds: args.seconds.or(role.is_active().then_some(1.0)),
        polling: polling(poll).map_err(Failure::Usage)?,
        stream: args.stream,
    };
    if args.cpu.is_some() {
        Machine::bind(args.cpu).map_err(|why| format!("--cpu: {why}"))?;
    }
    let interfaces = Interfaces::default();
    let handle = Handle::default();
    let left = interfaces.clone();
    let signals = Signals::catch(handle.clone(), false, move || left.leave());
    signals.started();
    let tell = |state: State| print(&write_state(state));
    let json = |outcome: &Outcome| serde_json::to_string(outcome).map(|json| json + "\n");
    let done = |outcome: &Outcome| print(&json(outcome).unwrap_or_default());
    let orders = args.orders.then(|| {
        let (give, orders) = channel();
        let takes_turns = options.polling == Polling::Yield;
        std::thread::spawn(move || {
            if takes_turns {
                be_real_time(ABOVE_TURNS);
            }
            read(&give);
        });
        Orders { orders, tell: &tell, done: &done }
    });
    let is_ordered = orders.is_some();
    let told = |second: &Second| print(&told(second, role));
    let is_told = !(args.silent || args.json || is_ordered || role == Role::Server);
    let each_second = is_told.then_some(&told as &dyn Fn(&Second));
    let outcome = run(&options, &interfaces, orders.as_ref(), each_second, &|| handle.is_stopped());
    interfaces.leave();
    log::flush();
    let outcome = outcome?;
    match args.json {
        _ if is_ordered => {}
        true => print(&json(&outcome).map_err(|why| why.to_string())?),
        false => print(&rendered(&outcome, role)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads orders until there is nobody to give any.
fn read(give: &std::sync::mpsc::Sender<Order>) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Some(order) = read_order(&line)
            && give.send(order).is_err()
        {
            return;
        }
    }
}

/// What was done in a second, in a line.
fn told(second: &Second, role: Role) -> String {
    let Second { attempted, sent, received, round_trip } = *second;
    let mut parts = Vec::new();
    if role.is_active() {
        parts.push(format!("attempted {}, sent {}", grouped(attempted), grouped(sent)));
        parts.push(format!("dropped {}", grouped(attempted.saturating_sub(sent))));
    }
    if role != Role::Send {
        parts.push(format!("received {}", grouped(received)));
    }
    parts.extend(round_trip.map(|trip| format!("mean round trip {:.1} µs", trip / 1e3)));
    parts.join(", ") + "\n"
}

/// As people read it.
fn rendered(outcome: &Outcome, role: Role) -> String {
    let per_second = |packets: u64| match outcome.seconds > 0.0 {
        true => format!(", {} packets/s", grouped((packets as f64 / outcome.seconds) as u64)),
        false => String::new(),
    };
    let mut text = String::new();
    if role.is_active() {
        text += &format!(
            "attempted: {} packets{}\nsent: {} packets{}\n",
            grouped(outcome.attempted),
            per_second(outcome.attempted),
            grouped(outcome.sent),
            per_second(outcome.sent)
        );
    }
    if role != Role::Send {
        text += &format!(
            "received: {} packets{}, {} duplicates, {} reordered, {} lost by this receiver\n",
            grouped(outcome.received),
            per_second(outcome.received),
            grouped(outcome.duplicates),
            grouped(outcome.reordered),
            grouped(outcome.overrun)
        );
    }
    if let Some(trips) = outcome.percentiles() {
        let micros = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        text += &format!(
            "round trip, µs: min {:.1}, p50 {:.1}, p99 {:.1}, p99.99 {:.1}, max {:.1}\n",
            micros(trips.min),
            micros(trips.p50),
            micros(trips.p99),
            micros(trips.p99_99),
            micros(trips.max)
        );
    }
    let packets = outcome.sent.max(outcome.received).max(1) as f64;
    text += &format!("CPU time: {:.0} ns a packet\n", outcome.cpu_seconds * 1e9 / packets);
    for notice in &outcome.notices {
        text += &format!("! {notice}\n");
    }
    text
}
