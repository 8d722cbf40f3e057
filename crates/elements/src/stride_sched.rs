//! StrideSched.

use ir::Model;
use net::{Batch, Packet};

use crate::argument::{FromArgument, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, NamedHandler};
use crate::names::Names;

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
    /// RoundRobinSched, PrioSched, DRRSched
    StrideSched {
        ports: "1-/1", processing: "l/l",
        samples: []
    }
}

/// See [`StrideSched::CLASS`].
pub(crate) struct StrideSched {
    inputs: Vec<Input>,
    /// Inputs with tickets, by pass.
    order: Vec<usize>,
    /// Inputs that a pull has asked; empty between pulls.
    asked: Vec<usize>,
}

struct Input {
    tickets: u32,
    /// Compared by difference: it wraps around.
    pass: u32,
}

/// The stride of an input with one ticket.
const STRIDE: u32 = 1 << 16;
const MAX_TICKETS: u32 = 1 << 15;

#[derive(Clone, Copy, Debug, Default)]
struct Tickets(u32);

impl FromArgument for Tickets {
    const EXPECTED: &'static str = "a number of tickets from 0 to 32768";

    fn from_argument(
        argument: &click::config::Argument,
        names: &Names,
        element: &str,
    ) -> Result<Self, String> {
        match u32::from_argument(argument, names, element)? {
            tickets if tickets <= MAX_TICKETS => Ok(Self(tickets)),
            _ => Err(format!("'{}' is not {}", argument.text, Self::EXPECTED)),
        }
    }
}

impl Input {
    fn stride(&mut self) {
        self.pass = self.pass.wrapping_add(STRIDE / self.tickets.max(1));
    }
}

impl StrideSched {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = cx.inputs();
        let mut arguments = cx.arguments(&[]);
        let given = arguments.rest();
        let tickets = given.iter().map(|a| arguments.parse("TICKETS", a).unwrap_or(Tickets(0)));
        let tickets: Vec<Tickets> = tickets.collect();
        if tickets.len() != inputs {
            let span = arguments.cx().span();
            let message = format!(
                "{inputs} numbers of tickets are needed, one for each input, not {}",
                tickets.len()
            );
            arguments.report(ir::Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        let mut inputs: Vec<Input> =
            tickets.iter().map(|t| Input { tickets: t.0, pass: 0 }).collect();
        inputs.iter_mut().for_each(Input::stride);
        let mut sched = Self { inputs, order: Vec::new(), asked: Vec::new() };
        // In reverse, so that of inputs with the same pass the first goes first.
        for input in (0..sched.inputs.len()).rev().filter(|&i| tickets[i].0 > 0) {
            sched.insert(input);
        }
        Ok(sched)
    }

    /// Puts an input into the order, before those of the same pass.
    fn insert(&mut self, input: usize) {
        let pass = self.inputs[input].pass;
        let before = |other: &usize| (self.inputs[*other].pass.wrapping_sub(pass) as i32) < 0;
        let at = self.order.partition_point(before);
        self.order.insert(at, input);
    }

    fn port(name: &str) -> usize {
        name.strip_prefix("tickets").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)
    }
}

impl Element for StrideSched {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.emit_all(0, batch);
    }

    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let mut pulled = None;
        while pulled.is_none() && self.asked.len() < self.order.len() {
            let input = self.order[self.asked.len()];
            pulled = cx.pull(input);
            self.inputs[input].stride();
            self.asked.push(input);
        }
        // Those that were asked go back to where their new pass belongs.
        self.order.drain(..self.asked.len());
        for i in 0..self.asked.len() {
            self.insert(self.asked[i]);
        }
        self.asked.clear();
        pulled
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("tickets")] }
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        let name = |i| NamedHandler { name: format!("tickets{i}"), read: true, write: true };
        (0..self.inputs.len()).map(name).collect()
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let tickets = |i: &Input| i.tickets.to_string();
        match self.inputs.get(Self::port(handler)) {
            Some(input) => Ok(tickets(input)),
            None => Ok(self.inputs.iter().map(tickets).collect::<Vec<_>>().join(", ")),
        }
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        let Tickets(tickets) = parse_value(value)?;
        let port = Self::port(handler);
        let first = self.order.first().map(|&i| self.inputs[i].pass);
        let input = self.inputs.get_mut(port).ok_or("no such input")?;
        let had = std::mem::replace(&mut input.tickets, tickets);
        if tickets == 0 {
            self.order.retain(|&i| i != port);
        } else if had == 0 {
            input.pass = first.unwrap_or(0).wrapping_add(STRIDE / tickets);
            self.insert(port);
        }
        Ok(())
    }
}
