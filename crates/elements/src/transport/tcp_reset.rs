//! TCPReset.

use ir::{Model, Reason};
use net::wire::ip_protocol::TCP;
use net::wire::tcp::flag::{ACK, FIN, RST, SYN};
use net::{Batch, Packet};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::transport::new_segment::{self, ABOUT_BROADCAST, NewSegment};
use crate::transport::segments;

element! {
    /// TCPReset([KEYWORDS]) -- turns TCP packets into resets
    ///
    /// Expects IPv4 and IPv6 packets with their header marked. A packet of TCP becomes one with RST to its
    /// sender, as from who it was for (RFC 9293, 3.10.7.1): its sequence number is what the packet
    /// acknowledges, or 0 and an acknowledgement of all of the packet if it acknowledges nothing. So it
    /// is accepted even where numbers are checked strictly (RFC 5961). With FORWARD it becomes one to
    /// its destination, in its place.
    ///
    /// Resets themselves are dropped as `about-reset`, fragments but the first and all that is not TCP as `not-tcp`,
    /// packets to several hosts as `about-broadcast`. The header has no options and no extension
    /// headers. Destination IP address annotations are set, others cleared. A link-layer header in
    /// front of the IP header stays where it is: EtherMirror sends it back.
    ///
    /// = KEYWORDS
    ///
    /// FORWARD (bool, default false): whether the reset goes on to the destination.
    ///
    /// = EXAMPLE
    ///
    /// filter :: URLFilter(urls.txt); filter[1] -> TCPReset -> Unstrip(14) -> EtherMirror -> ...
    ///
    /// = SEE ALSO
    ///
    /// ICMPError, URLFilter, EtherMirror
    TCPReset {
        category: Transport, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("FORWARD true", 1, 1)]
    }
}

/// Not TCP, or without its header.
const NOT_TCP: Reason = Reason("not-tcp");
/// Nobody answers a reset.
const ABOUT_RESET: Reason = Reason("about-reset");

/// See [`TCPReset::CLASS`].
pub(crate) struct TCPReset {
    forward: bool,
}

impl TCPReset {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["FORWARD"]);
        let forward = arguments.keyword("FORWARD").unwrap_or(false);
        arguments.finish()?;
        Ok(Self { forward })
    }

    fn reset(&self, packet: &Packet) -> Result<NewSegment<'static>, Reason> {
        let seen = segments::seen(packet).filter(|seen| seen.protocol == TCP);
        let tcp = seen.and_then(|seen| Some((seen, seen.tcp?)));
        let Some((seen, tcp)) = tcp else { return Err(NOT_TCP) };
        if tcp.has(RST) {
            return Err(ABOUT_RESET);
        }
        let (from, to) = ((seen.src, seen.src_port), (seen.dst, seen.dst_port));
        if !new_segment::may_be_answered(packet, &seen) {
            return Err(ABOUT_BROADCAST);
        }
        let acknowledged = tcp.has(ACK).then_some(tcp.acknowledged);
        let length = seen.payload.len() as u32 + u32::from(tcp.has(FIN));
        let reset = |from, to, sequence, acknowledged: Option<u32>| NewSegment {
            from,
            to,
            sequence,
            acknowledged,
            flags: RST,
            window: 0,
            options: &[],
        };
        Ok(match (self.forward, acknowledged) {
            // A SYN takes a number before its payload.
            (true, _) => {
                let sequence = tcp.sequence.wrapping_sub(u32::from(tcp.has(SYN)));
                reset(from, to, sequence, acknowledged)
            }
            (false, Some(sequence)) => reset(to, from, sequence, None),
            (false, None) => reset(to, from, 0, Some(tcp.sequence.wrapping_add(length))),
        })
    }

    fn turn(&self, packet: &mut Packet) -> Verdict {
        match self.reset(packet) {
            Ok(reset) => {
                reset.write(packet);
                Verdict::Pass
            }
            Err(reason) => Verdict::Drop(reason),
        }
    }
}

impl Element for TCPReset {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.turn(packet));
    }

    fn model(&self) -> Model {
        Model::opaque("writes packets anew")
    }
}
