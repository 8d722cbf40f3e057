// Decrypt(KEY [, KEYWORDS]) -- decrypts what Encrypt encrypted
//
// What packets carry is decrypted with the key of KEY: a file with hexadecimal digits, or `env:` and the name of an
// environment variable. Packets that were not encrypted with this key and algorithm are dropped, as far as the
// algorithm can tell.
//
// Fragments are put together first, and packets larger than MTU are cut again.
//
// Frames leave as they came. Those that hold no IPv4 packet pass as they are; those with an invalid header are dropped.
//
// = KEYWORDS
//
// ALGORITHM (name, default aes-128-gcm): aes-128-gcm, aes-256-gcm, or aes-128-cbc.
// MTU (number, default 1500): the longest IP packet that is sent.
//
// = HANDLERS
//
// open.count (read): packets that were decrypted.
//
// = IPV6
//
// IPv6 passes as it is.
//
// = EXAMPLE
//
// FromDevice(wan) -> Decrypt(site.key) -> ToDevice(lan);
//
// = FILE site.key
//
// 000102030405060708090a0b0c0d0e0f
//
// = SEE ALSO
//
// DecryptPayload, Encrypt, FastDecrypt

elementclass Decrypt { $key, MTU $mtu, __REST__ $options |
  input -> kind :: Classifier(12/0800, -);
  kind[0] -> Strip(14) -> CheckIPHeader -> IPReassembler -> open :: DecryptPayload($key, $options)
    -> IPFragmenter(${mtu:-1500}, HONOR_DF false) -> Unstrip(14) -> output;
  kind[1] -> output;
}
