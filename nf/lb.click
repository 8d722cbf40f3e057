// LB(BACKENDS [, KEYWORDS]) -- spreads flows over servers
//
// BACKENDS are addresses of servers, separated by spaces, each with `:PORT` behind it if the port is to change, and with
// `*3` if it is to take three times the flows of others, up to `*1000`. Each new
// flow of TCP or UDP is sent to one of them, and what the server answers comes from the address that the client asked.
// A flow keeps its server, whatever happens to others. ICMP errors about flows are translated in both directions.
// Fragments are put together first, and packets larger than MTU are cut again.
//
// With two inputs and outputs, 0 to 0 is the path from clients to servers, 1 to 1 that from servers to clients. With
// one of each, VIP distinguishes them. Answers must come back through here: SOURCE sees to it where routes do not.
//
// Ethernet headers stay as they are. Other packets pass unchanged. HealthCheck behind it drains servers that do not answer.
//
// While no server is active, packets that would begin a flow are rejected: TCP with a reset, UDP with an ICMP error (port
// unreachable), both from the address that was asked and to the Ethernet address that the frame came from. So clients
// turn elsewhere at once, as if a server was there and its service was not, instead of waiting for a timeout.
//
// = KEYWORDS
//
// POLICY (word, default maglev): maglev, source-hash, round-robin or least-connections; see BackendMapper.
// VIP (address or network, default 0.0.0.0/0): the addresses that clients ask.
// SOURCE (address and range of ports): what flows to servers get as source, such as `SOURCE 10.0.0.254 1024-65535`.
// NO_BACKEND (word, default reject): reject, as above, or drop, which drops as `no-backend`.
// REJECT_RATE (number, default 1000): resets and ICMP errors a second; what exceeds it is discarded.
// SIZE (number, default 16381): slots of the table of hashes, a prime.
// MTU (number, default 1500): the longest IP packet that is sent.
// MAPPING_CAPACITY, TCP_TIMEOUT, UDP_TIMEOUT and others: those of IPRewriter.
//
// = HANDLERS
//
// servers.backends (read): a line for each server: address, `active` or `drained`, number of flows.
// servers.add (write): has servers take new flows, new or drained ones, or changes their weights, as `10.1.0.1*5`.
// servers.drain (write): has servers keep their flows and take no new ones.
// servers.remove (write): forgets servers and their flows, as when they are dead.
// flows.table (read): the flows.
//
// = IPV6
//
// IPv6 passes unchanged.
//
// = EXAMPLE
//
// lb :: LB(10.1.0.1 10.1.0.2:8080, VIP 203.0.113.1, POLICY maglev);
// FromDevice(wan) -> [0] lb [0] -> ToDevice(lan);
// FromDevice(lan) -> [1] lb [1] -> ToDevice(wan);
//
// = SEE ALSO
//
// HealthCheck, BackendMapper, BackendProbe, IPRewriter, TCPReset, ICMPError, NAPT

elementclass LB { $backends, POLICY $policy, VIP $vip, SOURCE $source, SIZE $size, MTU $mtu, NO_BACKEND $none,
                  REJECT_RATE $rate, __REST__ $options |
  servers :: BackendMapper(${source:-- -} - - 0 1, BACKENDS $backends, POLICY ${policy:-maglev}, SIZE ${size:-16381},
    NO_BACKEND ${none:-reject} 2);
  flows :: IPRewriter(servers, pass 1, $options);

  out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  back :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [1] output;
  flows[0] -> out;
  flows[1] -> back;
  flows[2] -> rejected :: RatedSplitter(${rate:-1000}) -> rejected_kind :: IPClassifier(tcp, -);
  rejected[1] -> Discard;
  rejected_kind[0] -> TCPReset -> Unstrip(14) -> mirror :: EtherMirror -> [1] output;
  rejected_kind[1] -> ICMPError(-, unreachable, port, SET_FIX_ANNO false, LINK 14) -> Unstrip(14) -> mirror;

  input[0] -> coming :: Classifier(12/0800, -);
  coming[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> coming_kind :: IPClassifier(dst ${vip:-0.0.0.0/0} and (tcp or udp), icmp, -);
  coming_kind[0] -> [0] flows;
  coming_kind[1] -> coming_errors :: ICMPRewriter(flows) -> out;
  coming_errors[1] -> out;
  coming_kind[2] -> out;
  coming[1] -> [0] output;

  input[1] -> leaving :: Classifier(12/0800, -);
  leaving[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> leaving_kind :: IPClassifier(tcp or udp, icmp, -);
  leaving_kind[0] -> [1] flows;
  leaving_kind[1] -> leaving_errors :: ICMPRewriter(flows) -> back;
  leaving_errors[1] -> back;
  leaving_kind[2] -> back;
  leaving[1] -> [1] output;
|| $backends, POLICY $policy, VIP $vip, SOURCE $source, SIZE $size, MTU $mtu, NO_BACKEND $none,
   REJECT_RATE $rate, __REST__ $options |
  servers :: BackendMapper(${source:-- -} - - 0 0, BACKENDS $backends, POLICY ${policy:-maglev}, SIZE ${size:-16381},
    NO_BACKEND ${none:-reject} 1);
  flows :: IPRewriter(servers, pass 0, $options);

  out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  flows[0] -> out;
  flows[1] -> rejected :: RatedSplitter(${rate:-1000}) -> rejected_kind :: IPClassifier(tcp, -);
  rejected[1] -> Discard;
  rejected_kind[0] -> TCPReset -> Unstrip(14) -> mirror :: EtherMirror -> output;
  rejected_kind[1] -> ICMPError(-, unreachable, port, SET_FIX_ANNO false, LINK 14) -> Unstrip(14) -> mirror;

  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> ip_kind :: IPClassifier(dst ${vip:-0.0.0.0/0} and (tcp or udp), tcp or udp, icmp, -);
  ip_kind[0] -> [0] flows;
  ip_kind[1] -> [1] flows;
  ip_kind[2] -> errors :: ICMPRewriter(flows) -> out;
  errors[1] -> out;
  ip_kind[3] -> out;
  kind[1] -> output;
}
