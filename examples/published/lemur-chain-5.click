// Lemur's chain 5 (dissertation, table 2.2): an access list, a filter of hosts and paths, fast encryption, and
// forwarding. The key is an example, known to everybody.
//
//   catena run examples/published/lemur-chain-5.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> acl :: ACL(acl.rules.gz)
  -> urls :: UrlFilter(urls.txt)
  -> encrypt :: FastEncrypt(example-fast.key)
  -> fwd :: IPv4Fwd(02:00:00:00:00:0a, 02:00:00:00:00:0b, 0.0.0.0/0 0)
  -> ToDump(lemur-chain-5.pcap, SNAPLEN 0);
