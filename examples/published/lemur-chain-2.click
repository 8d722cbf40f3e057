// Lemur's chain 2 (dissertation, table 2.2): encryption, a load balancer, a NAT for each of its three servers, and forwarding.
// The key is an example, known to everybody.
//
//   catena run examples/published/lemur-chain-2.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> encrypt :: Encrypt(example.key)
  -> lb :: LB(10.200.0.1 10.200.0.2 10.200.0.3, POLICY maglev)
  -> first :: Match(dst host 10.200.0.1);
first[0] -> nat1 :: NAPT(198.51.100.1) -> fwd :: IPv4Fwd(02:00:00:00:00:0a, 02:00:00:00:00:0b, 0.0.0.0/0 0);
first[1] -> second :: Match(dst host 10.200.0.2);
second[0] -> nat2 :: NAPT(198.51.100.2) -> fwd;
second[1] -> nat3 :: NAPT(198.51.100.3) -> fwd;
fwd -> ToDump(lemur-chain-2.pcap, SNAPLEN 0);
