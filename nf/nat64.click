// NAT64(PREFIX, HOSTS, IP6, ETH6, NEXT6, IP4, ETH4, NEXT4 [, KEYWORDS]) -- lets IPv6 hosts reach IPv4 servers
//
// Translates the protocol (RFC 7915), and then all hosts to the address IP4, as NAPT does. Hosts reach the server
// 198.51.100.7 by the address in which PREFIX embeds it (RFC 6052), such as 64:ff9b::c633:6407. Prefixes have 32, 40, 48,
// 56, 64 or 96 bits.
//
// With `any` for HOSTS, hosts have any address (stateful NAT64, RFC 6146): a table binds each to an address that stands for
// it inside the translator. Then all packets have to come to one worker. RFC 6146 also demands MAPPING endpoint.
//
// HOSTS may also be a prefix by which hosts' own addresses embed an IPv4 address: hosts with addresses of any other form
// are not translated. That is how the customer's side of 464XLAT (CLAT) sends. It needs no table of hosts.
//
// Input and output 0 are the IPv6 network, 1 the IPv4 network. Frames leave to IPv6 from the Ethernet address ETH6 to
// NEXT6, to IPv4 from ETH4 to NEXT4. Frames of other protocols are dropped: who routes resolves neighbours.
//
// TCP, UDP and pings are translated, and ICMP errors about them in both directions, with the packets that they quote.
// Answers go back to the host of the flow; other packets from IPv4 are dropped, unless FILTERING lets them in. Fragments
// are put together first. Packets from IPv4 that may be cut have at most 1280 bytes when they have become IPv6. Longer
// ones pass up to 1500 bytes, and beyond that are reported. Errors come from IP6 and IP4: also that packets expire, and
// about routing headers.
//
// 64:ff9b::/96 embeds global addresses only: packets to private and documentation addresses are dropped. Of any hosts,
// packets from PREFIX itself, from a link's own addresses, and of more hosts than there is room for are dropped, too.
//
// Without MAPPING and FILTERING, known flows and new ones are synthesised. With one of them, new flows are not, hosts reach
// each other by their public ports (hairpinning), and all packets have to come to one worker.
//
// = KEYWORDS
//
// PORTS (range, default 1024-65535): ports that flows get, and identifiers of pings. A `#` behind gives them in turn.
// UDP_ZERO (compute or drop, default compute): what becomes of UDP packets from IPv4 without a checksum.
// MAPPING (word, default address-port): `endpoint` has all flows of a host's port share a public port, `address` those to
// one address, and `address-port` gives each flow its own.
// FILTERING (word, default address-port): what reaches a host from outside without a flow: `endpoint` all packets to its
// public port, `address` those from addresses that it sent to from there, `address-port` none.
// TCP_TIMEOUT (time, default 2 h 4 min): of TCP connections with data in both directions. Hosts are remembered a minute
// longer, so no other timeout may be longer than this.
// PING_TIMEOUT (time, default 5 minutes): of pings.
// HOST_CAPACITY (number, default 65536): hosts of any address at once. If there are more, a new one replaces one that was
// not answered yet, or is not translated.
// NETWORK_HOSTS (number, default 4096): those of one network of 64 bits.
// MAPPING_CAPACITY, UDP_TIMEOUT and others: those of IPRewriter.
//
// = HANDLERS
//
// flows.table (read): the flows of TCP and UDP.
// pings.table (read): those of pings.
// to4.drops, to6.drops (read): packets that have no translation.
// hosts.table, hosts.count, hosts.evicted (read): hosts of any address; see IP6HostMapper.
// public.mappings (read): see PoolMapper.
//
// = IPV6
//
// This is what it translates. Hosts need a DNS64, or know PREFIX.
//
// = EXAMPLE
//
// nat :: NAT64(64:ff9b::/96, any, 2001:db8::1, 02:00:00:00:00:06, 02:00:00:00:01:06,
//              203.0.113.1, 02:00:00:00:00:04, 02:00:00:00:01:04, MAPPING endpoint, FILTERING address);
// FromDevice(six) -> [0] nat [0] -> ToDevice(six);
// FromDevice(four) -> [1] nat [1] -> ToDevice(four);
//
// = SEE ALSO
//
// IP6HostMapper, ProtocolTranslator64, ProtocolTranslator46, PoolMapper, IPRewriter, NAPT, NPTv6

elementclass NAT64 { $prefix, $hosts, $ip6, $eth6, $next6, $ip4, $eth4, $next4,
                     PORTS $ports, UDP_ZERO $udp_zero, MAPPING $mapping, FILTERING $filtering, TCP_TIMEOUT $tcp_timeout,
                     PING_TIMEOUT $ping_timeout, HOST_CAPACITY $host_capacity, NETWORK_HOSTS $network_hosts,
                     __REST__ $options |
  hosts :: IP6HostMapper($hosts, CAPACITY ${host_capacity:-65536}, NETWORK_HOSTS ${network_hosts:-4096},
    TIMEOUT ${tcp_timeout:-7440});
  public :: PoolMapper($ip4 0 1, PORTS ${ports:-1024-65535}, MAPPING ${mapping:-address-port},
    FILTERING ${filtering:-address-port});
  flows :: IPRewriter(public, inbound public, TCP_TIMEOUT ${tcp_timeout:-7440}, $options);
  pings :: ICMPPingRewriter(public, inbound public, TIMEOUT ${ping_timeout:-300});
  send6 :: EtherEncap(0x86dd, $eth6, $next6) -> [0] output;
  send4 :: EtherEncap(0x0800, $eth4, $next4) -> [1] output;

  input[0] -> Classifier(12/86dd) -> Strip(14) -> CheckIP6Header -> hops :: DecIP6HLIM
    -> to4 :: ProtocolTranslator64(hosts, $prefix, ERROR_SRC $ip4) -> IPReassembler
    -> leaving :: IPClassifier(tcp or udp, icmp type echo, icmp);
  hops[1] -> ICMP6Error($ip6, 3, 0) -> send6;
  to4[1] -> ICMP6Error($ip6, 4, 0) -> send6;
  // What goes to a host's public port comes back by output 1 (hairpinning).
  leaving[0] -> [0] flows [0] -> out :: IPFragmenter(1480, HONOR_DF false) -> send4;
  leaving[1] -> [0] pings [0] -> out;
  leaving[2] -> ICMPRewriter(flows pings) -> out;

  // 1480 bytes become 1500; 1252 bytes become 1280 with a fragment header.
  input[1] -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPClassifier(dst host $ip4) -> life :: DecIPTTL
    -> IPReassembler -> whole :: Classifier(6/40%40, -);
  life[1] -> ICMPError($ip4, timeexceeded, transit) -> send4;
  whole[0] -> length :: CheckLength(1480) -> coming :: IPClassifier(tcp or udp, icmp type echo-reply, icmp);
  length[1] -> ICMPError($ip4, unreachable, needfrag, PMTU 1480) -> send4;
  whole[1] -> coming;
  coming[0] -> [1] flows [1] -> back :: IPFragmenter(1252)
    -> to6 :: ProtocolTranslator46($prefix, hosts, UDP_ZERO ${udp_zero:-compute}) -> send6;
  back[1] -> to6;
  coming[1] -> [1] pings [1] -> back;
  coming[2] -> ICMPRewriter(flows pings) -> back;
}
