// VLANTunnel(VLAN [, KEYWORDS]) -- puts frames into a VLAN
//
// Inserts an IEEE 802.1Q tag behind the Ethernet addresses. Frames that have a tag get another one in front of it.
//
// = KEYWORDS
//
// VLAN_PCP (0 to 7, default 0): the priority.
// ETHERTYPE (number, default 0x8100): the type before the tag, such as 0x88a8.
//
// = IPV6
//
// IPv6 is tagged as all other frames are.
//
// = EXAMPLE
//
// FromDevice(lan) -> VLANTunnel(7) -> ToDevice(trunk);
//
// = SEE ALSO
//
// VLANEncap, VLANDetunnel

elementclass VLANTunnel { $vlan, __REST__ $options |
  input -> VLANEncap(VLAN_ID $vlan, $options) -> output;
}
