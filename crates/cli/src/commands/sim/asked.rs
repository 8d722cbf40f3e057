//! What is simulated, as the command line, the topology and cost profiles say it.

use std::collections::VecDeque;
use std::path::Path;

use bench::arrivals::Arrivals;
use dataplane::io::{Binding, Bindings, Generator};
use elements::device::{Device, DeviceRequest, Received};
use ir::costs::CostProfile;
use ir::topology::Topology;
use net::pcap::LinkType;
use net::{Batch, Pool};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sim::{
    Arrival, Capture, Chain, Faster, Function, Generated, Key, Outlook, Rack, Scheme, Setup, Trace,
    Traffic, Until,
};

use super::Common;
use crate::commands::compile::topology;
use crate::constants;
use crate::failure::Failure;

/// Where packets come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Capture(String),
    Generator(Generator),
    Traffic(Box<Traffic>),
}

/// All constants that can be set.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Constants {
    rack: Rack,
    chain: Chain,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<Traffic>,
    policies: scale::Settings,
}

/// What was read.
pub(super) struct SimRequest {
    constants: Constants,
    pub(super) source: Source,
}

impl Source {
    fn read(common: &Common) -> Result<Self, Failure> {
        let is_capture = !matches!(common.trace.as_str(), "backbone" | "as" | "gen")
            && !common.trace.starts_with("gen:");
        if common.speed.is_some() && !is_capture {
            let why = "--speed is for captures: the rate of what is generated can be set";
            return Err(Failure::Usage(why.into()));
        }
        let traffic = match common.trace.as_str() {
            "backbone" => Traffic::backbone(),
            "as" => Traffic::autonomous_system(),
            text if text == "gen" || text.starts_with("gen:") => {
                let binding = Binding::source(text)
                    .map_err(|why| Failure::Usage(format!("{text}: {why}")))?;
                let Binding::Generator(generator) = binding else {
                    return Err(Failure::Usage(format!("{text}: it generates nothing")));
                };
                if generator.rate == 0 {
                    let why = "say how many packets come in a second, such as gen:rate=100k";
                    return Err(Failure::Usage(format!("--trace {text}: {why}")));
                }
                if generator.count == 0 && common.time.is_none() {
                    return Err(Failure::Usage("--trace has no end: say --time".into()));
                }
                return Ok(Self::Generator(generator));
            }
            path => return Ok(Self::Capture(path.into())),
        };
        if common.time.is_none() {
            return Err(Failure::Usage(format!(
                "--trace {} has no end: say --time, such as --time 1s",
                common.trace
            )));
        }
        Ok(Self::Traffic(Box::new(Traffic { seed: common.seed, ..traffic })))
    }

    /// Opens it, from its begin.
    pub(super) fn open(&self, common: &Common) -> Result<Box<dyn Trace>, String> {
        let end = common.time.unwrap_or(u64::MAX);
        Ok(match self {
            Self::Capture(path) => {
                let trace = Capture::open(Path::new(path))?;
                let thousandths = common.speed.unwrap_or(1000);
                Box::new(Until { trace: Faster { trace, thousandths }, end })
            }
            Self::Traffic(traffic) => Box::new(Until { trace: Generated::new(traffic), end }),
            Self::Generator(generator) => {
                let trace = Frames::open(generator, common.arrivals)?;
                Box::new(Until { trace, end })
            }
        })
    }
}

/// Frames of the traffic generator, at times of an arrival process.
struct Frames {
    device: Box<dyn Device + Send>,
    link: LinkType,
    times: bench::arrivals::DueTimes,
    ready: VecDeque<(Key, u16)>,
    batch: Batch,
    pool: Pool,
    is_over: bool,
}

impl Frames {
    fn open(generator: &Generator, arrivals: Arrivals) -> Result<Self, String> {
        let times = arrivals.times(generator.rate as f64, generator.seed);
        let mut bindings = Bindings::default();
        let all_at_once = Generator { rate: 0, ..generator.clone() };
        bindings.inputs.insert("trace".into(), Binding::Generator(all_at_once));
        let device = bindings
            .open_device(&DeviceRequest::Interface { name: "trace".into(), receive: true })?;
        let link = LinkType(device.link_type());
        let (ready, batch, pool) = (VecDeque::new(), Batch::new(), Pool::new());
        Ok(Self { device, link, times, ready, batch, pool, is_over: false })
    }
}

impl Trace for Frames {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        loop {
            if let Some((key, size)) = self.ready.pop_front() {
                return Ok(Some(Arrival { at: self.times.next_due(), key, size }));
            }
            if self.is_over {
                return Ok(None);
            }
            let received =
                self.device.receive(Batch::DEFAULT_BURST, &mut self.batch, &mut self.pool)?;
            self.is_over = received == Received::End;
            for packet in self.batch.drain() {
                let size = packet.len().min(usize::from(u16::MAX)) as u16;
                self.ready.extend(sim::key(self.link, packet.data()).map(|key| (key, size)));
                self.pool.recycle(packet);
            }
        }
    }
}

/// The rack of a topology.
fn rack(path: &str, of: &Topology) -> Result<Rack, Failure> {
    let mut rack = Rack { servers: Vec::new(), ..Rack::default() };
    let mut clock: Option<(&String, f64)> = None;
    let (mut links, mut delay) = (Vec::new(), 0f64);
    for (name, server) in &of.servers {
        let Some(cores) = server.cores else { continue };
        match clock {
            Some((other, hertz)) if hertz != cores.hertz => {
                let why = format!(
                    "{path}: '{other}' and '{name}' have different clocks; one is simulated"
                );
                return Err(why.into());
            }
            _ => clock = Some((name, cores.hertz)),
        }
        let count = u32::try_from(cores.count).ok().filter(|count| *count <= MOST_CORES);
        rack.servers.push(
            count.ok_or_else(|| format!("{path}: '{name}' has more than {MOST_CORES} cores"))?,
        );
        links.extend(server.ports.values().filter_map(|port| port.rate));
        delay = server.ports.values().map(|port| port.delay).fold(delay, f64::max);
    }
    let Some((_, hertz)) = clock else {
        return Err(format!(
            "{path}: no server has cores, such as `cores: 16` and `clock: 2.8 GHz`"
        )
        .into());
    };
    rack.core.hertz = hertz as u64;
    if let Some(least) = links.into_iter().reduce(f64::min) {
        rack.link = least as u64;
    }
    if delay > 0.0 {
        rack.wire = (delay * 2e9) as u64;
    }
    Ok(rack)
}

/// Cores of a server at the most.
const MOST_CORES: u32 = 1024;

/// The chain of a cost profile.
fn profiled(path: &str, common: &Common) -> Result<Chain, Failure> {
    let mut sources = ir::Sources::new();
    let file = common.limits.disk().configuration(&mut sources, path)?;
    let profile: CostProfile = serde_json::from_str(sources.text(file))
        .map_err(|why| format!("{path}: it is no cost profile: {why}"))?;
    let named = profile.functions.iter().map(|of| (&of.name, &of.cost));
    let programs = profile.programs.iter().map(|of| (&of.entry, &of.cost));
    let of = |(name, cost): (&String, &ir::costs::Cost)| Function {
        name: name.clone(),
        cycles: cost.mean.max(1.0) as u64,
        per_kilobyte: 0,
    };
    let mut functions: Vec<Function> = named.map(of).collect();
    if functions.is_empty() {
        functions = programs.map(of).collect();
    }
    if functions.is_empty() {
        return Err(format!("{path}: it has no functions and no programs").into());
    }
    let (mut touch, mut source) =
        (0, format!("{path}: means of cycles; what a flow costs is not in it"));
    if let Some(capacity) = &profile.capacity {
        capacity.check().map_err(|why| format!("{path}: {why}"))?;
        if let Some(line) = capacity.flow_costs(profile.processor.frequency) {
            touch = line.slope as u64;
            source = format!("{path}: means of cycles; what a flow costs, of its frontier");
        }
    }
    Ok(Chain { name: profile.chain, functions, setup: 0, touch, cools: 100_000, adopt: 0, source })
}

impl SimRequest {
    pub(super) fn read(common: &Common) -> Result<Self, Failure> {
        let source = Source::read(common)?;
        let rack = rack(&common.topology, &topology(&common.topology, &common.limits)?)?;
        let chain = match Chain::named(&common.chain) {
            Some(chain) => chain,
            None => profiled(&common.chain, common)?,
        };
        let traffic = match &source {
            Source::Traffic(traffic) => Some((**traffic).clone()),
            _ => None,
        };
        let constants = Constants { rack, chain, traffic, policies: scale::Settings::default() };
        let mut asked = Self { constants, source };
        let mut value = asked.value()?;
        let pairs: Vec<String> = common.set.iter().filter(|of| *of != "list").cloned().collect();
        constants::set_all(&mut value, "--set", &pairs).map_err(Failure::Usage)?;
        asked.take(value).map_err(Failure::Usage)?;
        Ok(asked)
    }

    /// Constants as they are named: those of policies without a name before them.
    fn value(&self) -> Result<Value, String> {
        let mut value = serde_json::to_value(&self.constants).map_err(|why| why.to_string())?;
        if let Some(Value::Object(policies)) =
            value.as_object_mut().and_then(|all| all.remove("policies"))
            && let Some(all) = value.as_object_mut()
        {
            all.extend(policies);
        }
        Ok(value)
    }

    fn take(&mut self, value: Value) -> Result<(), String> {
        let Value::Object(all) = value else { return Ok(()) };
        let is_own = |key: &String| matches!(key.as_str(), "rack" | "chain" | "traffic");
        let (mut own, policies): (serde_json::Map<_, _>, serde_json::Map<_, _>) =
            all.into_iter().partition(|(key, _)| is_own(key));
        own.insert("policies".into(), Value::Object(policies));
        self.constants =
            serde_json::from_value(Value::Object(own)).map_err(|why| format!("--set: {why}"))?;
        let Constants { rack, chain, traffic, .. } = &self.constants;
        let is_bad = [
            (rack.core.batch == 0 || rack.core.batch > 4096, "rack.core.batch is 1 to 4096"),
            (rack.core.hertz == 0, "rack.core.hertz is above 0"),
            (rack.buckets == 0 || rack.buckets > 1 << 16, "rack.buckets is 1 to 65536"),
            (rack.classes == 0 || rack.classes > 1 << 16, "rack.classes is 1 to 65536"),
            (rack.ring == 0 || rack.queue == 0, "rack.ring and rack.queue are above 0"),
            (chain.functions.is_empty(), "chain.functions has a function at the least"),
            (chain.functions.iter().all(|of| of.cycles == 0), "chain.functions take cycles"),
        ];
        if let Some((_, why)) = is_bad.iter().find(|(is_bad, _)| *is_bad) {
            return Err(format!("--set: {why}"));
        }
        if let (Source::Traffic(source), Some(traffic)) = (&mut self.source, traffic) {
            traffic.check().map_err(|why| format!("--set traffic: {why}"))?;
            **source = traffic.clone();
        }
        Ok(())
    }

    /// All constants, a line each.
    pub(super) fn listed(&self) -> String {
        let mut text = String::new();
        constants::list(&self.value().unwrap_or_default(), "", &mut text);
        text
    }

    /// All constants.
    pub(super) fn json(&self) -> Value {
        self.value().unwrap_or_default()
    }

    /// What the trace asks of cores.
    pub(super) fn outlook(&self, common: &Common, slo: u64) -> Result<Outlook, Failure> {
        let mut trace = self.source.open(common)?;
        let of = Outlook::of(&mut *trace, &self.constants.chain, &self.constants.rack, slo);
        Ok(of.map_err(|why| format!("--trace {}: {why}", common.trace))?)
    }

    /// A run.
    pub(super) fn setup(
        &self,
        common: &Common,
        scheme: &Scheme,
        (slo, outlook): (u64, Outlook),
    ) -> Setup {
        let Constants { rack, chain, policies, .. } = self.constants.clone();
        let most = rack.cores() as usize;
        Setup {
            scheme: scheme.clone(),
            initial: common.cores.unwrap_or_else(|| outlook.initial().min(most)),
            rack,
            chain,
            settings: policies,
            slo,
            seed: common.seed,
            warmup: common.warmup,
            gap: outlook.gap,
            size: outlook.size,
            outlook,
        }
    }
}
