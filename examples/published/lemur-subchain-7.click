// Lemur's subchain 7 (dissertation, table 2.2): an access list and a limiter.
//
//   catena run examples/published/lemur-subchain-7.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> acl :: ACL(acl.rules.gz)
  -> limiter :: Limiter(1Gbps)
  -> ToDump(lemur-subchain-7.pcap, SNAPLEN 0);
