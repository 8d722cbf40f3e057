// The edge of an internet provider: customers' packets pass an access list of 8,550 rules, are
// routed, and leave under the provider's own addresses. Hosts on the internet answer; the answers
// are recognised.
//
//   catena run examples/isp-edge.click
//
// reads examples/isp-customers.pcap.gz and writes isp-edge.internet.pcap and isp-edge.customers.pcap.
//
//   sudo catena run examples/isp-edge.click --in isp=eth0 --in internet=eth1
//
// puts interfaces in the places of `isp` and `internet`. Customers come through a router with the address
// 02:00:00:00:00:01; the provider's next router has 203.0.113.254 and 02:00:00:00:fe:fe.

// Access list: what no rule allows is dropped.
elementclass Firewall {
  input -> Strip(14) -> CheckIPHeader -> acl :: IPFilter(file isp-edge.rules.gz)
    -> Unstrip(14) -> output;
}

// Router: expired packets and those that no network wants are answered with an ICMP error.
elementclass Router { $ip, $mac |
  input -> Strip(14) -> CheckIPHeader(INTERFACES $ip/24) -> GetIPAddress(16)
    -> rt :: RadixIPLookup(10.0.0.0/8 1, $ip/32 2, 0.0.0.0/0 203.0.113.254 0);
  rt[0] -> DropBroadcasts -> ttl :: DecIPTTL -> FixIPSrc($ip) -> fr :: IPFragmenter(1500)
    -> EtherEncap(0x0800, $mac, 02:00:00:00:fe:fe) -> [0] output;
  rt[1] -> Discard;
  rt[2] -> self :: Counter -> Discard;
  ttl[1] -> ICMPError($ip, timeexceeded) -> back :: EtherEncap(0x0800, $mac, 02:00:00:00:00:01) -> [1] output;
  fr[1] -> ICMPError($ip, unreachable, needfrag) -> back;
}

// NAPT: one public address for all customers; pings are distinguished by their identifier.
elementclass Napt { $public, $mac |
  flows :: IPRewriter(pattern $public 1024-65535# - - 0 1, drop);
  pings :: ICMPPingRewriter(pattern $public 1024-65535# - - 0 1, drop);
  out :: EtherEncap(0x0800, $mac, 02:00:00:00:fe:fe) -> [0] output;
  back :: EtherEncap(0x0800, $mac, 02:00:00:00:00:01) -> [1] output;

  input[0] -> Strip(14) -> CheckIPHeader -> leaving :: IPClassifier(icmp, -);
  leaving[0] -> [0] pings;
  leaving[1] -> [0] flows;
  input[1] -> Strip(14) -> CheckIPHeader -> coming :: IPClassifier(icmp, -);
  coming[0] -> [1] pings;
  coming[1] -> [1] flows;
  flows[0] -> out; pings[0] -> out;
  flows[1] -> back; pings[1] -> back;
}

// Customers and hosts on the internet, for where there are no interfaces. The hosts answer everything.
elementclass Customers {
  requests :: FromDump(isp-customers.pcap.gz, STOP true) -> output;
  input -> answers :: ToDump(isp-edge.customers.pcap);
}
elementclass Hosts {
  input -> sent :: Tee -> requests :: ToDump(isp-edge.internet.pcap, SNAPLEN 0);
  sent[1] -> Strip(14) -> CheckIPHeader -> ping :: ICMPPingResponder -> answers :: Unstrip(14) -> output;
  ping[1] -> IPMirror -> answers;
}

isp :: Customers;
internet :: Hosts;
fw :: Firewall;
router :: Router(10.255.255.254, 02:00:00:00:01:01);
nat :: Napt(203.0.113.1, 02:00:00:00:02:01);

isp -> kind :: Classifier(12/0800, 12/0806 20/0001, -);
kind[0] -> fw -> router -> nat -> internet;
kind[1] -> ARPResponder(10.255.255.254 02:00:00:00:01:01) -> isp;
kind[2] -> Discard;

internet -> coming :: Classifier(12/0800, 12/0806 20/0001, -);
coming[0] -> [1] nat;
coming[1] -> ARPResponder(203.0.113.1 02:00:00:00:02:01) -> internet;
coming[2] -> Discard;

nat[1] -> isp;
router[1] -> isp;
