//! A device in front of a run: whether it holds the chain that runs, and what it counts, which the run counts as its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use compiler::partition::{Compiled, Counted, Credit, Lessor, Site};
use dataplane::Elsewhere;
use engine::control::Controlled;
use ir::program::StepId;
use ir::topology::Address;
use ir::{Graph, Port};

use super::super::compile::{Behind, Rack, behind};
use super::division::Division;
use super::leases::Leasing;
use super::{Installation, chain, openflow, xdp};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::log::Log;

/// How often leases of flows are renewed: a flow's use is known by then.
const OFTEN: Duration = Duration::from_millis(250);
/// How often that is before devices are asked what they counted. Open vSwitch counts anew about as often.
const ROUNDS: u32 = 4;

/// What a device holds of what it shall have.
pub(super) enum Holds {
    /// All of it, in words.
    All(String),
    /// Nothing.
    Nothing,
    /// Something else: in what it differs.
    Other(String),
    /// It does not say.
    Unknown(String),
}

/// By part and exit: what a device counted.
pub(super) type Totals = BTreeMap<(usize, StepId), Counted>;

enum Device {
    Switch(openflow::Ahead),
    Kernel(xdp::Ahead),
}

impl Device {
    /// What it counted so far, and whether it begins anew now.
    fn counted(&mut self) -> Result<(Totals, bool), String> {
        match self {
            Device::Switch(switch) => Ok((switch.counted()?, false)),
            Device::Kernel(interfaces) => interfaces.counted(),
        }
    }
}

/// Of what it comes which part of a chain a device has.
#[derive(Clone)]
pub(crate) struct Source {
    file: String,
    variables: Vec<String>,
    limits: Limits,
    topology: String,
    /// When the topology was written.
    modified: Option<SystemTime>,
    /// The server that runs.
    server: Option<String>,
    log: (Log, bool),
}

impl Source {
    pub(crate) fn of(
        (file, variables, limits): (&str, &[String], Limits),
        (topology, server): (&str, Option<&str>),
        log: (Log, bool),
    ) -> Self {
        Self {
            file: file.into(),
            variables: variables.to_vec(),
            limits,
            topology: topology.into(),
            modified: modified(topology),
            server: server.map(Into::into),
            log,
        }
    }

    /// The same of another chain's file.
    pub(super) fn with_file(&self, file: &str) -> Self {
        Self { file: file.into(), ..self.clone() }
    }

    /// The chain, divided between the device and cores.
    pub(crate) fn behind(&self) -> Result<Behind, Failure> {
        let Self { file, variables, limits, topology, server, .. } = self;
        behind(topology, limits, variables, file, server.as_deref())
    }
}

/// When a file was written.
fn modified(path: &str) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|of| of.modified()).ok()
}

/// How often it is tried to go by a topology that changed: a device may not have yet what that says.
const TRIES: u32 = 5;

/// A device in front of a run.
pub(crate) struct Ahead {
    source: Source,
    division: Arc<Division>,
    /// How often a topology that changed is still tried.
    tries: u32,
    /// Its name, and where it is reached.
    about: String,
    device: Device,
    compiled: Compiled,
    graph: Graph,
    /// The server that runs, of those behind it: it counts what no other has.
    server: usize,
    site: Site,
    /// What it counted when it was asked last; none if it was not yet.
    before: Option<Totals>,
}

impl Ahead {
    /// The device that a topology names, if it says where that is reached.
    ///
    /// # Errors
    /// If it holds something else than the chain was compiled to: its tags would be taken for others. Not if the topology says
    /// which tags mean what: then they mean the same whichever version it holds.
    pub(crate) fn find(
        source: &Source,
        behind: Behind,
        division: &Arc<Division>,
    ) -> Result<Option<Self>, Failure> {
        let Behind { loaded, rack, compiled, server, .. } = behind;
        let Source { file, topology: path, log: (log, is_quiet), .. } = source;
        let Rack { topology, switch, .. } = &rack;
        if topology.switches[switch].control.is_none() {
            return Ok(None);
        }
        let address = super::address(path, &rack)?;
        let about = format!("{switch} ({address})");
        let of = Installation {
            path,
            name: chain(file),
            loaded: &loaded,
            rack: &rack,
            compiled: &compiled,
        };
        let mut device = match address {
            Address::Xdp(site) => Device::Kernel(of.ahead_in_kernel(site)?),
            address => Device::Switch(of.ahead(address)?),
        };
        let holds = match &mut device {
            Device::Switch(switch) => switch.holds(),
            Device::Kernel(interfaces) => interfaces.holds(),
        };
        let install = format!("`catena offload {file} --topology {path} --install`");
        match holds {
            Holds::All(_) if *is_quiet => {}
            Holds::All(what) => log.info(&format!("offload: {about} holds this chain: {what}")),
            Holds::Nothing => log.warn(&format!(
                "offload: {about} holds nothing of this chain, so no frame comes with a tag: {install} gives it what it needs"
            )),
            Holds::Unknown(why) => log.warn(&format!(
                "offload: {about}: {why}\nwhat it holds is not known, and its packets are not counted until it is reached"
            )),
            Holds::Other(_) if !topology.tags.is_empty() => log.info(&format!(
                "offload: {about} holds another version of this chain, whose tags mean the same"
            )),
            Holds::Other(why) => {
                return Err(format!(
                    "{path}: {about} holds another version of this chain, whose tags mean something else: {why}\n{install} \
                     gives it this one"
                )
                .into());
            }
        }
        // What was there when the run began is not the run's.
        let before = device.counted().ok();
        let before = before.map(|(now, are_new)| if are_new { Totals::new() } else { now });
        let (source, division) = (source.clone(), Arc::clone(division));
        let (graph, site) = (loaded.chain.graph, rack.sited.site);
        let tries = TRIES;
        Ok(Some(Self {
            source,
            division,
            tries,
            about,
            device,
            compiled,
            graph,
            server,
            site,
            before,
        }))
    }

    /// Goes by its topology and chain as they are now, if what runs serves these: another chain may have been swapped in, and
    /// other servers may run the rest.
    fn look_again(&mut self) {
        let modified = modified(&self.source.topology);
        if modified == self.source.modified || matches!(self.device, Device::Kernel(_)) {
            return;
        }
        let source = Source { modified, ..self.source.clone() };
        let found = source.behind().and_then(|behind| match self.division.serves(&behind) {
            true => Self::find(&source, behind, &self.division),
            false => Ok(None),
        });
        let why = match found {
            Ok(Some(other)) => return *self = other,
            Ok(None) => "it has something else of what runs here".into(),
            Err(why) => {
                self.tries -= 1;
                if self.tries > 0 {
                    return;
                }
                why.text(false)
            }
        };
        let Source { topology, log: (log, _), .. } = &source;
        log.warn(&format!("offload: {topology} changed, and is not gone by: {}", why.trim_end()));
        (self.source, self.tries) = (source, TRIES);
    }

    /// What it counted since it was asked last.
    fn since(&mut self) -> Result<Vec<Elsewhere>, String> {
        let (now, are_new) = self.device.counted()?;
        let before = self.before.take();
        let mut all = Vec::new();
        for ((part, step), now) in &now {
            // What it counted before it was reached is not known.
            let Some(before) = &before else { break };
            let Some(part_of) = self.compiled.parts.get(*part) else { continue };
            let none = Counted::default();
            let was = before.get(&(*part, *step)).filter(|was| was.packets <= now.packets);
            let counted = less(now, was.unwrap_or(&none));
            if counted.packets == 0 {
                continue;
            }
            if let Some(credit) = part_of.offload.credit(&part_of.program, *step, &counted)
                && self.is_own(&credit)
            {
                all.push(self.elsewhere(part_of.program.entry, &counted, credit));
            }
        }
        self.before = Some(if are_new { Totals::new() } else { now });
        Ok(all)
    }

    /// Whether this server counts it: one that runs some of the elements that packets passed, or the first.
    fn is_own(&self, credit: &Credit) -> bool {
        let passed = credit.visited.iter().map(|port| port.node);
        let server = self.site.server(passed, std::iter::empty());
        server.unwrap_or_else(|[first, _]| first) == self.server
    }

    /// What elements count for packets that came to an entry.
    fn elsewhere(&self, entry: Port, counted: &Counted, credit: Credit) -> Elsewhere {
        let graph = &self.graph;
        let name = |node: usize| graph.nodes[node].name.clone();
        // Where several wires lead to an entry, the first stands for all.
        let source = graph.predecessors(entry).next().map(|from| from.node);
        let left = credit.left.map(|(port, bytes)| {
            // Behind a queue.
            let next = graph.successors(Port { node: port.node, port: 0 }).next();
            (port, next, bytes.unwrap_or(0))
        });
        let path = source.map(|node| Port { node, port: 0 }).into_iter();
        let path = path.chain(credit.visited).chain(
            left.iter().flat_map(|(port, next, _)| [Some(*port), *next].into_iter().flatten()),
        );
        let came = source.map(|node| (name(node), counted.bytes));
        let went = left.map(|(port, next, bytes)| (name(next.unwrap_or(port).node), bytes));
        let known = |bytes: Option<u64>| bytes.unwrap_or(0);
        Elsewhere {
            packets: credit.packets,
            counters: credit
                .counters
                .into_iter()
                .map(|(owner, state, bytes)| (owner, state, known(bytes)))
                .collect(),
            noted: credit.noted.into_iter().map(|(node, reason)| (name(node), reason)).collect(),
            dropped: credit.dropped.map(|(node, why, bytes)| (name(node), why, known(bytes))),
            passed: path.map(|port| (name(port.node), port.port)).collect(),
            traffic: came.into_iter().chain(went).collect(),
        }
    }

    /// Has elements count what the device counted.
    fn tell(&mut self, run: &Controlled, is_told: &mut bool, log: Log) {
        let mut told = self.since().and_then(|all| {
            let credit = move |router: &mut dataplane::Router| {
                all.iter().for_each(|elsewhere| router.credit(elsewhere));
            };
            run.instance.fleet().call(0, credit).ok_or_else(|| "the worker is dead".into())
        });
        if let Err(why) = &mut told
            && !*is_told
        {
            log.warn(&format!("offload: {} is not counted: {why}", self.about));
        }
        if told.is_ok() && *is_told {
            log.info(&format!("offload: {} is counted again", self.about));
        }
        *is_told = told.is_err();
    }

    /// Renews leases of the elements' flows.
    fn lease(&self, leasing: &mut Leasing, run: &Controlled, log: Log) {
        let Device::Kernel(interfaces) = &self.device else { return };
        let maps = |lessors: &[Lessor]| interfaces.lease_maps(lessors);
        leasing.renew(run, interfaces.programs(), maps, (&self.about, log));
    }

    /// Counts, and gives leases, from now on until that is ended.
    pub(crate) fn count(mut self, run: Arc<Controlled>, log: Log) -> std::io::Result<Counting> {
        let (stop, stopped) = sync_channel(0);
        let work = move || {
            let (mut is_told, mut leasing) = (false, Leasing::new(&self.compiled));
            let (mut is_last, mut round) = (false, 0_u32);
            loop {
                let is_time = round.is_multiple_of(ROUNDS);
                if !is_last {
                    self.lease(&mut leasing, &run, log);
                }
                if is_last || is_time {
                    self.tell(&run, &mut is_told, log);
                }
                if is_time && !is_last {
                    self.look_again();
                }
                round = round.wrapping_add(1);
                match stopped.recv_timeout(OFTEN) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(last) if last => {
                        is_last = true;
                        leasing.end(&run);
                    }
                    Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name("offload".into()).spawn(work)?;
        Ok(Counting { stop, thread })
    }
}

/// What is counted more than before.
fn less(now: &Counted, was: &Counted) -> Counted {
    let sums = now.sums.iter().enumerate();
    Counted {
        packets: now.packets.saturating_sub(was.packets),
        bytes: now.bytes.saturating_sub(was.bytes),
        sums: sums
            .map(|(at, sum)| sum.saturating_sub(was.sums.get(at).copied().unwrap_or(0)))
            .collect(),
    }
}

/// A device is asked again and again what it counted.
pub(crate) struct Counting {
    stop: SyncSender<bool>,
    thread: JoinHandle<()>,
}

impl Counting {
    /// Asks a last time.
    pub(crate) fn end(self) {
        // The first is taken when the device is asked again, the second when that is done.
        if self.stop.send(true).is_ok() {
            let _ = self.stop.send(false);
        }
        let _ = self.thread.join();
    }
}
