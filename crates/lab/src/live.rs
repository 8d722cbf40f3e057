//! Chains on links of the kernel's: two hosts and the one between them that runs a chain.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

mod by_hand;
pub mod network;
pub mod process;

pub use network::{MACS, Network};
pub use process::{PATIENCE, Process, until};

/// Whether tests with network namespaces can run here; prints why not. In continuous integration they must.
#[allow(clippy::print_stderr, reason = "who runs a test shall know what it did not test")]
pub fn possible() -> bool {
    let why = network::impossible();
    if let Some(why) = why {
        assert!(std::env::var_os("CI").is_none(), "not run: {why}");
        eprintln!("not run: {why}");
    }
    why.is_none()
}

/// Left host (10.1.0.2), middle (eth0 to the left, eth1 to the right), right host (10.2.0.2). The
/// hosts are also 10.9.0.2 and 10.9.0.3, for when there is no router between them.
pub struct Lab {
    network: Network,
    catena: Catena,
}

impl Lab {
    /// Makes the namespaces, with packets of up to `mtu` bytes on the links.
    pub fn new(catena: Catena, mtu: usize) -> Self {
        let lab = Self { network: Network::new(&["left", "middle", "right"]), catena };
        lab.connect("left", "eth0", MACS[0], mtu);
        lab.connect("right", "eth1", MACS[1], mtu);
        lab
    }

    /// Connects a host to the middle.
    pub fn connect(&self, host: &str, interface: &str, mac: &str, mtu: usize) {
        let mtu = mtu.to_string();
        let options = ["mtu", &mtu, "numrxqueues", "4", "numtxqueues", "4"];
        self.link([("middle", interface), (host, "veth0")], mac, &options);
        self.ip(host, &["link", "set", "lo", "up"]);
        let (net, flat) = match host {
            "left" => ("10.1.0", "10.9.0.2"),
            _ => ("10.2.0", "10.9.0.3"),
        };
        for address in [&format!("{net}.2"), flat] {
            self.ip(host, &["addr", "add", &format!("{address}/24"), "dev", "veth0"]);
        }
        self.ip(host, &["route", "add", "default", "via", &format!("{net}.1")]);
    }

    /// Pings from a host until three answers came.
    #[track_caller]
    pub fn ping(&self, host: &str, arguments: &[&str]) {
        let three = ["-n", "-c", "3", "-i", "0.01", "-w", "20"];
        self.on(host, "ping", &[&three, arguments].concat());
    }

    /// Runs a chain in the middle, and waits until it has opened its interfaces.
    #[track_caller]
    pub fn run(&self, chain: &str, arguments: &[&str]) -> Process {
        self.run_on("middle", chain, arguments)
    }

    /// Runs a chain on a host, and waits until it has opened its interfaces.
    #[track_caller]
    pub fn run_on(&self, host: &str, chain: &str, arguments: &[&str]) -> Process {
        let mut running = self.start_on(host, chain, arguments);
        running.wait_for_lines(", mtu ", chain.matches("FromDevice(").count());
        running
    }

    /// What a chain in the middle says when it does not start.
    #[track_caller]
    pub fn refusal(&self, chain: &str, arguments: &[&str]) -> String {
        let (well, _, told) = self.start_on("middle", chain, arguments).end();
        assert!(!well, "it ran: {told}");
        told
    }

    /// Starts a chain on a host.
    pub fn start_on(&self, host: &str, chain: &str, arguments: &[&str]) -> Process {
        let mut command = self.command(host, self.catena.0);
        command.arg("run").arg(self.file(host, chain)).args(arguments).stdin(Stdio::null());
        Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    /// Sends bytes from the left to the right, and others back, over TCP.
    #[track_caller]
    pub fn exchange(&self, address: &'static str, count: usize) {
        self.exchange_between(["left", "right"], address, count);
    }

    /// The same between other hosts, of which the second has the address.
    #[track_caller]
    pub fn exchange_between(&self, hosts: [&str; 2], address: &'static str, count: usize) {
        self.exchange_by(hosts, [address; 2], count);
    }

    /// The same where the second host has the first address, and the client knows it by the second.
    #[track_caller]
    pub fn exchange_by(&self, hosts: [&str; 2], addresses: [&'static str; 2], count: usize) {
        let [client, server] = hosts;
        let [address, known] = addresses;
        let patient = |stream: &TcpStream| {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
        };
        let (to, from) = channel();
        let server = self.at(server, move || {
            let listener = TcpListener::bind((address, 0)).unwrap();
            to.send(listener.local_addr().unwrap().port()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            patient(&stream);
            let mut received = vec![0; count];
            stream.read_exact(&mut received).unwrap();
            stream.write_all(&received).unwrap();
            received
        });
        let client = self.at(client, move || {
            let server = (known.parse::<IpAddr>().unwrap(), from.recv().unwrap()).into();
            let mut stream = TcpStream::connect_timeout(&server, PATIENCE).unwrap();
            patient(&stream);
            stream.write_all(&bytes(count)).unwrap();
            let mut received = vec![0; count];
            stream.read_exact(&mut received).unwrap();
            received
        });
        let back = client.join().expect("the client got an answer");
        assert!(back == bytes(count), "bytes changed on the return path");
        assert!(server.join().unwrap() == bytes(count), "bytes changed on the forward path");
    }
}

impl Deref for Lab {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.network
    }
}

impl DerefMut for Lab {
    fn deref_mut(&mut self) -> &mut Network {
        &mut self.network
    }
}

/// Bytes that are not the same anywhere.
pub fn bytes(count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    (0..count).map(|_| random.u8(..)).collect()
}

/// The path of the program, which cargo tells tests and benches of its crate alone.
#[derive(Clone, Copy)]
pub struct Catena(pub &'static str);

impl Catena {
    /// Runs `catena ctl`.
    fn run_ctl(self, socket: &Path, arguments: &[&str]) -> (bool, String, String) {
        let mut command = Command::new(self.0);
        let output = command.arg("ctl").arg("--socket").arg(socket).args(arguments).output();
        let output = output.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    }

    /// What `catena ctl` prints.
    #[track_caller]
    pub fn ctl(self, socket: &Path, arguments: &[&str]) -> String {
        let (is_done, printed, said) = self.run_ctl(socket, arguments);
        assert!(is_done, "{arguments:?}: {said}{printed}");
        printed
    }

    /// Why `catena ctl` refuses something.
    #[track_caller]
    pub fn refused(self, socket: &Path, arguments: &[&str]) -> String {
        let (is_done, printed, said) = self.run_ctl(socket, arguments);
        assert!(!is_done, "{arguments:?}: {printed}");
        said
    }
}
