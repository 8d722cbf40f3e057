//! What is compared: chains with the models of their elements.

use elements::element::HandlerCalls;
use ir::{Graph, Model, Store};

/// A chain with what its elements mean.
#[derive(Clone, Debug)]
pub struct Subjects {
    /// The chain.
    pub graph: Graph,
    /// Its elements' models, in the order of the graph.
    pub models: Vec<Model>,
    /// State at the beginning.
    pub state: Store,
    /// The handlers that its elements call by themselves; none where that does not matter.
    pub calls: Vec<HandlerCalls>,
    /// Whether its elements see nothing of packets but frames; none where that does not matter.
    pub frames_only: Vec<bool>,
    /// Whether packets that its elements make have no annotations; none where that does not matter.
    pub makes_bare: Vec<bool>,
    /// Where its elements were declared, in words; none where that does not matter.
    pub places: Vec<String>,
}
