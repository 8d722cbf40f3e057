// IPIPTunnel(SRC, DST, ETH_SRC, ETH_DST [, KEYWORDS]) -- puts IP packets into IP packets
//
// Each IPv4 packet (RFC 2003) and IPv6 packet (RFC 4213) goes into an IPv4 packet from SRC to DST, in a frame from
// ETH_SRC to ETH_DST. Other frames are dropped. What carries the packets needs an MTU that is 20 bytes larger than
// inside.
//
// = KEYWORDS
//
// TTL (number, default 250): the time-to-live outside.
//
// = IPV6
//
// IPv6 is carried as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(lan) -> IPIPTunnel(192.0.2.1, 192.0.2.2, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(wan);
//
// = SEE ALSO
//
// IPEncap, IPIPDetunnel

elementclass IPIPTunnel { $src, $dst, $eth_src, $eth_dst, TTL $ttl |
  input -> kind :: Classifier(12/0800, 12/86dd);
  kind[0] -> Strip(14) -> IPEncap(4, $src, $dst, TTL ${ttl:-250})
    -> out :: EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> Strip(14) -> IPEncap(41, $src, $dst, TTL ${ttl:-250}) -> out;
}
