//! The traffic generator: flows, connections and attacks over IPv4 and IPv6, repeatable from a seed.

mod frame;
mod hash;
mod mix;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use elements::device::{Device, Received};
use net::{Batch, Packet, Pool};

use super::dispatch::dispatch_hash;
use frame::{Templates, set_vlan};
use hash::MAX_COLLISIONS;
use mix::Source;

pub use frame::Protocol;
pub use hash::FloodedHash;
pub use mix::Mix;

/// What traffic is generated. Written as `key=value` pairs with commas; see [`Generator::KEYS`].
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    /// What kind of traffic.
    pub mix: Mix,
    /// Protocols, by their share of the flows.
    pub protocols: Vec<Protocol>,
    /// Frame sizes in bytes without FCS, used in turn. A frame is never shorter than its headers.
    pub sizes: Vec<u16>,
    /// VLANs of the 802.1Q tag in each frame, whose priority is 0: a flow has one of them. No tag if there are none.
    pub vlans: Vec<u16>,
    /// Number of flows; of connections, how many are open at a time.
    pub flows: u32,
    /// Skew of the flows' shares of the packets: 0 is equal shares, 1 is Zipf's law.
    pub zipf: f64,
    /// So many of the flows are whales: they have `whale_share` of the packets.
    pub whales: u32,
    /// The share of all packets that all whales have together, 0 to 1.
    pub whale_share: f64,
    /// Data packets of a connection, on average.
    pub packets: u32,
    /// The hash that [`Mix::HashFlood`] has collisions of.
    pub hash: FloodedHash,
    /// Source port of the flow that attacks are made from.
    pub source_port: u16,
    /// Destination port of the flow that attacks are made from.
    pub destination_port: u16,
    /// The list that [`Mix::Rules`] has packets for, as IPFilter's `file` has it.
    pub rules: RuleList,
    /// Packets per second; 0 is as fast as they are taken.
    pub rate: u64,
    /// Number of packets; 0 is without end.
    pub count: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Source address of the first 16 flows of IPv4; 16 flows each have the next ones.
    pub source: Ipv4Addr,
    /// Destination address of the first flow of IPv4; the others are scattered over the 2^24 addresses from it on.
    pub destination: Ipv4Addr,
    /// The same of IPv6.
    pub source6: Ipv6Addr,
    /// The same of IPv6.
    pub destination6: Ipv6Addr,
}

/// Where a list of rules stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleList {
    /// In a file.
    File(PathBuf),
    /// Here, a rule a line.
    Text(Arc<str>),
}

impl fmt::Display for RuleList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Text(_) => f.write_str("a list of rules"),
        }
    }
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            mix: Mix::Flows,
            protocols: vec![Protocol::Udp],
            sizes: vec![60],
            vlans: Vec::new(),
            flows: 1000,
            zipf: 0.0,
            whales: 0,
            whale_share: 0.8,
            packets: 10,
            hash: FloodedHash::Toeplitz,
            source_port: 1024,
            destination_port: 80,
            rules: RuleList::File(PathBuf::new()),
            rate: 0,
            count: 1_000_000,
            seed: 1,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(20, 0, 0, 1),
            // RFC 5180 sets 2001:2::/48 aside for benchmarks.
            source6: Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1),
            destination6: Ipv6Addr::new(0x2001, 2, 0, 0x8000, 0, 0, 0, 1),
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
/// Flows at the most.
const MAX_FLOWS: u64 = 1 << 28;
/// Flows of different shares, and connections that are open, at the most: each takes 8 or 16 bytes.
const MAX_KEPT: u32 = 1 << 22;
/// Data packets that connections have on average, at the most.
const MAX_PACKETS: u64 = 1_000_000;
/// The greatest VLAN id.
const MAX_VLAN: u16 = 4094;

impl Generator {
    /// What can be said of the traffic, for help texts.
    pub const KEYS: &'static str = "mix=flows|connections|syn-flood|hash-flood|tuple-space, rules=FILE, \
        proto=udp|tcp|icmp|udp6|tcp6|icmp6 (several: udp+tcp6), size=BYTES (several: 60/590) or imix, vlan=ID (several: 10/20), flows=N, \
        zipf=SKEW, whales=N or whales=N:SHARE, packets=MEAN, hash=toeplitz|crc32c, src=ADDR, dst=ADDR, sport=PORT, \
        dport=PORT, rate=PACKETS-PER-SECOND, count=N (0: without end), seed=N";

    /// Simple IMIX: of twelve IP packets, seven are of 40 bytes, four of 576 and one of 1,500. The sizes of their frames,
    /// without FCS.
    pub const IMIX: [u16; 12] = [60, 60, 60, 60, 60, 60, 60, 590, 590, 590, 590, 1514];

    /// A device that makes this traffic, and what a reader must know of it.
    ///
    /// # Errors
    /// What is wrong with a list of rules.
    pub(super) fn start(&self) -> Result<(Box<dyn Device + Send>, Option<String>), String> {
        let running = Running::new(self.clone())?;
        let remark = running.source.remark(self);
        Ok((Box::new(running), remark))
    }

    /// Reads the value of a key, or says what values there are.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "mix" => {
                self.mix = named(&Mix::ALL, value)
                    .ok_or_else(|| format!("mixes are {}", names(&Mix::ALL)))?;
            }
            "proto" => {
                let all = value.split('+').map(|name| named(&Protocol::ALL, name));
                self.protocols = all.collect::<Option<_>>().ok_or_else(|| {
                    format!("protocols are {}; several with + between", names(&Protocol::ALL))
                })?;
                if self.protocols.len() > MAX_PROTOCOLS {
                    return Err(format!("at most {MAX_PROTOCOLS} protocols"));
                }
            }
            "size" if value == "imix" => self.sizes = Self::IMIX.to_vec(),
            "size" => {
                let size = |size: &str| {
                    size.parse().ok().filter(|size| (MIN_SIZE..=MAX_SIZE).contains(size))
                };
                self.sizes = value.split('/').map(size).collect::<Option<_>>().ok_or_else(|| {
                    format!(
                        "sizes are {MIN_SIZE} to {MAX_SIZE} bytes, several with / between, or imix"
                    )
                })?;
                if self.sizes.len() > MAX_SIZES {
                    return Err(format!("at most {MAX_SIZES} sizes"));
                }
            }
            "vlan" => {
                let vlan = |vlan: &str| vlan.parse().ok().filter(|vlan| *vlan <= MAX_VLAN);
                let vlans = value.split('/').map(vlan).collect::<Option<_>>();
                self.vlans = vlans
                    .ok_or_else(|| format!("VLANs are 0 to {MAX_VLAN}, several with / between"))?;
                if self.vlans.len() > usize::from(MAX_VLAN) {
                    return Err(format!("at most {MAX_VLAN} VLANs"));
                }
            }
            "flows" => {
                let flows = scaled(value).filter(|flows| (1..=MAX_FLOWS).contains(flows));
                self.flows = flows.ok_or_else(|| format!("1 to {MAX_FLOWS} flows"))? as u32;
            }
            "zipf" => {
                let zipf = value.parse().ok().filter(|zipf| (0.0..=10.0).contains(zipf));
                self.zipf = zipf.ok_or("skews are 0 to 10")?;
            }
            "whales" => {
                let (whales, share) = value.split_once(':').unwrap_or((value, "80%"));
                let is_flows = |n: &u64| (1..MAX_FLOWS).contains(n);
                let percent: Option<f64> =
                    share.strip_suffix('%').and_then(|share| share.parse().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                let (Some(whales), Some(percent)) = (scaled(whales).filter(is_flows), percent)
                else {
                    return Err(
                        "a number of flows and their share of the packets, such as 4:80%".into()
                    );
                };
                (self.whales, self.whale_share) = (whales as u32, percent / 100.0);
            }
            "packets" => {
                let packets = scaled(value).filter(|packets| (1..=MAX_PACKETS).contains(packets));
                self.packets = packets
                    .ok_or_else(|| format!("data packets of a connection, 1 to {MAX_PACKETS}"))?
                    as u32;
            }
            "hash" => {
                self.hash = named(&FloodedHash::ALL, value)
                    .ok_or_else(|| format!("hashes are {}", names(&FloodedHash::ALL)))?;
            }
            "sport" => self.source_port = value.parse().map_err(|_| "ports are 0 to 65535")?,
            "dport" => self.destination_port = value.parse().map_err(|_| "ports are 0 to 65535")?,
            "rules" if value.is_empty() => {
                return Err("a file with rules of IPFilter or ClassBench".into());
            }
            "rules" => (self.mix, self.rules) = (Mix::Rules, RuleList::File(value.into())),
            "rate" => {
                self.rate = scaled(value).ok_or("packets per second, such as 250, 100k or 1.5M")?;
            }
            "count" => self.count = scaled(value).ok_or("a number of packets, 0: without end")?,
            "seed" => self.seed = value.parse().map_err(|_| "a whole number")?,
            "src" | "dst" => {
                let (v4, v6) = match key {
                    "src" => (&mut self.source, &mut self.source6),
                    _ => (&mut self.destination, &mut self.destination6),
                };
                match value.parse() {
                    Ok(IpAddr::V4(address)) => *v4 = address,
                    Ok(IpAddr::V6(address)) => *v6 = address,
                    Err(_) => return Err("an address of IPv4 or IPv6".into()),
                }
            }
            _ => return Err(format!("a generator takes {}", Self::KEYS)),
        }
        Ok(())
    }

    /// Completes what was given key by key; refuses what does not go together.
    fn check(&mut self, given: &[(&str, &str)]) -> Result<(), String> {
        let mix = self.mix;
        let (name, _) = Mix::ALL[mix as usize];
        if let Some((_, pair)) = given.iter().find(|(key, _)| !mix.keys().contains(key)) {
            return Err(format!("'{pair}': mix={name} takes {}", mix.keys().join(", ")));
        }
        if self.protocols.is_empty() {
            self.protocols = vec![mix.protocol()];
        }
        if !self.protocols.iter().all(|&protocol| mix.takes(protocol)) {
            let taken = Protocol::ALL.into_iter().filter(|(_, protocol)| mix.takes(*protocol));
            let taken: Vec<_> = taken.map(|(name, _)| name).collect();
            return Err(format!("proto: mix={name} takes {}", taken.join(", ")));
        }
        let flows = self.flows;
        match mix {
            Mix::Flows if self.zipf > 0.0 && self.whales > 0 => {
                Err("zipf and whales: the shares of flows follow from one of them".into())
            }
            Mix::Flows if self.zipf > 0.0 && flows > MAX_KEPT => {
                Err(format!("flows={flows}: with zipf there are at most {MAX_KEPT} flows"))
            }
            Mix::Flows if self.whales >= flows => {
                Err(format!("whales={}: of {flows} flows, some are none", self.whales))
            }
            Mix::Connections if flows > MAX_KEPT => {
                Err(format!("flows={flows}: at most {MAX_KEPT} connections are open"))
            }
            Mix::Rules if self.rules == RuleList::File(PathBuf::new()) => {
                Err("mix=rules: rules=FILE names the list".into())
            }
            Mix::Rules if flows > MAX_KEPT => {
                Err(format!("flows={flows}: at most {MAX_KEPT} packets are drawn for rules"))
            }
            Mix::HashFlood if flows > MAX_COLLISIONS => {
                Err(format!("flows={flows}: at most {MAX_COLLISIONS} flows collide"))
            }
            _ => Ok(()),
        }
    }
}

/// The one of this name.
fn named<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn names<T>(all: &[(&str, T)]) -> String {
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// A number with an optional suffix k, M or G.
pub(super) fn scaled(text: &str) -> Option<u64> {
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
        let mut generator = Self { protocols: Vec::new(), ..Self::default() };
        let mut given = Vec::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            generator.set(key, value).map_err(|why| format!("'{pair}': {why}"))?;
            given.push((key, pair));
        }
        generator.check(&given)?;
        Ok(generator)
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u16::to_string).collect();
        let sizes = if self.sizes == Self::IMIX { "imix".into() } else { sizes.join("/") };
        let flows = self.flows;
        match self.mix {
            Mix::Flows if self.whales > 0 => {
                write!(f, "generator of {flows} flows, of these {} whales", self.whales)?;
            }
            Mix::Flows => write!(f, "generator of {flows} flows")?,
            Mix::Connections => write!(f, "generator of {flows} connections at a time")?,
            Mix::SynFlood => return write!(f, "generator of a SYN flood"),
            Mix::HashFlood => {
                let (hash, _) = FloodedHash::ALL[self.hash as usize];
                write!(f, "generator of {flows} flows with the same {hash} hash")?;
            }
            Mix::TupleSpace => write!(f, "generator of a tuple space explosion")?,
            Mix::Rules => write!(f, "generator of packets for {}", self.rules)?,
        }
        write!(f, ", {sizes} bytes")
    }
}

struct Running {
    generator: Generator,
    source: Source,
    rng: fastrand::Rng,
    sent: u64,
    templates: Templates,
}

impl Running {
    fn new(generator: Generator) -> Result<Self, String> {
        let mut rng = fastrand::Rng::with_seed(generator.seed);
        Ok(Self {
            source: Source::new(&generator, &mut rng)?,
            rng,
            templates: Templates::new(
                &generator.protocols,
                &generator.sizes,
                generator.vlans.first().copied(),
            ),
            sent: 0,
            generator,
        })
    }

    fn packet(&mut self, pool: &mut Pool) -> Packet {
        let (template, contents) =
            self.source.next(&self.generator, &self.templates, self.sent, &mut self.rng);
        let mut packet = pool.packet(template.frame());
        template.write(packet.data_mut(), &contents);
        let vlans = &self.generator.vlans[..];
        if vlans.len() > 1 {
            // Workers go by the low bits.
            let which = (dispatch_hash(packet.data()) >> 8) as usize % vlans.len();
            set_vlan(packet.data_mut(), vlans[which]);
        }
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

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use net::wire::tcp::flag;
    use net::wire::{Icmpv4, Icmpv6, Ipv4, Ipv6, Tcp, Udp, ether_type, ip_protocol, vlan};

    use super::*;

    fn frames(spec: &str) -> Vec<Vec<u8>> {
        let mut running = Running::new(spec.parse().unwrap()).unwrap();
        let (mut pool, mut batch, mut out) = (Pool::new(), Batch::new(), Vec::new());
        loop {
            let received = running.receive(32, &mut batch, &mut pool).unwrap();
            out.extend(batch.drain().map(|p| p.data().to_vec()));
            if received == Received::End {
                return out;
            }
        }
    }

    /// Asserts that headers, lengths and checksums of a frame are right; gives the protocol's number.
    fn check(frame: &[u8]) -> u8 {
        let network = vlan::network(frame).unwrap();
        let packet = &frame[network.offset..];
        let (protocol, transport, pseudo) = match network.ether_type {
            ether_type::IPV4 => {
                let ip = Ipv4::new_checked(packet).unwrap();
                assert!(ip.checksum_ok() && ip.ttl() == 64, "{frame:x?}");
                let length = ip.payload().len();
                (ip.protocol(), &packet[20..][..length], ip.pseudo_header(length as u16))
            }
            other => {
                let ip = Ipv6::new(packet).unwrap();
                assert_eq!((other, ip.version(), ip.hop_limit()), (ether_type::IPV6, 6, 64));
                let length = ip.payload_len();
                let pseudo = ip.pseudo_header(ip.next_header(), length as u32);
                (ip.next_header(), &packet[40..][..length], pseudo)
            }
        };
        let is_right = match protocol {
            ip_protocol::UDP => Udp::new_checked(transport).unwrap().checksum_ok(pseudo),
            ip_protocol::TCP => Tcp::new_checked(transport).unwrap().checksum_ok(pseudo),
            ip_protocol::ICMP => Icmpv4::new(transport).unwrap().checksum_ok(),
            _ => Icmpv6::new(transport).unwrap().checksum_ok(pseudo),
        };
        assert!(is_right, "{frame:x?}");
        protocol
    }

    #[test]
    fn traffic_is_valid_and_repeatable() {
        for vlan in ["", ",vlan=0", ",vlan=4094"] {
            let spec = format!(
                "proto=udp+tcp+icmp+udp6+tcp6+icmp6,size=60/61/1514,flows=60,count=600,zipf=1{vlan}"
            );
            let all = frames(&spec);
            assert_eq!(all, frames(&spec));
            assert_ne!(all, frames(&format!("{spec},seed=2")));
            assert_eq!(all.len(), 600);
            let mut protocols: Vec<u8> = all.iter().map(|frame| check(frame)).collect();
            protocols.sort();
            protocols.dedup();
            assert_eq!(protocols, [1, 6, 17, 58]);
        }
    }

    #[test]
    fn frames_are_as_long_as_asked_or_as_their_headers_need() {
        let lengths = |spec: &str| frames(spec).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths("size=imix,count=12"), Generator::IMIX.map(usize::from));
        assert_eq!(lengths("proto=udp+udp6+tcp6,size=60,count=3"), [60, 62, 74]);
        assert_eq!(lengths("proto=tcp+tcp6,vlan=7,size=54/100,count=2"), [58, 100]);
    }

    #[test]
    fn tags_and_addresses_are_the_ones_asked_for() {
        let all = frames("proto=udp+udp6,vlan=100,flows=2,count=2,src=9.0.0.0,src=2001:db8::");
        let tag = |frame: &[u8]| vlan::network(frame).unwrap().outer.unwrap().0;
        assert!(all.iter().all(|frame| tag(frame) == 100));
        assert_eq!(Ipv4::new(&all[0][18..]).unwrap().src(), Ipv4Addr::new(9, 0, 0, 0));
        let source = Ipv6::new(&all[1][18..]).unwrap().src();
        assert_eq!(source, "2001:db8::".parse::<Ipv6Addr>().unwrap());
    }

    #[test]
    fn flows_are_spread_over_vlans() {
        let all = frames("proto=udp+tcp6,vlan=10/20/4094,flows=300,count=900");
        let tag = |frame: &[u8]| vlan::network(frame).unwrap().outer.unwrap().0;
        for wanted in [10, 20, 4094] {
            let count = all.iter().filter(|frame| tag(frame) == wanted).count();
            assert!((200..400).contains(&count), "{wanted}: {count}");
        }
        // Each flow comes three times, in one VLAN; but for the tags, frames are those of one VLAN alone.
        let one = frames("proto=udp+tcp6,vlan=10,flows=300,count=900");
        for (number, frame) in all.iter().enumerate() {
            assert_eq!(tag(frame), tag(&all[number % 300]), "{number}");
            assert_eq!((&frame[..14], &frame[16..]), (&one[number][..14], &one[number][16..]));
        }
    }

    #[test]
    fn the_first_flow_of_each_version_goes_to_the_first_destination() {
        let (four, six) = (Ipv4Addr::new(192, 0, 2, 7), "2001:db8::7".parse::<Ipv6Addr>().unwrap());
        for mix in ["flows", "connections"] {
            for seed in [0, 1, 77] {
                let spec = format!(
                    "mix={mix},proto=tcp+tcp6,flows=2,count=100,seed={seed},dst={four},dst={six}"
                );
                let destination = |frame: &Vec<u8>| match Ipv4::new_checked(&frame[14..]) {
                    Some(ip) => IpAddr::V4(ip.dst()),
                    None => Ipv6::new(&frame[14..]).unwrap().dst().into(),
                };
                let found: Vec<IpAddr> = frames(&spec).iter().map(destination).collect();
                assert!(found.contains(&four.into()) && found.contains(&six.into()), "{spec}");
            }
        }
        // Others stay within 2^24 addresses from there.
        for frame in frames("flows=1000,count=1000,dst=20.0.0.1") {
            let dst = Ipv4::new(&frame[14..]).unwrap().dst();
            assert!(
                (Ipv4Addr::new(20, 0, 0, 1)..=Ipv4Addr::new(21, 0, 0, 0)).contains(&dst),
                "{dst}"
            );
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

    /// The TCP header of a frame of IPv4.
    fn tcp(frame: &[u8]) -> Tcp<&[u8]> {
        Tcp::new(&frame[34..]).unwrap()
    }

    fn ip(frame: &[u8]) -> Ipv4<&[u8]> {
        Ipv4::new(&frame[14..]).unwrap()
    }

    #[test]
    fn every_mix_is_valid_and_repeatable() {
        for (spec, protocol) in [
            ("mix=flows,whales=3,proto=udp+icmp6", "udp+icmp6"),
            ("mix=connections", "tcp+tcp6"),
            ("mix=syn-flood", "tcp+tcp6"),
            ("mix=hash-flood", "udp+tcp+udp6+tcp6"),
            ("mix=hash-flood,hash=crc32c", "udp+tcp+udp6+tcp6"),
            ("mix=tuple-space", "udp+tcp+udp6+tcp6"),
        ] {
            let spec = format!("{spec},proto={protocol},count=2000");
            let all = frames(&spec);
            assert_eq!((all.len(), &all), (2000, &frames(&spec)), "{spec}");
            for frame in &all {
                check(frame);
            }
        }
    }

    #[test]
    fn whales_have_their_share_and_minnows_the_rest_alike() {
        let mut shares = HashMap::new();
        for frame in frames("flows=1000,whales=4:90%,count=100000") {
            *shares.entry(u16::from_be_bytes([frame[34], frame[35]]) - 1024).or_insert(0) += 1;
        }
        assert_eq!(shares.len(), 1000);
        for (flow, packets) in shares {
            // 22,500 with a standard deviation of 132, and 10 with one of about 0.1 of all minnows.
            let expected = if flow < 4 { 21_900..=23_100 } else { 9..=11 };
            assert!(expected.contains(&packets), "{flow} {packets}");
        }
    }

    #[test]
    fn connections_go_from_syn_to_fin_and_have_a_heavy_tail() {
        let all = frames("mix=connections,flows=50,packets=8,size=100/1000,count=200000");
        let mut open = HashMap::new();
        let (mut opened, mut sizes) = (0u32, Vec::new());
        for frame in &all {
            let (ip, tcp) = (ip(frame), tcp(frame));
            let key = (ip.src(), ip.dst(), tcp.src_port(), tcp.dst_port());
            let payload = u32::from(ip.total_len()) - 40;
            match tcp.flags() {
                flag::SYN => {
                    assert_eq!((payload, frame.len(), tcp.ack()), (0, 60, 0));
                    assert!(open.insert(key, (tcp.seq().wrapping_add(1), 0)).is_none(), "{key:?}");
                    opened += 1;
                }
                flags => {
                    let (sequence, packets) = open.get_mut(&key).expect("it was opened");
                    assert_eq!(tcp.seq(), *sequence);
                    *sequence = sequence.wrapping_add(payload);
                    *packets += 1;
                    if flags == flag::FIN | flag::ACK {
                        assert_eq!(payload, 0);
                        sizes.push(*packets - 1);
                        open.remove(&key);
                    } else {
                        assert!(flags == flag::PSH | flag::ACK && [46, 946].contains(&payload));
                    }
                }
            }
            assert!(open.len() <= 50);
        }
        assert!(opened > 15_000, "{opened}");
        sizes.sort();
        let sum = |sizes: &[u32]| f64::from(sizes.iter().sum::<u32>());
        let mean = sum(&sizes) / sizes.len() as f64;
        assert!((mean - 8.0).abs() < 0.8, "{mean}");
        // Under the Pareto distribution of shape 1.5, the largest hundredth has 0.01^(1/3) = 22 % of all packets.
        let largest = sum(&sizes[sizes.len() * 99 / 100..]) / sum(&sizes);
        assert!((0.15..0.35).contains(&largest), "{largest}");
    }

    #[test]
    fn a_syn_flood_has_another_source_each_time() {
        let all = frames("mix=syn-flood,dst=1.2.3.4,dport=443,count=10000");
        let mut sources = HashSet::new();
        for frame in &all {
            let (ip, tcp) = (ip(frame), tcp(frame));
            assert_eq!((tcp.flags(), tcp.dst_port(), frame.len()), (flag::SYN, 443, 60));
            assert_eq!(ip.dst(), Ipv4Addr::new(1, 2, 3, 4));
            assert!(!matches!(ip.src().octets()[0], 0 | 127 | 224..));
            sources.insert((ip.src(), tcp.src_port()));
        }
        assert_eq!(sources.len(), all.len());
    }

    #[test]
    fn flows_of_a_hash_flood_are_different_and_meet_the_base() {
        let all = frames("mix=hash-flood,flows=200,count=400,dst=1.2.3.4,sport=7,dport=53");
        let flow = |frame: &Vec<u8>| frame[26..38].to_vec();
        let different: HashSet<_> = all.iter().map(flow).collect();
        assert_eq!(different.len(), 200);
        assert_eq!(flow(&all[0]), [10, 0, 0, 1, 1, 2, 3, 4, 0, 7, 0, 53]);
        assert!(all.iter().all(|frame| frame[30..34] == [1, 2, 3, 4] && frame[37] == 53));
        assert_eq!(all[..200], all[200..]);
    }

    #[test]
    fn tuples_are_all_that_there_are() {
        // As many bits as a cache must look at to see that a field is not the base's.
        let length =
            |value: u32, base: u32, bits: u32| (value ^ base).leading_zeros() + 1 - (32 - bits);
        let all = frames("mix=tuple-space,src=10.1.2.3,sport=5000,dport=443,count=8192");
        let mut masks = HashSet::new();
        let mut flows = HashSet::new();
        for frame in &all {
            let (source, tcp) = (ip(frame).src(), tcp(frame));
            masks.insert((
                length(source.to_bits(), 0x0a01_0203, 32),
                length(tcp.src_port().into(), 5000, 16),
                length(tcp.dst_port().into(), 443, 16),
            ));
            flows.insert((source, tcp.src_port(), tcp.dst_port()));
        }
        assert_eq!(masks.len(), 32 * 16 * 16);
        assert!(flows.len() > 8000, "{}", flows.len());
    }

    #[test]
    fn packets_for_rules_are_valid() {
        let file = std::env::temp_dir().join(format!("catena-rules-{}", std::process::id()));
        std::fs::write(&file, "deny tcp dst port 80\nallow icmp type echo\nallow udp\ndeny all")
            .unwrap();
        let all = frames(&format!("rules={},flows=40,count=80,size=60/200", file.display()));
        std::fs::remove_file(&file).unwrap();
        for (i, frame) in all.iter().enumerate() {
            assert_eq!(frame.len(), [60, 200][i % 2]);
            match (i % 4, check(frame)) {
                (0, ip_protocol::TCP) => assert_eq!(tcp(frame).dst_port(), 80),
                (1, ip_protocol::ICMP) => assert_eq!(frame[34], 8),
                (2, ip_protocol::UDP) => {}
                (3, ip_protocol::TCP) => assert_ne!(tcp(frame).dst_port(), 80),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 40);
    }

    #[test]
    fn wrong_specifications_are_refused() {
        for (wrong, expected) in [
            ("size=20", "sizes are 54 to 9216 bytes, several with / between, or imix"),
            ("size=", "or imix"),
            ("flows=0", "1 to 268435456 flows"),
            ("speed=9", "a generator takes mix="),
            ("proto=sctp", "protocols are udp, tcp, icmp, udp6, tcp6, icmp6; several with +"),
            (
                "mix=worms",
                "mixes are flows, connections, syn-flood, hash-flood, tuple-space, rules",
            ),
            ("whales=0", "such as 4:80%"),
            ("whales=4:101%", "such as 4:80%"),
            ("packets=0", "data packets of a connection, 1 to 1000000"),
            ("hash=md5", "hashes are toeplitz, crc32c"),
            ("dport=70000", "ports are 0 to 65535"),
            ("vlan=4095", "VLANs are 0 to 4094"),
            ("vlan=1/x", "VLANs are 0 to 4094, several with / between"),
            ("zipf=-1", "skews are 0 to 10"),
            ("rate=x", "packets per second"),
            ("count", "a number of packets"),
            ("src=here", "an address of IPv4 or IPv6"),
        ] {
            let why = wrong.parse::<Generator>().unwrap_err();
            assert!(why.starts_with(&format!("'{wrong}': ")) && why.contains(expected), "{why}");
        }
        for (wrong, expected) in [
            ("mix=syn-flood,zipf=1", "'zipf=1': mix=syn-flood takes mix, proto, vlan, dst, dport,"),
            ("packets=9", "'packets=9': mix=flows takes "),
            ("mix=connections,proto=tcp+udp", "proto: mix=connections takes tcp, tcp6"),
            ("mix=hash-flood,proto=icmp", "proto: mix=hash-flood takes udp, tcp, udp6, tcp6"),
            ("whales=1,zipf=1", "zipf and whales"),
            ("mix=rules", "mix=rules: rules=FILE names the list"),
            ("rules=a,proto=udp", "'proto=udp': mix=rules takes mix, rules, size"),
            ("whales=9,flows=9", "whales=9: of 9 flows"),
        ] {
            let why = wrong.parse::<Generator>().unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        }
        let large = [
            "zipf=10,flows=100M".to_string(),
            "mix=connections,flows=100M".to_string(),
            "mix=hash-flood,flows=100M".to_string(),
            format!("size={}60", "60/".repeat(256)),
            format!("proto={}udp", "udp+".repeat(16)),
        ];
        for wrong in large {
            assert!(wrong.parse::<Generator>().unwrap_err().contains("at most"), "{wrong}");
        }
        assert!("flows=100M".parse::<Generator>().is_ok());
    }
}
