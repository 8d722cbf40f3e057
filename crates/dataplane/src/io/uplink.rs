//! An interface behind a device that hands packets to cores: it brings frames of several wires, and takes frames for
//! them. In front of all else, a frame has an 802.1ad tag. Coming in, its VLAN ID says where the device
//! stopped; going out, it is the device's port that the frame is for.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use elements::device::{Device, Event, OwnedPorts, Received, Wake};
use ir::Reason;
use net::{Batch, Packet, Pool};

use super::interface::InterfaceSpec;
use super::netdev::Asker;
use crate::thread_owned::{ThreadOwned, keep};

/// TPID and TCI (IEEE 802.1Q §9.5).
const TAG: usize = 4;
const SERVICE_TAG: [u8; 2] = [0x88, 0xa8];
/// Where the tag stands: behind the addresses.
const AT: usize = 12;

/// No tag, or one that the device does not set.
const UNKNOWN_TAG: Reason = Reason("unknown-tag");

/// A wire that an interface brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The device's port: the VLAN ID of what is sent.
    pub port: u16,
    /// VLAN IDs of what comes in; empty if another wire's stand for it, too.
    pub tags: Range<u16>,
}

/// A wire behind an interface.
#[derive(Clone, Debug)]
pub struct Uplink {
    /// The interface.
    pub interface: InterfaceSpec,
    /// All wires that it brings.
    pub wires: Arc<[Wire]>,
    /// Which of them it is.
    pub wire: usize,
}

/// The wires that a device brings, which may be no interface: by number, and by whether an element receives from it, what the element
/// holds of a wire. The calling thread keeps the device from now on, as workers do.
pub fn wires_behind(
    device: Box<dyn Device + Send>,
    wires: Arc<[Wire]>,
) -> impl Fn(usize, bool) -> Box<dyn Device + Send> {
    keep(true);
    let shared = ThreadOwned::new(Shared::new(device, Arc::clone(&wires)));
    move |wire, receives| Box::new(Handle::of(shared.clone(), wires.get(wire), wire, receives))
}

/// A worker's part of such an interface.
pub(super) struct Shared {
    device: Box<dyn Device + Send>,
    wires: Arc<[Wire]>,
    /// By wire: what came while others were asked for theirs.
    waiting: Vec<VecDeque<Packet>>,
    received: Batch,
    events: VecDeque<Event>,
}

impl Shared {
    pub(super) fn new(device: Box<dyn Device + Send>, wires: Arc<[Wire]>) -> Self {
        let waiting = wires.iter().map(|_| VecDeque::new()).collect();
        Self { device, wires, waiting, received: Batch::new(), events: VecDeque::new() }
    }

    fn receive(
        &mut self,
        wire: usize,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        if self.waiting[wire].is_empty() {
            let ended = self.device.receive(burst, &mut self.received, pool);
            let (mut lost, mut bytes) = (0, 0);
            for mut packet in self.received.drain() {
                let to = untag(&mut packet)
                    .and_then(|tag| self.wires.iter().position(|wire| wire.tags.contains(&tag)));
                match to {
                    Some(to) => self.waiting[to].push_back(packet),
                    None => {
                        lost += 1;
                        bytes += packet.len() as u64;
                        pool.recycle(packet);
                    }
                }
            }
            if lost > 0 {
                let (reason, sending) = (UNKNOWN_TAG, false);
                self.events.push_back(Event::Lost { reason, packets: lost, bytes, sending });
            }
            if ended? == Received::End && self.waiting.iter().all(VecDeque::is_empty) {
                return Ok(Received::End);
            }
        }
        let own = &mut self.waiting[wire];
        batch.extend(own.drain(..own.len().min(burst)));
        // A worker sleeps only when nothing waits for any of its wires.
        match self.waiting.iter().all(VecDeque::is_empty) {
            true => Ok(Received::More),
            false => Ok(Received::HandedOn),
        }
    }
}

/// Bytes of the longest packets that hosts send, as a rule.
const USUAL_MTU: usize = 1500;

/// What is to be said of an interface that has no room for a tag beside the longest packets, which are lost there.
pub(super) fn narrow(interface: &str) -> Option<String> {
    let mtu = Asker::new().and_then(|asker| asker.mtu(interface)).ok()?;
    let needed = USUAL_MTU + TAG;
    (mtu < needed).then(|| {
        format!(
            "{interface}: mtu {mtu} has no room for tags beside packets of {USUAL_MTU} bytes, which may be lost; \
             `ip link set {interface} mtu {needed}` here and on the switch makes it"
        )
    })
}

/// Takes the tag off a frame, and notes it with the packet. `None` if there is none.
fn untag(packet: &mut Packet) -> Option<u16> {
    let frame = packet.data_mut();
    let tag = frame.get(AT..AT + TAG)?;
    if tag[..2] != SERVICE_TAG {
        return None;
    }
    let id = u16::from_be_bytes([tag[2], tag[3]]) & 0xfff;
    frame.copy_within(..AT, TAG);
    packet.pull(TAG);
    packet.carried_mut()[..2].copy_from_slice(&id.to_be_bytes());
    Some(id)
}

/// Puts a tag in front of a frame; one that is too short to have addresses stays as it is.
fn tag(packet: &mut Packet, id: u16) {
    if packet.len() < AT {
        return;
    }
    packet.push(TAG);
    let frame = packet.data_mut();
    frame.copy_within(TAG..TAG + AT, 0);
    frame[AT..AT + 2].copy_from_slice(&SERVICE_TAG);
    frame[AT + 2..AT + TAG].copy_from_slice(&id.to_be_bytes());
}

/// An element's hold on a wire.
pub(super) struct Handle {
    shared: ThreadOwned<Shared>,
    wire: usize,
    port: u16,
    receives: bool,
    /// How many packets of the batch, from the first on, have their tag already: they did not all go at once.
    tagged: usize,
}

impl Handle {
    pub(super) fn new(shared: ThreadOwned<Shared>, uplink: &Uplink, receives: bool) -> Self {
        Self::of(shared, uplink.wires.get(uplink.wire), uplink.wire, receives)
    }

    fn of(shared: ThreadOwned<Shared>, of: Option<&Wire>, wire: usize, receives: bool) -> Self {
        let port = of.map_or(0, |of| of.port);
        Self { shared, wire, port, receives, tagged: 0 }
    }
}

impl Device for Handle {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        self.shared.with(|shared| shared.receive(self.wire, burst, batch, pool))
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.iter_mut().skip(self.tagged).for_each(|packet| tag(packet, self.port));
        let sent = self.shared.with(|shared| shared.device.send(batch, pool));
        self.tagged = batch.len();
        sent
    }

    fn flush(&mut self) -> Result<(), String> {
        self.shared.with(|shared| shared.device.flush())
    }

    fn steer(&mut self, owned: &[OwnedPorts]) -> Result<(), String> {
        self.shared.with(|shared| shared.device.steer(owned))
    }

    fn wait_on(&self) -> Option<Wake> {
        self.receives.then(|| self.shared.with(|shared| shared.device.wait_on())).flatten()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.shared.with(|shared| shared.events.pop_front().or_else(|| shared.device.next_event()))
    }

    fn burst(&self) -> Option<usize> {
        self.shared.with(|shared| shared.device.burst())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives frames, and keeps what is sent.
    #[derive(Default)]
    struct Bench {
        incoming: VecDeque<Vec<u8>>,
        sent: Arc<std::sync::Mutex<Vec<Vec<u8>>>>,
        /// So many are taken at a time.
        takes: usize,
    }

    impl Device for Bench {
        fn receive(
            &mut self,
            burst: usize,
            batch: &mut Batch,
            pool: &mut Pool,
        ) -> Result<Received, String> {
            for frame in self.incoming.drain(..self.incoming.len().min(burst)) {
                batch.push(pool.packet(&frame));
            }
            Ok(Received::More)
        }

        fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
            let mut rest = Batch::new();
            for (number, packet) in batch.drain().enumerate() {
                match number < self.takes {
                    true => {
                        self.sent.lock().unwrap().push(packet.data().to_vec());
                        pool.recycle(packet);
                    }
                    false => rest.push(packet),
                }
            }
            batch.extend(rest.drain());
            Ok(())
        }
    }

    fn frame(tag: Option<[u8; 4]>, last: u8) -> Vec<u8> {
        let mut frame: Vec<u8> = (1..=12).collect();
        frame.extend(tag.into_iter().flatten());
        frame.extend([8, 0, last]);
        frame
    }

    fn wires() -> Arc<[Wire]> {
        [Wire { port: 1, tags: 1..4 }, Wire { port: 2, tags: 4..6 }].into()
    }

    fn handles(bench: Bench, receives: bool) -> [Handle; 2] {
        let shared = ThreadOwned::new(Shared::new(Box::new(bench), wires()));
        [0, 1].map(|wire| {
            let interface =
                InterfaceSpec { name: "x".into(), mode: None, batch: None, shared: false };
            let uplink = Uplink { interface, wires: wires(), wire };
            Handle::new(shared.clone(), &uplink, receives)
        })
    }

    #[test]
    fn frames_come_to_the_wire_of_their_tag() {
        let mut bench = Bench::default();
        for (number, tag) in [5, 1, 3, 9, 4].into_iter().enumerate() {
            bench.incoming.push_back(frame(Some([0x88, 0xa8, 0xe0, tag]), number as u8));
        }
        // No tag, a customer's, and no room for one.
        bench.incoming.push_back(frame(None, 5));
        bench.incoming.push_back(frame(Some([0x81, 0, 0, 1]), 6));
        bench.incoming.push_back(vec![1; 13]);
        let [mut first, mut second] = handles(bench, true);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        assert_eq!(first.receive(32, &mut batch, &mut pool), Ok(Received::HandedOn));
        let seen = |batch: &Batch| -> Vec<(Vec<u8>, [u8; 2])> {
            let of = |p: &Packet| (p.data().to_vec(), [p.carried()[0], p.carried()[1]]);
            batch.iter().map(of).collect()
        };
        assert_eq!(seen(&batch), [(frame(None, 1), [0, 1]), (frame(None, 2), [0, 3])]);
        let lost = Event::Lost {
            reason: UNKNOWN_TAG,
            packets: 4,
            bytes: 15 + 15 + 19 + 13,
            sending: false,
        };
        assert_eq!((first.next_event(), second.next_event()), (Some(lost), None));
        pool.recycle_all(&mut batch);
        assert_eq!(second.receive(1, &mut batch, &mut pool), Ok(Received::HandedOn));
        assert_eq!(second.receive(1, &mut batch, &mut pool), Ok(Received::More));
        assert_eq!(seen(&batch), [(frame(None, 0), [0, 5]), (frame(None, 4), [0, 4])]);
    }

    #[test]
    fn frames_leave_with_the_port_that_they_are_for_once() {
        let bench = Bench { takes: 2, ..Bench::default() };
        let sent = Arc::clone(&bench.sent);
        let [_, mut second] = handles(bench, false);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        (0..3).for_each(|last| batch.push(pool.packet(&frame(None, last))));
        second.send(&mut batch, &mut pool).expect("it sends");
        assert_eq!(batch.len(), 1);
        batch.push(pool.packet(&frame(None, 3)));
        second.send(&mut batch, &mut pool).expect("it sends");
        assert!(batch.is_empty());
        let expected: Vec<_> = (0..4).map(|last| frame(Some([0x88, 0xa8, 0, 2]), last)).collect();
        assert_eq!(*sent.lock().unwrap(), expected);
    }
}
