// The chain with which the SNF paper motivates synthesis (§7.3): a NAPT, a layer-4 firewall and a
// layer-3 load balancer. TCP is translated and leaves; UDP to port 1234 is translated and balanced
// over two servers; other UDP is filtered.
//
//   catena run examples/snf-motivating.click -h balanced.count -h filtered.count

// What every function does with an Ethernet frame before and after its own work.
elementclass Enter { input -> Strip(14) -> check :: CheckIPHeader -> output }
elementclass Leave { $mac |
  input -> ttl :: DecIPTTL -> EtherEncap(0x0800, $mac, 02:00:00:00:fe:fe) -> output;
  ttl[1] -> Discard;
}

elementclass Napt { $public |
  input -> Enter -> kind :: IPClassifier(tcp or udp, -);
  kind[0] -> rw :: IPRewriter(pattern $public 1024-65535# - - 0 1);
  kind[1] -> Discard;
  rw[0] -> Leave(02:00:00:00:01:01) -> output;
  rw[1] -> Discard;
}

// Output 0: TCP; output 1: UDP for the balancer.
elementclass Firewall {
  input -> Enter -> rules :: IPFilter(0 tcp, 1 udp && dst port 1234, 2 all);
  rules[0] -> Leave(02:00:00:00:02:01) -> [0] output;
  rules[1] -> Leave(02:00:00:00:02:02) -> [1] output;
  rules[2] -> Discard;
}

elementclass Balancer { $service, $first, $second |
  servers :: RoundRobinIPMapper(- - $first - 0 1, - - $second - 0 1);
  input -> Enter -> rw :: IPRewriter(servers) -> Leave(02:00:00:00:03:01) -> output;
  rw[1] -> Discard;
}

nat :: Napt(198.51.100.1);
firewall :: Firewall;
balancer :: Balancer(203.0.113.9, 192.0.2.1, 192.0.2.2);

FromDump(lan.pcap.gz) -> Classifier(12/0800) -> nat -> firewall;
firewall[0] -> ToDump(snf-motivating.tcp.pcap);
firewall[1] -> balanced :: Counter -> balancer -> ToDump(snf-motivating.udp.pcap);
