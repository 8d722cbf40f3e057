// A balancer whose servers are checked, with the Ethernet of a router around both.
require(nf);
elementclass Side { $ip, $mac, $host |
  input[0] -> HostEtherFilter($mac) -> kind :: Classifier(12/0806 20/0001, 12/0800, -);
  kind[0] -> ARPResponder($ip $mac) -> [0] output;
  kind[1] -> [1] output;
  kind[2] -> Discard;
  input[1] -> EtherRewrite($mac, $host) -> [0] output;
}
a :: Side(10.1.0.1, 02:00:00:00:00:01, 02:00:00:00:01:02);
b :: Side(10.2.0.1, 02:00:00:00:00:02, 02:00:00:00:02:02);
lb :: LB(10.2.0.2 10.2.0.3, VIP 10.2.0.100, POLICY round-robin);
check :: HealthCheck(lb/servers, 10.2.0.9/24, 02:00:00:00:00:02, PROTOCOL tcp, INTERVAL 50ms, FALL 2, RISE 2);
FromDevice(left) -> [0] a -> ToDevice(left);
a[1] -> [0] lb [0] -> [1] b -> [0] check -> ToDevice(right);
FromDevice(right) -> [1] check [1] -> [0] b;
b[1] -> [1] lb [1] -> [1] a;
