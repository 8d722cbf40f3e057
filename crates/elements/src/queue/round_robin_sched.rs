//! RoundRobinSched and PrioSched: which input is pulled next.

use ir::Model;
use net::Packet;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;

element! {
    /// RoundRobinSched([KEYWORD MAX]) -- pulls from its inputs in turn
    ///
    /// A pull takes a packet from the input after the one that the last packet came from, or from
    /// the next that has one.
    ///
    /// = KEYWORDS
    ///
    /// MAX (number, default 0): inputs that take part; 0 means all.
    ///
    /// = SEE ALSO
    ///
    /// PrioSched, StrideSched, DRRSched
    RoundRobinSched {
        category: Queue, ports: "-/1", processing: "l/l",
        samples: []
    }
}

/// See [`RoundRobinSched::CLASS`].
pub(crate) struct RoundRobinSched {
    inputs: usize,
    next: usize,
}

impl RoundRobinSched {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = cx.inputs();
        let mut arguments = cx.arguments(&["MAX"]);
        let inputs = match arguments.keyword("MAX").unwrap_or(0usize) {
            0 => inputs,
            max => max.min(inputs),
        };
        arguments.finish()?;
        Ok(Self { inputs, next: 0 })
    }
}

impl Element for RoundRobinSched {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        for _ in 0..self.inputs {
            let input = self.next;
            self.next = if input + 1 < self.inputs { input + 1 } else { 0 };
            if let Some(packet) = cx.pull(input) {
                return Some(packet);
            }
        }
        None
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }
}

/// Another name.
pub(crate) struct RRSched;

element! {
    /// RRSched([KEYWORD MAX]) -- pulls from its inputs in turn
    ///
    /// Another name of RoundRobinSched.
    ///
    /// = SEE ALSO
    ///
    /// RoundRobinSched
    RRSched {
        category: Queue, ports: "-/1", processing: "l/l",
        samples: []
    }
}

impl RRSched {
    fn configure(cx: &mut Configure<'_>) -> Result<RoundRobinSched, Failed> {
        RoundRobinSched::configure(cx)
    }
}

element! {
    /// PrioSched() -- pulls from the first of its inputs that has a packet
    ///
    /// Input 0 has the highest priority.
    ///
    /// = SEE ALSO
    ///
    /// RoundRobinSched, StrideSched, DRRSched
    PrioSched {
        category: Queue, ports: "-/1", processing: "l/l",
        samples: []
    }
}

/// See [`PrioSched::CLASS`].
pub(crate) struct PrioSched {
    inputs: usize,
}

impl PrioSched {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = cx.inputs();
        cx.arguments(&[]).finish()?;
        Ok(Self { inputs })
    }
}

impl Element for PrioSched {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        (0..self.inputs).find_map(|input| cx.pull(input))
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }
}

/// Another name.
pub(crate) struct SimplePrioSched;

element! {
    /// SimplePrioSched() -- pulls from the first of its inputs that has a packet
    ///
    /// Another name of PrioSched.
    ///
    /// = SEE ALSO
    ///
    /// PrioSched
    SimplePrioSched {
        category: Queue, ports: "-/1", processing: "l/l",
        samples: []
    }
}

impl SimplePrioSched {
    fn configure(cx: &mut Configure<'_>) -> Result<PrioSched, Failed> {
        PrioSched::configure(cx)
    }
}
