//! `catena nf init`: the folder of a network function to begin with.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use host::manifest::{Beside, Files, is_name};
use nf::sources;

use crate::failure::Failure;
use crate::terminal::print;

/// Begin a network function: an example that builds and runs as it is
#[derive(Args, Debug)]
pub(super) struct Init {
    /// The language
    #[arg(long, value_enum)]
    lang: Language,
    /// What it begins as
    #[arg(long, value_enum, default_value = "acl")]
    example: Example,
    /// The folder, which is made
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// C, with the runtime's source and header
    C,
    /// Rust, with the runtime's crate
    Rust,
    /// Go, with the runtime's module
    Go,
    /// Python, with the runtime's module
    Python,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Example {
    /// An access list
    Acl,
    /// A quota of packets for each flow, which keeps state
    Quota,
}

impl Example {
    /// That of the sources which is chosen: an access list, or a quota.
    fn of(self, [acl, quota]: [&'static str; 2]) -> &'static str {
        match self {
            Self::Acl => acl,
            Self::Quota => quota,
        }
    }
}

/// The name of an NF: its folder's.
fn name(path: &Path) -> Option<String> {
    let name = std::path::absolute(path).ok()?.file_name()?.to_str()?.to_string();
    is_name(&name).then_some(name)
}

/// What the runtime is called in the folder of an NF.
const RUNTIME: &str = "catena_nf";

/// Files of a folder: their names and their text.
type Texts = Vec<(String, String)>;

pub(super) fn begin(init: &Init) -> Result<ExitCode, Failure> {
    let folder = &init.folder;
    let name = name(folder).filter(|name| name != RUNTIME).ok_or_else(|| {
        format!(
            "{}: an NF has the name of its folder: letters, digits and `_-`, at most 32, and not {RUNTIME}",
            folder.display()
        )
    })?;
    if folder.exists() {
        return Err(
            format!("{} is there already: nothing of it is touched", folder.display()).into()
        );
    }
    for (path, text) in init.lang.files(&name, init.example) {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|why| format!("{}: {why}", parent.display()))?;
        std::fs::write(&path, &text).map_err(|why| format!("{}: {why}", path.display()))?;
        if text.starts_with("#!") {
            let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, all)
                .map_err(|why| format!("{}: {why}", path.display()))?;
        }
    }
    let shown = folder.display();
    let what = init.example.of(["an access list", "a quota of packets for each flow"]);
    let config = init.example.of(["deny 10.0.0.1", "100"]);
    let mut text = format!("{shown} has {what} to begin with.\n");
    if let Some(build) = init.lang.build(&name) {
        text += &format!("  build it:  (cd {shown} && {build})\n");
    }
    text += &format!(
        "  try it:    catena nf run {shown} --pcap in.pcap -w out.pcap --config '{config}'\n"
    );
    if let Some(missing) = init.lang.missing() {
        text += &format!("{missing}\n");
    }
    print(&text);
    Ok(ExitCode::SUCCESS)
}

impl Language {
    /// The files of a function.
    fn files(self, name: &str, example: Example) -> Texts {
        let mut files = Texts::new();
        let mut add = |path: &str, text: &str| files.push((path.to_string(), text.to_string()));
        match self {
            Self::C => {
                add(
                    &format!("{name}.c"),
                    example.of([sources::C_EXAMPLE, sources::C_STATE_EXAMPLE]),
                );
                sources::C.iter().for_each(|(path, text)| add(path, text));
                add(
                    "Makefile",
                    &format!(
                        "CFLAGS ?= -O2 -Wall\n\n{name}: {name}.o libcatena_nf.a\n\t$(CC) -o $@ {name}.o libcatena_nf.a\n\nlibcatena_nf.a: catena_nf.o\n\t$(AR) rcs $@ $<\n\n{name}.o catena_nf.o: catena_nf.h\n\nclean:\n\trm -f {name} *.o *.a\n"
                    ),
                );
            }
            Self::Rust => {
                add("src/main.rs", example.of([sources::EXAMPLE, sources::STATE_EXAMPLE]));
                add(
                    "Cargo.toml",
                    &format!(
                        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ncatena-nf = {{ path = \"catena-nf\" }}\n\n[workspace]\n"
                    ),
                );
                for (path, text) in sources::RUST {
                    add(&format!("catena-nf/{path}"), text);
                }
                add(
                    "catena-nf/Cargo.toml",
                    &format!(
                        "[package]\nname = \"catena-nf\"\nversion = \"0.1.0\"\nedition = \"2024\"\nlicense = \"Apache-2.0\"\n\n[dependencies]\n{}\n",
                        sources::DEPENDENCIES
                    ),
                );
            }
            Self::Go => {
                let (module, version) = (sources::GO_MODULE, sources::GO_VERSION);
                add("main.go", example.of([sources::GO_EXAMPLE, sources::GO_STATE_EXAMPLE]));
                add(
                    "go.mod",
                    &format!(
                        "module example.com/{name}\n\ngo {version}\n\nrequire {module} v0.0.0\n\nreplace {module} => ./{RUNTIME}\n"
                    ),
                );
                for (path, text) in sources::GO {
                    add(&format!("{RUNTIME}/{path}"), text);
                }
                let runtime = format!("module {module}\n\ngo {version}\n");
                add(&format!("{RUNTIME}/go.mod"), &runtime);
            }
            Self::Python => {
                add(SCRIPT, example.of([sources::PYTHON_EXAMPLE, sources::PYTHON_STATE_EXAMPLE]));
                sources::PYTHON.iter().for_each(|(path, text)| add(path, text));
            }
        }
        files
    }

    /// What builds a function, in its folder.
    fn build(self, name: &str) -> Option<String> {
        match self {
            Self::C => Some("make".into()),
            Self::Rust => Some("cargo build --release".into()),
            Self::Go => Some(format!("go build -o {name} .")),
            Self::Python => None,
        }
    }

    /// What is not on this host of what builds or runs a function, and the mend.
    fn missing(self) -> Option<String> {
        let (programs, mend): (&[&str], _) = match self {
            Self::C => (&["make", "cc"], "Debian's packages make and gcc"),
            Self::Rust => (&["cargo"], "Rust, from https://rustup.rs"),
            Self::Go => (&["go"], "Debian's package golang-go, or Go from https://go.dev"),
            Self::Python => (&["python3"], "Debian's package python3"),
        };
        let missing = programs.iter().find(|program| !is_on_path(program))?;
        Some(format!("There is no `{missing}` on the PATH: install {mend}."))
    }

    /// That of a folder that `init` began.
    fn of(folder: &Path) -> Option<Self> {
        let all = [
            ("go.mod", Self::Go),
            ("Cargo.toml", Self::Rust),
            (SCRIPT, Self::Python),
            ("Makefile", Self::C),
        ];
        all.into_iter().find(|(file, _)| folder.join(file).is_file()).map(|(_, language)| language)
    }
}

/// The program of a function in Python.
const SCRIPT: &str = "main.py";

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Threads of a program, or of that in the folder that `init` began.
pub(super) fn threads(path: &str) -> u32 {
    match Language::of(Path::new(path)) {
        Some(Language::Go) => sources::GO_THREADS,
        _ => 1,
    }
}

/// The program of a folder that `init` began, with its name.
pub(super) fn program(path: &str) -> Result<(PathBuf, String), String> {
    let mut files = Beside { folder: PathBuf::new(), most: 0, variables: |_| None };
    let folder = Path::new(path);
    if !folder.is_dir() {
        let program = files.program(path)?;
        let file = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = file.strip_suffix(".py").unwrap_or(file).to_string();
        return Ok((program, name));
    }
    let name = name(folder).ok_or_else(|| format!("{path} is no folder of an NF"))?;
    let places = [
        folder.join(&name),
        folder.join("target/release").join(&name),
        folder.join("target/debug").join(&name),
        folder.join(SCRIPT),
    ];
    if let Some(place) = places.iter().find(|place| place.is_file()) {
        return Ok((files.program(&place.to_string_lossy())?, name));
    }
    let language = Language::of(folder);
    let makes = match language.and_then(|language| language.build(&name)) {
        Some(build) => format!("`{build}` makes it there"),
        None => "`make`, `cargo build --release` or `go build` makes it there".into(),
    };
    let missing = language.and_then(Language::missing).map(|of| format!("\n{of}"));
    Err(format!("{path} has no program '{name}' yet: {makes}{}", missing.unwrap_or_default()))
}
