// DirectLB(BACKENDS, ADDR/LENGTH, ETH [, KEYWORDS]) -- spreads flows over servers that answer clients directly
//
// BACKENDS are addresses of servers, separated by spaces, with `*3` behind one that is to take three times the flows of
// others. Each new flow of TCP or UDP to VIP is sent to one of them, and keeps it, whatever happens to others. Packets stay as
// they are but for the Ethernet header, which leads to the server, and servers answer clients without passing here: direct
// server return, as IPVS does it by gatewaying. So only what clients send is carried, which is most often the smaller part.
//
// All servers are in the network of ADDR and have VIP as an address that they do not answer ARP for, such as on `lo` with
// `arp_ignore` 1. As packets are not rewritten, a backend has no port: servers use the port that clients ask.
//
// Input 0 comes from clients and output 1 leads to them; output 0 leads to servers and input 1 comes from them. Servers are
// asked for by ARP from ADDR with the Ethernet address ETH, which is answered for, too. ICMP errors to VIP go to the server
// that has the flow. Other packets pass unchanged, fragments are put together first, and packets larger than MTU are cut.
//
// Of a connection, only one direction is seen: neither that it was established nor that a server ended it is known. So a
// flow is forgotten when its client was silent for a time, TCP_TIMEOUT, or ended it by a reset. With the policies maglev and
// source-hash, a client that speaks again then comes to the same server as long as the active ones are the same.
//
// While no server is active, packets that would begin a flow are rejected, as by LB. HealthCheck behind it drains servers
// that do not answer.
//
// = KEYWORDS
//
// POLICY (word, default maglev): maglev, source-hash, round-robin or least-connections; see BackendMapper.
// VIP (address or network, default 0.0.0.0/0): the addresses that clients ask.
// NO_BACKEND (word, default reject): reject or drop, which drops as `no-backend`.
// REJECT_RATE (number, default 1000): resets and ICMP errors a second; what exceeds it is discarded.
// SIZE (number, default 16381): slots of the table of hashes, a prime.
// MTU (number, default 1500): the longest IP packet that is sent.
// TCP_TIMEOUT (time, default 900 seconds): after which a connection is forgotten whose client is silent.
// MAPPING_CAPACITY, UDP_TIMEOUT and others: those of IPRewriter.
//
// = HANDLERS
//
// servers.backends, servers.add, servers.drain, servers.remove: as of LB.
// flows.table (read): the flows. A line of answers shows the server, with a port in place of the client's if another flow has that.
// arp.table (read): the Ethernet addresses of servers.
//
// = IPV6
//
// IPv6 passes unchanged.
//
// = EXAMPLE
//
// lb :: DirectLB(10.1.0.1 10.1.0.2, 10.1.0.254/24, 02:00:00:00:00:02, VIP 203.0.113.1);
// FromDevice(wan) -> [0] lb [0] -> ToDevice(lan);
// FromDevice(lan) -> [1] lb [1] -> ToDevice(wan);
//
// = SEE ALSO
//
// LB, HealthCheck, BackendMapper, IPRewriter, ARPQuerier

elementclass DirectLB { $backends, $address, $eth, POLICY $policy, VIP $vip, SIZE $size, MTU $mtu, NO_BACKEND $none,
                        REJECT_RATE $rate, TCP_TIMEOUT $tcp, __REST__ $options |
  AddressInfo(own $address $eth);
  // Packets keep their source; the range gives each flow a key of answers that no other has.
  servers :: BackendMapper(- 1-65535 - - 0 0, BACKENDS $backends, POLICY ${policy:-maglev}, SIZE ${size:-16381},
    NO_BACKEND ${none:-reject} 1);
  flows :: IPRewriter(servers, REWRITE false, TCP_NODATA_TIMEOUT ${tcp:-900}, $options);
  arp :: ARPQuerier(own) -> [0] output;

  flows[0] -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> [0] arp;
  flows[1] -> rejected :: RatedSplitter(${rate:-1000}) -> rejected_kind :: IPClassifier(tcp, -);
  rejected[1] -> Discard;
  rejected_kind[0] -> TCPReset -> Unstrip(14) -> mirror :: EtherMirror -> [1] output;
  rejected_kind[1] -> ICMPError(-, unreachable, port, SET_FIX_ANNO false, LINK 14) -> Unstrip(14) -> mirror;

  input[0] -> coming :: Classifier(12/0800, -);
  coming[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> coming_kind :: IPClassifier(dst ${vip:-0.0.0.0/0} and (tcp or udp), icmp, -);
  coming_kind[0] -> flows;
  coming_kind[1] -> errors :: ICMPRewriter(flows) -> out;
  errors[1] -> other :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  coming_kind[2] -> other;
  coming[1] -> [0] output;

  input[1] -> leaving :: Classifier(12/0806 20/0001, 12/0806 20/0002, -);
  leaving[0] -> requests :: ARPResponder(own:ip own:eth) -> [0] output;
  requests[1] -> [1] output;
  // Others on the path may have asked, too.
  leaving[1] -> answers :: Tee -> [1] arp;
  answers[1] -> [1] output;
  leaving[2] -> [1] output;
}
