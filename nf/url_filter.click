// UrlFilter(FILE [, KEYWORDS]) -- refuses connections to listed hosts and paths
//
// Reads what clients say in connections of TCP, on any port, in IPv4 and IPv6: requests of HTTP/1, and the server's
// name in the first message of TLS, in TCP and in QUIC (versions 1 and 2). Packets with which a listed request is
// there, and all later ones of their stream, are dropped. FILE has a host on each line, which lists its subdomains
// too, or a host with the beginning of a path: `example.com/ads`.
//
// With a second output, connections end at once: each packet that is refused becomes a reset to the server on output 0,
// and one to the client on output 1, which leads to where it came from. QUIC has no resets: its packets are dropped.
//
// Streams are put in order; where segments overlap, the bytes that came first count. Fragments of IPv4 are put together
// first, and packets larger than MTU are cut again. Packets with an invalid TCP or UDP header are dropped.
//
// Frames leave as they came. Those that hold no IP packet pass; those with an invalid header are dropped.
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
// IPv6 is read as IPv4 is, behind extension headers, too. Fragments of IPv6 are not put together: they pass unread.
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
// URLFilter, TCPReset, DPI, Firewall

elementclass UrlFilter { $list, MTU $mtu, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/86dd, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> protocol :: IPClassifier(tcp, udp, -);
  protocol[0] -> CheckTCPHeader -> urls :: URLFilter($list, $options) -> version :: Classifier(0/40%f0, -);
  protocol[1] -> CheckUDPHeader -> urls;
  protocol[2] -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  version[0] -> out;
  kind[1] -> Strip(14) -> CheckIP6Header -> urls;
  version[1] -> Unstrip(14) -> output;
  kind[2] -> output;
|| $list, MTU $mtu, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/86dd, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> protocol :: IPClassifier(tcp, udp, -);
  protocol[0] -> CheckTCPHeader -> urls :: URLFilter($list, $options) -> version :: Classifier(0/40%f0, -);
  protocol[1] -> CheckUDPHeader -> urls;
  protocol[2] -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  version[0] -> out;
  kind[1] -> Strip(14) -> CheckIP6Header -> urls;
  version[1] -> Unstrip(14) -> [0] output;
  kind[2] -> [0] output;
  urls[1] -> refused :: Tee -> TCPReset(FORWARD true) -> Unstrip(14) -> [0] output;
  refused[1] -> TCPReset -> Unstrip(14) -> EtherMirror -> [1] output;
}
