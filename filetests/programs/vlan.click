// Frames of two VLANs become frames of one.
FromDevice(trunk) -> vlans :: Classifier(12/8100 14/0064%0fff, 12/8100 14/00c8%0fff, -);
vlans[0] -> VLANDecap -> VLANEncap(VLAN_ID 7) -> ToDevice(access);
vlans[1] -> VLANDecap -> VLANEncap(VLAN_ID 7, VLAN_PCP 5) -> ToDevice(access);
vlans[2] -> Discard;
