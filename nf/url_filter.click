// UrlFilter(FILE [, KEYWORDS]) -- refuses connections to listed hosts and paths
//
// Reads what clients say in connections of TCP, on any port: requests of HTTP/1, and the server's name in the first
// message of TLS. Packets with which a listed request is there, and all later ones of their stream, are dropped. FILE
// has a host on each line, which lists its subdomains too, or a host with the beginning of a path: `example.com/ads`.
//
// Streams are put in order; where segments overlap, the bytes that came first count. Fragments are put together first,
// and packets larger than MTU are cut again. Packets with an invalid TCP header are dropped.
//
// Frames leave as they came. Those that hold no IPv4 packet pass; those with an invalid header are dropped.
//
// = KEYWORDS
//
// MEMORY (number, default 67108864): bytes that streams take at the most; beyond, the oldest are forgotten.
// LENIENT (bool, default false): whether lines that cannot be read are left out, with a warning for each.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// urls.blocked (read): packets that were refused.
// urls.streams (read): streams that are known.
//
// = IPV6
//
// IPv6 passes unread.
//
// = EXAMPLE
//
// FromDevice(lan) -> UrlFilter(urls.txt) -> ToDevice(wan);
//
// = FILE urls.txt
//
// ads.example.com
// example.org/tracker
//
// = SEE ALSO
//
// URLFilter, DPI, Firewall

elementclass UrlFilter { $list, MTU $mtu, __REST__ $options |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> protocol :: IPClassifier(tcp, -);
  protocol[0] -> CheckTCPHeader -> urls :: URLFilter($list, $options)
    -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  protocol[1] -> out;
  kind[1] -> output;
}
