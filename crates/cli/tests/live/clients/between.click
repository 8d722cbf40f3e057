// A network function between clients and servers, with the Ethernet of a router around it.
require(nf);
NF
elementclass Side { $ip, $mac, $host |
  input[0] -> HostEtherFilter($mac) -> kind :: Classifier(12/0806 20/0001, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> [1] output;
  kind[2] -> Discard;
  input[1] -> EtherRewrite($mac, $host) -> [0] output;
}
a :: Side(10.1.0.1, 02:00:00:00:00:01, 02:00:00:00:01:02);
b :: Side(10.2.0.1, 02:00:00:00:00:02, 02:00:00:00:02:02);
FromDevice(left) -> [0] a -> ToDevice(left);
FromDevice(right) -> [0] b -> ToDevice(right);
a[1] -> [0] nf [0] -> [1] b;
b[1] -> [1] nf [1] -> [1] a;
