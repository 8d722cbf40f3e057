// Flows are looked up by what the first translator made of packets.
FromDevice(lan) -> Strip(14) -> CheckIPHeader -> inner :: IPRewriter(pattern 10.1.0.1 1024-65535 - - 0 1, drop);
inner[0] -> outer :: IPRewriter(pattern 198.51.100.1 1024-65535 - - 0 1, drop);
outer[0] -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(wan);
outer[1] -> [1] inner;
inner[1] -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04) -> ToDevice(lan);
FromDevice(wan) -> Strip(14) -> CheckIPHeader -> [1] outer;
