// Lemur's chain 3 (dissertation, table 2.2): redundancy elimination, an access list, a limiter, a load balancer, and
// forwarding.
//
//   catena run examples/published/lemur-chain-3.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> dedup :: Dedup
  -> acl :: ACL(acl.rules.gz)
  -> limiter :: Limiter(1Gbps)
  -> lb :: LB(10.200.0.1 10.200.0.2 10.200.0.3, POLICY maglev)
  -> fwd :: IPv4Fwd(02:00:00:00:00:0a, 02:00:00:00:00:0b, 0.0.0.0/0 0)
  -> ToDump(lemur-chain-3.pcap, SNAPLEN 0);
