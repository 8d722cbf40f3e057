//! Queue and its kin: where pushing ends and pulling begins.

use std::collections::VecDeque;

use ir::{Model, Reason};
use net::{Batch, Packet};

use crate::argument::parse_value;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;

element! {
    /// Queue([CAPACITY]) -- stores packets in a first-in first-out queue
    ///
    /// Packets that are pushed in wait until they are pulled out. When CAPACITY packets wait,
    /// a new one goes to output 1, or is dropped if that is not connected. The default CAPACITY
    /// is 1000. Sources that go as fast as they can, such as InfiniteSource, rest while it is full;
    /// those that follow a clock or a file go on, and packets are dropped.
    ///
    /// = HANDLERS
    ///
    /// length (read): packets that wait.
    /// highwater_length (read): the most that ever waited.
    /// capacity (read, write): most that may wait.
    /// drops (read): packets for which there was no room.
    /// reset_counts (write): resets drops and highwater_length.
    /// reset (write): empties the queue; its packets go to output 1 or are dropped.
    ///
    /// = SEE ALSO
    ///
    /// SimpleQueue, ThreadSafeQueue, FrontDropQueue, Unqueue
    Queue {
        category: Queue, ports: "1/1-2", processing: "h/lh",
        samples: []
    }
}

/// See [`Queue::CLASS`].
pub(crate) struct Queue {
    packets: VecDeque<Packet>,
    capacity: usize,
    kind: Kind,
    highwater: usize,
    drops: u64,
}

/// What a queue does when it is full.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The newest packet has to go; sources that wait for room stop.
    Notifies,
    /// The newest packet has to go.
    DropsNewest,
    /// The oldest packet has to go.
    DropsOldest,
}

/// The queue is full.
const FULL: Reason = Reason("queue-full");
/// The packet was in a queue when the handler `reset` was written.
const RESET: Reason = Reason("queue-reset");

/// Packets for which room is made in advance; a queue that grows beyond grows by doubling.
const INITIAL_ROOM: usize = 1 << 12;

impl Queue {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Self::of_kind(cx, Kind::Notifies)
    }

    fn of_kind(cx: &mut Configure<'_>, kind: Kind) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["CAPACITY"]);
        let capacity = arguments.optional("CAPACITY").unwrap_or(1000usize);
        // What packets take besides comes with them.
        arguments.claim("CAPACITY", (capacity as u64).saturating_mul(size_of::<Packet>() as u64));
        arguments.finish()?;
        let packets = VecDeque::with_capacity(capacity.min(INITIAL_ROOM));
        Ok(Self { packets, capacity, kind, highwater: 0, drops: 0 })
    }

    /// Drops what the capacity has no room for any more.
    fn excess(&mut self) -> impl Iterator<Item = Packet> {
        std::iter::from_fn(|| match (self.packets.len() > self.capacity, self.kind) {
            (false, _) => None,
            (true, Kind::Notifies | Kind::DropsNewest) => self.packets.pop_back(),
            (true, Kind::DropsOldest) => self.packets.pop_front(),
        })
    }

    #[cold]
    fn overflow(&mut self, newest: Packet, cx: &mut Context<'_>) {
        self.drops += 1;
        let victim = match self.kind {
            Kind::DropsOldest => self.packets.pop_front(),
            Kind::Notifies | Kind::DropsNewest => None,
        };
        match victim {
            Some(oldest) => {
                self.packets.push_back(newest);
                cx.reject(1, oldest, FULL);
            }
            None => cx.reject(1, newest, FULL),
        }
    }
}

impl Element for Queue {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.drain() {
            if self.packets.len() < self.capacity {
                self.packets.push_back(packet);
            } else {
                self.overflow(packet, cx);
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

    fn sees_frames_only(&self) -> bool {
        true
    }

    fn held(&self) -> usize {
        self.packets.len()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.packets.iter().for_each(show);
    }

    fn has_room(&self) -> Option<bool> {
        (self.kind == Kind::Notifies).then_some(self.packets.len() < self.capacity)
    }

    fn has_packets(&self) -> Option<bool> {
        Some(!self.packets.is_empty())
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_copy() {
            return;
        }
        let of_group = |packet: &Packet| to.group().is_none_or(|group| packet.group() == group);
        let all = std::mem::take(&mut self.packets);
        let (packets, others): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(of_group);
        (to.packets, self.packets) = (packets.into(), others);
        if to.is_all() {
            to.numbers = vec![self.drops, self.highwater as u64];
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        if let Some([drops, highwater]) = from.counts() {
            (self.drops, self.highwater) = (drops, highwater as usize);
        }
        self.packets.extend(from.packets.drain(..));
        from.refused.extend(self.excess().map(|packet| (packet, FULL)));
        self.highwater = self.highwater.max(self.packets.len());
    }

    fn parts_packets(&self) -> bool {
        true
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("length"),
                Handler::read("highwater_length"),
                Handler::both("capacity"),
                Handler::count("drops"),
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
            "capacity" => {
                self.capacity = parse_value(value)?;
                self.excess().for_each(|packet| cx.drop(packet, FULL));
            }
            "reset" => self.packets.drain(..).for_each(|packet| cx.reject(1, packet, RESET)),
            _ => (self.drops, self.highwater) = (0, self.packets.len()),
        }
        Ok(())
    }
}

/// Declares a class whose elements are a [`Queue`].
macro_rules! queue {
    ($name:ident, $kind:ident, $($manual:literal)+) => {
        /// A class of [`Queue`] elements.
        pub(crate) struct $name;

        element! {
            $(#[doc = $manual])+
            $name { category: Queue, ports: "1/1-2", processing: "h/lh", samples: [] }
        }

        impl $name {
            fn configure(cx: &mut Configure<'_>) -> Result<Queue, Failed> {
                Queue::of_kind(cx, Kind::$kind)
            }
        }
    };
}

queue!(SimpleQueue, DropsNewest,
    "SimpleQueue([CAPACITY]) -- stores packets in a first-in first-out queue"
    ""
    "Like Queue, but sources do not wait for room in it: they go on, and it drops."
    ""
    "= SEE ALSO"
    ""
    "Queue");
queue!(NotifierQueue, DropsNewest,
    "NotifierQueue([CAPACITY]) -- stores packets in a first-in first-out queue"
    ""
    "The same as SimpleQueue."
    ""
    "= SEE ALSO"
    ""
    "Queue");
queue!(FullNoteQueue, Notifies,
    "FullNoteQueue([CAPACITY]) -- stores packets in a first-in first-out queue"
    ""
    "The same as Queue."
    ""
    "= SEE ALSO"
    ""
    "Queue");
queue!(QuickNoteQueue, Notifies,
    "QuickNoteQueue([CAPACITY]) -- stores packets in a first-in first-out queue"
    ""
    "The same as Queue."
    ""
    "= SEE ALSO"
    ""
    "Queue");
queue!(ThreadSafeQueue, Notifies,
    "ThreadSafeQueue([CAPACITY]) -- stores packets in a first-in first-out queue"
    ""
    "The same as Queue: a chain and all its queues belong to one worker."
    ""
    "= SEE ALSO"
    ""
    "Queue");
queue!(FrontDropQueue, DropsOldest,
    "FrontDropQueue([CAPACITY]) -- stores packets in a queue that drops the oldest"
    ""
    "Like Queue, but when CAPACITY packets wait and another comes, the one that has waited"
    "longest goes to output 1, or is dropped if that is not connected. Sources do not wait for room."
    ""
    "= SEE ALSO"
    ""
    "Queue");
