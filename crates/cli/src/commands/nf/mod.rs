//! `catena nf`: writing network functions, and trying them.

mod init;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use host::manifest::{Function, is_name, time};
use host::{HostChain, Journal, image};
use view::table::grouped;

use crate::commands::host::{serve, shown};
use crate::commands::nf::init::{Init, begin, program, threads};
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
    /// Its threads; one, or 16 for the folder of a function in Go
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// Map packets without the right to write, as `writes: none` does
    #[arg(long)]
    read_only: bool,
}

/// Make an image of a network function: an OCI layout with its program and shared libraries
///
/// That of a function in Python has its folder, the interpreter and its standard library. A host chain runs it as `image: acl.oci`; other container tools read it, too. The program is started for a moment, to see
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

/// What a try makes is in a folder of its own.
fn journal() -> Result<Journal, Failure> {
    let folder = std::env::temp_dir().join(format!("catena-nf-{}", std::process::id()));
    Journal::begin(&folder).map_err(|why| Failure::Message(why.to_string()))
}

fn wrap(pack: &Pack) -> Result<ExitCode, Failure> {
    let (path, name) = program(&pack.program)?;
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
    for line in listed(&packed.files) {
        let _ = writeln!(text, "  {line}");
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

/// Files of an image; those of a large folder are one line.
fn listed(files: &[PathBuf]) -> Vec<String> {
    const MOST: usize = 64;
    // A folder directly below `/usr/lib`, or `/opt`.
    let folder = |file: &Path| -> PathBuf { file.components().take(4).collect() };
    let mut lines: Vec<String> = Vec::new();
    for same in files.chunk_by(|one, next| folder(one) == folder(next)) {
        match same.len() > MOST {
            true => lines.push(format!("{}/: {} files", folder(&same[0]).display(), same.len())),
            false => lines.extend(same.iter().map(|file| file.display().to_string())),
        }
    }
    lines
}

fn attempt(run: &Run) -> Result<ExitCode, Failure> {
    let (path, _) = program(&run.program)?;
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
    spec.nfs[0].limits.threads = run.threads.unwrap_or_else(|| threads(&run.program));
    let interrupt = Interrupt::catch();
    let journal = journal()?;
    let ran = serve(spec, journal, None, interrupt, &mut |line| print_error(&format!("{line}\n")))?;
    print(&shown(&ran));
    Ok(ExitCode::SUCCESS)
}
