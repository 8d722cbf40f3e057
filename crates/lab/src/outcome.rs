//! What can be seen of a chain: packets that left, counts by reason, declared state and handlers.

use dataplane::Router;
use ir::Port;
use net::{Batch, HEADROOM, Header, Packet};

use crate::chain::Started;

/// Bytes that are shown as digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Bytes(Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// All that can be seen of a packet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    data: Bytes,
    headers: [Option<isize>; 3],
    annotations: Vec<u8>,
    packet_type: u8,
    timestamp: u64,
}

impl Seen {
    /// All that can be seen of this one.
    pub fn of(packet: &Packet) -> Self {
        Self {
            data: Bytes(packet.data().to_vec()),
            headers: [Header::Mac, Header::Network, Header::Transport]
                .map(|header| packet.header_offset(header)),
            annotations: packet.annotations().bytes().to_vec(),
            packet_type: packet.packet_type() as u8,
            timestamp: packet.timestamp(),
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.data.0.clone()
    }

    /// Its bytes, as digits.
    pub fn digits(&self) -> String {
        format!("{:?}", self.data)
    }
}

/// Pushes frames, in one burst, into what comes behind an element.
pub fn feed(started: &mut Started, behind: &str, frames: &[Vec<u8>]) {
    let graph = &started.chain.graph;
    let node = graph.find(behind).expect("inputs are declared");
    let to = graph.successors(Port { node, port: 0 }).next().expect("inputs are connected");
    let mut batch = Batch::new();
    for frame in frames {
        // What lies before the data is zero, so that it is the same everywhere.
        let bytes = [&[0; HEADROOM], &frame[..]].concat();
        let mut packet = started.router.core().pool.packet(&bytes);
        packet.pull(HEADROOM);
        packet.set_header_offset(Header::Mac, 0);
        batch.push(packet);
    }
    started.router.push(to, batch);
}

/// Takes what a queue holds.
pub fn drain(started: &mut Started, queue: &str) -> Vec<Seen> {
    let node = started.chain.graph.find(queue).expect("queues are declared");
    let mut all = Vec::new();
    while let Some(packet) = started.router.pull(Port { node, port: 0 }) {
        all.push(Seen::of(&packet));
        started.router.core().pool.recycle(packet);
    }
    all
}

/// Counts by element and reason: dropped packets, their bytes, packets noted.
pub type Tallies = Vec<(String, String, u64, u64, u64)>;

/// What the elements counted by reason.
pub fn tallies(router: &mut Router) -> Tallies {
    let mut all = Vec::new();
    for (name, _, tally, _) in router.report() {
        let line = |l: &elements::context::Tallied| {
            (name.to_string(), l.reason.to_string(), l.dropped, l.dropped_bytes, l.noted)
        };
        all.extend(tally.lines().iter().map(line));
    }
    all.sort();
    all
}

/// Packets that came to each element and network function.
pub type Arrivals = Vec<(String, Option<u64>)>;

/// What came to the elements and network functions.
pub fn arrivals(router: &mut Router) -> Arrivals {
    let stats = router.stats();
    let elements = stats.elements.into_iter().map(|element| (element.name, element.packets));
    let functions = stats.functions.into_iter().map(|f| (f.name, Some(f.packets)));
    elements.chain(functions).collect()
}

/// The declared state. A flow whose time has come is as good as gone, whether or not anybody swept
/// it up.
pub fn state(router: &mut Router) -> ir::Store {
    let now = router.core().now;
    let mut state = ir::Store::new();
    for (owner, name, value) in router.state().iter() {
        let mut value = value.clone();
        if let ir::StateValue::Flows(flows) = &mut value {
            flows.expire(now);
        }
        state.set(owner, name, value);
    }
    state
}

/// The readable handlers of an element.
pub fn handlers(router: &mut Router, element: &str) -> Vec<(String, Result<String, String>)> {
    let all = router.handlers(element).expect("the element exists").into_iter();
    let readable = all.filter(|h| h.read && !is_measured(h.name));
    let names: Vec<String> = readable.map(|h| format!("{element}.{}", h.name)).collect();
    names.into_iter().map(|name| (name.clone(), router.read_handler(&name))).collect()
}

/// Rates are measured while packets pass; they are no part of what an element means.
fn is_measured(handler: &str) -> bool {
    handler.ends_with("rate")
}
