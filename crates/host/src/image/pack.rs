//! Making an image of a program: its file, the shared libraries that its loader finds, and how it is started.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hmac_sha256::Hash;

use super::elf::Elf;
use super::layout::{Descriptor, Index, Platform, hex, kind};
use super::parts::{Parts, libraries};
use super::{ABI_LABEL, ARCHITECTURE, Configuration, Manifest, RootFs, Run, python};
use crate::cgroup::Groups;
use crate::chain::{PATIENCE, explain};
use crate::launch::{Environment, Native, Packets, Start};
use crate::script::Script;
use crate::{Failure, Journal, Limits};

/// A program that becomes an image.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name in the image.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Whether it is an NF of the runtime, and not one between two interfaces.
    pub has_runtime: bool,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The files of the image.
    pub files: Vec<PathBuf>,
    /// Bytes of all of them.
    pub bytes: u64,
    /// The digest of its manifest.
    pub digest: String,
}

/// Makes an image at a path: a tar file, or a folder if the path ends with `/`. The same program gives the same bytes. That a program
/// with the runtime is an NF of this host's ABI is tried: it is started, and ended when it has said so.
///
/// # Errors
/// If the program is no NF or not for this host, a library is not found, or the image is there.
pub fn pack(program: &Program, to: &Path, journal: Journal) -> Result<Packed, Failure> {
    let packed = make(program, to, &journal);
    let taken = journal.take_down();
    packed.and_then(|packed| taken.map(|_| packed))
}

/// Those of a program.
fn parts(program: &Program) -> Result<Parts, Failure> {
    let path = &program.path;
    let script = Script::of(path)?.filter(Script::is_python);
    if let Some(script) = script {
        return python::parts(&program.name, path, &program.arguments, &script);
    }
    let wrong = |why: String| Failure::Impossible(format!("{}: {why}", path.display()));
    let bytes = std::fs::read(path).map_err(Failure::at(path))?;
    let elf = Elf::parse(&bytes).map_err(|why| wrong(why.to_string()))?;
    if elf.architecture != ARCHITECTURE {
        return Err(wrong(format!(
            "it is made for {}, and this host is {ARCHITECTURE}: pack it where it runs",
            elf.architecture
        )));
    }
    let libraries = match &elf.loader {
        Some(loader) => libraries(loader, path)?,
        None => BTreeSet::new(),
    };
    let entry = format!("/usr/bin/{}", program.name);
    Ok(Parts {
        tried: (path.clone(), program.arguments.clone()),
        files: vec![(path.clone(), entry.clone().into())],
        entry: [entry].into_iter().chain(program.arguments.iter().cloned()).collect(),
        libraries,
        variables: Vec::new(),
    })
}

fn make(program: &Program, to: &Path, journal: &Journal) -> Result<Packed, Failure> {
    let Parts { tried, entry, files, libraries, variables } = parts(program)?;
    if to.exists() {
        return Err(taken(to, std::io::ErrorKind::AlreadyExists.into()));
    }
    if program.has_runtime {
        greet(program, tried, journal)?;
    }
    let mut layer = Layer::new();
    let libraries_there = libraries.iter().map(|library| (library.clone(), library.clone()));
    for (here, there) in files.into_iter().chain(libraries_there) {
        let bytes = std::fs::read(&here).map_err(Failure::at(&here))?;
        layer.file(&there, &bytes)?;
    }
    for folder in MOUNTED {
        layer.folder(Path::new(folder))?;
    }
    let run = Run {
        entrypoint: Some(entry),
        env: Some(environment(&libraries).into_iter().chain(variables).collect()),
        working_dir: Some("/".into()),
        labels: program
            .has_runtime
            .then(|| [(ABI_LABEL.to_string(), nf::VERSION.to_string())].into()),
        cmd: None,
    };
    let (files, layer) = layer.finish()?;
    let mut blobs = Vec::new();
    let layer = blob(&mut blobs, kind::LAYER, layer);
    let configuration = Configuration {
        architecture: ARCHITECTURE.into(),
        os: "linux".into(),
        config: run,
        rootfs: RootFs { kind: "layers".into(), diff_ids: vec![layer.digest.clone()] },
    };
    let config = blob(&mut blobs, kind::CONFIG, json(&configuration)?);
    let manifest = Manifest {
        schema_version: 2,
        media_type: Some(kind::MANIFEST.into()),
        config,
        layers: vec![layer],
    };
    let mut manifest = blob(&mut blobs, kind::MANIFEST, json(&manifest)?);
    let digest = manifest.digest.clone();
    manifest.platform = Some(Platform { architecture: ARCHITECTURE.into(), os: "linux".into() });
    let index = Index { schema_version: 2, manifests: vec![manifest] };
    let mut all = vec![
        ("oci-layout".to_string(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        ("index.json".to_string(), json(&index)?),
    ];
    all.extend(blobs);
    let total = all.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    write(&all, to)?;
    Ok(Packed { files, bytes: total, digest })
}

/// Starts a program, and waits until it says which version of the ABI it has.
fn greet(
    program: &Program,
    (path, arguments): (PathBuf, Vec<String>),
    journal: &Journal,
) -> Result<(), Failure> {
    let wrong = |why| Failure::File(program.path.clone(), why);
    let (line, socket) = nf::HostEnd::pair().map_err(wrong)?;
    line.set_patience(PATIENCE).map_err(wrong)?;
    let output = [Stdio::null(), Stdio::inherit()];
    let limits = Limits { threads: nf::sources::GO_THREADS, ..Limits::default() };
    let packets = Packets::Shared(socket);
    let start = Start { chain: 1, seat: 0, limits, packets, output };
    let environment = Native { program: path, arguments, groups: Groups::default() };
    let running = environment.start(start, journal)?;
    let said =
        line.hello().map_err(|why| explain(&program.name, why, &running.process, limits.threads));
    running.destroy();
    said
}

fn json(of: &impl serde::Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(of).map_err(|why| Failure::Impossible(why.to_string()))
}

fn blob(blobs: &mut Vec<(String, Vec<u8>)>, kind: &str, bytes: Vec<u8>) -> Descriptor {
    let digits = hex(&Hash::hash(&bytes));
    let of = Descriptor {
        media_type: kind.into(),
        digest: format!("sha256:{digits}"),
        size: bytes.len() as u64,
        platform: None,
    };
    blobs.push((format!("blobs/sha256/{digits}"), bytes));
    of
}

/// Writes a program with its shared libraries to a folder, which is made; its name there, and the variables of its environment.
pub(crate) fn lay_out(program: &Path, to: &Path) -> Result<(String, Vec<String>), Failure> {
    let bytes = std::fs::read(program).map_err(Failure::at(program))?;
    let wrong = |why: &str| Failure::Impossible(format!("{}: {why}", program.display()));
    let elf = Elf::parse(&bytes).map_err(wrong)?;
    let libraries = match &elf.loader {
        Some(loader) => libraries(loader, program)?,
        None => BTreeSet::new(),
    };
    let name = "/usr/bin/catena";
    let at = |path: &Path| to.join(path.strip_prefix("/").unwrap_or(path));
    let folder = |path: PathBuf| std::fs::create_dir_all(&path).map_err(Failure::at(&path));
    let copies = libraries.iter().map(|library| (library.as_path(), library.as_path()));
    for (from, file) in copies.chain([(program, Path::new(name))]) {
        let file = at(file);
        file.parent().map_or(Ok(()), |above| folder(above.to_path_buf()))?;
        std::fs::copy(from, &file).map_err(Failure::at(&file))?;
    }
    for mounted in MOUNTED {
        folder(at(Path::new(mounted)))?;
    }
    Ok((name.into(), environment(&libraries)))
}

/// Places that a container runtime mounts to.
const MOUNTED: [&str; 5] = ["/dev", "/proc", "/run", "/sys", "/tmp"];

/// The variables by which a program finds its libraries.
fn environment(libraries: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut variables = vec!["PATH=/usr/bin:/bin".to_string()];
    let folders: BTreeSet<String> =
        libraries.iter().filter_map(|path| Some(path.parent()?.display().to_string())).collect();
    if !folders.is_empty() {
        let all: Vec<String> = folders.into_iter().collect();
        variables.push(format!("LD_LIBRARY_PATH={}", all.join(":")));
    }
    variables
}

/// A layer in the making.
struct Layer {
    tar: tar::Builder<Vec<u8>>,
    folders: BTreeSet<PathBuf>,
    files: Vec<PathBuf>,
}

fn failed(why: std::io::Error) -> Failure {
    Failure::Impossible(format!("the image cannot be written: {why}"))
}

impl Layer {
    fn new() -> Self {
        let tar = tar::Builder::new(Vec::new());
        Self { tar, folders: BTreeSet::new(), files: Vec::new() }
    }

    fn add(&mut self, path: &Path, kind: tar::EntryType, bytes: &[u8]) -> Result<(), Failure> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(bytes.len() as u64);
        let path = path.strip_prefix("/").unwrap_or(path);
        self.tar.append_data(&mut header, path, bytes).map_err(failed)
    }

    fn folder(&mut self, path: &Path) -> Result<(), Failure> {
        let mut above: Vec<&Path> = path
            .ancestors()
            .filter(|of| of.parent().is_some() && !self.folders.contains(*of))
            .collect();
        above.reverse();
        let above: Vec<PathBuf> = above.into_iter().map(Path::to_path_buf).collect();
        for folder in above {
            self.add(&folder, tar::EntryType::Directory, &[])?;
            self.folders.insert(folder);
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(folder) = path.parent() {
            self.folder(folder)?;
        }
        self.files.push(path.to_path_buf());
        self.add(path, tar::EntryType::Regular, bytes)
    }

    fn finish(self) -> Result<(Vec<PathBuf>, Vec<u8>), Failure> {
        let bytes = self.tar.into_inner().map_err(failed)?;
        Ok((self.files, bytes))
    }
}

/// Writes a layout, which is not there yet.
fn write(all: &[(String, Vec<u8>)], to: &Path) -> Result<(), Failure> {
    let text = to.display().to_string();
    if text.ends_with('/') {
        std::fs::create_dir(to).map_err(|why| taken(to, why))?;
        for (name, bytes) in all {
            let path = to.join(name);
            let folder = path.parent().unwrap_or(to);
            std::fs::create_dir_all(folder).map_err(Failure::at(folder))?;
            std::fs::write(&path, bytes).map_err(Failure::at(&path))?;
        }
        return Ok(());
    }
    let file = File::create_new(to).map_err(|why| taken(to, why))?;
    let mut tar = tar::Builder::new(std::io::BufWriter::new(file));
    for (name, bytes) in all {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, name, bytes.as_slice()).map_err(Failure::at(to))?;
    }
    let file = tar.into_inner().map_err(Failure::at(to))?;
    file.into_inner().map(drop).map_err(|why| Failure::File(to.to_path_buf(), why.into_error()))
}

fn taken(to: &Path, why: std::io::Error) -> Failure {
    match why.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::Impossible(format!(
            "{} is there already: nothing of it is touched; remove it, or choose another name",
            to.display()
        )),
        _ => Failure::File(to.to_path_buf(), why),
    }
}
