//! Where the payload of an IPv4 packet lies that is sealed or opened, and its headers once it has another length.

use ir::Reason;
use net::wire::{Ipv4, Tcp, Udp, ip_protocol, udp};
use net::{Header, Packet, checksum};

use crate::ip::ip_header::NO_HEADER;
use crate::transport::transport_checksum;

/// A fragment, where whole packets are expected.
const FRAGMENT: Reason = Reason("fragment");
const LENGTH: Reason = Reason("bad-ip-length");
/// The header of TCP or UDP is cut off, or says another length than IP does.
const TRANSPORT_LENGTH: Reason = Reason("bad-transport-length");

/// Where headers and payload begin in a packet, whose data end with the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PayloadLayout {
    pub network: usize,
    transport: usize,
    pub payload: usize,
    protocol: u8,
}

impl PayloadLayout {
    /// Finds the payload: behind the header of TCP or UDP, and behind that of IP for other protocols. What follows
    /// the IP packet is cut off.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn of(packet: &mut Packet) -> Result<Self, Reason> {
        let network = packet.header_offset(Header::Network).and_then(|at| usize::try_from(at).ok());
        let network = network.ok_or(NO_HEADER)?;
        let ip = packet.data().get(network..).and_then(Ipv4::new_checked).ok_or(NO_HEADER)?;
        if ip.is_fragment() {
            return Err(FRAGMENT);
        }
        let (end, protocol) = (network + usize::from(ip.total_len()), ip.protocol());
        let transport = network + ip.header_len();
        if end < transport {
            return Err(LENGTH);
        }
        let segment = packet.data().get(transport..end).ok_or(LENGTH)?;
        let header = match protocol {
            ip_protocol::TCP => {
                let header = Tcp::new(segment).map(|tcp| tcp.header_len());
                header.filter(|length| (20..=segment.len()).contains(length))
            }
            ip_protocol::UDP => {
                let length = Udp::new(segment).map(|udp| usize::from(udp.len()));
                length.filter(|length| *length == segment.len()).map(|_| udp::HEADER_LEN)
            }
            _ => Some(0),
        };
        let payload = transport + header.ok_or(TRANSPORT_LENGTH)?;
        packet.truncate(end);
        Ok(Self { network, transport, payload, protocol })
    }

    /// Puts another payload in the place of this one.
    pub(crate) fn replace(self, packet: &mut Packet, payload: &[u8]) {
        packet.truncate(self.payload);
        packet.put(payload.len());
        packet.data_mut()[self.payload..].copy_from_slice(payload);
        self.finish(packet);
    }

    /// Makes lengths and checksums those of the payload that is there now.
    pub(crate) fn finish(self, packet: &mut Packet) {
        let (length, segment) = (packet.len() - self.network, packet.len() - self.transport);
        let data = packet.data_mut();
        if let Some(mut ip) = Ipv4::new(&mut data[self.network..]) {
            let old = ip.total_len();
            ip.set_total_len(length as u16);
            ip.set_checksum(checksum::update_u16(ip.checksum(), old, length as u16));
        }
        let (headers, behind) = data.split_at_mut(self.transport);
        let Some(ip) = Ipv4::new(&headers[self.network..]) else { return };
        match self.protocol {
            ip_protocol::TCP => {
                let Some(mut tcp) = Tcp::new(&mut *behind) else { return };
                tcp.set_checksum(0);
                let sum = transport_checksum::sum(ip, behind).checksum();
                if let Some(mut tcp) = Tcp::new(behind) {
                    tcp.set_checksum(sum);
                }
            }
            ip_protocol::UDP => {
                let Some(mut udp) = Udp::new(&mut *behind) else { return };
                udp.set_len(segment as u16);
                if checksum::udp_absent(udp.checksum()) {
                    return;
                }
                udp.set_checksum(0);
                let sum = transport_checksum::sum(ip, behind).checksum();
                if let Some(mut udp) = Udp::new(behind) {
                    udp.set_checksum(checksum::udp_field(sum));
                }
            }
            _ => {}
        }
    }
}
