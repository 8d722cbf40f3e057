// Limiter(RATE [, KEYWORDS]) -- limits the bandwidth of all packets together
//
// A token bucket: frames of up to RATE bytes a second (or bits: `10Mbps`) leave on output 0. What exceeds it leaves on
// output 1 if there is one, and is dropped otherwise. After a pause, as many bytes may come at once as the bucket
// holds. Frames are counted from the Ethernet header on, without checksum and preamble.
//
// = KEYWORDS
//
// BURST_DURATION (time, default 20ms): the bucket holds so much time's bytes.
// BURST_BYTES (number): the same as a number of bytes.
//
// = HANDLERS
//
// bucket.rate (read, write): the rate in bytes a second.
//
// = IPV6
//
// IPv6 counts as all other frames do.
//
// = EXAMPLE
//
// FromDevice(lan) -> Limiter(10Mbps, BURST_BYTES 15000) -> ToDevice(wan);
//
// = SEE ALSO
//
// BandwidthRatedSplitter, BandwidthShaper

elementclass Limiter { $rate, __REST__ $options |
  input -> bucket :: BandwidthRatedSplitter($rate, $options) -> output;
  bucket[1] -> Discard;
|| $rate, __REST__ $options |
  input -> bucket :: BandwidthRatedSplitter($rate, $options) -> [0] output;
  bucket[1] -> [1] output;
}
