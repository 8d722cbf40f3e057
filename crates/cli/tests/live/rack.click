// A router with a packet filter and no state: it knows its hosts.
define($A 10.1.0.1, $AM 02:00:00:00:00:01, $B 10.2.0.1, $BM 02:00:00:00:00:02);
elementclass Side { $ip, $mac, $host |
  input[0] -> HostEtherFilter($mac) -> kind :: Classifier(12/0806 20/0001, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> Strip(14) -> CheckIPHeader -> [1] output;
  kind[2] -> Discard;
  input[1] -> ttl :: DecIPTTL -> EtherEncap(0x0800, $mac, $host) -> [0] output;
  ttl[1] -> ICMPError($ip, timeexceeded) -> [2] output;
}
a :: Side($A, $AM, 02:00:00:00:01:02);
b :: Side($B, $BM, 02:00:00:00:02:02);
filter :: IPFilter(deny udp && dst port 9, allow all);
routes :: StaticIPLookup(10.1.0.2/32 0, 10.2.0.2/32 1, 10.1.0.1/32 2, 10.2.0.1/32 2);
FromDevice(left) -> [0] a;
FromDevice(right) -> [0] b;
a[0] -> ToDevice(left);
b[0] -> ToDevice(right);
a[1] -> filter -> routes;
b[1] -> filter;
a[2], b[2] -> routes;
routes[0] -> [1] a;
routes[1] -> [1] b;
routes[2] -> ICMPPingResponder -> routes;
