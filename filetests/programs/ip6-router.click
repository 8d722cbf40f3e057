// Two networks of IPv6.
FromDevice(eth0) -> Strip(14) -> CheckIP6Header -> GetIP6Address(24)
  -> rt :: LookupIP6Route(2001:db8:1::/48 ::0 0, 2001:db8:2::/48 2001:db8::2 1, ::0/0 2001:db8::1 1);
rt[0] -> DecIP6HLIM -> Queue -> ToDevice(eth0);
rt[1] -> DecIP6HLIM -> Queue -> ToDevice(eth1);
