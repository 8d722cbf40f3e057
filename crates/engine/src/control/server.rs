//! Serving the socket. Each connection has its own thread, so that one that is slow keeps nobody
//! waiting, least of all the workers.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dataplane::guarded_path::{GuardedPath, SocketFile};

use super::protocol::Request;
use super::stream::Stream;
use super::{Answer, Controlled, LONGEST, capture, render, trace};
use crate::error::Error;
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
        let own = || GuardedPath::make(path).and_then(GuardedPath::listen).map_err(explain);
        let (listener, file) = match user {
            None => own()?,
            Some(user) => {
                let (owner, group) = user.ids();
                match GuardedPath::make_for(path, owner, group) {
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
        let known = Arc::clone(&controlled);
        // Whoever hangs up in the middle wants no more of it.
        let converse = move |stream| drop(converse(stream, &controlled));
        let next = move || listener.accept().map(|(stream, _)| stream);
        // There is room for a line before anything was written.
        let turn_away = move |mut stream: UnixStream| {
            let why = Error::TooManyClients(MAX_CONNECTIONS);
            drop(writeln!(stream, "{}", render(Err(why), &*known.presenter)));
        };
        super::accept("ctl", MAX_CONNECTIONS, next, converse, turn_away)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.file.remove();
    }
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
            let why = Error::Request("the request is too long".to_string());
            writeln!(writer, "{}", render(Err(why), &*controlled.presenter))?;
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let go_on = |serve: &mut dyn FnMut(&mut Stream) -> std::io::Result<Answer>| {
            writer.set_write_timeout(Some(LONG_PATIENCE))?;
            let mut stream = Stream(writer.try_clone()?);
            let last = serve(&mut stream)?;
            stream.last(&render(last, &*controlled.presenter))
        };
        let answer = match Request::read(&line) {
            Ok(Request::Capture(asked)) => {
                return go_on(&mut |stream| capture::serve(controlled, &asked, stream));
            }
            Ok(Request::Trace(asked)) => {
                return go_on(&mut |stream| trace::serve(controlled, &asked, stream));
            }
            request => {
                controlled.answering.fetch_add(1, Ordering::AcqRel);
                request.and_then(|request| controlled.answer(&request))
            }
        };
        let answered = writeln!(writer, "{}", render(answer, &*controlled.presenter));
        controlled.answering.fetch_sub(1, Ordering::AcqRel);
        answered?;
    }
}
