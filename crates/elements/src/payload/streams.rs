//! TCP reassembly: what the sender of a connection says, in order, as far as somebody reads it.
//!
//! A stream begins behind its SYN, or where its first packet is seen. A [`Window`] of bytes is kept for each stream, from
//! the first that was not consumed. A stream ends when another SYN begins it anew: who sends FIN or RST may not mean
//! it. When all take too much memory, the streams that had no packet for longest go.

use super::window::{WINDOW, Window};
use crate::lru_table::LruTable;

/// What a stream takes besides its bytes.
const OVERHEAD: usize = 192;
const ALL: usize = 0;

/// A segment of TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    /// Addresses and ports, from source to destination.
    pub key: u128,
    /// Of its first byte of payload.
    pub sequence: u32,
    pub begins: bool,
    pub payload: &'a [u8],
}

/// What is done with a stream's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It is read.
    Reading,
    /// They pass unread.
    Passed,
    /// They are refused.
    Blocked,
}

struct Stream {
    state: State,
    /// Sequence number of its first byte.
    start: u32,
    window: Window,
}

/// The streams of one direction.
pub(crate) struct Streams {
    streams: LruTable<Stream>,
    memory: usize,
    most_memory: usize,
}

impl Stream {
    fn new(start: u32) -> Self {
        Self { state: State::Reading, start, window: Window::new(start, WINDOW) }
    }

    fn taken(&self) -> usize {
        OVERHEAD + self.window.memory()
    }

    fn decide(&mut self, state: State) {
        (self.state, self.window) = (state, Window::new(0, WINDOW));
    }
}

/// What a reader makes of the bytes of a stream that are there in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// More bytes decide.
    More,
    /// So many bytes are read, and what follows is to be.
    Consumed(u32),
    /// What follows need not be read.
    Pass,
    /// This packet and what follows is refused.
    Block,
}

impl Streams {
    /// Streams that take so many bytes of memory at the most.
    pub(crate) fn new(most_memory: usize) -> Self {
        Self { streams: LruTable::default(), memory: 0, most_memory }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.streams.len()
    }

    /// Takes a segment in, and has what is in order then read. Gives what becomes of the packet.
    pub(crate) fn add(&mut self, segment: &Segment<'_>, read: impl Fn(&[u8]) -> Read) -> State {
        let Segment { key, sequence, begins, payload } = *segment;
        let known = self.streams.get(key).map(|stream| (stream.taken(), stream.start));
        // A SYN begins a stream anew, unless it is the same one again.
        let is_new = known.is_none_or(|(_, start)| begins && start != sequence);
        if is_new {
            if !begins && payload.is_empty() {
                return State::Passed;
            }
            self.streams.insert(key, Stream::new(sequence), ALL);
        } else {
            self.streams.renew(key, ALL);
        }
        self.memory -= known.map_or(0, |(taken, _)| taken);
        let Some(stream) = self.streams.get_mut(key) else { return State::Passed };
        if stream.state == State::Reading {
            stream.window.add(sequence, payload);
            while stream.state == State::Reading {
                let ready = stream.window.ready();
                match read(ready) {
                    Read::More if ready.len() >= WINDOW => stream.decide(State::Passed),
                    Read::More => break,
                    Read::Consumed(bytes) => stream.window.consume(bytes.max(1)),
                    Read::Pass => stream.decide(State::Passed),
                    Read::Block => stream.decide(State::Blocked),
                }
                if stream.window.ready().is_empty() {
                    break;
                }
            }
        }
        let state = stream.state;
        self.memory += stream.taken();
        self.make_room();
        match state {
            State::Blocked => State::Blocked,
            _ => State::Passed,
        }
    }

    /// Refuses whatever comes under a key.
    pub(crate) fn block(&mut self, key: u128) {
        self.remove(key);
        let mut stream = Stream::new(0);
        stream.decide(State::Blocked);
        self.memory += stream.taken();
        self.streams.insert(key, stream, ALL);
        self.make_room();
    }

    /// Whether what comes under a key is refused.
    pub(crate) fn is_blocked(&mut self, key: u128) -> bool {
        let is_blocked = self.streams.get(key).is_some_and(|of| of.state == State::Blocked);
        if is_blocked {
            self.streams.renew(key, ALL);
        }
        is_blocked
    }

    fn make_room(&mut self) {
        while self.memory > self.most_memory {
            let Some((oldest, _)) = self.streams.oldest(ALL) else { break };
            self.remove(oldest);
        }
    }

    fn remove(&mut self, key: u128) {
        if let Some(stream) = self.streams.remove(key) {
            self.memory -= stream.taken();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads until `stop`, which blocks, or `.`, which ends what is to be read.
    fn read(bytes: &[u8]) -> Read {
        if bytes.windows(4).any(|w| w == b"stop") {
            return Read::Block;
        }
        match bytes.iter().position(|&b| b == b'.') {
            Some(at) => Read::Consumed(at as u32 + 1),
            None => Read::More,
        }
    }

    fn send(streams: &mut Streams, sequence: u32, payload: &[u8]) -> State {
        streams.add(&Segment { key: 1, sequence, begins: false, payload }, read)
    }

    fn begun(at: u32) -> Streams {
        let mut streams = Streams::new(1 << 20);
        let segment = Segment { key: 1, sequence: at.wrapping_add(1), begins: true, payload: b"" };
        streams.add(&segment, read);
        streams
    }

    #[test]
    fn segments_are_put_in_order() {
        for start in [0, u32::MAX - 2] {
            let mut streams = begun(start);
            let at = |offset: u32| start.wrapping_add(1 + offset);
            assert_eq!(send(&mut streams, at(2), b"op"), State::Passed);
            assert_eq!(send(&mut streams, at(1), b"t"), State::Passed);
            assert_eq!(send(&mut streams, at(0), b"s"), State::Blocked);
            assert_eq!(send(&mut streams, at(4), b"and on"), State::Blocked);
        }
    }

    #[test]
    fn of_overlapping_segments_the_first_counts() {
        let mut streams = begun(0);
        send(&mut streams, 2, b"to");
        assert_eq!(send(&mut streams, 1, b"sxxp"), State::Blocked);
        let mut streams = begun(0);
        send(&mut streams, 2, b"xx");
        assert_eq!(send(&mut streams, 1, b"stop"), State::Passed);
        // What was read does not change any more.
        let mut streams = begun(0);
        send(&mut streams, 1, b"s.");
        assert_eq!(send(&mut streams, 1, b"stop"), State::Passed);
    }

    #[test]
    fn what_follows_is_read_and_sent_byte_by_byte() {
        let mut streams = begun(0);
        let text = b"one.two.stop";
        let last = (1u32..).zip(text).map(|(at, byte)| send(&mut streams, at, &[*byte])).last();
        assert_eq!(last, Some(State::Blocked));
        // From the middle, where the SYN was not seen.
        let mut streams = Streams::new(1 << 20);
        assert_eq!(send(&mut streams, 77, b"st"), State::Passed);
        assert_eq!(send(&mut streams, 79, b"op"), State::Blocked);
    }

    #[test]
    fn memory_is_bounded() {
        let mut streams = Streams::new(100_000);
        for key in 0..10_000 {
            let segment = Segment { key, sequence: 5, begins: false, payload: &[b'x'; 1000] };
            streams.add(&segment, read);
            assert!(streams.memory <= 100_000);
        }
        assert!(streams.len() > 10 && streams.len() < 100);
        let mut far = begun(0);
        send(&mut far, 1 + WINDOW as u32, b"stop");
        send(&mut far, 0x7fff_ffff, b"stop");
        assert!(far.memory < 1000);
        for at in 0..20 {
            send(&mut far, 1 + at * 1000, &[b'x'; 1000]);
        }
        assert!(far.memory < 1000, "what is too long is not read");
        // Another SYN begins anew, the same one again does not.
        let begin =
            |sequence: u32| Segment { key: 1, sequence: sequence + 1, begins: true, payload: b"" };
        far.add(&begin(0), read);
        assert_eq!(send(&mut far, 1, b"stop"), State::Passed);
        far.add(&begin(100), read);
        assert_eq!((far.len(), send(&mut far, 101, b"stop")), (1, State::Blocked));
    }
}
