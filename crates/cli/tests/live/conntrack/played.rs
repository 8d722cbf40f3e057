//! Connections of TCP as a generator plays them, with segments that do not belong there.

use std::net::{Ipv4Addr, Ipv6Addr};

use net::checksum::{Sum, checksum, pseudo_header_v4, pseudo_header_v6};
use net::wire::tcp::flag::{ACK, FIN, PSH, RST, SYN, URG};
use net::wire::{Ipv4, Tcp};

/// Which end sends: the one inside, or the one outside.
pub(super) const INSIDE: usize = 0;
pub(super) const OUTSIDE: usize = 1;

/// A packet of IP and where it comes from.
pub(super) struct Played {
    pub from: usize,
    pub packet: Vec<u8>,
    pub connection: u16,
    /// What it is, and how far its connection was.
    pub what: String,
}

impl Played {
    /// The same over IPv6.
    pub(super) fn over_ipv6(&self) -> Self {
        let ip = Ipv4::new(&self.packet[..]).unwrap();
        let mut tcp = self.packet[20..].to_vec();
        let length = tcp.len() as u16;
        let [src, dst] = [ip.src(), ip.dst()]
            .map(|end| Ipv6Addr::new(0x2001, 0xdb8, end.octets()[1].into(), 0, 0, 0, 0, 2));
        let is_sound =
            pseudo_header_v4(ip.src(), ip.dst(), 6, length).plus(Sum::of(&tcp)).checksum() == 0;
        let mut view = Tcp::new(&mut tcp[..]).unwrap();
        view.fill_checksum(pseudo_header_v6(src, dst, 6, length.into()));
        if !is_sound {
            let sum = view.checksum();
            view.set_checksum(!sum);
        }
        let mut packet = [0x60, 0, 0, 0, 0, 0, 6, 64].to_vec();
        packet[4..6].copy_from_slice(&length.to_be_bytes());
        packet.extend(src.octets());
        packet.extend(dst.octets());
        Self { packet: [packet, tcp].concat(), what: self.what.clone(), ..*self }
    }
}

/// A segment.
#[derive(Clone, Copy)]
struct Segment {
    from: usize,
    flags: u8,
    seq: u32,
    ack: u32,
    data: usize,
    is_sound: bool,
}

impl Segment {
    fn packet(&self, number: u16) -> Vec<u8> {
        let ends = [(Ipv4Addr::new(10, 1, 0, 2), 1024 + number), (Ipv4Addr::new(10, 2, 0, 2), 80)];
        let [(src, src_port), (dst, dst_port)] = [ends[self.from], ends[1 - self.from]];
        let mut tcp = [&[0; 20][..], &vec![b'.'; self.data]].concat();
        let length = tcp.len() as u16;
        let mut view = Tcp::new(&mut tcp[..]).unwrap();
        view.set_src_port(src_port);
        view.set_dst_port(dst_port);
        view.set_seq(self.seq);
        view.set_ack(if self.flags & ACK == 0 { 0 } else { self.ack });
        view.set_header_len(20);
        view.set_flags(self.flags);
        view.set_window(WINDOW);
        view.fill_checksum(pseudo_header_v4(src, dst, 6, length));
        if !self.is_sound {
            let sum = view.checksum();
            view.set_checksum(!sum);
        }
        let mut packet = [0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0].to_vec();
        packet[2..4].copy_from_slice(&(20 + length).to_be_bytes());
        packet.extend(src.octets());
        packet.extend(dst.octets());
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        [packet, tcp].concat()
    }
}

const WINDOW: u16 = 20_000;

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Phase {
    Nothing,
    Syn,
    BothSyn,
    OneSynAck,
    SynAck,
    Open,
    Finished,
    Closed,
    Reset,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "before it",
            Self::Syn => "after the SYN",
            Self::BothSyn => "after both SYNs",
            Self::OneSynAck => "after both SYNs and a SYN-ACK",
            Self::SynAck => "after the SYN-ACK",
            Self::Open => "established",
            Self::Finished => "after a FIN",
            Self::Closed => "after both FINs",
            Self::Reset => "after the reset",
        }
    }
}

/// Both ends of a connection.
struct Ends {
    phase: Phase,
    /// What each sends next.
    next: [u32; 2],
    has_finished: [bool; 2],
}

impl Ends {
    fn segment(&self, from: usize, flags: u8, data: usize) -> Segment {
        let (seq, ack) = (self.next[from], self.next[1 - from]);
        Segment { from, flags, seq, ack, data, is_sound: true }
    }

    /// The next segment of a connection in which nothing is odd.
    fn usual(&mut self, random: &mut fastrand::Rng) -> (Segment, &'static str) {
        let from = random.usize(0..2);
        let (segment, what, phase) = match self.phase {
            Phase::Nothing => (self.segment(INSIDE, SYN, 0), "SYN", Phase::Syn),
            Phase::Syn if random.u8(..10) == 0 => {
                (self.segment(OUTSIDE, SYN, 0), "crossing SYN", Phase::BothSyn)
            }
            Phase::Syn => (self.segment(OUTSIDE, SYN | ACK, 0), "SYN-ACK", Phase::SynAck),
            Phase::BothSyn | Phase::OneSynAck => {
                let is_first = self.phase == Phase::BothSyn;
                let from = if is_first { INSIDE } else { OUTSIDE };
                let mut segment = self.segment(from, SYN | ACK, 0);
                segment.seq = segment.seq.wrapping_sub(1);
                (segment, "SYN-ACK", if is_first { Phase::OneSynAck } else { Phase::SynAck })
            }
            Phase::SynAck => (self.segment(INSIDE, ACK, 0), "ACK", Phase::Open),
            Phase::Open | Phase::Finished if random.u8(..12) == 0 && !self.has_finished[from] => {
                self.has_finished[from] = true;
                let phase =
                    if self.has_finished[1 - from] { Phase::Closed } else { Phase::Finished };
                (self.segment(from, FIN | ACK, 0), "FIN", phase)
            }
            phase if self.has_finished[from] || random.bool() => {
                (self.segment(from, ACK, 0), "ACK", phase)
            }
            phase => (self.segment(from, PSH | ACK, random.usize(1..1400)), "data", phase),
        };
        let count = |flag: u8| u32::from(segment.flags & flag != 0);
        let counted = segment.data as u32 + count(SYN) + count(FIN);
        let next = &mut self.next[segment.from];
        *next = segment.seq.wrapping_add(counted);
        self.phase = phase;
        (segment, what)
    }

    /// A segment that does not belong there, or that is sent again.
    fn odd(&mut self, random: &mut fastrand::Rng) -> (Segment, &'static str) {
        let from = random.usize(0..2);
        let data = self.segment(from, PSH | ACK, 100);
        let moved = |seq: i32, ack: i32, segment: Segment| Segment {
            seq: segment.seq.wrapping_add_signed(seq),
            ack: segment.ack.wrapping_add_signed(ack),
            ..segment
        };
        let bare = |flags: u8| Segment { flags, data: 0, ..data };
        match random.u8(..24) {
            0 => (moved(100_000, 0, data), "data beyond the window"),
            1 => (moved(-100, 0, data), "data sent again"),
            2 => (moved(-300_000, 0, data), "data of long ago"),
            3 => (moved(0, 50_000, data), "data with an ACK of what was not sent"),
            4 => (moved(0, -300_000, data), "data with an ACK of long ago"),
            5 => (moved(0, 50_000, bare(ACK)), "ACK of what was not sent"),
            6 => (moved(0, -300_000, bare(ACK)), "ACK of long ago"),
            7 => (moved(100_000, 0, bare(ACK)), "ACK with a number beyond the window"),
            8 => (moved(-1, 0, Segment { data: 1, ..data }), "keep-alive with a byte"),
            9 => (moved(-1, 0, bare(ACK)), "keep-alive"),
            10 => (moved(500, 0, bare(SYN)), "SYN with another number"),
            11 => (moved(-1, 0, bare(SYN)), "SYN with the number before"),
            12 => (moved(700, 0, bare(SYN | ACK)), "SYN-ACK with another number"),
            13 => (moved(-1, 0, bare(SYN | ACK)), "SYN-ACK with the number before"),
            14 => {
                self.phase = Phase::Reset;
                (bare(RST), "RST with the exact number")
            }
            15 => {
                self.phase = Phase::Reset;
                (bare(RST | ACK), "RST with the exact number and an ACK")
            }
            16 => (moved(900, 0, bare(RST)), "RST within the window"),
            17 => (moved(100_000, 0, bare(RST)), "RST beyond the window"),
            18 => (moved(-100_000, 0, bare(RST)), "RST of long ago"),
            19 => (
                bare(
                    *random
                        .choice(&[
                            0,
                            FIN,
                            PSH,
                            SYN | FIN,
                            SYN | RST,
                            FIN | PSH | URG,
                            RST | FIN,
                            PSH | URG,
                        ])
                        .unwrap(),
                ),
                "flags that contradict each other",
            ),
            20 => (bare(FIN | RST | ACK), "RST with FIN"),
            21 => (Segment { is_sound: false, ..data }, "data with a wrong checksum"),
            22 => (Segment { flags: URG | PSH | ACK, ..data }, "urgent data"),
            _ => (moved(WINDOW.into(), 0, Segment { data: 1, ..data }), "a byte behind the window"),
        }
    }
}

/// A connection with one segment that does not belong there, and its number in the ports.
pub(super) fn connection(number: u16) -> Vec<Played> {
    let mut random = fastrand::Rng::with_seed(number.into());
    let next = [random.u32(..), random.u32(..)];
    let mut ends = Ends { phase: Phase::Nothing, next, has_finished: [false; 2] };
    let odd_at = random.usize(1..9);
    let mut odd_one = None;
    let mut steps = Vec::new();
    for step in 0..odd_at + 4 {
        let before = ends.phase;
        let (segment, what) = match step == odd_at {
            true => ends.odd(&mut random),
            false => ends.usual(&mut random),
        };
        let who = ["inside", "outside"][segment.from];
        let mut what = format!("{what} from {who}");
        match &odd_one {
            Some(odd) => what = format!("{what} behind {odd}"),
            None => what = format!("{what} {}", before.name()),
        }
        if step == odd_at {
            odd_one = Some(what.clone());
        }
        steps.push(Played {
            from: segment.from,
            packet: segment.packet(number),
            connection: number,
            what,
        });
    }
    steps
}
