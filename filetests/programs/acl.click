// A list of rules in front of a router.
FromDevice(eth0) -> Strip(14) -> CheckIPHeader
  -> acl :: IPFilter(
    deny src net 192.0.2.0/24,
    allow tcp dst port 80 or 443,
    allow udp dst port 53,
    allow icmp type echo,
    allow src net 10.0.0.0/8 and dst net 172.16.0.0/12,
    deny all)
  -> rt :: RadixIPLookup(10.0.0.0/8 0, 172.16.0.0/12 10.0.0.1 1, 0.0.0.0/0 10.0.0.2 1);
rt[0] -> DecIPTTL -> Queue -> ToDevice(eth0);
rt[1] -> DecIPTTL -> Queue -> ToDevice(eth1);
