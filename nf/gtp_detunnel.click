// GTPDetunnel(TEID, ETH_SRC, ETH_DST [, KEYWORDS]) -- takes IP packets out of packets of GTP-U
//
// Takes IPv4 and IPv6 packets out of G-PDUs (3GPP TS 29.281) with the tunnel endpoint identifier TEID, and sends them in
// frames from ETH_SRC to ETH_DST. Fragments of packets of GTP-U are put together first. Other frames, other messages of
// GTP-U, such as echo requests, and packets that are not valid are dropped.
//
// = KEYWORDS
//
// DPORT (port, default 2152): the UDP destination port.
//
// = IPV6
//
// IPv6 inside is taken out as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(wan) -> GTPDetunnel(0x10, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(lan);
//
// = SEE ALSO
//
// GTPDecap, GTPTunnel, PPPoEDetunnel

elementclass GTPDetunnel { $teid, $eth_src, $eth_dst, __REST__ $options |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPReassembler -> IPClassifier(udp) -> CheckUDPHeader
    -> GTPDecap($teid, $options) -> kind :: Classifier(0/40%f0, 0/60%f0);
  kind[0] -> CheckIPHeader -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> CheckIP6Header -> EtherEncap(0x86dd, $eth_src, $eth_dst) -> output;
}
