define($A 10.1.0.1, $AM 02:00:00:00:00:01, $B 10.2.0.1, $BM 02:00:00:00:00:02);
elementclass Interface { $colour, $ip, $mac, $mtu |
  input[0] -> HostEtherFilter($mac)
    -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> [1] arp :: ARPQuerier($ip, $mac) -> [0] output;
  kind[2] -> Paint($colour) -> Strip(14)
    -> CheckIPHeader() -> GetIPAddress(16) -> [1] output;
  kind[3] -> Discard;
  input[1] -> DropBroadcasts -> FixIPSrc($ip) -> ttl :: DecIPTTL -> fragment :: IPFragmenter($mtu) -> [0] arp;
  ttl[1] -> ICMPError($ip, timeexceeded) -> [1] output;
  fragment[1] -> ICMPError($ip, unreachable, needfrag) -> [1] output;
}
a :: Interface(1, $A, $AM, 1500);
b :: Interface(2, $B, $BM, 1500);
// The left side speaks to the right under the address of the router's right side.
nat :: IPRewriter(pattern 10.2.0.1 1024-65535 - - 0 1, drop);
a[1] -> [0] nat; b[1] -> [1] nat;
nat[0] -> [1] b; nat[1] -> [1] a;
FromDevice(left) -> [0] a; FromDevice(right) -> [0] b;
a[0] -> ToDevice(left); b[0] -> ToDevice(right);
