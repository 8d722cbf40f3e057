//! Serving the socket. Each connection has its own thread, so that one that is slow keeps nobody
//! waiting, least of all the workers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dataplane::place::{Place, SocketFile};
use serde_json::json;

use super::stream::Stream;
use super::{Answer, Controlled, Failure, LONGEST, parse, render};
use crate::privileges::User;

/// Connections at a time; further ones are turned away.
const MAX_CONNECTIONS: usize = 32;
/// A client that fetches no answer for so long is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same for answers that go on.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// The socket; its name is gone when this is dropped.
pub struct ControlSocket {
    file: Arc<SocketFile>,
    listener: UnixListener,
}

impl ControlSocket {
    /// Opens the socket, for a user if one is given: by root only where nobody else can change
    /// anything on the path, and by the user itself elsewhere. Missing folders are made, and a
    /// socket that nobody listens on any more is replaced.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(path: &Path, user: Option<&User>) -> Result<Self, String> {
        let explain = |e: std::io::Error| format!("{}: {e}", path.display());
        let own = || Place::make(path).and_then(Place::listen).map_err(explain);
        let (listener, file) = match user {
            None => own()?,
            Some(user) => {
                let (owner, group) = user.ids();
                match Place::make_for(path, owner, group) {
                    Ok(place) if place.is_guarded() => {
                        let (listener, file) = place.listen().map_err(explain)?;
                        file.leave_to(owner, group).map_err(explain)?;
                        (listener, file)
                    }
                    _ => user.act(own)?,
                }
            }
        };
        Ok(Self { file: Arc::new(file), listener })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Its file, to be taken away where the process ends without dropping this.
    pub fn file(&self) -> Arc<SocketFile> {
        Arc::clone(&self.file)
    }

    /// Serves it from now on.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn serve(&self, controlled: Arc<Controlled>) -> std::io::Result<()> {
        let listener = self.listener.try_clone()?;
        // Whoever hangs up in the middle wants no more of it.
        let converse = move |stream| drop(converse(stream, &controlled));
        let next = move || listener.accept().map(|(stream, _)| stream);
        // There is room for a line before anything was written.
        let turn_away = |mut stream: UnixStream| drop(writeln!(stream, "{}", render(too_many())));
        super::accept("ctl", MAX_CONNECTIONS, next, converse, turn_away)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.file.remove();
    }
}

/// What those are told for whom there is no room.
fn too_many() -> Answer {
    let why = format!(
        "{MAX_CONNECTIONS} clients are connected, and there can be no more: end a capture, a trace or a `top`, \
         and try again"
    );
    Err(why.into())
}

/// Answers line after line until the other side has said all.
fn converse(stream: UnixStream, controlled: &Arc<Controlled>) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(LONGEST as u64 + 1).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.len() > LONGEST {
            writeln!(writer, "{}", json!({ "error": "the request is too long" }))?;
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = match parse(&line) {
            Ok(request) if Controlled::goes_on(&request) => {
                writer.set_write_timeout(Some(LONG_PATIENCE))?;
                let mut answered = Stream(writer.try_clone()?);
                let last = controlled.follow(&request, &mut answered)?;
                writeln!(writer, "{}", render(last))?;
                return writer.shutdown(Shutdown::Both);
            }
            request => {
                controlled.answering.fetch_add(1, Ordering::AcqRel);
                request.map_err(Failure::from).and_then(|request| controlled.answer(&request))
            }
        };
        let answered = writeln!(writer, "{}", render(answer));
        controlled.answering.fetch_sub(1, Ordering::AcqRel);
        answered?;
    }
}
