// Firewall(RULE, ... [, OUTSIDE RULE]) -- lets flows pass that rules allow to begin
//
// The rules decide which flows may begin from inside; they are those of IPFilter, `file PATH` among them, and what none
// allows is denied. A flow that began passes in both directions until it ends or nobody used it for long. From outside
// no flow begins, unless the rule of OUTSIDE allows it.
//
// Input and output 0 lead from inside to outside, input and output 1 from outside to inside. Flows are those of TCP, UDP
// and pings; a flow of TCP begins with a SYN. ICMP errors pass that are about a flow. Fragments are put together
// first. All other IPv4 packets are denied.
//
// Segments of TCP pass that fit their connection's state and windows: others are dropped as `out-of-window`,
// `bad-rst`, `bad-state`, `no-connection`, `bad-tcp-flags` or `bad-tcp-checksum`. Connections that began before the
// firewall are unknown to it. `WINDOWS false` has flows pass unchecked: all that is left of TCP then is that a SYN begins
// a flow. It takes less time, as programs do all of it.
//
// Frames leave as they came. ARP passes, and frames that hold neither it nor IPv4 are dropped.
//
// = KEYWORDS
//
// OUTSIDE (a rule, default deny all): which flows may begin from outside.
// MTU (number, default 1500): the longest IP packet that is sent when fragments were put together.
// MAPPING_CAPACITY (number, default 4194304): how many flows there may be. When they are all there, a new one replaces the
// one that expires first: in a flood of SYNs, those without data in both directions, not established ones.
// WINDOWS (bool, default true): whether segments of TCP are checked, see TCPTracker.
// TCP_TIMEOUT (time, default 86400 seconds): after which an established connection is forgotten that nobody uses.
// UDP_TIMEOUT (time, default 300 seconds): the same for UDP.
//
// = HANDLERS
//
// flows.table, pings.table (read): the flows.
// windows.table, windows.invalid (read): connections with their states; how many segments were invalid, by reason.
// inside.rules, outside.rules (read): the rules.
// inside.rule_insert, inside.rule_remove, inside.rule_replace (write): change them while packets pass.
//
// = IPV6
//
// IPv6 is dropped: rules and flows are those of IPv4.
//
// = EXAMPLE
//
// fw :: Firewall(deny dst net 10.0.0.0/8, allow tcp dst port 80 or 443, allow udp dst port 53, allow icmp);
// FromDevice(lan) -> [0] fw [0] -> ToDevice(wan);
// FromDevice(wan) -> [1] fw [1] -> ToDevice(lan);
//
// = SEE ALSO
//
// IPFilter, IPRewriter, TCPTracker, ACL, NAPT

elementclass Firewall { OUTSIDE $outside, MTU $mtu, MAPPING_CAPACITY $capacity, TCP_TIMEOUT $tcp, UDP_TIMEOUT $udp,
                        WINDOWS $windows, __REST__ $rules |
  // Packets of a flow leave on outputs 0 and 1; others come back on 2 and 3, and begin a flow if they may.
  // New flows have no guarantee: in a flood, they would replace established ones.
  flows :: IPRewriter(pass 2, pass 3, keep 0 1, keep 1 0, MAPPING_CAPACITY ${capacity:-4194304},
    TCP_TIMEOUT ${tcp:-86400}, UDP_TIMEOUT ${udp:-300}, TCP_GUARANTEE 0, UDP_GUARANTEE 0);
  pings :: ICMPPingRewriter(pass 2, pass 3, keep 0 1, keep 1 0);
  // Checks segments of both sides before flows are looked up, and learns of SYNs that pass.
  windows :: TCPTracker(ACTIVE ${windows:-true}, CAPACITY ${capacity:-4194304}, TIMEOUT ${tcp:-86400});

  out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  back :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [1] output;
  flows[0] -> out_begin :: IPClassifier(tcp opt syn and not tcp opt ack, -);
  out_begin[0] -> [2] windows [2] -> out;
  out_begin[1] -> out;
  flows[1] -> back_begin :: IPClassifier(tcp opt syn and not tcp opt ack, -);
  back_begin[0] -> [3] windows [3] -> back;
  back_begin[1] -> back;
  pings[0] -> out;
  pings[1] -> back;

  input[0] -> leaving :: Classifier(12/0800, 12/0806);
  leaving[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> leaving_kind :: IPClassifier(tcp, udp,
      icmp type echo or icmp type echo-reply, icmp);
  leaving_kind[0] -> [0] windows [0] -> [0] flows;
  leaving_kind[1] -> [0] flows;
  leaving_kind[2] -> [0] pings;
  leaving_kind[3] -> ICMPRewriter(flows pings) -> out;
  leaving[1] -> [0] output;

  input[1] -> coming :: Classifier(12/0800, 12/0806);
  coming[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> coming_kind :: IPClassifier(tcp, udp,
      icmp type echo or icmp type echo-reply, icmp);
  coming_kind[0] -> [1] windows [1] -> [1] flows;
  coming_kind[1] -> [1] flows;
  coming_kind[2] -> [1] pings;
  coming_kind[3] -> ICMPRewriter(flows pings) -> back;
  coming[1] -> [1] output;

  flows[2] -> inside_begin :: IPClassifier(tcp opt syn and not tcp opt ack, udp);
  inside_begin[0] -> inside :: IPFilter($rules);
  inside_begin[1] -> inside;
  pings[2] -> IPClassifier(icmp type echo) -> inside;
  inside -> inside_kind :: IPClassifier(icmp, -);
  inside_kind[0] -> [2] pings;
  inside_kind[1] -> [2] flows;

  flows[3] -> outside_begin :: IPClassifier(tcp opt syn and not tcp opt ack, udp);
  outside_begin[0] -> outside :: IPFilter(${outside:-deny all});
  outside_begin[1] -> outside;
  pings[3] -> IPClassifier(icmp type echo) -> outside;
  outside -> outside_kind :: IPClassifier(icmp, -);
  outside_kind[0] -> [3] pings;
  outside_kind[1] -> [3] flows;
}
