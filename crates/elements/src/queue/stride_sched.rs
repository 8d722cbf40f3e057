//! StrideSched.

use ir::Model;
use net::Packet;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, NamedHandler};
use crate::queue::stride::Stride;

element! {
    /// StrideSched(TICKETS0, ..., TICKETSn) -- pulls from its inputs in proportion to tickets
    ///
    /// Schedules its inputs by strides (C. Waldspurger and W. Weihl, 1995): an input with twice
    /// the tickets of another is pulled from twice as often. There is one argument for each
    /// input; an input with 0 tickets is never pulled from. Tickets are at most 32768.
    ///
    /// = HANDLERS
    ///
    /// tickets0 ... ticketsn (read, write): the tickets of an input.
    /// tickets (read): the tickets of all inputs.
    ///
    /// = SEE ALSO
    ///
    /// StrideSwitch, RoundRobinSched, PrioSched, DRRSched
    StrideSched {
        category: Queue, ports: "1-/1", processing: "l/l",
        samples: []
    }
}

/// See [`StrideSched::CLASS`].
pub(crate) struct StrideSched {
    stride: Stride,
}

impl StrideSched {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = cx.inputs();
        Ok(Self { stride: Stride::configure(cx, inputs, "input")? })
    }
}

impl Element for StrideSched {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let (mut pulled, mut asked) = (None, 0);
        while pulled.is_none() && asked < self.stride.order().len() {
            pulled = cx.pull(self.stride.order()[asked]);
            asked += 1;
        }
        self.stride.turn(asked);
        pulled
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }

    fn handlers(&self) -> &'static [Handler] {
        Stride::HANDLERS
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        self.stride.named_handlers()
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.stride.read(handler))
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.stride.write(handler, value)
    }
}
