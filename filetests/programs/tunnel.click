// A tunnel whose packets are mirrored: identifications count up, and copies leave by another device.
FromDevice(lan) -> Strip(14) -> CheckIPHeader -> DecIPTTL -> UDPIPEncap(100.0.0.1, 4789, 100.0.0.2, 4789) -> mirror :: Tee;
mirror[0] -> Paint(7) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:9) -> ToDevice(probe);
mirror[1] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> ToDevice(wan);
