// GENEVEDetunnel(VNI [, KEYWORDS]) -- takes frames out of GENEVE packets
//
// Takes the frames out of GENEVE packets (RFC 8926) of the network VNI, whatever options they have that need not be
// understood. Fragments of GENEVE packets are put together first. Other frames, and packets that are not valid, are dropped.
//
// = KEYWORDS
//
// DPORT (port, default 6081): the UDP destination port.
//
// = IPV6
//
// IPv6 inside is taken out as all other frames are. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(wan) -> GENEVEDetunnel(5000) -> ToDevice(lan);
//
// = SEE ALSO
//
// GENEVEDecap, GENEVETunnel, VXLANDetunnel

elementclass GENEVEDetunnel { $vni, __REST__ $options |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPReassembler -> IPClassifier(udp) -> CheckUDPHeader
    -> GENEVEDecap($vni, $options) -> output;
}
