//! Network functions that work on payloads, beside the libraries that they use, on the same bytes: one core, in memory.
//!
//! `cargo bench -p catena-cli --bench payload -- [FUNCTION…] [--rounds N] [--packets N]`
//!
//! A word selects the functions whose names hold it. A round takes bare forwarding, the function, and the library alone in
//! turns. Shown are medians in nanoseconds per packet, and how much of the function's time, without that of forwarding, the
//! library takes: its ratio has the range of the rounds behind it. The library's part of DPI is one pass over payloads for
//! all contents of the rules; the engine also checks what a content that was found asks for besides.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../bench/benches/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use aho_corasick::AhoCorasick;
use chacha20poly1305::ChaCha20Poly1305;
use cpu_time::ThreadTime;
use engine::session::Path as Execution;
use support::{Chain, Data, Frames, Spread};

/// Length of the headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// What does the same without a packet around it.
type Alone = Box<dyn FnMut(&mut [u8])>;

/// A function and its library.
struct Subject {
    name: &'static str,
    function: String,
    alone: Alone,
}

/// UDP datagrams with random text, so long.
fn frames(length: usize) -> Rc<Frames> {
    let mut rng = fastrand::Rng::with_seed(length as u64);
    let one = |n: usize| {
        let mut frame = net::notation::parse(&format!("udp 10.0.0.{}:5000 > 10.0.1.9:53", n % 250))
            .expect("a frame");
        frame.truncate(HEADERS);
        frame.extend((0..length).map(|_| rng.u8(b' '..b'~')));
        frame
    };
    Rc::new(Frames::of((0..250).map(one).collect::<Vec<_>>()))
}

fn sealing<C: AeadInOut + KeyInit + 'static>(key_length: usize) -> Alone {
    let key: Vec<u8> = (0..key_length as u8).collect();
    let cipher = C::new_from_slice(&key).expect("a key");
    let mut count = 0u128;
    Box::new(move |text| {
        count += 1;
        let bytes = count.to_be_bytes();
        let nonce = bytes[4..].try_into().expect("12 bytes");
        let tag = cipher.encrypt_inout_detached(&nonce, b"", text.into()).expect("sealed");
        std::hint::black_box(tag);
    })
}

/// The contents of rules, as they stand between quotes.
fn contents(rules: &str) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for rule in rules.lines().filter(|line| !line.starts_with('#')) {
        for part in rule.split("content:").skip(1) {
            let text = part.trim_start_matches('!').strip_prefix('"');
            let Some((text, _)) = text.and_then(|text| text.split_once('"')) else { continue };
            let mut bytes = Vec::new();
            for (n, piece) in text.split('|').enumerate() {
                match n % 2 {
                    0 => bytes.extend(piece.bytes().filter(|&byte| byte != b'\\')),
                    _ => bytes.extend(
                        piece.split_whitespace().filter_map(|hex| u8::from_str_radix(hex, 16).ok()),
                    ),
                }
            }
            if bytes.len() > 1 {
                all.push(bytes);
            }
        }
    }
    all
}

fn searching(rules: &Path) -> Option<Alone> {
    let text = std::fs::read_to_string(rules).ok()?;
    let engine = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(contents(&text))
        .expect("an automaton");
    Some(Box::new(move |text| {
        std::hint::black_box(engine.find_iter(&*text).count());
    }))
}

/// What is measured; rules of Snort where they are.
fn subjects(rules: &Path, folder: &Path) -> Vec<Subject> {
    std::fs::write(folder.join("key16"), &KEY[..32]).expect("a key");
    std::fs::write(folder.join("key32"), KEY).expect("a key");
    let mut all = vec![
        Subject {
            name: "Encrypt, aes-128-gcm",
            function: "-> Encrypt(key16, MTU 9000)".into(),
            alone: sealing::<Aes128Gcm>(16),
        },
        Subject {
            name: "Encrypt, aes-256-gcm",
            function: "-> Encrypt(key32, ALGORITHM aes-256-gcm, MTU 9000)".into(),
            alone: sealing::<Aes256Gcm>(32),
        },
        Subject {
            name: "FastEncrypt, chacha20-poly1305",
            function: "-> FastEncrypt(key32, MTU 9000)".into(),
            alone: sealing::<ChaCha20Poly1305>(32),
        },
    ];
    match searching(rules) {
        Some(alone) => all.push(Subject {
            name: "DPI, community rules",
            function: format!("-> DPI({}, LENIENT true)", rules.display()),
            alone,
        }),
        None => eprintln!("DPI is not run: {} is missing", rules.display()),
    }
    all
}

fn argument(name: &str, usual: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).map_or(usual, |value| value.parse().expect("a number"))
}

fn main() {
    let (rounds, packets) = (argument("--rounds", 7), argument("--packets", 100_000));
    let shared = std::env::var_os("CATENA_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = std::env::temp_dir().join(format!("catena-payload-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let data = Data::in_folder(&folder, "require(nf);");
    println!(
        "{:<32} {:>6} {:>8} {:>9} {:>8} {:>18}",
        "function", "bytes", "bare", "function", "library", "library's part"
    );
    let words: Vec<String> =
        std::env::args().skip(1).take_while(|word| !word.starts_with("--")).collect();
    let is_wanted =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let subjects = subjects(&shared.join("data/snort/community.rules"), &folder);
    for mut subject in subjects.into_iter().filter(|subject| is_wanted(subject.name)) {
        for length in [64, 256, 1400] {
            let frames = frames(length);
            let start = |function: &str| {
                let chain = Chain::new(subject.name, function.to_owned(), &frames);
                data.start(&chain, Execution::Synthesised)
            };
            let (mut bare, mut function) = (start(""), start(&subject.function));
            let mut texts: Vec<Vec<u8>> =
                frames.iter().map(|frame| frame[HEADERS..].to_vec()).collect();
            let (mut alone, mut parts) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                for running in [&mut bare, &mut function] {
                    running.warm();
                    running.measure(packets);
                }
                let start = ThreadTime::now();
                for n in 0..packets as usize {
                    let at = n % texts.len();
                    (subject.alone)(&mut texts[at]);
                }
                alone.push(start.elapsed().as_nanos() as f64 / packets as f64);
                let last = |samples: &[f64]| samples.last().copied().unwrap_or_default();
                let took = last(&function.samples) - last(&bare.samples);
                parts.push(last(&alone) / took);
            }
            let median = |samples: &[f64]| Spread::of(samples.iter().copied()).median;
            let Spread { median: part, least, greatest } = Spread::of(parts);
            println!(
                "{:<32} {length:>6} {:>8.1} {:>9.1} {:>8.1} {part:>6.2} ({least:.2}-{greatest:.2})",
                subject.name,
                median(&bare.samples),
                median(&function.samples),
                median(&alone),
            );
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
}
