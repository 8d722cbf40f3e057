//! Mixes: of which flow each packet of generated traffic is, and what it is in it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use elements::rule_packets::{self, Drawn};
use net::wire::tcp::flag::{ACK, FIN, PSH, SYN};

use super::frame::{Contents, Headers, Protocol, Segment, Template, Templates};
use super::hash::Collisions;
use super::{Generator, RuleList};

/// What kind of traffic is generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// Packets of so many flows.
    #[default]
    Flows,
    /// TCP connections from SYN to FIN, whose sizes have a heavy tail. A new one begins where one has ended.
    Connections,
    /// Nothing but SYNs, each from another source.
    SynFlood,
    /// Flows that have the same hash.
    HashFlood,
    /// Packets that agree with one flow's source address and ports in prefixes of all lengths.
    TupleSpace,
    /// Packets that each rule of a list decides.
    Rules,
}

impl Mix {
    /// All of them, with the names that `mix=` takes.
    pub(super) const ALL: [(&'static str, Self); 6] = [
        ("flows", Self::Flows),
        ("connections", Self::Connections),
        ("syn-flood", Self::SynFlood),
        ("hash-flood", Self::HashFlood),
        ("tuple-space", Self::TupleSpace),
        ("rules", Self::Rules),
    ];

    /// The keys that it takes.
    pub(super) const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Flows => &[
                "mix", "proto", "size", "vlan", "flows", "zipf", "whales", "rate", "count", "seed",
                "src", "dst",
            ],
            Self::Connections => &[
                "mix", "proto", "size", "vlan", "flows", "packets", "rate", "count", "seed", "src",
                "dst",
            ],
            Self::SynFlood => &["mix", "proto", "vlan", "dst", "dport", "rate", "count", "seed"],
            Self::HashFlood => &[
                "mix", "proto", "size", "vlan", "flows", "hash", "src", "dst", "sport", "dport",
                "rate", "count", "seed",
            ],
            Self::TupleSpace => &[
                "mix", "proto", "size", "vlan", "src", "dst", "sport", "dport", "rate", "count",
                "seed",
            ],
            Self::Rules => &["mix", "rules", "size", "vlan", "flows", "rate", "count", "seed"],
        }
    }

    pub(super) const fn takes(self, protocol: Protocol) -> bool {
        match self {
            Self::Flows => true,
            Self::Connections | Self::SynFlood => protocol.is_tcp(),
            // The packets' own protocols follow from the rules.
            Self::Rules => matches!(protocol, Protocol::Tcp),
            Self::HashFlood | Self::TupleSpace => protocol.has_ports(),
        }
    }

    /// The protocol if nothing is said.
    pub(super) const fn protocol(self) -> Protocol {
        if self.takes(Protocol::Udp) { Protocol::Udp } else { Protocol::Tcp }
    }
}

/// Bytes of a list of rules at the most.
const MAX_RULES: u64 = 64 << 20;

/// Where the headers of packets come from.
pub(super) enum Source {
    Flows(Chooser),
    Connections(Connections),
    SynFlood,
    /// For each protocol.
    HashFlood(Vec<Collisions>),
    TupleSpace,
    /// What was drawn for the rules.
    Rules(Drawn),
}

impl Source {
    /// # Errors
    /// What is wrong with a list of rules.
    pub(super) fn new(generator: &Generator, rng: &mut fastrand::Rng) -> Result<Self, String> {
        Ok(match generator.mix {
            Mix::Flows => Self::Flows(Chooser::new(generator)),
            Mix::Connections => Self::Connections(Connections::new(generator)),
            Mix::SynFlood => Self::SynFlood,
            Mix::HashFlood => {
                let of = |&protocol| Collisions::new(generator.hash, base(generator, protocol));
                Self::HashFlood(generator.protocols.iter().map(of).collect())
            }
            Mix::TupleSpace => Self::TupleSpace,
            Mix::Rules => {
                let explain = |why: String| format!("{}: {why}", generator.rules);
                let text: Arc<str> = match &generator.rules {
                    RuleList::Text(text) => Arc::clone(text),
                    RuleList::File(path) => {
                        let bytes = crate::file::read(path, MAX_RULES)
                            .and_then(|bytes| crate::file::decompressed(bytes, MAX_RULES));
                        let bytes = bytes.map_err(|e| explain(e.to_string()))?;
                        String::from_utf8(bytes).map_err(|e| explain(e.to_string()))?.into()
                    }
                };
                let drawn = rule_packets::draw(&text, generator.flows as usize, rng);
                Self::Rules(drawn.map_err(explain)?)
            }
        })
    }

    /// What a reader must know of the packets: rules that have none.
    pub(super) fn remark(&self, generator: &Generator) -> Option<String> {
        let Self::Rules(Drawn { rules, unreached, .. }) = self else { return None };
        let first = unreached.first()?;
        Some(format!(
            "{}: {} of {rules} rules have no packets, the first in line {first}: rules before them match all that were drawn",
            generator.rules,
            unreached.len()
        ))
    }

    /// The packet of a number, counted from 0: what it is a copy of, and its headers.
    pub(super) fn next<'a>(
        &mut self,
        generator: &Generator,
        templates: &'a Templates,
        packet: u64,
        rng: &mut fastrand::Rng,
    ) -> (&'a Template, Contents) {
        let protocols = generator.protocols.len();
        // Where packets and not flows have protocols in turn.
        let which = (packet % protocols as u64) as usize;
        let round = packet / protocols as u64;
        let (template, headers) = match self {
            Self::Flows(chooser) => {
                let (which, headers) = flow(generator, chooser.next(generator.flows, rng));
                (templates.sized(which, packet), headers)
            }
            Self::Connections(connections) => connections.next(generator, templates, packet, rng),
            Self::SynFlood => {
                let base = base(generator, generator.protocols[which]);
                let source = match base.source {
                    IpAddr::V4(_) => random_unicast(|| rng.u32(..).to_be_bytes().into()),
                    // 2000::/3, the addresses of the internet.
                    IpAddr::V6(_) => Ipv6Addr::from(rng.u128(..) >> 3 | 1 << 125).into(),
                };
                let segment = Segment { flags: SYN, sequence: rng.u32(..), acknowledgment: 0 };
                let ports = (rng.u16(1024..), base.ports.1);
                (templates.bare(which), Headers { source, segment, ports, ..base })
            }
            Self::HashFlood(collisions) => {
                let flow = (round % u64::from(generator.flows)) as u32;
                (templates.sized(which, packet), collisions[which].get(flow))
            }
            Self::TupleSpace => {
                let base = base(generator, generator.protocols[which]);
                (templates.sized(which, packet), tuple(base, round, rng))
            }
            Self::Rules(Drawn { headers, .. }) => {
                let contents = Contents::Drawn(headers[(packet % headers.len() as u64) as usize]);
                return (templates.sized(which, packet), contents);
            }
        };
        (template, Contents::Headers(headers))
    }
}

/// Addresses this far from the generator's first ones.
fn addresses(generator: &Generator, protocol: Protocol, by: (u32, u32)) -> (IpAddr, IpAddr) {
    if protocol.is_ipv6() {
        let plus = |base: Ipv6Addr, by: u32| base.to_bits().wrapping_add(by.into());
        (
            Ipv6Addr::from(plus(generator.source6, by.0)).into(),
            Ipv6Addr::from(plus(generator.destination6, by.1)).into(),
        )
    } else {
        let plus = |base: Ipv4Addr, by: u32| base.to_bits().wrapping_add(by);
        (
            Ipv4Addr::from(plus(generator.source, by.0)).into(),
            Ipv4Addr::from(plus(generator.destination, by.1)).into(),
        )
    }
}

/// Destinations of flows are among so many addresses.
const SCATTER: u32 = 1 << 24;

/// The headers of a flow, and the place of its protocol.
fn flow(generator: &Generator, number: u32) -> (usize, Headers) {
    let which = number as usize % generator.protocols.len();
    let protocol = generator.protocols[which];
    let mix = |number: u64| (number ^ generator.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = mix(number.into());
    // The first flow of each IP version has the first address.
    let same_version = |other: &Protocol| other.is_ipv6() == protocol.is_ipv6();
    let first =
        mix(generator.protocols.iter().take_while(|&other| !same_version(other)).count() as u64);
    let scattered = (mixed >> 40).wrapping_sub(first >> 40) as u32 % SCATTER;
    let by = (number >> 4, scattered);
    let (source, destination) = addresses(generator, protocol, by);
    let ports = (1024 + (number % 60_000) as u16, 1 + (mixed >> 16) as u16 % 1023);
    (which, Headers { source, destination, ports, segment: Segment::PLAIN })
}

/// The flow that attacks are made from.
fn base(generator: &Generator, protocol: Protocol) -> Headers {
    let (source, destination) = addresses(generator, protocol, (0, 0));
    let ports = (generator.source_port, generator.destination_port);
    Headers { source, destination, ports, segment: Segment::PLAIN }
}

/// Draws addresses until one is unicast, or gives up where there may be none.
fn random_unicast(mut draw: impl FnMut() -> IpAddr) -> IpAddr {
    let is_unicast = |address: &IpAddr| match address {
        IpAddr::V4(address) => !matches!(address.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(address) => !address.is_multicast() && !address.is_unspecified(),
    };
    (0..64).map(|_| draw()).find(is_unicast).unwrap_or_else(draw)
}

/// A packet that agrees with a flow in the first bits of source address, source port and destination port, differs in the
/// next one, and is random beyond. All combinations of lengths take turns.
fn tuple(base: Headers, number: u64, rng: &mut fastrand::Rng) -> Headers {
    // Their number is a power of 2, and multiples of an odd number go through all in an order that looks random.
    let mixed = number.wrapping_mul(0x9e37_79b9);
    let lengths = (mixed as u32 % 16, (mixed >> 4) as u32 % 16, (mixed >> 8) as u32);
    let mut port = |port: u16, length| differ(port.into(), 16, length, rng.u16(..).into()) as u16;
    let ports = (port(base.ports.0, lengths.0), port(base.ports.1, lengths.1));
    let source = random_unicast(|| match base.source {
        IpAddr::V4(source) => {
            let source = u128::from(source.to_bits());
            let source = differ(source, 32, lengths.2 % 32, rng.u32(..).into());
            IpAddr::V4((source as u32).into())
        }
        IpAddr::V6(source) => {
            IpAddr::V6(differ(source.to_bits(), 128, lengths.2 % 128, rng.u128(..)).into())
        }
    });
    Headers { source, ports, ..base }
}

/// A value of so many bits whose first ones, as many as said, agree and whose next differs; the rest is another's.
fn differ(value: u128, bits: u32, agreeing: u32, rest: u128) -> u128 {
    let bit = 1 << (bits - 1 - agreeing);
    (value ^ bit) & !(bit - 1) | rest & (bit - 1)
}

/// TCP connections, as their clients send them.
pub(super) struct Connections {
    /// Those that are open.
    open: Vec<Option<Connection>>,
    /// How many there were.
    opened: u32,
}

struct Connection {
    /// It has the addresses and ports of the flow of this number.
    number: u32,
    /// Data packets still to come.
    left: u32,
    sequence: u32,
}

/// The exponent of the Pareto distribution of packets: the mean is finite, the variance is not.
const TAIL: f64 = 1.5;

impl Connections {
    fn new(generator: &Generator) -> Self {
        Self { open: (0..generator.flows).map(|_| None).collect(), opened: 0 }
    }

    fn next<'a>(
        &mut self,
        generator: &Generator,
        templates: &'a Templates,
        packet: u64,
        rng: &mut fastrand::Rng,
    ) -> (&'a Template, Headers) {
        let at = rng.usize(..self.open.len());
        let slot = &mut self.open[at];
        let Some(connection) = slot else {
            let (which, headers) = flow(generator, self.opened);
            let sequence = rng.u32(..);
            let segment = Segment { flags: SYN, sequence, acknowledgment: 0 };
            *slot = Some(Connection {
                number: self.opened,
                left: data_packets(generator.packets.into(), rng),
                sequence: sequence.wrapping_add(1),
            });
            self.opened = self.opened.wrapping_add(1);
            return (templates.bare(which), Headers { segment, ..headers });
        };
        let (which, headers) = flow(generator, connection.number);
        let sequence = connection.sequence;
        // The server's first number; it sends nothing but what it must.
        let acknowledgment = connection.number.wrapping_mul(0x9e37_79b1).wrapping_add(1);
        let is_last = connection.left == 0;
        let (flags, template) = match is_last {
            true => (FIN | ACK, templates.bare(which)),
            false => (PSH | ACK, templates.sized(which, packet)),
        };
        match is_last {
            true => *slot = None,
            false => {
                connection.left -= 1;
                connection.sequence = sequence.wrapping_add(template.payload() as u32);
            }
        }
        (template, Headers { segment: Segment { flags, sequence, acknowledgment }, ..headers })
    }
}

/// How many data packets a connection has, if it is so many on average.
fn data_packets(mean: f64, rng: &mut fastrand::Rng) -> u32 {
    let least = mean * (TAIL - 1.0) / TAIL;
    let drawn = least * (1.0 - rng.f64()).powf(-1.0 / TAIL);
    // Rounded up as often as keeps the mean.
    (drawn + rng.f64()) as u32
}

/// Draws flow numbers by their shares.
pub(super) enum Chooser {
    /// Every flow in turn.
    InTurn(u32),
    /// So many flows have this share of the packets; the others share the rest in turn.
    Whales { whales: u32, share: f64, next: u32 },
    /// For each slot, the chance to stay (of 2^32) and the flow to take otherwise (Walker's alias method).
    Alias(Vec<(u32, u32)>),
}

impl Chooser {
    fn new(generator: &Generator) -> Self {
        let (flows, skew) = (generator.flows, generator.zipf);
        if generator.whales > 0 && generator.whales < flows {
            let whales = generator.whales;
            return Self::Whales { whales, share: generator.whale_share, next: whales };
        }
        if skew == 0.0 {
            return Self::InTurn(0);
        }
        let mut scaled: Vec<f64> = (1..=flows).map(|k| f64::from(k).powf(-skew)).collect();
        let mean = scaled.iter().sum::<f64>() / f64::from(flows);
        scaled.iter_mut().for_each(|share| *share /= mean);
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..flows).partition(|&i| scaled[i as usize] < 1.0);
        let mut table = vec![(u32::MAX, 0u32); scaled.len()];
        while let (Some(s), Some(&l)) = (small.pop(), large.last()) {
            let (share, more) = (scaled[s as usize], &mut scaled[l as usize]);
            table[s as usize] = ((share * f64::from(u32::MAX)) as u32, l);
            *more -= 1.0 - share;
            if *more < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Self::Alias(table)
    }

    fn next(&mut self, flows: u32, rng: &mut fastrand::Rng) -> u32 {
        match self {
            Self::InTurn(next) => {
                let flow = *next;
                *next = if flow + 1 == flows { 0 } else { flow + 1 };
                flow
            }
            Self::Whales { whales, share, .. } if rng.f64() < *share => rng.u32(..*whales),
            Self::Whales { whales, next, .. } => {
                let flow = *next;
                *next = if flow + 1 == flows { *whales } else { flow + 1 };
                flow
            }
            Self::Alias(table) => {
                let slot = rng.u32(0..flows);
                let (stay, other) = table[slot as usize];
                if rng.u32(..) <= stay { slot } else { other }
            }
        }
    }
}
