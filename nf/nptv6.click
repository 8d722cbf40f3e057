// NPTv6(INSIDE, OUTSIDE) -- translates the prefix of a network's IPv6 addresses
//
// Network prefix translation for IPv6 (RFC 6296), without state: hosts with addresses of the prefix INSIDE are reached
// from outside by those of the prefix OUTSIDE, each by one of its own. All protocols pass, and flows may begin on both
// sides. The address makes up for the change of its prefix, so that checksums stay right. Packets that ICMPv6 errors
// quote are translated, too.
//
// 0 to 0 is the path from inside to outside, 1 to 1 that from outside to inside. A packet from inside to an address
// with the prefix OUTSIDE is translated in both directions and leaves on output 1. Packets with other addresses pass
// unchanged, neighbour discovery between link-local addresses among them: put an ACL in front to drop them.
//
// Prefixes have at most 64 bits. With up to 48 bits, the subnet 0xffff has no translation; with more, an interface
// identifier of all ones. Packets with such an address are dropped, and so are frames with an invalid IPv6 header.
// Frames that hold no IPv6 packet pass.
//
// Ethernet headers stay as they are, so frames to OUTSIDE have to be sent here by who routes. Hop limits stay, too.
//
// = HANDLERS
//
// translator.drops (read): packets dropped because their address has no translation.
//
// = IPV6
//
// This is what it translates. Addresses in extension headers and payloads stay. IPv4 passes: NAPT translates it.
//
// = EXAMPLE
//
// npt :: NPTv6(fd01:203:405::/48, 2001:db8:1::/48);
// FromDevice(lan) -> [0] npt [0] -> ToDevice(wan);
// FromDevice(wan) -> [1] npt [1] -> ToDevice(lan);
//
// = SEE ALSO
//
// IP6PrefixTranslator, NAPT, IPv6Fwd

elementclass NPTv6 { $inside, $outside |
  translator :: IP6PrefixTranslator($inside, $outside);
  input[0] -> leaving :: Classifier(12/86dd, -);
  leaving[0] -> Strip(14) -> CheckIP6Header -> [0] translator [0] -> Unstrip(14) -> [0] output;
  leaving[1] -> [0] output;
  input[1] -> coming :: Classifier(12/86dd, -);
  coming[0] -> Strip(14) -> CheckIP6Header -> [1] translator [1] -> Unstrip(14) -> [1] output;
  coming[1] -> [1] output;
}
