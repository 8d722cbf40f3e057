//! `catena verify`: whether a chain and what it becomes, or two chains, do the same.

mod device;
mod fields;
mod replay;
mod report;

use std::fs::File;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use compiler::Chain;
use compiler::prove::differential::Effort;
use compiler::prove::{Outcome, Subjects, verify_chain, verify_pair};
use dataplane::guarded_path;
use elements::device::DeviceRequest;
use elements::element_state::{ElementState, Scope};
use engine::Closed;
use engine::Disk;
use ir::{Sources, has_errors};
use net::pcap::{InterfaceOptions, LinkType, Options, PcapngWriter, Reader, Writer};
use view::paint::Paint;

use crate::commands::compile::Device;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::terminal::{colours, print};
use crate::variables;
use replay::Replayer;
use report::{Input, Report};

/// Neither equality nor a difference was shown, or the question could not be asked.
const UNDECIDED: u8 = 2;

/// Prove that a chain and its programs, or two chains, do the same
///
/// With one FILE, two things are checked. Programs are proven equal to plain symbolic execution of the
/// chain, for every packet and state. And packets, flows and sequences of packets made for every path
/// are processed by programs and by the elements' models; results must agree.
///
/// With two FILEs, the same packets must leave both, whatever enters. Sources and sinks correspond if
/// they name the same device or file. Queues, schedulers and opaque elements must have the same class,
/// configuration and successors; names and the order of statements do not matter. What calls handlers
/// (Script, COUNT_CALL, END_CALL, STOP) must be the same, and what it may change is compared by name. A
/// difference is shown by packets at the sources: both chains were run with them.
///
/// With --target, one FILE is compiled for devices as `catena compile` does. What they are given is read back,
/// and proven, with what cores go on with, to do what the chain does.
///
/// The exit status is 0 if all is equal, 1 if there is a difference, and 2 if neither could be shown.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// One or two configuration files (`-` for standard input), and values of their variables
    #[arg(value_name = "FILE|VAR=VALUE", required = true)]
    files: Vec<String>,
    /// Write packets that show a difference to a capture; with several sources pcapng, one interface each
    #[arg(long, value_name = "OUT")]
    pcap: Option<PathBuf>,
    /// Approximate number of packets to try; the default follows the chain's size
    #[arg(long, value_name = "N")]
    packets: Option<usize>,
    #[command(flatten)]
    device: Option<Device>,
    /// Verify the artefact in a folder, as `catena compile --output` wrote it, instead of what would be written
    #[arg(long, value_name = "DIR", requires = "Device")]
    artefact: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// A configuration with what its elements mean.
struct Loaded {
    sources: Sources,
    files: Disk,
    chain: Chain,
    subjects: Subjects,
}

fn load(name: &str, variables: &[(String, String)], limits: &Limits) -> Result<Loaded, Failure> {
    let mut sources = Sources::new();
    let mut files = limits.disk();
    let file = files.configuration(&mut sources, name)?;
    let options = limits.options(variables.to_vec());
    let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let mut loaded = None;
    if let Some(chain) = chain
        && let Some(mut made) = compiler::instantiate(&chain, &mut sources, &mut files, &mut found)
    {
        // Devices that are not there do not change what the elements between them do.
        let mut ignored = Vec::new();
        let mut closed = Closed::default();
        made.initialize(&chain, &mut sources, &mut files, &mut closed, &mut ignored);
        ignored.retain(|d| d.code != "device");
        found.append(&mut ignored);
        let mut state = ElementState::copy(Scope::All);
        for (element, node) in made.elements.iter_mut().zip(&chain.graph.nodes) {
            element.export(&node.name, &mut state);
        }
        let models = made.elements.iter().map(|element| element.model()).collect();
        let calls = made.elements.iter().map(|element| element.handler_calls()).collect();
        let frames_only = made.elements.iter().map(|element| element.sees_frames_only()).collect();
        let makes_bare = made.elements.iter().map(|element| element.makes_bare_packets()).collect();
        let places = chain.graph.nodes.iter().map(|node| sources.landmark(node.span)).collect();
        let graph = chain.graph.clone();
        loaded = Some((
            chain,
            Subjects {
                graph,
                models,
                state: state.declared,
                calls,
                frames_only,
                makes_bare,
                places,
            },
        ));
    }
    found.retain(|d| d.severity == ir::Severity::Error);
    match loaded.filter(|_| !has_errors(&found)) {
        Some((chain, subjects)) => Ok(Loaded { sources, files, chain, subjects }),
        None => Err(Failure::of(found, sources)),
    }
}

/// Runs the command.
pub(crate) fn main(args: &Verify) -> ExitCode {
    run(args).unwrap_or_else(|why| {
        why.print(args.json);
        ExitCode::from(UNDECIDED)
    })
}

fn run(args: &Verify) -> Result<ExitCode, Failure> {
    let (files, variables) = variables::split(&args.files);
    if files.is_empty() || files.len() > 2 {
        return Err(format!("verify takes one or two configurations, not {}", files.len()).into());
    }
    if let Some(device) = &args.device {
        let [file] = &files[..] else {
            return Err("verify --target takes one configuration".to_string().into());
        };
        let variables: Vec<String> =
            variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        return device::run(args, device, file, &variables);
    }
    let mut chains = Vec::new();
    for name in &files {
        chains.push(load(name, &variables, &args.limits)?);
    }
    let effort = args.packets.map(|packets| Effort { packets, seed: 1 });
    let start = Instant::now();
    let mut replayer = match &chains[..] {
        [a, b, ..] => Some(Replayer::new([
            (&a.chain, &a.sources, &a.files),
            (&b.chain, &b.sources, &b.files),
        ])),
        _ => None,
    };
    let verification = match (&chains[..], &mut replayer) {
        ([a, b, ..], Some(replayer)) => verify_pair(&a.subjects, &b.subjects, effort, replayer),
        ([one, ..], _) => verify_chain(&one.subjects, effort),
        ([], _) => return Err(Failure::from("no configuration".to_string())),
    };
    let report = Report {
        files: &files,
        chains: &chains,
        verification: &verification,
        replayer: replayer.as_ref(),
        time: start.elapsed(),
        paint: Paint(!args.json && colours(&stdout())),
    };
    if let Some(path) = &args.pcap {
        write_capture(path, &report.inputs()).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    match args.json {
        true => print(&format!("{:#}\n", report.json())),
        false => print(&report.text()),
    }
    Ok(ExitCode::from(match verification.outcome() {
        Outcome::Equal => 0,
        Outcome::Different => 1,
        Outcome::Undecided => UNDECIDED,
    }))
}

/// Writes the packets that show a difference.
fn write_capture(path: &Path, inputs: &[Input<'_>]) -> std::io::Result<()> {
    let length = |frame: &[u8]| u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let mut interfaces: Vec<(&str, LinkType)> = Vec::new();
    for input in inputs {
        if !interfaces.iter().any(|(name, _)| *name == input.source) {
            interfaces.push((&input.source, input.link_type));
        }
    }
    if interfaces.len() < 2 {
        let link_type = interfaces.first().map_or(LinkType::ETHERNET, |interface| interface.1);
        let options = Options { link_type, ..Options::for_file_name(path) };
        let mut writer = Writer::new(guarded_path::create(path, false)?, &options)?;
        for Input { frame, time, .. } in inputs {
            writer.write(*time, frame, length(frame))?;
        }
        return writer.finish().map(|_| ());
    }
    let comment = "packets that show a difference";
    let mut writer =
        PcapngWriter::new(guarded_path::create(path, false)?, "catena verify", comment)?;
    for (name, link_type) in &interfaces {
        let name = name.to_string();
        let about = InterfaceOptions { name, description: String::new(), filter: String::new() };
        writer.interface(*link_type, 0, &about)?;
    }
    for Input { source, frame, time, .. } in inputs {
        let number = interfaces.iter().position(|(name, _)| name == source).unwrap_or(0);
        writer.packet(number as u32, 0, *time, frame, length(frame))?;
    }
    Ok(())
}

/// The link type of frames that come from a device; of interfaces, Ethernet.
fn link_type(request: &DeviceRequest) -> u32 {
    let capture = match request {
        DeviceRequest::CaptureIn { path } => File::open(path).ok(),
        _ => None,
    };
    let reader = capture.and_then(|file| Reader::open(file).ok());
    reader.and_then(|reader| reader.link_type()).unwrap_or(LinkType::ETHERNET).0
}
