// Encrypt(KEY [, KEYWORDS]) -- encrypts what packets carry, with AES
//
// What is behind the headers of TCP and UDP, and behind that of IP for other protocols, is encrypted with the key of
// KEY: a file with hexadecimal digits (`openssl rand -hex 16` makes them), or `env:` and the name of an environment
// variable. Headers stay readable, so that other functions work on them. `Decrypt` undoes it.
//
// Fragments are put together first, and packets larger than MTU are cut again. Packets that have "do not fragment" set
// are cut, too. Packets that are sent a second time are not noticed: ESPTunnel does that.
//
// Frames leave as they came. Those that hold no IPv4 packet pass as they are; those with an invalid header are dropped.
//
// = KEYWORDS
//
// ALGORITHM (name, default aes-128-gcm): aes-128-gcm, aes-256-gcm, or aes-128-cbc, which does not notice changes.
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
// FromDevice(lan) -> Encrypt(site.key) -> ToDevice(wan);
//
// = FILE site.key
//
// 000102030405060708090a0b0c0d0e0f
//
// = SEE ALSO
//
// EncryptPayload, Decrypt, FastEncrypt, ESPTunnel

elementclass Encrypt { $key, MTU $mtu, __REST__ $options |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> seal :: EncryptPayload($key, $options)
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> output;
}
