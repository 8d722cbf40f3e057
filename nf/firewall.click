// Firewall(RULE, ... [, OUTSIDE RULE]) -- lets flows pass that rules allow to begin
//
// The rules decide which flows may begin from inside; they are those of IPFilter, `file PATH` among them, and what none
// allows is denied. A flow that began passes in both directions until it ends or nobody used it for long. From outside
// no flow begins, unless the rule of OUTSIDE allows it.
//
// Input and output 0 lead from inside to outside, input and output 1 from outside to inside. Flows are those of TCP, UDP
// and pings over IPv4 and IPv6; a flow of TCP begins with a SYN. ICMP errors pass that are about a flow. Fragments of
// IPv4 are put together first. All other IP packets are denied. `LOG true` shows what rules deny.
//
// Rules speak of both versions of IP: `tcp dst port 80` tells of both, `src net 10.0.0.0/8`, `ip` and `icmp` of IPv4,
// `src net 2001:db8::/32`, `ip6` and `icmp6` of IPv6. See IP6Classifier.
//
// Segments of TCP pass that fit their connection's state and windows: others are dropped as `out-of-window`,
// `bad-rst`, `bad-state`, `no-connection`, `bad-tcp-flags` or `bad-tcp-checksum`. So must ICMP errors about them.
// Connections that began before the firewall are unknown to it. `WINDOWS false` has flows pass unchecked: all that is left
// of TCP over IPv4 then is that a SYN begins a flow. It takes less time, as programs do all of it.
//
// Frames leave as they came. ARP passes, and frames that hold neither it nor IP are dropped.
//
// = KEYWORDS
//
// OUTSIDE (a rule, default deny all): which flows may begin from outside.
// MTU (number, default 1500): the longest IP packet that is sent when fragments were put together.
// MAPPING_CAPACITY (number, default 4194304): how many connections of TCP there may be, and how many other flows, of each
// version of IP. When
// they are all there, a new one replaces the one that expires first, if it expires before the new one: in a flood of SYNs,
// connections that are not established, never established ones.
// WINDOWS (true or false, default true): whether segments of TCP over IPv4 are checked, see TCPTracker; over IPv6 all are.
// LOG (true or false, default false): whether packets that rules deny are shown, with a line each.
// LOG_RATE (number, default 10): how many of them in a second, from each side and of each version of IP. The others are
// denied unseen.
// TCP_TIMEOUT (time, default 86400 seconds): after which an established connection is forgotten that nobody uses.
// UDP_TIMEOUT (time, default 300 seconds): the same for UDP.
//
// = HANDLERS
//
// windows.table, windows6.table (read): the connections of TCP with their states, over IPv4 and IPv6.
// windows.invalid, windows6.invalid (read): how many segments were invalid, by reason.
// flows.table, pings.table (read): other flows of IPv4, and those of TCP if windows are not checked.
// flows6.table (read): other flows of IPv6.
// flows6.invalid (read): how many of their packets were invalid, by reason.
// inside.rules, outside.rules, inside6.rules, outside6.rules (read): the rules, for IPv4 and IPv6.
// inside.rule_insert, inside.rule_remove, inside.rule_replace (write): change them for IPv4 while packets pass; inside6
// has the same for IPv6.
//
// = IPV6
//
// Connections of TCP are checked as those of IPv4 are; flows of UDP and pings pass as they do there. A flow of UDP without an
// answer is forgotten after two minutes, or UDP_TIMEOUT if that is less. UDP and TCP are found behind extension headers,
// of which at most 16 are looked at. Packets with more of them, or with one that is cut off, are dropped, and so are packets
// with a routing header that has segments left (RFC 5095).
//
// Fragments are dropped, as `leaving_fragments` and `coming_fragments`: hosts find the path's MTU for TCP, and most
// protocols over UDP keep to 1280 bytes. A packet that is all of its fragments is none (RFC 6946).
//
// Of ICMPv6, with the sections of RFC 4890 that ask for it:
//
// - The errors of types 1 to 4, Packet Too Big among them, pass if they are about a flow and go to the sender of what they
//   quote (4.3.1, 4.3.2). Who forges one about TCP must know its numbers. Other types of errors are dropped (4.3.5).
// - Echo requests and replies are pings, for which rules decide (4.3.1).
// - Router and neighbour solicitations and advertisements, types 133 to 136, pass in both directions with hop limit 255, as
//   ARP does (4.4.1): none of them was forwarded by a router.
// - Messages of multicast listeners, types 130 to 132 and 143, pass with hop limit 1 from addresses of the link (4.4.1).
// - All others are dropped: redirects, type 137, as they change routes (4.4.4), and those of Mobile IPv6 (4.3.2).
//
// DHCPv6 is UDP that is answered from another address than it was sent to: OUTSIDE must allow the answers.
// Files of iptables, nftables and ClassBench have rules of IPv4 only.
//
// Several workers find flows of IPv6 by addresses, and by ports that stand right behind the header. An ICMPv6 error or a packet
// with extension headers may come to a worker that has not its flow, and is dropped there: give one worker to a chain
// that needs them.
//
// Programs decide on rules, and on packets of the link. Connections and flows of IPv6 are not synthesised: TCP6Tracker and
// IP6FlowTracker keep them, and packets with extension headers are left to elements. State of IPv6 is carried over a hot
// swap, and moves with groups.
//
// = EXAMPLE
//
// fw :: Firewall(deny dst net 10.0.0.0/8, allow tcp dst port 80 or 443, allow udp dst port 53, allow icmp, allow icmp6);
// FromDevice(lan) -> [0] fw [0] -> ToDevice(wan);
// FromDevice(wan) -> [1] fw [1] -> ToDevice(lan);
//
// = SEE ALSO
//
// IPFilter, IP6Filter, IPRewriter, TCPTracker, TCP6Tracker, IP6FlowTracker, ACL, NAPT

elementclass Firewall { OUTSIDE $outside, MTU $mtu, MAPPING_CAPACITY $capacity, TCP_TIMEOUT $tcp, UDP_TIMEOUT $udp,
                        WINDOWS $windows, LOG $log, LOG_RATE $rate, __REST__ $rules |
  // Connections of TCP whose windows are checked.
  windows :: TCPTracker(CAPACITY ${capacity:-4194304}, TIMEOUT ${tcp:-86400});
  // Other flows: their packets leave on outputs 0 and 1; others come back on 2 and 3, and begin a flow if they may.
  // New flows have no guarantee: in a flood, they would replace established ones.
  flows :: IPRewriter(pass 2, pass 3, keep 0 1, keep 1 0, MAPPING_CAPACITY ${capacity:-4194304},
    TCP_TIMEOUT ${tcp:-86400}, UDP_TIMEOUT ${udp:-300}, TCP_GUARANTEE 0, UDP_GUARANTEE 0);
  pings :: ICMPPingRewriter(pass 2, pass 3, keep 0 1, keep 1 0);

  out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  back :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [1] output;
  windows[0] -> out;
  windows[1] -> back;
  flows[0] -> out;
  flows[1] -> back;
  pings[0] -> out;
  pings[1] -> back;

  input[0] -> leaving :: Classifier(12/0800, 12/0806, 12/86dd);
  leaving[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> leaving_kind :: IPClassifier(tcp and ${windows:-true},
      tcp or udp, icmp type echo or icmp type echo-reply, icmp);
  leaving_kind[0] -> [0] windows;
  leaving_kind[1] -> [0] flows;
  leaving_kind[2] -> [0] pings;
  leaving_kind[3] -> leaving_errors :: ICMPRewriter(flows pings) -> out;
  leaving_errors[1] -> [0] windows;
  leaving[1] -> [0] output;

  input[1] -> coming :: Classifier(12/0800, 12/0806, 12/86dd);
  coming[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> coming_kind :: IPClassifier(tcp and ${windows:-true},
      tcp or udp, icmp type echo or icmp type echo-reply, icmp);
  coming_kind[0] -> [1] windows;
  coming_kind[1] -> [1] flows;
  coming_kind[2] -> [1] pings;
  coming_kind[3] -> coming_errors :: ICMPRewriter(flows pings) -> back;
  coming_errors[1] -> [1] windows;
  coming[1] -> [1] output;

  windows[2] -> inside_begin :: IPClassifier((tcp opt syn and not tcp opt ack) or udp);
  flows[2] -> inside_begin;
  inside_begin -> inside :: IPFilter(DENIED 1, $rules);
  pings[2] -> IPClassifier(icmp type echo) -> inside;
  inside[1] -> inside_log :: IPClassifier(${log:-false}, -);
  inside_log[0] -> inside_rate :: RatedSplitter(${rate:-10}, BURST_DURATION 1s) -> IPPrint("denied from inside")
    -> inside_denied :: IPFilter(deny all);
  inside_log[1] -> inside_denied;
  inside_rate[1] -> inside_denied;
  inside[0] -> inside_kind :: IPClassifier(tcp and ${windows:-true}, icmp, -);
  inside_kind[0] -> [2] windows;
  inside_kind[1] -> [2] pings;
  inside_kind[2] -> [2] flows;

  windows[3] -> outside_begin :: IPClassifier((tcp opt syn and not tcp opt ack) or udp);
  flows[3] -> outside_begin;
  outside_begin -> outside :: IPFilter(DENIED 1, ${outside:-deny all});
  pings[3] -> IPClassifier(icmp type echo) -> outside;
  outside[1] -> outside_log :: IPClassifier(${log:-false}, -);
  outside_log[0] -> outside_rate :: RatedSplitter(${rate:-10}, BURST_DURATION 1s) -> IPPrint("denied from outside")
    -> outside_denied :: IPFilter(deny all);
  outside_log[1] -> outside_denied;
  outside_rate[1] -> outside_denied;
  outside[0] -> outside_kind :: IPClassifier(tcp and ${windows:-true}, icmp, -);
  outside_kind[0] -> [3] windows;
  outside_kind[1] -> [3] pings;
  outside_kind[2] -> [3] flows;

  // The same for IPv6.
  windows6 :: TCP6Tracker(CAPACITY ${capacity:-4194304}, TIMEOUT ${tcp:-86400});
  flows6 :: IP6FlowTracker(CAPACITY ${capacity:-4194304}, UDP_TIMEOUT ${udp:-300});
  out6 :: Unstrip(14) -> [0] output;
  back6 :: Unstrip(14) -> [1] output;
  windows6[0] -> out6;
  windows6[1] -> back6;
  flows6[0] -> out6;
  flows6[1] -> back6;

  leaving[2] -> Strip(14) -> CheckIP6Header -> leaving_kind6 :: IP6Classifier(tcp, udp or (icmp6 type 128 or 129),
      icmp6 type >= 1 and icmp6 type <= 4,
      (icmp6 type >= 133 and icmp6 type <= 136 and ip6 ttl 255)
      or ((icmp6 type 130 or 131 or 132 or 143) and ip6 ttl 1 and (src net fe80::/10 or src host ::)),
      ip6 frag);
  leaving_kind6[0] -> [0] windows6;
  leaving_kind6[1] -> [0] flows6;
  leaving_kind6[2] -> [0] windows6;
  leaving_kind6[3] -> out6;
  leaving_kind6[4] -> leaving_fragments :: IP6Filter(deny all) -> out6;

  coming[2] -> Strip(14) -> CheckIP6Header -> coming_kind6 :: IP6Classifier(tcp, udp or (icmp6 type 128 or 129),
      icmp6 type >= 1 and icmp6 type <= 4,
      (icmp6 type >= 133 and icmp6 type <= 136 and ip6 ttl 255)
      or ((icmp6 type 130 or 131 or 132 or 143) and ip6 ttl 1 and (src net fe80::/10 or src host ::)),
      ip6 frag);
  coming_kind6[0] -> [1] windows6;
  coming_kind6[1] -> [1] flows6;
  coming_kind6[2] -> [1] windows6;
  coming_kind6[3] -> back6;
  coming_kind6[4] -> coming_fragments :: IP6Filter(deny all) -> back6;

  // Errors that are not about TCP may be about other flows.
  windows6[2] -> inside_about6 :: IP6Classifier(tcp opt syn and not tcp opt ack, icmp6);
  inside_about6[1] -> [0] flows6;
  inside_about6[0] -> inside6 :: IP6Filter(DENIED 1, $rules);
  flows6[2] -> inside_begin6 :: IP6Classifier(udp or icmp6 type 128) -> inside6;
  inside6[1] -> inside_log6 :: IPClassifier(${log:-false}, -);
  inside_log6[0] -> inside_rate6 :: RatedSplitter(${rate:-10}, BURST_DURATION 1s) -> IPPrint("denied from inside")
    -> inside_denied6 :: IP6Filter(deny all);
  inside_log6[1] -> inside_denied6;
  inside_rate6[1] -> inside_denied6;
  inside6[0] -> inside_kind6 :: IP6Classifier(tcp, -);
  inside_kind6[0] -> [2] windows6;
  inside_kind6[1] -> [2] flows6;

  // Errors that are not about TCP may be about other flows.
  windows6[3] -> outside_about6 :: IP6Classifier(tcp opt syn and not tcp opt ack, icmp6);
  outside_about6[1] -> [1] flows6;
  outside_about6[0] -> outside6 :: IP6Filter(DENIED 1, ${outside:-deny all});
  flows6[3] -> outside_begin6 :: IP6Classifier(udp or icmp6 type 128) -> outside6;
  outside6[1] -> outside_log6 :: IPClassifier(${log:-false}, -);
  outside_log6[0] -> outside_rate6 :: RatedSplitter(${rate:-10}, BURST_DURATION 1s) -> IPPrint("denied from outside")
    -> outside_denied6 :: IP6Filter(deny all);
  outside_log6[1] -> outside_denied6;
  outside_rate6[1] -> outside_denied6;
  outside6[0] -> outside_kind6 :: IP6Classifier(tcp, -);
  outside_kind6[0] -> [3] windows6;
  outside_kind6[1] -> [3] flows6;
}
