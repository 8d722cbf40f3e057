//! The traffic generator: flows of UDP, TCP or ICMP packets, repeatable from a seed.

use std::fmt;
use std::str::FromStr;

use elements::device::{Device, Received};
use net::wire::{EtherAddr, Ethernet, Icmpv4, Ipv4, Tcp, Udp};
use net::wire::{ether, ether_type, icmpv4, ip_protocol, ipv4, tcp};
use net::{Batch, Packet, Pool};

/// What traffic is generated. Written as `key=value` pairs with commas; see [`Generator::KEYS`].
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    /// Protocols, by their share of the flows.
    pub protocols: Vec<Protocol>,
    /// Frame sizes in bytes without FCS, used in turn.
    pub sizes: Vec<u16>,
    /// Number of flows.
    pub flows: u32,
    /// Skew of the flows' shares of the packets: 0 is equal shares, 1 is Zipf's law.
    pub zipf: f64,
    /// Packets per second; 0 is as fast as they are taken.
    pub rate: u64,
    /// Number of packets; 0 is without end.
    pub count: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// First source address; flows count up from it.
    pub source: u32,
    /// First destination address; flows count up from it.
    pub destination: u32,
}

/// A protocol that can be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Protocol {
    Udp,
    Tcp,
    Icmp,
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            protocols: vec![Protocol::Udp],
            sizes: vec![60],
            flows: 1000,
            zipf: 0.0,
            rate: 0,
            count: 1_000_000,
            seed: 1,
            source: 0x0a00_0001,
            destination: 0x1400_0001,
        }
    }
}

/// Largest frame that is generated.
const MAX_SIZE: u16 = 9216;
/// Bytes of Ethernet, IPv4 and TCP header.
const MIN_SIZE: u16 = 54;
/// Sizes and protocols at the most: there is a frame of each size for each protocol.
const MAX_SIZES: usize = 256;
const MAX_PROTOCOLS: usize = 16;
/// Flows of different shares at the most: what they are drawn by takes 8 bytes each.
const MAX_SKEWED: u32 = 1 << 22;

impl Generator {
    /// What can be said of the traffic, for help texts.
    pub const KEYS: &'static str = "proto=udp|tcp|icmp|udp+tcp, size=BYTES or BYTES/BYTES/…, flows=N, zipf=SKEW, \
        rate=PACKETS-PER-SECOND, count=N (0: without end), seed=N, src=ADDR, dst=ADDR";

    /// A device that makes this traffic.
    pub(super) fn start(&self) -> Box<dyn Device + Send> {
        Box::new(Running::new(self.clone()))
    }
}

/// A number with an optional suffix k, M or G.
fn scaled(text: &str) -> Option<u64> {
    let (digits, scale) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'M' | 'm' => (&text[..text.len() - 1], 1e6),
        'G' | 'g' => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = digits.parse().ok()?;
    (number >= 0.0 && number * scale <= 1e18).then_some((number * scale) as u64)
}

impl FromStr for Generator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut generator = Self::default();
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let wrong = || format!("'{pair}' is not understood; a generator takes {}", Self::KEYS);
            let (key, value) = pair.split_once('=').ok_or_else(wrong)?;
            match key {
                "proto" => {
                    generator.protocols = value
                        .split('+')
                        .map(|p| match p {
                            "udp" => Ok(Protocol::Udp),
                            "tcp" => Ok(Protocol::Tcp),
                            "icmp" => Ok(Protocol::Icmp),
                            _ => Err(wrong()),
                        })
                        .collect::<Result<_, _>>()?;
                }
                "size" => {
                    generator.sizes = value
                        .split('/')
                        .map(|s| s.parse().ok().filter(|s| (MIN_SIZE..=MAX_SIZE).contains(s)))
                        .collect::<Option<_>>()
                        .ok_or_else(|| {
                            format!("'{pair}': sizes are {MIN_SIZE} to {MAX_SIZE} bytes")
                        })?;
                }
                "flows" => {
                    let flows = scaled(value).filter(|f| (1..=1 << 28).contains(f));
                    generator.flows = flows.ok_or_else(wrong)? as u32;
                }
                "zipf" => {
                    let zipf = value.parse().ok().filter(|z| (0.0..=10.0).contains(z));
                    generator.zipf = zipf.ok_or_else(wrong)?;
                }
                "rate" => generator.rate = scaled(value).ok_or_else(wrong)?,
                "count" => generator.count = scaled(value).ok_or_else(wrong)?,
                "seed" => generator.seed = value.parse().map_err(|_| wrong())?,
                "src" => generator.source = parse_address(value).ok_or_else(wrong)?,
                "dst" => generator.destination = parse_address(value).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        if generator.protocols.len() > MAX_PROTOCOLS || generator.sizes.len() > MAX_SIZES {
            return Err(format!(
                "there are at most {MAX_PROTOCOLS} protocols and {MAX_SIZES} sizes"
            ));
        }
        if generator.zipf > 0.0 && generator.flows > MAX_SKEWED {
            return Err(format!(
                "flows={}: with zipf there are at most {MAX_SKEWED} flows",
                generator.flows
            ));
        }
        Ok(generator)
    }
}

fn parse_address(text: &str) -> Option<u32> {
    text.parse().ok().map(std::net::Ipv4Addr::to_bits)
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u16::to_string).collect();
        write!(f, "generator of {} flows, {} bytes", self.flows, sizes.join("/"))
    }
}

/// Draws flow numbers by their shares (Walker's alias method).
enum Chooser {
    /// Every flow in turn.
    InTurn(u32),
    /// For each slot, the chance to stay (of 2^32) and the flow to take otherwise.
    Alias(Vec<(u32, u32)>),
}

impl Chooser {
    fn new(flows: u32, skew: f64) -> Self {
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
            Self::Alias(table) => {
                let slot = rng.u32(0..flows);
                let (stay, other) = table[slot as usize];
                if rng.u32(..) <= stay { slot } else { other }
            }
        }
    }
}

struct Running {
    generator: Generator,
    chooser: Chooser,
    rng: fastrand::Rng,
    sent: u64,
    /// A frame of each protocol and size, complete but for what differs between flows.
    templates: Vec<Vec<u8>>,
}

impl Running {
    fn new(generator: Generator) -> Self {
        let templates = generator
            .protocols
            .iter()
            .flat_map(|&p| generator.sizes.iter().map(move |&s| template(p, usize::from(s))))
            .collect();
        Self {
            chooser: Chooser::new(generator.flows, generator.zipf),
            rng: fastrand::Rng::with_seed(generator.seed),
            generator,
            sent: 0,
            templates,
        }
    }

    fn packet(&mut self, pool: &mut Pool) -> Packet {
        let flow = self.chooser.next(self.generator.flows, &mut self.rng);
        let (protocols, sizes) = (self.generator.protocols.len(), self.generator.sizes.len());
        let which = flow as usize % protocols;
        let size = (self.sent % sizes as u64) as usize;
        let mut packet = pool.packet(&self.templates[which * sizes + size]);
        let mixed = (u64::from(flow) ^ self.generator.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let source = self.generator.source.wrapping_add(flow >> 4);
        let destination = self.generator.destination.wrapping_add((mixed >> 40) as u32);
        let ports = (1024 + (flow % 60_000) as u16, 1 + (mixed >> 16) as u16 % 1023);
        address(packet.data_mut(), self.generator.protocols[which], source, destination, ports);
        packet
    }
}

impl Device for Running {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let left = match self.generator.count {
            0 => u64::MAX,
            count => count - self.sent,
        };
        for _ in 0..left.min(burst as u64) {
            let packet = self.packet(pool);
            batch.push(packet);
            self.sent += 1;
        }
        Ok(if left <= burst as u64 { Received::End } else { Received::More })
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Err("a generator cannot be written to".to_string())
    }

    fn rate(&self) -> Option<u64> {
        (self.generator.rate > 0).then_some(self.generator.rate)
    }
}

/// An Ethernet frame of `size` bytes with an IPv4 packet of this protocol, addresses zero.
fn template(protocol: Protocol, size: usize) -> Vec<u8> {
    let mut frame = vec![0u8; size];
    let (ethernet, packet) = frame.split_at_mut(ether::HEADER_LEN);
    let length = packet.len() as u16;
    let (ip, transport) = packet.split_at_mut(ipv4::HEADER_LEN);
    if let Some(mut ethernet) = Ethernet::new(ethernet) {
        ethernet.set_dst(EtherAddr([2, 0, 0, 0, 0, 1]));
        ethernet.set_src(EtherAddr([2, 0, 0, 0, 0, 2]));
        ethernet.set_ether_type(ether_type::IPV4);
    }
    if let Some(mut ip) = Ipv4::new(ip) {
        ip.set_header_len(ipv4::HEADER_LEN);
        ip.set_total_len(length);
        ip.set_ttl(64);
        ip.set_protocol(match protocol {
            Protocol::Udp => ip_protocol::UDP,
            Protocol::Tcp => ip_protocol::TCP,
            Protocol::Icmp => ip_protocol::ICMP,
        });
    }
    match protocol {
        Protocol::Udp => {
            if let Some(mut udp) = Udp::new(transport) {
                udp.set_len(udp.bytes().len() as u16);
            }
        }
        Protocol::Tcp => {
            if let Some(mut tcp) = Tcp::new(transport) {
                tcp.set_header_len(tcp::HEADER_LEN);
                tcp.set_flags(tcp::flag::ACK);
                tcp.set_window(0xffff);
            }
        }
        Protocol::Icmp => {
            if let Some(mut icmp) = Icmpv4::new(transport) {
                icmp.set_message_type(icmpv4::message::ECHO);
            }
        }
    }
    frame
}

/// Writes a flow's addresses and ports into a frame and completes its checksums.
fn address(frame: &mut [u8], protocol: Protocol, source: u32, destination: u32, ports: (u16, u16)) {
    let (ip, transport) = frame[ether::HEADER_LEN..].split_at_mut(ipv4::HEADER_LEN);
    let Some(mut ip) = Ipv4::new(ip) else { return };
    ip.set_src(source.into());
    ip.set_dst(destination.into());
    ip.fill_checksum();
    let pseudo = ip.pseudo_header(transport.len() as u16);
    match protocol {
        Protocol::Icmp => {
            if let Some(mut icmp) = Icmpv4::new(transport) {
                icmp.set_id(ports.0);
                icmp.fill_checksum();
            }
        }
        Protocol::Udp => {
            if let Some(mut udp) = Udp::new(transport) {
                udp.set_src_port(ports.0);
                udp.set_dst_port(ports.1);
                udp.fill_checksum(pseudo);
            }
        }
        Protocol::Tcp => {
            if let Some(mut tcp) = Tcp::new(transport) {
                tcp.set_src_port(ports.0);
                tcp.set_dst_port(ports.1);
                tcp.fill_checksum(pseudo);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use net::checksum::{Sum, pseudo_header_v4};

    use super::*;

    fn frames(spec: &str) -> Vec<Vec<u8>> {
        let mut running = Running::new(spec.parse().unwrap());
        let (mut pool, mut batch, mut out) = (Pool::new(), Batch::new(), Vec::new());
        loop {
            let received = running.receive(32, &mut batch, &mut pool).unwrap();
            out.extend(batch.drain().map(|p| p.data().to_vec()));
            if received == Received::End {
                return out;
            }
        }
    }

    #[test]
    fn traffic_is_valid_and_repeatable() {
        let spec = "proto=udp+tcp+icmp,size=60/1514,flows=10,count=100,zipf=1";
        let all = frames(spec);
        assert_eq!(all, frames(spec));
        assert_eq!(all.len(), 100);
        for frame in &all {
            assert_eq!(Sum::of(&frame[14..34]).checksum(), 0, "IP checksum");
            let (source, destination) = (&frame[26..30], &frame[30..34]);
            let word = |b: &[u8]| u32::from_be_bytes(b.try_into().unwrap());
            let pseudo = match frame[23] {
                1 => Sum::ZERO,
                p => pseudo_header_v4(
                    word(source).into(),
                    word(destination).into(),
                    p,
                    (frame.len() - 34) as u16,
                ),
            };
            assert_eq!(pseudo.plus(Sum::of(&frame[34..])).checksum(), 0, "transport checksum");
        }
    }

    #[test]
    fn skew_favours_the_first_flows() {
        let count = |spec: &str| {
            let all = frames(spec);
            let first = all[0..].iter().filter(|f| f[34..36] == 1024u16.to_be_bytes()).count();
            first as f64 / all.len() as f64
        };
        assert!((count("flows=100,count=10000") - 0.01).abs() < 1e-9);
        // The first of 100 flows has 1/H(100) of the packets under Zipf's law.
        assert!((count("flows=100,count=10000,zipf=1") - 0.1928).abs() < 0.02);
    }

    #[test]
    fn wrong_specifications_are_refused() {
        for wrong in ["size=20", "flows=0", "speed=9", "proto=sctp", "zipf=-1", "rate=x", "count"] {
            assert!(wrong.parse::<Generator>().is_err(), "{wrong}");
        }
        let large = [
            "zipf=10,flows=100M".to_string(),
            format!("size={}60", "60/".repeat(256)),
            format!("proto={}udp", "udp+".repeat(16)),
        ];
        for wrong in large {
            assert!(wrong.parse::<Generator>().unwrap_err().contains("at most"), "{wrong}");
        }
        assert!("flows=100M".parse::<Generator>().is_ok());
    }
}
