// A router behind one public address.
in :: FromDevice(lan) -> Strip(14) -> CheckIPHeader -> rw :: IPRewriter(pattern 198.51.100.1 1024-65535 - - 0 1, drop);
rw[0] -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(wan);
rw[1] -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04) -> ToDevice(lan);
FromDevice(wan) -> Strip(14) -> CheckIPHeader -> [1] rw;
