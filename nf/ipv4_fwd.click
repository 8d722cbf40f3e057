// IPv4Fwd(SRC, DST, ADDR/LENGTH OUTPUT, ...) -- forwards IPv4 packets by the longest prefix
//
// Looks up the destination in the routes, decrements the time-to-live, and sends the packet on the output of the route
// in a frame from the Ethernet address SRC to DST. Expired packets, packets without a route and frames that are not
// valid IPv4 are dropped, without an answer: Router answers. There may be 1 to 4 outputs.
//
// = HANDLERS
//
// routes.table (read): the routes.
// routes.add, routes.remove, routes.set (write): change them while packets pass.
//
// = IPV6
//
// IPv6 is dropped: IPv6Fwd forwards it.
//
// = EXAMPLE
//
// FromDevice(lan) -> fwd :: IPv4Fwd(02:00:00:00:00:01, 02:00:00:00:00:02, 10.0.0.0/8 0, 0.0.0.0/0 1);
// fwd[0] -> ToDevice(inside);
// fwd[1] -> ToDevice(wan);
//
// = SEE ALSO
//
// RadixIPLookup, IPv6Fwd, Router

elementclass IPv4Fwd { $src, $dst, __REST__ $routes |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> routes :: RadixIPLookup($routes);
  routes[0] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [0] output;
|| $src, $dst, __REST__ $routes |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> routes :: RadixIPLookup($routes);
  routes[0] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [0] output;
  routes[1] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [1] output;
|| $src, $dst, __REST__ $routes |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> routes :: RadixIPLookup($routes);
  routes[0] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [0] output;
  routes[1] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [1] output;
  routes[2] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [2] output;
|| $src, $dst, __REST__ $routes |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> routes :: RadixIPLookup($routes);
  routes[0] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [0] output;
  routes[1] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [1] output;
  routes[2] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [2] output;
  routes[3] -> DecIPTTL -> EtherEncap(0x0800, $src, $dst) -> [3] output;
}
