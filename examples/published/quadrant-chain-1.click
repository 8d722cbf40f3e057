// Quadrant's chain 1 (dissertation, section 3.6): a VLAN tag is pushed, and packets are forwarded by their destination. The
// tag is outermost, so the forwarding is done first.
//
//   catena run examples/published/quadrant-chain-1.click
//
// reads examples/isp-customers.pcap.gz.

require(nf);

FromDump(../isp-customers.pcap.gz, STOP true)
  -> fwd :: IPv4Fwd(02:00:00:00:00:0a, 02:00:00:00:00:0b, 0.0.0.0/0 0)
  -> tunnel :: VLANTunnel(100)
  -> ToDump(quadrant-chain-1.pcap, SNAPLEN 0);
