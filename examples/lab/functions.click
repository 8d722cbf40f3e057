// A router's side: it answers ARP for itself (second output), and sends what is to go on to the next hop.
elementclass Side { $ip, $own, $mac, $next |
  input -> kind :: Classifier(12/0806 20/0001, 12/0800);
  kind[0] -> ARPResponder($ip $own) -> [1] output;
  kind[1] -> Strip(14) -> CheckIPHeader -> DecIPTTL -> EtherEncap(0x0800, $mac, $next) -> [0] output;
}
// Translates TCP and UDP between two sides, for which it answers ARP.
elementclass Nat { $in, $inmac, $host, $out, $outmac, $next |
  input[0] -> l :: Classifier(12/0806 20/0001, 12/0800);
  l[0] -> ARPResponder($in $inmac) -> [0] output;
  input[1] -> r :: Classifier(12/0806 20/0001, 12/0800);
  r[0] -> ARPResponder($out $outmac) -> [1] output;
  rw :: IPRewriter(pattern $out 1024-65535# - - 0 1, drop);
  l[1] -> Strip(14) -> CheckIPHeader -> IPClassifier(tcp or udp) -> [0] rw;
  r[1] -> Strip(14) -> CheckIPHeader -> IPClassifier(tcp or udp) -> [1] rw;
  rw[0] -> EtherEncap(0x0800, $outmac, $next) -> [1] output;
  rw[1] -> EtherEncap(0x0800, $inmac, $host) -> [0] output;
}
// Passes ARP, and IPv4 that the rules allow.
elementclass Filter { __REST__ $rules |
  input -> kind :: Classifier(12/0806, 12/0800);
  kind[0] -> output;
  kind[1] -> Strip(14) -> CheckIPHeader -> IPFilter($rules) -> Unstrip(14) -> output;
}
