//! Scripts: programs that an interpreter reads, and which one.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::process::PATH;

/// Bytes of a first line that are read, as many as the kernel reads.
const LONGEST: u64 = 256;

/// A script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// What reads it.
    pub(crate) interpreter: PathBuf,
    /// What its first line gives to the interpreter.
    pub(crate) arguments: Vec<String>,
}

impl Script {
    /// That of a program, if it is one.
    ///
    /// # Errors
    /// If there is no such interpreter.
    pub(crate) fn of(program: &Path) -> Result<Option<Self>, Failure> {
        Self::with_path(program, PATH)
    }

    fn with_path(program: &Path, path: &str) -> Result<Option<Self>, Failure> {
        let mut begin = Vec::new();
        // What cannot be read is no script. Whether it can be run is found when that is tried.
        let read = File::open(program).and_then(|file| file.take(LONGEST).read_to_end(&mut begin));
        let Some(line) = begin.strip_prefix(b"#!").filter(|_| read.is_ok()) else {
            return Ok(None);
        };
        let line =
            String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or(line));
        let mut words = line.split_whitespace().map(str::to_string);
        let wrong = |why: String| Failure::Impossible(format!("{}: {why}", program.display()));
        let first =
            words.next().ok_or_else(|| wrong("its first line names no interpreter".into()))?;
        let found = |file: &Path| {
            file.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
        };
        if first != "/usr/bin/env" {
            let interpreter = PathBuf::from(&first);
            return match found(&interpreter) {
                true => Ok(Some(Self { interpreter, arguments: words.collect() })),
                false => Err(wrong(format!(
                    "there is no {first}, which its first line names: {}",
                    mend(&first)
                ))),
            };
        }
        let name = words.find(|word| word != "-S").unwrap_or_default();
        let places = path.split(':').map(|folder| Path::new(folder).join(&name));
        match places.into_iter().find(|place| !name.is_empty() && found(place)) {
            Some(interpreter) => Ok(Some(Self { interpreter, arguments: words.collect() })),
            None => Err(wrong(format!("there is no '{name}' in {path}: {}", mend(&name)))),
        }
    }

    /// Whether it is read by Python.
    pub(crate) fn is_python(&self) -> bool {
        let name = self.interpreter.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("python"))
    }
}

/// What to do where an interpreter is not there.
fn mend(name: &str) -> String {
    let other = "name one that is there in the first line";
    match name.rsplit('/').next().is_some_and(|name| name.starts_with("python")) {
        true => format!("install Debian's package python3 (`apt-get install python3`), or {other}"),
        false => format!("install it, or {other}"),
    }
}

/// A file or a folder above it that not everybody can read.
pub(crate) fn closed(file: &Path) -> Option<PathBuf> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    let mode = |path: &Path| path.metadata().map_or(0, |of| of.permissions().mode());
    if mode(&real) & 4 == 0 {
        return Some(real);
    }
    real.ancestors().skip(1).find(|folder| mode(folder) & 1 == 0).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_an_interpreter() {
        let folder = std::env::temp_dir().join(format!("catena-script-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("script");
        let read = |text: &str, path: &str| {
            std::fs::write(&file, text).unwrap();
            Script::with_path(&file, path).map_err(|why| why.to_string())
        };
        let sh = |arguments: &[&str]| {
            let arguments = arguments.iter().map(|word| word.to_string()).collect();
            Ok(Some(Script { interpreter: "/bin/sh".into(), arguments }))
        };
        assert_eq!(read("#!/bin/sh\nexit", ""), sh(&[]));
        assert_eq!(read("#! /bin/sh -e -u", ""), sh(&["-e", "-u"]));
        assert_eq!(read("#!/usr/bin/env sh\n", "/nonexistent:/bin"), sh(&[]));
        assert_eq!(read("#!/usr/bin/env -S sh -e\n", "/bin"), sh(&["-e"]));
        assert_eq!(read("", "/bin"), Ok(None));
        assert_eq!(read("\u{7f}ELF", "/bin"), Ok(None));
        let why = read("#!/usr/bin/env python3\n", "/nonexistent").unwrap_err();
        assert!(
            why.contains("no 'python3' in /nonexistent") && why.contains("apt-get install python3"),
            "{why}"
        );
        let why = read("#!/nonexistent/python3.99\n", "/bin").unwrap_err();
        assert!(why.contains("no /nonexistent/python3.99") && why.contains("python3"), "{why}");
        assert!(read("#!/usr/bin/env\n", "/bin").is_err() && read("#!\n", "/bin").is_err());
        // A folder is no interpreter.
        assert!(read("#!/bin\n", "/bin").is_err());
        let mut long = b"#!".to_vec();
        long.extend([0xff; 4096]);
        std::fs::write(&file, long).unwrap();
        assert!(Script::with_path(&file, "/bin").is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
