// Ironside's chain 2 (dissertation, section 4.4.1): an access list of 1,500 rules, a filter of hosts and paths, and
// encryption, here with authentication. The key is an example, known to everybody.
//
//   catena run examples/published/ironside-chain-2.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> acl :: ACL(acl.rules.gz)
  -> urls :: UrlFilter(urls.txt)
  -> encrypt :: Encrypt(example.key)
  -> ToDump(ironside-chain-2.pcap, SNAPLEN 0);
