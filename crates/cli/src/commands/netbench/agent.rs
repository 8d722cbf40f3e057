//! `catena netbench agent`: what `catena netbench run --hosts` starts on another host.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bench::netbench::serve;
use clap::Args;

use crate::failure::Failure;
use crate::signals::interrupt_flag;
use crate::terminal::print_as_it_is;

/// Start switches and applications on this host for 'catena netbench run --hosts' on another one
///
/// It reads what to do from the standard input, and takes all down when that ends.
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct Agent {
    /// Remove the program's file and its folder at once: it was copied for this run alone
    #[arg(long)]
    remove: bool,
}

pub(super) fn main(args: &Agent) -> Result<ExitCode, Failure> {
    let flag = interrupt_flag();
    let mut program =
        std::env::current_exe().map_err(|why| format!("this program's file: {why}"))?;
    if args.remove {
        let removed = std::fs::remove_file(&program);
        removed.map_err(|why| format!("{}: {why}", program.display()))?;
        let _ = program.parent().map(std::fs::remove_dir);
        // Applications are started from the file that has no name any more.
        program = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
    }
    if !rustix::process::geteuid().is_root() {
        let why = "network namespaces and links are made by root: name a user who is root, such as root@host";
        return Err(why.to_string().into());
    }
    // Who asks may be gone: what was made is taken down all the same.
    let print = Arc::new(|line: &str| _ = print_as_it_is(line));
    let is_stopped = move || flag.load(Ordering::Relaxed);
    serve(program, BufReader::new(std::io::stdin()), print, &is_stopped)?;
    Ok(ExitCode::SUCCESS)
}
