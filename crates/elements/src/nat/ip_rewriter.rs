//! IPRewriter, TCPRewriter and UDPRewriter: translation of addresses and ports.

use crate::nat::rewriter::{Kind, Rewriter, Scheme};

/// See [`IPRewriter::CLASS`].
pub(crate) struct Ip;

impl Scheme for Ip {
    const KIND: Kind = Kind::Ip;
}

/// See [`IPRewriter::CLASS`].
pub(crate) type IPRewriter = Rewriter<Ip>;

element! {
    /// IPRewriter(SPEC0, ..., SPECn [, KEYWORDS]) -- rewrites addresses and ports of TCP and UDP flows
    ///
    /// A network address and port translator (NAPT), and what else can be made from rewriting
    /// flows: port forwarding, load balancing, proxies.
    ///
    /// The element keeps a table of flows. Every packet, whatever input it comes in on, is looked
    /// up by its addresses, ports and protocol. If it belongs to a flow, in either direction, it
    /// is rewritten as the flow says and leaves on the flow's output for that direction. Else the
    /// specification of its input decides; there is one for each input:
    ///
    /// drop: the packet is dropped. (Also: discard.)
    ///
    /// pass OUTPUT: the packet leaves unchanged. (Also: passthrough, nochange.)
    ///
    /// keep FOUTPUT ROUTPUT: a flow that changes nothing is added; its packets leave on FOUTPUT,
    /// those of the other direction on ROUTPUT.
    ///
    /// pattern SADDR SPORT DADDR DPORT FOUTPUT ROUTPUT: a flow is added whose packets get these
    /// addresses and ports and leave on FOUTPUT; packets of the other direction are rewritten
    /// back and leave on ROUTPUT. A dash leaves a field as it is. SPORT may be a range, L-H: then
    /// the flow gets a port of it that no other flow with the same destination has, preferably
    /// its own, else one at random. L-H# gives ports in turn; L-H? always at random. If none is
    /// free, the packet is dropped. A flow without a range takes its mapping from an older one
    /// that has the same.
    ///
    /// pattern NAME FOUTPUT ROUTPUT: the same with a pattern of IPRewriterPatterns.
    ///
    /// MAPPER: the element of this name chooses a pattern (RoundRobinIPMapper).
    ///
    /// Behind ROUTPUT another rewriter of the same class may be named, which shares this one's
    /// MAPPING_CAPACITY: packets of the other direction are then expected there, and leave on its
    /// output ROUTPUT.
    ///
    /// Expects IP packets with their headers marked. Packets of other protocols, fragments but
    /// the first, and packets whose transport header is cut off are dropped, except on inputs
    /// with pass. Checksums are updated incrementally: wrong ones stay wrong.
    ///
    /// A flow expires when no packet came for a time. Times are rounded up by a 64th of the
    /// shortest timeout at most, but by an eighth of a second at least and four seconds at most.
    /// When the table is full, the flow that expires first is given up for a new one, but none
    /// before its guarantee is over: then the new flow's packet is dropped.
    ///
    /// Flows stay when another configuration replaces a running one. They have its
    /// timeouts from their next packet on, and until then do not outlive one that became shorter.
    /// Those that there is no room for any more are given up as if the table was full, but with a
    /// guarantee too. Both are done bit by bit, with the batches of packets that follow, and first
    /// to flows that expire first.
    ///
    /// = KEYWORDS
    ///
    /// TCP_TIMEOUT (time, default 24 hours): of TCP connections with data in both directions.
    /// TCP_NODATA_TIMEOUT (time, default 5 minutes): of other TCP connections.
    /// TCP_DONE_TIMEOUT (time, default 4 minutes): of those that RST, or FIN in both directions, ended.
    /// TCP_GUARANTEE (time, default 5 seconds): how long after a packet a flow is not given up.
    /// UDP_TIMEOUT (time, default 5 minutes): of UDP flows.
    /// UDP_STREAMING_TIMEOUT (time, default UDP_TIMEOUT): of UDP flows of three packets and more,
    /// with packets in both directions.
    /// UDP_GUARANTEE (time, default 5 seconds): as TCP_GUARANTEE, for UDP.
    /// MAPPING_CAPACITY (number or element, default 4194304): how many flows there may be, or
    /// another rewriter with which the capacity is shared.
    /// DST_ANNO (bool, default true): whether the destination annotation is set to the new
    /// destination.
    /// REPLY_ANNO (annotation): a byte that packets of the other direction get from the packet
    /// that made the flow.
    /// REWRITE (bool, default true): whether packets are rewritten. Otherwise they keep addresses and ports, and their
    /// flow decides on the destination annotation and the output alone: a balancer sends them to servers that answer directly.
    /// REAP_INTERVAL, HANDLE_MIGRATION: accepted, without effect.
    ///
    /// = HANDLERS
    ///
    /// table, tcp_table, udp_table (read): the flows, a line for each direction.
    /// table_size (read): number of flows that this element made.
    /// mapping_failures (read): packets dropped because no port was free or the table was full.
    /// patterns, pattern0... (read): the specifications, with numbers of flows.
    /// size (read): number of flows that count towards the capacity.
    /// capacity (read, write): the capacity.
    /// clear (write): forgets all flows.
    /// tcp_lookup (read, with SADDR SPORT DADDR DPORT): what such a TCP packet becomes.
    ///
    /// = EXAMPLE
    ///
    /// rw :: IPRewriter(pattern 100.0.0.1 1024-65535 - - 0 1, drop);
    /// inside -> [0] rw [0] -> outside; from_outside -> [1] rw [1] -> to_inside;
    ///
    /// = SEE ALSO
    ///
    /// TCPRewriter, UDPRewriter, IPAddrRewriter, IPAddrPairRewriter, ICMPPingRewriter,
    /// ICMPRewriter, IPRewriterPatterns, RoundRobinIPMapper, SourceIPHashMapper
    IPRewriter {
        category: Nat, ports: "1-/1-", processing: "h/h", phase: Late,
        samples: [
            ("pattern 100.0.0.1 1024-65535# - - 0 1, drop", 2, 2),
            ("pattern 100.0.0.1 1024-65535 - - 0 1, drop, REPLY_ANNO 5, DST_ANNO false", 2, 2),
            ("pattern 100.0.0.1 2000-2003? - - 0 1, keep 1 0, MAPPING_CAPACITY 5, UDP_GUARANTEE 0", 2, 2),
            ("pattern 100.0.0.1 6000 - - 0 0, pass 1, TCP_GUARANTEE 1, TCP_DONE_TIMEOUT 2", 2, 2),
            ("pattern - 1-65535 10.0.0.1 - 0 0, pattern 100.0.0.1 2000-2003? - - 1 1, REWRITE false", 2, 2),
            ("law_turns, pattern 10.0.0.0/29# - - - 1 0", 2, 2),
            ("law_hash, pattern law_pattern 1 0, MAPPING_CAPACITY law_first", 2, 2),
            ("keep 0 0 law_first, law_turns, MAPPING_CAPACITY law_first, UDP_TIMEOUT 1, UDP_STREAMING_TIMEOUT 2", 2, 2),
        ],
        prelude: "IPRewriterPatterns(law_pattern 10.0.0.9 1000-1200# - 80);
            law_turns :: RoundRobinIPMapper(100.0.0.1 4000-4001# - - 0 1, law_pattern 1 0, - - 10.0.0.1 - 0 0);
            law_hash :: SourceIPHashMapper(5 1, - - 10.0.0.1 - 1 0 3, 10.0.0.2 500-501 10.0.0.2 - 1 0 1);
            Idle -> law_first :: IPRewriter(drop, MAPPING_CAPACITY 30) -> Discard;",
        class: "IPRewriter",
    }
}

/// See [`TCPRewriter::CLASS`].
pub(crate) struct Tcp;

impl Scheme for Tcp {
    const KIND: Kind = Kind::Tcp;
}

/// See [`TCPRewriter::CLASS`].
pub(crate) type TCPRewriter = Rewriter<Tcp>;

element! {
    /// TCPRewriter(SPEC0, ..., SPECn [, KEYWORDS]) -- rewrites addresses and ports of TCP flows
    ///
    /// Like IPRewriter, for TCP only; packets of other protocols are dropped, except on inputs
    /// with pass.
    ///
    /// = KEYWORDS
    ///
    /// TIMEOUT, TCP_TIMEOUT (time, default 24 hours): of connections with data in both directions.
    /// TCP_NODATA_TIMEOUT (time, default 5 minutes): of others.
    /// TCP_DONE_TIMEOUT (time, default 4 minutes): of those that RST, or FIN in both directions, ended.
    /// GUARANTEE, TCP_GUARANTEE (time, default 5 seconds): how long after a packet a flow is not
    /// given up.
    /// MAPPING_CAPACITY, DST_ANNO, REPLY_ANNO: as in IPRewriter.
    ///
    /// = HANDLERS
    ///
    /// lookup (read, with SADDR SPORT DADDR DPORT): what such a packet becomes. For the others
    /// see IPRewriter.
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, UDPRewriter
    TCPRewriter {
        category: Nat, ports: "1-/1-", processing: "h/h", phase: Late,
        samples: [
            ("pattern 100.0.0.1 1024-65535# - - 0 1, drop", 2, 2),
            ("pattern 100.0.0.1 1024-1030 - - 0 1, pass 1, GUARANTEE 0, MAPPING_CAPACITY 3", 2, 2),
        ],
        class: "TCPRewriter",
    }
}

/// See [`UDPRewriter::CLASS`].
pub(crate) struct Udp;

impl Scheme for Udp {
    const KIND: Kind = Kind::Udp;
}

/// See [`UDPRewriter::CLASS`].
pub(crate) type UDPRewriter = Rewriter<Udp>;

element! {
    /// UDPRewriter(SPEC0, ..., SPECn [, KEYWORDS]) -- rewrites addresses and ports of UDP, TCP and DCCP flows
    ///
    /// Like IPRewriter, but the protocol is not part of a flow's key: a flow is known by its addresses and
    /// ports alone, and all flows live as UDP flows do.
    ///
    /// = KEYWORDS
    ///
    /// TIMEOUT, UDP_TIMEOUT (time, default 5 minutes): of flows.
    /// STREAMING_TIMEOUT, UDP_STREAMING_TIMEOUT (time, default TIMEOUT): of flows of three
    /// packets and more, with packets in both directions.
    /// GUARANTEE, UDP_GUARANTEE (time, default 5 seconds): how long after a packet a flow is not
    /// given up.
    /// MAPPING_CAPACITY, DST_ANNO, REPLY_ANNO: as in IPRewriter.
    ///
    /// = HANDLERS
    ///
    /// See IPRewriter.
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, TCPRewriter
    UDPRewriter {
        category: Nat, ports: "1-/1-", processing: "h/h", phase: Late,
        samples: [
            ("pattern 100.0.0.1 1024-65535# - - 0 1, drop", 2, 2),
            ("pattern - 1024-1030? 10.0.0.1 80 0 1, pass 1, GUARANTEE 1, TIMEOUT 1, STREAMING_TIMEOUT 3, MAPPING_CAPACITY 3", 2, 2),
        ],
        class: "UDPRewriter",
    }
}
