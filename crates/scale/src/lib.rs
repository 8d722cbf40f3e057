//! Scaling: how many cores a chain gets, and which flows run where.
//!
//! A [`Policy`] takes observations and gives decisions. Time is passed in; there is no clock, thread or socket here, so the
//! data plane and the simulator run the same values. [`Guarded`] puts bounds, budgets and pauses around any of them.
#![forbid(unsafe_code)]

mod boost;
mod core_mapper;
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
pub use fixed::Fixed;
pub use frame::{
    Action, Core, CoreSeen, Flow, Group, GroupSeen, MS, Nanos, Note, Observation, Policy, Prefix,
    Role, S, Server, ServerSeen, US, Waiting,
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
    /// Open vSwitch.
    pub pmd: pmd::Settings,
    /// Kubernetes.
    pub hpa: hpa::Settings,
    /// Knative.
    pub knative: knative::Settings,
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
