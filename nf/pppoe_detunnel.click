// PPPoEDetunnel(SESSION, ETH_SRC, ETH_DST) -- takes IP packets out of packets of a PPPoE session
//
// Takes IPv4 and IPv6 packets out of packets of PPPoE (RFC 2516) of the session SESSION, and sends them in frames from
// ETH_SRC to ETH_DST. Other frames, other protocols of PPP, such as LCP, and packets that are not valid are dropped.
//
// = IPV6
//
// IPv6 inside is taken out as IPv4 is.
//
// = EXAMPLE
//
// FromDevice(wan) -> PPPoEDetunnel(7, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(lan);
//
// = SEE ALSO
//
// PPPoEDecap, PPPoETunnel, GTPDetunnel

elementclass PPPoEDetunnel { $session, $eth_src, $eth_dst |
  input -> Classifier(12/8864) -> Strip(14) -> PPPoEDecap($session) -> kind :: Classifier(0/40%f0, 0/60%f0);
  kind[0] -> CheckIPHeader -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> CheckIP6Header -> EtherEncap(0x86dd, $eth_src, $eth_dst) -> output;
}
