//! Which worker takes which packets: how that is decided, and where groups of traffic classes are
//! now.
//!
//! A group is what goes from worker to worker. Frames say by a tag which one they are of (Metron
//! §2.2): whoever is before this host, a switch or its card, knows the traffic classes and sets it.
//! What a translator gives out is shared out among groups ([`elements::configure::Part::share`]), so
//! that answers are of a group, too, tagged or not.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

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
pub enum Way {
    /// By a hash of its flow, the same for both directions.
    #[default]
    Hash,
    /// By the queue that it comes on.
    Queue,
    /// By its tag; frames without one by their hash.
    Tags(Tags),
}

/// The first bytes of a destination address that is a tag; locally administered.
pub(super) const MAC_TAG: [u8; 4] = [0x02, 0xca, 0x7e, 0x00];
/// The VLAN of the first group where nothing else is said.
const FIRST_VLAN: u16 = 100;
/// The greatest VLAN number.
const LAST_VLAN: u16 = 4094;
/// The most groups: their numbers, and 0, must fit a byte.
pub const MOST_GROUPS: usize = 255;
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

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Hash => f.write_str("hash"),
            Way::Queue => f.write_str("queue"),
            Way::Tags(Tags::Mac) => f.write_str("tags=mac"),
            Way::Tags(Tags::Vlan(first)) => write!(f, "tags=vlan:{first}"),
        }
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "hash" => Way::Hash,
            "queue" => Way::Queue,
            "tags" | "tags=mac" => Way::Tags(Tags::Mac),
            "tags=vlan" => Way::Tags(Tags::Vlan(FIRST_VLAN)),
            _ => {
                let first = text.strip_prefix("tags=vlan:").and_then(|first| first.parse().ok());
                let first = first.filter(|first| (1..=LAST_VLAN).contains(first));
                Way::Tags(Tags::Vlan(first.ok_or_else(|| {
                    format!(
                        "'{text}' is no way to find a packet's worker; there are auto, hash, queue, \
                         tags=mac and tags=vlan[:FIRST]"
                    )
                })?))
            }
        })
    }
}

/// How packets find their workers, and where groups are. Clones are of the same.
#[derive(Clone, Debug, Default)]
pub struct Dispatch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    way: Way,
    /// By group: the worker that it is at.
    at: Vec<AtomicUsize>,
    /// By worker and group: tagged packets that came.
    counts: Vec<Vec<AtomicU64>>,
    /// What programs in the kernel look workers up in, by share: the workers' own, then the groups'.
    map: OnceLock<NumberMap>,
}

impl Dispatch {
    /// Dispatch to so many workers. Groups, if there are tags for any, are spread over the workers.
    ///
    /// # Errors
    /// A message, if there are not so many tags.
    pub fn new(way: Way, workers: usize, groups: usize) -> Result<Self, String> {
        let groups = match way {
            Way::Tags(tags) if groups > MOST_GROUPS || !tags.suffice(groups) => {
                return Err(format!("there are not {groups} tags by {way}"));
            }
            Way::Tags(_) => groups,
            _ => 0,
        };
        let at = (0..groups).map(|group| AtomicUsize::new(group % workers.max(1))).collect();
        let counted = || (0..groups).map(|_| AtomicU64::new(0)).collect();
        let counts = (0..workers).map(|_| counted()).collect();
        Ok(Self(Arc::new(Shared { way, at, counts, map: OnceLock::new() })))
    }

    /// How a frame's worker is found.
    pub fn way(&self) -> Way {
        self.0.way
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.0.at.len()
    }

    /// The worker that a group is at, and its packets that came with a tag so far.
    pub fn group(&self, group: usize) -> Option<(usize, u64)> {
        let at = self.0.at.get(group)?.load(Ordering::Relaxed);
        let count = |all: &Vec<AtomicU64>| Some(all.get(group)?.load(Ordering::Relaxed));
        Some((at, self.0.counts.iter().filter_map(count).sum()))
    }

    /// What programs look workers up in.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn map(&self) -> std::io::Result<&NumberMap> {
        if let Some(map) = self.0.map.get() {
            return Ok(map);
        }
        let workers = self.0.counts.len();
        let map = NumberMap::new((workers + self.groups()) as u32)?;
        for worker in 0..workers {
            map.set(worker as u32, worker as u32)?;
        }
        for (group, at) in self.0.at.iter().enumerate() {
            map.set((workers + group) as u32, at.load(Ordering::Relaxed) as u32)?;
        }
        // Interfaces are opened one after the other; were they not, either map would do.
        Ok(self.0.map.get_or_init(|| map))
    }

    /// Takes the tags off frames that came to a worker, where there are tags; `own` is the address
    /// of the interface.
    #[inline]
    pub(super) fn untag(&self, worker: usize, packets: &mut [Packet], own: [u8; 6]) {
        let Way::Tags(tags) = self.0.way else { return };
        let counts = self.0.counts.get(worker);
        for packet in packets {
            if let Some(group) = tags.take_off(packet, self.groups(), own) {
                packet.set_group(group as u8 + 1);
                if let Some(count) = counts.and_then(|counts| counts.get(group)) {
                    // Only this worker writes it.
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use net::Pool;

    use super::*;

    #[test]
    fn ways_are_read_as_they_are_written() {
        for text in ["hash", "queue", "tags=mac", "tags=vlan:7"] {
            assert_eq!(text.parse::<Way>().unwrap().to_string(), text);
        }
        assert_eq!("tags".parse(), Ok(Way::Tags(Tags::Mac)));
        assert_eq!("tags=vlan".parse(), Ok(Way::Tags(Tags::Vlan(100))));
        for text in ["", "rss", "tags=vlan:0", "tags=vlan:4095", "tags=vlan:x", "tags=ip"] {
            assert!(text.parse::<Way>().is_err(), "{text}");
        }
    }

    #[test]
    fn there_must_be_tags_for_all_groups() {
        let dispatch = |first, groups| Dispatch::new(Way::Tags(Tags::Vlan(first)), 2, groups);
        assert!(dispatch(4090, 5).is_ok());
        assert!(dispatch(4090, 6).is_err());
        assert!(dispatch(1, 256).is_err());
    }

    #[test]
    fn tags_are_taken_off_and_frames_are_as_they_were() {
        let own = [2, 0, 0, 0, 0, 1];
        let mut pool = Pool::new();
        let rest = [6, 7, 8, 9, 10, 11, 8, 0, 0x45, 1, 2];
        let plain = [&own[..], &rest].concat();
        for way in ["tags=mac", "tags=vlan:4000"] {
            let dispatch = Dispatch::new(way.parse().unwrap(), 2, 3).unwrap();
            let Way::Tags(tags) = dispatch.way() else { panic!() };
            for group in 0..4 {
                let tagged = match tags.of(group) {
                    Tag::Mac(address) => [&address[..], &rest].concat(),
                    Tag::Vlan(number) => {
                        let [high, low] = (0xa000 | number).to_be_bytes();
                        [&plain[..12], &[0x81, 0, high, low], &plain[12..]].concat()
                    }
                };
                for length in 0..=tagged.len() {
                    let mut packets = [pool.packet(&tagged[..length])];
                    dispatch.untag(1, &mut packets, own);
                    let [packet] = packets;
                    let whole = length >= if way == "tags=mac" { 6 } else { 16 };
                    if group < 3 && whole {
                        let taken_off = tagged.len() - plain.len();
                        assert_eq!(packet.data(), &plain[..length - taken_off]);
                        assert_eq!(packet.group(), group as u8 + 1);
                    } else {
                        assert_eq!((packet.data(), packet.group()), (&tagged[..length], 0));
                    }
                    pool.recycle(packet);
                }
            }
            assert_eq!(dispatch.group(2).map(|g| g.0), Some(0));
            assert!(dispatch.group(1).is_some_and(|g| g.0 == 1 && g.1 > 0));
            assert_eq!(dispatch.group(3), None);
        }
    }
}
