//! What differs between the versions of IP.

use ir::field::{ip, ip6};
use ir::{Cond, Reason};
use net::Packet;
use net::wire::Tcp;
use net::wire::ip_protocol::{ICMP, ICMPV6, TCP};

use super::segment::{Segment, What};
use super::{BAD_FLAGS, NO_CONNECTION};
use crate::flow_table::{Addresses, FlowKey, Key};
use crate::header_check::Check;
use crate::ip::icmp_quote::Quote;
use crate::ip::ip_header;
use crate::ip6::ip6_header;
use crate::ip6::upper::{self, EXTENSIONS, Key6, Whole};
use crate::transport::check_tcp_header::{CHECKSUM, CheckTCPHeader, LENGTH, NOT_TCP};

/// A version of IP whose connections are tracked.
pub(crate) trait Version: 'static {
    type Addresses: Addresses;

    /// Why packets are invalid whatever their connection.
    const REASONS: &[Reason];
    /// No header is marked.
    const NO_HEADER: Reason;

    /// What is tracked of a packet, and where its connection is looked up; the segment's checksum counts or not.
    ///
    /// # Errors
    /// Why it is invalid.
    fn see(packet: &mut Packet, checksum: bool)
    -> Result<(FlowKey<Self::Addresses>, What), Reason>;

    /// As parts of a model: no header is marked; the packet is neither TCP nor an error about it.
    fn model() -> [Cond; 2];
}

/// Looks at IPv4.
pub(crate) struct V4;
/// Looks at IPv6.
pub(crate) struct V6;

impl Version for V4 {
    type Addresses = u64;

    const REASONS: &[Reason] = &[NOT_TCP, LENGTH, CHECKSUM];
    const NO_HEADER: Reason = ip_header::NO_HEADER;

    fn see(packet: &mut Packet, checksum: bool) -> Result<(Key, What), Reason> {
        let other = Ok((Key::default(), What::Other));
        match ip_header::view(packet).ok_or(Self::NO_HEADER)?.protocol() {
            TCP => {
                CheckTCPHeader { checksum }.check(packet)?;
                let ip = ip_header::view(packet).ok_or(Self::NO_HEADER)?;
                let tcp = packet.transport().and_then(Tcp::new).ok_or(LENGTH)?;
                let headers = ip.header_len() + tcp.header_len();
                let data = usize::from(ip.total_len()).saturating_sub(headers);
                let segment = Segment::of(&tcp, data).ok_or(BAD_FLAGS)?;
                let (src, dst) = (ip.src().to_bits(), ip.dst().to_bits());
                let key = Key::new(TCP.into(), src, tcp.src_port(), dst, tcp.dst_port());
                Ok((key, What::Segment(segment)))
            }
            ICMP => match Quote::of(packet) {
                Ok(Quote {
                    protocol: TCP, src, dst, ports: Some(ports), seq: Some(seq), ..
                }) => {
                    let addresses = u64::from(src) << 32 | u64::from(dst);
                    Ok((Key { addresses, ports, map: TCP.into() }, What::Error(seq)))
                }
                // Without ports nobody knows which segment it is about.
                Ok(Quote { protocol: TCP, .. }) => Err(NO_CONNECTION),
                _ => other,
            },
            _ => other,
        }
    }

    fn model() -> [Cond; 2] {
        [ip_header::is_missing(), ip::PROTO.ne(TCP).and(ip::PROTO.ne(ICMP))]
    }
}

impl Version for V6 {
    type Addresses = [u128; 2];

    const REASONS: &[Reason] = &[
        LENGTH,
        CHECKSUM,
        upper::FRAGMENT,
        upper::BAD_EXTENSION,
        upper::SEGMENTS_LEFT,
        upper::BAD_QUOTE,
    ];
    const NO_HEADER: Reason = ip6_header::NO_HEADER;

    fn see(packet: &mut Packet, checksum: bool) -> Result<(Key6, What), Reason> {
        let whole = Whole::of(packet)?;
        if whole.protocol == TCP {
            let tcp = Tcp::new(whole.body).filter(|_| whole.is_complete).ok_or(LENGTH)?;
            let header = tcp.header_len();
            let data = whole.body.len().checked_sub(header).filter(|_| header >= 20);
            let data = data.ok_or(LENGTH)?;
            if checksum && whole.sum().checksum() != 0 {
                return Err(CHECKSUM);
            }
            let segment = Segment::of(&tcp, data).ok_or(BAD_FLAGS)?;
            return Ok((whole.key().ok_or(LENGTH)?, What::Segment(segment)));
        }
        match whole.quoted().transpose()? {
            Some(quoted) if quoted.protocol == TCP => {
                let (key, seq) = quoted.key().zip(quoted.word(4)).ok_or(NO_CONNECTION)?;
                Ok((key, What::Error(seq)))
            }
            _ => Ok((Key6::default(), What::Other)),
        }
    }

    fn model() -> [Cond; 2] {
        let other = [TCP, ICMPV6].iter().chain(&EXTENSIONS).map(|&kind| ip6::NEXT.ne(kind));
        [ip6_header::is_missing(), Cond::All(other.collect())]
    }
}
