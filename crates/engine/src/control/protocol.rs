//! The control protocol: what clients of an instance ask, and what it answers.
//!
//! Requests and replies are lines of JSON on a UNIX socket. A request is a [`Request`], an object whose member `do`
//! is its name. A reply is a [`Reply`]: an object with `ok`, the request's [`Ask::Answer`], or with `error`, a
//! [`Refusal`]. The answers of `capture` and `trace` go on: before the last line come lines with `more`, a
//! [`Piece`], and lines with `bytes`, the number of bytes that follow the line. A client ends them by
//! closing its sending side.
//!
//! Each line says by `version` which version of the protocol it is of. An instance refuses requests of another
//! version than its own, and members that it does not know; of a request without a version it takes its own for meant. A
//! client refuses replies of another version, and passes over members that it does not know. So what is added to answers
//! leaves the version as it is, and everything else makes a new one.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::Error;

/// The version that this code reads and writes.
pub const VERSION: u32 = 1;

/// The member that says the version.
const MEMBER: &str = "version";

/// Something to ask an instance for.
pub trait Ask: Into<Request> {
    /// What it answers.
    type Answer: Serialize + DeserializeOwned;
}

macro_rules! requests {
    ($($(#[$about:meta])* $name:ident -> $answer:ty,)*) => {
        /// What an instance can be asked for.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "do", rename_all = "kebab-case")]
        pub enum Request {
            $($(#[$about])* $name($name),)*
        }

        $(
            impl From<$name> for Request {
                fn from(request: $name) -> Self {
                    Self::$name(request)
                }
            }

            impl Ask for $name {
                type Answer = $answer;
            }
        )*

        /// The schema of each request's answer, in the order of the requests.
        fn answers(generator: &mut SchemaGenerator) -> Vec<Schema> {
            vec![$(generator.subschema_for::<$answer>()),*]
        }

        impl Request {
            /// Reads a line that this was answered, and writes it anew.
            #[cfg(test)]
            fn reread(&self, line: &[u8]) -> Result<String, Error> {
                match self {
                    $(Self::$name(_) => Ok(Reply::<$answer>::read(line)?.line().unwrap()),)*
                }
            }
        }
    };
}

requests! {
    /// Reads a handler.
    Read -> String,
    /// Writes a handler on all workers.
    Write -> (),
    /// Lists handlers.
    Handlers -> Vec<ElementHandlers>,
    /// Reads what each worker and all together have done.
    Counters -> CountersAnswer,
    /// Lists flows.
    Flows -> FlowsAnswer,
    /// Removes the flow that a filter chooses, if it chooses one and no more.
    RemoveFlow -> Flow,
    /// Says how packets find their workers, and where groups of traffic classes are.
    Dispatch -> DispatchAnswer,
    /// Moves a group of traffic classes to another worker.
    Move -> Moved,
    /// Counts packets for a second, and moves groups so that all workers have about as many.
    Balance -> Balanced,
    /// Says how many workers take packets, or changes it.
    Workers -> WorkersAnswer,
    /// Says which faults devices have, or changes them; both as text.
    Faults -> String,
    /// Says what runs.
    Status -> StatusAnswer,
    /// Lets another configuration replace the one that runs.
    Swap -> Changed,
    /// Returns to the configuration that ran before.
    Rollback -> Changed,
    /// Captures packets that pass, until the client closes its sending side. The bytes are a pcapng file.
    Capture -> CaptureEnd,
    /// Follows packets through the chain, until there were enough or the client closes its sending side.
    Trace -> TraceEnd,
    /// Ends the run.
    Stop -> (),
}

/// Reads a handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// `ELEMENT.HANDLER`, and behind a space what it is given.
    pub handler: String,
}

/// Writes a handler on all workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// `ELEMENT.HANDLER`.
    pub handler: String,
    /// What is written.
    #[serde(default)]
    pub value: String,
}

/// Lists handlers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Handlers {
    /// Those of this element; of all if there is none.
    #[serde(default)]
    pub element: Option<String>,
}

/// Reads what each worker and all together have done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counters {}

/// In which order flows are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowOrder {
    /// By the latest packet: the flow that waits longest first.
    #[default]
    Touched,
    /// By when they expire.
    Expires,
    /// By protocol.
    Protocol,
    /// By source address.
    Src,
    /// By destination address.
    Dst,
    /// By source port.
    Sport,
    /// By destination port.
    Dport,
}

/// Lists flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// Those with packets that this pattern of `IPClassifier` chooses, in either direction; all if it is empty.
    #[serde(default)]
    pub filter: String,
    /// Only those of this element.
    #[serde(default)]
    pub element: Option<String>,
    /// Their order.
    #[serde(default)]
    pub sort: FlowOrder,
    /// Whether in reverse.
    #[serde(default)]
    pub reverse: bool,
    /// How many are left out at the beginning.
    #[serde(default)]
    pub skip: u64,
    /// How many there are at the most; all if nothing is said.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// Removes the flow that a filter chooses, if it chooses one and no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveFlow {
    /// As for `flows`.
    pub filter: String,
    /// As for `flows`.
    #[serde(default)]
    pub element: Option<String>,
}

/// Says how packets find their workers, and where groups of traffic classes are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dispatch {}

/// Moves a group of traffic classes to another worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The group.
    pub group: usize,
    /// The worker.
    pub worker: usize,
}

/// Counts packets for a second, and moves groups so that all workers have about as many.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Balance {}

/// Says how many workers take packets, or changes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workers {
    /// How many from now on; none to leave it as it is.
    #[serde(default)]
    pub count: Option<usize>,
}

/// Says which faults devices have, or changes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// Those from now on, `FAULT=SHARE,…` or `none`; none to leave them as they are.
    #[serde(default)]
    pub set: Option<String>,
}

/// Says what runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {}

/// Lets another configuration replace the one that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Swap {
    /// The configuration's file, on the instance's host.
    pub path: String,
    /// Its text, if the file is not to be read: then the path is but a name.
    #[serde(default)]
    pub text: Option<String>,
    /// Whether to make everything and change nothing.
    #[serde(default)]
    pub check: bool,
    /// Whether to change also where the new one ends by itself and the one that runs does not.
    #[serde(default)]
    pub force: bool,
}

/// Returns to the configuration that ran before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// As for `swap`.
    #[serde(default)]
    pub check: bool,
    /// As for `swap`.
    #[serde(default)]
    pub force: bool,
}

/// Captures packets that pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// Where: `A -> B`, `A[1]`, `[1]B`, or the name of an element, a network function or an interface.
    pub edge: String,
    /// Those that this pattern of `IPClassifier` chooses; all if it is empty.
    #[serde(default)]
    pub filter: String,
    /// How many at the most.
    #[serde(default)]
    pub count: Option<u64>,
    /// Bytes of a packet that are kept at the most.
    #[serde(default)]
    pub snap: Option<u64>,
}

/// Follows packets through the chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Those that this pattern of `IPClassifier` chooses; all if it is empty.
    #[serde(default)]
    pub filter: String,
    /// How many; 10 if nothing is said.
    #[serde(default)]
    pub count: Option<u64>,
    /// Where they come in, as for `capture`; wherever packets come in if nothing is said.
    #[serde(default)]
    pub edge: Option<String>,
    /// Whether the text has the colours of a terminal.
    #[serde(default)]
    pub colours: bool,
}

/// Ends the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {}

/// The handlers of an element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ElementHandlers {
    /// The element's full name.
    pub element: String,
    /// Its handlers.
    pub handlers: Vec<Handler>,
}

/// A handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handler {
    /// Its name, without the element's.
    pub name: String,
    /// Whether it can be read.
    pub read: bool,
    /// Whether it can be written.
    pub write: bool,
}

/// What each worker and all together have done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountersAnswer {
    /// By worker.
    pub workers: Vec<WorkerCounts>,
    /// All together; nothing if no worker lives.
    pub all: Option<Counts>,
}

/// What a worker has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerCounts {
    /// The worker.
    pub worker: usize,
    /// The CPU that it is bound to.
    pub cpu: Option<usize>,
    /// How fast that CPU runs, if the system says so.
    pub mhz: Option<f64>,
    /// What it has done.
    #[serde(flatten)]
    pub counts: Counts,
}

/// What was done. All of it grows but what is held now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// When it was read, in nanoseconds of the worker's clock.
    pub now: u64,
    /// Rounds in which there was something to do.
    pub rounds: u64,
    /// Packet buffers in use now.
    pub buffers: usize,
    /// Nanoseconds that these rounds took.
    pub busy: u64,
    /// Packets that came in.
    #[serde(rename = "in")]
    pub taken: u64,
    /// Packets that went out.
    #[serde(rename = "out")]
    pub given: u64,
    /// By element, in the order of the chain.
    pub elements: Vec<ElementCounts>,
    /// By network function, in the order of the chain.
    pub functions: Vec<FunctionCounts>,
    /// How long bursts took, where that was measured.
    pub latencies: Vec<LatencyCounts>,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What an element has done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ElementCounts {
    /// Its full name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Packets that came to its inputs; of an element without inputs, those that left it. Nothing of one without ports.
    pub packets: Option<u64>,
    /// What a source took in.
    #[serde(rename = "in", default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Traffic>,
    /// What a sink sent.
    #[serde(rename = "out", default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Traffic>,
    /// What a counter counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Traffic>,
    /// Packets that it dropped, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u64>,
    /// Packets that left on an error output, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Packets that it holds now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held: u64,
    /// Flows that it knows now.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flows: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a network function, an outermost compound, has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FunctionCounts {
    /// Its name.
    pub name: String,
    /// Packets that came into it.
    pub packets: u64,
}

/// What a latency is of.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum LatencyOf {
    /// From when a burst is pushed into the chain until it is where it leaves it, at this element.
    Chain,
    /// A network function.
    Function,
    /// The program that begins at this element.
    Program,
    /// An element's own code.
    Element,
}

/// How long bursts took somewhere, for each of their packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyCounts {
    /// What it is of.
    pub of: LatencyOf,
    /// The name of that.
    pub name: String,
    /// The sum of all, in nanoseconds.
    pub sum: u64,
    /// The greatest nanoseconds of a bucket, and how many packets it has.
    pub buckets: Vec<(u64, u64)>,
}

/// Flows that were asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowsAnswer {
    /// How many flows there are, whatever the filter.
    pub all: usize,
    /// How many the filter chooses.
    pub chosen: usize,
    /// Those from `skip` on, and no more than `limit`.
    pub flows: Vec<Flow>,
}

/// A flow of an element on a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flow {
    /// The element's full name.
    pub element: String,
    /// The worker.
    pub worker: usize,
    /// The number of the transport protocol; 0 if packets of any are of the flow.
    pub protocol: u8,
    /// Its packets as they come.
    pub from: Tuple,
    /// Its packets as they leave.
    pub to: Tuple,
    /// The input of its first packet.
    pub input: u16,
    /// The outputs of its packets, and of answers.
    pub outputs: [u16; 2],
    /// Seconds until it expires.
    pub expires_s: f64,
}

/// Addresses and ports, as far as the flow is about them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tuple {
    /// Source address.
    pub src: IpAddr,
    /// Source port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sport: Option<u16>,
    /// Destination address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst: Option<IpAddr>,
    /// Destination port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dport: Option<u16>,
    /// Identifier of ICMP echo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identifier: Option<u16>,
}

/// How packets find their workers, and where groups of traffic classes are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DispatchAnswer {
    /// The mode, as `catena run --dispatch` names it.
    pub mode: String,
    /// Why it is this one.
    pub why: String,
    /// How many workers take packets.
    pub workers: usize,
    /// How many there can be.
    pub most: usize,
    /// The groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// What workers handed each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handed: Vec<Handed>,
}

/// What goes to one worker as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its number.
    pub group: usize,
    /// The worker that it is at.
    pub worker: usize,
    /// The CPU that the worker is bound to.
    pub cpu: Option<usize>,
    /// Packets that came.
    pub packets: u64,
    /// Packets a second since it was asked last.
    pub rate: f64,
    /// Where frames have tags, which and for what.
    #[serde(flatten)]
    pub tagged: Option<Tagged>,
}

/// Which frames have which tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tagged {
    /// The tag: a destination address or the number of a VLAN.
    pub tag: String,
    /// Frames that have it: those of any of these classes.
    pub classes: Vec<Class>,
    /// Answers to what translators give out that have it, before any class.
    pub answers: Vec<Answers>,
}

/// A traffic class, or a part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Class {
    /// The device that its frames come in by.
    #[serde(rename = "in")]
    pub input: String,
    /// What of a frame must be how; all frames if there is nothing.
    pub fields: Vec<FieldRanges>,
}

/// What a field can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FieldRanges {
    /// The field's name.
    pub field: String,
    /// The first and last of each run.
    pub ranges: Vec<(Bound, Bound)>,
    /// Which of its bits are meant, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<Bits>,
}

/// An end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Bound {
    /// A number.
    Number(u64),
    /// An address, or a number of more than 64 bits.
    Text(String),
}

/// Some bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bits {
    /// The lowest, counted from the field's lowest.
    pub lowest: u16,
    /// How many.
    pub count: u16,
}

/// Answers to what a translator gives out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Answers {
    /// The first and last address that they go to.
    #[serde(rename = "ip.dst")]
    pub addresses: (Ipv4Addr, Ipv4Addr),
    /// The first and last port.
    #[serde(rename = "transport.dport")]
    pub ports: (u32, u32),
}

/// What one worker handed another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Handed {
    /// Who.
    pub from: usize,
    /// To whom.
    pub to: usize,
    /// Packets.
    pub packets: u64,
    /// Packets a second since it was asked last.
    pub rate: f64,
}

/// What moving groups came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// How many moved.
    pub groups: usize,
    /// The longest that packets of a group waited, in milliseconds.
    pub waited_ms: f64,
    /// Packets that went along.
    pub packets: usize,
    /// Packets that the former worker holds for other reasons, which leave from there.
    pub held_back: usize,
}

/// How many workers there are, and what it took to have so many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkersAnswer {
    /// How many take packets.
    pub workers: usize,
    /// How many there can be.
    pub most: usize,
    /// What moved.
    #[serde(flatten)]
    pub moved: Moved,
}

/// What balancing came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Balanced {
    /// Packets with tags in a second, by worker.
    pub before: Vec<u64>,
    /// The same as groups are now.
    pub after: Vec<u64>,
    /// What moved.
    pub moved: Vec<GroupMoved>,
}

/// A group that moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupMoved {
    /// Its number.
    pub group: usize,
    /// The worker that it was at.
    pub from: usize,
    /// The worker that it is at.
    pub to: usize,
    /// The longest that packets of it waited, in milliseconds.
    pub waited_ms: f64,
}

/// What runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusAnswer {
    /// The version of Catena.
    pub version: String,
    /// The process.
    pub pid: u32,
    /// How long the instance has been running.
    pub seconds: f64,
    /// The configuration's name.
    pub configuration: String,
    /// How many configurations have run.
    pub generation: u64,
    /// How many elements the chain has.
    pub elements: usize,
    /// The workers.
    pub workers: Vec<Worker>,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    /// Its number.
    pub worker: usize,
    /// The CPU that it is bound to.
    pub cpu: Option<usize>,
    /// How it is.
    pub status: WorkerStatus,
}

/// How a worker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkerStatus {
    /// It handles packets, or waits for some.
    Running,
    /// It has nothing to do unless somebody writes a handler.
    Idle,
    /// An element stopped the driver.
    Stopped,
    /// It stands by.
    Parked,
    /// Its thread is gone.
    Dead,
}

/// What a change of the chain came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    /// Whether another chain runs now.
    pub changed: bool,
    /// What becomes of state, by element.
    pub plan: Vec<ElementState>,
    /// Whether some state is lost.
    pub loses: bool,
    /// Packets that no element of the new chain takes over.
    pub unclaimed_packets: u64,
    /// How long it took to make the new chain, in milliseconds.
    pub preparation_ms: f64,
    /// How long packets waited, in milliseconds, by worker.
    pub standstill_ms: Vec<f64>,
    /// What may not be as it was meant, as text for people.
    pub warnings: String,
    /// Why the change is made only if it is forced, if so.
    pub objection: Option<String>,
}

/// What becomes of an element's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ElementState {
    /// The element's full name.
    pub element: String,
    /// Its class.
    pub class: String,
    /// What becomes of its state.
    pub fate: Fate,
    /// The declared state that it is about.
    pub state: Vec<String>,
    /// Packets that it holds.
    pub packets: u64,
    /// Flows that it knows.
    pub flows: u64,
    /// Why, if not everything is kept; or what keeping it can cost.
    pub why: String,
}

/// What becomes of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// All of it is carried over.
    Kept,
    /// Some of it is not carried over, or may not be.
    Partly,
    /// None of it is carried over.
    Lost,
    /// The element was not there before.
    New,
}

/// A piece of an answer that goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Piece {
    /// Connections that are looked at from now on.
    Edges(Vec<Edge>),
    /// What happened to a packet.
    Followed(Box<Followed>),
}

/// A connection of elements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Edge {
    /// Its name, `A -> B`.
    pub edge: String,
    /// Where it stands in the configuration.
    pub place: String,
}

/// What happened to a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Followed {
    /// For programs.
    pub packet: FollowedPacket,
    /// For people.
    pub text: String,
}

/// What happened to a packet, for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FollowedPacket {
    /// How many were followed up to this one.
    pub number: u64,
    /// The worker that had it.
    pub worker: u32,
    /// When it was met first, in nanoseconds since 1970.
    pub time: Option<u64>,
    /// Whether its programs would have done the same; nothing if none was asked.
    pub agrees: Option<bool>,
    /// Why it was not followed to its end, if it was not.
    pub unfinished: Option<String>,
    /// What each element did, as `catena explain --json` says it.
    #[serde(flatten)]
    pub story: Map<String, Value>,
}

/// What a capture came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureEnd {
    /// Packets that were written.
    pub captured: u64,
    /// Packets that the filter chose.
    pub chosen: u64,
    /// Packets that are missing: they came faster than they were written.
    pub missing: u64,
    /// Why the instance ended it, if it did.
    pub ended: Option<String>,
}

/// What following packets came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEnd {
    /// Packets that were followed.
    pub followed: u64,
    /// Why the instance ended it, if it did.
    pub ended: Option<String>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The kind of error, a name that does not change ([`Error::code`]).
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
    /// If a configuration is wrong, what of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

/// Something that is wrong with a configuration, or may not be as it was meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// `error` or `warning`.
    pub severity: String,
    /// The kind, a name that does not change.
    pub code: String,
    /// What it is, for people.
    pub message: String,
    /// Where.
    pub labels: Vec<Label>,
    /// What mends it.
    pub help: Option<String>,
}

/// A place in a configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// The file's name.
    pub file: String,
    /// The first line, counted from 1.
    pub line: u32,
    /// Its column, counted from 1.
    pub column: u32,
    /// The last line.
    pub end_line: u32,
    /// The column behind it.
    pub end_column: u32,
    /// What is to be said of it.
    pub message: String,
}

/// A line that an instance answers, but for its version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Reply")]
pub enum Reply<A> {
    /// The answer, or its end.
    Ok(A),
    /// Why there is none.
    Error(Refusal),
    /// A piece of it.
    More(Piece),
    /// So many bytes follow the line.
    Bytes(u64),
}

/// Writes a line with the version, and without its end.
fn write(what: &impl Serialize) -> serde_json::Result<String> {
    let mut line = Map::new();
    line.insert(MEMBER.to_string(), VERSION.into());
    if let Value::Object(members) = serde_json::to_value(what)? {
        line.extend(members);
    }
    serde_json::to_string(&line)
}

/// Reads the version of a line, if it says one, and the rest.
fn read(line: &[u8]) -> serde_json::Result<(Option<u32>, Value)> {
    let mut members: Map<String, Value> = serde_json::from_slice(line)?;
    let version = members.remove(MEMBER).map(serde_json::from_value).transpose()?;
    Ok((version, Value::Object(members)))
}

impl Request {
    /// Reads the line of a request.
    ///
    /// # Errors
    /// If it is none, or one of another version.
    pub fn read(line: &[u8]) -> Result<Self, Error> {
        let wrong = |e: serde_json::Error| Error::Request(e.to_string());
        let (version, request) = read(line).map_err(wrong)?;
        if version.is_some_and(|version| version != VERSION) {
            return Err(Error::Version { client: version, instance: Some(VERSION) });
        }
        serde_json::from_value(request).map_err(wrong)
    }

    /// Its line, without the end.
    ///
    /// # Errors
    /// None that a request can have.
    pub fn line(&self) -> serde_json::Result<String> {
        write(self)
    }
}

impl<A: Serialize> Reply<A> {
    /// Its line, without the end.
    ///
    /// # Errors
    /// If the answer cannot be written as JSON.
    pub fn line(&self) -> serde_json::Result<String> {
        write(self)
    }
}

impl<A: DeserializeOwned> Reply<A> {
    /// Reads the line of a reply.
    ///
    /// # Errors
    /// If it is none, or one of another version.
    pub fn read(line: &[u8]) -> Result<Self, Error> {
        let wrong = |e: serde_json::Error| Error::Reply(e.to_string());
        let (version, reply) = read(line).map_err(wrong)?;
        if version != Some(VERSION) {
            return Err(Error::Version { client: Some(VERSION), instance: version });
        }
        serde_json::from_value(reply).map_err(wrong)
    }
}

/// The JSON Schema of the lines of both sides, and under `answers` what each request is answered.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let request = generator.subschema_for::<Request>();
    let reply = generator.subschema_for::<Reply<Value>>();
    let answers = answers(&mut generator);
    let mut definitions = generator.take_definitions(true);
    let version = json!({ "description": "The version of the protocol.", "const": VERSION });
    let mut names = Vec::new();
    for of in ["Request", "Reply"] {
        let lines = definitions.get_mut(of).and_then(|lines| lines["oneOf"].as_array_mut());
        for line in lines.into_iter().flatten() {
            line["properties"][MEMBER] = version.clone();
            match line["properties"]["do"]["const"].as_str() {
                Some(name) => names.push(name.to_string()),
                None => {
                    line["required"].as_array_mut().into_iter().for_each(|r| r.push(MEMBER.into()))
                }
            }
        }
    }
    let answers: Map<String, Value> =
        names.into_iter().zip(answers.into_iter().map(Value::from)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Catena's control protocol",
        "description": "Lines of JSON on the control socket of an instance: requests, and replies.",
        "version": VERSION,
        "oneOf": [request, reply],
        "answers": answers,
        "$defs": definitions,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What `catena ctl` and an instance of version 1 said to each other.
    const RECORDED: &str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages/control-1.txt"));

    fn value(line: &str) -> Value {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn recorded_messages_are_read_and_written_as_they_were() {
        let (mut request, mut seen) = (None, BTreeSet::new());
        for line in RECORDED.lines() {
            let (side, line) = line.split_at(2);
            let again = match (side, &request) {
                ("> ", _) => {
                    let read =
                        Request::read(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"));
                    seen.insert(value(line)["do"].as_str().unwrap().to_string());
                    request.insert(read).line().unwrap()
                }
                ("< ", Some(request)) => {
                    let reply = value(line);
                    seen.extend(reply.as_object().unwrap().keys().map(|kind| format!("<{kind}")));
                    request.reread(line.as_bytes()).unwrap_or_else(|e| panic!("{e}: {line}"))
                }
                _ => panic!("neither a request nor a reply: {side}{line}"),
            };
            assert_eq!(value(&again), value(line));
        }
        let requests = schema()["answers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let replies = ["<ok", "<error", "<more", "<bytes"].map(str::to_string);
        let missing: Vec<_> =
            requests.iter().chain(&replies).filter(|m| !seen.contains(*m)).collect();
        assert!(missing.is_empty(), "not recorded: {missing:?}");
    }

    #[test]
    fn requests_of_other_versions_and_with_unknown_members_are_refused() {
        let read = |line: &str| Request::read(line.as_bytes());
        let status = Request::Status(Status {});
        assert_eq!(read(r#"{"do":"status"}"#).unwrap(), status);
        assert_eq!(read(r#"{"do":"status","version":1}"#).unwrap(), status);
        let other = read(r#"{"do":"anything","version":2,"more":true}"#).unwrap_err();
        assert_eq!(other.code(), "protocol-version");
        assert_eq!(
            other.to_string(),
            "the client uses version 2 of the control protocol, and the instance version 1"
        );
        for (line, why) in [
            ("", "EOF"),
            ("[]", "expected a map"),
            (r#"{"do":"status","version":"1"}"#, "expected u32"),
            (r#"{"do":"status","of":"everything"}"#, "unknown field `of`"),
            (r#"{"do":"swap","path":"a","try":true}"#, "unknown field `try`"),
            (r#"{"do":"read"}"#, "missing field `handler`"),
            (r#"{"do":"write","handler":7}"#, "expected a string"),
            (r#"{"do":"dance"}"#, "unknown variant `dance`"),
            (r#"{"version":1}"#, "missing field `do`"),
        ] {
            let wrong = read(line).unwrap_err();
            assert!(
                wrong.code() == "request" && wrong.to_string().contains(why),
                "{line}: {wrong}"
            );
        }
    }

    #[test]
    fn replies_of_other_versions_are_refused_and_new_members_passed_over() {
        let read = |line: &str| Reply::<Moved>::read(line.as_bytes());
        let moved = r#"{"groups":1,"waited_ms":0.5,"packets":2,"held_back":3,"new":4}"#;
        let got = read(&format!(r#"{{"version":1,"ok":{moved}}}"#)).unwrap();
        let of = Moved { groups: 1, waited_ms: 0.5, packets: 2, held_back: 3 };
        assert_eq!(got, Reply::Ok(of));
        for version in ["", r#""version":2,"#] {
            let other = read(&format!(r#"{{{version}"ok":{moved}}}"#)).unwrap_err();
            assert_eq!(other.code(), "protocol-version");
        }
        assert_eq!(read(r#"{"version":1,"ok":{}}"#).unwrap_err().code(), "reply");
    }
}
