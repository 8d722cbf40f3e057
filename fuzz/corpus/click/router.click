// One input, two ways out.
in :: FromDump(in.pcap, STOP true) -> Strip(14)
  -> check :: CheckIPHeader(VERBOSE true)
  -> rt :: RadixIPLookup(10.0.0.0/8 0, 192.168.0.0/16 10.0.0.1 1, 0/0 1);
rt [0] -> DecIPTTL -> Unstrip(14) -> ToDump(a.pcap);
rt [1] -> DecIPTTL -> Unstrip(14) -> ToDump("b, (b).pcap");
check [1] -> Discard;
