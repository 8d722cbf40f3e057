// HealthCheck(BALANCER, ADDR/LENGTH, ETH [, KEYWORDS]) -- drains servers of LB that do not answer, and adds them again when they do
//
// Stands between a balancer and the link to its servers. It pings the balancer's servers, or asks them for connections of
// TCP, from an address of its own in their network. BALANCER is the balancer's list of servers, such as `lb/servers` for
// an LB named `lb`. A server that left FALL probes in succession unanswered is drained: it keeps its flows and gets no new
// ones. One that answered RISE probes in succession is added again. Servers that somebody drained by hand stay so.
// It probes as long as the chain runs: a run on captures does not end by itself.
//
// Input 0 comes from the balancer and output 1 leads to it; output 0 leads to the servers and input 1 comes from them.
// ADDR in a network of LENGTH, with the Ethernet address ETH, is asked for and answered for by ARP; if the interface has an
// address already, it may be the same. Probes to servers of other networks go to GATEWAY. All other frames pass as they came.
//
// = KEYWORDS
//
// PROTOCOL (icmp or tcp, default icmp): what a probe is. With tcp, a server is down when its service is, even if its host is up.
// PORT (number, default 80): where connections are asked for at servers without a port of their own.
// INTERVAL (time, default 1s): how long after a probe the next one is due.
// RISE (number, default 2): answers in succession after which a server is up.
// FALL (number, default 3): probes without an answer in succession after which it is down.
// GATEWAY (address): the next hop to servers of other networks; without it, they are asked for by ARP.
// PORTS (range, default 61000-61999): source ports of probes; other packets to ADDR with these pass.
//
// = HANDLERS
//
// probe.backends (read): a line for each server: address, `up` or `down`, probes, and answers.
// arp.table (read): the Ethernet addresses of servers.
//
// = IPV6
//
// IPv6 passes unchanged: servers are those of LB, which are IPv4.
//
// = EXAMPLE
//
// lb :: LB(10.1.0.1 10.1.0.2:8080, VIP 203.0.113.1);
// check :: HealthCheck(lb/servers, 10.1.0.254/24, 02:00:00:00:00:02, PROTOCOL tcp);
// FromDevice(wan) -> [0] lb [0] -> [0] check [0] -> ToDevice(lan);
// FromDevice(lan) -> [1] check [1] -> [1] lb [1] -> ToDevice(wan);
//
// = SEE ALSO
//
// LB, BackendProbe, BackendMapper, ARPQuerier

elementclass HealthCheck { $balancer, $address, $eth, GATEWAY $gateway, __REST__ $options |
  AddressInfo(own $address $eth);
  probe :: BackendProbe($balancer, SOURCE own:ip, $options);
  routes :: RadixIPLookup(own:ipnet 0, 0.0.0.0/0 ${gateway:-0.0.0.0} 0);
  arp :: ARPQuerier(own);
  probe[0] -> routes -> [0] arp -> [0] output;
  probe[1] -> Unstrip(14) -> [1] output;

  input[0] -> [0] output;

  input[1] -> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  kind[0] -> requests :: ARPResponder(own:ip own:eth) -> [0] output;
  requests[1] -> [1] output;
  // Others on the path may have asked, too.
  kind[1] -> answers :: Tee -> [1] arp;
  answers[1] -> [1] output;
  kind[2] -> MarkIPHeader(14) -> to :: IPClassifier(dst host own, -);
  to[0] -> Strip(14) -> CheckIPHeader -> probe;
  to[1] -> [1] output;
  kind[3] -> [1] output;
}
