// Frames with a tag lose it, others get one.
FromDevice(trunk) -> c :: Classifier(12/8100, 12/0800, -);
c[0] -> VLANDecap -> EtherRewrite(02:00:00:00:01:01, 02:00:00:00:01:02) -> Queue -> ToDevice(access);
c[1] -> VLANEncap(VLAN_ID 5, VLAN_PCP 2) -> Queue -> ToDevice(trunk);
c[2] -> Discard;
