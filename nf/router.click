// Router(ADDR0/LENGTH, ETH0, ADDR1/LENGTH, ETH1, GATEWAY [, KEYWORDS]) -- routes IPv4 between two interfaces
//
// Input and output 0 are an interface with the address ADDR0 in a network of LENGTH and the Ethernet address ETH0; input
// and output 1 are another. Packets to the two networks go to their hosts, all others to GATEWAY, which is in the
// network of interface 1. Frames come in and leave as on the wire.
//
// It answers ARP and pings, and asks for Ethernet addresses by ARP. It checks headers, decrements the time-to-live,
// processes options, cuts packets into fragments where they are larger than MTU and may be cut, and sends redirects.
// ICMP errors report packets that expire, that are too large, or whose options are malformed, and packets to the router
// itself, which has no UDP port open and no protocol but ICMP. Each interface causes at most ICMP_RATE errors a second.
// Neighbours that do not answer ARP are not reported.
//
// = KEYWORDS
//
// MTU0, MTU1 (number, default 1500): the longest IP packet that an interface sends.
// ICMP_RATE (number, default 1000): ICMP errors a second for each interface; more are not sent.
//
// = HANDLERS
//
// routes.table (read): the routes.
// routes.add, routes.remove, routes.set (write): change them while packets pass.
// if0/arp.table, if1/arp.table (read): the Ethernet addresses of neighbours.
//
// = IPV6
//
// IPv6 is dropped: IPv6Fwd forwards it.
//
// = EXAMPLE
//
// router :: Router(10.1.0.1/24, 02:00:00:00:00:01, 10.2.0.1/24, 02:00:00:00:00:02, 10.2.0.2);
// FromDevice(lan) -> [0] router [0] -> ToDevice(lan);
// FromDevice(wan) -> [1] router [1] -> ToDevice(wan);
//
// = SEE ALSO
//
// RadixIPLookup, ARPQuerier, ICMPError, IPFragmenter, IPv4Fwd

elementclass Router { $ip0, $eth0, $ip1, $eth1, $gateway, MTU0 $mtu0, MTU1 $mtu1, ICMP_RATE $icmp_rate |
  AddressInfo(if0_address $ip0 $eth0, if1_address $ip1 $eth1);

  // Frames come in on input 0, packets to send on input 1; frames leave on output 0, packets to route on output 1.
  elementclass Interface { $address, $colour, $mtu, $rate |
    input[0] -> HostEtherFilter($address:eth)
      -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
    kind[0] -> ARPResponder($address:ip $address:eth) -> [0] output;
    kind[1] -> [1] arp :: ARPQuerier($address) -> [0] output;
    kind[2] -> Paint($colour) -> Strip(14)
      -> CheckIPHeader(INTERFACES if0_address if1_address) -> GetIPAddress(16) -> [1] output;

    input[1] -> DropBroadcasts -> redirect :: PaintTee($colour) -> options :: IPGWOptions($address)
      -> FixIPSrc($address) -> ttl :: DecIPTTL -> fragment :: IPFragmenter($mtu) -> [0] arp;
    redirect[1] -> ICMPError($address, redirect, host) -> limit :: RatedSplitter($rate) -> [1] output;
    options[1] -> ICMPError($address, parameterproblem) -> limit;
    ttl[1] -> ICMPError($address, timeexceeded) -> limit;
    fragment[1] -> ICMPError($address, unreachable, needfrag, PMTU $mtu) -> limit;
    limit[1] -> Discard;
  }

  if0 :: Interface(if0_address, 1, ${mtu0:-1500}, ${icmp_rate:-1000});
  if1 :: Interface(if1_address, 2, ${mtu1:-1500}, ${icmp_rate:-1000});
  routes :: RadixIPLookup(if0_address:ip 2, if1_address:ip 2, if0_address:ipnet 0, if1_address:ipnet 1,
    0.0.0.0/0 $gateway 1);

  input[0] -> [0] if0; if0[0] -> [0] output; if0[1] -> routes;
  input[1] -> [0] if1; if1[0] -> [1] output; if1[1] -> routes;
  routes[0] -> [1] if0;
  routes[1] -> [1] if1;
  routes[2] -> here :: IPClassifier(icmp type echo, udp, icmp or tcp, -);
  here[0] -> ICMPPingResponder -> routes;
  here[1] -> ICMPError(if1_address, unreachable, port) -> limit :: RatedSplitter(${icmp_rate:-1000}) -> routes;
  here[2] -> Discard;
  here[3] -> ICMPError(if1_address, unreachable, protocol) -> limit;
  limit[1] -> Discard;
}
