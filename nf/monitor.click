// Monitor -- counts packets and bytes by protocol
//
// Counts frames by what they hold: TCP, UDP, ICMP and other IPv4, IPv6, ARP, and everything else. Frames leave as they
// came, IPv4 packets without bytes behind them. IPv4 packets with an invalid header count as everything else.
//
// = HANDLERS
//
// tcp.count, udp.count, icmp.count, ip.count (read): packets of IPv4.
// ip6.count, arp.count, other.count (read): other frames.
// tcp.byte_count and so on (read): the same in bytes.
// tcp.rate and so on (read): packets a second since it was last asked for.
//
// = IPV6
//
// IPv6 is counted as one protocol, whatever is in it.
//
// = EXAMPLE
//
// FromDevice(lan) -> Monitor -> ToDevice(wan);
//
// = SEE ALSO
//
// Counter, Mirror

elementclass Monitor {
  input -> kind :: Classifier(12/0800, 12/86dd, 12/0806, -);
  kind[0] -> Strip(14) -> check :: CheckIPHeader -> protocol :: IPClassifier(tcp, udp, icmp, -);
  protocol[0] -> Unstrip(14) -> tcp :: Counter -> output;
  protocol[1] -> Unstrip(14) -> udp :: Counter -> output;
  protocol[2] -> Unstrip(14) -> icmp :: Counter -> output;
  protocol[3] -> Unstrip(14) -> ip :: Counter -> output;
  kind[1] -> ip6 :: Counter -> output;
  kind[2] -> arp :: Counter -> output;
  kind[3] -> other :: Counter -> output;
  check[1] -> Unstrip(14) -> other;
}
