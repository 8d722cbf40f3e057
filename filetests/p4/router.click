// Two networks behind a router.
FromDevice(lan) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
  -> rt :: RadixIPLookup(10.0.0.0/8 0, 10.1.0.0/16 1, 20.0.0.0/8 1, 20.1.0.0/16 0, 30.0.0.0/8 0, 30.1.0.0/16 1,
    40.0.0.0/8 1, 50.0.0.0/8 0, 60.0.0.0/8 1);
rt[0] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> Queue -> ToDevice(wan);
rt[1] -> DecIPTTL -> SetIPDSCP(3) -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:03) -> Queue -> ToDevice(dmz);
