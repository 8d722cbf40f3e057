//! Workloads: which packet of which connection comes when. They are drawn once and kept as a few bytes a packet, so
//! that what a source does for a packet is the same whatever the traffic, and every run meets the same packets.

use std::path::Path;
use std::rc::Rc;

use fastrand::Rng;
use net::pcap::Reader;
use net::wire::ip_protocol;

/// Length of an Ethernet header.
const ETHERNET: usize = 14;
/// The longest frame.
const LONGEST: usize = 1514;
/// How many servers connections lead to.
const SERVERS: u32 = 1000;

/// TCP flags.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// What a frame is, but for the connection that it belongs to.
struct Template {
    frame: Vec<u8>,
    /// The sum of what its checksums cover, but for addresses, ports and sequence number.
    network_sum: u32,
    transport_sum: u32,
    /// Where the transport header is, and the checksum in it; nowhere in later fragments.
    transport: Option<(usize, usize)>,
    tcp: bool,
    /// The first byte of destinations.
    network: u8,
}

/// How a template is made.
#[derive(Clone, Copy)]
struct Shape {
    /// Length of the frame.
    length: usize,
    /// TCP flags, or UDP.
    flags: Option<u8>,
    ttl: u8,
    /// Whether the header has an option (Router Alert).
    option: bool,
    /// The word with the fragment offset.
    fragment: u16,
    network: u8,
}

const UDP: Shape =
    Shape { length: 60, flags: None, ttl: 64, option: false, fragment: 0, network: 20 };
const DATA: Shape = Shape { flags: Some(PSH | ACK), ..UDP };

impl Template {
    fn new(shape: Shape) -> Self {
        let Shape { length, flags, ttl, option, fragment, network } = shape;
        let mut frame = vec![0; length];
        frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2]);
        frame[12] = 8;
        let ip = &mut frame[ETHERNET..];
        let header = if option { 24 } else { 20 };
        let total = ip.len() as u16;
        ip[0] = 0x40 | (header / 4) as u8;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[6..8].copy_from_slice(&fragment.to_be_bytes());
        ip[8] = ttl;
        ip[9] = if flags.is_some() { ip_protocol::TCP } else { ip_protocol::UDP };
        if option {
            ip[20..24].copy_from_slice(&[0x94, 4, 0, 0]);
        }
        let is_first = fragment & 0x1fff == 0;
        let segment = total - header;
        if is_first {
            let transport = &mut ip[header as usize..];
            transport[2..4].copy_from_slice(&443u16.to_be_bytes());
            match flags {
                Some(flags) => {
                    transport[12] = 0x50;
                    transport[13] = flags;
                    transport[14..16].copy_from_slice(&0x2000u16.to_be_bytes());
                }
                None => transport[4..6].copy_from_slice(&segment.to_be_bytes()),
            }
        }
        let (network_sum, protocol) = (sum(&ip[..header as usize]), u32::from(ip[9]));
        let transport_sum = sum(&ip[header as usize..]) + protocol + u32::from(segment);
        let at = ETHERNET + header as usize;
        let transport = is_first.then_some((at, at + if flags.is_some() { 16 } else { 6 }));
        Self { frame, network_sum, transport_sum, transport, tcp: flags.is_some(), network }
    }

    /// Makes it a packet of a connection.
    fn complete(&mut self, event: Event) -> &[u8] {
        // Each connection has a source of its own.
        let mixed = event.connection.wrapping_mul(0x9e37_79b1);
        let server = (event.connection.wrapping_mul(0x85eb_ca6b) >> 12) % SERVERS;
        let source = 0x0a00_0000 | mixed >> 15;
        let target = u32::from(self.network) << 24 | (server % 10) << 16 | (server / 10) << 8 | 1;
        let port = 0x8000 | (mixed & 0x7fff) as u16;
        let sequence = u32::from(event.sequence) * 1000;
        let words = |n: u32| (n >> 16) + (n & 0xffff);
        let addresses = words(source) + words(target);
        let frame = &mut self.frame;
        frame[ETHERNET + 12..ETHERNET + 16].copy_from_slice(&source.to_be_bytes());
        frame[ETHERNET + 16..ETHERNET + 20].copy_from_slice(&target.to_be_bytes());
        let checksum = folded(self.network_sum + addresses);
        frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum.to_be_bytes());
        if let Some((at, checksum_at)) = self.transport {
            frame[at..at + 2].copy_from_slice(&port.to_be_bytes());
            let mut total = self.transport_sum + addresses + u32::from(port);
            if self.tcp {
                frame[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
                total += words(sequence);
            }
            let checksum = match folded(total) {
                0 => 0xffff,
                checksum => checksum,
            };
            frame[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        frame
    }
}

/// The sum of 16-bit words.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).copied().unwrap_or(0))).sum()
}

/// The checksum that a sum comes to.
fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// A packet.
#[derive(Clone, Copy)]
struct Event {
    connection: u32,
    sequence: u16,
    template: u16,
}

/// What packets are made from.
enum Packets {
    Drawn { shapes: Vec<Shape>, events: Vec<Event> },
    Captured(Vec<Vec<u8>>),
}

/// A workload.
pub(crate) struct Workload {
    packets: Packets,
    /// How many packets go before those that are measured.
    pub(crate) settle: u64,
    /// Whether routers must have a route for any destination.
    pub(crate) any_destination: bool,
    /// Whether flows of UDP are forgotten after a second.
    pub(crate) short_lived: bool,
    /// Whether servers reply.
    pub(crate) replies: bool,
}

impl Workload {
    fn new(packets: Packets, settle: usize) -> Self {
        let settle = settle as u64;
        Self { packets, settle, any_destination: false, short_lived: false, replies: false }
    }

    fn drawn(shapes: Vec<Shape>, settle: usize, events: Vec<Event>) -> Self {
        Self::new(Packets::Drawn { shapes, events }, settle)
    }
}

/// Traffic that workloads are drawn from.
#[derive(Clone)]
pub(crate) struct Traffic {
    pub(crate) name: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Connections(Connections),
    /// Each packet is of a flow that there was none of.
    NewFlows,
    /// Each packet is of any of so many flows.
    RandomFlows(u32),
    Capture(std::path::PathBuf),
}

/// Connections that are open at once; one that ends makes room for a new one.
#[derive(Clone, Copy)]
struct Connections {
    packets: u16,
    open: u32,
    /// How much more often a packet is of one of the first (the exponent of Zipf's law).
    skew: f64,
    what: What,
}

/// What is special about packets.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Nothing,
    /// Half of the connections end by RST.
    Reset,
    /// Servers reply to each packet.
    Replies,
    /// Per cent of the packets that have IP options.
    Options(u8),
    /// Half of the packets expire.
    Expiring,
    /// Half of the packets have no route.
    Unroutable,
    /// UDP, and a quarter of the packets are fragments.
    Fragments,
    /// Frames of 60, 590 and 1,514 bytes, 7 : 4 : 1.
    Sizes,
}

impl Traffic {
    fn connections(name: &str, packets: u16, open: u32, skew: f64, what: What) -> Self {
        let kind = Kind::Connections(Connections { packets, open, skew, what });
        Self { name: name.to_owned(), kind }
    }

    /// All that is measured, and the captures of a folder.
    pub(crate) fn all(captures: Option<&Path>) -> Vec<Self> {
        let mut all = Vec::new();
        for packets in [2, 4, 10, 50, 1000] {
            for (open, count) in [("100", 100), ("10k", 10_000), ("1M", 1_000_000)] {
                for skew in [0.0, 0.9, 1.1] {
                    let name = format!("conn{packets}-open{open}-zipf{skew}");
                    all.push(Self::connections(&name, packets, count, skew, What::Nothing));
                }
            }
        }
        let special = [
            ("conn10-reset", 10, What::Reset),
            ("conn10-replies", 10, What::Replies),
            ("conn50-replies", 50, What::Replies),
            ("options-0", 1000, What::Options(0)),
            ("options-10", 1000, What::Options(10)),
            ("options-50", 1000, What::Options(50)),
            ("ttl-1", 1000, What::Expiring),
            ("no-route", 1000, What::Unroutable),
            ("fragments", 1000, What::Fragments),
            ("imix", 1000, What::Sizes),
        ];
        all.extend(
            special
                .map(|(name, packets, what)| Self::connections(name, packets, 10_000, 0.0, what)),
        );
        all.push(Self { name: "new-flows".into(), kind: Kind::NewFlows });
        all.push(Self { name: "random-flows".into(), kind: Kind::RandomFlows(1_000_000) });
        let mut files: Vec<_> = captures
            .and_then(|folder| folder.read_dir().ok())
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "pcap"))
            .collect();
        files.sort();
        all.extend(files.into_iter().map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            Self { name: format!("capture-{name}"), kind: Kind::Capture(path) }
        }));
        all
    }

    /// Whether its packets differ from chain to chain: new flows come until as many expire.
    pub(crate) fn depends_on_tables(&self) -> bool {
        matches!(self.kind, Kind::NewFlows)
    }

    /// Nanoseconds between two packets, by a clock that shows the same in every run.
    pub(crate) fn gap(&self, tables: u64) -> u64 {
        match self.kind {
            Kind::NewFlows => 200 * (1 + tables),
            _ => 100,
        }
    }

    /// Draws so many packets to be measured, and those that come before.
    pub(crate) fn draw(&self, packets: u64, tables: u64) -> Workload {
        let packets = packets as usize;
        let flow = |connection| Event { connection, sequence: 0, template: 0 };
        match &self.kind {
            Kind::Connections(connections) => connections.draw(packets),
            Kind::NewFlows => {
                // As many flows expire as come.
                let settle = (1_300_000_000 / self.gap(tables)) as usize;
                let events = (0..(settle + packets) as u32).map(flow).collect();
                Workload { short_lived: true, ..Workload::drawn(vec![UDP], settle, events) }
            }
            Kind::RandomFlows(flows) => {
                let mut random = Rng::with_seed(1);
                let drawn = (0..SETTLE + packets).map(|_| random.u32(..*flows));
                let events = (0..*flows).chain(drawn).map(flow).collect();
                Workload::drawn(vec![UDP], *flows as usize + SETTLE, events)
            }
            Kind::Capture(path) => {
                let file = std::fs::File::open(path).expect("a capture");
                let mut reader = Reader::open(file).expect("a capture");
                let mut frames = Vec::new();
                while let Ok(Some(record)) = reader.next() {
                    frames.push(record.data.to_vec());
                }
                let settle = frames.len().max(SETTLE);
                let workload = Workload::new(Packets::Captured(frames), settle);
                Workload { any_destination: true, ..workload }
            }
        }
    }
}

/// How many packets go before those that are measured, once each connection had one.
const SETTLE: usize = 600_000;

impl Connections {
    fn draw(&self, measured: usize) -> Workload {
        let mut random = Rng::with_seed(1);
        let open = self.open as usize;
        let ranks = Ranks::new(open, self.skew);
        // Each connection's number, and how many packets it had: at the beginning, any.
        let mut slots: Vec<(u32, u16)> =
            (0..self.open).map(|connection| (connection, random.u16(..self.packets))).collect();
        let (mut next, mut shapes) = (self.open, Shapes::default());
        let settle = open + SETTLE;
        let mut events = Vec::with_capacity(settle + measured);
        for at in 0..settle + measured {
            let slot = if at < open { at } else { ranks.draw(&mut random) };
            let (connection, sequence) = &mut slots[slot];
            let shape = self.shape(*sequence, &mut random);
            let template = shapes.number(shape);
            events.push(Event { connection: *connection, sequence: *sequence, template });
            *sequence += 1;
            if *sequence == self.packets {
                (*connection, *sequence) = (next, 0);
                next += 1;
            }
        }
        let replies = self.what == What::Replies;
        Workload { replies, ..Workload::drawn(shapes.0, settle, events) }
    }

    fn shape(&self, sequence: u16, random: &mut Rng) -> Shape {
        let segment = match sequence {
            0 => Shape { flags: Some(SYN), ..DATA },
            n if n + 1 < self.packets => DATA,
            _ if self.what == What::Reset && random.bool() => Shape { flags: Some(RST), ..DATA },
            _ => Shape { flags: Some(FIN | ACK), ..DATA },
        };
        match self.what {
            What::Nothing | What::Reset | What::Replies => segment,
            What::Options(share) => Shape { option: random.u8(..100) < share, ..segment },
            What::Expiring => Shape { ttl: if random.bool() { 1 } else { 64 }, ..segment },
            What::Unroutable => Shape { network: if random.bool() { 20 } else { 99 }, ..segment },
            // More follow; the last of two; neither.
            What::Fragments => {
                Shape { fragment: [0x2000, 0x0040, 0, 0, 0, 0, 0, 0][random.usize(..8)], ..UDP }
            }
            What::Sizes => {
                let length = match random.u8(..12) {
                    0..7 => 60,
                    7..11 => 590,
                    _ => LONGEST,
                };
                Shape { length, ..segment }
            }
        }
    }
}

/// Shapes that were used.
#[derive(Default)]
struct Shapes(Vec<Shape>);

impl Shapes {
    fn number(&mut self, shape: Shape) -> u16 {
        let key = |s: &Shape| (s.length, s.flags, s.ttl, s.option, s.fragment, s.network);
        let found = self.0.iter().position(|s| key(s) == key(&shape));
        found.unwrap_or_else(|| {
            self.0.push(shape);
            self.0.len() - 1
        }) as u16
    }
}

/// Ranks drawn by Zipf's law.
struct Ranks {
    /// The share of all up to each rank.
    shares: Vec<f64>,
    count: usize,
}

impl Ranks {
    fn new(count: usize, skew: f64) -> Self {
        if skew == 0.0 {
            return Self { shares: Vec::new(), count };
        }
        let mut total = 0.0;
        let mut shares: Vec<f64> = (1..=count)
            .map(|rank| {
                total += (rank as f64).powf(-skew);
                total
            })
            .collect();
        shares.iter_mut().for_each(|share| *share /= total);
        Self { shares, count }
    }

    fn draw(&self, random: &mut Rng) -> usize {
        if self.shares.is_empty() {
            return random.usize(..self.count);
        }
        let share = random.f64();
        self.shares.partition_point(|s| *s < share).min(self.count - 1)
    }
}

/// A workload's frames from the first to the last, and again.
pub(crate) struct Frames {
    workload: Rc<Workload>,
    templates: Vec<Template>,
    next: usize,
}

impl Frames {
    pub(crate) fn new(workload: &Rc<Workload>) -> Self {
        let templates = match &workload.packets {
            Packets::Drawn { shapes, .. } => shapes.iter().copied().map(Template::new).collect(),
            Packets::Captured(_) => Vec::new(),
        };
        Self { workload: Rc::clone(workload), templates, next: 0 }
    }

    #[inline]
    pub(crate) fn next_frame(&mut self) -> &[u8] {
        let at = self.next;
        let (frame, all) = match &self.workload.packets {
            Packets::Drawn { events, .. } => {
                let event = events[at];
                (self.templates[usize::from(event.template)].complete(event), events.len())
            }
            Packets::Captured(frames) => (&frames[at][..], frames.len()),
        };
        self.next = if at + 1 == all { 0 } else { at + 1 };
        frame
    }
}

/// Makes a TCP segment the reply to it: addresses and ports trade places, so that only flags change the checksum. Nobody
/// replies to RST.
pub(crate) fn reply(frame: &mut [u8]) -> bool {
    const AT: usize = ETHERNET + 20;
    let Some(flags) = frame.get(AT + 13).copied().filter(|flags| flags & RST == 0) else {
        return false;
    };
    let (source, target) = frame[ETHERNET + 12..ETHERNET + 20].split_at_mut(4);
    source.swap_with_slice(target);
    let (source, target) = frame[AT..AT + 4].split_at_mut(2);
    source.swap_with_slice(target);
    let with_ack = flags | ACK;
    frame[AT + 13] = with_ack;
    let checksum = u16::from_be_bytes([frame[AT + 16], frame[AT + 17]]);
    let checksum = folded(u32::from(!checksum) + u32::from(with_ack - flags));
    frame[AT + 16..AT + 18].copy_from_slice(&checksum.to_be_bytes());
    true
}
