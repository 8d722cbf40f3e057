//! Walking over IPv4 options, natively and in models.

use ir::field::meta;
use ir::model::{Block, Reg};
use ir::{Cond, Expr, IntervalSet, Op};
use net::wire::Ipv4;
use net::wire::ipv4::{HEADER_LEN, Options, option};

use crate::ip::ip_header::{self, NETWORK};

/// The options of a header; none if the packet ends within them.
#[inline]
pub(crate) fn of(ip: Ipv4<&[u8]>) -> Options<'_> {
    Options::new(ip.into_inner().get(HEADER_LEN..ip.header_len()).unwrap_or(&[]))
}

/// Whether options of this kind are loose or strict source routes.
#[inline]
pub(crate) fn is_source_route(kind: u8) -> bool {
    matches!(kind, option::LOOSE_SOURCE_ROUTE | option::STRICT_SOURCE_ROUTE)
}

/// The same as a condition.
pub(crate) fn source_routes(kind: Reg) -> Cond {
    let kinds = [option::LOOSE_SOURCE_ROUTE, option::STRICT_SOURCE_ROUTE];
    let kinds = kinds.map(|kind| (kind.into(), kind.into()));
    Expr::from(kind).is_in(IntervalSet::from_intervals(kinds.to_vec()))
}

/// A walk over the options of the marked header, which is at least 20 bytes long.
#[derive(Clone, Copy)]
pub(crate) struct Walk {
    /// Where the option at hand starts, from the IP header.
    pub(crate) at: Reg,
    /// Its kind.
    pub(crate) kind: Reg,
    /// Its length in bytes, kind and length included.
    pub(crate) length: Reg,
    end: Reg,
}

impl Walk {
    /// A walk that uses four registers from this one on.
    pub(crate) const fn new(first: u16) -> Self {
        Self { at: Reg(first), kind: Reg(first + 1), length: Reg(first + 2), end: Reg(first + 3) }
    }

    /// Runs `each` for every option that has a length; [`Op::Break`] in it ends the walk. At an
    /// option whose length is wrong, `malformed` runs and the walk ends. Options that the packet
    /// ends within are left alone.
    pub(crate) fn each(&self, each: Block, malformed: Block) -> Block {
        let Self { at, kind, length, end } = *self;
        let reg = Expr::from;
        let byte = |at: Expr| Expr::load(NETWORK, at, 8);
        let stop = || {
            let mut block = malformed.clone();
            if !matches!(block.last(), Some(Op::Emit(_) | Op::Drop(_))) {
                block.push(Op::Break);
            }
            block
        };
        let too_short = reg(length).lt(2u8).or((reg(at) + length).gt(end));
        let mut with_length = vec![
            Op::when(reg(kind).eq(option::END), vec![Op::Break]),
            Op::when((reg(at) + 1u8).ge(end), stop()),
            Op::Let(length, byte(reg(at) + 1u8)),
            Op::when(too_short, stop()),
        ];
        with_length.extend(each);
        with_length.push(Op::Let(at, reg(at) + length));
        let body = vec![
            Op::when(reg(at).ge(end), vec![Op::Break]),
            Op::Let(kind, byte(reg(at))),
            Op::If(reg(kind).eq(option::NOP), vec![Op::Let(at, reg(at) + 1u8)], with_length),
        ];
        vec![
            Op::Let(at, 20u8.into()),
            Op::Let(end, ip_header::says_length()),
            // At most 40 bytes of options.
            Op::when(
                reg(end).gt(20u8).and(reg(end).le(meta::AVAIL_NET)),
                vec![Op::Repeat { limit: 41, body }],
            ),
        ]
    }
}
