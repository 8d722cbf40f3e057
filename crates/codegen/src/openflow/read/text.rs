//! The text of flow entries, one a line, as people and `ovs-ofctl` write them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::draft::Failure;

/// A field that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Name {
    InPort,
    Register,
    Metadata,
    EthDst,
    EthSrc,
    EthType,
    /// Thirteen bits: whether there is a tag, and its ID.
    Vlan,
    Priority,
    ArpOp,
    ArpSpa,
    ArpTpa,
    ArpSha,
    ArpTha,
    Protocol,
    Source,
    Destination,
    Dscp,
    Ecn,
    Ttl,
    /// One bit: a fragment.
    Fragment,
    /// One bit: a fragment behind the first.
    Later,
    Source6,
    Destination6,
    Label6,
    SourcePort,
    DestinationPort,
    TcpFlags,
    IcmpType,
    IcmpCode,
}

impl Name {
    pub(super) fn width(self) -> u16 {
        match self {
            Name::InPort | Name::Register => 32,
            Name::Metadata => 64,
            Name::EthDst | Name::EthSrc | Name::ArpSha | Name::ArpTha => 48,
            Name::EthType | Name::ArpOp | Name::SourcePort | Name::DestinationPort => 16,
            Name::Vlan => 13,
            Name::Priority => 3,
            Name::ArpSpa | Name::ArpTpa | Name::Source | Name::Destination => 32,
            Name::Protocol | Name::Ttl | Name::IcmpType | Name::IcmpCode => 8,
            Name::Dscp => 6,
            Name::Ecn => 2,
            Name::Fragment | Name::Later => 1,
            Name::Source6 | Name::Destination6 => 128,
            Name::Label6 => 20,
            Name::TcpFlags => 12,
        }
    }
}

/// Some bits of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bits {
    pub(super) name: Name,
    pub(super) value: u128,
    pub(super) mask: u128,
}

impl Bits {
    /// Whether free bits of the mask part the numbers that match into more than a few intervals.
    pub(super) fn has_many_gaps(&self) -> bool {
        const MOST_FREE: u32 = 6;
        let above = u128::MAX >> (128 - self.name.width()) & !self.mask;
        (above.count_ones() - self.mask.trailing_zeros().min(above.trailing_ones())) > MOST_FREE
    }
}

/// Something that is done to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Act {
    Output(u32),
    /// To the port where it came in.
    Back,
    PushTag(u16),
    PopTag,
    Set(Name, u128),
    Age,
    /// Goes on if the packet is within the limit of a meter.
    Meter(u32),
    /// Sets bits of the metadata.
    Metadata(u64, u64),
    Goto(u8),
}

/// An entry.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its line in the file, from 1.
    pub(super) line: usize,
    pub(super) cookie: u64,
    pub(super) table: u8,
    pub(super) priority: u16,
    /// By name; each at most once.
    pub(super) when: Vec<Bits>,
    pub(super) acts: Vec<Act>,
}

/// Reads all entries of a file.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Failure> {
    let mut all = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if !text.is_empty() {
            all.push(entry(line, text).map_err(|why| (line, why))?);
        }
    }
    Ok(all)
}

fn entry(line: usize, text: &str) -> Result<Entry, String> {
    let (matched, acts) = text.split_once("actions=").ok_or("'actions=' is missing")?;
    let mut entry =
        Entry { line, cookie: 0, table: 0, priority: 0x8000, when: Vec::new(), acts: Vec::new() };
    for part in parts(matched) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim()),
            None => {
                shorthand(part, &mut entry.when)?;
                continue;
            }
        };
        match name {
            "cookie" => entry.cookie = number(value)?,
            "table" => entry.table = number(value)?,
            "priority" => entry.priority = number(value)?,
            _ => field(name, value, &mut entry.when)?,
        }
    }
    entry.when.sort_by_key(|bits| bits.name);
    for part in parts(acts) {
        entry.acts.extend(act(part)?);
    }
    entry.when.iter().try_for_each(|bits| needs(&entry.when, bits.name))?;
    for act in &entry.acts {
        match act {
            Act::Set(Name::Vlan | Name::Priority, _) => {}
            Act::Set(name @ (Name::Dscp | Name::Ecn | Name::Ttl), _) => {
                written(&entry.when, *name)?
            }
            Act::Set(name, _) => needs(&entry.when, *name)?,
            Act::Age => written(&entry.when, Name::Ttl)?,
            _ => {}
        }
    }
    let ends = entry.acts.iter().take(entry.acts.len().saturating_sub(1));
    if ends.into_iter().any(|act| matches!(act, Act::Goto(_))) {
        return Err("'goto_table' stands before other actions".into());
    }
    Ok(entry)
}

/// A field that IPv6 has, too, is written in IPv4 headers only: what a switch does to others is not imitated.
fn written(when: &[Bits], name: Name) -> Result<(), String> {
    let is_ip4 = |bits: &Bits| bits.name == Name::EthType && bits.value == 0x0800;
    match when.iter().any(is_ip4) {
        true => needs(when, name),
        false => Err(format!("{name:?} is written where no IPv4 header is known to be")),
    }
}

/// The parts between commas and blanks.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t']).map(str::trim).filter(|part| !part.is_empty())
}

/// A number in decimal or, behind `0x`, hexadecimal.
fn number<T: TryFrom<u128>>(text: &str) -> Result<T, String> {
    let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) if !hex.starts_with('+') => u128::from_str_radix(hex, 16).ok(),
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    let fits = value.and_then(|value| T::try_from(value).ok());
    fits.ok_or_else(|| format!("'{text}' is no number that fits here"))
}

/// Names of protocols that stand for types.
fn shorthand(word: &str, when: &mut Vec<Bits>) -> Result<(), String> {
    let (ether_type, protocol) = match word {
        "ip" => (0x0800, None),
        "arp" => (0x0806, None),
        "ipv6" => (0x86dd, None),
        "icmp" => (0x0800, Some(1)),
        "tcp" => (0x0800, Some(6)),
        "udp" => (0x0800, Some(17)),
        "sctp" => (0x0800, Some(132)),
        _ => return Err(format!("'{word}' is no field that is known")),
    };
    add(when, Name::EthType, ether_type, 0xffff)?;
    protocol.map_or(Ok(()), |protocol| add(when, Name::Protocol, protocol, 0xff))
}

fn add(when: &mut Vec<Bits>, name: Name, value: u128, mask: u128) -> Result<(), String> {
    if when.iter().any(|bits| bits.name == name) {
        return Err(format!("{name:?} stands there twice"));
    }
    let all = u128::MAX >> (128 - name.width());
    if value & !all != 0 || mask & !all != 0 {
        return Err(format!("{value:#x} or its mask is too large for {name:?}"));
    }
    if value & !mask != 0 {
        return Err(format!("{value:#x} has bits that its mask has not"));
    }
    if mask != 0 {
        when.push(Bits { name, value, mask });
    }
    Ok(())
}

fn named(name: &str) -> Option<Name> {
    Some(match name {
        "in_port" => Name::InPort,
        "reg0" => Name::Register,
        "metadata" => Name::Metadata,
        "eth_dst" | "dl_dst" => Name::EthDst,
        "eth_src" | "dl_src" => Name::EthSrc,
        "eth_type" | "dl_type" => Name::EthType,
        "vlan_vid" => Name::Vlan,
        "vlan_pcp" | "dl_vlan_pcp" => Name::Priority,
        "arp_op" => Name::ArpOp,
        "arp_spa" => Name::ArpSpa,
        "arp_tpa" => Name::ArpTpa,
        "arp_sha" => Name::ArpSha,
        "arp_tha" => Name::ArpTha,
        "ip_proto" | "nw_proto" => Name::Protocol,
        "ip_src" | "nw_src" => Name::Source,
        "ip_dst" | "nw_dst" => Name::Destination,
        "ip_dscp" => Name::Dscp,
        "ip_ecn" | "nw_ecn" => Name::Ecn,
        "nw_ttl" => Name::Ttl,
        "ipv6_src" => Name::Source6,
        "ipv6_dst" => Name::Destination6,
        "ipv6_label" => Name::Label6,
        "tcp_src" | "udp_src" | "sctp_src" | "tp_src" => Name::SourcePort,
        "tcp_dst" | "udp_dst" | "sctp_dst" | "tp_dst" => Name::DestinationPort,
        "tcp_flags" => Name::TcpFlags,
        "icmp_type" => Name::IcmpType,
        "icmp_code" => Name::IcmpCode,
        _ => return None,
    })
}

fn field(name: &str, text: &str, when: &mut Vec<Bits>) -> Result<(), String> {
    if matches!(name, "ip_frag" | "nw_frag") {
        let (fragment, later) = match text {
            "no" => (Some(0), Some(0)),
            "yes" => (Some(1), None),
            "first" => (Some(1), Some(0)),
            "later" => (Some(1), Some(1)),
            "not_later" => (None, Some(0)),
            _ => return Err(format!("'{text}' is no sort of fragment")),
        };
        fragment.map_or(Ok(()), |value| add(when, Name::Fragment, value, 1))?;
        return later.map_or(Ok(()), |value| add(when, Name::Later, value, 1));
    }
    let known = named(name).ok_or_else(|| format!("'{name}' is no field that is known"))?;
    let all = u128::MAX >> (128 - known.width());
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (value_of(known, value)?, mask_of(known, mask)?),
        // Without a tag, no other bits of it are there.
        None => (value_of(known, text)?, all),
    };
    add(when, known, value, mask)
}

fn mask_of(name: Name, text: &str) -> Result<u128, String> {
    let width = u32::from(name.width());
    let is_address = matches!(name, Name::Source | Name::Destination | Name::ArpSpa | Name::ArpTpa)
        || matches!(name, Name::Source6 | Name::Destination6);
    match text.parse::<u32>() {
        Ok(length) if is_address && length <= width => {
            let all = u128::MAX >> (128 - width);
            Ok(all & !(all.checked_shr(length).unwrap_or(0)))
        }
        _ => value_of(name, text),
    }
}

fn value_of(name: Name, text: &str) -> Result<u128, String> {
    let wrong = || format!("'{text}' is no address");
    match name {
        Name::EthDst | Name::EthSrc | Name::ArpSha | Name::ArpTha => {
            let mut value = 0;
            let bytes: Vec<&str> = text.split(':').collect();
            if bytes.len() != 6 {
                return Err(wrong());
            }
            for byte in bytes {
                let fits = (1..=2).contains(&byte.len()) && !byte.starts_with('+');
                let byte = u8::from_str_radix(byte, 16).ok().filter(|_| fits).ok_or_else(wrong)?;
                value = value << 8 | u128::from(byte);
            }
            Ok(value)
        }
        Name::Source | Name::Destination | Name::ArpSpa | Name::ArpTpa => {
            text.parse::<Ipv4Addr>().map(|a| a.to_bits().into()).map_err(|_| wrong())
        }
        Name::Source6 | Name::Destination6 => {
            text.parse::<Ipv6Addr>().map(Ipv6Addr::to_bits).map_err(|_| wrong())
        }
        _ => number(text),
    }
}

/// A switch takes a field only beside those that say that it is there.
fn needs(when: &[Bits], name: Name) -> Result<(), String> {
    let is = |name: Name, value: u128| {
        let all = u128::MAX >> (128 - name.width());
        when.iter().any(|bits| bits.name == name && bits.value == value && bits.mask == all)
    };
    let (ip4, ip6) = (is(Name::EthType, 0x0800), is(Name::EthType, 0x86dd));
    let met = match name {
        Name::ArpOp | Name::ArpSpa | Name::ArpTpa | Name::ArpSha | Name::ArpTha => {
            is(Name::EthType, 0x0806)
        }
        Name::Source6 | Name::Destination6 | Name::Label6 => ip6,
        Name::Source | Name::Destination | Name::Protocol => ip4,
        Name::Dscp | Name::Ecn | Name::Ttl => ip4 || ip6,
        Name::Fragment | Name::Later => ip4,
        Name::SourcePort | Name::DestinationPort => {
            ip4 && [6, 17, 132].into_iter().any(|protocol| is(Name::Protocol, protocol))
        }
        Name::TcpFlags => ip4 && is(Name::Protocol, 6),
        Name::IcmpType | Name::IcmpCode => ip4 && is(Name::Protocol, 1),
        Name::Priority => {
            when.iter().any(|b| b.name == Name::Vlan && b.value & b.mask & 0x1000 != 0)
        }
        Name::InPort | Name::Register | Name::Metadata => true,
        Name::EthDst | Name::EthSrc | Name::EthType | Name::Vlan => true,
    };
    match met {
        true => Ok(()),
        false => Err(format!("{name:?} stands there without what it needs")),
    }
}

/// An action; none for one that does nothing.
fn act(text: &str) -> Result<Option<Act>, String> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    let set = |argument: &str| -> Result<(Name, u128), String> {
        let (value, field) = argument.rsplit_once("->").ok_or("'->' is missing")?;
        let name = named(field).ok_or_else(|| format!("'{field}' is no field that is known"))?;
        let value = value_of(name, value)?;
        match value >> name.width().min(127) {
            _ if name.width() < 128 && value >> name.width() != 0 => {
                Err(format!("{value:#x} is too large for {name:?}"))
            }
            _ => Ok((name, value)),
        }
    };
    Ok(Some(match name {
        "drop" if argument.is_empty() => return Ok(None),
        "meter" => Act::Meter(number(argument)?),
        "output" => Act::Output(number(argument)?),
        "in_port" | "IN_PORT" if argument.is_empty() => Act::Back,
        "push_vlan" => match number(argument)? {
            tag @ (0x8100 | 0x88a8) => Act::PushTag(tag),
            other => return Err(format!("{other:#x} is no type of a tag")),
        },
        "pop_vlan" | "strip_vlan" if argument.is_empty() => Act::PopTag,
        "dec_ttl" if argument.is_empty() => Act::Age,
        "goto_table" => Act::Goto(number(argument)?),
        "write_metadata" => {
            let (value, mask) =
                argument.split_once('/').unwrap_or((argument, "0xffffffffffffffff"));
            Act::Metadata(number(value)?, number(mask)?)
        }
        "set_field" => {
            let (name, value) = set(argument)?;
            let can = matches!(
                name,
                Name::Register
                    | Name::Metadata
                    | Name::EthDst
                    | Name::EthSrc
                    | Name::Vlan
                    | Name::Priority
                    | Name::Dscp
                    | Name::Ecn
            );
            if !can {
                return Err(format!("{name:?} is set, which is not understood"));
            }
            Act::Set(name, value)
        }
        _ => return Err(format!("'{text}' is no action that is known")),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        let all = entries(
            "# a comment\n\ncookie=0x5,table=3,priority=7,tcp,nw_src=10.0.0.0/8,tp_dst=0x50/0xfff0,actions=dec_ttl,output:2 # x\n",
        )
        .unwrap();
        let [entry] = &all[..] else { panic!("{all:?}") };
        assert_eq!((entry.line, entry.cookie, entry.table, entry.priority), (3, 5, 3, 7));
        assert_eq!(entry.when.len(), 4);
        let port = Bits { name: Name::DestinationPort, value: 0x50, mask: 0xfff0 };
        assert_eq!(entry.when[3], port);
        assert_eq!(entry.acts, [Act::Age, Act::Output(2)]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("priority=1", "actions"),
            ("priority=70000,actions=drop", "fits"),
            ("cookie=-1,actions=drop", "number"),
            ("tcp_dst=80,actions=drop", "needs"),
            ("eth_dst=1:2:3,actions=drop", "address"),
            ("eth_dst=1:2:3:4:5:+6,actions=drop", "address"),
            ("vlan_vid=0x5/0x1000,actions=drop", "mask"),
            ("vlan_vid=0x3000,actions=drop", "large"),
            ("ip,ip,actions=drop", "twice"),
            ("nw_frag=maybe,ip,actions=drop", "fragment"),
            ("colour=blue,actions=drop", "known"),
            ("actions=goto_table:3,output:1", "before"),
            ("actions=explode", "known"),
            ("actions=set_field:9999999->vlan_vid", "large"),
            ("actions=set_field:5->eth_type", "understood"),
            ("ip,actions=set_field:1.2.3.4->ip_dst", "understood"),
            ("actions=goto_table:256", "fits"),
            ("actions=meter:x,output:1", "'x' is no number"),
            ("ip,ip_src=1.2.3.4/33,actions=drop", "address"),
        ] {
            let (line, message) = entries(text).unwrap_err();
            assert!(line == 1 && message.contains(why), "{text}: {message}");
        }
    }
}
