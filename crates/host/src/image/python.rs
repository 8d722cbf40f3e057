//! What an image of a function in Python has: its folder, the interpreter, and the interpreter's standard library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf::Elf;
use super::parts::{Parts, libraries};
use crate::Failure;
use crate::script::{self, Script};

/// Files of an image at most, and their bytes.
const MOST_FILES: usize = 8192;
const MOST_BYTES: u64 = 256 << 20;

/// The same of a function's folder.
const MOST_OWN_FILES: usize = 2048;
const MOST_OWN_BYTES: u64 = 64 << 20;

/// Asks an interpreter for its file, its version and the folders of its standard library.
const ASK: &str = "import os, sys, sysconfig
print(os.path.realpath(sys.executable))
print(*sys.version_info[:2])
print(os.path.realpath(sysconfig.get_path('stdlib')))
print(os.path.realpath(sysconfig.get_path('platstdlib')))";

/// Parts of the standard library that no function needs: tests, user interfaces, what builds and installs, packages of others.
const LEFT_OUT: [&str; 17] = [
    "__pycache__",
    "test",
    "tests",
    "idle_test",
    "idlelib",
    "tkinter",
    "turtledemo",
    "turtle.py",
    "lib2to3",
    "ensurepip",
    "distutils",
    "pydoc_data",
    "venv",
    "site-packages",
    "dist-packages",
    "sitecustomize.py",
    "usercustomize.py",
];
const LEFT_OUT_MODULES: [&str; 4] = ["_tkinter.", "_test", "_ctypes_test", "xxlimited"];

/// What an image of a script has, and how the script is tried here: with what the image has, and no packages beside.
pub(super) fn parts(
    name: &str,
    path: &Path,
    arguments: &[String],
    script: &Script,
) -> Result<Parts, Failure> {
    let wrong = |why: String| Failure::Impossible(format!("{}: {why}", path.display()));
    if let Some(closed) = script::closed(path).filter(|_| rustix::process::geteuid().is_root()) {
        return Err(wrong(format!(
            "not everybody can read {}: a function that root starts has a user of its own",
            closed.display()
        )));
    }
    let mut ask = Command::new(&script.interpreter);
    let said = crate::run(ask.args(["-S", "-E", "-c", ASK]), "")?;
    let [executable, version, library, modules] = said
        .lines()
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| wrong(format!("{} is no Python 3", script.interpreter.display())))?;
    let is_new = version.split_once(' ').is_some_and(|(major, minor)| {
        major == "3" && minor.parse::<u32>().is_ok_and(|minor| minor >= 9)
    });
    if !is_new {
        return Err(wrong(format!("its Python has version {version}, and the runtime needs 3 9")));
    }
    let mut found = Found::default();
    let executable = PathBuf::from(executable);
    found.add(&executable, executable.clone())?;
    for folder in BTreeSet::from([library, modules]) {
        let keep = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_code = name.ends_with(".py") || name.ends_with(".so") || path.is_dir();
            let is_left_out = LEFT_OUT.contains(&name)
                || name.starts_with("config-")
                || LEFT_OUT_MODULES.iter().any(|begin| name.starts_with(begin));
            is_code && !is_left_out
        };
        found.walk(Path::new(folder), Path::new(folder), &keep)?;
    }
    if let Some(loader) = loader(&executable).map_err(wrong)? {
        found.libraries.extend(libraries(&loader, &executable)?);
        // A module whose libraries are not here works here no more than there.
        let modules: Vec<PathBuf> = found.modules().collect();
        for module in modules {
            found.libraries.extend(libraries(&loader, &module).unwrap_or_default());
        }
        let own = Path::new("/opt").join(name);
        found.own(path, &own)?;
        let modules: Vec<PathBuf> = found.modules().filter(|of| !of.starts_with(library)).collect();
        for module in modules {
            found.libraries.extend(libraries(&loader, &module)?);
        }
    } else {
        found.own(path, &Path::new("/opt").join(name))?;
    }
    let file = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let words = |script_path: String, first: &[&str]| -> Vec<String> {
        let first = first.iter().map(|word| word.to_string());
        let all = script.arguments.iter().cloned().chain(first).chain([script_path]);
        all.chain(arguments.iter().cloned()).collect()
    };
    let here = std::path::absolute(path).map_err(Failure::at(path))?;
    let mut entry = vec![executable.display().to_string()];
    entry.extend(words(format!("/opt/{name}/{file}"), &[]));
    Ok(Parts {
        tried: (script.interpreter.clone(), words(here.display().to_string(), &["-S"])),
        entry,
        files: found.files,
        libraries: found.libraries,
        variables: vec!["PYTHONDONTWRITEBYTECODE=1".into()],
    })
}

fn loader(executable: &Path) -> Result<Option<String>, String> {
    let bytes =
        std::fs::read(executable).map_err(|why| format!("{}: {why}", executable.display()))?;
    Ok(Elf::parse(&bytes).map_err(|why| format!("{}: {why}", executable.display()))?.loader)
}

/// Files of an image: where they are here, and where in the image.
#[derive(Default)]
struct Found {
    files: Vec<(PathBuf, PathBuf)>,
    bytes: u64,
    libraries: BTreeSet<PathBuf>,
}

impl Found {
    fn modules(&self) -> impl Iterator<Item = PathBuf> {
        let is_module = |path: &&PathBuf| path.to_string_lossy().contains(".so");
        self.files.iter().map(|(here, _)| here).filter(is_module).cloned()
    }

    fn add(&mut self, here: &Path, there: PathBuf) -> Result<(), Failure> {
        self.bytes += here.metadata().map_err(Failure::at(here))?.len();
        self.files.push((here.to_path_buf(), there));
        match self.files.len() > MOST_FILES || self.bytes > MOST_BYTES {
            true => Err(Failure::Impossible(format!(
                "more than {MOST_FILES} files or {} MiB would be in the image",
                MOST_BYTES >> 20
            ))),
            false => Ok(()),
        }
    }

    /// Adds the files below a folder, in the order of their names. Links to folders are not followed.
    fn walk(
        &mut self,
        here: &Path,
        there: &Path,
        keep: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Failure> {
        let entries = std::fs::read_dir(here).and_then(|all| all.collect::<Result<Vec<_>, _>>());
        let mut names: Vec<_> =
            entries.map_err(Failure::at(here))?.into_iter().map(|of| of.file_name()).collect();
        names.sort();
        for name in names {
            let (path, to) = (here.join(&name), there.join(&name));
            if !keep(&path) {
                continue;
            }
            if path.is_file() {
                self.add(&path, to)?;
            } else if path.is_dir() && !path.is_symlink() {
                self.walk(&path, &to, keep)?;
            }
        }
        Ok(())
    }

    /// Adds the folder of a function.
    fn own(&mut self, script: &Path, there: &Path) -> Result<(), Failure> {
        let (files, bytes) = (self.files.len(), self.bytes);
        let script = std::path::absolute(script).map_err(Failure::at(script))?;
        let folder = script.parent().unwrap_or(&script);
        let keep = |path: &Path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
            let is_result = [".oci", ".pcap", ".pcapng"].iter().any(|end| name.ends_with(end));
            !name.starts_with('.') && name != "__pycache__" && !is_result
        };
        let added = self.walk(folder, there, &keep);
        match self.files.len() - files > MOST_OWN_FILES || self.bytes - bytes > MOST_OWN_BYTES {
            true => Err(Failure::Impossible(format!(
                "{} has more than {MOST_OWN_FILES} files or {} MiB: all of a function's folder is in its image, so that it has \
                 a folder of its own",
                folder.display(),
                MOST_OWN_BYTES >> 20
            ))),
            false => added,
        }
    }
}
