//! An interface behind a device that hands packets to cores: it brings frames of several wires, and takes frames for
//! them. In front of all else, a frame has an 802.1ad tag. Coming in, its VLAN ID says where the device
//! stopped; going out, it is the device's port that the frame is for. Which tags stand for which wire can change while frames
//! come.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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
    /// Its name.
    pub name: String,
    /// The device's port: the VLAN ID of what is sent.
    pub port: u16,
    /// VLAN IDs of what comes in; none if another wire's stand for it, too.
    pub tags: Vec<u16>,
}

/// VLAN IDs have 12 bits.
const IDS: usize = 1 << 12;

/// All wires that an interface brings.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Names, and ports. A wire keeps its place.
    wires: Vec<(String, u16)>,
    /// By VLAN ID: the place of the wire.
    of_tag: Vec<Option<usize>>,
}

impl Known {
    fn place(&self, name: &str) -> Option<usize> {
        self.wires.iter().position(|(of, _)| of == name)
    }

    fn learn(&mut self, all: &[Wire]) {
        self.of_tag.resize(IDS, None);
        for wire in all {
            let place = self.place(&wire.name).unwrap_or_else(|| {
                self.wires.push((wire.name.clone(), wire.port));
                self.wires.len() - 1
            });
            for tag in &wire.tags {
                if let Some(of) = self.of_tag.get_mut(usize::from(*tag)) {
                    *of = Some(place);
                }
            }
        }
    }
}

/// The wires that an interface brings, for all workers.
#[derive(Debug, Default)]
pub struct Wires {
    known: Mutex<Arc<Known>>,
    /// How often they changed.
    changes: AtomicUsize,
}

impl Wires {
    /// These.
    pub fn new(all: &[Wire]) -> Self {
        let wires = Self::default();
        wires.learn(all);
        wires
    }

    /// Has frames with these tags come in by these wires, too. Other tags go on to mean what they did.
    pub fn learn(&self, all: &[Wire]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = Known::clone(&known);
        new.learn(all);
        *known = Arc::new(new);
        self.changes.fetch_add(1, Ordering::Release);
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A wire behind an interface.
#[derive(Clone, Debug)]
pub struct Uplink {
    /// The interface.
    pub interface: InterfaceSpec,
    /// All wires that it brings.
    pub wires: Arc<Wires>,
    /// The name of the one that it is.
    pub wire: String,
}

impl Uplink {
    /// Another of the wires, if there is one of this name.
    pub(super) fn other(&self, name: &str) -> Option<Self> {
        self.wires.known().place(name)?;
        Some(Self { wire: name.into(), ..self.clone() })
    }
}

/// The wires that a device brings, which may be no interface: by name, and by whether an element receives from it, what the element
/// holds of a wire. The calling thread keeps the device from now on, as workers do.
pub fn wires_behind(
    device: Box<dyn Device + Send>,
    wires: Arc<Wires>,
) -> impl Fn(&str, bool) -> Box<dyn Device + Send> {
    keep(true);
    let shared = ThreadOwned::new(Shared::new(device, wires));
    move |wire, receives| Box::new(Handle::of(shared.clone(), wire, receives))
}

/// A worker's part of such an interface.
pub(super) struct Shared {
    device: Box<dyn Device + Send>,
    wires: Arc<Wires>,
    /// What was known of these when they had changed so often.
    known: (usize, Arc<Known>),
    /// By wire: what came while others were asked for theirs, and what handles that receive have.
    waiting: Vec<(VecDeque<Packet>, Weak<()>)>,
    received: Batch,
    events: VecDeque<Event>,
}

impl Shared {
    pub(super) fn new(device: Box<dyn Device + Send>, wires: Arc<Wires>) -> Self {
        let (known, waiting) = ((0, Arc::default()), Vec::new());
        Self { device, wires, known, waiting, received: Batch::new(), events: VecDeque::new() }
    }

    /// Learns which wires there are now.
    fn look(&mut self) {
        let changes = self.wires.changes.load(Ordering::Acquire);
        if changes != self.known.0 {
            self.known = (changes, self.wires.known());
            self.waiting.resize_with(self.known.1.wires.len(), Default::default);
        }
    }

    /// The place of a wire and its port; with what a handle has that receives from it, if it does.
    fn hold(&mut self, name: &str, receives: bool) -> (usize, u16, Option<Arc<()>>) {
        self.look();
        let known = &self.known.1;
        let Some(place) = known.place(name) else { return (usize::MAX, 0, None) };
        let port = known.wires[place].1;
        let held = receives.then(|| {
            let there = &mut self.waiting[place].1;
            there.upgrade().unwrap_or_else(|| {
                let held = Arc::new(());
                *there = Arc::downgrade(&held);
                held
            })
        });
        (place, port, held)
    }

    fn nothing_waits(&self) -> bool {
        self.waiting.iter().all(|(packets, _)| packets.is_empty())
    }

    fn receive(
        &mut self,
        wire: usize,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let is_empty =
            |all: &[(VecDeque<Packet>, _)]| all.get(wire).is_none_or(|own| own.0.is_empty());
        if is_empty(&self.waiting) {
            self.look();
            let ended = self.device.receive(burst, &mut self.received, pool);
            let (mut lost, mut bytes) = (0, 0);
            let mut lose = |packet: Packet, pool: &mut Pool| {
                lost += 1;
                bytes += packet.len() as u64;
                pool.recycle(packet);
            };
            for mut packet in self.received.drain() {
                let tag = untag(&mut packet);
                let to = tag.and_then(|tag| *self.known.1.of_tag.get(usize::from(tag))?);
                match to.and_then(|to| self.waiting.get_mut(to)) {
                    Some((packets, _)) => packets.push_back(packet),
                    None => lose(packet, pool),
                }
            }
            // Of wires that nobody receives from, or any more.
            for (packets, held) in &mut self.waiting {
                if !packets.is_empty() && held.strong_count() == 0 {
                    packets.drain(..).for_each(|packet| lose(packet, pool));
                }
            }
            if lost > 0 {
                let (reason, sending) = (UNKNOWN_TAG, false);
                self.events.push_back(Event::Lost { reason, packets: lost, bytes, sending });
            }
            if ended? == Received::End && self.nothing_waits() {
                return Ok(Received::End);
            }
        }
        if let Some((own, _)) = self.waiting.get_mut(wire) {
            batch.extend(own.drain(..own.len().min(burst)));
        }
        // A worker sleeps only when nothing waits for any of its wires.
        match self.nothing_waits() {
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
    /// If it receives: frames of the wire are kept as long as somebody has it.
    receives: Option<Arc<()>>,
    /// How many packets of the batch, from the first on, have their tag already: they did not all go at once.
    tagged: usize,
}

impl Handle {
    pub(super) fn new(shared: ThreadOwned<Shared>, uplink: &Uplink, receives: bool) -> Self {
        Self::of(shared, &uplink.wire, receives)
    }

    fn of(shared: ThreadOwned<Shared>, wire: &str, receives: bool) -> Self {
        let (wire, port, receives) = shared.with(|of| of.hold(wire, receives));
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
        self.receives.as_ref().and_then(|_| self.shared.with(|shared| shared.device.wait_on()))
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

    fn wire(name: &str, port: u16, tags: &[u16]) -> Wire {
        Wire { name: name.into(), port, tags: tags.into() }
    }

    fn wires() -> Arc<Wires> {
        Arc::new(Wires::new(&[wire("a", 1, &[1, 2, 3]), wire("b", 2, &[4, 5])]))
    }

    fn handle(shared: &ThreadOwned<Shared>, wire: &str, receives: bool) -> Handle {
        let interface = InterfaceSpec { name: "x".into(), mode: None, batch: None, shared: false };
        let uplink = Uplink { interface, wires: wires(), wire: wire.into() };
        Handle::new(shared.clone(), &uplink, receives)
    }

    fn handles(bench: Bench, receives: bool) -> [Handle; 2] {
        let shared = ThreadOwned::new(Shared::new(Box::new(bench), wires()));
        ["a", "b"].map(|wire| handle(&shared, wire, receives))
    }

    #[test]
    fn wires_and_their_tags_change_while_frames_come() {
        let tagged = |tag, last| frame(Some([0x88, 0xa8, 0, tag]), last);
        let mut bench = Bench::default();
        bench.incoming.extend([tagged(7, 0), tagged(1, 1), tagged(7, 2), tagged(5, 3)]);
        let wires = wires();
        let shared = ThreadOwned::new(Shared::new(Box::new(bench), Arc::clone(&wires)));
        let [mut first, second] = ["a", "b"].map(|wire| handle(&shared, wire, true));
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        // Nobody knows the tag yet.
        assert_eq!(first.receive(1, &mut batch, &mut pool), Ok(Received::More));
        assert!(batch.is_empty() && first.next_event().is_some());
        wires.learn(&[wire("c", 3, &[7])]);
        let mut third = handle(&shared, "c", true);
        drop(second);
        assert_eq!(first.receive(3, &mut batch, &mut pool), Ok(Received::HandedOn));
        assert_eq!(batch.iter().map(|packet| packet.data()[14]).collect::<Vec<_>>(), [1]);
        // What nobody receives any more keeps no worker awake.
        assert!(matches!(first.next_event(), Some(Event::Lost { packets: 1, .. })));
        pool.recycle_all(&mut batch);
        assert_eq!(third.receive(3, &mut batch, &mut pool), Ok(Received::More));
        assert_eq!(batch.iter().map(|packet| packet.data()[14]).collect::<Vec<_>>(), [2]);
        let known = Uplink {
            interface: InterfaceSpec { name: "x".into(), mode: None, batch: None, shared: false },
            wires,
            wire: "a".into(),
        };
        assert!(known.other("c").is_some() && known.other("d").is_none());
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
