//! What an instance answers, by the requests of the module above.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// Packets that wait for it, by interface: those that it has not taken out of its receive queues. Interfaces of
    /// which the kernel does not say are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, u64>,
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
    /// An element's native code.
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
    /// Why some of them have nothing to do, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
    /// Packets in queues of the chain.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queued: u64,
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
    /// Answers to what translators allocate that have it, before any class.
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

/// Answers to what a translator allocates.
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

/// What was taken over of another run's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateImported {
    /// Elements that have state from it.
    pub elements: usize,
    /// Flows in it that go on.
    pub flows: usize,
    /// Flows in it whose directions come to different workers, so that none could have them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

/// How many workers there are, and what it took to have so many.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkersAnswer {
    /// How many take packets.
    pub workers: usize,
    /// How many there can be.
    pub most: usize,
    /// Why some of them have nothing to do, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What moved.
    #[serde(flatten)]
    pub moved: Moved,
}

/// What scales a run, and what it decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingAnswer {
    /// The policy.
    pub policy: String,
    /// Seconds since the run began.
    pub seconds: f64,
    /// How many workers take packets.
    pub workers: usize,
    /// How many there can be.
    pub most: usize,
    /// Decisions that there is something to tell of, in their order; the last 1,000 are kept.
    pub decisions: Vec<ScalingDecision>,
}

/// What a policy decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScalingDecision {
    /// Seconds since the run began.
    pub seconds: f64,
    /// How many workers took packets.
    pub workers: usize,
    /// The sum of their loads: 1 is a core that is busy all the time.
    pub load: f64,
    /// Why it was decided.
    pub why: Vec<String>,
    /// What was ordered.
    pub orders: Vec<String>,
    /// Groups of flows that moved.
    pub groups: usize,
    /// The longest that packets of a group waited, in milliseconds.
    pub waited_ms: f64,
    /// Why orders failed.
    pub failed: Vec<String>,
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
    /// How many were traced up to this one.
    pub number: u64,
    /// The worker that had it.
    pub worker: u32,
    /// When it was met first, in nanoseconds since 1970.
    pub time: Option<u64>,
    /// Whether its programs would have done the same; nothing if none was asked.
    pub agrees: Option<bool>,
    /// Why it was not traced to its end, if it was not.
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

/// What a trace came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TraceEnd {
    /// Packets that were traced.
    pub followed: u64,
    /// Why the instance ended it, if it did.
    pub ended: Option<String>,
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// The kind of error, a name that does not change ([`crate::Error::code`]).
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
