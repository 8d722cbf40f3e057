//! `catena offload`: what the devices of a rack do of a chain, and installing that on them.

mod ahead;
mod division;
mod leases;
mod openflow;
mod xdp;

use std::io::stdout;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use codegen::Target;
use compiler::partition::Compiled;
use compiler::prove::Verdict;
use dataplane::guarded_path;
use ir::topology::Address;
use serde_json::{Value, json};
use view::offload::Offloaded;
use view::paint::Paint;
use view::svg::Theme;

pub(crate) use ahead::{Ahead, Counting, Source};
pub(crate) use division::Division;

use super::compile::{Rack, shares, topology};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::loaded::Loaded;
use crate::terminal::{colours, print};
use crate::theme;

/// Entries that are shown one by one, unless all are asked for.
const SHOWN: usize = 12;

/// Show what a rack's devices do of a chain, or install it on them
///
/// Without an option, the split is shown: what the switch does of each traffic class, what frames carry
/// between switch and cores, and what is left to cores. Nothing is touched.
///
/// --install gives a switch its flow entries in one bundle: all of them, or nothing if it refuses one.
/// Of what it has already, only what differs is changed. Entries of others are never touched. Interfaces of
/// this host (`control: xdp`) are given programs for XDP, which stay until --remove; if one is refused, all
/// have what they had.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Offload {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// The rack; `control:` of its switch says where that is reached
    #[arg(long, value_name = "FILE.yaml")]
    topology: String,
    #[command(flatten)]
    action: Action,
    /// Count where the packets of a capture are taken care of; WIRE is the device or file that they come from
    #[arg(long, value_name = "[WIRE=]FILE.pcap")]
    traffic: Vec<String>,
    /// Also install what is given up to be proven
    #[arg(long, requires = "install")]
    unproven: bool,
    /// Number of classes, tags and entries shown; 0 for all
    #[arg(long, value_name = "N", default_value_t = SHOWN)]
    limit: usize,
    /// Draw the split: what the device does, what frames carry, what is left to cores
    #[arg(long, value_name = "FILE.svg", conflicts_with = "Action")]
    svg: Option<PathBuf>,
    /// Colours of the picture; `auto` follows the viewer's preference
    #[arg(long, default_value = "auto", value_parser = theme::parser(), requires = "svg")]
    theme: Theme,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// What is done with the device.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct Action {
    /// Give the device what it lacks, and take away what it has too much
    #[arg(long)]
    install: bool,
    /// Show what --install would change; status 1 if that is anything
    #[arg(long)]
    diff: bool,
    /// Show what is installed, how many packets of each class the device took, and what was changed by others; status 1 if
    /// the device has not what it should have
    #[arg(long)]
    status: bool,
    /// Take away what the chain has there, and nothing else
    #[arg(long)]
    remove: bool,
}

/// What a chain on a device is known by: the name of its file, without folder and ending.
fn chain(file: &str) -> String {
    let name = Path::new(file).file_stem().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| file.into())
}

/// A chain that was compiled for the switch of a rack.
struct Installation<'a> {
    /// The topology's file.
    path: &'a str,
    /// What it is known by.
    name: String,
    loaded: &'a Loaded,
    rack: &'a Rack,
    compiled: &'a Compiled,
}

/// The same, and what is to be done with it.
struct Split<'a> {
    args: &'a Offload,
    of: Installation<'a>,
}

impl<'a> Deref for Split<'a> {
    type Target = Installation<'a>;

    fn deref(&self) -> &Installation<'a> {
        &self.of
    }
}

/// Runs the command.
pub(crate) fn main(args: &Offload) -> Result<ExitCode, Failure> {
    if args.action.remove {
        // A chain that can no longer be compiled can be removed.
        return remove(args);
    }
    let (loaded, rack) = Rack::load(&args.topology, &args.limits, &args.variables, &args.file)?;
    let compiled = rack.sited.compile(&loaded, None)?;
    args.run(&loaded, &rack, &compiled)
}

impl Offload {
    /// With which a chain is installed.
    pub(crate) fn installing(file: &str, topology: &str, limits: Limits) -> Self {
        let action = Action { install: true, diff: false, status: false, remove: false };
        Self {
            file: file.into(),
            variables: Vec::new(),
            topology: topology.into(),
            action,
            traffic: Vec::new(),
            unproven: false,
            limit: SHOWN,
            svg: None,
            theme: Theme::Auto,
            json: false,
            limits,
        }
    }

    /// With which a chain is removed.
    pub(crate) fn removing(file: &str, topology: &str, limits: Limits) -> Self {
        let action = Action { install: false, diff: false, status: false, remove: true };
        Self { action, ..Self::installing(file, topology, limits) }
    }

    /// Does with a chain that was compiled what is asked for.
    pub(crate) fn run(
        &self,
        loaded: &Loaded,
        rack: &Rack,
        compiled: &Compiled,
    ) -> Result<ExitCode, Failure> {
        let (path, name) = (&self.topology, chain(&self.file));
        Split { args: self, of: Installation { path, name, loaded, rack, compiled } }.act()
    }
}

impl Split<'_> {
    fn act(&self) -> Result<ExitCode, Failure> {
        let (split, args, rack) = (self, self.args, self.rack);
        let Action { install, diff, status, .. } = &args.action;
        if !(*install || *diff || *status) {
            return split.show();
        }
        if *install {
            split.proven()?;
        }
        match address(&args.topology, rack)? {
            Address::Xdp(site) => split.xdp(site),
            _ if *install => split.install(),
            _ if *diff => split.diff(),
            _ => split.status(),
        }
    }
}

/// Where the switch of a rack is reached, if what it takes is installed there.
fn address<'a>(path: &str, rack: &'a Rack) -> Result<&'a Address, Failure> {
    let Rack { topology, switch, sited } = rack;
    let target = sited.target.name();
    let is_xdp = target == codegen::ebpf::EBPF.name();
    let mend = match is_xdp {
        true => "`control: xdp`",
        false => "`control: unix:/var/run/openvswitch/BRIDGE.mgmt` or `control: tcp:HOST:6653`",
    };
    match &topology.switches[switch].control {
        Some(address) if matches!(address, Address::Xdp(_)) == is_xdp => Ok(address),
        Some(address) => Err(format!(
            "{path}: '{switch}' takes {target}, which `control: {address}` does not lead to: it needs {mend}"
        )
        .into()),
        None => Err(format!("{path}: '{switch}' does not say where it is reached: add {mend} to it").into()),
    }
}

/// `--remove`.
fn remove(args: &Offload) -> Result<ExitCode, Failure> {
    let path = &args.topology;
    let topology = topology(path, &args.limits)?;
    let mut documents = Vec::new();
    for (name, switch) in &topology.switches {
        let Some(address) = &switch.control else { continue };
        let removed = match address {
            Address::Xdp(site) => xdp::remove(args, site, switch).map_err(|why| why.to_string()),
            _ => openflow::remove(args, address).map_err(|why| why.to_string()),
        };
        let (said, document) =
            removed.map_err(|why| format!("{path}: '{name}' at {address}: {why}"))?;
        match args.json {
            true => documents.push(json!({ "switch": name, "removed": document })),
            false => print(&format!("{name} ({address}): {said}\n")),
        }
    }
    if args.json {
        print(&format!("{:#}\n", Value::Array(documents)));
    } else if topology.switches.values().all(|switch| switch.control.is_none()) {
        return Err(
            format!("{path}: no switch states where it is reached: add `control:` to it").into()
        );
    }
    Ok(ExitCode::SUCCESS)
}

impl Split<'_> {
    fn paint(&self) -> Paint {
        Paint(colours(&stdout()))
    }

    fn server(&self) -> String {
        self.rack.sited.site.server_names()
    }

    /// Without an option.
    fn show(&self) -> Result<ExitCode, Failure> {
        let shares = shares(&self.args.traffic, self.compiled)?;
        let offloaded = self.offloaded(&shares);
        if let Some(path) = &self.args.svg {
            let drawn = offloaded.svg(&self.server(), self.args.theme);
            guarded_path::write(path, drawn).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        match self.args.json {
            true => {
                let mut json = offloaded.to_json();
                json["switch"] = self.rack.switch.clone().into();
                json["server"] = self.server().into();
                json["tags"] = offloaded.tags_json();
                print(&format!("{json:#}\n"));
            }
            false => {
                let (limit, paint) = (self.args.limit, self.paint());
                let tags = offloaded.tags(&self.server(), limit, paint);
                print(&format!("{}\n{tags}", offloaded.text(limit, paint)));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn offloaded<'a>(&'a self, shares: &'a [Option<compiler::partition::Share>]) -> Offloaded<'a> {
        let Loaded { sources, chain, models, .. } = self.loaded;
        let target = &self.rack.switch;
        Offloaded { chain, sources, models, target, compiled: self.compiled, shares }
    }

    /// That the device and cores together do what the chain does.
    fn proven(&self) -> Result<(), Failure> {
        for part in &self.compiled.parts {
            match &part.proof.together.verdict {
                Verdict::Equal => {}
                Verdict::Unproven(_) if self.args.unproven => {}
                Verdict::Unproven(why) => {
                    return Err(format!(
                        "what the device would be given is not proven to do what the chain does ({why}); it is installed only \
                         with --unproven"
                    )
                    .into());
                }
                Verdict::Different(_) => {
                    return Err(
                        "what the device would be given does not do what the chain does; nothing is installed. `catena verify \
                         --topology` shows a packet"
                            .to_string()
                            .into(),
                    );
                }
            }
        }
        Ok(())
    }

    fn some<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        match self.args.limit {
            0 => all,
            limit => &all[..limit.min(all.len())],
        }
    }
}

fn status(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
