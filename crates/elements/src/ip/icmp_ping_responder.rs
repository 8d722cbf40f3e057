//! ICMPPingResponder.

use ir::field::{anno, icmp, ip, meta};
use ir::model::{Reg, reject};
use ir::{Expr, Field, Model, Op, Reason};
use net::checksum::{Delta, Sum, update_u16};
use net::wire::Icmpv4;
use net::wire::icmpv4::message::{ECHO, ECHO_REPLY};
use net::wire::ip_protocol::ICMP;
use net::{Batch, Packet, annotation};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{self, NETWORK, TRANSPORT};

element! {
    /// ICMPPingResponder() -- answers ICMP echo requests
    ///
    /// Expects IP packets with their header marked. Turns each echo request into its reply:
    /// addresses swapped, TTL 255, flags and fragment offset 0, checksums updated incrementally;
    /// sets the destination address annotation and the timestamp, and clears the paint. All other
    /// packets go to output 1, or are dropped if that is not connected.
    ///
    /// = SEE ALSO
    ///
    /// ICMPError, ARPResponder
    ICMPPingResponder {
        category: Ip, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 1), ("", 1, 2)]
    }
}

/// See [`ICMPPingResponder::CLASS`].
pub(crate) struct ICMPPingResponder {
    outputs: usize,
}

/// Not an ICMP echo request.
const NOT_ECHO: Reason = Reason("not-echo-request");

/// TTL of replies.
const TTL: u8 = 255;

impl ICMPPingResponder {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        cx.arguments(&[]).finish()?;
        Ok(Self { outputs })
    }
}

/// The 16-bit word whose first byte this is.
fn word(first: u8) -> u16 {
    u16::from(first) << 8
}

fn respond(packet: &mut Packet, now: u64) -> Verdict {
    let is_echo = ip_header::view(packet).is_some_and(|ip| ip.protocol() == ICMP)
        && packet.transport().and_then(Icmpv4::new).is_some_and(|m| m.message_type() == ECHO);
    let Some(mut ip) = ip_header::fixed_mut(packet).filter(|_| is_echo) else {
        return Verdict::Reject(1, NOT_ECHO);
    };
    let to = ip.src();
    ip.swap_addresses();
    let delta = Delta::NONE.u16(ip.fragment_word(), 0).u16(word(ip.ttl()), word(TTL));
    ip.set_checksum(delta.apply(ip.checksum()));
    ip.set_fragment_word(0);
    ip.set_ttl(TTL);
    packet.annotations_mut().set_u32(annotation::DST_IP, to.to_bits());
    packet.annotations_mut().set_u8(annotation::PAINT, 0);
    packet.set_timestamp(now);
    if let Some(mut message) = packet.transport_mut().and_then(Icmpv4::new) {
        let old = word(message.message_type()) | u16::from(message.code());
        let sum = update_u16(message.checksum(), old, word(ECHO_REPLY));
        message.set_message_type(ECHO_REPLY);
        message.set_code(0);
        message.set_checksum(sum);
        // The sum of nothing but zeros is complemented to the other zero.
        if sum == 0 && Sum::of(message.bytes()).fold() == 0 {
            message.set_checksum(0xffff);
        }
    }
    Verdict::Pass
}

impl Element for ICMPPingResponder {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        cx.each(batch, |packet, _| respond(packet, now));
    }

    fn model(&self) -> Model {
        const OLD: Reg = Reg(0);
        const TO: Reg = Reg(1);
        let is_echo = ip_header::is_missing()
            .not()
            .and(ip::PROTO.eq(ICMP))
            .and(meta::AVAIL_TRANSPORT.ge(8u8))
            .and(icmp::TYPE.eq(ECHO));
        let replace = |word: Field, sum: Field, sets: Vec<Op>| {
            let mut block = vec![Op::Let(OLD, word.get())];
            block.extend(sets);
            block.push(sum.set(ip_header::model_update(sum, [(OLD.into(), word.get())])));
            block
        };
        let mut block = vec![
            Op::when(is_echo.not(), reject(1, self.outputs, NOT_ECHO)),
            Op::Let(TO, ip::SRC.get()),
            ip::SRC.set(ip::DST),
            ip::DST.set(TO),
        ];
        let ttl_word = Field::bytes(NETWORK, 8, 2);
        block.extend(replace(ip::FLAGS_FRAG, ip::CHECKSUM, vec![ip::FLAGS_FRAG.set(0u8)]));
        block.extend(replace(ttl_word, ip::CHECKSUM, vec![ip::TTL.set(TTL)]));
        block.extend([anno::DST_IP.set(TO), anno::PAINT.set(0u8), meta::TIMESTAMP.set(Expr::Now)]);
        let first = Field::bytes(TRANSPORT, 0, 2);
        let reply = vec![icmp::TYPE.set(ECHO_REPLY), icmp::CODE.set(0u8)];
        block.extend(replace(first, icmp::CHECKSUM, reply));
        let zeros =
            icmp::CHECKSUM.eq(0u8).and(Expr::sum16(TRANSPORT, 0u8, meta::AVAIL_TRANSPORT).eq(0u8));
        block.extend([Op::when(zeros, vec![icmp::CHECKSUM.set(0xffffu16)]), Op::emit(0u8)]);
        Model::from_block(block)
    }
}
