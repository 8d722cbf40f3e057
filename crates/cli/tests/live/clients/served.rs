//! Servers that real clients ask.

use std::process::{Command, Stdio};

use lab::live::network::run;
use lab::live::{Process, until};

use super::Clients;
use super::refused::HOSTS;

/// A program that serves on the right.
pub(super) struct Server(Process);

impl Server {
    /// nginx on all addresses: HTTP/1.1 on port 80, HTTP/2 in the clear on 8080, both with TLS on 443. It serves and stores files
    /// of the folder `www`, and answers `/echo/...` with host and path.
    #[track_caller]
    pub(super) fn start(clients: &Clients) -> Self {
        Self::start_at(clients, "0.0.0.0")
    }

    /// The same on one address of the host.
    #[track_caller]
    pub(super) fn start_at(clients: &Clients, address: &str) -> Self {
        certify(clients);
        std::fs::create_dir_all(clients.path("www")).unwrap();
        let folder = clients.path("").display().to_string();
        let configuration = include_str!("nginx.conf").replace("FOLDER/", &folder);
        let configuration = configuration.replace("listen ", &format!("listen {address}:"));
        let configuration = configuration.replace("nginx.pid", &format!("{address}.pid"));
        let file = clients.path(&format!("{address}.conf"));
        std::fs::write(&file, configuration).unwrap();
        let mut command = clients.lab.command("right", "nginx");
        command.args(["-e", "stderr", "-p", &folder, "-c"]).arg(&file);
        Self::wait(command, clients, &format!("{address}:443"))
    }

    /// iperf3 on an address.
    #[track_caller]
    pub(super) fn measure(clients: &Clients, address: &str) -> Self {
        let mut command = clients.lab.command("right", "iperf3");
        command.args(["-s", "-B", address]);
        Self::wait(command, clients, &format!("{address}:5201"))
    }

    /// Starts a program, and waits until it listens.
    #[track_caller]
    fn wait(mut command: Command, clients: &Clients, at: &str) -> Self {
        let process = Process::start(
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()),
        );
        until("the server listens", || clients.lab.on("right", "ss", &["-Hltn"]).contains(at));
        Self(process)
    }

    /// Ends it.
    pub(super) fn stop(self) {
        drop(self.0);
    }
}

/// Makes a certificate for the servers' addresses and names.
fn certify(clients: &Clients) {
    let addresses = ["10.2.0.2", "10.2.0.3", "10.2.0.4", "10.2.0.100"].map(|of| format!("IP:{of}"));
    let names = HOSTS.map(|of| format!("DNS:{of}"));
    let names = format!("subjectAltName={},{}", addresses.join(","), names.join(","));
    let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    let (key, certificate) = (clients.path("key.pem"), clients.path("certificate.pem"));
    let mut command = Command::new("openssl");
    command.args(request).args(["-nodes", "-days", "2", "-subj", "/CN=servers", "-addext", &names]);
    run(command.arg("-keyout").arg(key).arg("-out").arg(certificate));
}
