// AQM(RATE [, KEYWORDS]) -- sends at a rate, and keeps the delay of what waits low
//
// Packets wait in a queue that leaves at RATE (bytes per second, such as 12MBps, or bits, such as 100Mbps). When they
// wait for longer than TARGET for a whole INTERVAL, some are marked or dropped, more and more often, until the delay is low
// again: controlled delay (CoDel, RFC 8289). ECN-capable IPv4 and IPv6 packets are marked (RFC 3168), others dropped.
// Frames leave as they came. REDQueue in place of CoDelQueue does random early detection.
//
// = KEYWORDS
//
// TARGET (time, default 5ms): the delay that is accepted.
// INTERVAL (time, default 100ms): how long it may be exceeded: about a round-trip time.
// CAPACITY (number, default 1000): packets that wait at the most.
// ECN (bool, default true): whether packets are marked.
//
// = HANDLERS
//
// queue.length, queue.drops, queue.marks, queue.full (read): packets that wait; that were dropped and marked for their
// delay; for which there was no room.
// rate.rate (read, write): the rate.
//
// = IPV6
//
// IPv6 is marked as IPv4 is.
//
// = EXAMPLE
//
// FromDevice(lan) -> AQM(100Mbps) -> ToDevice(wan);
//
// = SEE ALSO
//
// CoDelQueue, REDQueue, BandwidthRatedUnqueue, Limiter

elementclass AQM { $rate, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/86dd, -);
  kind[0] -> MarkIPHeader(14)
    -> queue :: CoDelQueue($options) -> rate :: BandwidthRatedUnqueue($rate) -> output;
  kind[1] -> MarkIP6Header(14) -> queue;
  kind[2] -> queue;
}
