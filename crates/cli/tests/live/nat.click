// A NAPT between two hosts that it knows.
define($A 10.1.0.1, $AM 02:00:00:00:00:01, $B 10.2.0.1, $BM 02:00:00:00:00:02);
elementclass Side { $ip, $mac, $host |
  input[0] -> HostEtherFilter($mac) -> kind :: Classifier(12/0806 20/0001, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> Strip(14) -> CheckIPHeader -> [1] output;
  kind[2] -> Discard;
  input[1] -> ttl :: DecIPTTL -> EtherEncap(0x0800, $mac, $host) -> [0] output;
  ttl[1] -> Discard;
}
a :: Side($A, $AM, 02:00:00:00:01:02);
b :: Side($B, $BM, 02:00:00:00:02:02);
nat :: IPRewriter(pattern $B 20000-29999 - - 0 1, drop);
inside :: IPClassifier(tcp or udp, -);
outside :: IPClassifier(tcp or udp, -);
FromDevice(left) -> [0] a;
FromDevice(right) -> [0] b;
a[0] -> ToDevice(left);
b[0] -> ToDevice(right);
a[1] -> inside -> [0] nat;
inside[1] -> Discard;
b[1] -> outside -> [1] nat;
outside[1] -> Discard;
nat[0] -> [1] b;
nat[1] -> [1] a;
