// Ironside's chain 1 (dissertation, section 4.4.1): an access list of 1,500 rules, a load balancer, and accounting, here by
// protocol.
//
//   catena run examples/published/ironside-chain-1.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> acl :: ACL(acl.rules.gz)
  -> lb :: LB(10.200.0.1 10.200.0.2 10.200.0.3, POLICY maglev)
  -> accounting :: Monitor
  -> ToDump(ironside-chain-1.pcap, SNAPLEN 0);
