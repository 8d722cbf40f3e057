//! A switch: what it says of itself, what it has, and how it is given what it shall have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use codegen::openflow::codec::{
    self, Command, Error, Limit, Message, MeterChange, Metered, Port, Reply, Request, Stats,
};
use codegen::openflow::{Action, Flow, FlowEntry};
use ir::topology::Address;

use super::client::{Client, Refused};
use super::failure::{Failure, Refusal};
use super::{Mark, Plan};

/// How Open vSwitch treats fragments so that first ones show their ports.
const NX_MATCH: u16 = 3;

/// The bits of a switch's settings that are about fragments.
const FRAGMENTS: u16 = 3;

/// Error of a table that is full.
const TABLE_FULL: (u16, u16) = (5, 1);

/// Error of a meter that is there already.
const METER_EXISTS: (u16, u16) = (12, 1);

/// What a switch says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its number.
    pub datapath: u64,
    /// Tables that it has.
    pub tables: u8,
    /// Who made it, and of which version it is.
    pub made: codec::Switch,
    /// Its ports.
    pub ports: Vec<Port>,
}

/// What a switch has to be for entries to be right there.
#[derive(Clone, Debug)]
pub struct Site {
    /// Whether it has to be Open vSwitch, and show the ports of first fragments.
    pub is_ovs: bool,
    /// Its ports, by number.
    pub ports: BTreeMap<u32, String>,
}

/// A switch that is not what the topology says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Odd {
    /// It is not Open vSwitch, but this.
    Kind(String),
    /// It has fewer tables than the entries need: so many, and so many are needed.
    Tables(u8, usize),
    /// It has no port of this number, which the topology calls so; it has these.
    Port(u32, String, Vec<(u32, String)>),
    /// The port is down.
    Down(u32, String),
}

impl Odd {
    /// Whether frames are only lost for as long as it is so.
    pub fn is_passing(&self) -> bool {
        matches!(self, Odd::Down(..))
    }
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Odd::Kind(kind) => write!(
                f,
                "the topology has `target: ovs`, the switch calls itself '{kind}': say `target: openflow`"
            ),
            Odd::Tables(there, needed) => write!(
                f,
                "the switch has {there} tables, {needed} are needed: take another switch, or leave more to cores"
            ),
            Odd::Port(number, name, there) => {
                let all: Vec<String> =
                    there.iter().map(|(number, name)| format!("{number} ({name})")).collect();
                let all = if all.is_empty() { "none".into() } else { all.join(", ") };
                write!(
                    f,
                    "'{name}' is port {number} in the topology; the switch has {all}: mend `number:`, or \
                     `ovs-vsctl set interface NAME ofport_request={number}`"
                )
            }
            Odd::Down(number, name) => {
                write!(f, "'{name}' (port {number}) is down: `ip link set … up`")
            }
        }
    }
}

/// Ports of a switch that are no wires, as the one to its own host, have numbers from this on.
const RESERVED_PORTS: u32 = 0xffff_ff00;

/// A connection to a switch.
pub struct Switch {
    client: Client,
    about: About,
}

impl Switch {
    /// Connects to a switch; each answer has to come within this time.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn connect(address: &Address, patience: Duration) -> Result<Self, Failure> {
        let mut client = Client::connect(address, patience)?;
        let what = "what it is";
        let features = client.ask(Message::FeaturesRequest, what)?;
        let Message::Features { datapath, tables } = features.map_err(|e| refused(what, e))? else {
            return Err(odd_answer());
        };
        let mut made = codec::Switch::default();
        for part in client.parts(Request::Desc, what)?.map_err(|e| refused(what, e))? {
            let Reply::Desc(said) = part else { return Err(odd_answer()) };
            made = said;
        }
        let mut ports = Vec::new();
        for part in client.parts(Request::Ports, what)?.map_err(|e| refused(what, e))? {
            let Reply::Ports(mut some) = part else { return Err(odd_answer()) };
            ports.append(&mut some);
        }
        Ok(Self { client, about: About { datapath, tables, made, ports } })
    }

    /// What it says of itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// In what it is not what it has to be.
    pub fn odd(&self, site: &Site, entries: &[FlowEntry]) -> Vec<Odd> {
        let About { tables, made, ports, .. } = &self.about;
        let mut odd = Vec::new();
        if site.is_ovs && !made.hardware.contains("Open vSwitch") {
            odd.push(Odd::Kind(made.hardware.clone()));
        }
        let needed =
            entries.iter().map(|entry| usize::from(entry.flow.table) + 1).max().unwrap_or(0);
        if needed > usize::from(*tables) {
            odd.push(Odd::Tables(*tables, needed));
        }
        for (&number, name) in &site.ports {
            match ports.iter().find(|port| port.number == number) {
                Some(port) if port.is_down => odd.push(Odd::Down(number, name.clone())),
                Some(_) => {}
                None => {
                    let wires = ports.iter().filter(|port| port.number < RESERVED_PORTS);
                    let there = wires.map(|port| (port.number, port.name.clone())).collect();
                    odd.push(Odd::Port(number, name.clone(), there));
                }
            }
        }
        odd
    }

    /// All its entries.
    ///
    /// # Errors
    /// If it does not say.
    pub fn entries(&mut self) -> Result<Vec<Stats>, Failure> {
        self.client.flows(0, 0)?.map_err(|error| refused("to say which entries it has", error))
    }

    /// Its entries of a chain.
    ///
    /// # Errors
    /// If it does not say.
    pub fn entries_of(&mut self, mark: Mark) -> Result<Vec<Stats>, Failure> {
        let flows = self.client.flows(mark.cookie(), Mark::MASK)?;
        flows.map_err(|error| refused("to say which entries it has", error))
    }

    /// Whether first fragments show their ports.
    ///
    /// # Errors
    /// If it does not say.
    pub fn shows_fragments(&mut self) -> Result<bool, Failure> {
        self.config().map(|(flags, _)| flags & FRAGMENTS == NX_MATCH)
    }

    fn config(&mut self) -> Result<(u16, u16), Failure> {
        let what = "to say what becomes of fragments";
        match self.client.ask(Message::ConfigRequest, what)?.map_err(|e| refused(what, e))? {
            Message::Config { flags, miss } => Ok((flags, miss)),
            _ => Err(odd_answer()),
        }
    }

    /// Has it show the ports of first fragments; whether it did not before.
    ///
    /// # Errors
    /// If it does not.
    pub fn show_fragments(&mut self) -> Result<bool, Failure> {
        let (flags, miss) = self.config()?;
        if flags & FRAGMENTS == NX_MATCH {
            return Ok(false);
        }
        let what = "to show the ports of first fragments";
        let set = Message::SetConfig { flags: flags & !FRAGMENTS | NX_MATCH, miss };
        self.client.tell(set, what)?.map_err(|e| refused(what, e))?;
        Ok(true)
    }

    /// Carries a plan out: all of it, or nothing.
    ///
    /// # Errors
    /// Why nothing was changed, or it is not known whether all was.
    pub fn apply(&mut self, plan: &Plan) -> Result<(), Failure> {
        if let Some(foreign) = plan.foreign.iter().find(|foreign| foreign.conflicts()) {
            return Err(Failure::Taken(Box::new(foreign.clone())));
        }
        // What goes makes room for what comes.
        let gone = plan.remove.iter().map(|flow| (Command::DeleteStrict, flow.clone(), None));
        let changed = plan.change.iter().map(|change| &change.to);
        let come = changed
            .chain(&plan.add)
            .map(|entry| (Command::Add, entry.flow.clone(), Some(entry.origin.clone())));
        let all: Vec<_> = gone.chain(come).collect();
        let changes: Vec<(Command, Flow)> =
            all.iter().map(|(command, flow, _)| (*command, flow.clone())).collect();
        let Err(Refused { change, error }) = self.client.commit(&changes, Mark::MASK)? else {
            return Ok(());
        };
        let entry = change.and_then(|at| all.get(at).map(|change| (at, change)));
        let full = (error.kind, error.code) == TABLE_FULL;
        let room = match &entry {
            Some((_, (_, flow, _))) if full => self.room(flow.table),
            _ => None,
        };
        let entry = entry.map(|(at, (_, flow, origin))| {
            let origin = origin.clone().unwrap_or_else(|| "what is there".into());
            (at + 1, all.len(), flow.to_string(), origin)
        });
        Err(Failure::Refused(Refusal { what: "the changes".into(), entry, error, room }))
    }

    /// Has meters limit rates. None may be what others' entries refer to; those that are there already get these limits.
    ///
    /// # Errors
    /// If it does not; what was made is left, and no entry refers to it.
    pub fn limit(&mut self, limits: &[(u32, Limit)]) -> Result<(), Failure> {
        let what = "a meter";
        for &(meter, limit) in limits {
            let mut set = |change| self.client.tell(Message::Meter { change, meter, limit }, what);
            let told = match set(MeterChange::Add)? {
                Err(error) if (error.kind, error.code) == METER_EXISTS => set(MeterChange::Modify)?,
                told => told,
            };
            told.map_err(|error| refused(what, error))?;
        }
        Ok(())
    }

    /// Takes meters away, with the entries that refer to them. Those that are not there are passed over.
    ///
    /// # Errors
    /// If the switch does not answer.
    pub fn unlimit(&mut self, meters: impl IntoIterator<Item = u32>) -> Result<(), Failure> {
        for meter in meters {
            let (change, limit) = (MeterChange::Delete, Limit::default());
            let _ = self.client.tell(Message::Meter { change, meter, limit }, "a meter")?;
        }
        Ok(())
    }

    /// What all meters dropped so far.
    ///
    /// # Errors
    /// If it does not say.
    pub fn metered(&mut self) -> Result<Vec<Metered>, Failure> {
        let what = "to say what its meters did";
        let mut all = Vec::new();
        for part in self.client.parts(Request::Meters, what)?.map_err(|e| refused(what, e))? {
            let Reply::Meters(mut some) = part else { return Err(odd_answer()) };
            all.append(&mut some);
        }
        Ok(all)
    }

    /// Removes all entries of a chain, with the meters that they alone refer to, and no others; how many these are.
    ///
    /// # Errors
    /// Why nothing was removed, or it is not known whether all were.
    pub fn remove(&mut self, mark: Mark) -> Result<usize, Failure> {
        let all = self.entries()?;
        let of = |is_own: bool| {
            let flows = all.iter().map(|stats| &stats.flow);
            flows.filter(move |flow| mark.is_on(flow.cookie) == is_own)
        };
        let there = of(true).count();
        // The switch deletes a meter with all entries that refer to it.
        let (own, others) = (meters(of(true)), meters(of(false)));
        if there == 0 {
            return Ok(0);
        }
        let flow = Flow {
            cookie: mark.cookie(),
            // Of all tables.
            table: 0xff,
            priority: 0,
            when: Vec::new(),
            actions: Vec::new(),
            metadata: None,
            goto: None,
        };
        match self.client.commit(&[(Command::Delete, flow)], Mark::MASK)? {
            Ok(()) => self.unlimit(own.difference(&others).copied()).map(|()| there),
            Err(Refused { error, .. }) => Err(refused("to remove entries", error)),
        }
    }

    /// Entries that a table has room for, if the switch says that.
    fn room(&mut self, table: u8) -> Option<u32> {
        let parts =
            self.client.parts(Request::TableFeatures, "how large its tables are").ok()?.ok()?;
        let mut all = parts.into_iter().filter_map(|part| match part {
            Reply::TableFeatures(tables) => Some(tables),
            _ => None,
        });
        all.find_map(|tables| tables.into_iter().find(|of| of.table == table)).map(|of| of.room)
    }
}

/// The meters that entries refer to.
pub fn meters<'a>(flows: impl Iterator<Item = &'a Flow>) -> BTreeSet<u32> {
    let of = |action: &Action| match action {
        Action::Meter(meter) => Some(*meter),
        _ => None,
    };
    flows.flat_map(|flow| flow.actions.iter().filter_map(of)).collect()
}

fn odd_answer() -> Failure {
    Failure::Malformed("it answers something else".into())
}

fn refused(what: &str, error: Error) -> Failure {
    Failure::Refused(Refusal { what: what.into(), entry: None, error, room: None })
}
