// IPIPDetunnel(ETH_SRC, ETH_DST) -- takes IP packets out of IP packets
//
// Takes IPv4 packets (RFC 2003) and IPv6 packets (RFC 4213) out of IPv4 packets and puts them into frames from ETH_SRC to
// ETH_DST. Fragments of the packets outside are put together first. Other frames, and packets that are not valid, are
// dropped.
//
// = IPV6
//
// IPv6 inside is taken out as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(wan) -> IPIPDetunnel(02:00:00:00:00:03, 02:00:00:00:00:04) -> ToDevice(lan);
//
// = SEE ALSO
//
// StripIPHeader, IPIPTunnel

elementclass IPIPDetunnel { $eth_src, $eth_dst |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> kind :: IPClassifier(ip proto 4, ip proto 41);
  kind[0] -> StripIPHeader -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> StripIPHeader -> EtherEncap(0x86dd, $eth_src, $eth_dst) -> output;
}
