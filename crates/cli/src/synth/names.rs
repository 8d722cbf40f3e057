//! Names of places in a packet, by where its headers are.

use compiler::provenance::{Asked, Conditions, Visit};
use ir::program::{Mark, Term, Writes};
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
        let marked = visits.iter().rev().find_map(|v| v.network);
        let network = marked.or(match ether_type {
            Some(0x8100 | 0x88a8) => Some(18),
            Some(_) => Some(14),
            None => usual,
        });
        let mut headers = Vec::new();
        let ethernet = |headers: &mut Vec<_>, network: i32| {
            if let 14 | 18 | 22 = network {
                headers.push((Kind::Ethernet, 0, 14));
                (0..(network - 14) / 4).for_each(|i| headers.push((Kind::Vlan, 4 * i, 18 + 4 * i)));
            }
        };
        let Some(network) = network else {
            return Self { headers: vec![(Kind::Ethernet, 0, 14)] };
        };
        ethernet(&mut headers, network);
        let inner = if tagged { input(128, 16) } else { ether_type };
        let version = input(network * 8, 4);
        let kind = match (inner, version) {
            (Some(0x0806), _) => Kind::Arp,
            (Some(0x86dd), _) | (_, Some(6)) => Kind::Ipv6,
            (Some(other), None) if other != 0x0800 => return Self { headers },
            _ => Kind::Ipv4,
        };
        let length = match kind {
            Kind::Arp => 28,
            Kind::Ipv6 => 40,
            _ => 20,
        };
        headers.push((kind, network, network + length));
        let protocol = match kind {
            Kind::Ipv4 => input(network * 8 + 72, 8),
            Kind::Ipv6 => input(network * 8 + 48, 8),
            _ => return Self { headers },
        };
        let transport = visits.iter().rev().find_map(|v| v.transport);
        let transport = transport.unwrap_or(network + length);
        let (kind, length) = match protocol {
            Some(6) => (Kind::Tcp, 20),
            Some(1 | 58) => (Kind::Icmp, 8),
            Some(17) => (Kind::Udp, 8),
            // Ports stand where those of UDP do.
            _ => (Kind::Transport, 4),
        };
        headers.push((kind, transport, transport + length));
        Self { headers }
    }

    /// Adds an Ethernet header that is pushed in front of what came in.
    pub(crate) fn add_pushed(&mut self, program: &Program, writes: &Writes) {
        let at = |header: Header| match writes.marks[header as usize] {
            Mark::At(term) => match program.term(term) {
                Term::Const(at) => i32::try_from(*at as i128).ok(),
                _ => None,
            },
            _ => None,
        };
        if let (Some(mac), Some(network)) = (at(Header::Mac), at(Header::Network))
            && mac < 0
            && network == mac + 14
        {
            self.headers.push((Kind::Ethernet, mac, network));
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
