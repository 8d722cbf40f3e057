//! Servers of a plan: `catena run` in the namespace of each, behind the switch.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant};

use dataplane::worker;
use host::{Journal, Process};

use super::Home;
use super::status::{Server, State};
use crate::failure::Failure;
use crate::terminal::print_error;

/// How long a server may take until it runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it is looked at meanwhile.
const OFTEN: Duration = Duration::from_millis(200);

/// Lines of a server's log that are shown when it does not start.
const SHOWN: usize = 20;

/// Warns of a server that has fewer CPUs than were planned.
pub(super) fn too_few(server: &Server) {
    let (wanted, some) = (server.cores.max(1), server.cpus.len());
    if some < wanted {
        print_error(&format!(
            "warning: '{}' was planned with {wanted} cores, and this host has {some} for it: what was planned there does not hold \
             here\n",
            server.name
        ));
    }
}

/// Starts servers that do not run, of those that are meant, and waits until each does; their names.
pub(super) fn start_all(
    journal: &Journal,
    at: &Home,
    state: &mut State,
    io: Option<&str>,
    is_interrupted: &dyn Fn() -> bool,
    is_meant: &dyn Fn(&str) -> bool,
) -> Result<Vec<String>, Failure> {
    let program = std::env::current_exe().map_err(|why| format!("this program: {why}"))?;
    let mut free = worker::cpus();
    for server in state.servers.iter().filter(|server| server.process != 0) {
        free.retain(|cpu| !server.cpus.contains(cpu));
    }
    let mut started = Vec::new();
    let waits = |server: &&mut Server| server.process == 0 && is_meant(&server.name);
    for server in state.servers.iter_mut().filter(waits) {
        let wanted = server.cores.max(1);
        let some: Vec<usize> = free.drain(..wanted.min(free.len())).collect();
        server.cpus = some;
        too_few(server);
        if server.cpus.is_empty() {
            server.cpus = worker::cpus()[..1].to_vec();
        }
        server.socket = at.file(&format!("{}.sock", server.name));
        let mut command = match &server.netns {
            None => Command::new(&program),
            Some(netns) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", netns]).arg(&program);
                command
            }
        };
        let list: Vec<String> = server.cpus.iter().map(usize::to_string).collect();
        command.arg("run").arg(at.chain()).arg("--topology").arg(at.topology());
        command.args(["--server", &server.name]);
        command.arg("--control").arg(&server.socket).args(["--cores", &list.join(",")]);
        if let Some(io) = io {
            command.args(["--io", io]);
        }
        let ready = at.folder.join(format!("{}.ready", server.name));
        // Those of an earlier plan.
        for path in [ready.as_path(), server.socket.as_ref()] {
            let _ = std::fs::remove_file(path);
        }
        let socket =
            UnixDatagram::bind(&ready).map_err(|why| format!("{}: {why}", ready.display()))?;
        command.env("NOTIFY_SOCKET", &ready);
        let log = at.folder.join(format!("{}.log", server.name));
        let process = journal.start(&mut command, &log).map_err(|why| super::words(&why))?;
        server.process = process.number;
        started.push((server.name.clone(), process, socket, log));
    }
    for (name, process, socket, log) in &started {
        wait(socket, process, is_interrupted).map_err(|why| {
            let said = std::fs::read_to_string(log).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n  ");
            format!("server '{name}' {why}:\n  {last}")
        })?;
    }
    Ok(started.into_iter().map(|(name, ..)| name).collect())
}

/// Waits until a process says that it is ready.
fn wait(
    socket: &UnixDatagram,
    process: &Process,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), String> {
    let begin = Instant::now();
    socket.set_read_timeout(Some(OFTEN)).map_err(|why| why.to_string())?;
    let mut said = [0; 256];
    loop {
        match socket.recv(&mut said) {
            Ok(length) if said[..length].starts_with(b"READY=1") => return Ok(()),
            Ok(_) => {}
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(why) => return Err(why.to_string()),
        }
        if !process.is_running() {
            return Err("does not run".into());
        }
        if is_interrupted() {
            return Err("was interrupted while it started".into());
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("is not ready after {} s", PATIENCE.as_secs()));
        }
    }
}
