// Metron's stateful chain (NSDI 2018, section 3.1): a router, a NAPT, and a load balancer that gives flows to servers in
// turn.
//
//   catena run examples/published/metron-router-napt-lb.click
//
// reads examples/lan.pcap.gz and examples/wan.pcap.gz.

require(nf);

router :: Router(10.0.0.1/24, 02:00:00:00:10:01, 20.0.0.1/24, 02:00:00:00:20:01, 20.0.0.254);
nat :: NAPT(198.51.100.1);
lb :: LB(20.0.0.11 20.0.0.12 20.0.0.13, VIP 203.0.113.9, POLICY round-robin);

FromDump(../lan.pcap.gz, STOP true) -> [0] router [0] -> ToDump(metron-router-napt-lb.lan.pcap, SNAPLEN 0);
FromDump(../wan.pcap.gz) -> [1] lb [1] -> [1] nat [1] -> [1] router;
router[1] -> [0] nat [0] -> [0] lb [0] -> ToDump(metron-router-napt-lb.wan.pcap, SNAPLEN 0);
