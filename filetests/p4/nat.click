// A static translation of source addresses: checksums of IPv4, TCP and UDP change.
FromDevice(lan) -> c :: Classifier(12/0800, -);
c[1] -> Discard;
c[0] -> Strip(14) -> CheckIPHeader -> GetIPAddress(12)
  -> RadixIPLookup(10.0.0.1/32 192.0.2.1 0, 10.0.0.2/32 192.0.2.2 0)
  -> StoreIPAddress(src) -> DecIPTTL -> Unstrip(14) -> Queue -> ToDevice(wan);
