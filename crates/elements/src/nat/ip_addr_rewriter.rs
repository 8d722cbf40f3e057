//! IPAddrRewriter and IPAddrPairRewriter: translation of addresses.

use crate::nat::rewriter::{Kind, Rewriter, Scheme};

/// See [`IPAddrRewriter::CLASS`].
pub(crate) struct Address;

impl Scheme for Address {
    const KIND: Kind = Kind::Address;
}

/// See [`IPAddrRewriter::CLASS`].
pub(crate) type IPAddrRewriter = Rewriter<Address>;

element! {
    /// IPAddrRewriter(SPEC0, ..., SPECn [, KEYWORDS]) -- gives sources addresses of a range
    ///
    /// Basic network address translation, for any IP protocol: a source address gets an address
    /// of a range for itself. Packets from an address that has one get it as their source;
    /// packets to the new address get the old one as their destination. Other packets are treated
    /// as the specification of their input says; specifications are those of IPRewriter, but
    /// patterns have addresses only:
    ///
    /// pattern SADDR[-SADDR2] - FOUTPUT ROUTPUT: the source gets a free address of the range (or
    /// of a prefix, but for its first and last address), chosen at random, or in turn if the
    /// range ends in `#`. If none is free, the packet is dropped.
    ///
    /// Expects IP packets with their headers marked. Checksums of IP, TCP, UDP and DCCP are
    /// updated incrementally. The destination annotation of packets to the new addresses is set
    /// to the old one.
    ///
    /// = KEYWORDS
    ///
    /// TIMEOUT (time, default 2 hours): after which an unused mapping expires.
    /// GUARANTEE (time, default 5 seconds): how long after a packet a mapping is not given up.
    /// MAPPING_CAPACITY, REPLY_ANNO: as in IPRewriter.
    ///
    /// = HANDLERS
    ///
    /// See IPRewriter.
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, IPAddrPairRewriter
    IPAddrRewriter {
        category: Nat, ports: "1-/1-", processing: "h/h", phase: Late,
        samples: [
            ("pattern 100.0.0.1-100.0.0.3# - 0 1, drop", 2, 2),
            ("pattern 10.0.0.0/8 - 0 1, pass 1, GUARANTEE 1, TIMEOUT 1, REPLY_ANNO 3, MAPPING_CAPACITY 4", 2, 2),
            ("keep 0 1, pattern 10.0.0.1 - 1 0", 2, 2),
        ],
        class: "IPAddrRewriter",
    }
}

/// See [`IPAddrPairRewriter::CLASS`].
pub(crate) struct Pair;

impl Scheme for Pair {
    const KIND: Kind = Kind::Pair;
}

/// See [`IPAddrPairRewriter::CLASS`].
pub(crate) type IPAddrPairRewriter = Rewriter<Pair>;

element! {
    /// IPAddrPairRewriter(SPEC0, ..., SPECn [, KEYWORDS]) -- rewrites pairs of addresses
    ///
    /// Like IPRewriter, for any IP protocol: flows are known by their source and destination
    /// addresses, which are also all that is rewritten. Patterns have addresses only:
    ///
    /// pattern SADDR[-SADDR2] DADDR FOUTPUT ROUTPUT: as in IPAddrRewriter, but an address is free
    /// if no flow with the same destination has it.
    ///
    /// = KEYWORDS
    ///
    /// TIMEOUT (time, default 2 hours): after which an unused mapping expires.
    /// GUARANTEE (time, default 5 seconds): how long after a packet a mapping is not given up.
    /// MAPPING_CAPACITY, REPLY_ANNO: as in IPRewriter.
    ///
    /// = HANDLERS
    ///
    /// See IPRewriter.
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, IPAddrRewriter
    IPAddrPairRewriter {
        category: Nat, ports: "1-/1-", processing: "h/h", phase: Late,
        samples: [
            ("pattern 100.0.0.1-100.0.0.2# - 0 1, pattern - 10.0.0.80 1 0", 2, 2),
            ("keep 0 1, pass 1, GUARANTEE 0, MAPPING_CAPACITY 3", 2, 2),
        ],
        class: "IPAddrPairRewriter",
    }
}
