// DPI(FILE [, KEYWORDS]) -- searches payloads for what rules of Snort name
//
// Reads rules of Snort 2 from FILE and looks at what IPv4 and IPv6 packets carry, on any port. Rules with `alert` count
// packets, rules with `drop` or `reject` drop them. Fragments of IPv4 are put together first, and packets larger than
// MTU are cut again. Packets of TCP are looked at by themselves and in their streams, so that what is split between
// them is found. Those with an invalid TCP header are dropped. A Firewall in front drops segments that receivers refuse,
// with which somebody could hide others.
//
// Both directions of a connection may lead through here, one behind the other or each through a DPI of its own. Bits
// of flows are known where both are.
//
// Rules that need what is not supported are left out; a warning tells which options they need. SnortFilter says what is
// supported. Frames leave as they came. Those that hold neither IPv4 nor IPv6 pass; those with an invalid header are
// dropped.
//
// = KEYWORDS
//
// ACTION (rule, alert or drop, default rule): what rules with `alert` and `drop` do.
// MARK (number): the paint annotation of packets that a rule matched.
// STREAMS (bool, default true): whether streams of TCP are looked at, or packets alone.
// MEMORY (number, default 67108864): bytes that connections take at the most; beyond, the oldest are forgotten.
// LENIENT (bool, default false): whether lines that cannot be read are left out, with a warning for each.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// rules.matches (read): packets that a rule matched.
// rules.rules (read): a line for each rule that matched: number of packets, identifier, message.
// rules.alerts (read): the last 100 alerts, each a JSON object of the form of Suricata's EVE.
// rules.connections (read): connections that are known.
// rules.left_out (read): a line for each option that is not supported: number of rules, name.
//
// = IPV6
//
// IPv6 is searched as IPv4 is, behind extension headers, too. Rules name IPv4 addresses, so only those with `any` match.
// Fragments of IPv6 are not put together: but for the first, they pass.
//
// = EXAMPLE
//
// FromDevice(wan) -> DPI(snort.rules) -> ToDevice(lan);
//
// = FILE snort.rules
//
// drop tcp any any -> any 80 (msg:"a path"; content:"/cgi-bin/phf"; http_uri; sid:1;)
// alert udp any any -> any 53 (msg:"a name"; content:"|07|example|03|com|00|"; nocase; offset:12; sid:2;)
//
// = SEE ALSO
//
// SnortFilter, ACL, Firewall

elementclass DPI { $rules, MTU $mtu, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/86dd, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> protocol :: IPClassifier(tcp, -);
  protocol[0] -> CheckTCPHeader -> rules :: SnortFilter($rules, $options) -> version :: Classifier(0/40%f0, -);
  protocol[1] -> rules;
  version[0] -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> Strip(14) -> CheckIP6Header -> rules;
  version[1] -> Unstrip(14) -> output;
  kind[2] -> output;
}
