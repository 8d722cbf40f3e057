// Lemur's subchain 6 (dissertation, table 2.2): a load balancer, a limiter, and an access list.
//
//   catena run examples/published/lemur-subchain-6.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> lb :: LB(10.200.0.1 10.200.0.2 10.200.0.3, POLICY maglev)
  -> limiter :: Limiter(1Gbps)
  -> acl :: ACL(servers.rules)
  -> ToDump(lemur-subchain-6.pcap, SNAPLEN 0);
