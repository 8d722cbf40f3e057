// ESPDetunnel(SPI, KEY, ETH_SRC, ETH_DST [, KEYWORDS]) -- takes IP packets out of IPsec ESP packets
//
// Opens packets of ESP in tunnel mode (RFC 4303, manual keys) with the security parameter index SPI. What is inside
// leaves in frames from ETH_SRC to ETH_DST. Fragments are put together first. All else is dropped: other frames, packets
// that were received before, and packets that are damaged, or sealed with another key.
//
// KEY is a file with hexadecimal digits, or `env:` and the name of an environment variable: see ESPTunnel.
//
// = KEYWORDS
//
// ALGORITHM (name, default aes-128-gcm): aes-128-gcm, aes-256-gcm, or aes-128-cbc-hmac-sha256.
// REPLAY (number, default 64): sequence numbers that a packet may be late; 0 accepts what was received before, too.
// SAS (number, default 1): associations from SPI on: as many as the sender has workers.
//
// = HANDLERS
//
// esp.count (read): packets that were opened.
//
// = IPV6
//
// IPv6 inside is taken out as IPv4 is. The packets outside are IPv4.
//
// = EXAMPLE
//
// FromDevice(wan) -> ESPDetunnel(0x1001, site.key, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(lan);
//
// = FILE site.key
//
// 000102030405060708090a0b0c0d0e0f10111213
//
// = SEE ALSO
//
// ESPDecap, ESPTunnel, Decrypt

elementclass ESPDetunnel { $spi, $key, $eth_src, $eth_dst, __REST__ $options |
  input -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> esp :: ESPDecap($spi, $key, $options) -> kind :: Classifier(0/40%f0, 0/60%f0);
  kind[0] -> CheckIPHeader -> EtherEncap(0x0800, $eth_src, $eth_dst) -> output;
  kind[1] -> CheckIP6Header -> EtherEncap(0x86dd, $eth_src, $eth_dst) -> output;
}
