// Metron's chain of figure 1 (NSDI 2018): a firewall, and deep packet inspection of what it lets pass.
//
//   catena run examples/published/metron-firewall-dpi.click
//
// reads examples/lan.pcap.gz and examples/wan.pcap.gz.

require(nf);

fw :: Firewall(allow udp dst port 53, allow tcp dst port 80, allow icmp);
dpi :: DPI(dpi.rules);

FromDump(../lan.pcap.gz, STOP true) -> [0] fw [0] -> dpi -> ToDump(metron-firewall-dpi.wan.pcap, SNAPLEN 0);
FromDump(../wan.pcap.gz) -> [1] fw [1] -> ToDump(metron-firewall-dpi.lan.pcap, SNAPLEN 0);
