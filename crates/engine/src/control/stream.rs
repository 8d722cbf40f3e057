//! Answers that go on: lines of JSON with the member `more`, or with `bytes` and as many bytes
//! behind the line, before the last line with `ok` or `error`. The client ends such an answer by
//! closing its sending side.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

/// A connection on which an answer goes on.
pub(super) struct Stream(pub(super) UnixStream);

impl Stream {
    /// Sends a piece of the answer.
    pub(super) fn more(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.0, "{}", json!({ "more": value }))
    }

    /// Sends bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        writeln!(self.0, "{}", json!({ "bytes": bytes.len() }))?;
        self.0.write_all(bytes)
    }

    /// Has something done when the client closes its sending side, or says anything more.
    pub(super) fn on_hang_up(&self, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut client = self.0.try_clone()?;
        let wait = move || {
            let _ = client.read(&mut [0]);
            work();
        };
        std::thread::Builder::new().name("ctl end".into()).spawn(wait).map(drop)
    }
}
