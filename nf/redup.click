// Redup([SRC, DST, ETH_SRC, ETH_DST, KEYWORDS]) -- gives payloads back that Dedup replaced
//
// What Dedup made of payloads is undone. Packets are dropped that Dedup does not make, and those that refer to a payload
// that was not received.
//
// With two outputs, output 1 sends reports of what was received to Dedup's input 1: UDP packets from the IPv4 address SRC
// to DST, in frames from ETH_SRC to ETH_DST. With one output, there are no arguments but keywords.
//
// Fragments are put together first, and packets larger than MTU are cut again. Frames leave as they came. Those that
// hold no IPv4 packet pass as they are; those with an invalid header are dropped.
//
// = KEYWORDS
//
// MEMORY (number, default 16777216): bytes of payloads that are remembered, the same on both sides.
// PORT (port, default 4754): the UDP ports of reports.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// redup.count (read): payloads that were given back.
//
// = IPV6
//
// IPv6 passes as it is.
//
// = EXAMPLE
//
// FromDevice(wan) -> redup :: Redup(192.0.2.2, 192.0.2.1, 02:00:00:00:00:02, 02:00:00:00:00:01);
// redup[0] -> ToDevice(lan);
// redup[1] -> ToDevice(wan);
//
// = SEE ALSO
//
// RedupPayload, Dedup

elementclass Redup { MEMORY $memory, MTU $mtu |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> redup :: RedupPayload(${memory:-16777216})
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> output;
|| $src, $dst, $eth_src, $eth_dst, MEMORY $memory, PORT $port, MTU $mtu |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> redup :: RedupPayload(${memory:-16777216})
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  kind[1] -> [0] output;
  redup[1] -> UDPIPEncap($src, ${port:-4754}, $dst, ${port:-4754})
    -> EtherEncap(0x0800, $eth_src, $eth_dst) -> [1] output;
}
