// A router between a home and the internet: it answers ARP, gives all hosts at home one address
// outside, and tells them when packets expire or do not fit. It runs on live interfaces:
//
//   sudo catena run examples/home-router.click --in lan=eth0 --in wan=eth1
//
// or between network namespaces, where there is no hardware; README.md shows how.

define($LAN 10.1.0.1, $LAN_MAC 02:00:00:00:00:01, $WAN 10.2.0.1, $WAN_MAC 02:00:00:00:00:02);

// An interface: frames come in on input 0, packets to send on input 1; frames leave on output 0,
// packets to route on output 1, and errors about packets that were to be sent on output 2.
elementclass Interface { $ip, $mac, $mtu |
  input[0]
    -> HostEtherFilter($mac)
    -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> [1] arp :: ARPQuerier($ip, $mac) -> [0] output;
  kind[2] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> [1] output;
  kind[3] -> Discard;

  input[1]
    -> DropBroadcasts
    -> FixIPSrc($ip)
    -> ttl :: DecIPTTL
    -> fragment :: IPFragmenter($mtu)
    -> [0] arp;
  ttl[1] -> ICMPError($ip, timeexceeded) -> [2] output;
  fragment[1] -> ICMPError($ip, unreachable, needfrag, PMTU $mtu) -> [2] output;
}

lan :: Interface($LAN, $LAN_MAC, 1500);
wan :: Interface($WAN, $WAN_MAC, 1500);

// Hosts at home are distinguished by ports, and their pings by identifiers.
flows :: IPRewriter(pattern $WAN 1024-65535 - - 0 1, drop);
pings :: ICMPPingRewriter(pattern $WAN 1024-65535 - - 0 1, drop);
// An error tells of a packet by its addresses and ports on one side; they become those on the other.
errors :: ICMPRewriter(flows pings);

FromDevice(lan) -> [0] lan;
lan[0] -> ToDevice(lan);
FromDevice(wan) -> [0] wan;
wan[0] -> ToDevice(wan);

lan[1] -> here :: IPClassifier(dst host $LAN, icmp type echo, tcp or udp, -);
here[0] -> ICMPPingResponder -> [1] lan;
here[1] -> [0] pings;
here[2] -> [0] flows;
here[3] -> Discard;

wan[1]
  -> back :: IPClassifier(
    icmp type echo-reply,
    tcp or udp,
    icmp type unreachable or icmp type timeexceeded,
    -
  );
back[0] -> [1] pings;
back[1] -> [1] flows;
back[2] -> [0] errors;
back[3] -> Discard;

flows[0] -> [1] wan;
pings[0] -> [1] wan;
flows[1] -> [1] lan;
pings[1] -> [1] lan;

lan[2] -> [0] errors;
wan[2] -> [0] errors;
errors -> side :: StaticIPLookup($LAN/24 0, 0.0.0.0/0 1);
side[0] -> [1] lan;
side[1] -> [1] wan;
