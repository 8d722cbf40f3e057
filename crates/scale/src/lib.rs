//! Scaling: how many cores a chain gets, and which flows run where.
//!
//! A [`Policy`] takes observations and gives decisions. Time is passed in; there is no clock, thread or socket here, so the
//! data plane and the simulator run the same values. [`Guarded`] puts bounds, budgets and pauses around any of them.
#![forbid(unsafe_code)]

mod boost;
mod core_mapper;
mod dyssect;
mod fixed;
mod frame;
mod frontier;
mod guards;
mod hpa;
mod ingress_mapper;
mod knative;
mod pmd;
mod rss_plus_plus;
mod server_mapper;
mod slo;
mod spread;
mod traffic_class;

use serde::{Deserialize, Serialize};

pub use boost::Boost;
pub use core_mapper::{CoreMapper, Deal, Splits};
pub use dyssect::Dyssect;
pub use fixed::Fixed;
pub use frame::{
    Action, Core, CoreSeen, Flow, Group, GroupSeen, MS, Nanos, Note, Observation, Policy, Prefix,
    Role, S, Server, ServerSeen, US, Waiting, told,
};
pub use frontier::Frontier;
pub use guards::Guarded;
pub use hpa::Hpa;
pub use ingress_mapper::IngressMapper;
pub use knative::Knative;
pub use pmd::Pmd;
pub use rss_plus_plus::RssPlusPlus;
pub use server_mapper::ServerMapper;
pub use slo::{Profile, Quadrant};
pub use traffic_class::{Metron, Settings as MetronSettings, Signal};

/// Every constant of every policy, by policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Guards around each policy.
    pub guards: guards::Settings,
    /// Ironside's core mapper.
    pub core_mapper: core_mapper::Settings,
    /// Ironside's server mapper.
    pub server_mapper: server_mapper::Settings,
    /// Ironside's boost mode.
    pub boost: boost::Settings,
    /// Ironside's ingress mapper.
    pub ingress_mapper: ingress_mapper::Settings,
    /// Metron.
    pub metron: traffic_class::Settings,
    /// Quadrant.
    pub quadrant: slo::Settings,
    /// RSS++.
    pub rss_plus_plus: rss_plus_plus::Settings,
    /// Dyssect.
    pub dyssect: dyssect::Settings,
    /// Open vSwitch.
    pub pmd: pmd::Settings,
    /// Kubernetes.
    pub hpa: hpa::Settings,
    /// Knative.
    pub knative: knative::Settings,
}

/// Policies that decide by load, packets and losses, and need to know nothing of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByLoad {
    /// Metron's.
    Metron(Signal),
    /// RSS++.
    RssPlusPlus,
    /// Dyssect's.
    Dyssect,
    /// Open vSwitch's.
    Pmd,
    /// Kubernetes'.
    Hpa,
    /// Knative's.
    Knative,
}

impl ByLoad {
    /// All, with their names and what they are.
    pub const ALL: [(Self, &'static str, &'static str); 8] = [
        (
            Self::Metron(Signal::Loss),
            "metron",
            "Metron, by losses, as Ironside's evaluation reads it",
        ),
        (
            Self::Metron(Signal::Load),
            "metron-load",
            "Metron, by load and its change, as its authors' balancer does",
        ),
        (
            Self::Metron(Signal::Polls),
            "metron-polls",
            "Metron, by useful polls, as its authors' agent does",
        ),
        (Self::RssPlusPlus, "rss++", "RSS++"),
        (Self::Dyssect, "dyssect", "Dyssect, without offloading cores"),
        (Self::Pmd, "ovs", "Open vSwitch's balancing of PMD threads"),
        (Self::Hpa, "hpa", "Kubernetes' autoscaler"),
        (Self::Knative, "knative", "Knative's autoscaler"),
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|of| of.1 == name).map(|of| of.0)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|of| of.0 == self).map_or("", |of| of.1)
    }

    /// Whether it splits and merges what a core has, instead of moving buckets.
    pub fn splits(self) -> bool {
        matches!(self, Self::Metron(_))
    }

    /// The policy, which has seen nothing yet.
    pub fn scaler(self, settings: &Settings) -> Scaler {
        match self {
            Self::Metron(signal) => {
                let settings = MetronSettings { signal, ..settings.metron.clone() };
                Scaler::Metron(Metron::new(&settings))
            }
            Self::Dyssect => Scaler::Dyssect(Dyssect::new(&settings.dyssect)),
            Self::RssPlusPlus => Scaler::RssPlusPlus(RssPlusPlus::new(&settings.rss_plus_plus)),
            Self::Pmd => Scaler::Pmd(Pmd::new(&settings.pmd)),
            Self::Hpa => Scaler::Hpa(Hpa::new(&settings.hpa)),
            Self::Knative => Scaler::Knative(Knative::new(&settings.knative)),
        }
    }
}

/// A policy that says how many cores there are and what they own: any of them as one value, which can be saved and read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Scaler {
    /// A fixed number of cores.
    Fixed(Fixed),
    /// Metron's.
    Metron(Metron),
    /// Quadrant's.
    Quadrant(Quadrant),
    /// Ironside's, of a server.
    ServerMapper(ServerMapper),
    /// RSS++.
    RssPlusPlus(RssPlusPlus),
    /// Dyssect's.
    Dyssect(Dyssect),
    /// Open vSwitch's.
    Pmd(Pmd),
    /// Kubernetes'.
    Hpa(Hpa),
    /// Knative's.
    Knative(Knative),
}

impl Scaler {
    fn policy(&mut self) -> &mut dyn Policy {
        match self {
            Self::Fixed(of) => of,
            Self::Metron(of) => of,
            Self::Quadrant(of) => of,
            Self::ServerMapper(of) => of,
            Self::RssPlusPlus(of) => of,
            Self::Dyssect(of) => of,
            Self::Pmd(of) => of,
            Self::Hpa(of) => of,
            Self::Knative(of) => of,
        }
    }
}

impl Policy for Scaler {
    fn period(&self) -> Nanos {
        match self {
            Self::Fixed(of) => of.period(),
            Self::Metron(of) => of.period(),
            Self::Quadrant(of) => of.period(),
            Self::ServerMapper(of) => of.period(),
            Self::RssPlusPlus(of) => of.period(),
            Self::Dyssect(of) => of.period(),
            Self::Pmd(of) => of.period(),
            Self::Hpa(of) => of.period(),
            Self::Knative(of) => of.period(),
        }
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        self.policy().decide(now, seen)
    }

    fn notes(&mut self) -> Vec<Note> {
        self.policy().notes()
    }
}
