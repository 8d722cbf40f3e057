//! Stride scheduling (C. Waldspurger and W. Weihl, 1995) of ports by tickets, for StrideSched and
//! StrideSwitch.

use ir::Diagnostic;

use crate::argument::{FromArgument, parse_value};
use crate::configure::{Configure, Failed};
use crate::element::{Handler, NamedHandler};
use crate::names::Names;

/// Ports in the order of their turns.
pub(crate) struct Stride {
    clients: Vec<Client>,
    /// Ports with tickets, by pass.
    order: Vec<usize>,
    /// Ports that had their turn; empty but in [`Stride::turn`].
    done: Vec<usize>,
}

struct Client {
    tickets: u32,
    /// Compared by difference: it wraps around.
    pass: u32,
}

/// The stride of a port with one ticket.
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

impl Client {
    fn stride(&self) -> u32 {
        STRIDE / self.tickets.max(1)
    }

    fn advance(&mut self) {
        self.pass = self.pass.wrapping_add(self.stride());
    }
}

impl Stride {
    /// Takes a number of tickets for each of `ports` ports, which are called `kind`s.
    pub(crate) fn configure(
        cx: &mut Configure<'_>,
        ports: usize,
        kind: &str,
    ) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[]);
        let given = arguments.rest();
        let tickets = given.iter().map(|a| arguments.parse("TICKETS", a).unwrap_or(Tickets(0)));
        let tickets: Vec<Tickets> = tickets.collect();
        if tickets.len() != ports {
            let span = arguments.cx().span();
            let message = format!(
                "{ports} numbers of tickets are needed, one for each {kind}, not {}",
                tickets.len()
            );
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        let mut clients: Vec<Client> =
            tickets.iter().map(|t| Client { tickets: t.0, pass: 0 }).collect();
        clients.iter_mut().for_each(Client::advance);
        let mut stride = Self { clients, order: Vec::new(), done: Vec::new() };
        // In reverse, so that of ports with the same pass the first goes first.
        for port in (0..ports).rev().filter(|&i| tickets[i].0 > 0) {
            stride.insert(port);
        }
        Ok(stride)
    }

    /// Ports with tickets, the one whose turn it is first.
    #[inline]
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The stride of each port.
    pub(crate) fn strides(&self) -> impl Iterator<Item = u32> {
        self.clients.iter().map(Client::stride)
    }

    /// The pass of each port.
    pub(crate) fn passes(&self) -> impl Iterator<Item = u32> {
        self.clients.iter().map(|c| c.pass)
    }

    /// Takes over order and passes, if they fit the tickets.
    pub(crate) fn restore(&mut self, order: &[u128], passes: &[u128]) {
        let order: Vec<usize> = order.iter().filter_map(|&o| usize::try_from(o).ok()).collect();
        let sorted = |order: &[usize]| {
            let mut order = order.to_vec();
            order.sort_unstable();
            order
        };
        if sorted(&order) == sorted(&self.order) && passes.len() == self.clients.len() {
            self.order = order;
            self.clients.iter_mut().zip(passes).for_each(|(c, &pass)| c.pass = pass as u32);
        }
    }

    /// The first `n` in the order had their turn: they go back to where their new pass belongs.
    #[inline]
    pub(crate) fn turn(&mut self, n: usize) {
        let mut done = std::mem::take(&mut self.done);
        done.extend(self.order.drain(..n));
        for port in done.drain(..) {
            self.clients[port].advance();
            self.insert(port);
        }
        self.done = done;
    }

    /// Puts a port into the order, before those of the same pass.
    fn insert(&mut self, port: usize) {
        let pass = self.clients[port].pass;
        let later = |other: &usize| self.clients[*other].pass.wrapping_sub(pass) as i32 >= 0;
        let at = self.order.iter().position(later).unwrap_or(self.order.len());
        self.order.insert(at, port);
    }

    pub(crate) const HANDLERS: &'static [Handler] = &[Handler::read("tickets")];

    pub(crate) fn named_handlers(&self) -> Vec<NamedHandler> {
        let name = |i| NamedHandler { name: format!("tickets{i}"), read: true, write: true };
        (0..self.clients.len()).map(name).collect()
    }

    fn port(handler: &str) -> usize {
        handler.strip_prefix("tickets").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX)
    }

    /// Reads a handler: the tickets of one port or of all.
    pub(crate) fn read(&self, handler: &str) -> String {
        let tickets = |i: &Client| i.tickets.to_string();
        match self.clients.get(Self::port(handler)) {
            Some(client) => tickets(client),
            None => self.clients.iter().map(tickets).collect::<Vec<_>>().join(", "),
        }
    }

    /// Writes a handler: the tickets of one port.
    pub(crate) fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        let Tickets(tickets) = parse_value(value)?;
        let port = Self::port(handler);
        let first = self.order.first().map(|&i| self.clients[i].pass);
        let client = self.clients.get_mut(port).ok_or("no such port")?;
        let had = std::mem::replace(&mut client.tickets, tickets);
        if tickets == 0 {
            self.order.retain(|&i| i != port);
        } else if had == 0 {
            client.pass = first.unwrap_or(0).wrapping_add(STRIDE / tickets);
            self.insert(port);
        }
        Ok(())
    }
}
