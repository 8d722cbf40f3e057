// GENEVETunnel(VNI, SRC, DST, ETH_SRC, ETH_DST [, KEYWORDS]) -- puts frames into GENEVE packets
//
// Each frame goes into a GENEVE packet (RFC 8926) of the network VNI, without options, from the IPv4 address SRC to DST, in
// a frame from ETH_SRC to ETH_DST. Packets have "do not fragment" set: what carries them needs an MTU that is 50 bytes
// larger than inside.
//
// = KEYWORDS
//
// SPORT (port): a fixed UDP source port; by default it is a hash of the flow inside.
// DPORT (port, default 6081): the UDP destination port.
// TTL (number, default 250): the time-to-live outside.
//
// = IPV6
//
// IPv6 is carried as all other frames are. The packets outside are IPv4.
//
// = EXAMPLE
//
// tunnel :: GENEVETunnel(5000, 192.0.2.1, 192.0.2.2, 02:00:00:00:00:01, 02:00:00:00:00:02);
// FromDevice(lan) -> tunnel -> ToDevice(wan);
//
// = SEE ALSO
//
// GENEVEEncap, GENEVEDetunnel, VXLANTunnel

elementclass GENEVETunnel { $vni, $src, $dst, $eth_src, $eth_dst, __REST__ $options |
  input -> GENEVEEncap($vni, $src, $dst, $options) -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
}
