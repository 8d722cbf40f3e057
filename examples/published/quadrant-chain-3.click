// Quadrant's chain 3 (dissertation, section 3.6): an access list of 1,500 rules, and a NAT.
//
//   catena run examples/published/quadrant-chain-3.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> acl :: ACL(acl.rules.gz)
  -> nat :: NAPT(198.51.100.1)
  -> ToDump(quadrant-chain-3.pcap, SNAPLEN 0);
