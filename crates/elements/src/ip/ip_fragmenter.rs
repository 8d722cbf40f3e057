//! IPFragmenter.

use ir::field::{ip, meta};
use ir::model::{StateKind, reject};
use ir::{Model, Op, Reason, StateValue};
use net::wire::Ipv4;
use net::wire::ipv4::{DF, MF, option};
use net::{Batch, Header, Packet};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::ip::ip_header::{self, NO_HEADER};

element! {
    /// IPFragmenter(MTU [, HONOR_DF, KEYWORDS VERBOSE, HEADROOM]) -- cuts large IP packets into fragments
    ///
    /// Expects IP packets with their header marked. Packets of at most MTU bytes from the header
    /// on pass. Larger ones are cut into fragments (RFC 791), unless they must not be fragmented:
    /// these go unchanged to output 1, or are dropped if that is not connected. Options are
    /// repeated in later fragments where their copy flag says so. What lies before the IP header, such
    /// as an Ethernet header that Strip removed, lies before that of every fragment.
    ///
    /// = KEYWORDS
    ///
    /// HONOR_DF (bool, default true): if false, packets are fragmented whatever their DF flag
    /// says; the flag is cleared.
    /// VERBOSE, HEADROOM: accepted, without effect.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets that must not be fragmented.
    /// fragments (read): fragments made.
    ///
    /// = SEE ALSO
    ///
    /// ICMPError, IPReassembler, CheckLength
    IPFragmenter {
        category: Ip, ports: "1/1-2", processing: "h/h",
        samples: [("1500", 1, 1), ("576", 1, 2), ("60", 1, 2), ("100, false", 1, 2), ("8", 1, 2)]
    }
}

/// See [`IPFragmenter::CLASS`].
pub(crate) struct IPFragmenter {
    mtu: u16,
    honor_df: bool,
    outputs: usize,
    fragments: u64,
}

const MUST_FRAGMENT: Reason = Reason("fragmentation-needed");
const LENGTH: Reason = Reason("bad-ip-length");

/// What is to be done with a packet.
enum Cut {
    Settle(Verdict),
    Fragments,
}

impl IPFragmenter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["MTU", "HONOR_DF", "VERBOSE", "HEADROOM"]);
        let mtu_argument = arguments.keyword_argument("MTU").or_else(|| arguments.next_raw());
        let mtu = match &mtu_argument {
            Some(argument) => arguments.parse::<u32>("MTU", argument).unwrap_or(1500),
            None => arguments.required("MTU"),
        };
        if let Some(argument) = mtu_argument.filter(|_| mtu < 8) {
            arguments.error(&argument, "the MTU must be at least 8");
        }
        let honor_df = arguments.optional("HONOR_DF").unwrap_or(true);
        arguments.optional::<bool>("VERBOSE");
        arguments.keyword::<u32>("HEADROOM");
        arguments.finish()?;
        // No IP packet is longer than 65535 bytes.
        Ok(Self { mtu: mtu.min(0xffff) as u16, honor_df, outputs, fragments: 0 })
    }

    /// What is to be done with a packet that does not pass as it is.
    #[cold]
    fn judge(&self, packet: &mut Packet) -> Cut {
        let Some(ip) = ip_header::view(packet) else {
            return Cut::Settle(Verdict::Drop(NO_HEADER));
        };
        let mtu = usize::from(self.mtu);
        let available = ip.bytes().len();
        let (header_length, length) = (ip.header_len(), usize::from(ip.total_len()));
        if header_length < 20 || header_length > length || length > available {
            return Cut::Settle(Verdict::Drop(LENGTH));
        }
        if length <= mtu {
            // Only what lies behind the IP packet is too long.
            packet.take(available - length);
            return Cut::Settle(Verdict::Pass);
        }
        let dont_fragment = ip.dont_fragment() && self.honor_df;
        if dont_fragment || mtu < header_length + 8 {
            return Cut::Settle(Verdict::Reject(1, MUST_FRAGMENT));
        }
        packet.take(available - length);
        Cut::Fragments
    }

    /// Cuts a packet that [`IPFragmenter::judge`] found to be valid and too long.
    fn cut(&mut self, mut packet: Packet, out: &mut Batch, cx: &mut Context<'_>) {
        let mtu = usize::from(self.mtu);
        let Some(ip) = ip_header::view(&packet) else { return };
        let header_length = ip.header_len();
        let word = ip.fragment_word() & !DF;
        let last_word = word & !MF;
        let had_more = word & MF;
        let length = usize::from(ip.total_len());
        let payload = length - header_length;
        let at = packet.header_offset(Header::Network).unwrap_or(0);
        let mac = packet.header_offset(Header::Mac).map(|mac| mac - at);
        let mut front = ip_header::removed(&packet);
        front.extend_from_slice(
            packet.data().get(..usize::try_from(at).unwrap_or(0)).unwrap_or(&[]),
        );
        let Some(mut ip) = ip_header::view_mut(&mut packet) else { return };
        let first = (mtu - header_length) & !7;
        ip.set_total_len((header_length + first) as u16);
        ip.set_fragment_word(word | MF);
        ip.fill_checksum();
        let bytes = ip.into_inner();

        let mut later = [0u8; 60];
        let later_length = later_header(bytes, &mut later);
        let mut fragments = cx.core.batch();
        let mut at = first;
        while at < payload {
            let piece = ((mtu - later_length) & !7).min(payload - at);
            let more = if at + piece < payload { MF } else { had_more };
            let mut fragment = cx.core.pool.alloc(later_length + piece);
            let data = fragment.data_mut();
            data[..later_length].copy_from_slice(&later[..later_length]);
            let from = header_length + at;
            data[later_length..].copy_from_slice(&bytes[from..from + piece]);
            let Some(mut ip) = Ipv4::new(data) else { return };
            ip.set_total_len((later_length + piece) as u16);
            // An offset that does not fit wraps, as it must for a packet that should not exist.
            let offset = last_word.wrapping_add((at / 8) as u16);
            ip.set_fragment_word(offset | more);
            ip.fill_checksum();
            let room = fragment.headroom().min(front.len());
            fragment.push(room);
            fragment.data_mut()[..room].copy_from_slice(&front[front.len() - room..]);
            fragment.pull(room);
            fragment.set_ip_header(0, later_length);
            if let Some(mac) = mac {
                fragment.set_header_offset(Header::Mac, mac);
            }
            fragments.push(fragment);
            at += piece;
        }
        packet.take(payload - first);
        self.fragments += 1 + fragments.len() as u64;
        for fragment in fragments.iter_mut() {
            *fragment.annotations_mut() = *packet.annotations();
            fragment.set_packet_type(packet.packet_type());
            fragment.set_timestamp(packet.timestamp());
        }
        out.push(packet);
        out.append(&mut fragments);
        cx.core.recycle_batch(fragments);
    }
}

/// Makes the header of later fragments from that of the first: options without the copy flag
/// are left out. Returns its length.
fn later_header(first: &[u8], later: &mut [u8; 60]) -> usize {
    later[..20].copy_from_slice(&first[..20]);
    let mut length = 20;
    if let Some(ip) = Ipv4::new(first) {
        for found in ip.options().map_while(Result::ok) {
            let size = 2 + found.data.len();
            if option::is_copied(found.kind) {
                later[length] = found.kind;
                later[length + 1] = size as u8;
                later[length + 2..length + size].copy_from_slice(found.data);
                length += size;
            }
        }
    }
    length = length.next_multiple_of(4);
    if let Some(mut ip) = Ipv4::new(later) {
        ip.set_header_len(length);
    }
    length
}

impl Element for IPFragmenter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let range = usize::from(self.mtu).saturating_sub(19);
        // Too short and too long in one comparison; an MTU below 20 lets nothing pass.
        let passes = |packet: &Packet| packet.header_len(Header::Network).wrapping_sub(20) < range;
        let Some(first) = batch.iter().position(|packet| !passes(packet)) else { return };
        let mut kept = cx.core.batch();
        for (i, mut packet) in batch.drain().enumerate() {
            if i < first || passes(&packet) {
                kept.push(packet);
                continue;
            }
            match self.judge(&mut packet) {
                Cut::Settle(Verdict::Pass) => kept.push(packet),
                Cut::Settle(verdict) => cx.settle(packet, verdict),
                Cut::Fragments => self.cut(packet, &mut kept, cx),
            }
        }
        std::mem::swap(batch, &mut kept);
        cx.core.recycle_batch(kept);
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        model.declare("fragments", StateKind::Cells { width: 64, initial: vec![0] });
        let header_length = ip_header::says_length;
        let invalid =
            ip::HL.lt(5u8).or(header_length().gt(ip::LEN)).or(ip::LEN.gt(meta::AVAIL_NET));
        let behind = meta::AVAIL_NET.get() - ip::LEN;
        let trimmed = meta::LEN.get() - behind.min(meta::LEN);
        let too_small = (header_length() + 8u8).gt(self.mtu);
        let must_not = if self.honor_df { ip::DF.eq(1u8).or(too_small) } else { too_small };
        model.inputs = vec![vec![
            Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            Op::when(meta::AVAIL_NET.le(self.mtu), vec![Op::emit(0u8)]),
            Op::when(invalid, vec![Op::Drop(LENGTH)]),
            Op::when(ip::LEN.le(self.mtu), vec![Op::Truncate(trimmed), Op::emit(0u8)]),
            Op::when(must_not, reject(1, self.outputs, MUST_FRAGMENT)),
            Op::Opaque("makes fragments"),
        ]];
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        to.set(name, "fragments", StateValue::Cells(vec![self.fragments.into()]));
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        if let [fragments] = from.declared.cells(name, "fragments") {
            self.fragments = *fragments as u64;
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops"), Handler::count("fragments")] }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "fragments" => self.fragments.to_string(),
            _ => cx.tally.count(MUST_FRAGMENT).to_string(),
        })
    }
}
