//! `catena compile`: what a chain becomes on devices that are no cores.

use std::fs;
use std::io::{self, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use clap::builder::PossibleValuesParser;
use codegen::stages::{Hardware, fit};
use codegen::{File, Target, target_for};
use compiler::Chain;
use compiler::partition::{self, Compiled, Share, Site, SitePort, Trust};
use compiler::prove::Verdict;
use dataplane::guarded_path;
use dataplane::io::{InterfaceSpec, Uplink, Wire, Wires};
use ir::topology::{Topology, Vocabulary};
use ir::{NodeId, Sources, Span};
use net::Pool;
use net::pcap::{LinkType, Reader};
use serde_json::Value;
use view::offload::Offloaded;
use view::paint::Paint;
use view::stages::Staged;

use crate::failure::Failure;
use crate::limits::Limits;
use crate::loaded::{Loaded, load, load_between};
use crate::terminal::{colours, print, print_error};

/// Compile a chain for a switch, a card or the kernel
///
/// A device in front of the cores decides which traffic class a packet belongs to, and does all that the
/// chain does with it where it can. What it cannot do is handed to a core, with a tag that says where to go
/// on: an 802.1ad tag whose VLAN ID numbers the place. Of each class one of these is told:
///
///   done there     the device does all of it
///   decided there  the device finds the class, a core acts without deciding again
///   stays          a core decides, for the reason shown
///
/// The artefact is read back and proven, with what cores go on with, to do what the chain does.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Compile {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    #[command(flatten)]
    device: Device,
    /// Write the artefact to a folder; with several targets, a folder in it for each
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Count where the packets of a capture are taken care of; WIRE is the device or file that they come from
    #[arg(long, value_name = "[WIRE=]FILE.pcap")]
    traffic: Vec<String>,
    /// Show which of the device's tables or stages holds which table, and why no earlier one, instead of classes
    #[arg(long)]
    stages: bool,
    /// Also write an artefact whose proof was given up
    #[arg(long)]
    unproven: bool,
    /// Number of classes shown per entry; 0 for all
    #[arg(long, value_name = "N", default_value_t = 12)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Which device, and what it may rely on.
#[derive(Args, Debug, Default)]
pub(crate) struct Device {
    /// What the device takes; several are compiled one after the other
    #[arg(long, value_name = "TARGET", value_delimiter = ',', value_parser = targets())]
    target: Vec<String>,
    /// The architecture of a P4 switch; without, that of the device, or v1model
    #[arg(long, value_name = "ARCH", value_parser = architectures(), requires = "target")]
    arch: Option<String>,
    /// What frames are known to be where they come in, so that the device need not test it
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = trusts())]
    trust: Vec<String>,
    /// What device it is: what does not fit there is left to cores. `tofino-1`, `of-dpa`, `noviflow-1132`, `hp-5130`,
    /// `ovs`, `netronome-agilio-cx`, `linux`, or a file
    #[arg(long, value_name = "DEVICE|FILE.yaml")]
    device: Option<String>,
    /// The rack: the switch that the chain's wires come to is the device, its ports have the numbers and the
    /// trust that stand there
    #[arg(long, value_name = "FILE.yaml", conflicts_with = "trust")]
    topology: Option<String>,
}

/// The names of targets.
pub(crate) fn targets() -> PossibleValuesParser {
    PossibleValuesParser::new(codegen::names())
}

fn architectures() -> PossibleValuesParser {
    PossibleValuesParser::new(codegen::architectures())
}

fn trusts() -> PossibleValuesParser {
    PossibleValuesParser::new(Trust::ALL.map(|(name, _)| name))
}

/// Reads what a device has room for: one that is known by name, or a file.
fn hardware(name: &str, limits: &Limits) -> Result<Hardware, Failure> {
    if !name.ends_with(".yaml") && !name.ends_with(".yml") {
        return Hardware::known(name).map_err(Into::into);
    }
    let mut sources = Sources::new();
    let file = limits.disk().configuration(&mut sources, name)?;
    let text = Arc::clone(sources.text(file));
    Hardware::parse(file, &text).map_err(|found| Failure::of(found, sources))
}

/// A target, and where its device stands.
pub(crate) struct Sited {
    pub(crate) target: &'static dyn Target,
    pub(crate) site: Site,
}

/// A rack whose switch a chain is compiled for.
pub(crate) struct Rack {
    pub(crate) topology: Topology,
    /// The name of the switch.
    pub(crate) switch: String,
    pub(crate) sited: Sited,
}

impl Rack {
    /// That of a topology, and the chain between its wires.
    pub(crate) fn load(
        path: &str,
        limits: &Limits,
        variables: &[String],
        file: &str,
    ) -> Result<(Loaded, Self), Failure> {
        let topology = topology(path, limits)?;
        let loaded = load_between(limits, variables, file, topology.wires.keys())?;
        let of = Site::of(&topology, &loaded.chain.graph, &loaded.wires());
        let (switch, site) = of.map_err(|why| format!("{path}: {why}"))?;
        let switch = switch.to_string();
        let of = &topology.switches[&switch];
        let target = target_for(&of.target, of.arch.as_deref(), of.device.as_deref())
            .map_err(|why| format!("{path}: '{switch}': {why}"))?;
        Ok((loaded, Self { sited: Sited { target, site }, topology, switch }))
    }
}

impl Device {
    /// A chain, and the targets that were asked for, or that of the topology's switch.
    pub(crate) fn sites(
        &self,
        limits: &Limits,
        variables: &[String],
        file: &str,
    ) -> Result<(Loaded, Vec<Sited>), Failure> {
        let of_name =
            |name: &String| target_for(name, self.arch.as_deref(), self.device.as_deref());
        let mut targets = self.target.iter().map(of_name).collect::<Result<Vec<_>, _>>()?;
        let (loaded, mut site) = match &self.topology {
            None => {
                let loaded = load(limits, variables, file)?;
                let is_named = |name: &str| self.trust.iter().any(|trust| trust == name);
                let trust = Trust::ALL.iter().filter(|(name, _)| is_named(name)).map(|of| of.1);
                let site = Site::numbered(&loaded.wires(), &trust.collect::<Vec<_>>());
                (loaded, site)
            }
            Some(path) => {
                let (loaded, Rack { sited, .. }) = Rack::load(path, limits, variables, file)?;
                if targets.is_empty() {
                    targets.push(sited.target);
                }
                (loaded, sited.site)
            }
        };
        if let Some(device) = &self.device {
            site.hardware = Some(hardware(device, limits)?);
        }
        if targets.is_empty() {
            return Err("--target or --topology names the device".to_string().into());
        }
        let of = |target| Sited { target, site: site.clone() };
        Ok((loaded, targets.into_iter().map(of).collect()))
    }
}

/// Reads a topology.
pub(crate) fn topology(path: &str, limits: &Limits) -> Result<Topology, Failure> {
    let mut sources = Sources::new();
    let file = limits.disk().configuration(&mut sources, path)?;
    let text = Arc::clone(sources.text(file));
    let (targets, archs) = (codegen::names(), codegen::architectures());
    let trust = Trust::ALL.map(|(name, _)| name);
    let devices: Vec<&str> = Hardware::names().collect();
    let vocabulary =
        Vocabulary { targets: &targets, archs: &archs, devices: &devices, trust: &trust };
    Topology::parse(file, &text, vocabulary).map_err(|found| Failure::of(found, sources))
}

/// Words for an element or its rule, with file and line.
pub(crate) fn origin<'a>(
    chain: &'a Chain,
    sources: &'a Sources,
) -> impl Fn(NodeId, Option<Span>) -> String + 'a {
    |node, span| {
        let of = &chain.graph.nodes[node];
        format!("{} ({})", of.name, sources.landmark(span.unwrap_or(of.span)))
    }
}

impl Sited {
    /// Compiles a chain; with files, these are read instead of what would be emitted.
    pub(crate) fn compile(
        &self,
        loaded: &Loaded,
        files: Option<Vec<File>>,
    ) -> Result<Compiled, Failure> {
        let Self { target, site } = self;
        let Loaded { sources, chain, models, .. } = loaded;
        let origin = origin(chain, sources);
        partition::compile(&chain.graph, models, &loaded.wires(), *target, site, &origin, files)
            .map_err(|why| format!("{}: {why}", target.label()).into())
    }
}

impl Sited {
    /// The same place, with room for whatever is put there.
    fn roomy(&self) -> Self {
        Self { target: self.target, site: Site { hardware: None, ..self.site.clone() } }
    }

    /// Which of a device's tables or stages hold what it is given: for people, for programs, and whether all fits.
    fn staged(&self, compiled: &Compiled, paint: Paint) -> Result<(String, Value, bool), Failure> {
        let Self { target, site } = self;
        let name = target.label();
        let Some(tables) = &compiled.tables else {
            return Err(format!("what {name} is given has no tables").into());
        };
        let hardware = match (&site.hardware, target.hardware()) {
            (Some(hardware), _) => hardware.clone(),
            (None, Some(usual)) => Hardware::known(usual)?,
            (None, None) => {
                let known = Hardware::names().collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "--device names what has room for {name}'s tables: {known}, or a file"
                )
                .into());
            }
        };
        let fit = fit(&tables.pipeline, &hardware);
        let staged =
            Staged { target: name, pipeline: &tables.pipeline, hardware: &hardware, fit: &fit };
        Ok((staged.text(paint), staged.to_json(), fit.misfit.is_none()))
    }
}

/// A chain on the cores behind a switch.
pub(crate) struct Behind {
    /// The chain between the wires.
    pub(crate) loaded: Loaded,
    /// The switch.
    pub(crate) rack: Rack,
    /// How it is divided between them.
    pub(crate) compiled: Compiled,
    /// Its wires, as the server's interface brings them.
    pub(crate) wires: Vec<(String, Uplink)>,
    /// Which of the servers behind the switch it is.
    pub(crate) server: usize,
}

/// Which of the servers behind a switch is meant: the only one, or that of a name.
fn server(path: &str, site: &Site, name: Option<&str>) -> Result<usize, Failure> {
    let names: Vec<&str> = site.servers.iter().map(|of| of.port.device.as_str()).collect();
    let found = match (name, &names[..]) {
        (None, [_]) => Some(0),
        (None, _) => None,
        (Some(name), names) => names.iter().position(|of| *of == name),
    };
    let all = names.join(", ");
    let which = name.map_or(String::new(), |name| format!("'{name}' is none of them: "));
    let why = || format!("{path}: {which}--server names the server that this is: {all}");
    Ok(found.ok_or_else(why)?)
}

/// Divides a chain between the switch of a topology and the cores of one of its servers.
pub(crate) fn behind(
    path: &str,
    limits: &Limits,
    variables: &[String],
    file: &str,
    name: Option<&str>,
) -> Result<Behind, Failure> {
    let (loaded, rack) = Rack::load(path, limits, variables, file)?;
    let sited = &rack.sited;
    let server = server(path, &sited.site, name)?;
    let compiled = sited.compile(&loaded, None)?;
    if let Some(part) = compiled.parts.iter().find(|part| !part.proof.holds()) {
        return Err(format!(
            "what {} is given for frames from {} is not proven to be what the chain does: `catena verify --topology` \
             says more",
            sited.target.label(),
            part.wires.join(", ")
        )
        .into());
    }
    let name = sited.site.servers[server].port.port.clone();
    let interface = InterfaceSpec { name, mode: None, batch: None, shared: false };
    let all = Arc::new(Wires::new(&device_wires(&sited.site, &compiled)));
    let uplink = |wire: &String| {
        let (interface, wires) = (interface.clone(), Arc::clone(&all));
        (wire.clone(), Uplink { interface, wires, wire: wire.clone() })
    };
    let wires = sited.site.ports.keys().map(uplink).collect();
    Ok(Behind { loaded, rack, compiled, wires, server })
}

/// The wires at a device's ports, with the tags of frames that it hands to cores.
pub(crate) fn device_wires(site: &Site, compiled: &Compiled) -> Vec<Wire> {
    let wire = |(wire, port): (&String, &SitePort)| {
        // Where several wires lead to one entry, the first stands for all.
        let part = compiled.parts.iter().find(|part| part.wires.first() == Some(wire));
        let tags = part.iter().flat_map(|part| part.offload.handoffs.keys()).map(|to| to.0);
        let port = u16::try_from(port.number).unwrap_or(0);
        Wire { name: wire.clone(), port, tags: tags.collect() }
    };
    site.ports.iter().map(wire).collect()
}

/// Counts where packets of captures are taken care of, by part.
pub(crate) fn shares(
    captures: &[String],
    compiled: &Compiled,
) -> Result<Vec<Option<Share>>, String> {
    let parts = &compiled.parts;
    let mut shares: Vec<Option<Share>> = vec![None; parts.len()];
    let mut pool = Pool::new();
    for capture in captures {
        let (wire, file) = match capture.split_once('=') {
            Some((wire, file)) => (Some(wire), file),
            None => (None, capture.as_str()),
        };
        let comes = |part: &partition::Divided| match wire {
            Some(wire) => part.wires.iter().any(|name| name == wire),
            None => true,
        };
        let all: Vec<usize> = (0..parts.len()).filter(|&at| comes(&parts[at])).collect();
        let [at] = all[..] else {
            let names: Vec<&str> =
                parts.iter().flat_map(|p| &p.wires).map(String::as_str).collect();
            let names = names.join(", ");
            return Err(match wire {
                Some(wire) => format!("no frames come in from '{wire}', only from {names}"),
                None => format!("--traffic needs WIRE=: frames come in from {names}"),
            });
        };
        let share = shares[at].get_or_insert_default();
        count(&parts[at], Path::new(file), &mut pool, share)
            .map_err(|why| format!("{file}: {why}"))?;
    }
    Ok(shares)
}

fn count(
    part: &partition::Divided,
    file: &Path,
    pool: &mut Pool,
    share: &mut Share,
) -> Result<(), String> {
    let read = fs::File::open(file).map_err(|why| why.to_string())?;
    let mut reader = Reader::open(io::BufReader::new(read)).map_err(|why| why.to_string())?;
    while let Some(record) = reader.next().map_err(|why| why.to_string())? {
        if record.header.link_type != LinkType::ETHERNET {
            return Err("holds no Ethernet frames".into());
        }
        let packet = pool.packet(record.data);
        part.count(&packet, pool, share).map_err(|why| format!("{why:?}"))?;
        pool.recycle(packet);
    }
    Ok(())
}

/// Writes an artefact.
fn write(folder: &Path, files: &[File]) -> Result<(), String> {
    let failed = |path: &Path, why: io::Error| format!("{}: {why}", path.display());
    fs::create_dir_all(folder).map_err(|why| failed(folder, why))?;
    for file in files {
        let path = folder.join(&file.name);
        guarded_path::write(&path, &file.contents).map_err(|why| failed(&path, why))?;
    }
    Ok(())
}

/// Runs the command.
pub(crate) fn main(args: &Compile) -> Result<ExitCode, Failure> {
    let paint = Paint(colours(&stdout()));
    let (mut documents, mut status) = (Vec::<Value>::new(), ExitCode::SUCCESS);
    let (loaded, sites) = args.device.sites(&args.limits, &args.variables, &args.file)?;
    for (number, sited) in sites.iter().enumerate() {
        let target = sited.target;
        let compiled = match args.stages {
            // Whether all of it fits is the question.
            true => sited.roomy().compile(&loaded, None)?,
            false => sited.compile(&loaded, None)?,
        };
        let shares = shares(&args.traffic, &compiled)?;
        let offloaded = Offloaded {
            chain: &loaded.chain,
            sources: &loaded.sources,
            models: &loaded.models,
            target: target.label(),
            compiled: &compiled,
            shares: &shares,
        };
        if args.stages {
            let between = if number > 0 { "\n" } else { "" };
            let (text, document, fits) = sited.staged(&compiled, paint)?;
            if args.json {
                documents.push(document);
            } else {
                print(&format!("{between}{text}"));
            }
            if !fits {
                status = ExitCode::FAILURE;
            }
        } else if args.json {
            documents.push(offloaded.to_json());
        } else {
            let between = if number > 0 { "\n" } else { "" };
            print(&format!("{between}{}", offloaded.text(args.limit, paint)));
        }
        let verdicts = || compiled.parts.iter().map(|part| &part.proof.together.verdict);
        if verdicts().any(|verdict| matches!(verdict, Verdict::Different(_))) {
            print_error(&format!(
                "error: what {} would be given does not do what the chain does; nothing is written. \
                 `catena verify` with the same arguments shows a packet\n",
                target.label()
            ));
            status = ExitCode::FAILURE;
        } else if !args.unproven
            && verdicts().any(|verdict| matches!(verdict, Verdict::Unproven(_)))
        {
            print_error(&format!(
                "error: what {} would be given is not proven to do what the chain does; it is written only with \
                 --unproven\n",
                target.label()
            ));
            status = ExitCode::FAILURE;
        } else if let Some(folder) = &args.output {
            let several = sites.len() > 1;
            let folder = if several { folder.join(target.name()) } else { folder.clone() };
            write(&folder, &compiled.files)?;
        }
    }
    if args.json {
        let all = match documents.len() {
            1 => documents.remove(0),
            _ => Value::Array(documents),
        };
        print(&format!("{all:#}\n"));
    }
    Ok(status)
}
