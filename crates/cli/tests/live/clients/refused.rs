//! Requests of HTTP and names of TLS that a list refuses.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::TcpStream;

use lab::live::{PATIENCE, possible};

use super::served::Server;
use super::{Clients, between};
use crate::CATENA;
use crate::traffic::BOUND;

/// Whom clients ask for.
pub(super) const HOSTS: [&str; 8] = [
    "ads.example",
    "a.ads.example",
    "b.a.ads.example",
    "bads.example",
    "shop.example",
    "www.shop.example",
    "news.example",
    "example",
];
/// And for what.
const PATHS: [&str; 6] =
    ["/echo/", "/echo/pay", "/echo/payment", "/echo/Pay", "/echo/track/me", "/echo/x?/echo/pay"];

/// What is refused: hosts, and hosts with how paths begin.
const LIST: &str = "ads.example\nshop.example/echo/pay\nnews.example/echo/track/\n";

/// Whether the list refuses it: of TLS, only the name is seen.
fn is_listed(host: &str, path: Option<&str>) -> bool {
    LIST.lines().any(|line| {
        let (listed, begin) = line.split_at(line.find('/').unwrap_or(line.len()));
        let is_host = host == listed || host.ends_with(&format!(".{listed}"));
        is_host && (begin.is_empty() || path.is_some_and(|path| path.starts_with(begin)))
    })
}

/// Refused requests are answered with resets, or with nothing.
const RESETS: &str = "nf :: { input[0] -> urls :: UrlFilter(listed.txt) -> [0] output;
    urls[1] -> [1] output; input[1] -> [1] output; };";
const SILENT: &str =
    "nf :: { input[0] -> UrlFilter(listed.txt) -> [0] output; input[1] -> [1] output; };";

/// Sends a request, in pieces of so many bytes; what comes back, until an answer is there or nothing more comes.
fn ask(stream: &mut TcpStream, request: &[u8], piece: usize) -> String {
    let mut answer = Vec::new();
    let is_sent = request.chunks(piece).all(|piece| stream.write_all(piece).is_ok());
    let mut buffer = [0; 2000];
    while is_sent && !answer.ends_with(b"last\n") {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn connect() -> TcpStream {
    let stream = TcpStream::connect_timeout(&"10.2.0.2:80".parse().unwrap(), PATIENCE).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Rounds of 96 requests by curl for each I/O mode: with `SOAK` set, as `cargo xtask soak` does, more than 10,000 requests.
fn rounds() -> usize {
    if std::env::var_os("SOAK").is_some() { 105 } else { 3 }
}

/// Requests one behind the other in one segment, and requests in segments of a byte.
fn ask_oddly() {
    (0..rounds()).step_by(3).for_each(|_| ask_oddly_once());
}

fn ask_oddly_once() {
    let request = |host: &str, path: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let harmless = request("news.example", "/echo/1") + &request("shop.example", "/echo/2");
    let last = request("news.example", "/echo/last");
    for piece in [1, 7, usize::MAX] {
        let mut stream = connect();
        for _ in 0..3 {
            let answer = ask(&mut stream, (harmless.clone() + &last).as_bytes(), piece);
            assert!(answer.contains("news.example/echo/1\n"), "{answer}");
            assert!(answer.contains("shop.example/echo/2\n"), "{answer}");
        }
        for (host, path) in [("ads.example", "/echo/"), ("news.example", "/echo/track/last")] {
            // The first requests of a segment are refused with the listed one.
            let mut stream = connect();
            ask(&mut stream, last.as_bytes(), piece);
            let listed = request(host, path) + &last;
            let answer = ask(&mut stream, listed.as_bytes(), piece);
            assert!(!answer.contains("echo"), "{answer}");
        }
    }
}

#[test]
fn soak_requests_are_refused_as_the_list_says() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg"] {
        let clients = Clients::new();
        std::fs::write(clients.path("listed.txt"), LIST).unwrap();
        let socket = clients.path("ctl.sock");
        let arguments = ["--io", mode, "--control", socket.to_str().unwrap()];
        let running = clients.lab.run(&between(RESETS), &[&BOUND[..], &arguments].concat());
        let server = Server::start(&clients);

        let mut expected = BTreeMap::new();
        let mut urls = String::new();
        for round in 0..rounds() {
            for (host, path) in HOSTS.iter().flat_map(|host| PATHS.map(|path| (host, path))) {
                // Each is another, so that answers can be told apart.
                let tail = format!("{path}&{round}");
                for (scheme, seen) in [("http", Some(&tail[..])), ("https", None)] {
                    let url = format!("{scheme}://{host}{tail}");
                    writeln!(urls, "url = \"{url}\"").unwrap();
                    expected.insert(url, is_listed(host, seen));
                }
            }
        }
        let file = clients.path("urls.curl");
        std::fs::write(&file, urls).unwrap();
        let certificate = clients.path("certificate.pem");
        let told = clients.lab.try_on(
            "left",
            "curl",
            &[
                "-sS",
                "--max-time",
                "120",
                "--cacert",
                certificate.to_str().unwrap(),
                "--http1.1",
                "--tlsv1.3",
                "--connect-to",
                "::10.2.0.2:",
                "-w",
                "told %{url} %{http_code}\n",
                "-K",
                file.to_str().unwrap(),
            ],
        );
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let verdicts: BTreeMap<_, _> = told
            .lines()
            .filter_map(|line| line.strip_prefix("told ")?.split_once(' '))
            .map(|(url, code)| (url.to_owned(), code == "000"))
            .collect();
        assert!(
            told.lines()
                .filter(|line| line.starts_with("told "))
                .all(|line| line.ends_with(" 000") || line.ends_with(" 200")),
            "{told}"
        );
        assert_eq!(verdicts, expected);
        assert_eq!(expected.len(), 96 * rounds());
        assert!(expected.values().filter(|is_listed| **is_listed).count() > 20 * rounds());

        clients.lab.at("left", ask_oddly).join().expect("all went as listed");
        let blocked = CATENA.ctl(&socket, &["read", "nf/urls/urls.blocked"]);
        assert!(blocked.trim().parse::<u64>().unwrap() >= 60, "{blocked}");
        server.stop();
        assert_eq!(clients.errors()[..2], [0; 2]);
        running.stop();
    }
}

/// Without the second output, the client waits for its answer, and others do not.
#[test]
fn refused_requests_are_not_answered() {
    if !possible() {
        return;
    }
    let clients = Clients::new();
    std::fs::write(clients.path("listed.txt"), LIST).unwrap();
    let running = clients.lab.run(&between(SILENT), &BOUND);
    let server = Server::start(&clients);
    for (host, scheme) in [("a.ads.example", "http"), ("ads.example", "https")] {
        let ask = |host: &str, seconds: &str| {
            let url = format!("{scheme}://{host}/echo/");
            let options = ["-sS", "-k", "--max-time", seconds, "--connect-to", "::10.2.0.2:", &url];
            clients.lab.try_on("left", "curl", &options)
        };
        let refused = ask(host, "1");
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(28), 0));
        let harmless = ask("bads.example", "60");
        assert_eq!(String::from_utf8_lossy(&harmless.stdout), "bads.example/echo/\n");
    }
    server.stop();
    running.stop();
}
