//! The checksum of TCP and UDP, which covers a pseudo-header (RFC 768, RFC 9293).

use ir::field::ip;
use ir::model::{Block, Reg};
use ir::{Expr, Op};
use net::checksum::{Sum, pseudo_header_v4};
use net::wire::Ipv4;
use net::wire::ipv4::HEADER_LEN;
use std::net::Ipv4Addr;

use crate::ip::ip_header::{NETWORK, TRANSPORT};
use crate::ip::ip_options::{self, Walk};

/// The sum over the pseudo-header and `segment`, the transport header and its data.
#[inline]
pub(crate) fn sum(ip: Ipv4<&[u8]>, segment: &[u8]) -> Sum {
    let has_options = ip.header_len() > HEADER_LEN;
    let destination = if has_options { final_destination(ip) } else { ip.dst() };
    let length = segment.len() as u16;
    pseudo_header_v4(ip.src(), destination, ip.protocol(), length).plus(Sum::of(segment))
}

/// Where the packet will have arrived at the end of its source route, if it has one: that is
/// the destination that its sender computed with.
#[cold]
fn final_destination(ip: Ipv4<&[u8]>) -> Ipv4Addr {
    let mut options = ip_options::of(ip).map_while(Result::ok);
    options
        .find(|found| ip_options::is_source_route(found.kind))
        .and_then(|found| {
            let (&pointer, route) = found.data.split_first()?;
            let &last = route.last_chunk::<4>()?;
            (usize::from(pointer) < found.data.len()).then_some(last.into())
        })
        .unwrap_or(ip.dst())
}

// The same as parts of models.

/// Binds the final destination to `to`; uses this register and five more from it on.
pub(crate) fn model_destination(to: Reg) -> Block {
    let walk = Walk::new(to.0 + 1);
    let pointer = Reg(to.0 + 5);
    let byte = |at: Expr| Expr::load(NETWORK, at, 8);
    let route = vec![
        Op::when(
            Expr::from(walk.length).ge(7u8),
            vec![
                Op::Let(pointer, byte(Expr::from(walk.at) + 2u8)),
                Op::when(
                    (Expr::from(pointer) + 3u8).le(walk.length),
                    vec![Op::Let(
                        to,
                        Expr::load(NETWORK, Expr::from(walk.at) + walk.length - 4u8, 32),
                    )],
                ),
            ],
        ),
        Op::Break,
    ];
    let mut block = vec![Op::Let(to, ip::DST.get())];
    let each = vec![Op::when(ip_options::source_routes(walk.kind), route)];
    block.push(Op::when(ip::HL.gt(5u8), walk.each(each, Vec::new())));
    block
}

/// The folded sum over the pseudo-header, with the destination bound before, and `length` bytes
/// of segment.
pub(crate) fn model_sum(to: Reg, length: &Expr) -> Expr {
    let halves = |address: Expr| (address.clone() >> 16u8) + (address & 0xffffu16);
    let pseudo = halves(ip::SRC.get()) + halves(to.into()) + ip::PROTO + length.clone();
    (pseudo + Expr::sum16(TRANSPORT, 0u8, length.clone())).fold16()
}
