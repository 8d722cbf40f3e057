//! Single tests of the pattern language: what their words mean together.

use ir::IntervalSet;
use net::wire::{EtherAddr, icmpv4, icmpv6, ip_protocol, service};

use std::net::Ipv6Addr;

use super::expr::{Origin, PacketBytes, Pattern};
use super::version::Version;
use crate::argument::{IpMask, parse_integer, parse_ip_mask, parse_ipv4};
use crate::names::Names;

/// A protocol number, [`TCP_OR_UDP`] or [`ANY_TRANSPORT`].
pub(crate) type Protocol = u16;
const TCP: Protocol = ip_protocol::TCP as Protocol;
const UDP: Protocol = ip_protocol::UDP as Protocol;
const ICMP: Protocol = ip_protocol::ICMP as Protocol;
/// `icmp6`.
pub(crate) const ICMP6: Protocol = ip_protocol::ICMPV6 as Protocol;
const DCCP: Protocol = ip_protocol::DCCP as Protocol;
/// `tcpudp`.
const TCP_OR_UDP: Protocol = 256;
/// `transp`: whatever the protocol.
const ANY_TRANSPORT: Protocol = 257;

/// Bits of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Of the IP header: offset and width in bits.
    Ip(u16, u8),
    /// Of the transport header of a protocol: offset and width in bits.
    Transport(Protocol, u16, u8),
    /// Bytes written in brackets, of the transport header if a protocol was named.
    Raw {
        protocol: Option<Protocol>,
        /// In bytes.
        offset: u16,
        /// In bytes.
        length: u8,
    },
}

const TOS: Field = Field::Ip(8, 8);
pub(crate) const ICMP_TYPE: Field = Field::Transport(ICMP, 0, 8);
pub(crate) const ICMP6_TYPE: Field = Field::Transport(ICMP6, 0, 8);

impl Field {
    fn protocol(self) -> Option<Protocol> {
        match self {
            Field::Ip(..) => None,
            Field::Transport(protocol, ..) => Some(protocol),
            Field::Raw { protocol, .. } => protocol,
        }
    }

    /// The same of the IPv6 header, if that has it.
    fn in_ipv6(self) -> Option<Self> {
        Some(match self {
            Field::Ip(0, _) => self,
            Field::Ip(8, width) => Field::Ip(4, width),
            Field::Ip(64, width) => Field::Ip(56, width),
            Field::Ip(..) => return None,
            other => other,
        })
    }

    /// The bytes, and the bits of them that belong to the field.
    fn place(self, version: Version) -> (PacketBytes, u32) {
        let (network, transport) = (version.network(), version.transport());
        let (origin, offset, width) = match self {
            Field::Ip(offset, width) => (network, offset, width),
            Field::Transport(_, offset, width) => (transport, offset, width),
            Field::Raw { protocol, offset, length } => {
                let origin = if protocol.is_some() { transport } else { network };
                (origin, 8 * offset, 8 * length)
            }
        };
        let first = offset / 8;
        let end = (offset + u16::from(width)).div_ceil(8);
        let trail = 8 * end - offset - u16::from(width);
        let mask = (u32::MAX >> (32 - width)) << trail;
        (PacketBytes::new(origin, first, (end - first) as u8), mask)
    }
}

/// What is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Host,
    Net,
    Ether,
    Proto,
    /// `ip` or `ip6` alone.
    Version,
    Port,
    TcpOpt,
    Frag,
    Unfrag,
    Ect,
    Ce,
    Field(Field),
}

impl Kind {
    /// What a word of the language means, if it says what is tested.
    pub(crate) fn named(word: &str) -> Option<Kind> {
        Some(match word {
            "host" => Kind::Host,
            "net" => Kind::Net,
            "proto" => Kind::Proto,
            "port" => Kind::Port,
            "opt" => Kind::TcpOpt,
            "frag" => Kind::Frag,
            "unfrag" => Kind::Unfrag,
            "ect" => Kind::Ect,
            "ce" => Kind::Ce,
            "vers" => Kind::Field(Field::Ip(0, 4)),
            "hl" => Kind::Field(Field::Ip(4, 4)),
            "tos" => Kind::Field(TOS),
            "dscp" => Kind::Field(Field::Ip(8, 6)),
            "len" => Kind::Field(Field::Ip(16, 16)),
            "id" => Kind::Field(Field::Ip(32, 16)),
            "ttl" => Kind::Field(Field::Ip(64, 8)),
            "type" => Kind::Field(ICMP_TYPE),
            "win" => Kind::Field(Field::Transport(TCP, 112, 16)),
            _ => return None,
        })
    }

    /// The protocol that it implies.
    pub(crate) fn protocol(self) -> Option<Protocol> {
        match self {
            Kind::Field(field) => field.protocol(),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Host => "host",
            Kind::Net => "net",
            Kind::Ether => "ether host",
            Kind::Proto => "proto",
            Kind::Version => "ip",
            Kind::Port => "port",
            Kind::TcpOpt => "tcp opt",
            Kind::Frag => "ip frag",
            Kind::Unfrag => "ip unfrag",
            Kind::Ect => "ip ect",
            Kind::Ce => "ip ce",
            Kind::Field(Field::Raw { .. }) => "[...]",
            Kind::Field(Field::Ip(0, _)) => "ip vers",
            Kind::Field(Field::Ip(4, _)) => "ip hl",
            Kind::Field(Field::Ip(8, 6)) => "ip dscp",
            Kind::Field(Field::Ip(8, _)) => "ip tos",
            Kind::Field(Field::Ip(16, _)) => "ip len",
            Kind::Field(Field::Ip(32, _)) => "ip id",
            Kind::Field(Field::Ip(..)) => "ip ttl",
            Kind::Field(Field::Transport(ICMP, ..)) => "icmp type",
            Kind::Field(Field::Transport(ICMP6, ..)) => "icmp6 type",
            Kind::Field(Field::Transport(..)) => "tcp win",
        }
    }
}

/// Which of two addresses or ports is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    Source,
    Destination,
    Either,
    Both,
}

/// How a number is compared; negations are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Op {
    #[default]
    Equal,
    Greater,
    Less,
}

/// A value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Data {
    #[default]
    Nothing,
    Int(u32),
    Host(u32),
    /// Address and mask.
    Net(u32, u32),
    Host6(u128),
    /// Address and mask.
    Net6(u128, u128),
    Ether(EtherAddr),
    Proto(Protocol),
    Port(u16),
    TcpOpt(u8),
    IcmpType(u8),
}

/// A mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    Int(u32),
    Address(u32),
    Ether(EtherAddr),
}

/// What a test without qualifiers takes over from the one before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    kind: Option<Kind>,
    sides: Option<Sides>,
    protocol: Option<Protocol>,
    version: Option<Version>,
    pub(crate) ether: bool,
}

impl Carried {
    /// ICMPv6, if its types were tested: names of types mean its own then.
    pub(crate) fn icmp6(&self) -> Option<Protocol> {
        (self.kind == Some(Kind::Field(ICMP6_TYPE))).then_some(ICMP6)
    }
}

/// The words of a test, as they are collected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Primitive {
    pub(crate) kind: Option<Kind>,
    pub(crate) sides: Option<Sides>,
    pub(crate) protocol: Option<Protocol>,
    /// Whether `ether` (or else `ip` or `ip6`) was said.
    pub(crate) ether: Option<bool>,
    /// The version of IP that was said.
    pub(crate) version: Option<Version>,
    /// The version whose header is tested.
    pub(super) tested: Version,
    pub(crate) mask: Option<Mask>,
    pub(crate) op: Op,
    pub(crate) negated: bool,
    pub(crate) data: Data,
    /// Whether it means nothing for want of a value.
    pub(crate) lacks_value: bool,
}

impl Primitive {
    fn missing<T>(&mut self, name: &str, what: &str) -> Result<T, String> {
        self.lacks_value = true;
        Err(format!("'{name}' is missing its {what}"))
    }

    /// Fails if another protocol was named before.
    pub(crate) fn set_protocol(&mut self, protocol: Protocol) -> Result<(), ()> {
        match self.protocol.replace(protocol) {
            Some(old) if old != protocol => Err(()),
            _ => Ok(()),
        }
    }

    /// What it means, taking over what it does not say from `carried`, and leaving there what the
    /// next may take over.
    pub(crate) fn finish(
        mut self,
        carried: &mut Carried,
        version: Version,
    ) -> Result<Pattern, String> {
        let mut kind = self.infer_kind(carried)?;
        let ether = self.ether.unwrap_or(matches!(self.data, Data::Ether(_)));
        if ether && kind == Kind::Host {
            kind = Kind::Ether;
        }
        if ether != (kind == Kind::Ether) {
            return Err(format!("'{}' is not a test of the Ethernet header", kind.name()));
        }
        let said = match self.data {
            Data::Host(_) | Data::Net(..) => Some(Version::V4),
            Data::Host6(_) | Data::Net6(..) => Some(Version::V6),
            _ => self.version,
        };
        if let (Some(said), Some(version)) = (said, self.version)
            && said != version
        {
            return Err("the address is not of this version of IP".to_string());
        }
        // Bytes of a header are those of the version that was said, or else of IPv4.
        let is_raw = matches!(kind, Kind::Field(Field::Raw { protocol: None, .. }));
        let said = said.or(is_raw.then_some(Version::V4));
        self.tested = said.unwrap_or(version);
        let mut pattern = self.pattern(&mut kind)?;
        if self.tested != version {
            pattern = Pattern::Const(false);
        }
        *carried = Carried {
            kind: Some(kind),
            sides: self.sides,
            protocol: self.protocol,
            version: self.version,
            ether: matches!(self.data, Data::Ether(_)),
        };
        Ok(pattern)
    }

    /// What is tested, from the value if it was not said.
    fn infer_kind(&mut self, carried: &Carried) -> Result<Kind, String> {
        if let Some(kind) = self.kind {
            return Ok(kind);
        }
        let kind = match self.data {
            Data::Host(_) => Kind::Host,
            Data::Net(..) | Data::Net6(..) => Kind::Net,
            Data::Host6(_) => Kind::Host,
            Data::Ether(_) => Kind::Ether,
            Data::TcpOpt(_) => Kind::TcpOpt,
            Data::Proto(_) => Kind::Proto,
            Data::Port(_) => Kind::Port,
            Data::IcmpType(_) if self.protocol.or(carried.icmp6()) == Some(ICMP6) => {
                Kind::Field(ICMP6_TYPE)
            }
            Data::IcmpType(_) => Kind::Field(ICMP_TYPE),
            Data::Int(value) => match carried.kind {
                Some(kind @ (Kind::Field(_) | Kind::Proto | Kind::Port)) => kind,
                _ => {
                    return Err(format!(
                        "what is {value}? Say 'port {value}', 'ip proto {value}', 'ip ttl {value}' …"
                    ));
                }
            },
            Data::Nothing if self.protocol.is_some() => Kind::Proto,
            Data::Nothing if self.version.is_some() => Kind::Version,
            Data::Nothing => return Err("the test is not complete".to_string()),
        };
        if !matches!(kind, Kind::Host | Kind::Net | Kind::Ether) {
            self.version = self.version.or(carried.version);
        }
        match kind {
            Kind::Host | Kind::Net | Kind::Ether | Kind::TcpOpt => {
                self.sides = self.sides.or(carried.sides);
            }
            Kind::Port => {
                self.sides = self.sides.or(carried.sides);
                self.protocol = self.protocol.or(carried.protocol);
            }
            Kind::Field(field) => self.protocol = self.protocol.or(field.protocol()),
            _ => {}
        }
        Ok(kind)
    }

    fn pattern(&mut self, kind: &mut Kind) -> Result<Pattern, String> {
        let name = kind.name();
        match *kind {
            Kind::Host | Kind::Net if matches!(self.data, Data::Host6(_) | Data::Net6(..)) => {
                self.only_equal(name)?;
                let (address, mask) = match (*kind, self.data) {
                    (Kind::Host, Data::Host6(address)) => (address, u128::MAX),
                    (Kind::Net, Data::Net6(address, mask)) => (address, mask),
                    (Kind::Host, _) => return self.missing(name, "address, such as 2001:db8::1"),
                    _ => return self.missing(name, "network, such as 2001:db8::/32"),
                };
                if self.mask.is_some() {
                    return bad_mask(name);
                }
                *kind = Kind::Host;
                let pattern = self.address6(address, mask);
                Ok(self.with_protocol(pattern))
            }
            Kind::Host | Kind::Net => {
                let (address, prefix) = match (*kind, self.data) {
                    (Kind::Host, Data::Host(address)) => (address, u32::MAX),
                    (Kind::Net, Data::Net(address, mask)) => (address, mask),
                    (Kind::Host, _) => return self.missing(name, "address, such as 10.0.0.1"),
                    _ => return self.missing(name, "network, such as 10.0.0.0/8"),
                };
                self.only_equal(name)?;
                let mask = match self.mask {
                    None => prefix,
                    Some(Mask::Int(mask) | Mask::Address(mask)) => mask,
                    Some(Mask::Ether(_)) => return bad_mask(name),
                };
                *kind = Kind::Host;
                let addresses = [12, 16].map(|at| (self.network(at, 4), mask));
                let pattern = self.either_side(addresses, single(address & mask));
                Ok(self.with_protocol(pattern))
            }
            Kind::Ether => {
                let Data::Ether(address) = self.data else {
                    return self.missing(name, "address, such as 00:11:22:33:44:55");
                };
                self.only_equal(name)?;
                let mask = match self.mask {
                    None => EtherAddr([0xff; 6]),
                    Some(Mask::Ether(mask)) => mask,
                    Some(_) => return bad_mask(name),
                };
                Ok(self.ether_address(address.0, mask.0))
            }
            Kind::Proto => self.proto(),
            // Whatever the protocol is: it is enough that there is one.
            Kind::Version => Ok(Pattern::test(self.tested.protocol(), 0xff, range(0, 0xff))),
            Kind::Port => {
                let port = match self.data {
                    Data::Int(port) => port,
                    Data::Port(port) => u32::from(port),
                    _ => return self.missing(name, "value, a port's number or name"),
                };
                match *self.protocol.get_or_insert(TCP_OR_UDP) {
                    TCP | UDP | TCP_OR_UDP | DCCP => {}
                    other => return Err(format!("protocol {other} has no ports")),
                }
                let (mask, set) = self.compare(name, port, 0xffff)?;
                let transport = self.tested.transport();
                let ports = [0, 2].map(|at| (PacketBytes::new(transport, at, 2), mask));
                let pattern = self.either_side(ports, set);
                Ok(self.with_protocol(pattern))
            }
            Kind::TcpOpt => {
                let flags = match self.data {
                    Data::Int(flags) if flags < 256 => flags,
                    Data::Int(flags) => {
                        return Err(format!("'{name}' {flags} is out of range: 0 to 255"));
                    }
                    Data::TcpOpt(flags) => u32::from(flags),
                    _ => return self.missing(name, "flag: syn, ack, fin, rst, psh or urg"),
                };
                if *self.protocol.get_or_insert(TCP) != TCP {
                    return Err(format!("'{name}' is a test of TCP"));
                }
                self.only_equal(name)?;
                if self.negated || self.mask.is_some() {
                    return Err(format!("'{name}' takes neither a relation nor a mask"));
                }
                let place = PacketBytes::new(self.tested.transport(), 13, 1);
                let pattern = match flags {
                    0 => Pattern::test(place, 0xff, range(0, 0xff)),
                    flags => Pattern::test(place, flags, single(flags)),
                };
                Ok(self.with_protocol(pattern))
            }
            Kind::Ect => {
                let set = match self.data {
                    Data::Nothing => (0x3, range(1, 3)),
                    Data::Int(value) => self.compare(name, value, 0x3)?,
                    _ => return self.missing(name, "value"),
                };
                let set = (set.0, if self.negated { complement(&set) } else { set.1 });
                *kind = Kind::Field(TOS);
                let pattern = self.ecn(set.0, &set.1);
                Ok(self.with_protocol(pattern))
            }
            Kind::Ce => {
                self.no_value(name)?;
                *kind = Kind::Field(TOS);
                let set = (0x3, single(3));
                let set = (set.0, if self.negated { complement(&set) } else { set.1 });
                let pattern = self.ecn(set.0, &set.1);
                Ok(self.with_protocol(pattern))
            }
            Kind::Frag | Kind::Unfrag => {
                self.no_value(name)?;
                let whole = (*kind == Kind::Unfrag) != self.negated;
                *kind = Kind::Frag;
                if self.tested == Version::V6 {
                    let fragment = single(ip_protocol::IPV6_FRAGMENT.into());
                    let set = if whole { complement(&(0xff, fragment)) } else { fragment };
                    let pattern = Pattern::test(self.tested.protocol(), 0xff, set);
                    return Ok(self.with_protocol(pattern));
                }
                let set = if whole { single(0) } else { range(1, 0x3fff) };
                let pattern = Pattern::test(self.network(6, 2), 0x3fff, set);
                Ok(self.with_protocol(pattern))
            }
            Kind::Field(field) => {
                let value = match self.data {
                    Data::Int(value) => value,
                    Data::IcmpType(value) if [ICMP_TYPE, ICMP6_TYPE].contains(&field) => {
                        value.into()
                    }
                    _ => return self.missing(name, "value, a number"),
                };
                let field = match (self.tested, self.version) {
                    (Version::V4, _) => Some(field),
                    (Version::V6, Some(_)) if field.in_ipv6().is_none() => {
                        return Err(format!("'{name}' is a test of IPv4"));
                    }
                    (Version::V6, _) => field.in_ipv6(),
                };
                let Some(field) = field else { return Ok(Pattern::Const(false)) };
                let (place, bits) = field.place(self.tested);
                let shift = bits.trailing_zeros();
                let (mask, set) = self.compare(name, value, bits >> shift)?;
                let set = if self.negated { complement(&(mask, set)) } else { set };
                let scale = |&(low, high): &(u128, u128)| (low << shift, high << shift);
                let set = set.intervals().iter().map(scale).collect();
                let set = IntervalSet::from_intervals(set);
                let pattern = Pattern::test(place, mask << shift, set);
                Ok(self.with_protocol(pattern))
            }
        }
    }

    fn proto(&mut self) -> Result<Pattern, String> {
        let value = match (self.data, self.protocol) {
            (Data::Int(value), named) => {
                if named.is_some_and(|n| u32::from(n) != value) {
                    return Err("the protocol is given twice".to_string());
                }
                value
            }
            (Data::Proto(value), named) => {
                if named.is_some_and(|n| n != value) {
                    return Err("the protocol is given twice".to_string());
                }
                u32::from(value)
            }
            (Data::Nothing, Some(named)) => u32::from(named),
            _ => return self.missing("proto", "value, a protocol's number or name"),
        };
        self.protocol = None;
        if let Some(special) = u16::try_from(value).ok().filter(|v| *v > 255) {
            if !(TCP_OR_UDP..=ANY_TRANSPORT).contains(&special) || self.data == Data::Int(value) {
                return Err(format!("protocol {value} is out of range: 0 to 255"));
            }
            if self.op != Op::Equal || self.negated || self.mask.is_some() {
                return Err("this protocol takes neither a relation nor a mask".to_string());
            }
            self.protocol = Some(special);
            return Ok(self.with_protocol(Pattern::Const(true)));
        }
        let (mask, set) = self.compare("proto", value, 0xff)?;
        if self.op == Op::Equal && mask == 0xff && !self.negated {
            self.protocol = Some(value as Protocol);
        }
        let set = if self.negated { complement(&(mask, set)) } else { set };
        Ok(Pattern::test(self.tested.protocol(), mask, set))
    }

    /// The masked numbers, of at most `most`, that compare with `value` as was said. Turns a
    /// `less` into a negated `greater`, as negations apply to both sides of a test together.
    fn compare(&mut self, name: &str, value: u32, most: u32) -> Result<(u32, IntervalSet), String> {
        let mask = match self.mask {
            None => most,
            Some(Mask::Int(mask)) if mask & most == mask => mask,
            Some(Mask::Int(mask)) => {
                return Err(format!("mask {mask:#x} of '{name}' is out of range: up to {most:#x}"));
            }
            Some(_) => return bad_mask(name),
        };
        let set = match (self.op, value.checked_sub(1)) {
            (Op::Equal, _) if value > most => {
                return Err(format!("{value} is out of range for '{name}': 0 to {most}"));
            }
            (Op::Equal, _) => single(value & mask),
            (Op::Less, None) => IntervalSet::empty(),
            (Op::Less, Some(greatest)) => {
                self.negated = !self.negated;
                above(greatest, mask)
            }
            (Op::Greater, _) => above(value, mask),
        };
        Ok((mask, set))
    }

    fn only_equal(&self, name: &str) -> Result<(), String> {
        match self.op {
            Op::Equal => Ok(()),
            _ => Err(format!("'{name}' can only be compared by '==' and '!='")),
        }
    }

    fn no_value(&self, name: &str) -> Result<(), String> {
        match (self.data, self.mask) {
            (Data::Nothing, None) => Ok(()),
            _ => Err(format!("'{name}' takes no value")),
        }
    }

    /// The test on the sides that were said, either by default. A negated test on either holds
    /// if neither is in the set.
    fn either_side(&mut self, places: [(PacketBytes, u32); 2], set: IntervalSet) -> Pattern {
        let tests = places.map(|(place, mask)| {
            let set = if self.negated { complement(&(mask, set.clone())) } else { set.clone() };
            Pattern::test(place, mask, set)
        });
        self.combine(tests)
    }

    /// Bytes of the IP header.
    fn network(&self, offset: u16, length: u8) -> PacketBytes {
        PacketBytes::new(self.tested.network(), offset, length)
    }

    /// A test of masked ECN bits.
    fn ecn(&self, mask: u32, set: &IntervalSet) -> Pattern {
        let shift = if self.tested == Version::V6 { 4 } else { 0 };
        let scale = |&(low, high): &(u128, u128)| (low << shift, high << shift);
        // No number lies between those that are masked.
        let set = set.intervals().iter().flat_map(|&(low, high)| (low..=high).map(|n| (n, n)));
        let set = set.map(|pair| scale(&pair)).collect();
        Pattern::test(self.network(1, 1), mask << shift, IntervalSet::from_intervals(set))
    }

    /// A test of addresses of IPv6, word by word.
    fn address6(&mut self, address: u128, mask: u128) -> Pattern {
        let word = |n: u128, at: usize| (n >> (96 - 32 * at)) as u32;
        let sides = Version::V6.addresses().map(|places| {
            let tests = places.into_iter().enumerate().filter_map(|(at, place)| {
                let mask = word(mask, at);
                (mask != 0).then(|| Pattern::test(place, mask, single(word(address, at) & mask)))
            });
            let same = Pattern::all(tests);
            if self.negated { same.not() } else { same }
        });
        // Whatever the address is: it is enough that there is one.
        let there = Pattern::test(self.tested.protocol(), 0xff, range(0, 0xff));
        Pattern::all([there, self.combine(sides)])
    }

    fn combine(&mut self, [source, destination]: [Pattern; 2]) -> Pattern {
        match (*self.sides.get_or_insert(Sides::Either), self.negated) {
            (Sides::Source, _) => source,
            (Sides::Destination, _) => destination,
            (Sides::Either, false) | (Sides::Both, true) => Pattern::any([source, destination]),
            (Sides::Both, false) | (Sides::Either, true) => Pattern::all([source, destination]),
        }
    }

    fn ether_address(&mut self, address: [u8; 6], mask: [u8; 6]) -> Pattern {
        let parts = |at: usize| {
            [(0, 4), (4, 2)].map(|(from, length)| {
                let number = |bytes: &[u8; 6]| {
                    bytes[from..from + length].iter().fold(0u32, |n, &b| n << 8 | u32::from(b))
                };
                let place = PacketBytes::new(Origin::Mac, (at + from) as u16, length as u8);
                match number(&mask) {
                    0 => Pattern::test(place, place.max(), range(0, place.max())),
                    mask => Pattern::test(place, mask, single(number(&address) & mask)),
                }
            })
        };
        let negated = self.negated;
        let sides = [6, 0].map(|at| {
            // Negated, it still needs the header to be there.
            let whole = PacketBytes::new(Origin::Mac, at as u16, 1);
            let there = Pattern::test(whole, 0xff, range(0, 0xff));
            let same = Pattern::all(parts(at));
            if negated { Pattern::all([there, same.not()]) } else { same }
        });
        let pattern = self.combine(sides);
        self.with_protocol(pattern)
    }

    /// The pattern, for packets of the protocol that was said.
    fn with_protocol(&self, pattern: Pattern) -> Pattern {
        let set = match self.protocol {
            None | Some(ANY_TRANSPORT) => return pattern,
            Some(TCP_OR_UDP) => {
                IntervalSet::from_intervals(vec![(6, 6), (u128::from(UDP), u128::from(UDP))])
            }
            Some(protocol) => single(u32::from(protocol)),
        };
        Pattern::all([Pattern::test(self.tested.protocol(), 0xff, set), pattern])
    }
}

fn bad_mask<T>(name: &str) -> Result<T, String> {
    Err(format!("'{name}' does not take such a mask"))
}

fn single(number: u32) -> IntervalSet {
    IntervalSet::single(u128::from(number))
}

fn range(low: u32, high: u32) -> IntervalSet {
    IntervalSet::range(u128::from(low), u128::from(high))
}

/// Numbers of at most `most` that are greater than `number`.
fn above(number: u32, most: u32) -> IntervalSet {
    number.checked_add(1).map_or(IntervalSet::empty(), |low| range(low, most))
}

/// Masked numbers that are not in a set.
fn complement((mask, set): &(u32, IntervalSet)) -> IntervalSet {
    range(0, *mask).subtract(set)
}

const TCP_OPTIONS: [(&str, u8); 6] =
    [("ack", 0x10), ("fin", 0x01), ("psh", 0x08), ("rst", 0x04), ("syn", 0x02), ("urg", 0x20)];

/// The words of the language itself.
const WORDS: [&str; 30] = [
    "and", "ce", "dest", "dscp", "dst", "ect", "ether", "false", "frag", "hl", "host", "id", "ip",
    "ip6", "len", "mask", "net", "not", "opt", "or", "port", "proto", "src", "tos", "true", "ttl",
    "type", "unfrag", "vers", "win",
];

/// Names that patterns may use, as the element that they belong to sees them.
pub(crate) struct Vocabulary<'a> {
    /// Names that the chain defines.
    pub(crate) names: &'a Names,
    /// The element's full name.
    pub(crate) element: &'a str,
    /// The version of IP that is tested.
    pub(crate) version: Version,
    /// Whether tests of the other version are understood: they hold for no packet.
    pub(crate) has_others: bool,
}

impl Vocabulary<'_> {
    /// The protocol that a word among the qualifiers names.
    pub(crate) fn qualifying_protocol(&self, word: &str) -> Option<Protocol> {
        match self.named(word, None, None) {
            Ok(Some(Data::Proto(protocol))) => Some(protocol),
            _ => None,
        }
    }

    /// The value that a word is in this test, if it can be one.
    pub(crate) fn data(&self, word: &str, test: &Primitive) -> Result<Option<Data>, String> {
        if let Some(named) = self.named(word, test.kind, test.protocol)? {
            return Ok(Some(named));
        }
        if let Some(number) = parse_integer(word) {
            let number = u32::try_from(number).map_err(|_| format!("{word} is out of range"))?;
            return Ok(Some(Data::Int(number)));
        }
        if test.ether != Some(true) {
            let network = parse_ip_mask(word, self.names, self.element);
            match (self.address(word), network) {
                (Some(_), Some(IpMask { address, mask })) if test.kind == Some(Kind::Net) => {
                    // A lone address is not a network, but a name may mean both.
                    let bare = parse_ipv4(word).is_some();
                    return Ok(Some(if bare {
                        Data::Host(address)
                    } else {
                        Data::Net(address, mask)
                    }));
                }
                (Some(address), _) => return Ok(Some(Data::Host(address))),
                (None, Some(IpMask { address, mask })) => {
                    return Ok(Some(Data::Net(address, mask)));
                }
                (None, None) => {}
            }
            if let Some(data) = self.address6(word, test.kind).filter(|_| self.has_others) {
                return Ok(Some(data));
            }
        }
        if test.ether != Some(false) {
            return Ok(self.ether(word).map(Data::Ether));
        }
        Ok(None)
    }

    /// The address that a word is or names.
    pub(crate) fn address(&self, word: &str) -> Option<u32> {
        let bare = word.strip_suffix(":ip").unwrap_or(word);
        let named = || self.names.find(self.element, bare, |m| m.ip);
        parse_ipv4(word).or_else(named).map(std::net::Ipv4Addr::to_bits)
    }

    /// The address or network of IPv6 that a word is or names.
    fn address6(&self, word: &str, kind: Option<Kind>) -> Option<Data> {
        let named = |word| self.names.find(self.element, word, |m| m.ip6);
        if let Some((address, length)) = word.split_once('/') {
            let address = address.parse().ok().or_else(|| named(address))?.to_bits();
            let length: u32 = length.parse().ok().filter(|length| *length <= 128)?;
            return Some(Data::Net6(address, u128::MAX.checked_shl(128 - length).unwrap_or(0)));
        }
        let network = || self.names.find(self.element, word, |m| m.ip6_prefix);
        if let Some(net) = network().filter(|_| kind == Some(Kind::Net)) {
            let mask = u128::MAX.checked_shl(128 - u32::from(net.prefix_len())).unwrap_or(0);
            return Some(Data::Net6(net.addr().to_bits(), mask));
        }
        word.parse::<Ipv6Addr>().ok().or_else(|| named(word)).map(|a| Data::Host6(a.to_bits()))
    }

    fn ether(&self, word: &str) -> Option<EtherAddr> {
        let bare = word.strip_suffix(":eth").unwrap_or(word);
        let named = || self.names.find(self.element, bare, |m| m.ether).map(EtherAddr);
        word.parse().ok().or_else(named)
    }

    /// The mask that a word is. It is not zero.
    pub(crate) fn mask(&self, word: &str, ether: Option<bool>) -> Option<Mask> {
        let number = parse_integer(word).and_then(|n| u32::try_from(n).ok()).map(Mask::Int);
        let address =
            || (ether != Some(true)).then(|| self.address(word).map(Mask::Address)).flatten();
        let hardware =
            || (ether != Some(false)).then(|| self.ether(word).map(Mask::Ether)).flatten();
        let mask = number.or_else(address).or_else(hardware)?;
        (!matches!(mask, Mask::Int(0) | Mask::Address(0))).then_some(mask)
    }

    /// The value that a word names, given what is known of the test.
    fn named(
        &self,
        word: &str,
        kind: Option<Kind>,
        protocol: Option<Protocol>,
    ) -> Result<Option<Data>, String> {
        let named = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !named || kind.is_none() && WORDS.contains(&word) {
            return Ok(None);
        }
        let port = |number| {
            let own = |m: &crate::names::Meanings| match number {
                ip_protocol::TCP => m.tcp_port,
                _ => m.udp_port,
            };
            self.names.find(self.element, word, own).or_else(|| service::port(word, number))
        };
        let protocol_named = match word {
            "tcpudp" => Some(TCP_OR_UDP),
            "transp" => Some(ANY_TRANSPORT),
            _ => ip_protocol::by_name(word).map(Protocol::from),
        };
        let option = TCP_OPTIONS.iter().find(|(name, _)| *name == word).map(|&(_, flag)| flag);
        let meanings = [
            protocol_named.map(Data::Proto),
            port(ip_protocol::TCP).map(Data::Port),
            port(ip_protocol::UDP).map(Data::Port),
            option.map(Data::TcpOpt),
            icmpv4::type_by_name(word).map(Data::IcmpType),
            icmpv6::type_by_name(word).filter(|_| protocol == Some(ICMP6)).map(Data::IcmpType),
        ];
        if meanings.iter().all(Option::is_none) {
            return Ok(None);
        }
        let over = |protocols: &[Protocol]| protocol.is_none_or(|p| protocols.contains(&p));
        let is = |wanted| kind.is_none_or(|k| k == wanted);
        let fits = [
            is(Kind::Proto),
            is(Kind::Port) && over(&[TCP, TCP_OR_UDP]),
            is(Kind::Port) && over(&[UDP, TCP_OR_UDP]),
            is(Kind::TcpOpt) && over(&[TCP, TCP_OR_UDP]),
            is(Kind::Field(ICMP_TYPE)) && over(&[ICMP]),
            is(Kind::Field(ICMP6_TYPE)) && over(&[ICMP6]),
        ];
        let mut fitting: Vec<Data> =
            meanings.iter().zip(fits).filter_map(|(m, fits)| m.filter(|_| fits)).collect();
        fitting.dedup();
        match fitting[..] {
            [one] => Ok(Some(one)),
            _ => {
                let readings =
                    ["proto", "tcp port", "udp port", "tcp opt", "icmp type", "icmp6 type"];
                let readings: Vec<String> = readings
                    .iter()
                    .zip(&meanings)
                    .filter(|(_, meaning)| meaning.is_some())
                    .map(|(prefix, _)| format!("'{prefix} {word}'"))
                    .collect();
                let what = if fitting.is_empty() { "means nothing" } else { "is ambiguous" };
                Err(format!("'{word}' {what} here; there is {}", readings.join(", ")))
            }
        }
    }

    /// The word that was probably meant.
    pub(crate) fn nearest(&self, word: &str) -> Option<&'static str> {
        let options = TCP_OPTIONS.iter().map(|o| o.0);
        let protocols = ["tcp", "udp", "icmp", "icmp6", "igmp", "ipip", "transp", "all"];
        ir::nearest(word, WORDS.into_iter().chain(options).chain(protocols).chain(service::names()))
    }
}
