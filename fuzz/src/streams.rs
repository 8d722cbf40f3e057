//! Streams of TCP that are put together and read: requests of HTTP/1, first messages of TLS, and what rules search for.

use net::checksum::pseudo_header_v4;
use net::wire::tcp::flag::{ACK, FIN, PSH, RST, SYN};
use net::wire::{Ipv4, Tcp};

use crate::fed::{Fed, Records};

/// Segments that are played: so many may stand apart.
const MOST: usize = 60;
/// Bytes from the beginning of a stream at which segments begin.
const OFFSETS: u16 = 0x0fff;
/// Bytes of a stream that are sent one by one.
const SINGLE: usize = 200;
/// Bytes that streams may take where memory is short, and that each takes at least.
const MEMORY: u64 = 4096;
const STREAM: u64 = 192;

const CHAIN: &str = "
    in :: Idle -> Strip(14) -> CheckIPHeader -> CheckTCPHeader -> all :: Tee;
    all[0] -> urls :: URLFilter(urls.txt) -> Discard;
    all[1] -> rules :: SnortFilter(snort.rules) -> Discard;
    short :: Idle -> Strip(14) -> CheckIPHeader -> CheckTCPHeader -> both :: Tee;
    both[0] -> few_urls :: URLFilter(urls.txt, MEMORY 4096) -> Discard;
    both[1] -> few_rules :: SnortFilter(snort.rules, MEMORY 4096) -> Discard;";

/// A segment of a client, with its number in the port.
struct Segment<'a> {
    client: u16,
    flags: u8,
    sequence: u32,
    payload: &'a [u8],
    is_sound: bool,
}

impl Segment<'_> {
    fn frame(&self) -> Vec<u8> {
        let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let length = 20 + self.payload.len() as u16;
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0; 20]);
        frame.extend(self.payload);
        let (ip, tcp) = frame[14..].split_at_mut(20);
        let mut ip = Ipv4::new(ip).expect("it is long enough");
        ip.set_total_len(20 + length);
        ip.fill_checksum();
        let mut tcp = Tcp::new(tcp).expect("it is long enough");
        tcp.set_src_port(1024 + self.client);
        tcp.set_dst_port(80);
        tcp.set_seq(self.sequence);
        tcp.set_header_len(20);
        tcp.set_flags(self.flags);
        tcp.set_window(8000);
        tcp.fill_checksum(pseudo_header_v4(src, dst, 6, length));
        if !self.is_sound {
            let sum = tcp.checksum();
            tcp.set_checksum(!sum);
        }
        frame
    }
}

/// What is found out about a stream.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    is_listed: bool,
    has_word: bool,
}

/// Packets that were refused for their address, and those with the word.
fn counts(chain: &mut Fed) -> [u64; 2] {
    let rules = chain.read("rules.rules");
    let word = rules.lines().find(|line| line.contains("a word"));
    let count = word.and_then(|line| line.split_whitespace().next()?.parse().ok());
    [chain.count("urls.blocked"), count.unwrap_or(0)]
}

/// Has segments of a stream come in; what was found in them.
fn play(chain: &mut Fed, segments: &[Segment<'_>]) -> Found {
    let before = counts(chain);
    segments.iter().for_each(|segment| chain.feed("in", &segment.frame()));
    let after = counts(chain);
    Found { is_listed: after[0] > before[0], has_word: after[1] > before[1] }
}

fn has_word(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|window| window == b"attack")
}

/// Segments in any order and with overlaps say what their stream says, sent at once or byte by byte: of each byte, the
/// first one that came. Memory is bounded.
///
/// An input begins with the first sequence number. Then comes for each segment a byte of bits, where it begins, and
/// its length.
pub fn streams(data: &[u8]) {
    let mut records = Records(data);
    let start = u32::from(records.byte().unwrap_or(0)).wrapping_sub(128);
    let (mut segments, mut stream) = (Vec::new(), Vec::new());
    let segment = |client, flags, sequence, payload| Segment {
        client,
        flags,
        sequence,
        payload,
        is_sound: true,
    };
    segments.push(segment(1, SYN, start, &[][..]));
    while let (Some(bits), Some(offset), Some(length)) =
        (records.byte(), records.number(), records.byte())
    {
        let (offset, payload) = (offset & OFFSETS, records.bytes(length.into()));
        let flags = match bits & 7 {
            0..=4 => ACK | PSH,
            5 => ACK | FIN,
            // Somebody who is not the client: the stream goes on.
            6 => RST,
            _ => ACK | PSH | FIN,
        };
        let sequence = start.wrapping_add(1 + u32::from(offset));
        let is_sound = bits & 8 == 0;
        segments.push(Segment { is_sound, ..segment(1, flags, sequence, payload) });
        if is_sound {
            let end = usize::from(offset) + payload.len();
            stream.resize(stream.len().max(end), None);
            for (place, byte) in stream[usize::from(offset)..].iter_mut().zip(payload) {
                place.get_or_insert(*byte);
            }
        }
        if segments.len() > MOST {
            break;
        }
    }
    let stream: Vec<u8> = stream.into_iter().map_while(|byte| byte).collect();
    let mut chain = Fed::start(CHAIN);
    let found = play(&mut chain, &segments);

    let at = |offset: usize| start.wrapping_add(1 + offset as u32);
    let begin = |client| segment(client, SYN, start, &[]);
    let pieces = |client, length: usize| {
        let chunks = stream.chunks(length).enumerate();
        let all = chunks.map(move |(n, piece)| segment(client, ACK, at(n * length), piece));
        std::iter::once(begin(client)).chain(all).collect::<Vec<_>>()
    };
    let at_once = play(&mut chain, &pieces(2, 8192));
    let sound = segments.iter().filter(|segment| segment.is_sound);
    let in_a_packet = sound.clone().any(|segment| has_word(segment.payload));
    assert_eq!(found.has_word, has_word(&stream) || in_a_packet);
    assert_eq!(at_once.has_word, has_word(&stream));
    assert_eq!(found.is_listed, at_once.is_listed, "{:?}", String::from_utf8_lossy(&stream));
    if stream.len() <= SINGLE {
        assert_eq!(play(&mut chain, &pieces(3, 1)), at_once);
    }

    // The same, each of another client.
    for (client, segment) in segments.into_iter().enumerate() {
        chain.feed("short", &Segment { client: client as u16, ..segment }.frame());
        let known = ["few_urls.streams", "few_rules.connections"].map(|of| chain.count(of));
        assert!(known.iter().all(|known| known * STREAM <= MEMORY), "{known:?}");
    }
}
