// GRETunnel(SRC, DST, ETH_SRC, ETH_DST [, KEYWORDS]) -- puts IP packets into GRE packets
//
// Each IPv4 and IPv6 packet goes into a GRE packet (RFC 2784, RFC 2890) from the IPv4 address SRC to DST, in a frame
// from ETH_SRC to ETH_DST. Other frames are dropped. What carries the packets needs an MTU that is 24 bytes larger than
// inside, 4 more with a key, and 4 with a checksum.
//
// = KEYWORDS
//
// KEY (number): the key; without it, packets have none.
// CHECKSUM (bool, default false): whether packets have a checksum.
//
// = IPV6
//
// IPv6 is carried as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(lan) -> GRETunnel(192.0.2.1, 192.0.2.2, 02:00:00:00:00:01, 02:00:00:00:00:02, KEY 7) -> ToDevice(wan);
//
// = SEE ALSO
//
// GREEncap, IPEncap, GREDetunnel

elementclass GRETunnel { $src, $dst, $eth_src, $eth_dst, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/86dd);
  kind[0] -> Strip(14) -> GREEncap(0x0800, $options)
    -> out :: IPEncap(gre, $src, $dst) -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> Strip(14) -> GREEncap(0x86dd, $options) -> out;
}
