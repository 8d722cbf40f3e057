//! Witnesses of a difference between two chains: packets at their sources, run through both.
//!
//! Models say what to try; only chains that run say what differs. A sequence of packets is a witness
//! once both chains, run from their first state on with the elements' native code, emit something
//! else.

use ir::NodeId;

/// A packet that comes to a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The source in each of the chains; none where a chain lacks it.
    pub at: [Option<NodeId>; 2],
    /// The frame.
    pub frame: Vec<u8>,
    /// When it comes, in nanoseconds of the worker's clock.
    pub now: u64,
}

/// A packet that left a chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sent {
    /// The device or file.
    pub sink: String,
    /// The packet.
    pub frame: Vec<u8>,
    /// How many packets had come by then.
    pub after: usize,
}

/// What became of packets in a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// What left the chain, in order.
    pub sent: Vec<Sent>,
    /// Elements that dropped packets after the last one had come, and why.
    pub dropped: Vec<(String, String)>,
}

/// Packets at sources after which two chains emit something else.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What comes in.
    pub sequence: Vec<Incoming>,
    /// What becomes of it in each of the chains.
    pub left: [Left; 2],
}

impl Shown {
    /// What leaves one of the chains and not the other, of each.
    pub fn only(&self) -> [Vec<&Sent>; 2] {
        let same = |a: &Sent, b: &Sent| (&a.sink, &a.frame) == (&b.sink, &b.frame);
        [0, 1].map(|side: usize| {
            let mut others: Vec<&Sent> = self.left[1 - side].sent.iter().collect();
            let mut only: Vec<&Sent> = Vec::new();
            for sent in &self.left[side].sent {
                match others.iter().position(|other| same(sent, other)) {
                    Some(at) => drop(others.remove(at)),
                    None => only.push(sent),
                }
            }
            only
        })
    }
}

/// Runs two chains.
pub trait Replay: Send {
    /// Whether a source's packets come from outside, and not from its configuration.
    fn is_fed(&self, side: usize, source: NodeId) -> bool;

    /// Runs both chains, from their first state on, with these packets. What leaves them, if that
    /// differs whatever random choices they make.
    fn difference(&mut self, sequence: &[Incoming]) -> Option<[Left; 2]>;
}
