// A firewall with a list of rules and a router: `cargo xtask bench --gate` measures it with packets for each rule.
FromDevice(in)
  -> Strip(14) -> CheckIPHeader -> IPFilter(file ../../examples/isp-edge.rules.gz)
  -> rt :: RadixIPLookup(10.0.0.0/8 0, 192.168.0.0/16 0, 0.0.0.0/0 1);
rt[0] -> Discard;
rt[1] -> DropBroadcasts -> ttl :: DecIPTTL -> FixIPSrc(203.0.113.1)
  -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:fe:fe) -> ToDevice(out);
ttl[1] -> Discard;
