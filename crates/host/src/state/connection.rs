//! A connection to Redis, plain or with TLS: requests are sent together, and each has so long for all of its replies.

use std::io::{BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::resp::{self, Reply};
use super::{Server, Why};

/// Where Debian keeps the certificate authorities that it trusts.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A stream whose reads and writes end in time.
struct Timed {
    stream: Stream,
    due: Instant,
}

impl Timed {
    /// Gives the kernel the time that is left.
    fn limit(&self) -> Result<()> {
        let left = self.due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let socket = match &self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => stream.get_ref(),
        };
        socket.set_read_timeout(Some(left))?;
        socket.set_write_timeout(Some(left))
    }
}

impl Read for Timed {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        self.limit()?;
        match &mut self.stream {
            Stream::Plain(stream) => stream.read(to),
            Stream::Tls(stream) => stream.read(to),
        }
    }
}

impl Write for Timed {
    fn write(&mut self, from: &[u8]) -> Result<usize> {
        self.limit()?;
        match &mut self.stream {
            Stream::Plain(stream) => stream.write(from),
            Stream::Tls(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// A connection.
pub(crate) struct Connection {
    stream: BufReader<Timed>,
    longest: Duration,
    /// Until when it has to be ready, while it is not.
    ready_by: Option<Instant>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects. This and all up to [`is_ready`](Self::is_ready) have so long together, then each request.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(crate) fn open(server: &Server, longest: Duration) -> std::result::Result<Self, Why> {
        let due = Instant::now() + longest;
        let socket = connect(server, due).map_err(Why::from)?;
        let _ = socket.set_nodelay(true);
        let stream = match server.tls {
            false => Stream::Plain(socket),
            true => Stream::Tls(Box::new(secure(server, socket)?)),
        };
        let timed = Timed { stream, due };
        timed.limit().map_err(Why::from)?;
        Ok(Self { stream: BufReader::new(timed), longest, ready_by: Some(due) })
    }

    /// From now on it is used.
    pub(crate) fn is_ready(&mut self) {
        self.ready_by = None;
    }

    /// Sends commands, which [`push`](resp::push) wrote.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn send(&mut self, commands: &[u8]) -> Result<()> {
        let stream = self.stream.get_mut();
        stream.due = self.ready_by.unwrap_or_else(|| Instant::now() + self.longest);
        stream.write_all(commands)?;
        stream.flush()
    }

    /// Reads the next reply.
    ///
    /// # Errors
    /// If there is none in time.
    pub(crate) fn reply(&mut self) -> Result<Reply> {
        resp::read(&mut self.stream)
    }

    /// Sends one command and reads its reply.
    ///
    /// # Errors
    /// What the server refuses it with, or why there is no reply.
    pub(crate) fn call(&mut self, words: &[&[u8]]) -> std::result::Result<Reply, Why> {
        let mut text = Vec::new();
        resp::push(&mut text, words);
        self.send(&text)?;
        match self.reply()? {
            Reply::Error(text) => Err(Why::of(&text)),
            reply => Ok(reply),
        }
    }
}

/// Connects to the first address that answers.
fn connect(server: &Server, due: Instant) -> Result<TcpStream> {
    let mut failed = Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (server.host.as_str(), server.port).to_socket_addrs()? {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(socket) => return Ok(socket),
            Err(why) => failed = why,
        }
    }
    Err(failed)
}

fn secure(
    server: &Server,
    socket: TcpStream,
) -> std::result::Result<StreamOwned<ClientConnection, TcpStream>, Why> {
    let wrong = |why: &dyn std::fmt::Display| Why::Tls(why.to_string());
    let mut roots = RootCertStore::empty();
    let text = match &server.authorities {
        Some(text) => text.clone().into_bytes(),
        None => std::fs::read(AUTHORITIES).map_err(|why| {
            Why::Tls(format!("{AUTHORITIES}: {why}: name the server's authority with `ca: FILE`"))
        })?,
    };
    for certificate in CertificateDer::pem_slice_iter(&text) {
        // One that cannot be read is trusted by nobody.
        let _ = certificate.map(|certificate| roots.add(certificate));
    }
    if roots.is_empty() {
        return Err(Why::Tls("there is no certificate authority in the file".into()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| wrong(&why))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(server.host.clone()).map_err(|why| wrong(&why))?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(|why| wrong(&why))?;
    Ok(StreamOwned::new(client, socket))
}
