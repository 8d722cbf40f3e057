// live.click: a firewall and a translator between two interfaces
require(library functions.click);

define($LAN 10.1.0.1, $LAN_MAC 02:00:00:00:00:01, $WAN 10.2.0.1, $WAN_MAC 02:00:00:00:00:02);

// An interface: frames come in on input 0, packets to send on input 1; frames leave on output 0, packets on output 1.
elementclass Port { $ip, $mac |
  input[0]
    -> HostEtherFilter($mac)
    -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> [1] arp :: ARPQuerier($ip, $mac) -> [0] output;
  kind[2] -> Strip(14) -> CheckIPHeader -> [1] output;
  kind[3] -> Discard;
  input[1] -> GetIPAddress(16) -> DecIPTTL -> [0] arp;
}

lan :: Port($LAN, $LAN_MAC);
wan :: Port($WAN, $WAN_MAC);
fw :: Firewall;
nat :: Nat($WAN);

FromDevice(lan) -> [0] lan[0] -> ToDevice(lan);
FromDevice(wan) -> [0] wan[0] -> ToDevice(wan);
lan[1] -> fw -> [0] nat[0] -> [1] wan;
wan[1] -> [1] nat[1] -> [1] lan;
