// An IP router with two interfaces, after the router of the Click paper: a local network and a
// wide one. It answers ARP, checks headers, counts down TTLs, fragments, and sends ICMP errors.
//
//   catena run examples/ip-router.click
//
// reads examples/lan.pcap.gz and examples/wan.pcap.gz, writes ip-router.lan.pcap and
// ip-router.wan.pcap.

define($LAN 10.0.0.1, $LAN_MAC 02:00:00:00:10:01,
       $WAN 20.0.0.1, $WAN_MAC 02:00:00:00:20:01);

// An interface: frames come in on input 0, packets to send on input 1; frames leave on output 0,
// packets to route on output 1.
elementclass Interface { $colour, $ip, $mac, $mtu |
  input[0] -> HostEtherFilter($mac)
    -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> [1] arp :: ARPQuerier($ip, $mac) -> [0] output;
  kind[2] -> Paint($colour) -> Strip(14)
    -> CheckIPHeader(INTERFACES $LAN/24 $WAN/24) -> GetIPAddress(16) -> [1] output;
  kind[3] -> Discard;

  input[1] -> DropBroadcasts -> redirect :: PaintTee($colour) -> options :: IPGWOptions($ip)
    -> FixIPSrc($ip) -> ttl :: DecIPTTL -> fragment :: IPFragmenter($mtu) -> [0] arp;
  redirect[1] -> ICMPError($ip, redirect, host) -> [1] output;
  options[1] -> ICMPError($ip, parameterproblem) -> [1] output;
  ttl[1] -> ICMPError($ip, timeexceeded) -> [1] output;
  fragment[1] -> ICMPError($ip, unreachable, needfrag) -> [1] output;
}

lan :: Interface(1, $LAN, $LAN_MAC, 1500);
wan :: Interface(2, $WAN, $WAN_MAC, 576);

routes :: StaticIPLookup(
  $LAN/32 2, $WAN/32 2,              // the router itself
  10.0.0.0/24 0,                     // the local network
  20.0.0.0/24 1,                     // the link to the provider
  0.0.0.0/0 20.0.0.254 1);           // everything else, by the provider's router

lan[1] -> routes;
wan[1] -> routes;
routes[0] -> [1] lan;
routes[1] -> [1] wan;
// Pings to the router are answered.
routes[2] -> ICMPPingResponder -> routes;

FromDump(lan.pcap.gz, BURST 1) -> [0] lan;
FromDump(wan.pcap.gz, BURST 1) -> [0] wan;
lan[0] -> ToDump(ip-router.lan.pcap);
wan[0] -> ToDump(ip-router.wan.pcap);
