//! Suppressor.

use ir::{Model, Op, Reason};
use net::{Batch, Packet};

use crate::argument::parse_value;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, NamedHandler};

element! {
    /// Suppressor() -- passes or stops each of several flows
    ///
    /// Packets of input i go to output i, unless that flow is suppressed: then packets pushed
    /// are dropped, and none can be pulled.
    ///
    /// = HANDLERS
    ///
    /// active0 ... activen (read, write): whether a flow passes; all do at first.
    /// reset (write): lets all flows pass.
    ///
    /// = SEE ALSO
    ///
    /// Switch, Idle
    Suppressor {
        category: Queue, ports: "1-/=", processing: "a/a",
        flow: "#/#",
        samples: [("", 1, 1), ("", 3, 3)]
    }
}

/// See [`Suppressor::CLASS`].
pub(crate) struct Suppressor {
    active: Vec<bool>,
}

/// The input is suppressed.
const SUPPRESSED: Reason = Reason("suppressed");

impl Suppressor {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = cx.inputs();
        cx.arguments(&[]).finish()?;
        Ok(Self { active: vec![true; inputs] })
    }

    fn port(name: &str) -> usize {
        name.strip_prefix("active").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)
    }
}

impl Element for Suppressor {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if !self.active[port] {
            batch.drain().for_each(|packet| cx.drop(packet, SUPPRESSED));
        } else if port > 0 {
            cx.emit_all(port, batch);
        }
    }

    fn pull(&mut self, port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        if self.active[port] { cx.pull(port) } else { None }
    }

    fn model(&self) -> Model {
        let block = |(port, active): (usize, &bool)| match active {
            true => vec![Op::emit(port)],
            false => vec![Op::Drop(SUPPRESSED)],
        };
        let inputs = self.active.iter().enumerate().map(block).collect();
        Model { inputs, ..Model::default() }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::write("reset")] }
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        let name = |i| NamedHandler { name: format!("active{i}"), read: true, write: true };
        (0..self.active.len()).map(name).collect()
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let active = self.active.get(Self::port(handler)).ok_or("no such port")?;
        Ok(active.to_string())
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match self.active.get_mut(Self::port(handler)) {
            Some(active) => *active = parse_value(value)?,
            None => self.active.fill(true),
        }
        Ok(())
    }
}
