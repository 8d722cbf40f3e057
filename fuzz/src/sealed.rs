//! Packets that were sealed and then changed.

use crate::fed::{Fed, Records, repair};

/// The functions of the library, which are read faster alone.
const FUNCTIONS: &str = concat!(
    include_str!("../../nf/esp_tunnel.click"),
    include_str!("../../nf/esp_detunnel.click"),
    include_str!("../../nf/encrypt.click"),
    include_str!("../../nf/decrypt.click"),
    include_str!("../../nf/fast_encrypt.click"),
    include_str!("../../nf/fast_decrypt.click"),
    include_str!("../../nf/dedup.click"),
    include_str!("../../nf/redup.click"),
);

/// What seals and opens, and whether it can tell that a packet was changed.
const PAIRS: [(&str, &str, bool); 8] = [
    (
        "ESPTunnel(0x109, 192.0.2.1, 192.0.2.2, gcm-salt.key, 2:0:0:0:0:1, 2:0:0:0:0:2)",
        "ESPDetunnel(0x109, gcm-salt.key, 2:0:0:0:0:1, 2:0:0:0:0:2)",
        true,
    ),
    (
        "ESPTunnel(0x109, 192.0.2.1, 192.0.2.2, cbc-hmac.key, 2:0:0:0:0:1, 2:0:0:0:0:2, ALGORITHM aes-128-cbc-hmac-sha256)",
        "ESPDetunnel(0x109, cbc-hmac.key, 2:0:0:0:0:1, 2:0:0:0:0:2, ALGORITHM aes-128-cbc-hmac-sha256)",
        true,
    ),
    ("Encrypt(128.key)", "Decrypt(128.key)", true),
    ("Encrypt(256.key, ALGORITHM aes-256-gcm)", "Decrypt(256.key, ALGORITHM aes-256-gcm)", true),
    ("FastEncrypt(256.key)", "FastDecrypt(256.key)", true),
    ("Encrypt(128.key, ALGORITHM aes-128-cbc)", "Decrypt(128.key, ALGORITHM aes-128-cbc)", false),
    ("FastEncrypt(256.key, ALGORITHM chacha20)", "FastDecrypt(256.key, ALGORITHM chacha20)", false),
    ("Dedup", "Redup", false),
];

/// What a changed packet is opened to is what was sealed, or nothing: the packet is dropped and counted, or passes as it
/// came if it does not say that it was sealed. Once opened, a packet of ESP is not opened again.
///
/// An input is a pair, a length, a text, and changes: a kind, where it is, and a value.
pub fn sealed(data: &[u8]) {
    let mut records = Records(data);
    let (Some(pair), Some(length)) = (records.byte(), records.byte()) else { return };
    let (seal, open, can_tell) = PAIRS[usize::from(pair) % PAIRS.len()];
    let text = [b"sealed: ", records.bytes(length.into())].concat();
    let digits: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
    let words = format!("udp 10.0.0.1:1 > 10.0.0.2:2 payload {digits}");
    let frame = net::notation::parse(&words).expect("it is right");
    let mut chain = Fed::start(&format!(
        "{FUNCTIONS} plain :: Idle -> {seal} -> sealed :: Queue -> Idle;
         changed :: Idle -> {open} -> opened :: Queue -> Idle;"
    ));
    chain.feed("plain", &frame);
    let sealed = chain.left("sealed").pop().expect("it is sealed");
    let mut changed = sealed.clone();
    while let (Some(kind), Some(at), Some(value)) =
        (records.byte(), records.number(), records.byte())
    {
        let at = usize::from(at) % changed.len().max(1);
        match kind & 3 {
            0 | 1 if at < changed.len() => changed[at] ^= value,
            2 => changed.truncate(at),
            _ => changed.insert(at.min(changed.len()), value),
        }
    }
    let is_fragment = repair(&mut changed);
    chain.feed("changed", &changed);
    let opened = chain.left("opened");
    let dropped = chain.dropped();
    assert!(opened.len() as u64 + dropped <= 1);
    // What may be put together with others waits for them.
    assert!(is_fragment == Some(true) || opened.len() as u64 + dropped == 1);
    if can_tell {
        for opened in &opened {
            let is_text = opened.windows(text.len()).any(|window| window == text);
            // What follows the packet in its frame does not count.
            let is_same = changed.starts_with(opened);
            assert!(is_text || is_same, "{opened:02x?}");
        }
    }
    if changed == sealed {
        assert!(opened.len() == 1 && opened[0].ends_with(&text));
        chain.feed("changed", &sealed);
        assert_eq!(chain.left("opened").is_empty(), open.starts_with("ESP"));
    }
}
