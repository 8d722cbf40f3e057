define($A fd01::1, $AM 02:00:00:00:00:01, $B fd02::1, $BM 02:00:00:00:00:02);
elementclass Interface { $ip, $mac, $mtu |
  input[0] -> kind :: Classifier(12/86dd 20/3a 54/87, 12/86dd 20/3a 54/88, 12/86dd, -);
  kind[0] -> IP6NDAdvertiser($ip/128 $mac) -> [0] output;
  kind[1] -> [1] neighbours :: IP6NDSolicitor($ip, $mac) -> [0] output;
  kind[2] -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> [1] output;
  kind[3] -> Discard;
  input[1] -> hops :: DecIP6HLIM -> length :: CheckLength($mtu) -> [0] neighbours;
  hops[1] -> ICMP6Error($ip, 3, 0) -> [2] output;
  length[1] -> ICMP6Error($ip, 2, 0, MTU $mtu) -> [2] output;
}
a :: Interface($A, $AM, 1500);
b :: Interface($B, $BM, 1400);
routes :: LookupIP6Route(fd01::/64 0, fd02::/64 1);
a[1] -> routes; b[1] -> routes; a[2] -> routes; b[2] -> routes;
routes[0] -> [1] a; routes[1] -> [1] b;
FromDevice(left) -> [0] a; FromDevice(right) -> [0] b;
a[0] -> ToDevice(left); b[0] -> ToDevice(right);
