// ACL(FILE [, KEYWORDS]) -- lets pass what an access list allows
//
// Reads rules from FILE as IPFilter does: one a line, `allow` or `deny` and a pattern or a rule of ClassBench, or what
// `iptables-save` or `nft list ruleset` prints. The first rule that matches a packet decides. A packet that matches none is denied. Lines
// that cannot be read are shown, and nothing runs.
//
// Frames come in and leave as they are. ARP passes. Frames with an invalid IPv4 header are dropped, and so are all
// others, those with a VLAN tag among them.
//
// = KEYWORDS
//
// ACTION (an action, default allow): what rules of ClassBench do.
// CHAIN (word, default FORWARD): the chain of iptables or nftables whose rules are read.
// LENIENT (bool, default false): whether lines that cannot be read are left out, with a warning for each.
//
// = HANDLERS
//
// rules.rules (read): the rules with their numbers.
// rules.rule_insert, rules.rule_remove, rules.rule_replace (write): change them while packets pass.
//
// = IPV6
//
// IPv6 is dropped: rules decide on IPv4 only.
//
// = EXAMPLE
//
// FromDevice(lan) -> ACL(acl.rules) -> ToDevice(wan);
//
// = FILE acl.rules
//
// deny src net 10.9.0.0/16
// allow udp dst port 53
// allow tcp dst port 80 or 443
//
// = SEE ALSO
//
// IPFilter, Match, Firewall

elementclass ACL { $file, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/0806);
  kind[0] -> Strip(14) -> CheckIPHeader -> rules :: IPFilter(file $file, $options) -> Unstrip(14) -> output;
  kind[1] -> output;
}
