// Two lists of rules, of which each is looked up once.
FromDevice(eth0) -> Strip(14) -> CheckIPHeader
  -> IPFilter(deny src net 192.0.2.0/24, allow src net 10.0.0.0/8 && tcp, allow src net 172.16.0.0/12 && udp, deny all)
  -> DecIPTTL
  -> IPClassifier(dst tcp port 80 or dst tcp port 8080, dst udp port 53 && dst net 8.0.0.0/8, -)
  => ( [0] -> p0 :: Queue -> ToDevice(a); [1] -> p1 :: Queue -> ToDevice(b); [2] -> Discard; );
