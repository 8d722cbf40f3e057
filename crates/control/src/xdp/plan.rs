//! What has to change at interfaces: what is attached, compared with what shall be.

use std::collections::{BTreeMap, BTreeSet};

use codegen::ebpf::{self, Object, PORTS_MAP};

/// What interfaces shall be given.
#[derive(Clone, Debug)]
pub struct Artefact {
    pub(super) object: Object,
    /// By port: its program.
    pub(super) programs: BTreeMap<u32, usize>,
    /// Ports that frames leave by.
    pub(super) out: BTreeSet<u32>,
}

impl Artefact {
    /// The programs of an object, one for each segment, by the ports at which the segments' packets come in; and what the
    /// cores send, which comes in at their port and leaves by one of `egress`.
    pub fn new(
        mut object: Object,
        ingress: &[Vec<u32>],
        egress: impl IntoIterator<Item = u32>,
        cores: u32,
    ) -> Self {
        let all = ingress.iter().enumerate();
        let mut programs: BTreeMap<u32, usize> = all
            .flat_map(|(program, ports)| ports.iter().map(move |port| (*port, program)))
            .collect();
        ebpf::back(&mut object);
        programs.insert(cores, object.programs.len() - 1);
        let out = egress.into_iter().chain([cores]).collect();
        Self { object, programs, out }
    }

    /// Ports that it needs.
    pub fn ports(&self) -> BTreeSet<u32> {
        self.programs.keys().chain(&self.out).copied().collect()
    }

    /// The object, with interfaces by port.
    pub(super) fn at(&self, interfaces: &BTreeMap<u32, u32>) -> Object {
        let mut object = self.object.clone();
        for map in object.maps.iter_mut().filter(|map| map.name == PORTS_MAP) {
            let known = self.out.iter().filter_map(|port| interfaces.get_key_value(port));
            map.entries.extend(known.map(|(port, interface)| {
                (port.to_le_bytes().to_vec(), interface.to_le_bytes().to_vec())
            }));
        }
        object
    }
}

/// What is attached to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    Nothing,
    /// The chain's program, as it shall be.
    Same,
    /// The chain's program, with other instructions, or with maps in which so many entries differ.
    Differs(Option<BTreeMap<String, usize>>),
    /// The chain's program, in another mode than the topology says.
    Mode,
    /// The program of another chain.
    OtherChain,
    /// A program of others: its name and number.
    Others(String, u32),
}

/// A port of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its number.
    pub number: u32,
    /// Its interface.
    pub interface: String,
    /// What is attached there.
    pub state: State,
    /// The program that shall be.
    pub program: Option<usize>,
}

impl Port {
    /// Whether it is as it shall be. Programs of others are nobody's business where the chain needs none.
    pub fn is_well(&self) -> bool {
        match self.state {
            State::Nothing | State::OtherChain | State::Others(..) => self.program.is_none(),
            State::Same => self.program.is_some(),
            State::Differs(_) | State::Mode => false,
        }
    }
}

/// What is attached, and what shall be.
#[derive(Debug)]
pub struct Plan {
    /// By number of the port.
    pub ports: Vec<Port>,
}

impl Plan {
    /// Whether nothing has to change.
    pub fn is_empty(&self) -> bool {
        self.ports.iter().all(Port::is_well)
    }

    /// Whether there is nothing of the chain.
    pub fn is_all_new(&self) -> bool {
        self.ports.iter().all(|port| {
            matches!(port.state, State::Nothing | State::OtherChain | State::Others(..))
        })
    }
}
