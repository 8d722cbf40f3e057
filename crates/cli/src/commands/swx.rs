//! `catena swx`: runs a pipeline of DPDK's software switch.

use std::path::PathBuf;

use clap::Args;

/// Run a pipeline of DPDK's software switch (SWX) that 'catena compile --target swx' wrote
///
/// Frames go between the ports as the pipeline says; one thread polls them. SIGHUP has the entries of tables read
/// again: those that differ are exchanged, all at once. At the end, frames and exits are counted.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXIT_STATUS)]
pub(crate) struct Swx {
    /// Folder with catena.spec and the entries of its tables
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A port of the pipeline, by its number, and the device of DPDK's that it is
    #[arg(long = "port", value_name = "NUMBER=DEVICE", required = true)]
    ports: Vec<String>,
    /// End once so many frames have come
    #[arg(long, value_name = "N")]
    frames: Option<u64>,
    /// Arguments of DPDK's environment abstraction layer, instead of --in-memory --no-telemetry
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    dpdk_eal: Option<String>,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  run until it was interrupted (SIGINT, SIGTERM), or so many frames had come
  1  something failed
  2  the command line is wrong";

/// Runs the command.
#[cfg(not(feature = "dpdk"))]
pub(crate) fn main(args: &Swx) -> Result<std::process::ExitCode, crate::failure::Failure> {
    let Swx { folder, ports: _, frames: _, dpdk_eal: _ } = args;
    Err(crate::failure::Failure::Usage(format!(
        "{}: this catena was built without DPDK; build it with `--features catena-cli/dpdk`",
        folder.display()
    )))
}

#[cfg(feature = "dpdk")]
pub(crate) use with_dpdk::main;

#[cfg(feature = "dpdk")]
mod with_dpdk {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::Path;
    use std::process::ExitCode;
    use std::sync::atomic::Ordering;

    use codegen::swx;
    use codegen::swx::change::{Edit, Entries, Held};
    use codegen::swx::spec::Spec;
    use dataplane::io::swx::{Attached, Control, build};

    use super::Swx;
    use crate::failure::Failure;
    use crate::signals::{hang_up_flag, interrupt_flag};
    use crate::terminal::{print, print_error};

    /// Instructions that are executed before signals are looked at.
    const TURN: u32 = 10_000;
    /// Turns in which frames that came last are done.
    const LAST_TURNS: usize = 20;

    fn read(path: &Path) -> Result<String, String> {
        fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))
    }

    fn entries(folder: &Path, spec: &Spec) -> Result<Entries, String> {
        let mut all = Entries::new();
        for table in &spec.tables {
            let path = folder.join(swx::entries_of(&table.name));
            let mut own = swx::spec::entries(&read(&path)?)
                .map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))?;
            own.sort_by_key(|entry| entry.priority);
            all.insert(table.name.clone(), own);
        }
        Ok(all)
    }

    /// Has tables hold other entries, all at once.
    fn apply(control: &Control, edits: &[Edit]) -> Result<(), String> {
        let all = || {
            for edit in edits {
                match edit {
                    Edit::Delete(table, line) => control.delete(table, line)?,
                    Edit::Add(table, line) => control.add(table, line)?,
                }
            }
            control.commit()
        };
        all().inspect_err(|_| control.abort())
    }

    /// Reads entries again and has tables hold them. What they hold then.
    fn change(
        folder: &Path,
        (text, spec): (&str, &Spec),
        control: &Control,
        held: &Held,
    ) -> Result<Held, String> {
        if read(&folder.join(swx::SPEC))? != text {
            return Err(format!("{} is another pipeline now; start it anew", swx::SPEC));
        }
        let new = entries(folder, spec)?;
        let (edits, held) = held.change(spec, &new);
        apply(control, &edits)?;
        print_error(&format!("{} entries exchanged\n", edits.len()));
        if !held.is_full() {
            return Ok(held);
        }
        let (edits, folded) = held.fold(&new);
        match apply(control, &edits) {
            Ok(()) => {
                print_error("long tables were built anew\n");
                Ok(folded)
            }
            Err(why) => {
                print_error(&format!("warning: {why}; long tables stay as they are\n"));
                Ok(held)
            }
        }
    }

    fn ports(args: &Swx) -> Result<BTreeMap<u32, Attached>, String> {
        let mut all = BTreeMap::new();
        for text in &args.ports {
            let port = text.split_once('=').and_then(|(number, device)| {
                let number = number.parse::<u32>().ok().filter(|number| *number < 4095)?;
                Some((number, Attached::Device(device.into())))
            });
            let (number, device) = port.ok_or_else(|| {
                format!("--port {text}: NUMBER=DEVICE was expected, as in 1=net_tap0")
            })?;
            if all.insert(number, device).is_some() {
                return Err(format!("--port {text}: port {number} is named twice"));
            }
        }
        Ok(all)
    }

    pub(crate) fn main(args: &Swx) -> Result<ExitCode, Failure> {
        let ports = ports(args).map_err(Failure::Usage)?;
        let path = args.folder.join(swx::SPEC);
        let text = read(&path)?;
        let spec =
            Spec::read(&text).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))?;
        let first = entries(&args.folder, &spec)?;
        let (interrupted, hung_up) = (interrupt_flag(), hang_up_flag());
        let (mut runner, control) = build("catena", &spec, &ports, args.dpdk_eal.as_deref())?;
        let (edits, mut held) = Held::default().fold(&first);
        apply(&control, &edits)?;
        print_error(&format!("{} ports, {} tables\n", ports.len(), spec.tables.len()));
        let came = || -> u64 { ports.keys().map(|port| control.counts(*port).received).sum() };
        // Tables are built aside; the pipeline goes on meanwhile.
        std::thread::scope(|scope| -> Result<(), String> {
            let mut changing = None;
            while !interrupted.load(Ordering::Relaxed) {
                if changing.is_none() && hung_up.swap(false, Ordering::Relaxed) {
                    let (control, before) = (control.clone(), held.clone());
                    let of = (text.as_str(), &spec);
                    let work = move || change(&args.folder, of, &control, &before);
                    changing = Some(scope.spawn(work));
                }
                if let Some(changed) = changing.take_if(|changed| changed.is_finished()) {
                    match changed.join() {
                        Ok(Ok(after)) => held = after,
                        Ok(Err(why)) => print_error(&format!("error: {why}; entries stay\n")),
                        Err(_) => return Err("reading entries failed".into()),
                    }
                }
                runner.run(TURN);
                runner.flush();
                if args.frames.is_some_and(|frames| came() >= frames) {
                    break;
                }
            }
            Ok(())
        })?;
        for _ in 0..LAST_TURNS {
            runner.run(TURN);
        }
        runner.flush();
        let mut report = String::from("port      received          sent\n");
        for port in ports.keys() {
            let counts = control.counts(*port);
            let _ = writeln!(report, "{port:4} {:13} {:13}", counts.received, counts.sent);
        }
        report.push_str("exit       packets\n");
        let classes = spec.registers.iter().find(|of| of.name == swx::CLASSES);
        for exit in 0..classes.map_or(0, |of| of.size) {
            match control.register(swx::CLASSES, exit)? {
                0 => {}
                packets => {
                    let _ = writeln!(report, "{exit:4} {packets:13}");
                }
            }
        }
        print(&report);
        Ok(ExitCode::SUCCESS)
    }
}
