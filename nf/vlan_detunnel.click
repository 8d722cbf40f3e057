// VLANDetunnel(VLAN) -- takes frames out of a VLAN
//
// Takes the outer IEEE 802.1Q tag out of frames of that VLAN. Other frames, those without a tag among them, are
// dropped.
//
// = IPV6
//
// IPv6 is taken out as all other frames are.
//
// = EXAMPLE
//
// FromDevice(trunk) -> VLANDetunnel(7) -> ToDevice(lan);
//
// = SEE ALSO
//
// CheckVLAN, VLANDecap, VLANTunnel

elementclass VLANDetunnel { $vlan |
  input -> Classifier(12/8100) -> CheckVLAN($vlan) -> VLANDecap -> output;
}
