// A list of rules, with ranges of ports.
FromDevice(lan) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader
  -> acl :: IPFilter(
    deny src net 192.0.2.0/24,
    allow tcp dst port 80 or 443,
    allow udp src port >= 1000 and src port <= 2500,
    allow src net 10.0.0.0/8 and dst net 172.16.0.0/12,
    deny all)
  -> Unstrip(14) -> Queue -> ToDevice(wan);
