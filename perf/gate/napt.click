// A firewall, a NAPT and a load balancer: `cargo xtask bench --gate` measures them with flows and with connections.
FromDevice(in)
  -> Strip(14) -> CheckIPHeader
  -> IPFilter(deny dst net 20.0.0.0/16, deny src net 127.0.0.0/8, allow tcp or udp)
  -> napt :: IPRewriter(pattern 203.0.113.1 1024-65535# - - 0 1);
napt[0]
  -> kind :: IPClassifier(tcp, udp);
kind[0] -> balancer :: IPRewriter(servers);
servers :: RoundRobinIPMapper(- - 192.0.2.1 - 0 1, - - 192.0.2.2 - 0 1);
balancer[0] -> out :: DecIPTTL;
kind[1] -> out;
out -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:fe:fe) -> ToDevice(out);
out[1] -> Discard;
napt[1] -> Discard;
balancer[1] -> Discard;
