//! Answers that go on: pieces and bytes before the last line.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use super::protocol::{Piece, Reply};

/// A connection on which an answer goes on. It ends with this, whatever else still waits on it.
pub(super) struct Stream(pub(super) UnixStream);

impl Drop for Stream {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Stream {
    /// Sends a piece of the answer.
    pub(super) fn more(&mut self, piece: Piece) -> io::Result<()> {
        writeln!(self.0, "{}", Reply::<()>::More(piece).line()?)
    }

    /// Sends bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        writeln!(self.0, "{}", Reply::<()>::Bytes(bytes.len() as u64).line()?)?;
        self.0.write_all(bytes)
    }

    /// Sends the last line.
    pub(super) fn last(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.0, "{line}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_hears_the_end_of_an_answer_that_was_given_up() {
        let (own, mut client) = UnixStream::pair().unwrap();
        let stream = Stream(own);
        stream.on_hang_up(|| ()).unwrap();
        drop(stream);
        assert_eq!(client.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}
