//! A client of the control socket: asks an instance, in this process or another.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;

use super::protocol::{Ask, Piece, Refusal, Reply, Request};
use crate::error::Error;

/// Bytes of a line, or behind one, at the most: an answer can hold the values of many handlers.
const LONGEST: u64 = 1 << 28;

/// A connection to an instance.
pub struct Client {
    reader: BufReader<UnixStream>,
}

/// A part of an answer that goes on.
pub enum Received {
    /// A piece of it.
    Piece(Piece),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The instance refuses.
    Refused(Refusal),
    /// It hung up.
    Gone(io::Error),
    /// What it says is not understood.
    Misunderstood(Error),
    /// Whoever takes the parts of the answer cannot go on.
    Ended(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => f.write_str(&refusal.message),
            Self::Gone(why) => write!(f, "the instance is gone: {why}"),
            Self::Misunderstood(why) => why.fmt(f),
            Self::Ended(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(why: io::Error) -> Self {
        Self::Gone(why)
    }
}

impl Client {
    /// Connects to a socket.
    ///
    /// # Errors
    /// The system's.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self { reader: BufReader::new(UnixStream::connect(path)?) })
    }

    /// Asks for something.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn ask<R: Ask>(&mut self, request: R) -> Result<R::Answer, Failure> {
        self.follow(request, |_| Ok(()))
    }

    /// Asks for something whose answer goes on, until it ends; gives its end.
    ///
    /// # Errors
    /// Why there is none, or what whoever takes the parts says.
    pub fn follow<R: Ask>(
        &mut self,
        request: R,
        mut take: impl FnMut(Received) -> Result<(), String>,
    ) -> Result<R::Answer, Failure> {
        let request: Request = request.into();
        let line =
            request.line().map_err(|e| Failure::Misunderstood(Error::Request(e.to_string())))?;
        // Who is turned away is told so before he asks.
        let asked = writeln!(self.reader.get_mut(), "{line}");
        loop {
            let mut line = Vec::new();
            (&mut self.reader).take(LONGEST).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                asked?;
                return Err(Failure::Gone(io::ErrorKind::UnexpectedEof.into()));
            }
            match Reply::read(&line).map_err(Failure::Misunderstood)? {
                Reply::Ok(answer) => return Ok(answer),
                Reply::Error(refusal) => return Err(Failure::Refused(refusal)),
                Reply::More(piece) => take(Received::Piece(piece)).map_err(Failure::Ended)?,
                Reply::Bytes(count) => {
                    let mut bytes = Vec::new();
                    (&mut self.reader).take(count.min(LONGEST)).read_to_end(&mut bytes)?;
                    take(Received::Bytes(bytes)).map_err(Failure::Ended)?;
                }
            }
        }
    }

    /// What ends an answer that goes on, from another thread.
    ///
    /// # Errors
    /// If there are no descriptors.
    pub fn ender(&self) -> io::Result<impl FnOnce() + Send + 'static> {
        let stream = self.reader.get_ref().try_clone()?;
        // If the instance is gone, the answer has ended.
        Ok(move || drop(stream.shutdown(Shutdown::Write)))
    }
}
