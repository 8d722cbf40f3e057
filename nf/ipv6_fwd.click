// IPv6Fwd(SRC, DST, ADDR/LENGTH OUTPUT, ...) -- forwards IPv6 packets by the longest prefix
//
// Looks up the destination in the routes, decrements the hop limit, and sends the packet on the output of the route in
// a frame from the Ethernet address SRC to DST. Expired packets, packets without a route and frames that are not valid
// IPv6 are dropped, without an answer. There may be 1 or 2 outputs.
//
// = HANDLERS
//
// routes.table (read): the routes.
// routes.add, routes.remove, routes.set (write): change them while packets pass.
//
// = IPV6
//
// This is what it forwards. Extension headers and fragments pass, as only the first header is looked at. IPv4 is
// dropped: IPv4Fwd forwards it.
//
// = EXAMPLE
//
// FromDevice(lan) -> fwd :: IPv6Fwd(02:00:00:00:00:01, 02:00:00:00:00:02, 2001:db8:1::/48 0, ::/0 1);
// fwd[0] -> ToDevice(inside);
// fwd[1] -> ToDevice(wan);
//
// = SEE ALSO
//
// LookupIP6Route, IPv4Fwd

elementclass IPv6Fwd { $src, $dst, __REST__ $routes |
  input -> Classifier(12/86dd) -> Strip(14) -> CheckIP6Header -> GetIP6Address(24)
    -> routes :: LookupIP6Route($routes);
  routes[0] -> DecIP6HLIM -> EtherEncap(0x86dd, $src, $dst) -> [0] output;
|| $src, $dst, __REST__ $routes |
  input -> Classifier(12/86dd) -> Strip(14) -> CheckIP6Header -> GetIP6Address(24)
    -> routes :: LookupIP6Route($routes);
  routes[0] -> DecIP6HLIM -> EtherEncap(0x86dd, $src, $dst) -> [0] output;
  routes[1] -> DecIP6HLIM -> EtherEncap(0x86dd, $src, $dst) -> [1] output;
}
