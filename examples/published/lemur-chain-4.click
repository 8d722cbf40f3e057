// Lemur's chain 4 (dissertation, table 2.2): redundancy elimination, an access list, monitoring, a match that branches to
// three times subchain 6 (a load balancer, a limiter and an access list), forwarding, and a VLAN tag. The tag is
// outermost, and so it is pushed last, and not before the match.
//
//   catena run examples/published/lemur-chain-4.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

fwd :: IPv4Fwd(02:00:00:00:00:0a, 02:00:00:00:00:0b, 0.0.0.0/0 0)
  -> tunnel :: VLANTunnel(100)
  -> ToDump(lemur-chain-4.pcap, SNAPLEN 0);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> dedup :: Dedup
  -> acl :: ACL(acl.rules.gz)
  -> monitor :: Monitor
  -> web :: Match(tcp dst port 80 or 443);
web[0] -> lb1 :: LB(10.200.0.1 10.200.0.2, POLICY maglev) -> limiter1 :: Limiter(1Gbps) -> acl1 :: ACL(servers.rules) -> fwd;
web[1] -> tcp :: Match(tcp);
tcp[0] -> lb2 :: LB(10.200.0.3 10.200.0.4, POLICY maglev) -> limiter2 :: Limiter(1Gbps) -> acl2 :: ACL(servers.rules) -> fwd;
tcp[1] -> lb3 :: LB(10.200.0.5 10.200.0.6, POLICY maglev) -> limiter3 :: Limiter(1Gbps) -> acl3 :: ACL(servers.rules) -> fwd;
