//! A server of Redis that a test starts for itself, with TLS and users.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use catena_host::state::{Durability, Secret, Server, State};

/// Who makes the users of NFs, and the password.
pub(crate) const OPERATOR: [&str; 2] = ["operator", "p@ss:w/rd"];

/// A server, which ends with it. Its files are in a folder of the test.
pub(crate) struct Redis {
    folder: PathBuf,
    /// Of TLS, and without it.
    ports: [u16; 2],
    child: Child,
}

fn run(program: &str, arguments: &[&str], folder: &Path) {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|why| panic!("{program}: {why}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// An authority, and a certificate for `localhost` by it.
fn certificates(folder: &Path) {
    let new =
        ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let ca = ["-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority"];
    run("openssl", &[&new[..], &ca[..]].concat(), folder);
    let own = ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"];
    let by = [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ];
    run(
        "openssl",
        &[&new[..], &own[..], &by[..], &["-CA", "ca.pem", "-CAkey", "ca.key"]].concat(),
        folder,
    );
}

impl Redis {
    /// Starts one; `durable` writes each update to its disk.
    pub(crate) fn start(folder: &Path, durable: bool) -> Self {
        certificates(folder);
        let [fsync, append] = if durable { ["always", "yes"] } else { ["everysec", "no"] };
        let users = format!(
            "user default off\nuser {} on >{} ~* &* +@all\nuser watcher on >w ~* +get +set +acl|setuser +acl|deluser +auth\n",
            OPERATOR[0], OPERATOR[1]
        );
        std::fs::write(folder.join("users.acl"), users).unwrap();
        // Ports that nobody has; who takes one meanwhile is found by the server's end.
        for _ in 0..10 {
            let free: Vec<TcpListener> =
                (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
            let ports = [0, 1].map(|at: usize| free[at].local_addr().unwrap().port());
            drop(free);
            let config = format!(
                "bind 127.0.0.1 -::1\nport {}\ntls-port {}\ntls-cert-file cert.pem\ntls-key-file key.pem\ntls-ca-cert-file ca.pem\n\
                 tls-auth-clients no\naclfile users.acl\nsave \"\"\nappendonly {append}\nappendfsync {fsync}\ndatabases 4\n",
                ports[1], ports[0]
            );
            std::fs::write(folder.join("redis.conf"), config).unwrap();
            if let Some(child) = Self::run(folder) {
                return Self { folder: folder.into(), ports, child };
            }
        }
        panic!("redis-server does not start: Debian's package redis-server");
    }

    fn run(folder: &Path) -> Option<Child> {
        let mut redis = Command::new("redis-server");
        redis.arg("redis.conf").current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = redis.spawn().expect("Debian's package redis-server");
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while lines.read_line(&mut line).unwrap() > 0 {
            if line.contains("Ready to accept connections") {
                // What it prints from now on nobody needs; it must not find a pipe that is full.
                std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
                return Some(child);
            }
            line.clear();
        }
        let _ = child.wait();
        None
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again with what it has on its disk.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = Self::run(&self.folder).expect("it starts again");
    }

    /// How a chain keeps its state there, with TLS.
    pub(crate) fn state(&self, durability: Durability) -> State {
        let mut server = Server::parse(&format!("rediss://localhost:{}/1", self.ports[0])).unwrap();
        server.user = Some(OPERATOR[0].into());
        server.password = Some(Secret(OPERATOR[1].into()));
        server.authorities = Some(std::fs::read_to_string(self.folder.join("ca.pem")).unwrap());
        // However slow the disk is, packets are stored in time.
        State { wait: std::time::Duration::from_secs(60), ..State::new(server, durability) }
    }

    /// The port without TLS.
    pub(crate) fn port(&self) -> u16 {
        self.ports[1]
    }

    /// A connection without TLS, by who may do everything.
    pub(crate) fn operator(&self) -> Line {
        let mut line = Line::open(self.ports[1]);
        assert_eq!(line.call(&["AUTH", OPERATOR[0], OPERATOR[1]]), "+OK");
        assert_eq!(line.call(&["SELECT", "1"]), "+OK");
        line
    }

    /// What is kept, by key.
    pub(crate) fn all(&self) -> std::collections::BTreeMap<Vec<u8>, Vec<u8>> {
        let mut line = self.operator();
        let keys = line.values(&[b"KEYS", b"*"]);
        keys.into_iter().map(|key| (key.clone(), line.values(&[b"GET", &key]).remove(0))).collect()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A connection.
pub(crate) struct Line(BufReader<TcpStream>);

impl Line {
    pub(crate) fn open(port: u16) -> Self {
        Self(BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap()))
    }

    fn send(&mut self, words: &[&[u8]]) {
        let mut text = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            text.extend(
                format!("${}\r\n", word.len()).bytes().chain(word.iter().copied()).chain(*b"\r\n"),
            );
        }
        self.0.get_mut().write_all(&text).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    /// The first line of the reply to a command.
    pub(crate) fn call(&mut self, words: &[&str]) -> String {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.send(&words);
        self.line()
    }

    /// The strings of the reply to a command.
    pub(crate) fn values(&mut self, words: &[&[u8]]) -> Vec<Vec<u8>> {
        self.send(words);
        let line = self.line();
        let count = line.strip_prefix('*').map(|count| count.parse::<usize>().unwrap());
        let first = count.is_none().then(|| line.clone());
        (0..count.unwrap_or(1))
            .map(|_| {
                let line = first.clone().unwrap_or_else(|| self.line());
                let length = line.strip_prefix('$').unwrap_or_else(|| panic!("{line}"));
                let mut bytes = vec![0; length.parse::<usize>().unwrap() + 2];
                self.0.read_exact(&mut bytes).unwrap();
                bytes.truncate(bytes.len() - 2);
                bytes
            })
            .collect()
    }
}
