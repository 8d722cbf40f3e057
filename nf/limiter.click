// Limiter(RATE [, PER flow|src|dst] [, KEYWORDS]) -- limits the bandwidth of all packets together, or of each flow or host
//
// A token bucket: frames of up to RATE bytes a second (or bits: `10Mbps`) leave on output 0. What exceeds it leaves on
// output 1 if there is one, and is dropped otherwise. After a pause, as many bytes may come at once as the bucket
// holds. Frames are counted from the Ethernet header on, without checksum and preamble.
//
// With PER, each flow, source or destination has a bucket of its own; see FlowRatedSplitter. Classes that borrow from one
// another what they do not need are those of HTBSched, which pulls from queues.
//
// = KEYWORDS
//
// BURST_DURATION (time, default 20ms): the bucket holds so much time's bytes.
// BURST_BYTES (number): the same as a number of bytes.
// PER (flow, src or dst): what has a bucket: a flow in one direction, the source or the destination address.
// IPV4_PREFIX (number, default 32): with PER src or dst, how many bits of an address count.
// IPV6_PREFIX (number, default 64): the same for IPv6.
// CAPACITY (number, default 65536): with PER, how many buckets are kept. The one that was silent for longest makes room.
//
// = HANDLERS
//
// bucket.rate (read, write): the rate in bytes a second.
// bucket.keys (read): with PER, a line for each key: bytes that passed, bytes that exceeded the rate, and the key.
// bucket.exceeded, bucket.evicted and others (read): with PER, those of FlowRatedSplitter.
//
// = IPV6
//
// IPv6 counts as all other frames do. With PER, its protocol and ports are found behind extension headers.
//
// = EXAMPLE
//
// FromDevice(lan) -> Limiter(2Mbps, PER src, CAPACITY 1000000) -> Limiter(10Mbps, BURST_BYTES 15000)
//   -> ToDevice(wan);
//
// = SEE ALSO
//
// BandwidthRatedSplitter, FlowRatedSplitter, HTBSched, BandwidthShaper

elementclass Limiter { $rate, BURST_DURATION $duration |
  input -> bucket :: BandwidthRatedSplitter($rate, BURST_DURATION ${duration:-20ms}) -> output;
  bucket[1] -> Discard;
|| $rate, BURST_DURATION $duration |
  input -> bucket :: BandwidthRatedSplitter($rate, BURST_DURATION ${duration:-20ms}) -> [0] output;
  bucket[1] -> [1] output;
|| $rate, BURST_BYTES $bytes |
  input -> bucket :: BandwidthRatedSplitter($rate, BURST_BYTES $bytes) -> output;
  bucket[1] -> Discard;
|| $rate, BURST_BYTES $bytes |
  input -> bucket :: BandwidthRatedSplitter($rate, BURST_BYTES $bytes) -> [0] output;
  bucket[1] -> [1] output;
|| $rate, __REST__ $options |
  input -> bucket :: FlowRatedSplitter($rate, $options) -> output;
|| $rate, __REST__ $options |
  input -> bucket :: FlowRatedSplitter($rate, $options) -> [0] output;
  bucket[1] -> [1] output;
}
