// DDoSDetect([KEYWORDS]) -- detects floods, and protects servers from floods of SYNs
//
// Detects floods of SYNs, UDP, ICMP and other packets to a destination, and floods of many sources that no rate
// shows; see FloodDetector. A line is shown when a flood begins or ends.
//
// With one input and one output, frames pass unchanged. With a second output, packets of floods leave there, to be
// limited or dropped.
//
// With two inputs and outputs, 0 to 0 is the path from clients to servers, 1 to 1 that from servers to clients, and
// floods of SYNs do not reach servers. While there is one to a server, its SYNs are answered here with cookies, and
// only clients that acknowledge them are connected; see SYNProxy. Connections that began before go on. Packets of other
// floods pass. Frames of IP packets with invalid headers are dropped, all other frames pass, those with VLAN tags
// among them. Fragments of IPv4 are put together first on the path from clients, and packets larger than MTU are cut
// again.
//
// = KEYWORDS
//
// SYN_RATE, UDP_RATE, ICMP_RATE, RATE, FACTOR, SOURCES, HOLD, DESTINATIONS: those of FloodDetector.
// With two inputs also:
// CAPACITY, MSS, WSCALE, TIMESTAMPS, TIMEOUT: those of SYNProxy.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// floods.floods (read): present floods, a line each: kind, victim, packets a second, sources.
// floods.events (read): the last 100 beginnings and ends of floods, each a JSON object.
// floods.count (read): floods that began.
// proxy.count, proxy.table (read): with two inputs, connections that began with a cookie.
// proxy.cookies, proxy.accepted, proxy.invalid (read): cookies that were sent, that came back, and ACKs with none.
//
// = IPV6
//
// IPv6 is protected as IPv4 is, behind extension headers, too. Fragments of IPv6 are counted, and pass.
//
// = EXAMPLE
//
// d :: DDoSDetect(SYN_RATE 500);
// FromDevice(wan) -> [0] d [0] -> ToDevice(lan);
// FromDevice(lan) -> [1] d [1] -> ToDevice(wan);
//
// = SEE ALSO
//
// FloodDetector, SYNProxy, Firewall, Limiter

elementclass DDoSDetect { __REST__ $options |
  input -> floods :: FloodDetector($options) -> output;
|| __REST__ $options |
  input -> floods :: FloodDetector($options) -> [0] output;
  floods[1] -> [1] output;
  floods[2] -> [1] output;
|| CAPACITY $capacity, MSS $mss, WSCALE $wscale, TIMESTAMPS $timestamps, TIMEOUT $timeout, MTU $mtu, __REST__ $options |
  floods :: FloodDetector($options);
  proxy :: SYNProxy(CAPACITY ${capacity:-1048576}, MSS ${mss:-1460}, WSCALE ${wscale:-7},
    TIMESTAMPS ${timestamps:-true}, TIMEOUT ${timeout:-86400});

  input[0] -> floods;
  floods[0] -> coming :: Classifier(12/0800, 12/86dd, -);
  coming[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> [0] proxy;
  coming[1] -> Strip(14) -> CheckIP6Header -> [0] proxy;
  coming[2] -> [0] output;

  // SYNs of a flood.
  floods[1] -> asked :: Classifier(12/0800, 12/86dd, -);
  asked[0] -> Strip(14) -> CheckIPHeader -> CheckTCPHeader -> [2] proxy;
  asked[1] -> Strip(14) -> CheckIP6Header -> [2] proxy;
  asked[2] -> [0] output;

  input[1] -> leaving :: Classifier(12/0800, 12/86dd, -);
  leaving[0] -> Strip(14) -> CheckIPHeader -> [1] proxy;
  leaving[1] -> Strip(14) -> CheckIP6Header -> [1] proxy;
  leaving[2] -> [1] output;

  proxy[0] -> version :: Classifier(0/40%f0, -);
  version[0] -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  version[1] -> Unstrip(14) -> [0] output;
  proxy[1] -> Unstrip(14) -> [1] output;
  // Answers go back where packets came from.
  proxy[2] -> Unstrip(14) -> EtherMirror -> [1] output;
  proxy[3] -> Unstrip(14) -> EtherMirror -> [0] output;
}
