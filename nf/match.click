// Match(PATTERN) -- branches by a pattern
//
// IPv4 packets that match the pattern leave on output 0, everything else on output 1. Patterns are those of
// IPClassifier, which are close to tcpdump's: `src net 10.0.0.0/8 and tcp dst port 80`. Nothing is dropped and
// nothing changed, but for bytes behind the IP packet: these are cut off.
//
// = HANDLERS
//
// pattern.rules (read): the pattern.
//
// = IPV6
//
// IPv6 leaves on output 1: patterns match IPv4 only.
//
// = EXAMPLE
//
// FromDevice(lan) -> web :: Match(tcp dst port 80 or 443);
// web[0] -> ToDevice(proxy);
// web[1] -> ToDevice(wan);
//
// = SEE ALSO
//
// IPClassifier, ACL

elementclass Match { $pattern |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> check :: CheckIPHeader -> pattern :: IPClassifier($pattern, -);
  pattern[0] -> Unstrip(14) -> [0] output;
  pattern[1] -> Unstrip(14) -> [1] output;
  check[1] -> Unstrip(14) -> [1] output;
  kind[1] -> [1] output;
}
