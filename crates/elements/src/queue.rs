//! Queue and its kin: where pushing ends and pulling begins.

use std::collections::VecDeque;

use ir::{Model, Reason};
use net::{Batch, Packet};

use crate::argument::parse_value;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};

element! {
    /// Queue([CAPACITY]) -- stores packets in a first-in first-out queue
    ///
    /// Packets that are pushed in wait until they are pulled out. When CAPACITY packets wait,
    /// a new one is dropped. The default CAPACITY is 1000.
    ///
    /// = HANDLERS
    ///
    /// length (read): packets that wait.
    /// highwater_length (read): the most that ever waited.
    /// capacity (read, write): most that may wait.
    /// drops (read): packets dropped.
    /// reset_counts (write): resets drops and highwater_length.
    /// reset (write): drops all packets that wait.
    ///
    /// = SEE ALSO
    ///
    /// SimpleQueue, ThreadSafeQueue, FrontDropQueue, Unqueue
    Queue {
        ports: "1/1", processing: "h/l",
        samples: []
    }
}

/// See [`Queue::CLASS`].
pub(crate) struct Queue {
    packets: VecDeque<Packet>,
    capacity: usize,
    highwater: usize,
    drops: u64,
}

/// The queue was full.
const FULL: Reason = Reason("queue-full");

impl Queue {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["CAPACITY"]);
        let capacity = arguments.optional("CAPACITY").unwrap_or(1000usize);
        arguments.finish()?;
        // A packet takes a slot when it comes, so a huge capacity costs nothing until used.
        let packets = VecDeque::with_capacity(capacity.min(1 << 16));
        Ok(Self { packets, capacity, highwater: 0, drops: 0 })
    }
}

impl Element for Queue {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.drain() {
            if self.packets.len() < self.capacity {
                self.packets.push_back(packet);
            } else {
                self.drops += 1;
                cx.drop(packet, FULL);
            }
        }
        self.highwater = self.highwater.max(self.packets.len());
    }

    fn pull(&mut self, _port: usize, _cx: &mut Context<'_>) -> Option<Packet> {
        self.packets.pop_front()
    }

    fn model(&self) -> Model {
        Model::opaque("stores packets")
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("length"),
                Handler::read("highwater_length"),
                Handler::both("capacity"),
                Handler::read("drops"),
                Handler::write("reset_counts"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "length" => self.packets.len().to_string(),
            "highwater_length" => self.highwater.to_string(),
            "capacity" => self.capacity.to_string(),
            _ => self.drops.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "capacity" => self.capacity = parse_value(value)?,
            "reset" => {
                for packet in self.packets.drain(..) {
                    self.drops += 1;
                    cx.drop(packet, FULL);
                }
            }
            _ => (self.drops, self.highwater) = (0, self.packets.len()),
        }
        Ok(())
    }
}
