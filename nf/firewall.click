// Firewall(RULE, ... [, OUTSIDE RULE]) -- lets flows pass that rules allow to begin
//
// The rules decide which flows may begin from inside; they are those of IPFilter, `file PATH` among them, and what none
// allows is denied. A flow that began passes in both directions until it ends or nobody used it for long. From outside
// no flow begins, unless the rule of OUTSIDE allows it.
//
// Input and output 0 lead from inside to outside, input and output 1 from outside to inside. Flows are those of TCP, UDP
// and pings; a flow of TCP begins with a SYN. ICMP errors pass that are about a flow. Fragments are put together
// first. All other IPv4 packets are denied. `LOG true` shows what rules deny.
//
// Segments of TCP pass that fit their connection's state and windows: others are dropped as `out-of-window`,
// `bad-rst`, `bad-state`, `no-connection`, `bad-tcp-flags` or `bad-tcp-checksum`. So must ICMP errors about them.
// Connections that began before the firewall are unknown to it. `WINDOWS false` has flows pass unchecked: all that is left
// of TCP then is that a SYN begins a flow. It takes less time, as programs do all of it.
//
// Frames leave as they came. ARP passes, and frames that hold neither it nor IPv4 are dropped.
//
// = KEYWORDS
//
// OUTSIDE (a rule, default deny all): which flows may begin from outside.
// MTU (number, default 1500): the longest IP packet that is sent when fragments were put together.
// MAPPING_CAPACITY (number, default 4194304): how many connections of TCP there may be, and how many other flows. When
// they are all there, a new one replaces the one that expires first, if it expires before the new one: in a flood of SYNs,
// connections that are not established, never established ones.
// WINDOWS (true or false, default true): whether segments of TCP are checked, see TCPTracker.
// LOG (true or false, default false): whether packets that rules deny are shown, with a line each.
// LOG_RATE (number, default 10): how many of them in a second, from each side. The others are denied unseen.
// TCP_TIMEOUT (time, default 86400 seconds): after which an established connection is forgotten that nobody uses.
// UDP_TIMEOUT (time, default 300 seconds): the same for UDP.
//
// = HANDLERS
//
// windows.table (read): the connections of TCP with their states.
// windows.invalid (read): how many segments were invalid, by reason.
// flows.table, pings.table (read): other flows, and those of TCP if windows are not checked.
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

  input[0] -> leaving :: Classifier(12/0800, 12/0806);
  leaving[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> leaving_kind :: IPClassifier(tcp and ${windows:-true},
      tcp or udp, icmp type echo or icmp type echo-reply, icmp);
  leaving_kind[0] -> [0] windows;
  leaving_kind[1] -> [0] flows;
  leaving_kind[2] -> [0] pings;
  leaving_kind[3] -> leaving_errors :: ICMPRewriter(flows pings) -> out;
  leaving_errors[1] -> [0] windows;
  leaving[1] -> [0] output;

  input[1] -> coming :: Classifier(12/0800, 12/0806);
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
}
