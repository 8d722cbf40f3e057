// Lemur's chain 1 (dissertation, table 2.2): two matches branch. What matches both passes an access list, a limiter and a
// filter of hosts and paths; all packets end in subchain 8, where a VLAN tag is popped, and packets are encrypted and
// forwarded. The key is an example, known to everybody.
//
//   catena run examples/published/lemur-chain-1.click
//
// reads examples/isp-customers.pcap.gz, whose frames have no tag: `trunk` pushes it.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true) -> tcp :: Match(tcp);
tcp[0] -> acl :: ACL(acl.rules.gz) -> limiter :: Limiter(1Gbps) -> web :: Match(tcp dst port 80 or 443);
web[0] -> urls :: UrlFilter(urls.txt) -> trunk :: VLANTunnel(100);
web[1] -> trunk;
tcp[1] -> trunk;
trunk -> detunnel :: VLANDetunnel(100)
  -> encrypt :: Encrypt(example.key)
  -> fwd :: IPv4Fwd(02:00:00:00:00:0a, 02:00:00:00:00:0b, 0.0.0.0/0 0)
  -> ToDump(lemur-chain-1.pcap, SNAPLEN 0);
