//! Backends of a balancer are drained and added while clients load files.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use lab::live::{Process, bytes, possible};

use super::served::Server;
use super::{Clients, LARGE, between};
use crate::CATENA;
use crate::traffic::BOUND;

/// A curl that has begun to load the large file, and waits for the test to read on.
pub(super) struct Loading {
    curl: Process,
    headers: std::path::PathBuf,
}

impl Loading {
    /// Begins, and waits for the first byte.
    pub(super) fn begin(clients: &Clients, number: usize) -> Self {
        let headers = clients.path(&format!("headers{number}"));
        let mut command = clients.lab.command("left", "curl");
        command.args(["-sS", "--no-buffer", "--max-time", "300", "-D"]).arg(&headers);
        command.arg("http://10.2.0.100/large").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut curl = Process::start(&mut command);
        let mut first = [0];
        curl.output.as_mut().unwrap().read_exact(&mut first).expect("the file begins");
        assert_eq!(first[0], bytes(1)[0]);
        Self { curl, headers }
    }

    /// The server's address.
    pub(super) fn server(&self) -> String {
        server(&self.headers)
    }

    /// Loads the rest.
    pub(super) fn end(mut self) {
        let mut rest = Vec::new();
        self.curl.output.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        assert!(rest == bytes(LARGE)[1..], "bytes changed, or {} of {LARGE} came", rest.len() + 1);
        assert!(self.curl.end().0, "curl says that something went wrong");
    }
}

/// The server that answered with these headers.
fn server(headers: &Path) -> String {
    let text = std::fs::read_to_string(headers).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Server-Address: "));
    line.unwrap_or_else(|| panic!("no server: {text}")).to_owned()
}

/// Which servers answer so many new connections, and how many each.
pub(super) fn answers(clients: &Clients, count: usize) -> Vec<(String, usize)> {
    let headers = clients.path("headers");
    let mut servers: Vec<(String, usize)> = Vec::new();
    for _ in 0..count {
        clients.curl(&[
            "-o",
            "/dev/null",
            "-D",
            headers.to_str().unwrap(),
            "http://10.2.0.100/small",
        ]);
        let of = server(&headers);
        match servers.iter_mut().find(|(known, _)| *known == of) {
            Some((_, count)) => *count += 1,
            None => servers.push((of, 1)),
        }
    }
    servers.sort();
    servers
}

#[test]
fn backends_are_drained_and_added_under_load_without_a_reset() {
    if !possible() {
        return;
    }
    let counts = |all: &[(&str, usize)]| -> Vec<(String, usize)> {
        all.iter().map(|(server, count)| ((*server).to_owned(), *count)).collect()
    };
    for mode in ["af-xdp", "af-packet-mmsg"] {
        let clients = Clients::new();
        clients.keep_busy();
        let socket = clients.path("ctl.sock");
        let chain = between("nf :: LB(10.2.0.2 10.2.0.3, VIP 10.2.0.100, POLICY round-robin);");
        let control = ["--io", mode, "--control", socket.to_str().unwrap()];
        let running = clients.lab.run(&chain, &[&BOUND[..], &control].concat());
        let server = Server::start(&clients);
        std::fs::write(clients.path("www/large"), bytes(LARGE)).unwrap();
        std::fs::write(clients.path("www/small"), bytes(100)).unwrap();
        let change = |handler: &str, of: &str| {
            CATENA.ctl(&socket, &["write", &format!("nf/servers.{handler}"), of]);
        };

        let mut loading: Vec<_> = (0..8).map(|number| Loading::begin(&clients, number)).collect();
        let on_first = loading.iter().filter(|of| of.server() == "10.2.0.2").count();
        assert_eq!(on_first, 4);
        change("drain", "10.2.0.2");
        assert_eq!(answers(&clients, 6), counts(&[("10.2.0.3", 6)]));
        change("add", "10.2.0.4");
        assert_eq!(answers(&clients, 6), counts(&[("10.2.0.3", 3), ("10.2.0.4", 3)]));
        loading.extend((8..12).map(|number| Loading::begin(&clients, number)));
        change("drain", "10.2.0.3");
        let backends = CATENA.ctl(&socket, &["read", "nf/servers.backends"]);
        assert!(backends.contains("10.2.0.2 drained 4"), "{backends}");
        assert_eq!(answers(&clients, 4), counts(&[("10.2.0.4", 4)]));
        change("add", "10.2.0.2");
        assert_eq!(answers(&clients, 6), counts(&[("10.2.0.2", 3), ("10.2.0.4", 3)]));
        loading.into_iter().for_each(Loading::end);

        server.stop();
        assert_eq!(clients.errors(), [0; 3], "wrong checksums and resets");
        running.stop();
    }
}
