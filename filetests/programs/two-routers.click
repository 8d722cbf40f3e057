// The second routes what the first made of packets.
FromDevice(eth0) -> Strip(14) -> CheckIPHeader
  -> first :: RadixIPLookup(10.0.0.0/8 0, 0.0.0.0/0 192.0.2.1 1);
first[0] -> DecIPTTL -> Discard;
first[1] -> DecIPTTL -> second :: RadixIPLookup(198.51.100.0/24 0, 203.0.113.0/24 198.51.100.9 0, 0.0.0.0/0 198.51.100.1 1);
second[0] -> DecIPTTL -> Queue -> ToDevice(eth1);
second[1] -> DecIPTTL -> Queue -> ToDevice(eth2);
