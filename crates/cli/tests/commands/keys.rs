//! Keys of elements: where they come from, and that nothing shows them.

use std::path::Path;

use crate::program::{Ended, Folder};

const KEY: &str = "00c0ffee0102030405060708090a0b0c";

/// Runs a chain with the key in the environment.
fn run(folder: &Folder, chain: &str) -> Ended {
    folder.file("chain.click", chain);
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    command.args(["run", "chain.click", "-q"]).env("SITE_KEY", KEY);
    command.output().unwrap().into()
}

#[test]
fn a_key_of_the_environment_seals_each_run_with_other_nonces() {
    let folder = Folder::new();
    let seal = |to: &str| {
        format!(
            "require(nf);
            RatedSource(DATA \\<020000000002 020000000001 0800
                4500002100000000401166ca0a0000010a000002 00010002000d 0000 68656c6c6f>,
                RATE 1000, LIMIT 20, STOP true)
              -> Encrypt(env:SITE_KEY) -> ToDump({to});"
        )
    };
    run(&folder, &seal("one.pcap")).well();
    run(&folder, &seal("two.pcap")).well();
    let sealed = |name: &str| {
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        // Records of a capture: a header of 16 bytes, a frame; nonces begin behind the header of UDP.
        let frame = 14 + 20 + 8 + 12 + 5 + 16;
        assert_eq!(bytes.len(), 24 + 20 * (16 + frame), "{name}");
        bytes[24..].chunks(16 + frame).map(|r| r[16 + 42..16 + 54].to_vec()).collect::<Vec<_>>()
    };
    let mut nonces = [sealed("one.pcap"), sealed("two.pcap")].concat();
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), 40, "no nonce comes twice");
    folder.file("site.key", KEY);
    run(
        &folder,
        "require(nf);
        FromDump(two.pcap, STOP true) -> Decrypt(site.key) -> c :: Counter -> ToDump(open.pcap);",
    )
    .well();
    let opened = std::fs::read(folder.path().join("open.pcap")).unwrap();
    assert_eq!(opened.windows(5).filter(|w| w == b"hello").count(), 20);
}

#[test]
fn a_key_that_is_wrong_is_not_shown() {
    let folder = Folder::new();
    folder.file("site.key", format!("{KEY}c0ffee"));
    for place in ["site.key", "env:SITE_KEY"] {
        let ended = run(
            &folder,
            &format!("Idle -> EncryptPayload({place}, ALGORITHM aes-256-gcm) -> Discard;"),
        );
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.err.contains("32 bytes as 64 hexadecimal digits"), "{}", ended.err);
        let shown = ended.err.to_lowercase() + &ended.out.to_lowercase();
        assert!(!shown.contains("c0ffee"), "{shown}");
    }
    let ended = run(&folder, "Idle -> EncryptPayload(env:NOT_SET) -> Discard;");
    assert!(ended.err.contains("the variable is not set"), "{}", ended.err);
}
