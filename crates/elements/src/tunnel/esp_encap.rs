//! ESPEncap.

use std::net::Ipv4Addr;

use ir::{Model, Reason};
use net::wire::{Ipv4, Ipv6, ip_protocol, ipv4, ipv6};
use net::{Batch, Packet, annotation};

use super::esp::Association;
use crate::argument::Ip;
use crate::cipher::{Nonces, USED_UP};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::ip::ip_encap::TOO_LONG;

element! {
    /// ESPEncap(SPI, SRC, DST, KEY [, KEYWORDS]) -- puts IP packets into ESP packets
    ///
    /// Seals IPv4 and IPv6 packets by ESP in tunnel mode (RFC 4303) with the security parameter index
    /// SPI, and puts an IPv4 header from SRC to DST in front, which is marked. It is what Click does with
    /// IPsecESPEncap, IPsecAES, IPsecAuthHMACSHA1 and IPEncap, as ciphers that authenticate cannot be
    /// taken apart. Of IPv4 packets, the outer header has the type of service and "do not fragment".
    /// Packets that are no IP, whose lengths do not agree, or that would be longer than 65,535 bytes
    /// are dropped.
    ///
    /// KEY is a file with hexadecimal digits, or `env:` and the name of an environment variable with
    /// them. It holds the key and the salt of 4 bytes (RFC 4106) for GCM, and for CBC the key of 16
    /// bytes, and that of the keyed hash of 32. Nothing shows keys, and they are zeroed at the end.
    ///
    /// Sequence numbers begin with 1 and go on in a hot swap. After 2^32 - 1 packets, packets are
    /// dropped: another index and key are due. A start begins with 1 again, which a receiver with a
    /// replay window only takes with a new association. Each worker has an association of its own: the
    /// first has the index SPI, the next one SPI + 1, and so on (ESPDecap's SAS). Initialisation vectors
    /// count from a random number for each element, and are not used twice.
    ///
    /// = KEYWORDS
    ///
    /// ALGORITHM (name, default aes-128-gcm): aes-128-gcm, aes-256-gcm (RFC 4106), or
    /// aes-128-cbc-hmac-sha256 (RFC 3602, RFC 4868).
    /// TTL (number, default 64): the time-to-live outside.
    ///
    /// = HANDLERS
    ///
    /// algorithm (read): the algorithm.
    /// sequence (read): the sequence number of the last packet.
    /// count (read): packets that were sealed.
    ///
    /// = EXAMPLE
    ///
    /// Strip(14) -> CheckIPHeader -> ESPEncap(0x1001, 192.0.2.1, 192.0.2.2, site.key) -> ...
    ///
    /// = SEE ALSO
    ///
    /// ESPDecap, EncryptPayload, IPEncap
    ESPEncap { category: Tunnel, ports: "1/1", processing: "a/a", samples: [] }
}

/// The packet inside is not IP, or is cut off.
const NOT_IP: Reason = Reason("not-ip");
/// The last sequence number was used: another association is needed.
const SEQUENCE: Reason = Reason("sequence-used-up");

/// See [`ESPEncap::CLASS`].
pub(crate) struct ESPEncap {
    /// This worker's.
    index: u32,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    association: Association,
    ttl: u8,
    nonces: Nonces,
    sequence: u32,
    count: u64,
}

impl ESPEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let worker = cx.part().index as u32;
        let mut arguments = cx.arguments(&["SPI", "SRC", "DST", "KEY", "ALGORITHM", "TTL"]);
        let index: u32 = arguments.required("SPI");
        let source: Ip = arguments.required("SRC");
        let destination: Ip = arguments.required("DST");
        let association = Association::of(&mut arguments);
        let ttl = arguments.keyword("TTL").unwrap_or(64);
        arguments.finish()?;
        if index < 256 || index.checked_add(worker).is_none() {
            let span = cx.span();
            return Err(
                cx.error(span, "SPI is a number from 256 on, for each worker one (RFC 4303)")
            );
        }
        Ok(Self {
            index: index + worker,
            source: source.0,
            destination: destination.0,
            association: association.ok_or(Failed)?,
            ttl,
            nonces: Nonces::new(cx)?,
            sequence: 0,
            count: 0,
        })
    }

    fn seal(&mut self, packet: &mut Packet) -> Result<(), Reason> {
        // What the header inside says: protocol, length, type of service, "do not fragment".
        let (next, length, tos, fragment) = match packet.data().first().map(|byte| byte >> 4) {
            Some(4) => {
                let ip = Ipv4::new(packet.data()).ok_or(NOT_IP)?;
                (ip_protocol::IPIP, ip.total_len().into(), ip.tos(), ip.fragment_word() & ipv4::DF)
            }
            Some(6) => {
                let ip = Ipv6::new(packet.data()).ok_or(NOT_IP)?;
                let length = ipv6::HEADER_LEN + ip.payload_len();
                (ip_protocol::IPV6, length, ip.traffic_class(), 0)
            }
            _ => return Err(NOT_IP),
        };
        if length > packet.len() || length < ipv4::HEADER_LEN {
            return Err(NOT_IP);
        }
        let (front, back) = self.association.around(length);
        let total =
            u16::try_from(ipv4::HEADER_LEN + front + length + back).map_err(|_| TOO_LONG)?;
        let sequence = self.sequence.checked_add(1).ok_or(SEQUENCE)?;
        let number = self.nonces.next().ok_or(USED_UP)?;
        self.sequence = sequence;
        packet.truncate(length);
        packet.put(back);
        packet.push(front);
        let sealed = (self.index, sequence, next);
        if !self.association.seal(sealed, number, packet.data_mut(), length) {
            return Err(NOT_IP);
        }
        let mut header = Ipv4::of([0; ipv4::HEADER_LEN]);
        header.set_header_len(ipv4::HEADER_LEN);
        header.set_tos(tos);
        header.set_total_len(total);
        header.set_id(sequence as u16);
        header.set_fragment_word(fragment);
        header.set_ttl(self.ttl);
        header.set_protocol(ip_protocol::ESP);
        header.set_src(self.source);
        header.set_dst(self.destination);
        header.fill_checksum();
        packet.prepend(&header.into_inner());
        packet.set_ip_header(0, ipv4::HEADER_LEN);
        packet.annotations_mut().set_u32(annotation::DST_IP, self.destination.to_bits());
        self.count += 1;
        Ok(())
    }
}

impl Element for ESPEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| {
            self.seal(packet).map_or_else(Verdict::Drop, |()| Verdict::Pass)
        });
    }

    fn model(&self) -> Model {
        Model::opaque("encrypts packets")
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_all() {
            to.numbers = vec![self.sequence.into(), self.count];
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        if let Some([sequence, count]) = from.counts() {
            (self.sequence, self.count) = (sequence as u32, count);
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("algorithm"), Handler::read("sequence"), Handler::count("count")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "sequence" => self.sequence.to_string(),
            "count" => self.count.to_string(),
            _ => self.association.name().to_string(),
        })
    }
}
