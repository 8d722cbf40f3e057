// NAT64 between a host in IPv6 and one in IPv4 that it knows, with a link of $MTU4 bytes farther on.
define($AM 02:00:00:00:00:01, $A_HOST 02:00:00:00:01:02, $BM 02:00:00:00:00:02, $B_HOST 02:00:00:00:02:02, $MTU4 1500);
require(nf);
nat :: NAT64(fd64::/96, any, fd01::1, $AM, $A_HOST, 10.2.0.1, $BM, $B_HOST);
left :: ToDevice(left);
right :: ToDevice(right);
FromDevice(left) -> six :: Classifier(12/86dd 20/3a 54/87, 12/86dd, -);
six[0] -> IP6NDAdvertiser(fd01::1/128 $AM) -> left;
six[1] -> [0] nat;
six[2] -> Discard;
FromDevice(right) -> four :: Classifier(12/0806 20/0001, 12/0800, -);
four[0] -> ARPResponder(10.2.0.1 $BM) -> right;
four[1] -> [1] nat;
four[2] -> Discard;
nat[0] -> left;
nat[1] -> Strip(14) -> MarkIPHeader -> length :: CheckLength($MTU4) -> Unstrip(14) -> right;
length[1] -> ICMPError(10.2.0.254, unreachable, needfrag, PMTU $MTU4) -> EtherEncap(0x0800, $B_HOST, $BM) -> [1] nat;
