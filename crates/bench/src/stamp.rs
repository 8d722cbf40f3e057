//! Stamps: what a sender writes into the payload of a packet, so that a receiver knows which packet it is and when it was
//! due.
//!
//! A stamp is the first 18 bytes of the payload of a UDP datagram, a TCP segment or an ICMP echo message, over IPv4 or
//! IPv6, with VLAN tags or without. It fits the smallest frame of UDP over IPv4. Numbers are in network byte order:
//!
//! | bytes | what |
//! |---|---|
//! | 0–3 | `CtSt` |
//! | 4 | the clock of the time: 0 counts from the start of the load, 1 is `CLOCK_MONOTONIC`, 2 `CLOCK_REALTIME` |
//! | 5 | the stream's number |
//! | 6–9 | the packet's sequence number in its stream, from 0, modulo 2^32 |
//! | 10–17 | when the packet was due, in nanoseconds |

use std::fmt;
use std::str::FromStr;

use dataplane::clock::{Clock, Time};
use net::checksum::{udp_absent, update_bytes};
use net::wire::{Ipv4, Ipv6, ether_type, icmpv4, icmpv6, ip_protocol, tcp, udp, vlan};
use rustix::time::{ClockId, clock_gettime};

/// Bytes of a stamp.
pub const LENGTH: usize = 18;
/// How a stamp begins.
pub const MAGIC: [u8; 4] = *b"CtSt";

/// The clock that times of stamps are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StampClock {
    /// Times count from the start of the load: of captures that were written, not sent.
    Relative,
    /// `CLOCK_MONOTONIC`, which all processes of a host share and nobody sets.
    #[default]
    Monotonic,
    /// `CLOCK_REALTIME`, which hosts can share that synchronise their clocks (PTP, NTP).
    Realtime,
}

impl StampClock {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Relative, "relative"),
        (Self::Monotonic, "monotonic"),
        (Self::Realtime, "realtime"),
    ];
}

impl fmt::Display for StampClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL.iter().find(|(clock, _)| clock == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for StampClock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "monotonic" => Ok(Self::Monotonic),
            "realtime" => Ok(Self::Realtime),
            _ => Err(format!("'{text}': the clocks are monotonic and realtime")),
        }
    }
}

/// A stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The clock of `due`.
    pub clock: StampClock,
    /// The stream.
    pub stream: u8,
    /// The packet's number in its stream.
    pub sequence: u32,
    /// When the packet was due.
    pub due: u64,
}

/// Where a frame has a payload and the checksum that covers it.
struct Offsets {
    payload: usize,
    checksum: usize,
    is_udp: bool,
}

/// The payload of a whole datagram of UDP over IPv4 without options or tags, if it has room for a stamp.
#[inline]
fn plain_udp(frame: &[u8]) -> Option<usize> {
    const IP: usize = net::wire::ether::HEADER_LEN;
    const PAYLOAD: usize = IP + net::wire::ipv4::HEADER_LEN + udp::HEADER_LEN;
    let headers: &[u8; PAYLOAD + LENGTH] = frame.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([headers[IP + 2], headers[IP + 3]]));
    let is_plain = headers[IP - 2..=IP] == [8, 0, 0x45]
        && headers[IP + 6] & 0x3f == 0
        && headers[IP + 7] == 0
        && headers[IP + 9] == ip_protocol::UDP;
    (is_plain && (PAYLOAD + LENGTH - IP..=frame.len() - IP).contains(&length)).then_some(PAYLOAD)
}

/// Finds the payload of a frame if it has room for a stamp.
fn place(frame: &[u8]) -> Option<Offsets> {
    let network = vlan::network(frame)?;
    let packet = frame.get(network.offset..)?;
    let (header, length, protocol) = match network.ether_type {
        ether_type::IPV4 => {
            let ip = Ipv4::new_checked(packet)?;
            if ip.is_fragment() {
                return None;
            }
            (ip.header_len(), usize::from(ip.total_len()).min(packet.len()), ip.protocol())
        }
        ether_type::IPV6 => {
            let ip = Ipv6::new(packet).filter(|ip| ip.version() == 6)?;
            let header = net::wire::ipv6::HEADER_LEN;
            (header, (header + ip.payload_len()).min(packet.len()), ip.next_header())
        }
        _ => return None,
    };
    let transport = packet.get(header..length)?;
    let first = *transport.first()?;
    let (own, checksum) = match protocol {
        ip_protocol::UDP => (udp::HEADER_LEN, 6),
        ip_protocol::TCP => {
            let segment = net::wire::Tcp::new_checked(transport)?;
            (segment.header_len().max(tcp::HEADER_LEN), 16)
        }
        ip_protocol::ICMP
            if [icmpv4::message::ECHO, icmpv4::message::ECHO_REPLY].contains(&first) =>
        {
            (icmpv4::HEADER_LEN, 2)
        }
        ip_protocol::ICMPV6
            if [icmpv6::message::ECHO, icmpv6::message::ECHO_REPLY].contains(&first) =>
        {
            (icmpv6::HEADER_LEN, 2)
        }
        _ => return None,
    };
    let at = network.offset + header;
    (transport.len() >= own + LENGTH).then_some(Offsets {
        payload: at + own,
        checksum: at + checksum,
        is_udp: protocol == ip_protocol::UDP,
    })
}

impl Stamp {
    fn bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4] = self.clock as u8;
        bytes[5] = self.stream;
        bytes[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[10..].copy_from_slice(&self.due.to_be_bytes());
        bytes
    }

    /// Writes the stamp into a frame and adapts its checksum; `false` if there is no room for it.
    pub fn write(&self, frame: &mut [u8]) -> bool {
        let Some(Offsets { payload, checksum, is_udp }) = place(frame) else { return false };
        let new = self.bytes();
        let old: [u8; LENGTH] = std::array::from_fn(|i| frame[payload + i]);
        frame[payload..payload + LENGTH].copy_from_slice(&new);
        let field = u16::from_be_bytes([frame[checksum], frame[checksum + 1]]);
        if !(is_udp && udp_absent(field)) {
            let field = match update_bytes(field, &old, &new) {
                0 if is_udp => 0xffff,
                field => field,
            };
            frame[checksum..checksum + 2].copy_from_slice(&field.to_be_bytes());
        }
        true
    }

    /// The stamp of a frame, if it has one.
    pub fn read(frame: &[u8]) -> Option<Self> {
        // What netbench sends is found without reading headers one by one.
        let payload = plain_udp(frame).or_else(|| place(frame).map(|of| of.payload))?;
        let bytes: &[u8; LENGTH] = frame.get(payload..)?.first_chunk()?;
        let (clock, _) = *StampClock::ALL.get(usize::from(bytes[4]))?;
        if bytes[..4] != MAGIC {
            return None;
        }
        Some(Self {
            clock,
            stream: bytes[5],
            sequence: u32::from_be_bytes([bytes[6], bytes[7], bytes[8], bytes[9]]),
            due: u64::from_be_bytes(*bytes.last_chunk()?),
        })
    }
}

/// The time by a clock of this host. It runs as `CLOCK_MONOTONIC` does: when somebody sets the other clock, it does not
/// jump.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    /// What it is ahead of `CLOCK_MONOTONIC`.
    ahead: u64,
}

/// Time before which a thread that waits is awake again, in nanoseconds: waking up takes some of it.
const AWAKE: u64 = 500_000;
/// How often clocks are compared: the quickest comparison counts.
const COMPARISONS: usize = 20;

fn read_clock(id: ClockId) -> u64 {
    let time = clock_gettime(id);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl HostClock {
    /// The time by this clock; relative times are monotonic ones.
    pub fn new(clock: StampClock) -> Self {
        if clock != StampClock::Realtime {
            return Self { ahead: 0 };
        }
        let compared = (0..COMPARISONS).map(|_| {
            let before = read_clock(ClockId::Monotonic);
            let real = read_clock(ClockId::Realtime);
            let after = read_clock(ClockId::Monotonic);
            (after - before, real.saturating_sub(before + (after - before) / 2))
        });
        Self { ahead: compared.min().map_or(0, |(_, ahead)| ahead) }
    }
}

impl Time for HostClock {
    fn now(&self) -> u64 {
        read_clock(ClockId::Monotonic) + self.ahead
    }

    /// Sleeps first, and is awake and looks at the clock all the time in the end.
    fn wait_until(&self, time: u64) {
        loop {
            match time.saturating_sub(Time::now(self)) {
                0 => return,
                left if left > AWAKE => {
                    std::thread::park_timeout(std::time::Duration::from_nanos(left - AWAKE));
                }
                _ => std::hint::spin_loop(),
            }
        }
    }

    fn patience(&self, limit: std::time::Duration) -> std::time::Duration {
        limit
    }

    fn clock(&self) -> std::io::Result<Box<dyn Clock>> {
        Ok(Box::new(*self))
    }
}

impl Clock for HostClock {
    fn now(&mut self) -> u64 {
        Time::now(self)
    }

    fn wait_until(&mut self, time: u64) {
        Time::wait_until(self, time);
    }
}

#[cfg(test)]
mod tests {
    use net::wire::{Icmpv4, Tcp};

    use net::wire::Udp;

    use super::*;

    const STAMP: Stamp =
        Stamp { clock: StampClock::Realtime, stream: 7, sequence: 0xfedc_ba98, due: 1 << 60 | 3 };

    fn generated(spec: &str) -> Vec<Vec<u8>> {
        let mut bindings = dataplane::io::Bindings::default();
        let binding = dataplane::io::Binding::source(spec).unwrap();
        bindings.inputs.insert("in".into(), binding);
        let request =
            elements::device::DeviceRequest::Interface { name: "in".into(), receive: true };
        let mut device = bindings.open_device(&request).unwrap();
        let (mut batch, mut pool) = (net::Batch::new(), net::Pool::new());
        device.receive(64, &mut batch, &mut pool).unwrap();
        batch.iter().map(|packet| packet.data().to_vec()).collect()
    }

    /// Whether the checksum of the transport header is right.
    fn is_right(frame: &[u8]) -> bool {
        let ip = Ipv4::new_checked(&frame[14..]).unwrap();
        let pseudo = ip.pseudo_header(ip.payload().len() as u16);
        match ip.protocol() {
            ip_protocol::UDP => Udp::new(ip.payload()).unwrap().checksum_ok(pseudo),
            ip_protocol::TCP => Tcp::new(ip.payload()).unwrap().checksum_ok(pseudo),
            _ => Icmpv4::new(ip.payload()).unwrap().checksum_ok(),
        }
    }

    #[test]
    fn stamps_come_back_and_checksums_stay_right() {
        for frame in generated("gen:proto=udp+tcp+icmp,size=60/72/1514,count=64") {
            assert_eq!(Stamp::read(&frame), None);
            let mut stamped = frame.clone();
            let fits = frame[23] != ip_protocol::TCP || frame.len() >= 72;
            assert_eq!(STAMP.write(&mut stamped), fits, "{frame:?}");
            assert_eq!(Stamp::read(&stamped), fits.then_some(STAMP));
            assert!(is_right(&stamped), "{stamped:?}");
            // The short look finds the same or nothing.
            for end in 0..=stamped.len() {
                let found = plain_udp(&stamped[..end]);
                let place = place(&stamped[..end]).map(|of| of.payload);
                assert!(found.is_none() || found == place, "{end}: {stamped:?}");
            }
            let is_udp = frame[23] == ip_protocol::UDP;
            assert_eq!(plain_udp(&stamped).is_some(), is_udp);
            // Behind tags, too.
            let tagged = [&stamped[..12], &[0x81, 0, 0, 5][..], &stamped[12..]].concat();
            assert_eq!(Stamp::read(&tagged), fits.then_some(STAMP));
        }
    }

    #[test]
    fn what_has_no_room_stays_as_it_is() {
        let whole = generated("gen:count=1").remove(0);
        let mut fragment = whole.clone();
        fragment[20] = 0x20;
        let mut without_checksum = whole.clone();
        without_checksum[40..42].fill(0);
        assert!(STAMP.write(&mut without_checksum));
        assert_eq!(without_checksum[40..42], [0, 0]);
        let mut error = generated("gen:proto=icmp,count=1").remove(0);
        error[34] = icmpv4::message::UNREACHABLE;
        let arp = [&whole[..12], &[8, 6][..], &whole[14..]].concat();
        for mut frame in [fragment, error, arp, Vec::new(), whole[..59].to_vec()] {
            let before = frame.clone();
            assert!(!STAMP.write(&mut frame), "{frame:?}");
            assert_eq!(frame, before);
        }
        for end in 0..whole.len() {
            assert_eq!(Stamp::read(&whole[..end]), None);
        }
    }

    #[test]
    fn clocks_go_on() {
        for clock in [StampClock::Monotonic, StampClock::Realtime] {
            let clock = HostClock::new(clock);
            let begin = Time::now(&clock);
            Time::wait_until(&clock, begin + 700_000);
            assert!(Time::now(&clock) >= begin + 700_000);
        }
        let ahead = Time::now(&HostClock::new(StampClock::Realtime));
        assert!(ahead > Time::now(&HostClock::new(StampClock::Monotonic)));
    }
}
