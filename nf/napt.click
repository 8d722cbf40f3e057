// NAPT(POOL [, KEYWORDS]) -- translates the addresses of a network to one or a few
//
// Packets from inside get a source address of POOL and a port that distinguishes flows, their own if it is free. Packets
// to POOL that belong to a flow go back to its host. Others from outside are dropped, unless FILTERING or STATIC lets
// them in. TCP, UDP and pings are translated, and ICMP errors about them in both directions. Fragments are put together
// first, in whatever order they come, and packets larger than MTU are cut again.
//
// POOL is an address or a network, all of whose addresses count. With two inputs and outputs, 0 to 0 is the path from
// inside to outside, 1 to 1 that from outside to inside, and POOL may be several of these. With one of each, packets to
// POOL come from outside and all others from inside.
//
// Of a larger POOL, a host has one address for all that it sends (RFC 4787, REQ-2).
//
// Ethernet headers stay as they are, so frames to POOL have to be sent here by who routes. Frames that hold no IPv4
// packet pass.
//
// With one address and without MAPPING, FILTERING, PARITY, BLOCK and STATIC, known flows and new ones are synthesised.
// With any of these, or with more addresses, PoolMapper chooses for new flows, element by element; a host inside
// reaches another by its public address and port if there are two inputs (hairpinning), and all packets have to come to
// one worker.
//
// = KEYWORDS
//
// PORTS (range, default 1024-65535): ports that flows get, and identifiers of pings. A `#` behind gives them in turn.
// MTU (number, default 1500): the longest IP packet that is sent.
// MAPPING (word, default address-port): `endpoint` has all flows of a host's port share a public address and port,
// `address` those to one address, and `address-port` gives each flow its own.
// FILTERING (word, default address-port): what reaches a host from outside without a flow: `endpoint` all packets to its
// public port, `address` those from addresses that it sent to from there, `address-port` none.
// PARITY (bool, default false): even ports get even ports, and odd ones odd ports.
// BLOCK (number, default 0): ports of a block. With blocks, a host gets only ports of blocks that it has alone.
// BLOCKS (number, default 8): blocks that a host may have at once.
// LOG (bool, default true): whether a line is printed for each block that is given or returned.
// STATIC (words, default none): mappings that are always there, such as 10.0.0.5:80=203.0.113.1:8080/tcp.
// TCP_TIMEOUT (time, default 24 hours): of TCP connections with data in both directions.
// TCP_NODATA_TIMEOUT (time, default 5 minutes): of other TCP connections.
// TCP_DONE_TIMEOUT (time, default 4 minutes): of those that RST, or FIN in both directions, ended.
// UDP_TIMEOUT (time, default 5 minutes): of UDP flows.
// PING_TIMEOUT (time, default 5 minutes): of pings.
// MAPPING_CAPACITY and others: those of IPRewriter.
//
// = HANDLERS
//
// flows.table (read): the flows of TCP and UDP.
// pings.table (read): those of pings.
// flows.mapping_failures (read): packets dropped because no port was free or the table full.
// public.mappings, public.hosts, public.blocks, public.block_log (read): see PoolMapper.
//
// = IPV6
//
// IPv6 passes unchanged, as in translators of IPv4.
//
// = EXAMPLE
//
// nat :: NAPT(203.0.113.0/28, MAPPING endpoint, FILTERING endpoint, BLOCK 512, LOG false);
// FromDevice(lan) -> [0] nat [0] -> ToDevice(wan);
// FromDevice(wan) -> [1] nat [1] -> ToDevice(lan);
//
// = SEE ALSO
//
// PoolMapper, IPRewriter, ICMPPingRewriter, ICMPRewriter, Firewall

elementclass NAPT { $pool, PORTS $ports, MTU $mtu, MAPPING $mapping, FILTERING $filtering, PARITY $parity,
                    BLOCK $block, BLOCKS $blocks, LOG $log, STATIC $static, PING_TIMEOUT $ping_timeout, __REST__ $options |
  public :: PoolMapper($pool 0 1, PORTS ${ports:-1024-65535}, MAPPING ${mapping:-address-port},
    FILTERING ${filtering:-address-port}, PARITY ${parity:-false}, BLOCK ${block:-0}, BLOCKS ${blocks:-8},
    LOG ${log:-true}, STATIC ${static:-none});
  flows :: IPRewriter(public, inbound public, $options);
  pings :: ICMPPingRewriter(public, inbound public, TIMEOUT ${ping_timeout:-300});

  input[0] -> leaving :: Classifier(12/0800, -);
  leaving[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> leaving_kind :: IPClassifier(tcp or udp, icmp type echo, icmp);
  leaving_kind[0] -> [0] flows [0] -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [0] output;
  leaving_kind[1] -> [0] pings [0] -> out;
  leaving_kind[2] -> ICMPRewriter(flows pings) -> out;
  leaving[1] -> [0] output;

  input[1] -> coming :: Classifier(12/0800, -);
  coming[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> coming_kind :: IPClassifier(tcp or udp, icmp type echo-reply, icmp);
  coming_kind[0] -> [1] flows [1] -> back :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> [1] output;
  coming_kind[1] -> [1] pings [1] -> back;
  coming_kind[2] -> ICMPRewriter(flows pings) -> back;
  coming[1] -> [1] output;
|| $pool, PORTS $ports, MTU $mtu, MAPPING $mapping, FILTERING $filtering, PARITY $parity,
                    BLOCK $block, BLOCKS $blocks, LOG $log, STATIC $static, PING_TIMEOUT $ping_timeout, __REST__ $options |
  public :: PoolMapper($pool 0 0, PORTS ${ports:-1024-65535}, MAPPING ${mapping:-address-port},
    FILTERING ${filtering:-address-port}, PARITY ${parity:-false}, BLOCK ${block:-0}, BLOCKS ${blocks:-8},
    LOG ${log:-true}, STATIC ${static:-none});
  flows :: IPRewriter(public, inbound public, $options);
  pings :: ICMPPingRewriter(public, inbound public, TIMEOUT ${ping_timeout:-300});

  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> ip_kind :: IPClassifier(dst $pool and (tcp or udp), tcp or udp,
                               dst $pool and icmp type echo-reply, icmp type echo, icmp);
  ip_kind[0] -> [1] flows;
  ip_kind[1] -> [0] flows [0] -> out :: IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  ip_kind[2] -> [1] pings;
  ip_kind[3] -> [0] pings [0] -> out;
  ip_kind[4] -> ICMPRewriter(flows pings) -> out;
  kind[1] -> output;
}
