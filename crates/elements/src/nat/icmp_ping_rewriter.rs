//! ICMPPingRewriter.

use crate::nat::rewriter::{Kind, Rewriter, Scheme};

/// See [`ICMPPingRewriter::CLASS`].
pub(crate) struct Ping;

impl Scheme for Ping {
    const KIND: Kind = Kind::Ping;
}

/// See [`ICMPPingRewriter::CLASS`].
pub(crate) type ICMPPingRewriter = Rewriter<Ping>;

element! {
    /// ICMPPingRewriter(SPEC0, ..., SPECn [, KEYWORDS]) -- rewrites ICMP echo requests and replies
    ///
    /// Lets pings through a network address translator. Like IPRewriter, with the identifier of
    /// an echo request in the place of the source port: flows are known by source, destination
    /// and identifier of the requests, and all three may be rewritten. Replies to rewritten
    /// requests are rewritten back. Other replies, and other packets, are dropped, except on
    /// inputs with pass.
    ///
    /// A range of identifiers that ends in `#` gives them in turn, whether they are in use or
    /// not: a flow that has the identifier towards the same destination is given up.
    ///
    /// = KEYWORDS
    ///
    /// TIMEOUT (time, default 5 minutes): after which an unused mapping expires.
    /// GUARANTEE (time, default 5 seconds): how long after a packet a mapping is not given up.
    /// MAPPING_CAPACITY, DST_ANNO, REPLY_ANNO: as in IPRewriter.
    ///
    /// = HANDLERS
    ///
    /// See IPRewriter.
    ///
    /// = EXAMPLE
    ///
    /// pings :: ICMPPingRewriter(pattern 100.0.0.1 1024-65535 - - 0 1, drop);
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, ICMPRewriter, ICMPPingResponder
    ICMPPingRewriter {
        category: Nat, ports: "1-/1-", processing: "h/h", phase: Late,
        samples: [
            ("pattern 100.0.0.1 500-502# - - 0 1, drop", 2, 2),
            ("pattern 100.0.0.1 0-65535 - - 0 1, pass 1, REPLY_ANNO 4", 2, 2),
            ("keep 1 0, pattern 10.0.0.0/29# 10.0.0.2 0 1, DST_ANNO false, MAPPING_CAPACITY 3", 2, 2),
        ],
        class: "ICMPPingRewriter",
    }
}
