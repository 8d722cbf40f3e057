//! `catena fmt`: prints configurations in canonical form.

use std::fs::File;
use std::io::{Write, stderr};
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::Disk;
use ir::Sources;
use view::diagnostics;

use crate::limits::TextLimit;
use crate::terminal::{colours, print, print_error};

/// Format configuration files in place
///
/// A file with syntax errors is left as it is, and the errors are printed. `-` reads standard input and
/// writes standard output.
#[derive(Args, Debug)]
pub(crate) struct Fmt {
    /// Configuration files; `-` for standard input
    #[arg(required = true)]
    files: Vec<String>,
    /// Change nothing; list files that are not formatted, with exit status 1 if there are any
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print the formatted text instead of changing files
    #[arg(long)]
    stdout: bool,
    #[command(flatten)]
    limit: TextLimit,
}

/// Runs the command.
pub(crate) fn main(args: &Fmt) -> Result<ExitCode, String> {
    let mut failed = false;
    for name in &args.files {
        match format(name, args) {
            Ok(clean) => failed |= !clean,
            Err(why) => {
                print_error(&format!("{why}\n"));
                failed = true;
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Formats one file; whether all was well.
fn format(name: &str, args: &Fmt) -> Result<bool, String> {
    let mut sources = Sources::new();
    let text = read(name, args.limit).map_err(|why| format!("error: {name}: {why}"))?;
    let file = sources.add(name, text);
    let formatted = match click::format(&mut sources, file) {
        Ok(formatted) => formatted,
        Err(found) => {
            let rendered = diagnostics::render(&found, &sources, colours(&stderr()));
            return Err(format!("{rendered}note: {name} is left as it is"));
        }
    };
    let same = **sources.text(file) == *formatted;
    if args.check {
        if !same {
            print(&format!("{name} is not formatted\n"));
        }
        return Ok(same);
    }
    if args.stdout || name == "-" {
        print(&formatted);
    } else if !same {
        replace(Path::new(name), &formatted).map_err(|why| format!("error: {name}: {why}"))?;
    }
    Ok(true)
}

/// The text exactly as it is: what was decoded with losses must not be written back.
fn read(name: &str, limit: TextLimit) -> Result<String, String> {
    let bytes = Disk::up_to(limit.bytes()).bytes(name)?;
    String::from_utf8(bytes).map_err(|e| {
        format!("byte {} is not UTF-8; it is left as it is", e.utf8_error().valid_up_to())
    })
}

/// Replaces a file as a whole: an interrupted run leaves the old one or the new one.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // A link stays a link.
    let path = path.canonicalize()?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let fresh = path.with_file_name(name);
    // What has that name already, be it a link, is not written to.
    let mut file = File::create_new(&fresh)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.set_permissions(std::fs::metadata(&path)?.permissions()))
        .and_then(|()| std::fs::rename(&fresh, &path));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written
}
