//! ESPDecap.

use ir::{Model, Reason};
use net::wire::{Ipv4, Ipv6, ip_protocol, ipv4, ipv6};
use net::{Batch, Header, Packet};

use super::esp::{Association, HEAD, LENGTH, Window};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;

element! {
    /// ESPDecap(SPI, KEY [, KEYWORDS]) -- takes IP packets out of ESP packets
    ///
    /// Opens packets of ESP in tunnel mode (RFC 4303) with the security parameter index SPI, as ESPEncap
    /// makes them. Expects IPv4 packets with their header marked. The IPv4 or IPv6 packet inside leaves
    /// on output 0, with no header marked: CheckIPHeader or CheckIP6Header comes next.
    ///
    /// Packets of other protocols or indexes, and fragments, leave on output 1 as they came, or are
    /// dropped if that is not connected. Dropped are packets that were received before or are too old for
    /// the replay window, are not authentic, have a wrong length or padding, or hold no IP. A number
    /// counts as received once its packet is authentic. Packets that only hide traffic (next header 59)
    /// are dropped as `dummy`.
    ///
    /// Congestion marked outside is marked inside (RFC 6040): in packets that cannot say so it means
    /// that they are dropped. Extended sequence numbers, compression and UDP encapsulation are not
    /// supported.
    ///
    /// = KEYWORDS
    ///
    /// ALGORITHM (name, default aes-128-gcm), and what KEY is: see ESPEncap.
    /// REPLAY (number, default 64): sequence numbers of the replay window, up to 65,536, rounded up to 64;
    /// 0 accepts what was received before, too.
    /// SAS (number, default 1): associations with one key, from SPI on: as many as the sender has workers.
    ///
    /// = HANDLERS
    ///
    /// algorithm (read): the algorithm.
    /// count (read): packets that were opened.
    ///
    /// = EXAMPLE
    ///
    /// Strip(14) -> CheckIPHeader -> IPReassembler -> ESPDecap(0x1001, site.key) -> CheckIPHeader -> ...
    ///
    /// = SEE ALSO
    ///
    /// ESPEncap, DecryptPayload, IPReassembler
    ESPDecap { category: Tunnel, ports: "1/1-2", processing: "a/ah", samples: [] }
}

/// No packet of ESP, or a fragment of one.
const NOT_ESP: Reason = Reason("not-esp");
/// The security parameter index is another one.
const OTHER: Reason = Reason("other-spi");
/// The number was seen, or is older than the window.
const REPLAYED: Reason = Reason("replayed");
/// The packet only hides traffic.
const DUMMY: Reason = Reason("dummy");
/// What is inside is not IP.
const NOT_IP: Reason = Reason("not-ip");
/// Congestion is marked outside of a packet that cannot carry the mark.
const CONGESTION: Reason = Reason("not-ecn-capable");

const MOST_REPLAY: usize = 65_536;
const MOST_ASSOCIATIONS: usize = 1024;
/// The last next header of RFC 4303: no packet.
const NO_NEXT: u8 = 59;

/// See [`ESPDecap::CLASS`].
pub(crate) struct ESPDecap {
    index: u32,
    association: Association,
    /// One for each index.
    windows: Vec<Window>,
    count: u64,
}

impl ESPDecap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["SPI", "KEY", "ALGORITHM", "REPLAY", "SAS"]);
        let index = arguments.required("SPI");
        let association = Association::of(&mut arguments);
        let mut number = |name, default, range: std::ops::RangeInclusive<usize>| {
            let Some(word) = arguments.keyword_argument(name) else { return default };
            let number = arguments.parse(name, &word).unwrap_or(default);
            if !range.contains(&number) {
                let (low, high) = range.into_inner();
                arguments.error(&word, format!("{name} is a number from {low} to {high}"));
                return default;
            }
            number
        };
        let size = number("REPLAY", 64, 0..=MOST_REPLAY);
        let associations = number("SAS", 1, 1..=MOST_ASSOCIATIONS);
        arguments.claim("REPLAY", (size / 8 * associations) as u64);
        arguments.finish()?;
        let windows = vec![Window::new(size); associations];
        Ok(Self { index, association: association.ok_or(Failed)?, windows, count: 0 })
    }

    /// Opens a packet; what is to be rejected is named apart from what is dropped.
    fn open(&mut self, packet: &mut Packet) -> Verdict {
        let network = packet.header_offset(Header::Network).and_then(|at| usize::try_from(at).ok());
        let Some(network) = network else { return Verdict::Reject(1, NOT_ESP) };
        let Some(ip) = packet.data().get(network..).and_then(Ipv4::new_checked) else {
            return Verdict::Reject(1, NOT_ESP);
        };
        if ip.protocol() != ip_protocol::ESP || ip.is_fragment() {
            return Verdict::Reject(1, NOT_ESP);
        }
        let (begin, end) = (network + ip.header_len(), network + usize::from(ip.total_len()));
        let congestion = ip.ecn();
        let Some(head) = packet.data().get(begin..end).and_then(|esp| esp.first_chunk::<HEAD>())
        else {
            return Verdict::Drop(LENGTH);
        };
        let [a, b, c, d, e, f, g, h] = *head;
        let (index, sequence) =
            (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
        let of = index.checked_sub(self.index).and_then(|at| self.windows.get_mut(at as usize));
        let Some(window) = of else { return Verdict::Reject(1, OTHER) };
        if !window.allows(sequence) {
            return Verdict::Drop(REPLAYED);
        }
        let inner = match self.association.open(&mut packet.data_mut()[begin..end]) {
            Ok(inner) => inner,
            Err(why) => return Verdict::Drop(why),
        };
        window.note(sequence);
        packet.truncate(begin + inner.end);
        packet.pull(begin + inner.begin);
        [Header::Network, Header::Transport].into_iter().for_each(|h| packet.clear_header(h));
        if inner.next == NO_NEXT {
            return Verdict::Drop(DUMMY);
        }
        match mark_congestion(packet.data_mut(), inner.next, congestion) {
            Ok(()) => {
                self.count += 1;
                Verdict::Pass
            }
            Err(why) => Verdict::Drop(why),
        }
    }
}

/// Marks congestion inside that was marked outside.
fn mark_congestion(data: &mut [u8], next: u8, outside: u8) -> Result<(), Reason> {
    /// Codepoints of ECN: not capable; congestion.
    const NONE: u8 = 0;
    const CONGESTED: u8 = 3;
    let version = data.first().map(|byte| byte >> 4);
    let new = |inside| match (inside, outside) {
        (NONE, CONGESTED) => Err(CONGESTION),
        (NONE, _) => Ok(NONE),
        (_, CONGESTED) => Ok(CONGESTED),
        // From ECT(0) to ECT(1).
        (2, 1) => Ok(1),
        (inside, _) => Ok(inside),
    };
    match (next, version) {
        (ip_protocol::IPIP, Some(4)) if data.len() >= ipv4::HEADER_LEN => {
            let mut ip = Ipv4::new(data).ok_or(NOT_IP)?;
            let ecn = new(ip.ecn())?;
            if ecn != ip.ecn() {
                ip.replace_tos(ip.tos() & !3 | ecn);
            }
            Ok(())
        }
        (ip_protocol::IPV6, Some(6)) if data.len() >= ipv6::HEADER_LEN => {
            let mut ip = Ipv6::new(data).ok_or(NOT_IP)?;
            let ecn = new(ip.traffic_class() & 3)?;
            ip.set_traffic_class(ip.traffic_class() & !3 | ecn);
            Ok(())
        }
        _ => Err(NOT_IP),
    }
}

impl Element for ESPDecap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.open(packet));
    }

    fn model(&self) -> Model {
        Model::opaque("decrypts packets")
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_all() {
            to.numbers.push(self.count);
            to.numbers.push(self.windows.len() as u64);
            self.windows.iter().for_each(|window| to.numbers.extend(window.export()));
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        let [count, windows, numbers @ ..] = &from.numbers[..] else { return };
        self.count = *count;
        let Some(size) = numbers.len().checked_div(*windows as usize).filter(|n| *n > 0) else {
            return;
        };
        self.windows.iter_mut().zip(numbers.chunks(size)).for_each(|(own, of)| own.import(of));
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("algorithm"), Handler::count("count")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.count.to_string(),
            _ => self.association.name().to_string(),
        })
    }
}
