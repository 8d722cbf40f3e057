//! Replays what fuzzers and people have found, and what lies near it.

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use catena_fuzz::{TARGETS, Target};

/// Files of a corpus are small, so that each can be mutated at every byte.
const MAX_FILE: usize = 4096;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The files of a target's corpus in order, by name.
fn files(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(corpus().join(target))
        .expect("each target has a folder in corpus/")
        .map(|entry| {
            let entry = entry.expect("the folder is readable");
            let bytes = fs::read(entry.path()).expect("the file is readable");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "corpus/{target} is empty");
    files
}

/// The files that are mutated: all but those that say of themselves that they take their time.
fn light_files(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = files(target);
    files.retain(|(name, _)| !name.starts_with("heavy-"));
    files
}

/// The input on which the target panicked, if it did.
fn survives(run: Target, input: &[u8]) -> Result<(), String> {
    catch_unwind(|| run(input)).map_err(|_| format!("{:?}", String::from_utf8_lossy(input)))
}

#[test]
fn every_folder_is_a_target() {
    let folders: BTreeSet<String> = fs::read_dir(corpus())
        .expect("there is a corpus")
        .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(folders, TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
}

#[test]
fn every_file_is_survived() {
    for (target, run) in TARGETS {
        for (name, bytes) in files(target) {
            assert!(
                bytes.len() <= MAX_FILE,
                "corpus/{target}/{name} is longer than {MAX_FILE} bytes"
            );
            survives(run, &bytes).unwrap_or_else(|_| panic!("corpus/{target}/{name}"));
        }
    }
}

#[test]
fn every_beginning_is_survived() {
    for (target, run) in TARGETS {
        for (name, bytes) in light_files(target) {
            for end in 0..bytes.len() {
                survives(run, &bytes[..end])
                    .unwrap_or_else(|input| panic!("corpus/{target}/{name} cut at {end}: {input}"));
            }
        }
    }
}

#[test]
fn every_change_of_a_byte_is_survived() {
    for (target, run) in TARGETS {
        for (name, mut bytes) in light_files(target) {
            for at in 0..bytes.len() {
                let original = bytes[at];
                for value in [0x00, 0xff, 0x7f, b'(', b'"', original ^ 0x01, original ^ 0x80] {
                    bytes[at] = value;
                    survives(run, &bytes).unwrap_or_else(|input| {
                        panic!("corpus/{target}/{name} with {value:#04x} at {at}: {input}")
                    });
                }
                bytes[at] = original;
            }
        }
    }
}
