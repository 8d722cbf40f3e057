// Dedup([KEYWORDS]) -- sends what payloads repeat once
//
// Bytes that a recent payload had, too, are replaced by references to it, if they are 32 or more: network redundancy
// elimination. `Redup` on the other side of a slow link gives every byte back. Headers stay readable, so that other
// functions between them work. Payloads without repeated bytes grow by 9 bytes.
//
// With two inputs, input 1 takes the frames in which Redup reports what it received: only that is referred to, so that
// nothing more is lost where packets are lost or overtaken. With one, whatever was sent is referred to: packets that
// refer to a lost one are lost, too.
//
// Fragments are put together first, and packets larger than MTU are cut again, also if "do not fragment" is set. Frames
// leave as they came. Those that hold no IPv4 packet pass as they are; those with an invalid header are dropped.
//
// = KEYWORDS
//
// MEMORY (number, default 16777216): bytes of payloads that are remembered, the same on both sides.
// PORT (port, default 4754): the UDP destination port of reports.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// dedup.bytes_in, dedup.bytes_out, dedup.saved (read): bytes of payloads as they came and left; the difference.
//
// = IPV6
//
// IPv6 passes as it is.
//
// = EXAMPLE
//
// FromDevice(lan) -> dedup :: Dedup -> ToDevice(wan);
// FromDevice(wan) -> [1] dedup;
//
// = SEE ALSO
//
// DedupPayload, Redup

elementclass Dedup { MEMORY $memory, MTU $mtu |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> dedup :: DedupPayload(${memory:-16777216})
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> output;
|| MEMORY $memory, PORT $port, MTU $mtu |
  input[0] -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> dedup :: DedupPayload(${memory:-16777216})
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> output;
  input[1] -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> IPClassifier(udp dst port ${port:-4754}) -> CheckUDPHeader -> StripIPHeader -> Strip(8) -> [1] dedup;
}
