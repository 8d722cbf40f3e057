// Quadrant's chain 2 (dissertation, section 3.6): an access list of 1,500 rules, a filter of hosts and paths, and
// encryption. The key is an example, known to everybody.
//
//   catena run examples/published/quadrant-chain-2.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> acl :: ACL(acl.rules.gz)
  -> urls :: UrlFilter(urls.txt)
  -> encrypt :: Encrypt(example.key, ALGORITHM aes-128-cbc)
  -> ToDump(quadrant-chain-2.pcap, SNAPLEN 0);
