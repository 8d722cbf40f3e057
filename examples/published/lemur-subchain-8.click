// Lemur's subchain 8 (dissertation, table 2.2): a VLAN tag is popped, and packets are encrypted and forwarded. The key is
// an example, known to everybody.
//
//   catena run examples/published/lemur-subchain-8.click
//
// reads examples/isp-customers.pcap.gz, whose frames have no tag: `trunk` pushes it.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> trunk :: VLANTunnel(100)
  -> detunnel :: VLANDetunnel(100)
  -> encrypt :: Encrypt(example.key)
  -> fwd :: IPv4Fwd(02:00:00:00:00:0a, 02:00:00:00:00:0b, 0.0.0.0/0 0)
  -> ToDump(lemur-subchain-8.pcap, SNAPLEN 0);
