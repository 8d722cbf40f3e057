// capture.click: customers' packets pass a firewall and a translator
require(library functions.click);

FromDump(../../examples/isp-customers.pcap.gz, STOP true)
  -> Strip(14)
  -> CheckIPHeader
  -> fw :: Firewall
  -> nat :: Nat(203.0.113.1)
  -> EtherEncap(0x0800, 02:00:00:00:02:01, 02:00:00:00:fe:fe)
  -> ToDump(translated.pcap);

// A capture has no answers.
Idle -> [1] nat;
nat[1] -> Discard;
