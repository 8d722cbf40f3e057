// PPPoETunnel(SESSION, ETH_SRC, ETH_DST [, KEYWORDS]) -- puts IP packets into packets of a PPPoE session
//
// Each IPv4 and IPv6 packet goes into a packet of PPPoE (RFC 2516) of the session SESSION, in a frame from ETH_SRC to
// ETH_DST. IPv4 packets larger than MTU are cut into fragments, or dropped if that is forbidden. Other frames are
// dropped, and so are packets with an invalid header. Sessions are not negotiated: SESSION is one that was.
//
// = KEYWORDS
//
// MTU (number, default 1492): the longest IPv4 packet that is sent.
//
// = IPV6
//
// IPv6 is carried as IPv4 is, and is not cut.
//
// = EXAMPLE
//
// FromDevice(lan) -> PPPoETunnel(7, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(wan);
//
// = SEE ALSO
//
// PPPoEEncap, PPPoEDetunnel, GTPTunnel

elementclass PPPoETunnel { $session, $eth_src, $eth_dst, MTU $mtu |
  input -> kind :: Classifier(12/0800, 12/86dd);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPFragmenter(${mtu:-1492}) -> pppoe :: PPPoEEncap($session)
    -> EtherEncap(0x8864, $eth_src, $eth_dst) -> output;
  kind[1] -> Strip(14) -> CheckIP6Header -> pppoe;
}
