//! CoDelQueue.

use ir::Model;
use net::{Batch, Packet};

use super::managed::{EARLY, FULL, Managed, RESET};
use crate::argument::{Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::rate::show_real;

element! {
    /// CoDelQueue([CAPACITY, KEYWORDS]) -- stores packets in a queue that keeps their delay low
    ///
    /// A first-in first-out queue with controlled delay (RFC 8289). When packets wait longer than TARGET for
    /// a whole INTERVAL, packets are dropped as they are pulled, or marked: first one, and then more and more
    /// often, until a packet waited for less. Packets of IPv4 and IPv6 with their header marked that are
    /// ECN-capable (RFC 3168) are marked; others go to output 1, or are dropped if that is not connected. So
    /// are new packets when CAPACITY wait; the default is 1000.
    ///
    /// = KEYWORDS
    ///
    /// TARGET (time, default 5ms): the delay that is accepted.
    /// INTERVAL (time, default 100ms): how long it may be exceeded: about a round-trip time.
    /// MTU (number, default 1514): with no more bytes in the queue, nothing is dropped.
    /// ECN (bool, default true): whether packets are marked.
    ///
    /// = HANDLERS
    ///
    /// length, byte_length, highwater_length (read): packets and bytes that wait; the most that waited.
    /// capacity (read, write): most that may wait.
    /// target, interval (read, write): the keywords, in seconds.
    /// drops, marks (read): packets that were dropped, or marked, for their delay.
    /// full (read): packets for which there was no room.
    /// reset_counts (write): resets these counts.
    /// reset (write): empties the queue; its packets go to output 1 or are dropped.
    ///
    /// = EXAMPLE
    ///
    /// ... -> CoDelQueue(2000, TARGET 10ms) -> BandwidthRatedUnqueue(12MBps) -> ...
    ///
    /// = SEE ALSO
    ///
    /// REDQueue, Queue, BandwidthRatedUnqueue
    CoDelQueue { category: Queue, ports: "1/1-2", processing: "h/lh", samples: [] }
}

/// See [`CoDelQueue::CLASS`].
pub(crate) struct CoDelQueue {
    queue: Managed,
    control: Control,
}

/// The state of RFC 8289, 5.3: times in nanoseconds.
#[derive(Debug)]
struct Control {
    target: u64,
    interval: u64,
    mtu: usize,
    /// When the delay will have been too long for an interval; 0 while it is not.
    first_above: u64,
    /// When the next packet is dropped.
    drop_next: u64,
    /// Drops since dropping began, and when it last did.
    count: u32,
    last_count: u32,
    is_dropping: bool,
}

impl Control {
    fn new(target: u64, interval: u64, mtu: usize) -> Self {
        let (first_above, drop_next, count, last_count) = (0, 0, 0, 0);
        Self {
            target,
            interval,
            mtu,
            first_above,
            drop_next,
            count,
            last_count,
            is_dropping: false,
        }
    }

    /// When the next drop follows one at `from`.
    fn after(&self, from: u64) -> u64 {
        from.saturating_add((self.interval as f64 / f64::from(self.count.max(1)).sqrt()) as u64)
    }

    /// Takes the next packet, and says whether it may be dropped.
    fn take(&mut self, queue: &mut Managed, now: u64) -> (Option<Packet>, bool) {
        let Some((packet, came)) = queue.pop() else {
            self.first_above = 0;
            return (None, false);
        };
        let mut may_drop = false;
        if now.saturating_sub(came) < self.target || queue.bytes <= self.mtu {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now.saturating_add(self.interval);
        } else if now >= self.first_above {
            may_drop = true;
        }
        (Some(packet), may_drop)
    }

    /// The next packet to be sent. Others are handed to `drop`.
    fn next(
        &mut self,
        queue: &mut Managed,
        now: u64,
        mut drop: impl FnMut(Packet),
    ) -> Option<Packet> {
        let (mut packet, may_drop) = self.take(queue, now);
        if self.is_dropping {
            self.is_dropping = may_drop;
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let mut at_fault = packet?;
                if queue.mark(&mut at_fault) {
                    self.drop_next = self.after(self.drop_next);
                    return Some(at_fault);
                }
                drop(at_fault);
                (packet, self.is_dropping) = self.take(queue, now);
                if self.is_dropping {
                    self.drop_next = self.after(self.drop_next);
                }
            }
        } else if may_drop {
            let mut at_fault = packet?;
            // Soon after the last time, it goes on as often as it ended.
            let more = self.count.saturating_sub(self.last_count);
            let is_soon = now.saturating_sub(self.drop_next) < self.interval.saturating_mul(16);
            self.count = if more > 1 && is_soon { more } else { 1 };
            self.last_count = self.count;
            self.is_dropping = true;
            self.drop_next = self.after(now);
            if queue.mark(&mut at_fault) {
                return Some(at_fault);
            }
            drop(at_fault);
            (packet, _) = self.take(queue, now);
        }
        packet
    }
}

impl CoDelQueue {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["CAPACITY", "TARGET", "INTERVAL", "MTU", "ECN"]);
        let queue = Managed::of(&mut arguments);
        let target = arguments.keyword("TARGET").unwrap_or(Nanoseconds(5_000_000));
        let interval = arguments.keyword("INTERVAL").unwrap_or(Nanoseconds(100_000_000));
        let mtu = arguments.keyword("MTU").unwrap_or(1514);
        arguments.finish()?;
        Ok(Self { queue, control: Control::new(target.0, interval.0, mtu) })
    }
}

impl Element for CoDelQueue {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        for packet in batch.drain() {
            if let Err(packet) = self.queue.push(packet, now) {
                cx.reject(1, packet, FULL);
            }
        }
    }

    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let now = cx.now();
        self.control.next(&mut self.queue, now, |packet| cx.reject(1, packet, EARLY))
    }

    fn model(&self) -> Model {
        Model::opaque("stores packets")
    }

    fn held(&self) -> usize {
        self.queue.len()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.queue.iter().for_each(show);
    }

    fn has_packets(&self) -> Option<bool> {
        Some(self.queue.len() > 0)
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.queue.export(to);
    }

    fn import(&mut self, _: &str, from: &mut ElementState, now: u64) {
        self.queue.import(from, now);
    }

    fn parts_packets(&self) -> bool {
        true
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("length"),
                Handler::count("byte_length"),
                Handler::read("highwater_length"),
                Handler::both("capacity"),
                Handler::both("target"),
                Handler::both("interval"),
                Handler::count("drops"),
                Handler::count("marks"),
                Handler::count("full"),
                Handler::write("reset_counts"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let seconds = |time: u64| show_real(time as f64 / 1e9);
        Ok(match handler {
            "target" => seconds(self.control.target),
            "interval" => seconds(self.control.interval),
            _ => self.queue.read(handler).ok_or("there is no such handler")?,
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "target" => self.control.target = parse_value::<Nanoseconds>(value)?.0,
            "interval" => self.control.interval = parse_value::<Nanoseconds>(value)?.0,
            "capacity" => {
                self.queue.capacity = parse_value(value)?;
                while let Some(packet) = self.queue.excess() {
                    cx.drop(packet, FULL);
                }
            }
            "reset" => {
                while let Some((packet, _)) = self.queue.pop() {
                    cx.reject(1, packet, RESET);
                }
            }
            _ => self.queue.reset_counts(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use net::Pool;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Pushes a packet of 1,000 bytes each `arrival` and pulls one each `service`, in nanoseconds, until `end`. Gives
    /// the times of drops, and the longest wait in the last quarter.
    fn run(control: &mut Control, arrival: u64, service: u64, end: u64) -> (Vec<u64>, u64) {
        let (mut pool, mut queue) = (Pool::new(), Managed::new(1 << 20, false));
        let (mut comes, mut goes, mut drops, mut longest) = (0, service, Vec::new(), 0);
        while goes < end {
            if comes <= goes {
                let mut packet = pool.packet(&[0; 1000]);
                packet.set_timestamp(comes);
                assert!(queue.push(packet, comes).is_ok());
                comes += arrival;
                continue;
            }
            let sent = control.next(&mut queue, goes, |_| drops.push(goes));
            if let Some(packet) = sent.filter(|_| goes > end / 4 * 3) {
                longest = longest.max(goes - packet.timestamp());
            }
            goes += service;
        }
        assert_eq!(drops.len() as u64, queue.drops);
        (drops, longest)
    }

    /// The n-th drop comes INTERVAL / sqrt(n) after the one before (RFC 8289, 3.3), to the next time of service.
    #[test]
    fn drops_follow_the_control_law() {
        let mut control = Control::new(5 * MS, 100 * MS, 1514);
        let (drops, _) = run(&mut control, MS / 2, MS, 3000 * MS);
        // The queue exceeds the target when 10 packets wait, and an interval later it begins.
        assert!((100 * MS..120 * MS).contains(&drops[0]), "{}", drops[0]);
        let mut due = drops[0];
        for (&at, count) in drops.iter().zip(1..) {
            assert!((due..=due + MS).contains(&at), "drop {count} at {at}, due {due}");
            due += (100e6 / f64::from(count).sqrt()) as u64;
        }
        assert!(drops.len() > 200, "{}", drops.len());
    }

    #[test]
    fn a_load_that_fits_loses_nothing_and_a_burst_drains() {
        let mut control = Control::new(5 * MS, 100 * MS, 1514);
        assert_eq!(run(&mut control, MS, MS, 3000 * MS).0.len(), 0);
        // A burst that waits for longer than the target, but not for an interval.
        let (mut pool, mut queue) = (Pool::new(), Managed::new(100, false));
        (0..60).for_each(|_| assert!(queue.push(pool.packet(&[0; 1000]), 0).is_ok()));
        let sent =
            (1..=60).filter_map(|ms| control.next(&mut queue, ms * MS, |_| panic!("dropped")));
        assert_eq!(sent.count(), 60);
    }

    #[test]
    fn a_single_packet_is_never_dropped() {
        let mut control = Control::new(5 * MS, 100 * MS, 1514);
        let (mut pool, mut queue) = (Pool::new(), Managed::new(100, false));
        for ms in 0..2000 {
            assert!(queue.push(pool.packet(&[0; 1000]), ms * MS).is_ok());
            let later = (ms + 50) * MS;
            assert!(control.next(&mut queue, later, |_| panic!("dropped at {later}")).is_some());
        }
    }

    #[test]
    fn packets_that_can_be_marked_are_marked() {
        // 20 bytes of IPv4 with ECT(0), and with no ECN.
        let header = |tos| {
            let mut bytes = [0; 1000];
            bytes[..2].copy_from_slice(&[0x45, tos]);
            bytes
        };
        let (mut pool, mut queue) = (Pool::new(), Managed::new(1000, true));
        let mut control = Control::new(5 * MS, 100 * MS, 1514);
        for at in 0..600 {
            let mut packet = pool.packet(&header(if at % 2 == 0 { 2 } else { 0 }));
            packet.set_ip_header(0, 20);
            assert!(queue.push(packet, 0).is_ok());
        }
        let (mut marked, mut dropped) = (0, 0);
        for ms in 1..600 {
            let sent = control.next(&mut queue, ms * MS, |packet| {
                assert_eq!(packet.data()[1], 0, "one that could be marked is dropped");
                dropped += 1;
            });
            marked += sent.iter().filter(|packet| packet.data()[1] == 3).count();
        }
        assert!(marked > 0 && dropped > 0, "{marked} {dropped}");
        assert_eq!((marked as u64, dropped), (queue.marks, queue.drops));
    }
}
