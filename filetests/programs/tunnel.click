// A tunnel whose packets are mirrored: identifications count up, and copies leave by another device.
FromDevice(lan) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> IPEncap(ipip, 100.0.0.1, 100.0.0.2) -> mirror :: Tee;
mirror[0] -> Paint(7) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:9) -> ToDevice(probe);
mirror[1] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(wan);
