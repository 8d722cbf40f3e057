//! Random changes of what is in the corpus: more of them with `CASES`, others with `SEED`, and of one target with `TARGET`.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use catena_fuzz::TARGETS;

/// Changes of each target's files, unless `CASES` says another number.
const CASES: u64 = 400;
/// Bytes that stand for much in texts and headers.
const VALUES: [u8; 12] = [0, 1, 4, 5, 6, 17, 0x40, 0x7f, 0x80, 0xff, b' ', b'9'];

fn number(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) if text == "fresh" => fastrand::u64(..),
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")),
        Err(_) => usual,
    }
}

/// Changes some bytes: sets, takes out, puts in, or repeats them, or joins the beginning of one to the end of another.
fn change(random: &mut fastrand::Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.usize(..6) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(..24)).min(bytes.len());
        match random.u8(..7) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => bytes[at] = *random.choice(&VALUES).expect("there are some"),
            2 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            3 => drop(bytes.drain(at..end)),
            4 => bytes.insert(at, random.u8(..)),
            5 => {
                let part = bytes[at..end].to_vec();
                let to = random.usize(..=bytes.len());
                drop(bytes.splice(to..to, part));
            }
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.usize(..=other.len())..]);
            }
        }
    }
}

#[test]
fn random_changes_are_survived() {
    let (seed, cases) = (number("SEED", 1), number("CASES", CASES));
    let only = std::env::var("TARGET").ok();
    for (target, run) in TARGETS {
        if only.as_deref().is_some_and(|only| only != target) {
            continue;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        let mut files: Vec<_> = fs::read_dir(folder)
            .expect("each target has a folder in corpus/")
            .map(|entry| entry.expect("the folder is readable").path())
            .filter(|path| {
                !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("heavy-"))
            })
            .collect();
        files.sort();
        let files: Vec<_> =
            files.iter().map(|path| fs::read(path).expect("it is readable")).collect();
        for case in 0..cases {
            let mut random = fastrand::Rng::with_seed(seed.wrapping_add(case));
            let [mut bytes, other] =
                [(); 2].map(|()| random.choice(&files).expect("it has files").clone());
            change(&mut random, &mut bytes, &other);
            let survived = catch_unwind(|| run(&bytes));
            assert!(
                survived.is_ok(),
                "{target} with SEED={seed}, case {case}: {}",
                bytes.escape_ascii()
            );
        }
    }
}
