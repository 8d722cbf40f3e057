//! `catena nf`: writing network functions, and trying them.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use host::manifest::{Beside, Files, Function, is_name, time};
use host::{HostChain, Journal, image};
use nf::sources;
use view::table::grouped;

use crate::commands::host::{serve, shown};
use crate::failure::Failure;
use crate::signals::Interrupt;
use crate::terminal::{print, print_error};

/// Write a network function of your own, and try it
#[derive(Args, Debug)]
pub(crate) struct Nf {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Init(Init),
    Run(Run),
    Pack(Pack),
}

/// Begin a network function: an access list that builds and runs as it is
#[derive(Args, Debug)]
struct Init {
    /// The language
    #[arg(long, value_enum)]
    lang: Language,
    /// The folder, which is made
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    /// C, with the runtime's source and header
    C,
    /// Rust, with the runtime's crate
    Rust,
}

/// Run a network function on a capture; no root, no container
///
/// It has 100 ms for each batch; --timeout changes that.
#[derive(Args, Debug)]
struct Run {
    /// The program, or the folder of one that `catena nf init` began
    program: String,
    /// Its configuration
    #[arg(long, default_value = "")]
    config: String,
    /// The capture that packets come from
    #[arg(long, value_name = "FILE")]
    pcap: String,
    /// The capture that packets go to
    #[arg(short, long, value_name = "FILE")]
    write: String,
    /// How long it may keep a batch, such as `1 s`
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<std::time::Duration>,
    /// Packets of a batch at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: Option<u32>,
    /// Its threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Map packets without the right to write, as `writes: none` does
    #[arg(long)]
    read_only: bool,
}

/// Make an image of a network function: an OCI layout with its program and shared libraries
///
/// A host chain runs it as `image: acl.oci`; other container tools read it, too. The program is started for a moment, to see
/// that it is a network function; with `--api veth`, it is any program, for a place between two interfaces.
#[derive(Args, Debug)]
struct Pack {
    /// The program, or the folder of one that `catena nf init` began
    program: String,
    /// The image, which is made: a tar file, or a folder if it ends with `/`
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How packets come to it
    #[arg(long, value_enum, default_value = "nf")]
    api: Api,
    /// Arguments of the program, after `--`
    #[arg(last = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Api {
    /// By the runtime, in memory
    Nf,
    /// By two interfaces of the kernel
    Veth,
}

/// Runs the command.
pub(crate) fn main(args: &Nf) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Init(init) => begin(init),
        What::Run(run) => attempt(run),
        What::Pack(pack) => wrap(pack),
    }
}

/// The name of an NF: its folder's.
fn name(path: &Path) -> Option<String> {
    let name = std::path::absolute(path).ok()?.file_name()?.to_str()?.to_string();
    is_name(&name).then_some(name)
}

fn begin(init: &Init) -> Result<ExitCode, Failure> {
    let folder = &init.folder;
    let name = name(folder).ok_or_else(|| {
        format!(
            "{}: an NF has the name of its folder: letters, digits and `_-`, at most 32",
            folder.display()
        )
    })?;
    if folder.exists() {
        return Err(
            format!("{} is there already: nothing of it is touched", folder.display()).into()
        );
    }
    let mut files: Vec<(String, String)> = Vec::new();
    let mut add = |path: &str, text: &str| files.push((path.to_string(), text.to_string()));
    let build = match init.lang {
        Language::C => {
            add(&format!("{name}.c"), sources::C_EXAMPLE);
            for (path, text) in sources::C {
                add(path, text);
            }
            add(
                "Makefile",
                &format!(
                    "CFLAGS ?= -O2 -Wall\n\n{name}: {name}.o libcatena_nf.a\n\t$(CC) -o $@ {name}.o libcatena_nf.a\n\nlibcatena_nf.a: catena_nf.o\n\t$(AR) rcs $@ $<\n\n{name}.o catena_nf.o: catena_nf.h\n\nclean:\n\trm -f {name} *.o *.a\n"
                ),
            );
            "make"
        }
        Language::Rust => {
            add("src/main.rs", sources::EXAMPLE);
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
            "cargo build --release"
        }
    };
    for (path, text) in &files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(|why| format!("{}: {why}", parent.display()))?;
        std::fs::write(&path, text).map_err(|why| format!("{}: {why}", path.display()))?;
    }
    let shown = folder.display();
    print(&format!(
        "{shown} has an access list to begin with.\n  build it:  (cd {shown} && {build})\n  try it:    catena nf run {shown} --pcap in.pcap -w out.pcap --config 'deny 10.0.0.1'\n"
    ));
    Ok(ExitCode::SUCCESS)
}

/// The program of a folder that `init` began.
fn program(path: &str) -> Result<PathBuf, String> {
    let mut files = Beside { folder: PathBuf::new(), most: 0 };
    let folder = Path::new(path);
    if !folder.is_dir() {
        return files.program(path);
    }
    let name = name(folder).ok_or_else(|| format!("{path} is no folder of an NF"))?;
    let places = [
        folder.join(&name),
        folder.join("target/release").join(&name),
        folder.join("target/debug").join(&name),
    ];
    match places.iter().find(|place| place.is_file()) {
        Some(place) => files.program(&place.to_string_lossy()),
        None => Err(format!(
            "{path} has no program '{name}' yet: `make`, or `cargo build --release`, makes it there"
        )),
    }
}

/// What a try makes is in a folder of its own.
fn journal() -> Result<Journal, Failure> {
    let folder = std::env::temp_dir().join(format!("catena-nf-{}", std::process::id()));
    Journal::begin(&folder).map_err(|why| Failure::Message(why.to_string()))
}

fn wrap(pack: &Pack) -> Result<ExitCode, Failure> {
    let path = program(&pack.program)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
    if !is_name(&name) {
        return Err(format!(
            "{}: a program in an image has letters, digits and `_-` in its name, at most 32",
            path.display()
        )
        .into());
    }
    let (arguments, has_runtime) = (pack.arguments.clone(), pack.api == Api::Nf);
    let program = image::Program { name, path, arguments, has_runtime };
    let packed = image::pack(&program, &pack.output, journal()?);
    let packed = packed.map_err(|why| Failure::Message(why.to_string()))?;
    let mut text = String::new();
    for file in &packed.files {
        let _ = writeln!(text, "  {}", file.display());
    }
    let _ = writeln!(
        text,
        "{}: {} bytes, {}",
        pack.output.display(),
        grouped(packed.bytes),
        packed.digest
    );
    print(&text);
    Ok(ExitCode::SUCCESS)
}

fn attempt(run: &Run) -> Result<ExitCode, Failure> {
    let path = program(&run.program)?;
    if !Path::new(&run.pcap).is_file() && run.pcap != "-" {
        return Err(format!("{}: no such capture", run.pcap).into());
    }
    let file = |path: &str| {
        if path.contains('/') || path == "-" { path.to_string() } else { format!("./{path}") }
    };
    let mut spec = HostChain::alone(
        "nf",
        Function::Program(path, Vec::new()),
        run.config.clone(),
        file(&run.pcap),
        file(&run.write),
    );
    spec.batch = run.batch;
    spec.timeout = run.timeout.unwrap_or(spec.timeout);
    spec.nfs[0].writes = !run.read_only;
    spec.nfs[0].limits.threads = run.threads;
    let interrupt = Interrupt::catch();
    let journal = journal()?;
    let ran = serve(spec, journal, None, interrupt, &mut |line| print_error(&format!("{line}\n")))?;
    print(&shown(&ran));
    Ok(ExitCode::SUCCESS)
}
