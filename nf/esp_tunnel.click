// ESPTunnel(SPI, SRC, DST, KEY, ETH_SRC, ETH_DST [, KEYWORDS]) -- puts IP packets into IPsec ESP packets
//
// Each IPv4 and IPv6 packet is sealed by ESP in tunnel mode (RFC 4303, manual keys) with the security parameter index
// SPI, and sent from the IPv4 address SRC to DST, in a frame from ETH_SRC to ETH_DST. Other frames are dropped, and so are
// IPv4 packets with an invalid header. `ESPDetunnel` opens the packets, and so does any implementation of IPsec.
//
// KEY is a file with hexadecimal digits, or `env:` and the name of an environment variable. It holds the key and a salt
// of 4 bytes for GCM (`openssl rand -hex 20` makes them), and for CBC the key and one of 32 bytes for the keyed hash.
//
// Packets larger than MTU are cut, unless "do not fragment" is set: then they are dropped. Each worker has an
// association of its own: SPI, SPI + 1, and so on.
//
// = KEYWORDS
//
// ALGORITHM (name, default aes-128-gcm): aes-128-gcm, aes-256-gcm, or aes-128-cbc-hmac-sha256.
// TTL (number, default 64): the time-to-live outside.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// esp.count, esp.sequence (read): packets that were sealed, and the last sequence number.
//
// = IPV6
//
// IPv6 is carried as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// tunnel :: ESPTunnel(0x1001, 192.0.2.1, 192.0.2.2, site.key, 02:00:00:00:00:01, 02:00:00:00:00:02);
// FromDevice(lan) -> tunnel -> ToDevice(wan);
//
// = FILE site.key
//
// 000102030405060708090a0b0c0d0e0f10111213
//
// = SEE ALSO
//
// ESPEncap, ESPDetunnel, Encrypt

elementclass ESPTunnel { $spi, $src, $dst, $key, $eth_src, $eth_dst, MTU $mtu, __REST__ $options |
  input -> kind :: Classifier(12/0800, 12/86dd);
  kind[0] -> Strip(14) -> CheckIPHeader -> esp :: ESPEncap($spi, $src, $dst, $key, $options)
    -> IPFragmenter(${mtu:-1500}) -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> Strip(14) -> CheckIP6Header -> esp;
}
