// VXLANDetunnel(VNI [, KEYWORDS]) -- takes frames out of VXLAN packets
//
// Takes the frames out of VXLAN packets (RFC 7348) of the network VNI. Fragments of VXLAN packets are put together
// first. Other frames, and packets that are not valid, are dropped.
//
// = KEYWORDS
//
// DPORT (port, default 4789): the UDP destination port.
//
// = IPV6
//
// IPv6 inside is taken out as all other frames are. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(wan) -> VXLANDetunnel(5000) -> ToDevice(lan);
//
// = SEE ALSO
//
// VXLANDecap, VXLANTunnel

elementclass VXLANDetunnel { $vni, DPORT $port |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> IPClassifier(udp) -> CheckUDPHeader -> VXLANDecap($vni, DPORT ${port:-4789}) -> output;
}
