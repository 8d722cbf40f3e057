// FastEncrypt(KEY [, KEYWORDS]) -- encrypts what packets carry, with ChaCha20
//
// What is behind the headers of TCP and UDP, and behind that of IP for other protocols, is encrypted with the key of
// KEY: a file with hexadecimal digits (`openssl rand -hex 32` makes them), or `env:` and the name of an environment
// variable. Headers stay readable, so that other functions work on them. `FastDecrypt` undoes it.
//
// Fragments are put together first, and packets larger than MTU are cut again. Packets that have "do not fragment" set
// are cut, too. Packets that are sent a second time are not noticed: ESPTunnel does that.
//
// Frames leave as they came. Those that hold no IPv4 packet pass as they are; those with an invalid header are dropped.
//
// = KEYWORDS
//
// ALGORITHM (name, default chacha20-poly1305): chacha20-poly1305, or chacha20, which does not notice changes.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// seal.count (read): packets that were encrypted.
//
// = IPV6
//
// IPv6 passes unencrypted.
//
// = EXAMPLE
//
// FromDevice(lan) -> FastEncrypt(site.key) -> ToDevice(wan);
//
// = FILE site.key
//
// 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
//
// = SEE ALSO
//
// EncryptPayload, FastDecrypt, Encrypt, ESPTunnel

elementclass FastEncrypt { $key, ALGORITHM $algorithm, MTU $mtu |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler
    -> seal :: EncryptPayload($key, ALGORITHM ${algorithm:-chacha20-poly1305})
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> output;
}
