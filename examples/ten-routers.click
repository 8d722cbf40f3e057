// Ten routers in a row. Packets come in with TTLs of 1 to 12 and beyond: some expire at each
// router, which tells their sender.
//
//   catena run examples/ten-routers.click -h r1/expired.count -h r10/expired.count

elementclass Router { $ip |
  input -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
    -> routes :: RadixIPLookup($ip/32 1, 20.0.0.0/8 0, 203.0.113.0/24 0, 0.0.0.0/0 2);
  routes[0] -> DropBroadcasts -> options :: IPGWOptions($ip) -> FixIPSrc($ip) -> ttl :: DecIPTTL
    -> fragment :: IPFragmenter(1500) -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02)
    -> [0] output;
  routes[1] -> self :: Counter -> Discard;
  routes[2] -> unroutable :: Counter -> Discard;
  options[1] -> ICMPError($ip, parameterproblem) -> error :: EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:00:01);
  ttl[1] -> expired :: Counter -> ICMPError($ip, timeexceeded) -> error;
  fragment[1] -> ICMPError($ip, unreachable, needfrag) -> error;
  error -> [1] output;
}

FromDump(lan.pcap.gz) -> Classifier(12/0800)
  -> r1 :: Router(172.16.1.1) -> r2 :: Router(172.16.2.1) -> r3 :: Router(172.16.3.1)
  -> r4 :: Router(172.16.4.1) -> r5 :: Router(172.16.5.1) -> r6 :: Router(172.16.6.1)
  -> r7 :: Router(172.16.7.1) -> r8 :: Router(172.16.8.1) -> r9 :: Router(172.16.9.1)
  -> r10 :: Router(172.16.10.1) -> ToDump(ten-routers.out.pcap);

errors :: ToDump(ten-routers.errors.pcap);
r1[1] -> errors; r2[1] -> errors; r3[1] -> errors; r4[1] -> errors; r5[1] -> errors;
r6[1] -> errors; r7[1] -> errors; r8[1] -> errors; r9[1] -> errors; r10[1] -> errors;
