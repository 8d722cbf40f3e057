// NAPT(ADDR [, KEYWORDS]) -- translates the addresses of a network to one
//
// Packets from inside get the source address ADDR and a port that distinguishes flows, their own if it is free. Packets
// to ADDR that belong to a flow go back to its host. Others from outside are dropped. TCP, UDP and pings are translated,
// and ICMP errors about them in both directions. Fragments are put together first, in whatever order they come, and
// packets larger than MTU are cut again.
//
// With two inputs and outputs, 0 to 0 is the path from inside to outside, 1 to 1 that from outside to inside. With one
// of each, packets to ADDR come from outside and all others from inside.
//
// Ethernet headers stay as they are, so frames to ADDR have to be sent here by who routes. Frames that hold no IPv4
// packet pass. A host inside is not reached by ADDR from inside: there is no hairpinning.
//
// = KEYWORDS
//
// PORTS (range, default 1024-65535): ports that flows get, and identifiers of pings. A `#` behind gives them in turn.
// MTU (number, default 1500): the longest IP packet that is sent.
// MAPPING_CAPACITY, TCP_TIMEOUT, UDP_TIMEOUT and others: those of IPRewriter.
//
// = HANDLERS
//
// flows.table (read): the flows of TCP and UDP.
// pings.table (read): those of pings.
// flows.mapping_failures (read): packets dropped because no port was free or the table full.
//
// = IPV6
//
// IPv6 passes unchanged, as in translators of IPv4.
//
// = EXAMPLE
//
// nat :: NAPT(203.0.113.1, UDP_TIMEOUT 60);
// FromDevice(lan) -> [0] nat [0] -> ToDevice(wan);
// FromDevice(wan) -> [1] nat [1] -> ToDevice(lan);
//
// = SEE ALSO
//
// IPRewriter, ICMPPingRewriter, ICMPRewriter, Firewall

elementclass NAPT { $public, PORTS $ports, MTU $mtu, __REST__ $options |
  flows :: IPRewriter(pattern $public ${ports:-1024-65535} - - 0 1, drop, $options);
  pings :: ICMPPingRewriter(pattern $public ${ports:-1024-65535} - - 0 1, drop);

  input[0] -> leaving :: Classifier(12/0800, -);
  leaving[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> leaving_kind :: IPClassifier(tcp or udp, icmp type echo, icmp);
  leaving_kind[0] -> [0] flows [0] -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  leaving_kind[1] -> [0] pings [0] -> out;
  leaving_kind[2] -> ICMPRewriter(flows pings) -> out;
  leaving[1] -> [0] output;

  input[1] -> coming :: Classifier(12/0800, -);
  coming[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> coming_kind :: IPClassifier(tcp or udp, icmp type echo-reply, icmp);
  coming_kind[0] -> [1] flows [1] -> back :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [1] output;
  coming_kind[1] -> [1] pings [1] -> back;
  coming_kind[2] -> ICMPRewriter(flows pings) -> back;
  coming[1] -> [1] output;
|| $public, PORTS $ports, MTU $mtu, __REST__ $options |
  flows :: IPRewriter(pattern $public ${ports:-1024-65535} - - 0 0, drop, $options);
  pings :: ICMPPingRewriter(pattern $public ${ports:-1024-65535} - - 0 0, drop);

  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> ip_kind :: IPClassifier(dst host $public and (tcp or udp), tcp or udp,
                               dst host $public and icmp type echo-reply, icmp type echo, icmp);
  ip_kind[0] -> [1] flows;
  ip_kind[1] -> [0] flows [0] -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  ip_kind[2] -> [1] pings;
  ip_kind[3] -> [0] pings [0] -> out;
  ip_kind[4] -> ICMPRewriter(flows pings) -> out;
  kind[1] -> output;
}
