//! `catena recv`: counts what arrives.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use bench::percentile_distribution;
use bench::receive::{Expected, Receipt, Until, receive};
use clap::Args;
use dataplane::io::{Binding, Bindings, Interfaces};
use elements::device::DeviceRequest;
use engine::supervision::Handle;

use super::run::{choose_io, polling};
use crate::failure::Failure;
use crate::log::{self, Log};
use crate::numbers::within;
use crate::outputs;
use crate::signals::Signals;
use crate::terminal::print;

/// Receive traffic from an interface or a capture file, and report loss, reordering and latency
///
/// Packets with a stamp of 'catena gen --stamp' are distinguished by stream and sequence number: received,
/// lost, duplicates, reordered (RFC 4737), and latency since they were due. PDV is the packet delay
/// variation of RFC 8219. Frames that an interface receives here do not reach the host.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXIT_STATUS)]
pub(crate) struct Recv {
    /// Interface to receive from (dev:, tap: and dpdk: as in 'catena run'), or capture file to read
    #[arg(long = "in", value_name = "INTERFACE|FILE")]
    input: String,
    /// Say how many packets of each stream were sent: others are lost; end when the last has come
    ///
    /// N is for all streams, STREAM=N for one.
    #[arg(long, value_name = "N|STREAM=N,…")]
    expect: Option<Expected>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = within(1e-6, 1e9))]
    seconds: Option<f64>,
    /// End once nothing has come for so many seconds, after something did
    #[arg(long, value_name = "SECONDS", value_parser = within(1e-6, 1e9))]
    idle: Option<f64>,
    /// Write the latencies to a file, as HdrHistogram's tools read them (.hgrm), in microseconds
    #[arg(long, value_name = "FILE")]
    hgrm: Option<String>,
    /// How to wait for packets: adaptive (poll for a while, then sleep), busy (always poll), sleep
    /// (never poll) or yield (poll, in turns with others of this CPU)
    #[arg(long, value_name = "MODE", default_value = "adaptive")]
    poll: String,
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
  0  received as asked, or interrupted (SIGINT, SIGTERM), whatever was lost
  1  something failed
  2  the command line is wrong";

/// The name of what is read.
const IN: &str = "in";

pub(crate) fn main(args: &Recv) -> Result<ExitCode, Failure> {
    let interfaces = Interfaces::default();
    let done = run(args, &interfaces);
    interfaces.leave();
    log::flush();
    let receipt = done?;
    if let Some(path) = &args.hgrm {
        let write = || -> Result<(), String> {
            let mut file = Bindings::default().create_text(path)?;
            let text = percentile_distribution(&receipt.latencies);
            file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(|e| e.to_string())
        };
        write().map_err(|why| format!("--hgrm {path}: {why}"))?;
    }
    match args.json {
        true => {
            let json = serde_json::to_string(&receipt).map_err(|e| e.to_string())?;
            print(&(json + "\n"));
        }
        false => print(&receipt.render()),
    }
    Ok(ExitCode::SUCCESS)
}

fn run(args: &Recv, interfaces: &Interfaces) -> Result<Receipt, Failure> {
    let polling = polling(&args.poll).map_err(Failure::Usage)?;
    if let Some(path) = args.hgrm.as_deref().filter(|path| *path != "-") {
        outputs::check(Path::new(path)).map_err(|why| format!("--hgrm: {why}"))?;
    }
    let input = Binding::sink(&args.input).map_err(|why| format!("--in {}: {why}", args.input))?;
    let mut bindings = Bindings { interfaces: interfaces.clone(), ..Bindings::default() };
    bindings.inputs.insert(IN.into(), input);
    #[cfg(feature = "dpdk")]
    bindings.eal.clone_from(&args.dpdk_eal);
    choose_io(&mut bindings, args.io.as_slice())?;
    let handle = Handle::default();
    let left = interfaces.clone();
    let signals = Signals::catch(handle.clone(), false, move || left.leave());
    let request = DeviceRequest::Interface { name: IN.into(), receive: true };
    let mut device = bindings.open_device(&request)?;
    if device.link_type() != 1 {
        return Err(format!("{}: its packets are not Ethernet frames", args.input).into());
    }
    signals.started();
    bindings.take_lines().iter().for_each(|line| Log::Text.info(line));
    let expected = args.expect.clone().unwrap_or_default();
    let until = Until { expected, seconds: args.seconds, idle: args.idle };
    Ok(receive(&mut *device, until, polling, &|| handle.is_stopped())?)
}
