//! Two hosts and the one between them that runs a chain: network namespaces of the test's own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// How long anything may take before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Whether these tests can run here; says why not. In continuous integration they must.
pub(crate) fn possible() -> bool {
    let why = if !rustix::process::geteuid().is_root() {
        "network namespaces are made by root"
    } else if Command::new("ip").arg("-V").output().is_err() {
        "there is no program 'ip' (package iproute2)"
    } else {
        return true;
    };
    assert!(std::env::var_os("CI").is_none(), "not run: {why}");
    eprintln!("not run: {why}");
    false
}

/// Runs a program to its end.
#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{program}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {said}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Left host (10.1.0.2), middle (eth0 to the left, eth1 to the right), right host (10.2.0.2). The
/// hosts are also 10.9.0.2 and 10.9.0.3, for when there is no router between them.
pub(crate) struct Lab {
    name: String,
    folder: PathBuf,
}

/// MAC addresses of the middle's interfaces.
pub(crate) const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

impl Lab {
    /// Makes the namespaces, with packets of up to `mtu` bytes on the links.
    pub(crate) fn new(mtu: usize) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catena{}n{count}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        let lab = Self { name, folder };
        for host in ["left", "middle", "right"] {
            lab.add(host);
        }
        lab.connect("left", "eth0", MACS[0], mtu);
        lab.connect("right", "eth1", MACS[1], mtu);
        lab
    }

    /// The name of a host's namespace.
    pub(crate) fn host(&self, host: &str) -> String {
        format!("{}{host}", self.name)
    }

    /// Adds a host without links; one besides the three is called `aside`.
    pub(crate) fn add(&self, host: &str) {
        run("ip", &["netns", "add", &self.host(host)]);
        // No IPv6 hosts of its own accord: every frame on the links is one of the test's.
        let off = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
        self.on(host, "sh", &["-c", off]);
    }

    /// Connects a host to the middle.
    pub(crate) fn connect(&self, host: &str, interface: &str, mac: &str, mtu: usize) {
        let (middle, far, mtu) = (self.host("middle"), self.host(host), mtu.to_string());
        let queues = ["numrxqueues", "4", "numtxqueues", "4"];
        let mut link =
            vec!["link", "add", interface, "netns", &middle, "address", mac, "mtu", &mtu];
        link.extend(queues);
        link.extend(["type", "veth", "peer", "name", "veth0", "mtu", &mtu]);
        link.extend(["netns", &far]);
        link.extend(queues);
        run("ip", &link);
        self.ip("middle", &["link", "set", interface, "up"]);
        self.ip(host, &["link", "set", "lo", "up"]);
        self.ip(host, &["link", "set", "veth0", "up"]);
        let (net, flat) = match host {
            "left" => ("10.1.0", "10.9.0.2"),
            _ => ("10.2.0", "10.9.0.3"),
        };
        for address in [&format!("{net}.2"), flat] {
            self.ip(host, &["addr", "add", &format!("{address}/24"), "dev", "veth0"]);
        }
        self.ip(host, &["route", "add", "default", "via", &format!("{net}.1")]);
    }

    /// Runs `ip` on a host.
    #[track_caller]
    pub(crate) fn ip(&self, host: &str, arguments: &[&str]) -> String {
        let host = self.host(host);
        let mut all = vec!["-n", &host];
        all.extend(arguments);
        run("ip", &all)
    }

    pub(crate) fn command(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(host), program]);
        command
    }

    /// Runs a program on a host.
    #[track_caller]
    pub(crate) fn on(&self, host: &str, program: &str, arguments: &[&str]) -> String {
        let output = self.try_on(host, program, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{program} {}: {said}{text}", arguments.join(" "));
        text
    }

    /// Runs a program on a host; it may fail.
    pub(crate) fn try_on(&self, host: &str, program: &str, arguments: &[&str]) -> Output {
        let output = self.command(host, program).args(arguments).output();
        output.unwrap_or_else(|e| panic!("{program}: {e}"))
    }

    /// Pings from a host until three answers came.
    #[track_caller]
    pub(crate) fn ping(&self, host: &str, arguments: &[&str]) {
        let mut all = vec!["-n", "-c", "3", "-i", "0.01", "-w", "20"];
        all.extend(arguments);
        self.on(host, "ping", &all);
    }

    /// Does something on a host, in a thread of its own.
    pub(crate) fn at<T: Send + 'static>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        let path = format!("/run/netns/{}", self.host(host));
        std::thread::spawn(move || {
            let namespace = std::fs::File::open(path).unwrap();
            use std::os::fd::AsFd;
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        })
    }

    /// Runs a chain in the middle, and waits until it has opened its interfaces.
    #[track_caller]
    pub(crate) fn run(&self, chain: &str, arguments: &[&str]) -> Running {
        self.run_on("middle", chain, arguments)
    }

    /// Runs a chain on a host, and waits until it has opened its interfaces.
    #[track_caller]
    pub(crate) fn run_on(&self, host: &str, chain: &str, arguments: &[&str]) -> Running {
        let mut running = self.start_on(host, chain, arguments);
        let interfaces = chain.matches("FromDevice(").count();
        let opened = |line: &&String| line.contains(", mtu ");
        while running.lines.iter().filter(opened).count() < interfaces {
            assert!(running.next_line(), "it ended: {}", running.told());
        }
        running
    }

    /// What a chain in the middle says when it does not start.
    #[track_caller]
    pub(crate) fn refusal(&self, chain: &str, arguments: &[&str]) -> String {
        let (well, _, told) = self.start_on("middle", chain, arguments).end();
        assert!(!well, "it ran: {told}");
        told
    }

    /// Writes a configuration; its path.
    pub(crate) fn file(&self, name: &str, chain: &str) -> PathBuf {
        let file = self.folder().join(format!("{name}.click"));
        std::fs::write(&file, chain).unwrap();
        file
    }

    /// The folder of the test's files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a chain on a host.
    pub(crate) fn start_on(&self, host: &str, chain: &str, arguments: &[&str]) -> Running {
        let file = self.file(host, chain);
        let mut command = self.command(host, env!("CARGO_BIN_EXE_catena"));
        command.arg("run").arg(&file).args(arguments);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (to, lines) = channel();
        // It shall never wait for somebody to listen, unless a test says so.
        let reading = Arc::new(Mutex::new(()));
        let may_read = Arc::clone(&reading);
        std::thread::spawn(move || {
            errors.lines().map_while(Result::ok).try_for_each(|line| {
                drop(may_read.lock());
                to.send(line + "\n")
            })
        });
        let output = BufReader::new(child.stdout.take().unwrap());
        Running { child, errors: lines, reading, output, lines: Vec::new() }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in ["left", "middle", "right", "aside"] {
            let _ = Command::new("ip").args(["netns", "del", &self.host(host)]).output();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A chain that runs.
pub(crate) struct Running {
    child: Child,
    /// What it says on the standard error, line by line.
    errors: Receiver<String>,
    /// While this is locked, nobody reads what it says.
    pub(crate) reading: Arc<Mutex<()>>,
    output: BufReader<ChildStdout>,
    lines: Vec<String>,
}

impl Running {
    /// Waits for a line on the standard error; `false` if there is none any more.
    fn next_line(&mut self) -> bool {
        let line = self.errors.recv();
        let is_one = line.is_ok();
        self.lines.extend(line);
        is_one
    }

    /// Waits until it says something.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.lines.iter().any(|line| line.contains(text)) {
            assert!(self.next_line(), "it never said '{text}': {}", self.told());
        }
    }

    /// What it said on the standard error so far.
    pub(crate) fn told(&self) -> String {
        self.lines.concat()
    }

    /// Waits for this line on the standard output.
    #[track_caller]
    pub(crate) fn wait_for_output(&mut self, text: &str) {
        let mut line = String::new();
        while line.trim_end() != text {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it never printed '{text}'");
        }
    }

    /// The processor time that its threads have used.
    pub(crate) fn processor_time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let used = |thread: std::fs::DirEntry| -> Option<u64> {
            let schedule = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            schedule.split(' ').next()?.parse().ok()
        };
        Duration::from_nanos(threads.filter_map(|thread| used(thread.ok()?)).sum())
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        // `ip netns exec` has become the program.
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end: whether it went well, what it said on the standard output and error.
    pub(crate) fn end(self) -> (bool, String, String) {
        let (status, text, told) = self.ended();
        (status == Some(0), text, told)
    }

    /// Waits for its end: its exit status, what it said on the standard output and error.
    pub(crate) fn ended(mut self) -> (Option<i32>, String, String) {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        while self.next_line() {}
        let status = self.child.wait().unwrap();
        (status.code(), text, self.told())
    }

    /// Presses Ctrl-C and waits for its end.
    #[track_caller]
    pub(crate) fn stop(self) -> String {
        self.interrupt();
        let (well, text, errors) = self.end();
        assert!(well, "{errors}{text}");
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// Bytes that are not the same anywhere.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..count).map(|_| random.u8(..)).collect()
}

/// Sends bytes from the left to the right, and others back, over TCP.
#[track_caller]
pub(crate) fn exchange(lab: &Lab, address: &'static str, count: usize) {
    exchange_between(lab, ["left", "right"], address, count);
}

/// The same between other hosts, of which the second has the address.
#[track_caller]
pub(crate) fn exchange_between(
    lab: &Lab,
    [client, server]: [&str; 2],
    address: &'static str,
    count: usize,
) {
    let (to, from) = std::sync::mpsc::channel();
    let server = lab.at(server, move || {
        let listener = TcpListener::bind((address, 0)).unwrap();
        to.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut received = vec![0; count];
        stream.read_exact(&mut received).unwrap();
        stream.write_all(&received).unwrap();
        received
    });
    let client = lab.at(client, move || {
        let mut stream = TcpStream::connect_timeout(&from.recv().unwrap(), PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&bytes(count)).unwrap();
        let mut received = vec![0; count];
        stream.read_exact(&mut received).unwrap();
        received
    });
    let back = client.join().expect("the client got an answer");
    assert!(back == bytes(count), "bytes changed on the way");
    assert!(server.join().unwrap() == bytes(count), "bytes changed on the way there");
}

/// Runs `catena ctl`.
fn run_ctl(socket: &Path, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catena"));
    let output = command.arg("ctl").arg("--socket").arg(socket).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// What `catena ctl` prints.
#[track_caller]
pub(crate) fn ctl(socket: &Path, arguments: &[&str]) -> String {
    let (is_done, printed, said) = run_ctl(socket, arguments);
    assert!(is_done, "{arguments:?}: {said}{printed}");
    printed
}

/// Why `catena ctl` refuses something.
#[track_caller]
pub(crate) fn refused(socket: &Path, arguments: &[&str]) -> String {
    let (is_done, printed, said) = run_ctl(socket, arguments);
    assert!(!is_done, "{arguments:?}: {printed}");
    said
}
