//! Systems under comparison: which policies decide where, and with which of their settings.

use scale::{
    ByLoad, Fixed, Frontier, Nanos, Profile, Quadrant, Scaler, ServerMapper, Settings, Splits,
};

use crate::chain::Chain;
use crate::flows::Flows;
use crate::rack::Rack;
use crate::report::Report;
use crate::trace::Trace;
use crate::world::{EXPIRY, World};

/// What decides which core has a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The prefix of its destination gives the server, and a bucket of the NIC the core.
    Buckets,
    /// Its class gives a tag, and the tag the core.
    Classes,
    /// Each flow has an entry of its own.
    Flows,
}

/// By what cores are found to have too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By flows and packets.
    Frontier,
    /// By packets, as few as with the most flows (`static-safe`).
    Safe,
    /// By packets, as many as with one flow (`static-unsafe`).
    Unsafe,
}

/// A number of cores that is chosen beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beforehand {
    /// What is there at the start, whatever comes.
    Initial,
    /// For the second with the most packets.
    Peak,
    /// For the mean.
    Mean,
}

/// A policy above cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    Fixed(Beforehand),
    ByLoad(ByLoad),
    Quadrant,
    ServerMapper(Kind),
}

/// A system.
#[derive(Clone, Debug, PartialEq)]
pub struct Scheme {
    /// Its name.
    pub name: String,
    /// What decides which core has a flow.
    pub mode: Mode,
    /// Whether each core has Ironside's core mapper, and by what it decides.
    pub mapper: Option<Kind>,
    /// Whether cores have boost mode.
    pub boost: bool,
    /// Whether a core with a backlog has the server mapper asked at once, instead of boost mode.
    pub on_demand: bool,
    /// Whether lent state costs nothing, and flows go to the first core that has room: ours.
    pub ours: bool,
    above: Above,
}

impl Scheme {
    /// Names, and what they are.
    pub const ALL: [(&'static str, &'static str); 20] = [
        ("static-peak", "as many cores as the second with the most packets takes"),
        ("static-mean", "as many cores as the mean takes"),
        ("rss", "the cores of the start, by RSS alone"),
        ("metron", "Metron, by loss at the switch, as Ironside's evaluation reads it"),
        ("metron-load", "Metron, by load and its change, as its authors' balancer does"),
        ("metron-polls", "Metron, by useful polls, as its authors' agent does"),
        ("quadrant", "Quadrant"),
        ("rss++", "RSS++"),
        ("dyssect", "Dyssect, without offloading cores"),
        ("ovs", "Open vSwitch's balancing of PMD threads"),
        ("hpa", "Kubernetes' autoscaler"),
        ("knative", "Knative's autoscaler"),
        ("ironside", "Ironside as published"),
        (
            "ours",
            "Ironside with state that is lent by pointer, and cores that are filled first fit",
        ),
        ("ironside-safe", "Ironside whose core mapper counts packets alone, cautiously"),
        ("ironside-unsafe", "Ironside whose core mapper counts packets alone, boldly"),
        ("ironside-safe-server", "Ironside whose server mapper counts packets alone, cautiously"),
        ("ironside-unsafe-server", "Ironside whose server mapper counts packets alone, boldly"),
        ("ironside-no-core-mapper", "Ironside without core mappers"),
        ("ironside-no-boost", "Ironside without boost mode"),
    ];

    /// Ironside that asks the server mapper at once instead of boosting.
    const ON_DEMAND: &'static str = "ironside-on-demand";

    /// That of a name.
    ///
    /// # Errors
    /// That there is none, and which there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let above = match (ByLoad::named(name), name) {
            (Some(of), _) => Above::ByLoad(of),
            (_, "static-peak") => Above::Fixed(Beforehand::Peak),
            (_, "static-mean") => Above::Fixed(Beforehand::Mean),
            (_, "rss") => Above::Fixed(Beforehand::Initial),
            (_, "quadrant") => Above::Quadrant,
            (_, "ironside-safe-server") => Above::ServerMapper(Kind::Safe),
            (_, "ironside-unsafe-server") => Above::ServerMapper(Kind::Unsafe),
            (_, name) if name == Self::ON_DEMAND || Self::ALL.iter().any(|(of, _)| *of == name) => {
                Above::ServerMapper(Kind::Frontier)
            }
            _ => {
                let names: Vec<&str> = Self::ALL.iter().map(|(of, _)| *of).collect();
                return Err(format!(
                    "there is no policy '{name}'; there are {}, {}",
                    names.join(", "),
                    Self::ON_DEMAND
                ));
            }
        };
        let mode = match above {
            Above::ByLoad(of) if of.splits() => Mode::Classes,
            Above::Quadrant => Mode::Flows,
            _ => Mode::Buckets,
        };
        let mapper = match (above, name) {
            (_, "ironside-no-core-mapper") => None,
            (_, "ironside-safe") => Some(Kind::Safe),
            (_, "ironside-unsafe") => Some(Kind::Unsafe),
            (Above::ServerMapper(_), _) => Some(Kind::Frontier),
            _ => None,
        };
        let on_demand = name == Self::ON_DEMAND;
        let boost = mapper.is_some() && !on_demand && name != "ironside-no-boost";
        Ok(Self { name: name.into(), mode, mapper, boost, on_demand, ours: name == "ours", above })
    }
}

/// A run: all that decides what comes of it, besides the trace.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The system.
    pub scheme: Scheme,
    /// The rack.
    pub rack: Rack,
    /// The chain.
    pub chain: Chain,
    /// Constants of policies.
    pub settings: Settings,
    /// 99th percentile of the latency that is sought, in nanoseconds.
    pub slo: Nanos,
    /// The seed of the trace, for the report.
    pub seed: u64,
    /// Nanoseconds at the start that are not measured.
    pub warmup: Nanos,
    /// Cores at the start.
    pub initial: usize,
    /// Nanoseconds between packets, on average.
    pub gap: Nanos,
    /// Bytes of a packet, on average.
    pub size: u16,
    /// What the whole trace is, where a policy knows it.
    pub outlook: Outlook,
}

/// What a trace asks of cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Cores that are busy all the time, on average.
    pub mean: f64,
    /// The same in the tenth of a second with the most packets.
    pub peak: f64,
    /// Cores of an oracle, on average: what came within an epoch is done in the next one, on as few cores as that takes.
    pub oracle: f64,
    /// Nanoseconds between packets, on average.
    pub gap: Nanos,
    /// Bytes of a packet, on average.
    pub size: u16,
    /// Nanoseconds that a packet takes on average, with what its flow costs.
    pub each: f64,
}

/// Load that a core is given by those that choose beforehand.
const PLANNED: f64 = 0.8;
/// Nanoseconds of the windows of a peak.
const PEAK: Nanos = 100_000_000;

impl Outlook {
    /// That of a trace: packets cost what they do on a core that serves each at once.
    ///
    /// # Errors
    /// What is wrong with the trace.
    pub fn of(
        trace: &mut dyn Trace,
        chain: &Chain,
        rack: &Rack,
        slo: Nanos,
    ) -> Result<Self, String> {
        let epoch = (slo / 2).max(1);
        let (mut packets, mut bytes, mut end) = (0u64, 0u64, 0);
        let (mut all, mut window, mut most) = (0u64, (0, 0u64), 0u64);
        let (mut now, mut cores, mut epochs) = ((0, 0u64), 0u64, 0u64);
        let mut close = |work: u64| {
            cores += work.div_ceil(epoch).max(1);
            epochs += 1;
        };
        let (mut flows, mut expiry) = (Flows::new(), EXPIRY);
        while let Some((arrival, number)) = trace.next_numbered()? {
            if arrival.at >= expiry {
                flows.expire(arrival.at - EXPIRY, |_| ());
                expiry = arrival.at + EXPIRY;
            }
            let (flow, is_new) = flows.find(arrival.key, number, 0);
            let last = std::mem::replace(&mut flows[flow].seen, arrival.at);
            let of_flow = match is_new {
                true => chain.setup + chain.touch,
                false if arrival.at - last > chain.cools => chain.touch,
                false => 0,
            };
            let work = rack.core.time(chain.all(arrival.size) + of_flow);
            (packets, bytes, end) = (packets + 1, bytes + u64::from(arrival.size), arrival.at);
            all += work;
            if arrival.at / PEAK != window.0 {
                window = (arrival.at / PEAK, 0);
            }
            window.1 += work;
            most = most.max(window.1);
            let number = arrival.at / epoch;
            while now.0 < number {
                close(now.1);
                now = (now.0 + 1, 0);
            }
            now.1 += work;
        }
        close(now.1);
        if packets == 0 {
            return Err("the trace has no packets of IP".into());
        }
        let time = end.max(1);
        Ok(Self {
            mean: all as f64 / time as f64,
            peak: most as f64 / PEAK.min(time) as f64,
            oracle: cores as f64 / epochs.max(1) as f64,
            gap: time / packets,
            size: (bytes / packets) as u16,
            each: all as f64 / packets as f64,
        })
    }

    /// Cores to begin with.
    pub fn initial(&self) -> usize {
        (self.mean / PLANNED).ceil().max(1.0) as usize
    }
}

impl Setup {
    /// What a core does in an epoch.
    pub(crate) fn frontier(&self, kind: Kind) -> (Frontier, Splits) {
        let epoch = self.slo / self.settings.core_mapper.epochs.max(1);
        let frontier = self.chain.frontier(&self.rack.core, self.size, epoch);
        let splits = self.chain.splits(&self.rack.core, self.size, epoch);
        let frontier = match kind {
            Kind::Frontier => frontier,
            Kind::Safe => frontier.flat(true),
            Kind::Unsafe => frontier.flat(false),
        };
        (frontier, splits)
    }

    /// Packets a second that one core does. Quadrant takes it from what packets are seen to cost (§3.5.3), so with what flows cost.
    pub(crate) fn most(&self) -> f64 {
        let core = &self.rack.core;
        let alone = core.time(self.chain.all(self.size)).max(1) as f64;
        let poll = core.time(core.poll) as f64 / core.batch.max(1) as f64;
        1e9 / (self.outlook.each.max(alone) + poll)
    }

    pub(crate) fn scaler(&self) -> Scaler {
        let settings = &self.settings;
        let fixed = |load: f64| Scaler::Fixed(Fixed::for_load(load, PLANNED));
        match self.scheme.above {
            Above::Fixed(Beforehand::Initial) => Scaler::Fixed(Fixed::new(self.initial)),
            Above::Fixed(Beforehand::Peak) => fixed(self.outlook.peak),
            Above::Fixed(Beforehand::Mean) => fixed(self.outlook.mean),
            Above::ByLoad(of) => of.scaler(settings),
            Above::Quadrant => {
                let most = self.most();
                let profile = Profile { most, network: vec![(most, self.rack.wire)] };
                Scaler::Quadrant(Quadrant::new(&settings.quadrant, self.slo, profile))
            }
            Above::ServerMapper(kind) => {
                let epoch = self.slo / settings.core_mapper.epochs.max(1);
                let share = settings.server_mapper.share;
                let table = self.chain.rates(&self.rack.core, self.size, (epoch, share));
                let table = match kind {
                    Kind::Frontier => table,
                    Kind::Safe => table.flat(true),
                    Kind::Unsafe => table.flat(false),
                };
                Scaler::ServerMapper(ServerMapper::new(&settings.server_mapper, table))
            }
        }
    }

    /// Runs a trace.
    ///
    /// # Errors
    /// What is wrong with the trace or with what was asked.
    pub fn run(&self, trace: &mut dyn Trace) -> Result<Report, String> {
        self.check()?;
        let mut setup = self.clone();
        if setup.scheme.ours {
            setup.settings.core_mapper.first_fit = true;
            setup.chain.adopt = 0;
        }
        World::new(&setup).run(trace)
    }

    /// Refuses what cannot be.
    fn check(&self) -> Result<(), String> {
        let service =
            self.rack.core.time(self.chain.all(self.size) + self.chain.touch + self.rack.core.poll)
                + self.rack.wire;
        if self.slo < service {
            return Err(format!(
                "an SLO of {} us is less than one packet takes alone: {:.1} us",
                self.slo as f64 / 1e3,
                service as f64 / 1e3
            ));
        }
        if self.rack.cores() == 0 {
            return Err("the rack has no cores".into());
        }
        if self.initial as u64 > u64::from(self.rack.cores()) {
            return Err(format!(
                "{} cores are asked for, and the rack has {}",
                self.initial,
                self.rack.cores()
            ));
        }
        Ok(())
    }
}
