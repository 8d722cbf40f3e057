// A balancer whose servers answer clients directly: answers pass `answers` if they come here all the same.
require(nf);
a :: {
  input[0] -> HostEtherFilter(02:00:00:00:00:01) -> kind :: Classifier(12/0806 20/0001, 12/0800, -);
  kind[0] -> ARPResponder(10.1.0.1 02:00:00:00:00:01) -> [0] output;
  kind[1] -> [1] output;
  kind[2] -> Discard;
  input[1] -> [0] output;
};
lb :: DirectLB(10.2.0.2 10.2.0.3, 10.2.0.1/24, 02:00:00:00:00:02, VIP 10.2.0.100, POLICY round-robin);
FromDevice(left) -> [0] a -> ToDevice(left);
a[1] -> [0] lb [0] -> ToDevice(right);
FromDevice(right) -> kind :: Classifier(12/0806, 12/0800 26/0a020064, -);
kind[0] -> [1] lb;
kind[1] -> answers :: Counter -> [1] lb;
kind[2] -> Discard;
lb[1] -> [1] a;
