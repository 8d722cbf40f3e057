//! URLFilter.

use std::collections::HashMap;

use ir::{Diagnostic, Model, Reason, Severity, Span};
use net::wire::ip_protocol::UDP;
use net::wire::tcp::flag::SYN;
use net::{Batch, Packet};

use super::http::{self, Message};
use super::quic::{self, ConnectionId};
use super::streams::{Read, Segment, State, Streams};
use super::tls::{self, Hello};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::lru_table::LruTable;
use crate::transport::segments::{self, FlowKeys, Seen};

element! {
    /// URLFilter(FILE, ... [, KEYWORDS]) -- refuses connections to listed hosts and paths
    ///
    /// Expects IPv4 and IPv6 packets with their header marked. Reads what clients say in connections of TCP on
    /// any port: requests of HTTP/1 (target and Host), one after the other, and the server's name in
    /// the first message of TLS; and that name in connections of QUIC, version 1 and 2, in UDP. The packet with which
    /// a request to a listed host or path is there, and all later ones of its stream, leave on output 1, or are
    /// dropped as `url-listed`. All others pass, those that come before a request is whole among them.
    ///
    /// A line of FILE is a host, with or without a path: `example.com` lists it and all names that
    /// end in `.example.com`; `example.com/ads` lists paths that begin with `/ads`. Case does not
    /// matter in names. Percent-encoded bytes of paths count decoded. `#` begins a comment. Names
    /// in TLS match lines without a path. An encrypted name is not found: what is seen is the name
    /// outside of it.
    ///
    /// Streams are put in order. Where segments overlap, the bytes that came first count. A request
    /// whose headers are longer than 16 KiB, what follows a body of chunks, and everything that is
    /// neither HTTP/1 nor TLS, pass unread. Fragments but the first pass. Of QUIC the initial packets
    /// are decrypted, whose keys follow from what they say themselves (RFC 9001); all later datagrams
    /// between the ends of a refused connection leave on output 1, too.
    ///
    /// = KEYWORDS
    ///
    /// MEMORY (number, default 67108864): bytes that streams take at the most; beyond, those that
    /// had no packet for longest are forgotten.
    /// LENIENT (bool, default false): whether lines that cannot be read are left out, with a warning
    /// for each, up to 50.
    ///
    /// = HANDLERS
    ///
    /// blocked (read): packets that were refused.
    /// streams (read): streams that are known.
    ///
    /// = EXAMPLE
    ///
    /// CheckIPHeader -> IPReassembler -> URLFilter(urls.txt) -> ...
    ///
    /// = SEE ALSO
    ///
    /// SnortFilter, CheckTCPHeader, CheckUDPHeader, TCPReset
    URLFilter { category: Payload, ports: "1/1-2", processing: "h/h", samples: [] }
}

/// A request is for what is listed.
const LISTED: Reason = Reason("url-listed");

const MEMORY: usize = 64 << 20;
/// Lines that cannot be read and are shown one by one.
const MOST_SHOWN: usize = 50;
/// Clients of QUIC whose first connection ID is known.
const MOST_IDS: usize = 1 << 16;
/// Bytes that a line takes, roughly, besides its text.
const LINE: u64 = 128;

/// Listed hosts, in lower case, each with the beginnings of its listed paths; with none, all are.
#[derive(Debug, Default)]
pub(crate) struct Urls(HashMap<Vec<u8>, Vec<Vec<u8>>>);

impl Urls {
    /// Adds a line.
    ///
    /// # Errors
    /// What is wrong with it.
    fn add(&mut self, line: &str) -> Result<(), String> {
        let (host, path) = match line.find('/') {
            Some(at) => (&line[..at], &line[at..]),
            None => (line, ""),
        };
        let host = host.strip_prefix("*.").unwrap_or(host);
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        let inner = host.trim_matches('.');
        if inner.is_empty() || !host.bytes().all(is_name) || path.contains(char::is_whitespace) {
            return Err(format!("'{line}' is not a host with a path, such as example.com/ads"));
        }
        let paths = self.0.entry(inner.to_ascii_lowercase().into_bytes());
        let (is_new, paths) =
            (matches!(paths, std::collections::hash_map::Entry::Vacant(_)), paths.or_default());
        match path {
            // The whole host covers its paths.
            "" | "/" => paths.clear(),
            path if is_new || !paths.is_empty() => {
                paths.push(http::decoded(path.as_bytes()).into_owned());
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a path of a host is listed; without a path, whether all are.
    fn lists(&self, host: &[u8], path: Option<&[u8]>) -> bool {
        let host = host.trim_ascii().to_ascii_lowercase();
        // A port stands behind the name.
        let end = host.iter().position(|&b| b == b':').unwrap_or(host.len());
        let mut name = host[..end].strip_suffix(b".").unwrap_or(&host[..end]);
        loop {
            if let Some(paths) = self.0.get(name) {
                let begins = |path: &[u8]| paths.iter().any(|start| path.starts_with(start));
                if paths.is_empty() || path.is_some_and(begins) {
                    return true;
                }
            }
            let Some(dot) = name.iter().position(|&b| b == b'.') else { return false };
            name = &name[dot + 1..];
        }
    }

    /// Reads the beginning of a handshake in QUIC.
    fn read_handshake(&self, stream: &[u8]) -> Read {
        match tls::bare_hello(stream) {
            Hello::Name(name) if self.lists(name, None) => Read::Block,
            Hello::More => Read::More,
            Hello::Name(_) | Hello::Unnamed | Hello::Other => Read::Pass,
        }
    }

    /// Reads the beginning of a stream.
    pub(crate) fn read(&self, stream: &[u8]) -> Read {
        let mut whole = Vec::new();
        match tls::hello(stream, &mut whole) {
            Hello::Name(name) if self.lists(name, None) => return Read::Block,
            Hello::Name(_) | Hello::Unnamed => return Read::Pass,
            Hello::More => return Read::More,
            Hello::Other => {}
        }
        // A method is a word of few letters.
        let method = stream
            .iter()
            .position(|b| !b.is_ascii_alphabetic() && !matches!(b, b'-' | b'\r' | b'\n'));
        match method {
            None if stream.len() <= 32 => return Read::More,
            Some(end) if end > 0 && end <= 32 && stream[end] == b' ' => {}
            _ => return Read::Pass,
        }
        let Some(message) = Message::of(stream) else {
            return if stream.contains(&b'\n') && !is_blank(stream) {
                Read::Pass
            } else {
                Read::More
            };
        };
        if message.method.is_empty() {
            return Read::Pass;
        }
        if !message.is_whole {
            return Read::More;
        }
        let (host, path) = place(&message);
        if host.is_some_and(|host| self.lists(host, Some(&http::decoded(path)))) {
            return Read::Block;
        }
        let used = (stream.len() - message.body.len()) as u32;
        match message.body_length() {
            Some(length) if length < 1 << 30 => Read::Consumed(used + length as u32),
            _ => Read::Pass,
        }
    }
}

/// Whether the first line is not there yet: only line ends are.
fn is_blank(stream: &[u8]) -> bool {
    let text = stream.iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(stream.len());
    !stream[text..].contains(&b'\n')
}

/// A request's host and path: of an absolute target its own (RFC 9112, 3.2.2).
fn place<'a>(message: &Message<'a>) -> (Option<&'a [u8]>, &'a [u8]) {
    let target = message.target;
    let scheme = target.windows(3).position(|w| w == b"://").filter(|at| *at <= 8);
    match scheme {
        Some(at) => {
            let rest = &target[at + 3..];
            let end = rest.iter().position(|&b| b == b'/').unwrap_or(rest.len());
            let host = rest[..end].rsplit(|&b| b == b'@').next();
            (host, if end < rest.len() { &rest[end..] } else { b"/" })
        }
        None if message.method == b"CONNECT" => (Some(target), b"/"),
        None => (message.header("host"), target),
    }
}

/// See [`URLFilter::CLASS`].
pub(crate) struct URLFilter {
    urls: Urls,
    keys: FlowKeys,
    streams: Streams,
    /// The first connection ID of clients of QUIC, whose keys go on when it changes.
    ids: LruTable<ConnectionId>,
    blocked: u64,
}

impl URLFilter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let span = cx.span();
        let mut arguments = cx.arguments(&["MEMORY", "LENIENT"]);
        let memory = arguments.keyword::<usize>("MEMORY").unwrap_or(MEMORY);
        let is_lenient = arguments.keyword("LENIENT").unwrap_or(false);
        let (mut urls, mut size) = (Urls::default(), 0);
        let files = arguments.rest();
        for path in &files {
            let Some((file, content)) = arguments.read_file(path) else { continue };
            size += content.len() as u64;
            let (mut at, mut unreadable) = (0, 0);
            for line in content.split_inclusive('\n') {
                let start = at;
                at += line.len();
                let text = line.split('#').next().unwrap_or_default().trim();
                let Err(why) = (if text.is_empty() { Ok(()) } else { urls.add(text) }) else {
                    continue;
                };
                unreadable += 1;
                if unreadable > MOST_SHOWN {
                    continue;
                }
                let severity = if is_lenient { Severity::Warning } else { Severity::Error };
                let place = Span::new(file, start, start + line.trim_end().len());
                let error = Diagnostic::error("bad-url", why).label(place, "");
                arguments.report(Diagnostic { severity, ..error });
            }
        }
        if files.is_empty() {
            let error = Diagnostic::error("missing-argument", "FILE is missing").label(span, "");
            arguments
                .report(error.help("name a file with a host or a host with a path on each line"));
        }
        arguments.claim("FILE", size + LINE * urls.0.len() as u64);
        arguments.claim("MEMORY", memory as u64);
        arguments.finish()?;
        let (keys, streams, ids) = (FlowKeys::new(), Streams::new(memory), LruTable::default());
        Ok(Self { urls, keys, streams, ids, blocked: 0 })
    }

    fn verdict(&mut self, packet: &Packet) -> Verdict {
        let Some(seen) = segments::seen(packet) else { return Verdict::Pass };
        let is_refused = match seen.tcp {
            Some(tcp) => self.reads_segment(&seen, tcp),
            None => seen.protocol == UDP && self.reads_datagram(&seen),
        };
        if !is_refused {
            return Verdict::Pass;
        }
        self.blocked += 1;
        Verdict::Reject(1, LISTED)
    }

    /// Reads what a segment of TCP adds to its stream. Gives whether it is refused.
    fn reads_segment(&mut self, seen: &Seen<'_>, tcp: segments::Segment) -> bool {
        let (key, begins) = (self.keys.of_direction(seen), tcp.has(SYN));
        let segment = Segment { key, sequence: tcp.sequence, begins, payload: seen.payload };
        self.streams.add(&segment, |stream| self.urls.read(stream)) == State::Blocked
    }

    /// Reads what a datagram adds to the handshake of a connection of QUIC. Gives whether it is refused.
    fn reads_datagram(&mut self, seen: &Seen<'_>) -> bool {
        // What may never reach the server decides nothing.
        let may_be_initial = !seen.is_fragment && quic::may_be_initial(seen.payload);
        if !may_be_initial && self.streams.len() == 0 {
            return false;
        }
        let flow = self.keys.of_direction(seen);
        if may_be_initial {
            let Self { urls, keys, streams, ids, .. } = self;
            let known = ids.get(flow).copied();
            let (mut id, mut is_listed) = (None, false);
            quic::handshake(seen.payload, known, |of, offset, piece| {
                let key = keys.of_connection(seen, of.bytes());
                // Its first byte is number 0, whichever piece comes first.
                for (sequence, begins, payload) in [(0, true, &[][..]), (offset, false, piece)] {
                    let segment = Segment { key, sequence, begins, payload };
                    let state = streams.add(&segment, |stream| urls.read_handshake(stream));
                    is_listed |= state == State::Blocked;
                }
                id = Some(*of);
            });
            if let Some(id) = id {
                ids.insert(flow, id, 0);
                if ids.len() > MOST_IDS
                    && let Some((oldest, _)) = ids.oldest(0)
                {
                    ids.remove(oldest);
                }
            }
            if is_listed {
                streams.block(flow);
            }
        }
        self.streams.is_blocked(flow)
    }
}

impl Element for URLFilter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.verdict(packet));
    }

    fn model(&self) -> Model {
        Model::opaque("reads streams")
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("blocked"), Handler::count("streams")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "blocked" => self.blocked.to_string(),
            _ => self.streams.len().to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::quic::tests::datagram;
    use super::super::tls::tests::client_hello;
    use super::*;

    fn urls(lines: &[&str]) -> Urls {
        let mut urls = Urls::default();
        lines.iter().for_each(|line| urls.add(line).unwrap());
        urls
    }

    #[test]
    fn hosts_and_paths_are_listed() {
        let urls =
            urls(&["example.com", "*.Ads.net", "shop.org/a%20b", "x.org/a", "x.org", "x.org/c"]);
        for (host, path, listed) in [
            ("example.com", "/", true),
            ("a.b.EXAMPLE.com.", "/x", true),
            ("example.com:8080", "/", true),
            ("anexample.com", "/", false),
            ("com", "/", false),
            ("ads.net", "/", true),
            ("shop.org", "/a b/c", true),
            ("www.shop.org", "/a b", true),
            ("shop.org", "/a", false),
            ("x.org", "/z", true),
            ("", "/", false),
        ] {
            assert_eq!(urls.lists(host.as_bytes(), Some(path.as_bytes())), listed, "{host}{path}");
        }
        assert!(!urls.lists(b"shop.org", None));
        for wrong in ["/x", "http://x.org/", "a b", ".", "x.org/a b"] {
            assert!(Urls::default().add(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn requests_are_read_one_after_the_other() {
        let urls = urls(&["bad.org", "ok.org/bad"]);
        let get = |target: &str, host: &str| {
            format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
        };
        assert_eq!(urls.read(&get("/", "bad.org")), Read::Block);
        assert_eq!(urls.read(&get("/b%61d", "ok.org")), Read::Block);
        assert_eq!(urls.read(&get("http://bad.org:80/x", "ok.org")), Read::Block);
        let fine = get("/", "ok.org");
        assert_eq!(urls.read(&fine), Read::Consumed(fine.len() as u32));
        for end in 0..fine.len() {
            assert_eq!(urls.read(&fine[..end]), Read::More, "{end}");
        }
        let post = b"POST / HTTP/1.1\r\nHost: ok.org\r\nContent-Length: 7\r\n\r\nab";
        assert_eq!(urls.read(post), Read::Consumed(post.len() as u32 - 2 + 7));
        assert_eq!(urls.read(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Read::Pass);
        for other in [&b"\0\0\0"[..], b"SSH-2.0-x\r\n", b"GET /\r\n", b"HTTP/1.1 200 OK\r\n"] {
            assert_eq!(urls.read(other), Read::Pass, "{other:?}");
        }
        assert_eq!(urls.read(&client_hello("www.bad.org", 50)), Read::Block);
        assert_eq!(urls.read(&client_hello("ok.org", 50)), Read::Pass);
    }

    #[test]
    fn connections_of_quic_are_refused_by_name() {
        let urls = urls(&["bad.org"]);
        let (keys, streams, ids) = (FlowKeys::new(), Streams::new(1 << 20), LruTable::default());
        let mut filter = URLFilter { urls, keys, streams, ids, blocked: 0 };
        let mut offer = |port: u16, payload: &[u8], is_fragment| {
            let [src, dst] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(std::net::IpAddr::from);
            let (icmp, tcp, protocol, src_port) = (None, None, UDP, port);
            let seen = Seen {
                protocol,
                src,
                dst,
                src_port,
                dst_port: 443,
                icmp,
                tcp,
                at: 20,
                is_fragment,
                payload,
            };
            filter.reads_datagram(&seen)
        };
        // A fragment is not read.
        let hidden = datagram(0, b"f", b"f", 0, &[(0, &client_hello("bad.org", 2000)[5..])]);
        assert!(!offer(9, &hidden, true));
        assert!(offer(9, &hidden, false));
        let mut is_refused = |port: u16, payload: &[u8]| offer(port, payload, false);
        let hello = |name: &str| client_hello(name, 2000)[5..].to_vec();
        let (bad, fine) = (hello("www.bad.org"), hello("ok.org"));
        for version in [0, 1] {
            let port = 10 * (version as u16 + 1);
            let whole = |id: &[u8], text: &[u8]| datagram(version, id, id, 0, &[(0, text)]);
            assert!(!is_refused(port, &whole(b"one", &fine)));
            assert!(!is_refused(port, b"@short header"));
            // Another connection between the same ends.
            assert!(is_refused(port, &whole(b"two", &bad)));
            assert!(is_refused(port, b"@short header"));
            assert!(!is_refused(port + 1, b"@short header"));
            // Pieces in any order, over datagrams of which later ones have the server's ID.
            let pieces = [(40, &bad[40..60]), (0, &bad[..40])];
            assert!(!is_refused(port + 2, &datagram(version, b"x", b"x", 0, &pieces)));
            let rest = datagram(version, b"x", b"server", 1, &[(60, &bad[60..])]);
            assert!(!is_refused(port + 3, &rest));
            assert!(is_refused(port + 2, &rest));
        }
    }
}
