//! The traffic generator: flows of UDP, TCP or ICMP packets, repeatable from a seed.

mod frame;
mod mix;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use elements::device::{Device, Received};
use net::{Batch, Packet, Pool};

use frame::Template;
use mix::Source;

pub use frame::Protocol;

/// What traffic is generated. Written as `key=value` pairs with commas; see [`Generator::KEYS`].
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    /// Protocols, by their share of the flows.
    pub protocols: Vec<Protocol>,
    /// Frame sizes in bytes without FCS, used in turn. A frame is never shorter than its headers.
    pub sizes: Vec<u16>,
    /// The VLAN of an 802.1Q tag in each frame; its priority is 0.
    pub vlan: Option<u16>,
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
    /// First source address of IPv4; flows count up from it.
    pub source: Ipv4Addr,
    /// First destination address of IPv4; flows count up from it.
    pub destination: Ipv4Addr,
    /// First source address of IPv6; flows count up from it.
    pub source6: Ipv6Addr,
    /// First destination address of IPv6; flows count up from it.
    pub destination6: Ipv6Addr,
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            protocols: vec![Protocol::Udp],
            sizes: vec![60],
            vlan: None,
            flows: 1000,
            zipf: 0.0,
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
/// Flows of different shares at the most: what they are drawn by takes 8 bytes each.
const MAX_SKEWED: u32 = 1 << 22;
/// The greatest VLAN id.
const MAX_VLAN: u16 = 4094;

impl Generator {
    /// What can be said of the traffic, for help texts.
    pub const KEYS: &'static str = "proto=udp|tcp|icmp|udp6|tcp6|icmp6 (several: udp+tcp6), \
        size=BYTES (several: 60/590) or imix, vlan=ID, flows=N, zipf=SKEW, rate=PACKETS-PER-SECOND, \
        count=N (0: without end), seed=N, src=ADDR, dst=ADDR";

    /// Simple IMIX: of twelve IP packets, seven are of 40 bytes, four of 576 and one of 1,500. The sizes of their frames,
    /// without FCS.
    pub const IMIX: [u16; 12] = [60, 60, 60, 60, 60, 60, 60, 590, 590, 590, 590, 1514];

    /// A device that makes this traffic.
    pub(super) fn start(&self) -> Box<dyn Device + Send> {
        Box::new(Running::new(self.clone()))
    }

    /// Reads the value of a key, or says what values there are.
    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "proto" => {
                let named = |name| Protocol::ALL.iter().find(|(known, _)| *known == name);
                let all = value.split('+').map(|name| named(name).map(|(_, protocol)| *protocol));
                self.protocols = all.collect::<Option<_>>().ok_or_else(|| {
                    let names = Protocol::ALL.map(|(name, _)| name).join(", ");
                    format!("protocols are {names}; several with + between")
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
                let vlan = value.parse().ok().filter(|vlan| *vlan <= MAX_VLAN);
                self.vlan = Some(vlan.ok_or_else(|| format!("VLANs are 0 to {MAX_VLAN}"))?);
            }
            "flows" => {
                let flows = scaled(value).filter(|flows| (1..=MAX_FLOWS).contains(flows));
                self.flows = flows.ok_or_else(|| format!("1 to {MAX_FLOWS} flows"))? as u32;
            }
            "zipf" => {
                let zipf = value.parse().ok().filter(|zipf| (0.0..=10.0).contains(zipf));
                self.zipf = zipf.ok_or("skews are 0 to 10")?;
            }
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
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            generator.set(key, value).map_err(|why| format!("'{pair}': {why}"))?;
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

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u16::to_string).collect();
        let sizes = if self.sizes == Self::IMIX { "imix".into() } else { sizes.join("/") };
        write!(f, "generator of {} flows, {sizes} bytes", self.flows)
    }
}

struct Running {
    generator: Generator,
    source: Source,
    rng: fastrand::Rng,
    sent: u64,
    /// A frame of each protocol and size, complete but for what differs between flows.
    templates: Vec<Template>,
}

impl Running {
    fn new(generator: Generator) -> Self {
        let sizes = &generator.sizes;
        let of = |&protocol| {
            sizes.iter().map(move |&size| Template::new(protocol, generator.vlan, size))
        };
        Self {
            source: Source::new(&generator),
            rng: fastrand::Rng::with_seed(generator.seed),
            templates: generator.protocols.iter().flat_map(of).collect(),
            sent: 0,
            generator,
        }
    }

    fn packet(&mut self, pool: &mut Pool) -> Packet {
        let (protocol, headers) = self.source.next(&self.generator, &mut self.rng);
        let sizes = self.generator.sizes.len();
        let size = (self.sent % sizes as u64) as usize;
        let template = &self.templates[protocol * sizes + size];
        let mut packet = pool.packet(template.frame());
        template.fill(packet.data_mut(), &headers);
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
    use net::wire::{Icmpv4, Icmpv6, Ipv4, Ipv6, Tcp, Udp, ether_type, ip_protocol, vlan};

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
        for (wrong, expected) in [
            ("size=20", "sizes are 54 to 9216 bytes, several with / between, or imix"),
            ("size=", "or imix"),
            ("flows=0", "1 to 268435456 flows"),
            ("speed=9", "a generator takes proto="),
            ("proto=sctp", "protocols are udp, tcp, icmp, udp6, tcp6, icmp6; several with +"),
            ("vlan=4095", "VLANs are 0 to 4094"),
            ("zipf=-1", "skews are 0 to 10"),
            ("rate=x", "packets per second"),
            ("count", "a number of packets"),
            ("src=here", "an address of IPv4 or IPv6"),
        ] {
            let why = wrong.parse::<Generator>().unwrap_err();
            assert!(why.starts_with(&format!("'{wrong}': ")) && why.contains(expected), "{why}");
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
