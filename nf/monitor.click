// Monitor([KEYWORDS]) -- counts packets and bytes, by protocol or of each flow, and exports flows as IPFIX
//
// Without keywords, counts frames by what they hold: TCP, UDP, ICMP and other IPv4, IPv6, ARP, and everything else.
// Frames leave as they came, IPv4 packets without bytes behind them. IPv4 packets with an invalid header count as
// everything else.
//
// With keywords, counts each flow: what has the same addresses, protocol and ports, in one direction. Frames leave as
// they came. Memory is bounded: FLOWS flows are kept, by space-saving (Metwally et al. 2005). A new flow replaces the
// one with the least count if there is no room. A flow had at least what is shown, and at most its error more.
// No error exceeds all that was counted divided by FLOWS; a flow with a larger share is always among those kept.
// Workers count by themselves.
//
// With a second output, flows are exported as IPFIX (RFC 7011) to COLLECTOR: UDP packets without an Ethernet header
// leave there. Their records add up to all packets that were counted.
//
// Counting by protocol has a model. Counting flows is opaque: no program takes its place.
//
// = KEYWORDS
//
// TOP (number, default 10): how many flows `flows.top` shows.
// BY (packets or bytes, default bytes): what flows are ranked by.
// FLOWS (number, default 65536): how many flows are kept, each with about 150 bytes.
// COLLECTOR (address and port), SOURCE (address and port): where to and from records are sent. IPv4, or IPv6 as
// `[2001:db8::9]:4739`. The port of IPFIX, 4739, may be left out.
// DOMAIN (number, default 1): the observation domain. Further workers take the next numbers.
// ACTIVE (time, default 60s), INACTIVE (time, default 15s): after so long, flows are exported that go on, or have ended.
// TEMPLATES (time, default 60s): after so long, templates are sent again.
//
// = HANDLERS
//
// tcp.count, udp.count, icmp.count, ip.count (read): without keywords, packets of IPv4.
// ip6.count, arp.count, other.count (read): other frames.
// tcp.byte_count and so on (read): the same in bytes.
// tcp.rate and so on (read): packets a second since it was last asked for.
// flows.top (read): with keywords, the TOP flows, a line each: packets, bytes, error, flow.
// flows.top_json (read): the same as JSON.
// flows.flows (read): all flows that are kept.
// flows.count, flows.byte_count, flows.other (read): packets and bytes of all flows, and frames of none.
// flows.export (write): exports all flows now.
// flows.reset (write): exports all flows and forgets them.
//
// = IPV6
//
// Without keywords, IPv6 is counted as one protocol. Flows are those of IPv6, too; up to 16 extension headers are
// looked behind. Fragments of both versions count as a flow without ports.
//
// = EXAMPLE
//
// FromDevice(lan) -> mon :: Monitor(TOP 20, COLLECTOR 192.0.2.9, SOURCE 192.0.2.1:4739) -> ToDevice(wan);
// mon[1] -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(probe);
//
// = SEE ALSO
//
// FlowMonitor, Counter, Mirror

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
|| __REST__ $options |
  input -> flows :: FlowMonitor($options) -> output;
|| __REST__ $options |
  input -> flows :: FlowMonitor($options) -> [0] output;
  flows[1] -> [1] output;
}
