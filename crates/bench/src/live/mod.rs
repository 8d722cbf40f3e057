//! A chain over interfaces, and other systems in its place, by turns: the tester sends on one side, and receives on the
//! other.
//!
//! Only packets that the system forwards when nearly nothing comes are expected when more comes: what a rule drops is not
//! lost. Packets are known by their [stamp](crate::stamp), where they have room for one.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use dataplane::clock::Time;
use dataplane::io::Choice;
use elements::device::DeviceRequest;
use engine::session::Path as Execution;

use crate::arrivals::Arrivals;
use crate::machine::{Environment, Meter};
use crate::measure::{Failed, Gauges, Request, Size, Subject, Traffics, mean_size, remark};
use crate::report::{AtSize, DISTURBED, Latency, PeerReport, Report, Throughput, VERSION};
use crate::search::{Range, best_of};
use crate::send::note;
use crate::statistics::{Samples, mpps};
use crate::traffic::Frames;

mod folder;
mod io_costs;
mod peer;
mod place;
mod system;
mod tester;

pub(crate) use io_costs::measure_io;
pub use peer::Peer;
use place::{Links, Netns, Port};
pub use system::Catena;
use system::{Running, Setting, System};
use tester::{Tester, Watch};

/// What lies between the tester and the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Virtual Ethernet, in network namespaces that are made for it.
    Veth,
    /// Interfaces that are there.
    Interfaces {
        /// The chain's inputs: the name that its elements have for each, if it is given, and the interface.
        inputs: Vec<(Option<String>, String)>,
        /// Its outputs.
        outputs: Vec<(Option<String>, String)>,
        /// The tester's interfaces, to send on and to receive on. Without them, the other ends of virtual Ethernet.
        tester: Option<[String; 2]>,
    },
}

/// How a chain is measured over interfaces.
#[derive(Clone, Debug)]
pub struct Live {
    /// What lies between.
    pub link: Link,
    /// How chains are run.
    pub catena: Catena,
    /// The CPUs that systems work on.
    pub cores: Vec<usize>,
    /// How the tester's frames are carried.
    pub io: Option<Choice>,
    /// A script that is run for each peer but chains, once it has started.
    pub script: Option<PathBuf>,
}

/// Rounds in which systems take turns.
const ROUNDS: usize = 3;
/// Frames that are generated for an input at the most, unless it is said: all of them are sent slowly once.
pub(crate) const FRAMES: u64 = 20_000;
/// Loads are distinguished down to this share of what the tester can send.
const LEAST: f64 = 1e-3;

/// What the chain reads and writes, and the frames for it.
struct Endpoints {
    /// The names that elements have for interfaces, and the interfaces.
    inputs: Vec<(String, String)>,
    outputs: Vec<(String, String)>,
    ports: Vec<Port>,
    frames: Vec<(String, Rc<Frames>)>,
    /// Network functions of the chain.
    length: Option<usize>,
}

/// Measures a chain over interfaces, or what lies between interfaces if there is no chain.
///
/// # Errors
/// What is wrong with the chain, its traffic or the interfaces, or that it was stopped.
pub fn measure_live(
    request: &Request<'_>,
    live: &Live,
    (time, meter): (&Arc<dyn Time>, &dyn Meter),
    environment: Environment,
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Report, Failed> {
    progress("reading the chain");
    let keep = |_: &mut _| ();
    let mut library = Traffics::new(request, &keep);
    library.by_default = FRAMES;
    let endpoints = Endpoints::find(request, live, time, &mut library)?;
    if !request.sizes.is_empty() {
        library.check_sizes()?;
    }
    let testbed = Testbed::begin((request, live), (time, meter), &endpoints, is_stopped)?;

    let system = testbed.chain(&endpoints);
    let mut peers: Vec<PeerReport> = request.peers.iter().map(PeerReport::of).collect();
    for (peer, report) in request.peers.iter().zip(&mut peers) {
        if let Peer::Chain(file) = peer {
            report.length = Subject::length_of(&request.of_chain(file));
        }
    }
    let mut tester = testbed.tester(&endpoints.frames, &endpoints)?;
    let (mut chain, mut remarks) = (Measured::default(), library.remarks());
    for round in 0..if peers.is_empty() { 1 } else { ROUNDS } {
        let of = if peers.is_empty() { String::new() } else { format!(", round {}", round + 1) };
        let mut say = |what: &str| progress(&format!("{what}{of}"));
        testbed.round(system.as_ref(), (&mut tester, &endpoints), &mut chain, &mut say)?;
        for (peer, report) in request.peers.iter().zip(&mut peers) {
            if report.failed.is_some() {
                continue;
            }
            let mut found = std::mem::take(&mut report.found);
            let mut say = |what: &str| progress(&format!("{peer}: {what}{of}"));
            let done = testbed.peer(peer, (&mut tester, &endpoints), &mut found, &mut say);
            report.found = found;
            match done {
                Ok(()) => {}
                Err(Failed::Interrupted) => return Err(Failed::Interrupted),
                Err(why) => report.failed = Some(why.to_string()),
            }
        }
    }
    chain.remarks(&mut remarks, tester.known);
    remarks.extend(shared(request.chain, &live.cores, environment.cpu));
    drop(tester);
    let mut sizes = Vec::new();
    for size in &request.sizes {
        progress(&format!("searching for the throughput with frames of {} bytes", size.name));
        sizes.push(testbed.at_size(system.as_ref(), &endpoints, size, time)?);
    }
    for report in &mut peers {
        report.complete(&chain);
    }
    let traffic = library.described();
    let mut report = Report {
        bench: VERSION,
        chain: testbed.name(),
        length: endpoints.length,
        place: testbed.place(&endpoints),
        // Of what is between, it is not known.
        cores: if request.chain.is_empty() { 0 } else { live.cores.len() },
        environment,
        seed: request.seed,
        frame_size: mean_size(&traffic),
        traffic,
        arrivals: request.arrivals.to_string(),
        cost: None,
        throughput: chain.throughput,
        latency: chain.latency,
        sizes,
        functions: Vec::new(),
        programs: Vec::new(),
        peers,
        forwarded: chain.forwarded,
        by_tester: chain.testers_limit.is_some(),
        remarks,
    };
    remark(&mut report);
    Ok(report)
}

/// What was found of a system so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Of the first round.
    pub(crate) throughput: Vec<Throughput>,
    pub(crate) latency: Vec<Latency>,
    pub(crate) forwarded: f64,
    /// What was forwarded for each goal, in each round.
    pub(crate) rates: Vec<Vec<f64>>,
    /// The load up to which the tester could test it, if the system may take more.
    pub(crate) testers_limit: Option<f64>,
    /// What the tester's interfaces reported meanwhile: that a link went down.
    pub(crate) notices: Vec<String>,
}

impl Measured {
    fn remarks(&self, remarks: &mut Vec<String>, known: f64) {
        remarks.extend(self.notices.iter().cloned());
        if let Some(limit) = self.testers_limit {
            remarks.push(format!(
                "the tester sends and receives no more than about {} Mpps here: the system may take more",
                mpps(limit)
            ));
        }
        // 18 bytes of UDP, TCP or ICMP echo payload.
        if known == 0.0 {
            remarks.push(
                "no frame has room for a stamp (18 bytes of payload): packets are only counted, and have no latency"
                    .into(),
            );
        } else if known < 1.0 {
            remarks.push(format!(
                "{:.0} % of the frames have room for a stamp (18 bytes of payload): losses and latencies are of these",
                100.0 * known
            ));
        }
    }
}

impl PeerReport {
    fn of(peer: &Peer) -> Self {
        let (version, failed) = match peer.version() {
            Ok(version) => (version, None),
            Err(why) => (None, Some(why)),
        };
        Self { failed, ..Self::new(peer.to_string(), version, peer.does().into()) }
    }

    /// Adds what it comes to beside the chain.
    fn complete(&mut self, chain: &Measured) {
        let found = std::mem::take(&mut self.found);
        let ratios = |goal: usize| -> Option<Samples> {
            let pairs: Vec<f64> = (chain.rates.iter().zip(&found.rates))
                .filter_map(|(ours, theirs)| Some(ours.get(goal)? / theirs.get(goal)?))
                .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
                .collect();
            (!pairs.is_empty()).then(|| Samples::of(pairs))
        };
        self.ratios = ["NDR", "PDR"]
            .into_iter()
            .enumerate()
            .filter_map(|(goal, name)| Some((name.to_string(), ratios(goal)?)))
            .collect();
        found.notices.iter().for_each(|text| self.note(text.clone()));
        self.by_tester = chain.testers_limit.or(found.testers_limit).is_some();
        if let Some(limit) = found.testers_limit {
            self.note(format!(
                "the tester was the limit, at about {} Mpps: it may take more",
                mpps(limit)
            ));
        }
        (self.throughput, self.latency, self.forwarded) =
            (found.throughput, found.latency, found.forwarded);
        self.note_forwarded(chain.forwarded);
    }
}

/// What a measurement works with.
struct Testbed<'a> {
    request: &'a Request<'a>,
    live: &'a Live,
    gauges: Gauges<'a>,
    links: Links,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> Testbed<'a> {
    /// Makes the links that are to be made, and has this thread be where the tester is.
    fn begin(
        (request, live): (&'a Request<'a>, &'a Live),
        (time, meter): (&'a Arc<dyn Time>, &'a dyn Meter),
        endpoints: &Endpoints,
        is_stopped: &'a dyn Fn() -> bool,
    ) -> Result<Self, Failed> {
        let links = match live.link {
            Link::Veth => Links::new(&endpoints.ports, mtu(endpoints, request), live.cores.len())
                .map_err(Failed::Message)?,
            Link::Interfaces { .. } => Links { system: Netns::default(), tester: Netns::default() },
        };
        links.tester.enter().map_err(Failed::Message)?;
        let gauges = Gauges::new(request, (&**time, meter), is_stopped);
        Ok(Self { request, live, gauges, links, is_stopped })
    }

    /// The chain, if there is one.
    fn chain<'b>(&'b self, endpoints: &'b Endpoints) -> Option<System<'b>> {
        let file = self.request.chain;
        (!file.is_empty()).then(|| self.system(file, endpoints))
    }

    fn system<'b>(&'b self, file: &'b str, endpoints: &'b Endpoints) -> System<'b> {
        System::Chain {
            file,
            catena: &self.live.catena,
            inputs: &endpoints.inputs,
            outputs: &endpoints.outputs,
            control: None,
        }
    }

    fn name(&self) -> String {
        match (&self.live.link, self.request.chain) {
            (Link::Interfaces { tester: Some([from, to]), .. }, "") => format!("{from} to {to}"),
            (_, chain) => chain.to_string(),
        }
    }

    fn place(&self, endpoints: &Endpoints) -> String {
        let cores: Vec<String> = self.live.cores.iter().map(usize::to_string).collect();
        let cpus = format!("CPU{} {}", if cores.len() > 1 { "s" } else { "" }, cores.join(","));
        let io = self.live.catena.io.as_deref().map_or_else(String::new, |io| format!(" ({io})"));
        match &self.live.link {
            Link::Veth => format!("over virtual Ethernet{io}, on {cpus}"),
            Link::Interfaces { .. } if self.request.chain.is_empty() => "what is between".into(),
            Link::Interfaces { .. } => {
                let names: Vec<&str> =
                    endpoints.ports.iter().map(|p| p.interface.as_str()).collect();
                format!("over {}{io}, on {cpus}", names.join(" and "))
            }
        }
    }

    fn tester(
        &self,
        frames: &[(String, Rc<Frames>)],
        endpoints: &Endpoints,
    ) -> Result<Tester, Failed> {
        let inlets: Vec<String> = match &self.live.link {
            Link::Interfaces { tester: Some([_, to]), .. } => vec![to.clone()],
            _ => {
                let is_output = |port: &&Port| {
                    endpoints.outputs.iter().any(|(_, interface)| *interface == port.interface)
                };
                endpoints.ports.iter().filter(is_output).map(|port| port.tester.clone()).collect()
            }
        };
        Tester::open(frames, &inlets, self.live.io.as_ref()).map_err(Failed::Message)
    }

    /// A round of a peer.
    fn peer(
        &self,
        peer: &Peer,
        with: (&mut Tester, &Endpoints),
        found: &mut Measured,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), Failed> {
        let system = match peer {
            Peer::Chain(file) => self.system(file, with.1),
            other => System::Peer(other),
        };
        self.round(Some(&system), with, found, progress)
    }

    /// A round of a system, with what the tester's interfaces report in it.
    fn round(
        &self,
        system: Option<&System<'_>>,
        (tester, endpoints): (&mut Tester, &Endpoints),
        found: &mut Measured,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), Failed> {
        let done = self.measure(system, (tester, endpoints), found, progress);
        tester.notices.drain(..).for_each(|text| note(&mut found.notices, text));
        done
    }

    /// Starts a system, if there is one, and finds the throughput; in the first round, latencies, too.
    fn measure(
        &self,
        system: Option<&System<'_>>,
        (tester, endpoints): (&mut Tester, &Endpoints),
        found: &mut Measured,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), Failed> {
        progress("starting");
        let mut running = self.start(system, endpoints)?;
        let mut check = || running.check();
        let mut watch = Watch { is_stopped: self.is_stopped, check: &mut check };
        found.forwarded = tester.settle(&mut watch)?;
        progress("searching for the throughput");
        let (throughput, limit) = self.throughput(tester, &mut watch)?;
        found.rates.push(throughput.iter().map(|found| found.throughput).collect());
        found.testers_limit = found.testers_limit.or(limit);
        let is_first = found.rates.len() == 1;
        if is_first {
            let with = (&throughput[..], found.forwarded);
            found.latency =
                self.gauges.latencies(with, &mut Vec::new(), progress, |load, arrivals| {
                    Ok(tester.offer(load, arrivals, &mut watch)?.offered)
                })?;
            found.throughput = throughput;
        }
        Ok(())
    }

    fn start(&self, system: Option<&System<'_>>, endpoints: &Endpoints) -> Result<Running, Failed> {
        let Some(system) = system else { return Ok(Running::default()) };
        Running::start(system, &self.setting(endpoints)?).map_err(|why| match (self.is_stopped)() {
            true => Failed::Interrupted,
            false => Failed::Message(why),
        })
    }

    fn throughput(
        &self,
        tester: &mut Tester,
        watch: &mut Watch<'_>,
    ) -> Result<(Vec<Throughput>, Option<f64>), Failed> {
        let effort = self.request.effort;
        let attempt = || self.gauges.watched(|| tester.capacity(effort.trial, watch));
        let (most, _) = best_of(attempt, |rate| *rate)?;
        let range = Range { min: most * LEAST, max: most };
        // The least load that the tester could not offer.
        let mut beyond = f64::INFINITY;
        let found = self.gauges.search(range, |load| {
            let even = (Arrivals::Constant, 0);
            let offer = || tester.offer((load, effort.trial), even, watch);
            let (outcome, disturbed) = self.gauges.watched(offer)?;
            // One that was disturbed could offer more another time.
            if outcome.is_testers && disturbed <= DISTURBED {
                beyond = beyond.min(load);
            }
            Ok(outcome.offered.trial)
        })?;
        let upper = found.first().map(|ndr| ndr.upper.unwrap_or(most));
        let limit = upper.filter(|upper| beyond.min(most) <= *upper);
        Ok((found, limit))
    }

    fn at_size(
        &self,
        system: Option<&System<'_>>,
        endpoints: &Endpoints,
        size: &Size,
        time: &Arc<dyn Time>,
    ) -> Result<AtSize, Failed> {
        let resize = |generator: &mut dataplane::io::Generator| {
            generator.sizes.clone_from(&size.frames);
        };
        let mut library = Traffics::new(self.request, &resize);
        library.by_default = FRAMES;
        let sized = Endpoints::find(self.request, self.live, time, &mut library)?;
        let mut tester = self.tester(&sized.frames, endpoints)?;
        let mut running = self.start(system, endpoints)?;
        let mut check = || running.check();
        let mut watch = Watch { is_stopped: self.is_stopped, check: &mut check };
        tester.settle(&mut watch)?;
        let (throughput, _) = self.throughput(&mut tester, &mut watch)?;
        let frame_size = mean_size(&library.described());
        Ok(AtSize { size: size.name.clone(), frame_size, cost: None, throughput })
    }

    fn setting<'b>(&'b self, endpoints: &'b Endpoints) -> Result<Setting<'b>, Failed> {
        let port = |names: &[(String, String)]| -> Option<&'b Port> {
            names.first().and_then(|(_, interface)| endpoints.port(interface))
        };
        let ports = port(&endpoints.inputs).zip(port(&endpoints.outputs)).map(|(a, b)| [a, b]);
        let none = || Failed::Message("the chain has no interface to send on".into());
        Ok(Setting {
            place: &self.links.system,
            ports: ports.ok_or_else(none)?,
            cores: &self.live.cores,
            chain: self.request.chain,
            script: self.live.script.as_deref(),
            has_rules: self.live.script.is_some()
                || self.request.peers.iter().any(Peer::sets_rules),
            is_stopped: self.is_stopped,
        })
    }
}

/// What there is to say if the tester has the chain's CPU.
pub(crate) fn shared(chain: &str, cores: &[usize], tester: Option<usize>) -> Option<String> {
    let cpu = tester.filter(|cpu| !chain.is_empty() && cores.contains(cpu))?;
    Some(format!(
        "the tester and the chain share CPU {cpu}: figures are lower for it; --cpu and --cores choose others"
    ))
}

/// The longest frame that is to be carried, without its Ethernet header.
fn mtu(endpoints: &Endpoints, request: &Request<'_>) -> usize {
    const HEADER: usize = 14;
    let frames = endpoints.frames.iter().map(|(_, frames)| frames.longest());
    let sizes = request.sizes.iter().flat_map(|size| size.frames.iter().map(|&size| size.into()));
    frames.chain(sizes).max().unwrap_or(0).saturating_sub(HEADER).max(1500)
}

impl Endpoints {
    fn port(&self, interface: &str) -> Option<&Port> {
        self.ports.iter().find(|port| port.interface == interface)
    }

    /// Reads the chain and its traffic, and finds the interfaces.
    fn find(
        request: &Request<'_>,
        live: &Live,
        time: &Arc<dyn Time>,
        library: &mut Traffics<'_>,
    ) -> Result<Self, Failed> {
        let wrong = |why: String| Failed::Message(why);
        if request.chain.is_empty() {
            let Link::Interfaces { tester: Some([from, to]), .. } = &live.link else {
                return Err(wrong(
                    "without a chain it takes --via, and what is between is measured".into(),
                ));
            };
            let asked = DeviceRequest::Interface { name: from.clone(), receive: true };
            let frames = library.frames(&asked).map_err(wrong)?;
            return Ok(Self {
                inputs: Vec::new(),
                outputs: vec![(to.clone(), to.clone())],
                ports: Vec::new(),
                frames: vec![(from.clone(), frames)],
                length: None,
            });
        }
        let subject = Subject::load(request, Execution::Native, time, library)?;
        library.check_names()?;
        let (reads, writes) = (library.names().map_err(wrong)?, subject.harness.sinks());
        if reads.is_empty() {
            return Err(wrong("the chain has no FromDevice: nothing can be offered to it".into()));
        }
        if writes.is_empty() {
            return Err(wrong("the chain has no ToDevice: nothing can come back from it".into()));
        }
        let (inputs, outputs) = match &live.link {
            Link::Veth => {
                let same = |names: &[String]| -> Vec<(String, String)> {
                    names.iter().map(|name| (name.clone(), name.clone())).collect()
                };
                (same(&reads), same(&writes))
            }
            Link::Interfaces { inputs, outputs, .. } => {
                // A name that is bound on one side is the same interface on the other.
                let both = |near: &[(Option<String>, String)], far: &[(Option<String>, String)]| {
                    let is_new = |(name, _): &&(Option<String>, String)| {
                        name.is_some() && near.iter().all(|(known, _)| known != name)
                    };
                    near.iter().chain(far.iter().filter(is_new)).cloned().collect::<Vec<_>>()
                };
                let all: Vec<String> = reads.iter().chain(&writes).cloned().collect();
                let [inputs, outputs] = [
                    (&reads, both(inputs, outputs), "--in", "input"),
                    (&writes, both(outputs, inputs), "--out", "output"),
                ]
                .map(|(names, bound, option, kind)| bind(names, (&bound, &all), option, kind));
                (inputs.map_err(wrong)?, outputs.map_err(wrong)?)
            }
        };
        let mut frames = Vec::new();
        for (name, interface) in &inputs {
            let asked = DeviceRequest::Interface { name: name.clone(), receive: true };
            frames.push((interface.clone(), library.frames(&asked).map_err(wrong)?));
        }
        let mut ports: Vec<Port> = Vec::new();
        for (_, interface) in inputs.iter().chain(&outputs) {
            if ports.iter().any(|port| port.interface == *interface) {
                continue;
            }
            let number = ports.len() + 1;
            let sent = frames.iter().find(|(name, _)| name == interface);
            let address = sent.and_then(|(_, frames)| frames.destination());
            let tester = match &live.link {
                Link::Veth => Ok(format!("tester{number}")),
                Link::Interfaces { tester: Some([from, to]), .. } => {
                    let is_input = inputs.iter().any(|(_, input)| input == interface);
                    Ok(if is_input { from } else { to }.clone())
                }
                Link::Interfaces { .. } => other_end(interface),
            };
            ports.push(Port {
                interface: interface.clone(),
                tester: tester.map_err(wrong)?,
                address: address.unwrap_or_else(|| format!("02:00:00:00:01:{number:02x}")),
                tester_address: format!("02:00:00:00:02:{number:02x}"),
            });
        }
        if live.link == Link::Veth {
            let odd = ports.iter().find(|port| !is_interface_name(&port.interface));
            if let Some(port) = odd {
                return Err(wrong(format!(
                    "'{}' cannot be an interface's name: over virtual Ethernet, FromDevice and ToDevice have names of 1 \
                     to 15 characters without '/', ':' and spaces, and not 'lo'",
                    port.interface
                )));
            }
        }
        for (interface, _) in &mut frames {
            if let Some(port) = ports.iter().find(|port| port.interface == *interface) {
                interface.clone_from(&port.tester);
            }
        }
        Ok(Self { inputs, outputs, ports, frames, length: subject.length() })
    }
}

fn is_interface_name(name: &str) -> bool {
    let is_odd = |c: char| c == '/' || c == ':' || c.is_whitespace();
    (1..=15).contains(&name.len()) && !["lo", ".", ".."].contains(&name) && !name.contains(is_odd)
}

/// Interfaces for names of a chain: as they are bound, or the only one for the only name.
fn bind(
    names: &[String],
    (bound, all): (&[(Option<String>, String)], &[String]),
    option: &str,
    kind: &str,
) -> Result<Vec<(String, String)>, String> {
    if let ([name], [(None, interface)]) = (names, bound) {
        return Ok(vec![(name.clone(), interface.clone())]);
    }
    if bound.iter().any(|(name, _)| name.is_none()) {
        return Err(format!(
            "{option} INTERFACE is for a chain with one {kind}; here it is {option} NAME=INTERFACE, for {}",
            names.join(", ")
        ));
    }
    if let Some((Some(name), _)) =
        bound.iter().find(|(name, _)| name.as_ref().is_some_and(|name| !all.contains(name)))
    {
        return Err(format!("{option} {name}=…: no {kind} of the chain has the name '{name}'"));
    }
    let find = |name: &String| {
        let found = bound.iter().find(|(bound, _)| bound.as_ref() == Some(name));
        found.map(|(_, interface)| (name.clone(), interface.clone())).ok_or_else(|| {
            format!("'{name}' is bound to no interface: {option} {name}=INTERFACE binds it")
        })
    };
    names.iter().map(find).collect()
}

/// The other end of a virtual Ethernet, if it is in this namespace.
fn other_end(interface: &str) -> Result<String, String> {
    let read = |path: String| std::fs::read_to_string(path).ok();
    let links = std::fs::read_dir("/sys/class/net").map_err(|e| format!("/sys/class/net: {e}"))?;
    let index = |name: &str, file: &str| -> Option<u32> {
        read(format!("/sys/class/net/{name}/{file}"))?.trim().parse().ok()
    };
    let own = index(interface, "ifindex");
    let peer = index(interface, "iflink").filter(|peer| Some(*peer) != own);
    let mut names = links.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let found = peer.and_then(|peer| {
        names.find(|name| index(name, "ifindex") == Some(peer) && index(name, "iflink") == own)
    });
    found.ok_or_else(|| {
        format!(
            "the tester needs interfaces that are connected to the chain's: --via FROM,TO ({interface} is no virtual \
             Ethernet whose other end is here)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(texts: &[(&str, &str)]) -> Vec<(Option<String>, String)> {
        let name = |name: &str| (!name.is_empty()).then(|| name.to_string());
        texts.iter().map(|(chosen, to)| (name(chosen), (*to).to_string())).collect()
    }

    #[test]
    fn a_cpu_that_tester_and_chain_share_is_remarked() {
        assert!(shared("a.click", &[0, 1], Some(1)).unwrap().contains("share CPU 1"));
        let apart = [("a.click", Some(2)), ("a.click", None), ("", Some(1))];
        assert!(apart.iter().all(|(chain, cpu)| shared(chain, &[0, 1], *cpu).is_none()));
    }

    #[test]
    fn names_are_bound_to_interfaces() {
        let bind = |names: &[&str], to: &[(&str, &str)]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
            bind(&names, (&bound(to), &names), "--in", "input")
        };
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(bind(&["in"], &[("", "eth0")]), Ok(vec![pair("in", "eth0")]));
        let both = [("b", "eth1"), ("a", "eth0")];
        assert_eq!(bind(&["a", "b"], &both), Ok(vec![pair("a", "eth0"), pair("b", "eth1")]));
        for (names, to, why) in [
            (&["a", "b"][..], &[("", "eth0")][..], "for a chain with one input"),
            (&["a"], &[("c", "eth0")], "no input of the chain has the name 'c'"),
            (&["a", "b"], &[("a", "eth0")], "'b' is bound to no interface"),
        ] {
            assert!(bind(names, to).is_err_and(|told| told.contains(why)), "{why}");
        }
    }

    #[test]
    fn ratios_are_of_rounds_in_which_both_forwarded() {
        let found = |rates: &[f64]| Measured {
            rates: rates.iter().map(|&rate| vec![rate]).collect(),
            ..Measured::default()
        };
        let mut report = PeerReport::new("kernel".into(), None, String::new());
        report.found = found(&[1e6, 0.0, 2e6]);
        report.complete(&found(&[2e6, 1e6, 3e6]));
        let [(goal, ratios)] = &report.ratios[..] else { panic!("{:?}", report.ratios) };
        assert_eq!((goal.as_str(), &ratios.values[..]), ("NDR", &[2.0, 1.5][..]));
    }
}
