// GTPTunnel(TEID, SRC, DST, ETH_SRC, ETH_DST [, KEYWORDS]) -- puts IP packets into packets of GTP-U
//
// Each IPv4 and IPv6 packet goes into a G-PDU (3GPP TS 29.281) with the tunnel endpoint identifier TEID, from the IPv4
// address SRC to DST, in a frame from ETH_SRC to ETH_DST. Other frames are dropped, and so are packets with an invalid
// header. Packets have "do not fragment" set: what carries them needs an MTU that is 36 bytes larger than inside.
//
// = KEYWORDS
//
// SPORT (port): a fixed UDP source port; by default it is a hash of the flow inside.
// DPORT (port, default 2152): the UDP destination port.
// TTL (number, default 250): the time-to-live outside.
//
// = IPV6
//
// IPv6 is carried as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// tunnel :: GTPTunnel(0x10, 192.0.2.1, 192.0.2.2, 02:00:00:00:00:01, 02:00:00:00:00:02);
// FromDevice(lan) -> tunnel -> ToDevice(wan);
//
// = SEE ALSO
//
// GTPEncap, GTPDetunnel, PPPoETunnel

elementclass GTPTunnel { $teid, $src, $dst, $eth_src, $eth_dst, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/86dd);
  kind[0] -> Strip(14) -> CheckIPHeader -> gtp :: GTPEncap($teid, $src, $dst, $options)
    -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> Strip(14) -> CheckIP6Header -> gtp;
}
