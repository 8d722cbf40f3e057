//! What a target is, and what it is given.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ir::layout::Layout;
use ir::program::{Continuation, StepId};
use ir::{Field, IntervalSet, NodeId, Port, Program, Span};

use crate::stages::Pipeline;

/// The part of a chain that a device runs of packets that come in at some of its ports.
///
/// Its program holds nothing but what the device is to do. Steps are decided there: each of them is
/// one that [`Target::decides`]. An exit is one that [`Target::does`] and ends at a port in
/// [`Device::egress`] or in a drop, or it hands the packet off. Packets come in as from a wire: their
/// annotations are zero, and no header is marked. Of an exit to a port, nothing is left but what the
/// wire shows.
#[derive(Clone, Debug)]
pub struct Segment {
    /// What it does.
    pub program: Program,
    /// By step: which header lies where, of packets for which what the device is spared to test holds.
    /// Others may come there, too: whatever is decided of them, a core decides anew.
    pub layouts: Vec<Layout>,
    /// The ports of the device at which the packets come in, and numbers with which they come back from servers (see
    /// [`Servers::returns`]).
    pub ingress: Vec<u32>,
}

/// What of servers a device knows beside that one is behind its port towards the cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// Ports towards other servers.
    pub others: BTreeSet<u32>,
    /// Where packets are handed off to one of these: its port.
    pub handoffs: BTreeMap<Continuation, u32>,
    /// Numbers of packets that come back from a server, for the device to go on with them, each with the port that leads to that
    /// server. In front of all else they have an 802.1ad tag whose VLAN ID is the number. No port has such a number.
    pub returns: BTreeMap<u32, u32>,
}

/// What a device is given to run.
pub struct Device<'a> {
    /// By where packets come in: no port is in two of them.
    pub segments: Vec<Segment>,
    /// The device's port behind an input port of the chain.
    pub egress: BTreeMap<Port, u32>,
    /// The port towards the cores, that takes packets that are handed off. In front of all
    /// else they get an 802.1ad tag (type 0x88a8) whose VLAN ID is the number of the [`Continuation`].
    pub cores: u32,
    /// More of servers, if the target [knows more](Target::knows_servers).
    pub servers: Servers,
    /// By segment and exit: the meter that its packets pass, if the target [limits rates](Target::limits_rates).
    pub meters: BTreeMap<(usize, StepId), u32>,
    /// The element, or its rule, with file and line: for comments.
    pub origin: &'a dyn Fn(NodeId, Option<Span>) -> String,
}

impl Device<'_> {
    /// The port by which packets are handed off there.
    pub fn towards(&self, to: Continuation) -> u32 {
        self.servers.handoffs.get(&to).copied().unwrap_or(self.cores)
    }

    /// The ports that lead to servers.
    pub fn server_ports(&self) -> impl Iterator<Item = u32> + '_ {
        [self.cores].into_iter().chain(self.servers.others.iter().copied())
    }
}

/// A file of an artefact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// What it holds.
    pub contents: Vec<u8>,
}

/// What a device cannot do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// Test how long a packet is.
    Length,
    /// Verify a checksum.
    Checksum,
    /// Test bits that are no field that it knows; as people call them.
    Field(String),
    /// Match this field by other than whole numbers or by masks; the entries that it would take, where they can be counted.
    Match(String, Option<usize>),
    /// Compute this.
    Number(&'static str),
    /// Compare two numbers.
    Comparison,
    /// Look flows up.
    Flows,
    /// Go by a flow of which it has no lease.
    Lease,
    /// Change more of a flow than how long it lives.
    Changed,
    /// Look prefixes up and keep what was found.
    Found,
    /// Read a clock.
    Clock,
    /// Keep what is written from packet to packet.
    Cells,
    /// Write these bits.
    Write(String),
    /// Push or pull so many bytes.
    Move(i32),
    /// Cut a packet's end.
    Cut,
    /// Copy packets.
    Copy,
    /// Do what the element's native code does there.
    Element,
    /// Count packets.
    Count,
    /// Send packets on.
    Send,
    /// Take the packets that no rule takes, or those that rules take that it has no room or form for.
    Rest,
    /// Hand packets off there: why not.
    HandOff(String),
    /// Hold a program that large: what, how many, how many fit.
    Room(&'static str, usize, usize),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Length => f.write_str("lengths are not tested"),
            Lack::Checksum => f.write_str("checksums are not verified"),
            Lack::Field(name) => write!(f, "{name} is not matched"),
            Lack::Match(name, None) => write!(f, "{name} is matched by mask only"),
            Lack::Match(name, Some(entries)) => write!(f, "{name} would take {entries} entries"),
            Lack::Number(what) => write!(f, "{what} is not computed"),
            Lack::Comparison => f.write_str("two numbers of a packet are not compared"),
            Lack::Flows => f.write_str("flows are not looked up"),
            Lack::Lease => f.write_str("a core has flows first, and gives leases of them"),
            Lack::Changed => f.write_str("flows are not changed, only prolonged"),
            Lack::Found => f.write_str("what a lookup found is not kept"),
            Lack::Clock => f.write_str("there is no clock"),
            Lack::Cells => f.write_str("nothing is kept from packet to packet"),
            Lack::Write(name) => write!(f, "{name} is not written"),
            Lack::Move(bytes) if *bytes < 0 => write!(f, "{} bytes are not pushed", -bytes),
            Lack::Move(bytes) => write!(f, "{bytes} bytes are not pulled"),
            Lack::Cut => f.write_str("packets are not cut"),
            Lack::Copy => f.write_str("packets are not copied"),
            Lack::Element => f.write_str("the element's native code is needed"),
            Lack::Count => f.write_str("packets are not counted"),
            Lack::Send => f.write_str("packets are not sent on"),
            Lack::Rest => f.write_str("no rule is kept that takes them all"),
            Lack::HandOff(why) => write!(f, "packets are not handed off behind it: {why}"),
            Lack::Room(what, needed, there) => write!(f, "{needed} {what}, {there} fit"),
        }
    }
}

/// What has to hold of packets for which a device decides a step: of others it sees fields that are not there, or not
/// those that are. Where the device lacks what it takes to test that, it takes it for granted, and a core asks it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presumption {
    /// Of which packets only: of those whose fields are in these sets.
    pub when: Vec<(Field, IntervalSet)>,
    /// What has to hold.
    pub holds: Presumed,
    /// What the device lacks to test it. Without, it tests that itself before the step, for all packets, and leaves
    /// those to a core for which it does not hold.
    pub lack: Option<Lack>,
}

/// A condition that the program itself need not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presumed {
    /// A field's number is in a set.
    In(Field, IntervalSet),
    /// So many times a field, and bytes more, are no more than another field.
    Fits {
        /// The field.
        field: Field,
        /// How often it counts, at least once.
        times: u32,
        /// The bytes more.
        plus: u32,
        /// The field that they have to fit in.
        within: Field,
    },
}

/// Why an artefact was not understood: where, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// The file.
    pub file: String,
    /// Its line or instruction, from 1; 0 for the whole.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// The match-action tables of an artefact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// As plain data.
    pub pipeline: Pipeline,
    /// By table: the step, and its segment, that is left to cores first where the table does not fit.
    pub steps: Vec<(usize, StepId)>,
}

/// A kind of device that programs are turned into artefacts for.
pub trait Target: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// The architecture that it is for, where targets of one name differ in that.
    fn arch(&self) -> Option<&'static str> {
        None
    }

    /// What it is called in reports: its name, with the architecture if that is not the usual one.
    fn label(&self) -> &'static str {
        self.name()
    }

    /// Whether it can cut a packet's end. Where it cannot, padding behind short frames stays.
    fn cuts(&self) -> bool;

    /// Whether it goes by flows that elements own, where it has leases of them.
    fn leases(&self) -> bool {
        false
    }

    /// Whether it tells several servers apart, and takes packets back from them.
    fn knows_servers(&self) -> bool {
        false
    }

    /// Whether it drops what exceeds a rate.
    fn limits_rates(&self) -> bool {
        false
    }

    /// Whether packets can be sent where a step says, given which header lies where there, and what is
    /// presumed of them.
    ///
    /// # Errors
    /// What it lacks.
    fn decides(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumption>, Lack>;

    /// Whether all that an exit does to a packet can be done, whatever port it leaves by, and of which packets
    /// only: the device tests that itself.
    ///
    /// # Errors
    /// What it lacks.
    fn does(&self, program: &Program, step: StepId, layout: &Layout)
    -> Result<Vec<Presumed>, Lack>;

    /// What the device is to be given, as files that its own tools load.
    ///
    /// # Errors
    /// What does not fit, and the step of which segment it is about.
    fn emit(&self, device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)>;

    /// The number with which packets come to cores that the device says nothing of, if there may be some: cores decide
    /// these from the start.
    fn undecided(&self) -> Option<Continuation> {
        None
    }

    /// Exits to which packets come that the artefact leaves [undecided](Self::undecided), and what is missing.
    fn leaves(&self, _: &Device<'_>) -> Vec<(usize, StepId, Lack)> {
        Vec::new()
    }

    /// The programs that an artefact is: one for each segment, over that segment's terms, state and
    /// tables. Exits are numbered by the steps of the segment's program: by these numbers counters and
    /// reasons are found; what is decided, written and where packets leave is read from the files.
    ///
    /// # Errors
    /// The first place that is not understood.
    fn read(&self, files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread>;

    /// The tables of what the device would be given, if it consists of tables.
    fn tables(&self, _device: &Device<'_>) -> Option<Tables> {
        None
    }

    /// The name of the hardware that it is for, if none is named.
    fn hardware(&self) -> Option<&'static str> {
        None
    }
}
