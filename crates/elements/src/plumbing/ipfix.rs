//! IPFIX messages over UDP (RFC 7011) about flows, with elements of IANA's registry (RFC 7012).

use std::net::SocketAddr;

use net::wire::ip_protocol::UDP;
use net::wire::{Ipv4, Ipv6, Udp, ipv4};

use super::flow_key::FlowKey;

/// Numbers of information elements, with the bytes that they take.
type Field = (u16, u16);

const PROTOCOL: Field = (4, 1);
const SOURCE_PORT: Field = (7, 2);
const SOURCE_IPV4: Field = (8, 4);
const DESTINATION_PORT: Field = (11, 2);
const DESTINATION_IPV4: Field = (12, 4);
const SOURCE_IPV6: Field = (27, 16);
const DESTINATION_IPV6: Field = (28, 16);
const OCTETS: Field = (1, 8);
const PACKETS: Field = (2, 8);
const END_REASON: Field = (136, 1);
const START: Field = (152, 8);
const END: Field = (153, 8);

/// What records of both IP versions have behind the addresses.
const REST: [Field; 8] =
    [SOURCE_PORT, DESTINATION_PORT, PROTOCOL, END_REASON, OCTETS, PACKETS, START, END];
/// Templates: a number, and the fields of the addresses.
const TEMPLATES: [(u16, [Field; 2]); 2] =
    [(256, [SOURCE_IPV4, DESTINATION_IPV4]), (257, [SOURCE_IPV6, DESTINATION_IPV6])];

const VERSION: u16 = 10;
const TEMPLATE_SET: u16 = 2;
const MESSAGE_HEADER: usize = 16;
const SET_HEADER: usize = 4;
const LONGEST_RECORD: usize = 70;
const UDP_HEADER: usize = 8;
/// Packets pass links whose MTU is 1400 bytes, as behind tunnels.
const LONGEST_PACKET: usize = 1400;

/// Why a record is exported (flowEndReason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum EndReason {
    Idle = 1,
    Active = 2,
    Forced = 4,
    NoRoom = 5,
}

/// What is exported of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub key: FlowKey,
    pub packets: u64,
    pub bytes: u64,
    /// Nanoseconds since 1970 of the first packet and the last.
    pub first: u64,
    pub last: u64,
    pub reason: EndReason,
}

/// Makes messages of records.
pub(crate) struct Exporter {
    source: SocketAddr,
    collector: SocketAddr,
    /// The observation domain.
    domain: u32,
    /// Nanoseconds between two times that templates are sent.
    template_interval: u64,
    /// When templates were sent last.
    templates_sent: Option<u64>,
    /// Data records that were sent, modulo 2^32.
    sequence: u32,
    /// Identification of the next IPv4 packet.
    id: u16,
    /// The packet that is being filled; empty if there is none.
    packet: Vec<u8>,
    /// Its data records.
    records: u32,
    /// The template of its last set, and where that begins.
    set: Option<(u16, usize)>,
}

impl Exporter {
    /// Sends to a collector from an address of the same IP version.
    pub(crate) fn new(
        source: SocketAddr,
        collector: SocketAddr,
        domain: u32,
        template_interval: u64,
    ) -> Self {
        Self {
            source,
            collector,
            domain,
            template_interval,
            templates_sent: None,
            sequence: 0,
            id: 0,
            packet: Vec::with_capacity(LONGEST_PACKET),
            records: 0,
            set: None,
        }
    }

    fn ip_header(&self) -> usize {
        if self.collector.is_ipv6() { 40 } else { ipv4::HEADER_LEN }
    }

    /// Whether records wait to be sent.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.packet.is_empty()
    }

    fn number(&mut self, value: u64, bytes: u16) {
        self.packet.extend(&value.to_be_bytes()[8 - usize::from(bytes)..]);
    }

    fn end_set(&mut self) {
        if let Some((_, start)) = self.set.take() {
            let length = (self.packet.len() - start) as u16;
            self.packet[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
        }
    }

    fn begin_set(&mut self, set: u16) {
        if self.set.is_none_or(|(open, _)| open != set) {
            self.end_set();
            self.set = Some((set, self.packet.len()));
            self.number(set.into(), 2);
            self.number(0, 2);
        }
    }

    fn begin(&mut self, now: u64) {
        let headers = self.ip_header() + UDP_HEADER + MESSAGE_HEADER;
        self.packet.resize(headers, 0);
        let is_due = |sent: u64| now.abs_diff(sent) >= self.template_interval;
        if self.templates_sent.is_some_and(|sent| !is_due(sent)) {
            return;
        }
        self.templates_sent = Some(now);
        self.begin_set(TEMPLATE_SET);
        for (template, addresses) in TEMPLATES {
            self.number(template.into(), 2);
            self.number((addresses.len() + REST.len()) as u64, 2);
            for (field, bytes) in addresses.into_iter().chain(REST) {
                self.number(field.into(), 2);
                self.number(bytes.into(), 2);
            }
        }
        self.end_set();
    }

    /// Adds a record. Gives a packet if one is full.
    pub(crate) fn add(&mut self, record: &Record, now: u64) -> Option<Vec<u8>> {
        let full = self.packet.len() + SET_HEADER + LONGEST_RECORD > LONGEST_PACKET;
        let sent = if full { self.take(now) } else { None };
        if self.packet.is_empty() {
            self.begin(now);
        }
        let key = &record.key;
        self.begin_set(TEMPLATES[usize::from(key.is_ipv6)].0);
        for address in [key.src(), key.dst()] {
            match address {
                std::net::IpAddr::V4(address) => self.packet.extend(address.octets()),
                std::net::IpAddr::V6(address) => self.packet.extend(address.octets()),
            }
        }
        let values: [u64; REST.len()] = [
            key.src_port.into(),
            key.dst_port.into(),
            key.protocol.into(),
            record.reason as u64,
            record.bytes,
            record.packets,
            record.first / 1_000_000,
            record.last / 1_000_000,
        ];
        for (value, (_, bytes)) in values.into_iter().zip(REST) {
            self.number(value, bytes);
        }
        self.records += 1;
        sent
    }

    /// The packet with the records that wait, if any do: an IP packet.
    pub(crate) fn take(&mut self, now: u64) -> Option<Vec<u8>> {
        if self.packet.is_empty() {
            return None;
        }
        self.end_set();
        let mut packet = std::mem::replace(&mut self.packet, Vec::with_capacity(LONGEST_PACKET));
        let (header, length) = (self.ip_header(), packet.len());
        let (ip, datagram) = packet.split_at_mut(header);
        let message = &mut datagram[UDP_HEADER..];
        let header = [VERSION.to_be_bytes(), (message.len() as u16).to_be_bytes()];
        message[..4].copy_from_slice(header.as_flattened());
        let seconds = (now / 1_000_000_000) as u32;
        for (at, word) in [(4, seconds), (8, self.sequence), (12, self.domain)] {
            message[at..at + 4].copy_from_slice(&word.to_be_bytes());
        }
        self.sequence = self.sequence.wrapping_add(std::mem::take(&mut self.records));
        self.seal(ip, datagram, length as u16);
        Some(packet)
    }

    /// Fills the headers of IP and UDP.
    fn seal(&mut self, ip: &mut [u8], datagram: &mut [u8], length: u16) {
        let behind = datagram.len() as u16;
        let Some(mut udp) = Udp::new(datagram) else { return };
        udp.set_src_port(self.source.port());
        udp.set_dst_port(self.collector.port());
        udp.set_len(behind);
        match (self.source, self.collector) {
            (SocketAddr::V4(source), SocketAddr::V4(collector)) => {
                let Some(mut ip) = Ipv4::new(ip) else { return };
                ip.set_header_len(ipv4::HEADER_LEN);
                ip.set_total_len(length);
                ip.set_id(self.id);
                ip.set_ttl(64);
                ip.set_protocol(UDP);
                ip.set_src(*source.ip());
                ip.set_dst(*collector.ip());
                ip.fill_checksum();
                udp.fill_checksum(ip.pseudo_header(behind));
                self.id = self.id.wrapping_add(1);
            }
            (SocketAddr::V6(source), SocketAddr::V6(collector)) => {
                let Some(mut ip) = Ipv6::new(ip) else { return };
                ip.set_first_word(0, 0);
                ip.set_payload_len(behind);
                ip.set_next_header(UDP);
                ip.set_hop_limit(64);
                ip.set_src(*source.ip());
                ip.set_dst(*collector.ip());
                udp.fill_checksum(ip.pseudo_header(UDP, behind.into()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use net::notation::parse;

    use super::super::flow_key::Seen;
    use super::*;

    fn key(text: &str) -> FlowKey {
        let packet = net::Pool::new().packet(&parse(text).unwrap());
        Seen::of_frame(&packet).unwrap().key
    }

    fn be(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }

    #[test]
    fn packets_are_never_longer_than_links_take_and_records_are_counted() {
        let ends = ["192.0.2.1:4000".parse().unwrap(), "192.0.2.2:4739".parse().unwrap()];
        let mut exporter = Exporter::new(ends[0], ends[1], 7, 60_000_000_000);
        let keys = ["udp 10.0.0.1:1 > 10.0.0.2:2", "udp [::1]:1 > [::2]:2"].map(key);
        let mut packets = Vec::new();
        for n in 0..200 {
            let now = 1_000_000_000 * n;
            let key = keys[n as usize % 3 % 2];
            let (first, last, reason) = (now, now, EndReason::Idle);
            let record = Record { key, packets: n, bytes: 10 * n, first, last, reason };
            packets.extend(exporter.add(&record, now));
        }
        packets.extend(exporter.take(200_000_000_000));
        assert!(exporter.take(0).is_none() && !exporter.is_waiting());
        let (mut records, mut templates, mut counted) = (0, 0, 0);
        for packet in &packets {
            assert!(packet.len() <= LONGEST_PACKET);
            let ip = Ipv4::new(&packet[..]).unwrap();
            assert!(ip.checksum_ok() && usize::from(ip.total_len()) == packet.len());
            let udp = Udp::new(ip.payload()).unwrap();
            assert!(udp.checksum_ok(ip.pseudo_header(udp.len())));
            let message = udp.payload();
            assert_eq!((be(&message[..2]), be(&message[2..4])), (10, message.len() as u64));
            assert_eq!((be(&message[8..12]), be(&message[12..16])), (records, 7));
            let mut sets = &message[16..];
            while !sets.is_empty() {
                let (set, length) = (be(&sets[..2]), be(&sets[2..4]) as usize);
                let size = match set {
                    2 => length,
                    256 => 46,
                    257 => 70,
                    _ => panic!("set {set}"),
                };
                for record in sets[4..length].chunks(size) {
                    if set == 2 {
                        templates += 1;
                    } else {
                        assert_eq!(record.len(), size);
                        counted += be(&record[size - 24..size - 16]);
                        records += 1;
                    }
                }
                sets = &sets[length..];
            }
        }
        // A set of templates stands in the first packet, and in the first that was begun 60 seconds after one.
        assert_eq!((records, counted, templates), (200, (0..200).sum::<u64>(), 3));
    }
}
