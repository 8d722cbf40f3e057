//! Traffic between hosts inside and outside: new flows, answers, errors about what left, and what
//! no host should send.

use net::notation;
use proptest::strategy::{BoxedStrategy, Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::traffic::{Sample, samples};
use crate::translation::fix_checksums;

pub type Frame = Vec<u8>;

const ETHERNET: usize = 14;
/// Frames that left and are remembered.
const REMEMBERED: usize = 24;

pub struct Traffic {
    pub rng: fastrand::Rng,
    left: Vec<Frame>,
    /// Frames to send besides what is made up.
    pub captured: Vec<Frame>,
    odd: BoxedStrategy<Vec<Sample>>,
    runner: TestRunner,
}

fn one<T: Copy>(rng: &mut fastrand::Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

impl Traffic {
    /// Traffic that knows the addresses and numbers of a text.
    pub fn new(seed: u64, text: &str) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self {
            rng: fastrand::Rng::with_seed(seed),
            left: Vec::new(),
            captured: Vec::new(),
            odd: samples(text, 1).boxed(),
            runner: TestRunner::new_with_rng(Config::default(), rng),
        }
    }

    /// Time that passes before a burst.
    pub fn pause(&mut self) -> u64 {
        one(&mut self.rng, &[0, 0, 0, 0, 1, 200_000_000, 1_100_000_000, 6_500_000_000])
    }

    /// A frame left the chain.
    pub fn saw(&mut self, frame: Frame) {
        if frame.len() >= ETHERNET + 28 && frame[12..15] == [8, 0, 0x45] {
            self.left.push(frame);
            if self.left.len() > REMEMBERED {
                self.left.swap_remove(self.rng.usize(..self.left.len()));
            }
        }
    }

    pub fn burst(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        // Now and then as many as a busy device gives.
        let most = if self.rng.u8(..8) == 0 { 80 } else { 9 };
        for _ in 0..self.rng.usize(1..most) {
            let known = match self.rng.u8(..20) {
                0..6 => self.answer(),
                6..8 => self.error(),
                8 => self.again(),
                9..12 => self.odd(),
                12..17 => self.rng.choice(&self.captured).cloned(),
                _ => None,
            };
            let mut frame = known.unwrap_or_else(|| self.new_frame());
            let length = frame.len();
            match self.rng.u8(..30) {
                0 => frame.truncate(self.rng.usize(..=length)),
                1 if length > 0 => frame[self.rng.usize(..length)] ^= 1 << self.rng.u8(..8),
                2 => frame.resize(length + self.rng.usize(..30), 0xee),
                _ => {}
            }
            frames.push(frame);
        }
        frames
    }

    fn new_frame(&mut self) -> Frame {
        let rng = &mut self.rng;
        let inside = ["10.0.0.1", "10.0.0.2", "10.0.1.7", "10.9.0.1"];
        let outside = ["20.0.0.1", "20.1.2.3", "8.8.8.8", "100.0.0.1", "10.255.0.1", "224.0.0.1"];
        let (mut src, mut dst) = (one(rng, &inside), one(rng, &outside));
        if rng.u8(..4) == 0 {
            (src, dst) = (dst, src);
        }
        let port = |rng: &mut fastrand::Rng| one(rng, &[53u16, 80, 1024, 1025, 5000, 5001, 65535]);
        let (from, to) = (port(rng), port(rng));
        let payload = ["", "payload 'x'", "payload 'some text'", "size 700"][rng.usize(..4)];
        let kind = match rng.u8(..16) {
            0..5 => format!("udp {src}:{from} > {dst}:{to}"),
            5..10 => {
                let flags = ["S", "A", "FA", "R", "SA", "PA", "F", "SF"][rng.usize(..8)];
                format!("tcp {src}:{from} > {dst}:{to} flags {flags}")
            }
            10..12 => {
                let kind = one(rng, &[8, 8, 0, 3, 13]);
                format!("icmp {src} > {dst} type {kind} rest {}", rng.u32(5..9) << 16)
            }
            12 => format!("ip {src} > {dst} proto {}", one(rng, &[4u8, 33, 41, 47, 132])),
            13 => {
                let first = rng.bool();
                let frag =
                    if first { "mf".to_string() } else { format!("frag {}", 8 * rng.u16(..9)) };
                format!("udp {src}:{from} > {dst}:{to} {frag}")
            }
            14 => {
                let hosts = ["2001:db8::1", "2001:db8::2", "fe80::1"];
                let (src, dst) = (one(rng, &hosts), one(rng, &hosts));
                format!("udp [{src}]:{from} > [{dst}]:{to}")
            }
            _ => return self.neighbours(),
        };
        let ttl = match rng.u8(..3) {
            0 => 64,
            _ => rng.u8(..13),
        };
        let link = one(rng, &["", "", "", "", "", "", "", "vlan 5", "svlan 9 vlan 5"]);
        let options = one(
            rng,
            &[
                "",
                "",
                "",
                "",
                "",
                "",
                "opt 01010101",
                "opt 07070400000000",
                "opt 440c0500",
                "opt 9404",
            ],
        );
        let v6 = kind.contains('[');
        let options = if v6 { "" } else { options };
        let damage =
            one(rng, &["", "", "", "", "", "", "", "", "badsum", "badl4sum", "nosum", "df"]);
        let damage = match damage {
            "nosum" if !kind.starts_with("udp") => "",
            "badsum" | "df" if v6 => "",
            damage => damage,
        };
        let tos = rng.u8(..4);
        let text = format!("{link} {kind} ttl {ttl} tos {tos} {options} {payload} {damage}");
        notation::parse(&text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    fn neighbours(&mut self) -> Frame {
        let ip = one(&mut self.rng, &["10.0.0.254", "10.0.0.1", "20.0.0.1"]);
        let text = match self.rng.bool() {
            true => format!("arp who-has {ip} tell 10.0.0.1"),
            false => format!("arp reply {ip} is-at 02:00:00:00:00:07 to 10.0.0.254"),
        };
        notation::parse(&text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    /// The other side's answer to something that left.
    fn answer(&mut self) -> Option<Frame> {
        let mut frame = self.rng.choice(&self.left)?.clone();
        let ip = &mut frame[ETHERNET..];
        for i in 12..16 {
            ip.swap(i, i + 4);
        }
        ip[8] = if self.rng.u8(..4) == 0 { self.rng.u8(..13) } else { 60 };
        match ip[9] {
            6 | 17 => {
                ip.swap(20, 22);
                ip.swap(21, 23);
            }
            1 if ip[20] == 8 => ip[20] = 0,
            _ => {}
        }
        if ip[9] == 6 && ip.len() >= 40 {
            ip[33] = one(&mut self.rng, &[0x10u8, 0x11, 0x18, 0x04, 0x12, 0x14]);
        }
        fix_checksums(ip);
        Some(frame)
    }

    /// An ICMP error about something that left.
    fn error(&mut self) -> Option<Frame> {
        let frame = self.rng.choice(&self.left)?.clone();
        let quoted = &frame[ETHERNET..];
        let quotes = quoted.len().min([28, 36, 48, 100][self.rng.usize(..4)]);
        let kind = one(&mut self.rng, &[3u8, 4, 5, 11, 12]);
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 60, 1, 0, 0];
        ip.extend(&quoted[16..20]);
        ip.extend(&quoted[12..16]);
        ip.extend([kind, 1, 0, 0, 0, 0, 0, 0]);
        ip.extend(&quoted[..quotes]);
        let length = ip.len() as u16;
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        fix_checksums(&mut ip);
        Some([&frame[..ETHERNET], &ip[..]].concat())
    }

    /// Something that left comes back as it is.
    fn again(&mut self) -> Option<Frame> {
        self.rng.choice(&self.left).cloned()
    }

    /// What random packets are made of.
    fn odd(&mut self) -> Option<Frame> {
        let mut samples = self.odd.new_tree(&mut self.runner).ok()?.current();
        samples.pop().map(|sample| sample.bytes)
    }
}
