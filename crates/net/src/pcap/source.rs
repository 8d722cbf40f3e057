use flate2::read::MultiGzDecoder;
use std::io::{self, Chain, Cursor, Read};
use std::ops::Range;

const BUFFER: usize = 1 << 16;
const GZIP: [u8; 2] = [0x1f, 0x8b];
// Decompressed at once at most: what a step has made before it finds corrupt data is lost.
const GZIP_STEP: usize = 1 << 12;

/// Bytes of a file, decompressed where needed, as a window that moves forward.
pub(super) struct Source<R> {
    input: Input<R>,
    buffer: Vec<u8>,
    // Bytes that are read and not yet consumed.
    start: usize,
    end: usize,
    // Where the window starts in the file.
    offset: u64,
    // The error that ended the input, once.
    failure: Option<io::Error>,
}

enum Input<R> {
    Plain(R),
    Gzip(Box<MultiGzDecoder<Chain<Cursor<Vec<u8>>, R>>>),
    Ended,
}

impl<R: Read> Source<R> {
    pub(super) fn new(read: R) -> Self {
        Self {
            input: Input::Plain(read),
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            offset: 0,
            failure: None,
        }
        .decompressed()
    }

    // Looks for gzip's magic number.
    fn decompressed(mut self) -> Self {
        if self.want(GZIP.len()) < GZIP.len() || self.buffer[..GZIP.len()] != GZIP {
            return self;
        }
        self.buffer.truncate(self.end);
        let begun = Cursor::new(std::mem::replace(&mut self.buffer, vec![0; BUFFER]));
        self.end = 0;
        if let Input::Plain(read) = std::mem::replace(&mut self.input, Input::Ended) {
            self.input = Input::Gzip(Box::new(MultiGzDecoder::new(begun.chain(read))));
        }
        self
    }

    /// Tries to have at least `n` bytes in the window; returns how many there are.
    #[inline]
    pub(super) fn want(&mut self, n: usize) -> usize {
        if self.end - self.start < n {
            self.fill(n);
        }
        self.end - self.start
    }

    #[cold]
    fn fill(&mut self, n: usize) {
        if matches!(self.input, Input::Ended) {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < n {
            // The buffer grows with the bytes that come, not with those that a length promises.
            if self.end == self.buffer.len() {
                self.buffer.resize((2 * self.end).max(BUFFER), 0);
            }
            let room = &mut self.buffer[self.end..];
            let read = match &mut self.input {
                Input::Plain(read) => read.read(room),
                Input::Gzip(read) => {
                    let step = room.len().min(GZIP_STEP);
                    read.read(&mut room[..step])
                }
                Input::Ended => return,
            };
            match read {
                Ok(0) => self.input = Input::Ended,
                Ok(count) => self.end = self.buffer.len().min(self.end + count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.input = Input::Ended;
                }
            }
        }
    }

    /// Skips bytes without holding them; returns how many were there.
    pub(super) fn skip(&mut self, n: u64) -> u64 {
        let mut left = n;
        while left > 0 {
            let present = self.want(1).min(usize::try_from(left).unwrap_or(usize::MAX));
            if present == 0 {
                break;
            }
            self.consume(present);
            left -= present as u64;
        }
        n - left
    }
}

impl Source<io::Empty> {
    /// A whole file that is in memory: nothing of it is copied, unless it is compressed.
    pub(super) fn in_memory(bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        let input = Input::Plain(io::empty());
        Self { input, buffer: bytes, start: 0, end, offset: 0, failure: None }.decompressed()
    }
}

impl<R> Source<R> {
    /// The bytes that are there.
    #[inline]
    pub(super) fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Moves past bytes of the window; the returned range of [`bytes`](Self::bytes) is good until more are wanted.
    #[inline]
    pub(super) fn consume(&mut self, n: usize) -> Range<usize> {
        let from = self.start;
        self.start = self.end.min(from + n);
        self.offset += (self.start - from) as u64;
        from..self.start
    }

    #[inline]
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// Where the window starts, in bytes from the start of the file.
    #[inline]
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The error that ended the input early, if one did.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}
