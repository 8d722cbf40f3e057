//! Instructions that functions of a test take: the test runs itself under callgrind, which counts them.

use std::env;
use std::process::Command;

/// Set where instructions are counted.
const COUNTING: &str = "CATENA_UNDER_CALLGRIND";

/// Whether this process runs under callgrind: a test calls its functions then, and does nothing else.
pub fn is_counting() -> bool {
    env::var_os(COUNTING).is_some()
}

/// The instructions of all that functions call, each in its one call. `test` is the full name of the calling test; the names of
/// functions begin with `counted_`, and they are not inlined.
///
/// # Panics
/// If valgrind is not there, or the test fails under it.
pub fn count(test: &str, functions: &[&str]) -> Vec<u64> {
    let name = format!("catena-{}-{}", test.replace("::", "-"), std::process::id());
    let out = env::temp_dir().join(name);
    let output = Command::new("valgrind")
        // Names stand in full wherever they are: else the first that calls a function has its name.
        .args(["--tool=callgrind", "--toggle-collect=*counted_*", "--compress-strings=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(env::current_exe().expect("it runs"))
        .args(["--exact", test, "--test-threads=1", "--nocapture"])
        .env(COUNTING, "1")
        .output();
    let output = output.expect("valgrind runs; the package `valgrind` has it");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stdout));
    let profile = std::fs::read_to_string(&out).expect("callgrind wrote it");
    std::fs::remove_file(&out).expect("it is there");
    functions.iter().map(|name| called_by(&profile, name)).collect()
}

/// The instructions of all that a function called, in the format of callgrind.
fn called_by(profile: &str, name: &str) -> u64 {
    let is_start = |line: &&str| line.starts_with("fn=") && line.ends_with(name);
    let lines = profile.lines().skip_while(|line| !is_start(line)).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with("fn=")).collect();
    let calls = lines.windows(2).filter(|pair| pair[0].starts_with("calls="));
    let counts = calls.filter_map(|pair| pair[1].split(' ').nth(1)?.parse::<u64>().ok());
    counts.sum()
}
