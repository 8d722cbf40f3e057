//! Real clients and servers (curl, nginx and iperf3) speak through network functions, and get all bytes as they were sent.

mod balanced;
mod checked;
mod refused;
mod served;

use std::path::PathBuf;

use lab::live::{Lab, bytes, possible};
use serde_json::Value;

use crate::CATENA;
use crate::traffic::BOUND;
use served::Server;

/// A chain that declares `nf`, and what stands around it.
fn between(nf: &str) -> String {
    include_str!("clients/between.click").replace("NF\n", nf)
}

const NAPT: &str = "nf :: NAPT(198.51.100.1);";
const ENDPOINT: &str =
    "nf :: NAPT(198.51.100.0/29, MAPPING endpoint, FILTERING endpoint, PARITY true);";
const FIREWALL: &str =
    "nf :: Firewall(allow tcp dst port 80 or 443 or 8080 or 5201, allow udp dst port 5201);";
const LB: &str = "nf :: LB(10.2.0.2 10.2.0.3, VIP 10.2.0.100, POLICY source-hash);";
/// Reads all that clients say, and refuses nothing of it.
const FILTER: &str = "nf :: { input[0] -> urls :: UrlFilter(urls.txt) -> [0] output;
    urls[1] -> [1] output; input[1] -> [1] output; };";

/// Network functions, and the address that clients ask.
const FUNCTIONS: [(&str, &str); 5] =
    [(NAPT, SERVER), (ENDPOINT, SERVER), (FIREWALL, SERVER), (LB, "10.2.0.100"), (FILTER, SERVER)];

/// What the host of the servers is called.
const SERVER: &str = "10.2.0.2";

/// Bytes of the larger file.
const LARGE: usize = 4_000_000;

/// A client on the left and servers on the right.
struct Clients {
    lab: Lab,
}

impl Clients {
    fn new() -> Self {
        let lab = Lab::new(CATENA, 1500);
        for (host, mac) in [("left", "02:00:00:00:01:02"), ("right", "02:00:00:00:02:02")] {
            lab.ip(host, &["link", "set", "veth0", "address", mac]);
        }
        for address in ["10.2.0.3/24", "10.2.0.4/24"] {
            lab.ip("right", &["addr", "add", address, "dev", "veth0"]);
        }
        std::fs::write(lab.folder().join("urls.txt"), "nobody.example\n").unwrap();
        Self { lab }
    }

    /// The path of a file of the test.
    fn path(&self, name: &str) -> PathBuf {
        self.lab.folder().join(name)
    }

    /// Has connections stay busy: what a client does not read, its server has to keep.
    fn keep_busy(&self) {
        for host in ["left", "right"] {
            for buffer in ["tcp_rmem", "tcp_wmem"] {
                let set = format!("echo 4096 65536 131072 > /proc/sys/net/ipv4/{buffer}");
                self.lab.on(host, "sh", &["-c", &set]);
            }
        }
    }

    /// Runs curl on the left; what it wrote.
    #[track_caller]
    fn curl(&self, arguments: &[&str]) -> String {
        let certificate = self.path("certificate.pem");
        let usual = ["-sS", "--max-time", "120", "--cacert", certificate.to_str().unwrap()];
        self.lab.on("left", "curl", &[&usual, arguments].concat())
    }

    /// Segments and datagrams that came with a wrong checksum, and resets that were sent, on both hosts.
    fn errors(&self) -> [u64; 3] {
        let count = |what: &str| -> u64 {
            let tables =
                ["left", "right"].map(|host| self.lab.on(host, "cat", &["/proc/net/snmp"]));
            let counts = tables.iter().flat_map(|table| {
                let lines: Vec<_> = table.lines().collect();
                let of = lines.chunks_exact(2).filter(|pair| pair[0].starts_with(&what[..4]));
                of.flat_map(|pair| pair[0].split(' ').zip(pair[1].split(' ')))
                    .filter(|(name, _)| *name == &what[4..])
                    .map(|(_, count)| count.parse::<u64>().unwrap())
                    .collect::<Vec<_>>()
            });
            counts.sum()
        };
        ["Tcp:InCsumErrors", "Udp:InCsumErrors", "Tcp:OutRsts"].map(count)
    }
}

/// Runs a function between clients and servers, by an I/O mode.
#[track_caller]
fn through(function: &str, mode: &str, check: impl FnOnce(&Clients)) {
    let clients = Clients::new();
    let running = clients.lab.run(&between(function), &[&BOUND[..], &["--io", mode]].concat());
    let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&clients)));
    let summary = running.stop();
    assert!(told.is_ok(), "{function} by {mode}: {summary}");
}

/// Files go in both directions by each version of HTTP, in the clear and encrypted.
#[test]
fn files_are_loaded_and_sent() {
    if !possible() {
        return;
    }
    for (number, (function, address)) in FUNCTIONS.into_iter().enumerate() {
        let mode = ["af-xdp", "af-packet-mmsg", "af-packet-ring"][number % 3];
        through(function, mode, |clients| {
            let server = Server::start(clients);
            let (large, sent) = (clients.path("www/large"), clients.path("sent"));
            std::fs::write(&large, bytes(LARGE)).unwrap();
            std::fs::write(&sent, bytes(LARGE / 2)).unwrap();
            for (version, scheme, expected) in [
                ("--http1.1", "http", "1.1"),
                ("--http2-prior-knowledge", "http", "2"),
                ("--http1.1", "https", "1.1"),
                ("--http2", "https", "2"),
            ] {
                let port = if version.ends_with("knowledge") { ":8080" } else { "" };
                let url = |name: &str| format!("{scheme}://{address}{port}/{name}");
                let got = clients.path("got");
                let told = ["-w", "%{http_version} %{http_code} %{size_download}"];
                let to = [version, "-o", got.to_str().unwrap(), &url("large")];
                let told_of = clients.curl(&[&told[..], &to].concat());
                assert_eq!(
                    told_of,
                    format!("{expected} 200 {LARGE}"),
                    "{url:?}",
                    url = url("large")
                );
                assert!(
                    std::fs::read(&got).unwrap() == bytes(LARGE),
                    "bytes changed from the server"
                );
                // Over HTTP/2 in the clear, curl 7.88.1 now and then sends 64 KiB of a file twice: a capture at its own interface
                // has them, before anything else saw them.
                if !port.is_empty() {
                    continue;
                }
                let told = ["-w", "%{http_version} %{http_code} %{size_upload}"];
                let to = [version, "-T", sent.to_str().unwrap(), &url("stored")];
                let told_of = clients.curl(&[&told[..], &to].concat());
                assert_eq!(told_of, format!("{expected} 201 {}", LARGE / 2));
                let stored = clients.path("www/stored");
                assert!(
                    std::fs::read(&stored).unwrap() == bytes(LARGE / 2),
                    "bytes changed from the client"
                );
                std::fs::remove_file(&stored).unwrap();
            }
            server.stop();
            assert_eq!(clients.errors(), [0; 3]);
        });
    }
}

/// What iperf3 says of a run: bytes sent and received of TCP, or packets sent and lost of UDP.
fn measured(clients: &Clients, address: &str, options: &[&str]) -> [u64; 2] {
    let all = ["-c", address, "-J", "--connect-timeout", "60000"];
    let told = clients.lab.on("left", "iperf3", &[&all, options].concat());
    let told: Value = serde_json::from_str(&told).unwrap();
    let end = &told["end"];
    let count = |of: &str, what: &str| end[of][what].as_u64().unwrap_or_else(|| panic!("{told}"));
    match options.contains(&"-u") {
        true => [count("sum", "packets"), count("sum", "lost_packets")],
        false => [count("sum_sent", "bytes"), count("sum_received", "bytes")],
    }
}

#[test]
fn streams_and_datagrams_pass_in_both_directions() {
    if !possible() {
        return;
    }
    for (number, (function, address)) in FUNCTIONS.into_iter().enumerate() {
        // Other chains than above go by each mode.
        let mode = ["af-packet-ring", "af-xdp", "af-packet-mmsg"][number % 3];
        through(function, mode, |clients| {
            let servers = ["10.2.0.2", "10.2.0.3"].map(|at| Server::measure(clients, at));
            for direction in [&[][..], &["-R"]] {
                let told =
                    measured(clients, address, &[&["-n", "4M", "-w", "128K"], direction].concat());
                let [sent, received] = told;
                assert!(sent >= 4 << 20 && received > sent / 2 && received <= sent, "{told:?}");
                let datagrams = ["-u", "-b", "4M", "-n", "1M", "-l", "1400"];
                let told = measured(clients, address, &[&datagrams, direction].concat());
                let [packets, lost] = told;
                assert!(packets >= (1 << 20) / 1400 && lost < packets / 4, "{told:?}");
            }
            servers.into_iter().for_each(Server::stop);
            assert_eq!(clients.errors()[..2], [0; 2]);
        });
    }
}
