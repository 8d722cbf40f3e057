//! Sockets that a run opens: who can use them, and what becomes of those that are there already.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command};

use crate::program::Folder;

const CHAIN: &str = "Idle -> Discard; cs :: ControlSocket(unix, element);";
const SOCKETS: [&str; 3] = ["control", "option", "element"];
const OPTIONS: [&str; 6] = ["run", "chain.click", "--control", "control", "-u", "option"];

/// A run that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts one, and waits until it answers.
    fn start(folder: &Folder, command: &mut Command) -> Self {
        let mut running = Self(command.spawn().unwrap());
        loop {
            let ended = running.0.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {ended:?}");
            if folder.run(["ctl", "--socket", "control", "status"]).code == Some(0) {
                return running;
            }
        }
    }
}

fn start(folder: &Folder) -> Running {
    let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
    Running::start(folder, command.args(OPTIONS))
}

#[test]
fn sockets_are_their_owners_whatever_the_umask() {
    for umask in ["000", "022", "077"] {
        let folder = Folder::new();
        folder.file("chain.click", CHAIN);
        let mut command = folder.command(Path::new("sh"));
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_catena")]).args(OPTIONS);
        let _running = Running::start(&folder, &mut command);
        for socket in SOCKETS {
            let found = std::fs::metadata(folder.path().join(socket)).unwrap();
            assert_eq!(found.permissions().mode() & 0o7777, 0o600, "{socket}, umask {umask}");
        }
    }
}

#[test]
fn sockets_that_a_crash_left_are_replaced_and_others_are_not() {
    let folder = Folder::new();
    folder.file("chain.click", CHAIN).file("other.click", "Idle -> Discard;");
    // The kernel leaves their files there, as after a crash.
    for socket in SOCKETS {
        drop(UnixListener::bind(folder.path().join(socket)).unwrap());
    }
    drop(start(&folder));
    // It was killed, and left them, too.
    let running = start(&folder);
    assert!(SOCKETS.iter().all(|socket| folder.path().join(socket).exists()));
    for (options, why) in [
        (
            ["other.click", "--control", "control"],
            "--control control: another instance listens there",
        ),
        (["other.click", "-u", "option"], "control socket: option: another instance listens there"),
        (["chain.click", "-u", "new"], "cs: element: another instance listens there"),
    ] {
        let ended = folder.run(["run"].iter().chain(&options));
        assert!(ended.refused().contains(why), "{}", ended.err);
    }
    assert!(!folder.path().join("new").exists(), "of a run that was refused");
    let answered = folder.run(["ctl", "--socket", "control", "status"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    drop(running);
}

/// Nobody who connects to a port is asked who he is.
#[test]
fn ports_are_of_this_host_unless_asked_for_and_who_can_write_is_told() {
    for (more, told, by_any_address) in [
        ("", "every user of this host can read and write handlers", false),
        (", READONLY true", "every user of this host can read handlers", false),
        (
            ", LOCALHOST false",
            "everybody who reaches this host by any of its addresses can read and write handlers",
            true,
        ),
    ] {
        let folder = Folder::new();
        folder.file("chain.click", format!("Idle -> Discard; cs :: ControlSocket(tcp, 0{more});"));
        let mut command = folder.command(Path::new(env!("CARGO_BIN_EXE_catena")));
        let mut running = Running(command.args(&OPTIONS[..4]).spawn().unwrap());
        let lines = BufReader::new(running.0.stderr.take().unwrap()).lines();
        let mut lines = lines.map(|line| line.unwrap());
        let said = lines.find(|line| line.starts_with("cs: ")).unwrap();
        let (port, who) = said.strip_prefix("cs: TCP port ").unwrap().split_once(": ").unwrap();
        assert_eq!(who, told);
        let port: u16 = port.parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert_eq!(TcpStream::connect(("127.0.0.2", port)).is_ok(), by_any_address, "{more}");
    }
}
