//! Which worker takes which packets: how that is decided, and where groups of traffic classes are
//! now.
//!
//! A group is what goes from worker to worker. Frames say by a tag which one they are of (Metron
//! §2.2): whoever is before this host, a switch or its card, knows the traffic classes and sets it.
//! What a translator allocates is shared among groups ([`elements::configure::WorkerShare::share`]), so
//! that answers are of a group, too, tagged or not.
//!
//! Where the number of workers can change, all flows are in groups, by the same hash that would choose
//! a worker otherwise. So a worker that comes or goes takes or leaves groups, and the share of a range that a
//! group has does not depend on who is there.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use elements::device::OwnedPorts;
use net::Packet;

use super::bpf::NumberMap;

/// What of a frame says its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// The destination MAC address: `02:ca:7e:00`, and the number of the group in the last two
    /// bytes. Behind it stands the interface's own address.
    Mac,
    /// A VLAN tag, behind which there is the frame without it; the number of the first group's.
    Vlan(u16),
}

/// How a frame's worker is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchMode {
    /// By a hash of its flow, the same for both directions.
    #[default]
    Hash,
    /// By the queue that it comes on.
    Queue,
    /// By its tag; frames without one by their hash.
    Tags(Tags),
    /// By a hash, computed by the first worker: all frames come to it, and it does nothing but hand
    /// them on (as in E2, and Metron's figure 2a).
    Software,
    /// By the queue that it comes on, and from there, if another worker has its flow, to that one
    /// (RSS as it is, and as OpenBox keeps flows together).
    HandOff,
}

impl DispatchMode {
    /// Whether workers hand frames to each other.
    pub(super) fn hands_on(self) -> bool {
        matches!(self, DispatchMode::Software | DispatchMode::HandOff)
    }
}

/// The first bytes of a destination address that is a tag; locally administered.
pub(super) const MAC_TAG: [u8; 4] = [0x02, 0xca, 0x7e, 0x00];
/// The VLAN of the first group where nothing else is said.
const FIRST_VLAN: u16 = 100;
/// The greatest VLAN number.
const LAST_VLAN: u16 = 4094;
/// The most groups: their numbers, and 0, must fit 16 bits.
pub const MOST_GROUPS: usize = u16::MAX as usize;
/// Groups of flows for each worker that there may be, where their number changes.
const GROUPS_PER_WORKER: usize = 8;
/// Bytes of two addresses, behind which VLAN tags stand.
const ADDRESSES: usize = 12;
/// Bytes of a VLAN tag.
const VLAN: usize = 4;

impl Tags {
    /// The tag of a group, counted from 0.
    pub fn of(self, group: usize) -> Tag {
        match self {
            Tags::Mac => {
                let [a, b, c, d] = MAC_TAG;
                let [high, low] = (group as u16).to_be_bytes();
                Tag::Mac([a, b, c, d, high, low])
            }
            Tags::Vlan(first) => Tag::Vlan(first + group as u16),
        }
    }

    /// Whether there are tags for so many groups.
    fn suffice(self, groups: usize) -> bool {
        match self {
            Tags::Mac => true,
            Tags::Vlan(first) => usize::from(first) + groups <= usize::from(LAST_VLAN) + 1,
        }
    }

    /// Takes the tag of a group, counted from 0, off a frame; `None` if it has none.
    fn take_off(self, packet: &mut Packet, groups: usize, own: [u8; 6]) -> Option<usize> {
        match self {
            Tags::Mac => {
                let destination = packet.data_mut().first_chunk_mut::<6>()?;
                let [a, b, c, d, high, low] = *destination;
                let group = usize::from(u16::from_be_bytes([high, low]));
                if [a, b, c, d] != MAC_TAG || group >= groups {
                    return None;
                }
                *destination = own;
                Some(group)
            }
            Tags::Vlan(first) => {
                let tag = packet.data().get(ADDRESSES..)?.first_chunk::<VLAN>()?;
                let &[0x81, 0, high, low] = tag else { return None };
                let number = u16::from_be_bytes([high, low]) & 0xfff;
                let group = usize::from(number.checked_sub(first)?);
                if group >= groups {
                    return None;
                }
                packet.data_mut().copy_within(..ADDRESSES, VLAN);
                packet.pull(VLAN);
                Some(group)
            }
        }
    }
}

/// A tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// A destination MAC address.
    Mac([u8; 6]),
    /// A VLAN number.
    Vlan(u16),
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tag::Mac([a, b, c, d, e, g]) => {
                write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
            }
            Tag::Vlan(number) => write!(f, "{number}"),
        }
    }
}

impl fmt::Display for DispatchMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DispatchMode::Hash => f.write_str("hash"),
            DispatchMode::Queue => f.write_str("queue"),
            DispatchMode::Tags(Tags::Mac) => f.write_str("tags=mac"),
            DispatchMode::Tags(Tags::Vlan(first)) => write!(f, "tags=vlan:{first}"),
            DispatchMode::Software => f.write_str("software"),
            DispatchMode::HandOff => f.write_str("hand-off"),
        }
    }
}

impl FromStr for DispatchMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "hash" => DispatchMode::Hash,
            "queue" => DispatchMode::Queue,
            "software" => DispatchMode::Software,
            "hand-off" => DispatchMode::HandOff,
            "tags" | "tags=mac" => DispatchMode::Tags(Tags::Mac),
            "tags=vlan" => DispatchMode::Tags(Tags::Vlan(FIRST_VLAN)),
            _ => {
                let first = text.strip_prefix("tags=vlan:").and_then(|first| first.parse().ok());
                let first = first.filter(|first| (1..=LAST_VLAN).contains(first));
                DispatchMode::Tags(Tags::Vlan(first.ok_or_else(|| {
                    format!(
                        "'{text}' is not a dispatch mode; the modes are auto, hash, queue, \
                         tags=mac, tags=vlan[:FIRST], software and hand-off"
                    )
                })?))
            }
        })
    }
}

/// What of a frame says which worker's it is; as programs in the kernel find it, see
/// [`super::steering`].
struct Flow {
    /// The same for both directions.
    hash: u32,
    /// The address and port that it answers to, or that one came from which an ICMP error quotes;
    /// of a ping its identifier.
    answered: Option<(u32, u16)>,
}

/// The hash of a frame's flow by which dispatch chooses a worker: the same for both directions, and 0 where there is no
/// flow.
pub fn dispatch_hash(frame: &[u8]) -> u32 {
    Network::of(frame).and_then(|network| network.flow()).map_or(0, |flow| flow.hash)
}

/// A frame from its network header on.
struct Network<'a> {
    protocol: u16,
    bytes: &'a [u8],
}

impl<'a> Network<'a> {
    /// Behind one VLAN tag.
    fn of(frame: &'a [u8]) -> Option<Self> {
        let mut bytes = frame.get(ADDRESSES..)?;
        let mut protocol = half(bytes, 0)?;
        if matches!(protocol, 0x8100 | 0x88a8) {
            bytes = bytes.get(VLAN..)?;
            protocol = half(bytes, 0)?;
        }
        Some(Self { protocol, bytes: bytes.get(2..)? })
    }

    /// Whether it answers who has an address, for which every worker may have asked.
    fn is_neighbours_answer(&self) -> bool {
        match self.protocol {
            ARP => half(self.bytes, 6) == Some(2),
            IPV6 => self.bytes.get(6) == Some(&58) && self.bytes.get(40) == Some(&136),
            _ => false,
        }
    }

    /// `None` if it is of none, or cut off.
    fn flow(&self) -> Option<Flow> {
        let mut sum = 0u32;
        let mut answered = None;
        // Where the ports are, if there are any.
        let ports = match self.protocol {
            IPV4 => {
                sum = add_words(sum, self.bytes, 12..20)?;
                let header = |at: usize| Some(usize::from(self.bytes.get(at)? & 15) * 4);
                let kind = *self.bytes.get(9)?;
                let transport = header(0)?;
                match kind {
                    _ if half(self.bytes, 6)? & 0x3fff != 0 => None,
                    6 | 17 => {
                        answered = Some((word(self.bytes, 16)?, half(self.bytes, transport + 2)?));
                        Some(transport)
                    }
                    1 if matches!(*self.bytes.get(transport)?, 3 | 4 | 5 | 11 | 12) => {
                        let about = transport + 8;
                        sum = add_words(0, self.bytes, about + 12..about + 20)?;
                        let ports = about + header(about)?;
                        let has_ports = matches!(*self.bytes.get(about + 9)?, 6 | 17);
                        if has_ports {
                            answered =
                                Some((word(self.bytes, about + 12)?, half(self.bytes, ports)?));
                        }
                        has_ports.then_some(ports)
                    }
                    1 => {
                        answered = Some((word(self.bytes, 16)?, half(self.bytes, transport + 4)?));
                        None
                    }
                    _ => None,
                }
            }
            IPV6 => {
                sum = add_words(sum, self.bytes, 8..40)?;
                matches!(*self.bytes.get(6)?, 6 | 17).then_some(40)
            }
            _ => return None,
        };
        if let Some(at) = ports {
            let both = word(self.bytes, at)?;
            sum = sum.wrapping_add(both >> 16).wrapping_add(both & 0xffff);
        }
        // The upper half of a product with the golden ratio's digits.
        Some(Flow { hash: sum.wrapping_mul(0x9e37_79b1) >> 16, answered })
    }
}

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn add_words(sum: u32, bytes: &[u8], at: std::ops::Range<usize>) -> Option<u32> {
    let words = bytes.get(at)?.as_chunks().0;
    Some(words.iter().fold(sum, |sum, &word| sum.wrapping_add(u32::from_be_bytes(word))))
}

/// How packets find their workers, and where groups are. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct Dispatch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    mode: DispatchMode,
    /// By share: the worker that it is at. The first shares are the workers' own, then come the groups'.
    at: Vec<AtomicUsize>,
    /// By worker: whether it gets packets. The first always does: frames of no group are its own.
    running: Vec<AtomicBool>,
    /// By worker and group: packets of the group that came.
    counts: Vec<Vec<AtomicU64>>,
    /// By worker and the one that it handed them to: packets.
    handed: Vec<Vec<AtomicU64>>,
    /// What programs in the kernel look workers up in, by share: the workers' own, then the groups'.
    map: OnceLock<NumberMap>,
}

impl Dispatch {
    /// Dispatch to so many workers. Groups, if there are tags for any, are spread over the workers.
    ///
    /// # Errors
    /// A message, if there are not so many tags.
    pub fn new(mode: DispatchMode, workers: usize, groups: usize) -> Result<Self, String> {
        let groups = match mode {
            DispatchMode::Tags(tags) if groups > MOST_GROUPS || !tags.suffice(groups) => {
                return Err(format!("there are fewer than {groups} tags with {mode}"));
            }
            DispatchMode::Tags(_) => groups,
            _ => 0,
        };
        if mode == DispatchMode::Software && workers < 2 {
            return Err(format!(
                "--dispatch {mode} needs at least two workers: the first hands packets to the others; \
                 --cores 0,1 makes two"
            ));
        }
        Ok(Self::spread(mode, workers, groups, workers))
    }

    /// Dispatch by a hash to so many workers at first, and up to `most` later: flows are in groups, which
    /// go from worker to worker when the number of workers changes.
    pub fn elastic(running: usize, most: usize) -> Self {
        let most = most.max(1);
        let groups = (most * GROUPS_PER_WORKER).min(MOST_GROUPS);
        Self::spread(DispatchMode::Hash, most, groups, running.clamp(1, most))
    }

    /// Groups are spread over the workers that get packets.
    fn spread(mode: DispatchMode, workers: usize, groups: usize, running: usize) -> Self {
        let own = (0..workers).map(|worker| if worker < running { worker } else { 0 });
        let at = own.chain((0..groups).map(|group| group % running.max(1)));
        let at = at.map(AtomicUsize::new).collect();
        let counters = |of: usize| {
            let each = |_| (0..of).map(|_| AtomicU64::new(0)).collect();
            (0..workers).map(each).collect()
        };
        let (counts, handed) = (counters(groups), counters(workers));
        let running = (0..workers).map(|worker| AtomicBool::new(worker < running)).collect();
        Self(Arc::new(Shared { mode, at, running, counts, handed, map: OnceLock::new() }))
    }

    /// Whether the number of workers can change.
    pub fn is_elastic(&self) -> bool {
        self.0.mode == DispatchMode::Hash && self.groups() > 0
    }

    /// Whether a worker gets packets; those that do not stand by, where their number can change.
    pub fn is_running(&self, worker: usize) -> bool {
        self.0.running.get(worker).is_some_and(|running| running.load(Ordering::Relaxed))
    }

    /// How many workers get packets.
    pub fn running(&self) -> usize {
        (0..self.workers()).filter(|&worker| self.is_running(worker)).count()
    }

    /// Notes which workers get packets from now on; the first must. What is sent to what a worker that stands by has
    /// allocated, and that is of no group, comes to the first worker meanwhile.
    ///
    /// # Errors
    /// A message.
    pub fn run(&self, running: &[bool]) -> Result<(), String> {
        for (worker, &runs) in running.iter().enumerate() {
            let to = if runs { worker } else { 0 };
            self.set(worker, to).map_err(|e| format!("bringing frames to another worker: {e}"))?;
        }
        for (is_running, &runs) in self.0.running.iter().zip(running) {
            is_running.store(runs, Ordering::Relaxed);
        }
        Ok(())
    }

    /// How a frame's worker is found.
    pub fn mode(&self) -> DispatchMode {
        self.0.mode
    }

    fn workers(&self) -> usize {
        self.0.counts.len()
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.0.at.len() - self.workers()
    }

    /// The worker that a group is at, and its packets that came so far, of those told by tags the ones that
    /// had theirs.
    pub fn group(&self, group: usize) -> Option<(usize, u64)> {
        let at = self.0.at.get(self.workers() + group)?.load(Ordering::Relaxed);
        let count = |all: &Vec<AtomicU64>| Some(all.get(group)?.load(Ordering::Relaxed));
        Some((at, self.0.counts.iter().filter_map(count).sum()))
    }

    /// Brings the frames of a group to another worker from now on.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn bring(&self, group: usize, to: usize) -> std::io::Result<()> {
        self.set(self.workers() + group, to)
    }

    /// Brings what is of a share to a worker from now on.
    fn set(&self, share: usize, to: usize) -> std::io::Result<()> {
        let Some(at) = self.0.at.get(share) else { return Ok(()) };
        if let Some(map) = self.0.map.get() {
            map.set(share as u32, to as u32)?;
        }
        at.store(to, Ordering::Relaxed);
        Ok(())
    }

    /// The group of a packet that came in without a tag, as programs in the kernel find it: whose
    /// share of what is allocated it goes to. As [`Packet::group`].
    pub(super) fn group_of_answer(&self, packet: &Packet, owned: &[OwnedPorts]) -> u16 {
        let flow = Network::of(packet.data()).and_then(|network| network.flow());
        let share = flow.and_then(|flow| self.share(&flow, owned)).unwrap_or(0);
        u16::try_from((share + 1).saturating_sub(self.workers())).unwrap_or(0)
    }

    /// Whose share of what is allocated a packet answers to.
    fn share(&self, flow: &Flow, owned: &[OwnedPorts]) -> Option<usize> {
        let (address, port) = flow.answered?;
        let within = |own: &&OwnedPorts| {
            (own.addresses.0..=own.addresses.1).contains(&address)
                && (own.ports.0..=own.ports.1).contains(&port)
        };
        let own = owned.iter().find(within)?;
        let (number, low, high) = match own.by_address() {
            true => (address, own.addresses.0, own.addresses.1),
            false => (port.into(), own.ports.0.into(), own.ports.1.into()),
        };
        let shares = self.0.at.len() as u64;
        let size = u64::from(high) - u64::from(low) + 1;
        Some((((u64::from(number) - u64::from(low) + 1) * shares - 1) / size) as usize)
    }

    /// The worker that has the flow of a frame, where workers hand frames to each other; `None` if
    /// that is whom it came to.
    pub(super) fn home(&self, packet: &Packet, owned: &[OwnedPorts]) -> Option<usize> {
        // The worker that hands on all has no flows.
        let first = usize::from(self.mode() == DispatchMode::Software);
        let network = Network::of(packet.data());
        if network.as_ref().is_some_and(Network::is_neighbours_answer) {
            return None;
        }
        Some(match network.and_then(|network| network.flow()) {
            None => first,
            Some(flow) => match self.share(&flow, owned) {
                Some(share) => share.max(first),
                None => first + flow.hash as usize % (self.workers() - first),
            },
        })
    }

    /// Counts packets that a worker handed to another.
    pub(super) fn count_handed(&self, from: usize, to: usize, packets: u64) {
        if let Some(count) = self.0.handed.get(from).and_then(|all| all.get(to)) {
            // Only the worker that hands them on writes it.
            count.store(count.load(Ordering::Relaxed) + packets, Ordering::Relaxed);
        }
    }

    /// Packets that a worker has handed to another so far.
    pub fn handed(&self, from: usize, to: usize) -> u64 {
        let count = self.0.handed.get(from).and_then(|all| all.get(to));
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// What programs look workers up in.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn map(&self) -> std::io::Result<&NumberMap> {
        if let Some(map) = self.0.map.get() {
            return Ok(map);
        }
        let map = NumberMap::new(self.0.at.len() as u32)?;
        for (share, at) in self.0.at.iter().enumerate() {
            map.set(share as u32, at.load(Ordering::Relaxed) as u32)?;
        }
        // Interfaces are opened one after the other; were they not, either map would do.
        Ok(self.0.map.get_or_init(|| map))
    }

    /// Notes of frames that came to a worker what group they are of, where there are groups, and takes their
    /// tags off; `own` is the address of the interface, `owned` what is allocated.
    #[inline]
    pub(super) fn sort(
        &self,
        worker: usize,
        packets: &mut [Packet],
        own: [u8; 6],
        owned: &[OwnedPorts],
    ) {
        if self.groups() == 0 {
            return;
        }
        let counts = self.0.counts.get(worker);
        for packet in packets {
            let group = match self.0.mode {
                DispatchMode::Tags(tags) => tags.take_off(packet, self.groups(), own),
                _ => self.group_by_hash(packet, owned),
            };
            if let Some(group) = group {
                packet.set_group(group as u16 + 1);
                if let Some(count) = counts.and_then(|counts| counts.get(group)) {
                    // Only this worker writes it.
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            }
        }
    }

    /// The group that a frame is of where the number of workers changes, as [`Packet::group`].
    pub(crate) fn group_of(&self, packet: &Packet, owned: &[OwnedPorts]) -> u16 {
        self.group_by_hash(packet, owned).map_or(0, |group| group as u16 + 1)
    }

    /// The group of a frame, counted from 0, where the number of workers changes, as programs in the kernel
    /// find it; `None` if that is the first worker's.
    fn group_by_hash(&self, packet: &Packet, owned: &[OwnedPorts]) -> Option<usize> {
        let network = Network::of(packet.data())?;
        if network.is_neighbours_answer() {
            return None;
        }
        let flow = network.flow()?;
        match self.share(&flow, owned) {
            Some(share) => share.checked_sub(self.workers()),
            None => Some(flow.hash as usize % self.groups()),
        }
    }
}

#[cfg(test)]
mod tests {
    use elements::configure::WorkerShare;
    use net::Pool;

    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for text in ["hash", "queue", "tags=mac", "tags=vlan:7", "software", "hand-off"] {
            assert_eq!(text.parse::<DispatchMode>().unwrap().to_string(), text);
        }
        assert_eq!("tags".parse(), Ok(DispatchMode::Tags(Tags::Mac)));
        assert_eq!("tags=vlan".parse(), Ok(DispatchMode::Tags(Tags::Vlan(100))));
        for text in ["", "rss", "tags=vlan:0", "tags=vlan:4095", "tags=vlan:x", "tags=ip"] {
            assert!(text.parse::<DispatchMode>().is_err(), "{text}");
        }
    }

    #[test]
    fn there_must_be_tags_for_all_groups() {
        let dispatch =
            |first, groups| Dispatch::new(DispatchMode::Tags(Tags::Vlan(first)), 2, groups);
        assert!(dispatch(4090, 5).is_ok());
        assert!(dispatch(4090, 6).is_err());
        assert!(dispatch(1, 4094).is_ok());
        assert!(dispatch(1, 4095).is_err());
        let macs = |groups| Dispatch::new(DispatchMode::Tags(Tags::Mac), 2, groups);
        assert!(macs(MOST_GROUPS).is_ok() && macs(MOST_GROUPS + 1).is_err());
    }

    /// A frame with this header behind the first addresses, and what it carries.
    fn frame(pool: &mut Pool, protocol: u8, to: u32, transport: &[u8]) -> Packet {
        let mut bytes = [0; 34];
        (bytes[12], bytes[14], bytes[23]) = (8, 0x45, protocol);
        bytes[30..].copy_from_slice(&to.to_be_bytes());
        pool.packet(&[&bytes[..], transport].concat())
    }

    #[test]
    fn answers_are_of_the_group_whose_share_they_go_to() {
        let (workers, groups, address) = (2, 5, 0x0102_0304);
        let dispatch = Dispatch::new(DispatchMode::Tags(Tags::Mac), workers, groups).unwrap();
        let part = WorkerShare { index: 0, count: workers, groups };
        let own = [
            OwnedPorts { addresses: (address, address), ports: (1024, 65535) },
            OwnedPorts { addresses: (0x0a00_0000, 0x0a00_00ff), ports: (0, u16::MAX) },
        ];
        let mut pool = Pool::new();
        let mut of = |protocol, to, transport: &[u8]| {
            let packet = frame(&mut pool, protocol, to, transport);
            let group = dispatch.group_of_answer(&packet, &own);
            pool.recycle(packet);
            group
        };
        for group in 1..=groups as u16 {
            let (first, last) = part.share(group, 1024, 65535).unwrap();
            for port in [first, (first + last) / 2, last] {
                let [high, low] = (port as u16).to_be_bytes();
                assert_eq!(of(17, address, &[0, 9, high, low]), group);
                assert_eq!(of(6, address, &[0, 9, high, low]), group);
                assert_eq!(of(1, address, &[0, 0, 0, 0, high, low]), group, "a ping's identifier");
                assert_eq!(of(17, address + 1, &[0, 9, high, low]), 0);
                assert_eq!(of(17, address, &[0, 9, high]), 0, "cut off");
                // An error about a packet that went out from there.
                let mut error = [0; 8 + 20 + 4];
                (error[0], error[8], error[17]) = (3, 0x45, 17);
                error[20..24].copy_from_slice(&address.to_be_bytes());
                (error[28], error[29]) = (high, low);
                assert_eq!(of(1, 9, &error), group);
            }
            let (first, last) = part.share(group, 0x0a00_0000, 0x0a00_00ff).unwrap();
            assert_eq!([of(6, first, &[0; 4]), of(6, last, &[0; 4])], [group; 2]);
        }
        let (first, last) = part.share(0, 1024, 65535).unwrap();
        for port in [1023, first as u16, last as u16] {
            let [high, low] = port.to_be_bytes();
            assert_eq!(of(17, address, &[0, 9, high, low]), 0, "a worker's own");
        }
    }

    #[test]
    fn tags_are_taken_off_and_frames_are_as_they_were() {
        let own = [2, 0, 0, 0, 0, 1];
        let mut pool = Pool::new();
        let rest = [6, 7, 8, 9, 10, 11, 8, 0, 0x45, 1, 2];
        let plain = [&own[..], &rest].concat();
        for (mode, groups) in [("tags=mac", 3), ("tags=vlan:4000", 3), ("tags=mac", 300)] {
            let dispatch = Dispatch::new(mode.parse().unwrap(), 2, groups).unwrap();
            let DispatchMode::Tags(tags) = dispatch.mode() else { panic!() };
            for group in (0..groups + 1).filter(|group| *group < 3 || groups - group < 2) {
                let tagged = match tags.of(group) {
                    Tag::Mac(address) => [&address[..], &rest].concat(),
                    Tag::Vlan(number) => {
                        let [high, low] = (0xa000 | number).to_be_bytes();
                        [&plain[..12], &[0x81, 0, high, low], &plain[12..]].concat()
                    }
                };
                for length in 0..=tagged.len() {
                    let mut packets = [pool.packet(&tagged[..length])];
                    dispatch.sort(1, &mut packets, own, &[]);
                    let [packet] = packets;
                    let whole = length >= if mode == "tags=mac" { 6 } else { 16 };
                    if group < groups && whole {
                        let taken_off = tagged.len() - plain.len();
                        assert_eq!(packet.data(), &plain[..length - taken_off]);
                        assert_eq!(packet.group(), group as u16 + 1);
                    } else {
                        assert_eq!((packet.data(), packet.group()), (&tagged[..length], 0));
                    }
                    pool.recycle(packet);
                }
            }
            assert_eq!(dispatch.group(2).map(|g| g.0), Some(0));
            assert!(dispatch.group(1).is_some_and(|g| g.0 == 1 && g.1 > 0));
            assert_eq!(dispatch.group(groups), None);
        }
    }
}
