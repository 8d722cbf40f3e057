// GREDetunnel(ETH_SRC, ETH_DST [, KEYWORDS]) -- takes IP packets out of GRE packets
//
// Takes IPv4 and IPv6 packets out of GRE packets (RFC 2784, RFC 2890) and puts them into frames from ETH_SRC to ETH_DST.
// Fragments of GRE packets are put together first. Other frames, packets of another key, and packets that are not
// valid are dropped.
//
// = KEYWORDS
//
// KEY (number): the key; without it, packets that have one are dropped.
// CHECKSUM (bool, default true): whether the checksum of packets that have one is checked.
//
// = IPV6
//
// IPv6 inside is taken out as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(wan) -> GREDetunnel(02:00:00:00:00:03, 02:00:00:00:00:04, KEY 7) -> ToDevice(lan);
//
// = SEE ALSO
//
// GREDecap, GRETunnel

elementclass GREDetunnel { $eth_src, $eth_dst, __REST__ $options |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> IPClassifier(ip proto gre) -> StripIPHeader -> ip4 :: GREDecap(0x0800, $options)
    -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  ip4[1] -> GREDecap(0x86dd, $options) -> EtherEncap(0x86dd, $eth_src, $eth_dst) -> output;
}
