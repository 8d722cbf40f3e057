//! IPClassifier.

use ir::Model;
use net::Batch;

use crate::classify::classifier::{self, NO_MATCHES, RuleClassifier, patterns};
use crate::classify::pattern::{Rule, Version, parse};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::listing::Slice;

element! {
    /// IPClassifier(PATTERN, ...) -- sorts IP packets by their headers
    ///
    /// Has an output for each pattern and sends a packet to the output of the first pattern that
    /// it matches. Packets that match none are dropped. The IP header must have been marked, by
    /// CheckIPHeader or MarkIPHeader; a packet without one fails every test.
    ///
    /// A pattern combines tests by `and` (or `&&`, or nothing at all), `or` (or `||`), `not` (or
    /// `!`), `CONDITION ? PATTERN : PATTERN` with spaces around the colon, and parentheses;
    /// `not` binds tightest, then `and`, then `or`, then `?`. The tests are:
    ///
    /// `[SIDE] host ADDR`, `[SIDE] net ADDR/LENGTH`, `[SIDE] net ADDR mask MASK`: an IP address.
    /// SIDE is `src`, `dst`, `src or dst` or `src and dst`; without it, either address counts.
    /// `[SIDE] [tcp|udp] port PORT`: a port of TCP or UDP, by number or service name.
    /// `ip proto PROTO`: the protocol, by number or name.
    /// `tcp opt FLAG`: a TCP flag: syn, ack, fin, rst, psh or urg. `tcp win SIZE`: the window.
    /// `icmp type TYPE`, `icmp6 type TYPE`: the type of a message of ICMP or ICMPv6, by number or name.
    /// `ip frag`, `ip unfrag`: a fragment, or no fragment.
    /// `ip vers`, `ip hl` (in words), `ip len`, `ip id`, `ip ttl`, `ip tos`, `ip dscp`: fields of
    /// the IP header. `ip ect`: any ECN bit is set. `ip ce`: both are.
    /// `ip[POS:LEN] VALUE`: LEN bytes (1 if not given) of the IP header from byte POS on;
    /// `transp[POS:LEN] VALUE`, `tcp[...]`, `udp[...]`, `icmp[...]`: of the transport header.
    /// `[SIDE] ether host ETH`: an Ethernet address, where the MAC header is marked.
    /// `ip`, `ip6`: every packet of IPv4, of IPv6. Tests of addresses of IPv6, `[SIDE] host 2001:db8::1` and
    /// `[SIDE] net 2001:db8::/32`, and those behind `ip6` hold for no packet of IPv4: see IP6Classifier.
    /// `true`, `false`: every packet, no packet. A pattern that is only `-`, `any` or `all` matches every packet.
    ///
    /// A value may have a relation before it: `==` (the same as none), `!=`, and for numbers `<`,
    /// `>`, `<=`, `>=`. A mask may stand before the relation: `ip tos & 0xf0 == 0x10`. A range of
    /// ports is written `port >= 1024 and port <= 2047`.
    ///
    /// Much can be left out: `tcp` means `ip proto tcp`, `www` means `port www`, `syn` means
    /// `tcp opt syn`, an address alone means `host` or `net`. A test without words of its own
    /// takes over those of the test before: `src port 80 or 81`.
    ///
    /// Tests of ports, flags, ICMP types and other transport fields fail on later fragments and
    /// on packets that end before the field, whatever the relation; negated by `not` they hold
    /// there. So `not src port 80` also matches packets that have no ports, `src port != 80` only
    /// packets of TCP and UDP.
    ///
    /// = HANDLERS
    ///
    /// program (read): how packets are sorted.
    /// rules (read): the patterns with their numbers, one a line.
    /// rule_replace `N PATTERN` (write): replaces the Nth pattern, counted from 1.
    /// config (read, write): the configuration; what is written takes its place.
    ///
    /// = EXAMPLE
    ///
    /// IPClassifier(dst tcp port 8000 or 8080, dst tcp port > 1023, tcp, -)
    ///
    /// = SEE ALSO
    ///
    /// IPFilter, IP6Classifier, Classifier, CheckIPHeader, AddressInfo, PortInfo
    IPClassifier {
        category: Classify, ports: "1/-", processing: "h/h",
        samples: [
            ("tcp, udp, icmp, -", 1, 4),
            ("src 10.0.0.1 and (tcp dst port 80 or udp dst port 53), not (udp or tcp), \
              udp ? src port 5000 : dst port 80, src port 443 or 1024", 1, 4),
            ("ip frag and udp, ip unfrag and syn and not ack, icmp type echo or echo-reply, \
              not dst port 80, dst port != 80, src and dst port >= 1024", 1, 6),
            ("ip[0:1] = 0x46, transp[0:2] > 60000, tcp[12] & 0xf0 > 0x50, udp[8:4] = 0x41424344, \
              ip[20:4] & 0xffff00 != 0, not ip[24] 1", 1, 6),
            ("ip ttl < 2, ip dscp 46 and not ip ect, ip ce, ip hl > 5, ip len & 7 > 4, \
              ip id >= 1000 and ip id < 1005, ip vers 4 && ip tos 16, src net 18.26.0.0/16, \
              net 10.0.0.0 mask 255.255.0.255, src host & 255.0.0.1 10.7.7.1", 1, 10),
            ("src port 1 or 2, src port 3, src port 4, src port 5, dst port 6 or 7, dst port 8, \
              tcp dst port >= 80 and dst port <= 90, udp dst port > 1024, icmp type 3, syn, ack, \
              ip frag, host 10.0.0.1 or 10.0.0.2, net 18/8, dst net 10/8, ip proto > 17, \
              tcp && !(src port 1 or src port 79), src host != 1.2.3.4 and rst, -", 1, 19),
            ("ether host 00:01:02:03:04:05, src and dst ether host != 1:1:1:1:1:1, -", 1, 3)
        ]
    }
}

element! {
    /// IP6Classifier(PATTERN, ...) -- sorts IPv6 packets by their headers
    ///
    /// Has an output for each pattern and sends a packet to the output of the first pattern that it matches. Packets that
    /// match none are dropped. The IPv6 header must have been marked, by CheckIP6Header or MarkIP6Header; a packet
    /// without one fails every test.
    ///
    /// Patterns are those of IPClassifier, so that one list of rules can speak of both versions of IP: each element looks
    /// at its own. Tests of addresses of IPv4 hold for no packet of IPv6, nor do those behind `ip` and of fields that only
    /// IPv4 has; with `not` before them, they hold for all. What names no version, such as `tcp dst port 80`, is
    /// tested in both. Of the IPv6 header there are:
    ///
    /// `ip6`: every packet. `[SIDE] host 2001:db8::1`, `[SIDE] net 2001:db8::/32`: an address.
    /// `ip6 ttl`: the hop limit. `ip6 tos`, `ip6 dscp`, `ip6 ect`, `ip6 ce`: the traffic class. `ip6 vers`: the version.
    /// `ip6 proto PROTO`: the protocol behind extension headers.
    /// `icmp6 type TYPE`: the type of an ICMPv6 message, by number or name: unreachable, toobig, timeexceeded,
    /// parameterproblem, echo, echo-reply, routersolicit, routeradvert, neighborsolicit, neighboradvert or redirect.
    /// `ip6 frag`, `ip6 unfrag`: a fragment, or no fragment.
    /// `ip6[POS:LEN] VALUE`: bytes of the fixed header; `icmp6[...]`, `tcp[...]`, `transp[...]`: of the transport header.
    ///
    /// = HANDLERS
    ///
    /// program (read): how packets are sorted.
    /// rules (read): the patterns with their numbers, one a line.
    /// rule_replace `N PATTERN` (write): replaces the Nth pattern, counted from 1.
    /// config (read, write): the configuration; what is written takes its place.
    ///
    /// = IPV6
    ///
    /// Protocol, ports and other transport fields are found behind extension headers, of which at most 16 are looked at. A
    /// packet with more, or with one that is cut off, is of the protocol of the first that cannot be read, and has no transport
    /// header. A fragment is of protocol 44 and has none; a packet that is all of its fragments is none (RFC 6946).
    /// Programs decide on packets without extension headers.
    ///
    /// = EXAMPLE
    ///
    /// IP6Classifier(icmp6 type toobig, src net 2001:db8::/32 and tcp dst port 80 or 443, -)
    ///
    /// = SEE ALSO
    ///
    /// IP6Filter, IPClassifier, CheckIP6Header, AddressInfo
    IP6Classifier {
        category: Classify, ports: "1/-", processing: "h/h",
        samples: [
            ("tcp, udp, icmp6, -", 1, 4),
            ("src 2001:db8::1 and (tcp dst port 80 or udp dst port 53), not (udp or tcp), \
              udp ? src port 5000 : dst port 80, src port 443 or 1024", 1, 4),
            ("ip6 frag and udp, ip6 unfrag and syn and not ack, icmp6 type echo or echo-reply, \
              not dst port 80, dst port != 80, src and dst port >= 1024", 1, 6),
            ("ip6[0:1] = 0x60, transp[0:2] > 60000, icmp6[1] 0, ip6 ttl < 2, ip6 dscp 46 and not ip6 ect, ip6 ce, \
              ip6 vers 6 && ip6 tos 16, net 2001:db8::/33 or ::1, ip or src net 10/8, ip id 7, src host != ::1, -", 1, 12)
        ]
    }
}

/// See [`IPClassifier::CLASS`].
pub(crate) type IPClassifier = HeaderClassifier<false>;
/// See [`IP6Classifier::CLASS`].
pub(crate) type IP6Classifier = HeaderClassifier<true>;

/// Sorts packets of IPv4, or of IPv6.
pub(crate) struct HeaderClassifier<const IPV6: bool>(RuleClassifier);

impl<const IPV6: bool> HeaderClassifier<IPV6> {
    const VERSION: Version = if IPV6 { Version::V6 } else { Version::V4 };

    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        RuleClassifier::configure(cx, Self::VERSION, NO_MATCHES, Self::rules).map(Self)
    }

    fn rules(cx: &mut Configure<'_>) -> Result<Vec<Rule>, Failed> {
        patterns(cx, Self::VERSION, |argument, vocabulary| parse(&argument.text, vocabulary))
    }
}

impl<const IPV6: bool> Element for HeaderClassifier<IPV6> {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.0.push(batch, cx);
    }

    fn model(&self) -> Model {
        self.0.model()
    }

    fn handlers(&self) -> &'static [Handler] {
        classifier::HANDLERS
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        self.0.read(handler, &[])
    }

    fn list(&self, handler: &str, from: u64, _: &HandlerContext<'_>) -> Option<Slice> {
        self.0.list(handler, from, &[])
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "config" => self.0.reconfigure(value, cx, Self::rules),
            _ => self.0.change(handler, value, |text, arm, vocabulary| {
                Ok((arm as u32, parse(text, vocabulary)?))
            }),
        }
    }
}
