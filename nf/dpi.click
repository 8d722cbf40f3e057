// DPI(FILE [, KEYWORDS]) -- searches payloads for what rules of Snort name
//
// Reads rules of Snort 2 from FILE and looks at the payload of each IPv4 packet, on any port. Rules with `alert` count
// packets, rules with `drop` or `reject` drop them. Fragments are put together first, and packets larger than MTU are
// cut again. Each packet is looked at by itself: what is split between packets of TCP is not found.
//
// Rules that need what is not supported are left out; a warning tells which options they need. SnortFilter says what is
// supported. Frames leave as they came. Those that hold no IPv4 packet pass; those with an invalid header are dropped.
//
// = KEYWORDS
//
// ACTION (rule, alert or drop, default rule): what rules with `alert` and `drop` do.
// MARK (number): the paint annotation of packets that a rule matched.
// LENIENT (bool, default false): whether lines that cannot be read are left out, with a warning for each.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// rules.matches (read): packets that a rule matched.
// rules.rules (read): a line for each rule that matched: number of packets, identifier, message.
// rules.alerts (read): the last 100 alerts, each a JSON object of the form of Suricata's EVE.
// rules.left_out (read): a line for each option that is not supported: number of rules, name.
//
// = IPV6
//
// IPv6 passes unsearched.
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
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> rules :: SnortFilter($rules, $options)
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> output;
}
