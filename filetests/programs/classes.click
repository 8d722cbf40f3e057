// What a firewall in front of two servers tells apart.
FromDevice(eth0) -> c :: Classifier(12/0806 20/0001, 12/0800, -);
c[0] -> Discard;
c[1] -> Strip(14) -> CheckIPHeader -> p :: IPClassifier(tcp dst port 22, tcp, udp port 53, icmp, -);
c[2] -> Discard;
p[0] -> Discard;
p[1] -> SetIPDSCP(10) -> Queue -> ToDevice(eth1);
p[2] -> SetIPDSCP(46) -> Queue -> ToDevice(eth2);
p[3] -> Discard;
p[4] -> Discard;
