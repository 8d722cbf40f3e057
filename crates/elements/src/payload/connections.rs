//! Connections of TCP and UDP whose payloads are searched: who the client is, bits that rules set, and the streams of both
//! directions.
//!
//! Memory is bounded: those that had no packet for longest go first.

use net::wire::tcp::flag::{ACK, SYN};

use super::search::Progress;
use super::window::Window;
use crate::lru_table::LruTable;
use crate::transport::segments::{FlowKeys, Seen};

/// What a connection and a stream take besides a stream's bytes.
const CONNECTION: usize = 192;
const STREAM: usize = 192;
/// Bytes beyond a gap that are kept at the most.
const BEYOND: usize = 256 << 10;
const ALL: usize = 0;

/// What the sender of one direction says.
pub(crate) struct Stream {
    /// Sequence number of its first byte.
    start: u32,
    pub window: Window,
    pub progress: Progress,
    /// Whether what follows is dropped.
    pub is_dropped: bool,
}

impl Stream {
    fn new(start: u32) -> Self {
        let (window, progress) = (Window::new(start, BEYOND), Progress::default());
        Self { start, window, progress, is_dropped: false }
    }

    fn memory(&self) -> usize {
        STREAM + self.window.memory() + self.progress.memory()
    }
}

/// A connection.
pub(crate) struct Connection {
    /// The direction of what clients say.
    to_server: usize,
    pub bits: u128,
    streams: [Option<Box<Stream>>; 2],
}

impl Connection {
    fn memory(&self) -> usize {
        CONNECTION + self.streams.iter().flatten().map(|stream| stream.memory()).sum::<usize>()
    }

    /// Who begins is the client. Of a connection whose beginning was not seen, it is who has the higher port.
    fn new(seen: &Seen<'_>, side: usize) -> Self {
        let is_client = match seen.tcp {
            Some(tcp) if tcp.has(SYN) => !tcp.has(ACK),
            Some(_) => seen.src_port >= seen.dst_port,
            None => true,
        };
        let to_server = if is_client { side } else { 1 - side };
        Self { to_server, bits: 0, streams: [None, None] }
    }
}

/// A packet's connection.
pub(crate) struct Found<'a> {
    pub to_server: bool,
    pub bits: &'a mut u128,
    /// The stream of its direction.
    pub stream: Option<&'a mut Stream>,
}

/// See the module.
pub(crate) struct Connections {
    keys: FlowKeys,
    table: LruTable<Connection>,
    memory: usize,
    most_memory: usize,
}

impl Connections {
    /// Connections that take so many bytes of memory at the most.
    pub(crate) fn new(most_memory: usize) -> Self {
        Self { keys: FlowKeys::new(), table: LruTable::default(), memory: 0, most_memory }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Has `with` look at a packet's connection.
    pub(crate) fn with<T>(&mut self, seen: &Seen<'_>, with: impl FnOnce(Found<'_>) -> T) -> T {
        let (key, side) = self.keys.of_both(seen);
        match self.table.get(key) {
            Some(connection) => {
                self.memory -= connection.memory();
                self.table.renew(key, ALL);
            }
            None => {
                self.table.insert(key, Connection::new(seen, side), ALL);
            }
        }
        let Some(connection) = self.table.get_mut(key) else { unreachable!("it is there") };
        let stream = &mut connection.streams[side];
        if let Some(tcp) = seen.tcp {
            // Another SYN begins a stream anew, not the same one again.
            let is_new = stream.as_ref().is_some_and(|s| tcp.has(SYN) && s.start != tcp.sequence);
            if is_new && !tcp.has(ACK) {
                (connection.to_server, connection.bits) = (side, 0);
            }
            if is_new || stream.is_none() && (tcp.has(SYN) || !seen.payload.is_empty()) {
                *stream = Some(Box::new(Stream::new(tcp.sequence)));
            }
        }
        let result = with(Found {
            to_server: connection.to_server == side,
            bits: &mut connection.bits,
            stream: stream.as_deref_mut(),
        });
        self.memory += connection.memory();
        while self.memory > self.most_memory {
            let Some((oldest, _)) = self.table.oldest(ALL) else { break };
            if let Some(connection) = self.table.remove(oldest) {
                self.memory -= connection.memory();
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::segments::Segment;

    fn seen(from: u32, to: u32, tcp: Option<Segment>, payload: &[u8]) -> Seen<'_> {
        let address = |of: u32| std::net::Ipv4Addr::from_bits(of).into();
        let (src, dst) = (address(from), address(to));
        let (src_port, dst_port) = (from as u16, to as u16);
        let protocol = if tcp.is_some() { 6 } else { 17 };
        Seen {
            protocol,
            src,
            dst,
            src_port,
            dst_port,
            icmp: None,
            tcp,
            at: 0,
            is_fragment: false,
            payload,
        }
    }

    fn segment(sequence: u32, syn: bool, ack: bool) -> Option<Segment> {
        let flags = if syn { SYN } else { 0 } | if ack { ACK } else { 0 };
        Some(Segment { sequence, acknowledged: 0, flags })
    }

    #[test]
    fn who_begins_is_the_client() {
        let mut all = Connections::new(1 << 20);
        let mut to_server = |seen: Seen<'_>| all.with(&seen, |found| found.to_server);
        assert!(to_server(seen(1, 2, segment(1, true, false), b"")));
        assert!(!to_server(seen(2, 1, segment(1, true, true), b"")));
        // The server's SYN was seen first.
        assert!(!to_server(seen(3, 4, segment(1, true, true), b"")));
        assert!(to_server(seen(4, 3, segment(1, false, true), b"")));
        // Neither was.
        assert!(!to_server(seen(5, 6, segment(1, false, true), b"")));
        assert!(to_server(seen(7, 8, None, b"")) && !to_server(seen(8, 7, None, b"")));
    }

    #[test]
    fn memory_is_bounded() {
        let mut all = Connections::new(1 << 20);
        for from in 10..20_000 {
            let seen = seen(from, 5, segment(from, false, true), &[b'x'; 1400]);
            all.with(&seen, |found| {
                *found.bits = 1;
                let stream = found.stream.unwrap();
                stream.window.add(from, seen.payload);
                stream.window.add(from.wrapping_add(100_000), seen.payload);
            });
            assert!(all.memory <= 1 << 20);
        }
        assert!((2..20).contains(&all.len()), "{}", all.len());
        let mut sum = 0;
        while let Some((key, _)) = all.table.oldest(ALL) {
            sum += all.table.remove(key).map_or(0, |connection| connection.memory());
        }
        assert_eq!(sum, all.memory);
    }
}
