//! Names of places in a packet, by where its headers are.

use compiler::provenance::{Asked, Conditions, Visit};
use ir::program::{Mark, Term, Write, Writes};
use ir::{Base, Field, Program};
use net::Header;

use crate::explain::Kind;

/// Where headers are, in bytes from the data's start where the packet comes in, as far as is
/// known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    headers: Vec<(Kind, i32, i32)>,
}

/// A named part of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// The field that it is, if it is a whole one.
    pub(crate) field: Option<Field>,
}

impl Layout {
    /// The layout of packets that come to an exit; `usual` is where the network header is if nothing
    /// tells.
    pub(crate) fn of(
        program: &Program,
        known: &Conditions,
        visits: &[Visit],
        writes: &Writes,
        usual: Option<i32>,
    ) -> Self {
        let input = |offset: i32, width: u16| {
            known.iter().find_map(|(asked, condition)| match asked {
                Asked::Number(term) => match program.term(*term) {
                    Term::Input(field)
                        if field.base == Base::Data
                            && i32::from(field.offset) == offset
                            && field.width == width =>
                    {
                        condition.set.as_single()
                    }
                    _ => None,
                },
                _ => None,
            })
        };
        let ether_type = input(96, 16);
        let tagged = matches!(ether_type, Some(0x8100 | 0x88a8));
        let framed = match ether_type {
            Some(0x8100 | 0x88a8) => Some(18),
            Some(_) => Some(14),
            None => usual,
        };
        let network = match (came_in(visits), ether_type) {
            // Marks before the end of the frame's header are of frames that were made of it.
            (Some(at), Some(0x0800 | 0x0806 | 0x86dd | 0x8100 | 0x88a8)) if at < 14 => framed,
            (visited, _) => visited.or(framed),
        };
        let Some(network) = network else {
            return Self { headers: vec![(Kind::Ethernet, 0, 14)] };
        };
        let mut layout = Self::default();
        layout.add_frame(0, network);
        let inner = if tagged { input(128, 16) } else { ether_type };
        let version = input(network * 8, 4);
        // Who puts the same header into another frame says what it is.
        let stays = marked(program, writes, Header::Network).is_none_or(|at| at == network);
        let reframed = || written_kind(program, writes, network).filter(|_| stays);
        let kind = match (inner, version) {
            (Some(0x0806), _) => Kind::Arp,
            (Some(0x86dd), _) | (_, Some(6)) => Kind::Ipv6,
            (Some(other), None) if other != 0x0800 => return layout,
            (None, None) => reframed().unwrap_or(Kind::Ipv4),
            _ => Kind::Ipv4,
        };
        let length = length(kind);
        layout.headers.push((kind, network, network + length));
        let protocol = match kind {
            Kind::Ipv4 => input(network * 8 + 72, 8),
            Kind::Ipv6 => input(network * 8 + 48, 8),
            _ => return layout,
        };
        let follows = |visit: &Visit| visit.transport.filter(|&at| at >= network + length);
        let transport = visits.iter().rev().find_map(follows).unwrap_or(network + length);
        let (kind, length) = match protocol {
            Some(6) => (Kind::Tcp, 20),
            Some(1 | 58) => (Kind::Icmp, 8),
            Some(17) => (Kind::Udp, 8),
            // Ports stand where those of UDP do.
            _ => (Kind::Transport, 4),
        };
        layout.headers.push((kind, transport, transport + length));
        layout
    }

    /// The layout of packets that leave: frames may begin elsewhere, and other headers follow.
    pub(crate) fn leaving(&self, program: &Program, writes: &Writes) -> Self {
        let is_network = |kind: Kind| matches!(kind, Kind::Ipv4 | Kind::Ipv6 | Kind::Arp);
        let before = self.headers.iter().find(|(kind, ..)| is_network(*kind)).map(|h| h.1);
        let Some(network) = marked(program, writes, Header::Network).or(before) else {
            return self.clone();
        };
        let mut leaving = Self::default();
        let mac = marked(program, writes, Header::Mac);
        if let Some(mac) = mac {
            leaving.add_frame(mac, network);
        }
        let is_frame = |kind: Kind| matches!(kind, Kind::Ethernet | Kind::Vlan);
        let stay = |header: &&(Kind, i32, i32)| mac.is_none() || !is_frame(header.0);
        leaving.headers.extend(self.headers.iter().filter(stay));
        if before != Some(network) {
            let kind = written_kind(program, writes, network).unwrap_or(Kind::Ipv4);
            leaving.headers.push((kind, network, network + length(kind)));
        }
        leaving
    }

    /// The headers of a frame between two places, if it looks like one.
    fn add_frame(&mut self, mac: i32, network: i32) {
        if let 14 | 18 | 22 = network - mac {
            self.headers.push((Kind::Ethernet, mac, mac + 14));
            let tags = (mac..network - 14).step_by(4);
            self.headers.extend(tags.map(|at| (Kind::Vlan, at, at + 18)));
        }
    }

    /// The name of some bits.
    pub(crate) fn name(&self, start: i32, width: u32) -> Named {
        let end = start + width as i32;
        for (kind, at, until) in self.headers.iter().rev() {
            let (from, to) = (8 * at, 8 * until);
            if start < from || end > to.max(from + 8) && start >= to {
                continue;
            }
            let offset = start - from;
            let exact = u16::try_from(offset).ok().and_then(|offset| {
                let prefix = kind.families();
                Field::all_named().find(|(name, f)| {
                    (f.offset, u32::from(f.width)) == (offset, width)
                        && prefix.iter().any(|p| name.starts_with(p))
                })
            });
            if let Some((_, field)) = exact {
                return Named { name: kind.name(field), field: Some(field) };
            }
            for field in kind.fields() {
                let first = i32::from(field.offset);
                let last = first + i32::from(field.width);
                if first <= offset && offset + width as i32 <= last {
                    let name = format!("{}[{}+{width}]", kind.name(*field), offset - first);
                    return Named { name, field: None };
                }
            }
        }
        let name = match (start % 8, width % 8) {
            (0, 0) if width == 8 => format!("byte {}", start / 8),
            (0, 0) => format!("bytes {}..{}", start / 8, end / 8),
            _ => format!("bits {start}..{end}"),
        };
        Named { name, field: None }
    }

    /// The parts of some bits that have names of their own, in order.
    pub(crate) fn parts(&self, start: i32, width: u32) -> Vec<(i32, u32)> {
        let end = start + width as i32;
        let mut parts: Vec<(i32, u32)> = Vec::new();
        let mut at = start;
        while at < end {
            let known = self.headers.iter().rev().find_map(|(kind, from, _)| {
                let offset = u16::try_from(at - 8 * from).ok()?;
                let fits = |f: &&Field| f.offset == offset && at + i32::from(f.width) <= end;
                kind.fields().iter().find(fits).map(|f| u32::from(f.width))
            });
            let width =
                known.unwrap_or_else(|| ((end - at) as u32).min(8 - at.rem_euclid(8) as u32));
            match parts.last_mut() {
                // What has no name is told in one run.
                Some((_, last)) if known.is_none() && !self.is_named(at - *last as i32, *last) => {
                    *last += width;
                }
                _ => parts.push((at, width)),
            }
            at += width as i32;
        }
        parts
    }

    fn is_named(&self, start: i32, width: u32) -> bool {
        self.name(start, width).field.is_some()
    }
}

/// Where elements last found a network header that came in, and was not pushed.
pub(super) fn came_in(visits: &[Visit]) -> Option<i32> {
    visits.iter().rev().find_map(|visit| visit.network.filter(|&at| at >= 0))
}

/// How long a network header is without what may follow.
fn length(kind: Kind) -> i32 {
    match kind {
        Kind::Arp => 28,
        Kind::Ipv6 => 40,
        _ => 20,
    }
}

/// Where a header is marked, if it is where it always is.
fn marked(program: &Program, writes: &Writes, header: Header) -> Option<i32> {
    let Mark::At(term) = writes.marks[header as usize] else { return None };
    match program.term(term) {
        Term::Const(at) => i32::try_from(*at as i128).ok(),
        _ => None,
    }
}

/// The network header that is written to a place, or that is said to be there.
fn written_kind(program: &Program, writes: &Writes, network: i32) -> Option<Kind> {
    let version = || match written(program, writes, 8 * network, 4)? {
        4 => Some(Kind::Ipv4),
        6 => Some(Kind::Ipv6),
        _ => None,
    };
    match written(program, writes, 8 * network - 16, 16) {
        Some(0x0800) => Some(Kind::Ipv4),
        Some(0x0806) => Some(Kind::Arp),
        Some(0x86dd) => Some(Kind::Ipv6),
        _ => version(),
    }
}

/// The number that is always written to some bits.
fn written(program: &Program, writes: &Writes, start: i32, width: u32) -> Option<u128> {
    let after = |write: &Write| 8 * (write.offset + i32::from(write.length)) - start;
    let covers = |write: &&Write| 8 * write.offset <= start && after(write) >= width as i32;
    let write = writes.bytes.iter().find(covers)?;
    // Bits of the number behind those that are asked for.
    let mut behind = after(write) as u32 - width;
    let mut value = write.value;
    loop {
        match program.term(value) {
            Term::Const(number) => {
                return Some(number.checked_shr(behind).unwrap_or(0) & ((1 << width) - 1));
            }
            Term::Concat { high, width: cut, .. } if behind >= u32::from(*cut) => {
                (value, behind) = (*high, behind - u32::from(*cut));
            }
            Term::Concat { low, width: cut, .. } if behind + width <= u32::from(*cut) => {
                value = *low;
            }
            _ => return None,
        }
    }
}
