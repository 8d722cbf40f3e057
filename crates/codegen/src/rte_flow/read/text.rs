//! Commands of testpmd that create rules: `flow create PORT [group N] [priority N] ingress pattern … / end actions …
//! / end`, one a line.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::draft::Failure;

/// An item of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Eth,
    Vlan,
    Ipv4,
    Ipv6,
    Tcp,
    Udp,
    Sctp,
    Icmp,
}

/// A field of an item: its first bit in that header, and its width. Whether there is a tag is a bit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ItemField {
    pub(super) kind: Kind,
    pub(super) from: u16,
    pub(super) width: u16,
}

/// The place of `has_vlan`, which no frame has.
pub(super) const HAS_VLAN: ItemField = ItemField { kind: Kind::Eth, from: 112, width: 1 };

/// Some bits of a field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bits {
    pub(super) place: ItemField,
    pub(super) value: u128,
    pub(super) mask: u128,
}

impl Bits {
    /// Whether free bits of the mask part the numbers that match into more than a few intervals.
    pub(super) fn has_many_gaps(&self) -> bool {
        const MOST_FREE: u32 = 6;
        let free = u128::MAX >> (128 - self.place.width) & !self.mask;
        free.count_ones() - free.trailing_ones() > MOST_FREE
    }
}

/// Something that is done to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Act {
    Mark(u32),
    Queue(u16),
    Drop,
    Jump(u32),
    Count(u32),
    Destination(u128),
    Source(u128),
    PopTag,
    Age,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Its line in the file, from 1.
    pub(super) line: usize,
    pub(super) port: u32,
    pub(super) group: u32,
    /// The lower, the earlier.
    pub(super) priority: u32,
    /// In order.
    pub(super) items: Vec<Kind>,
    /// In order of their places; each at most once.
    pub(super) when: Vec<Bits>,
    pub(super) acts: Vec<Act>,
}

/// Characters of a line that testpmd reads.
const MOST_CHARACTERS: usize = 511;

/// Reads all rules of a file.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Failure> {
    let mut all = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if text.len() > MOST_CHARACTERS {
            return Err((line, format!("testpmd reads {MOST_CHARACTERS} characters of a line")));
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        all.push(entry(line, &words).map_err(|why| (line, why))?);
    }
    Ok(all)
}

/// Words that are read one after the other.
struct Words<'a>(std::iter::Peekable<std::slice::Iter<'a, &'a str>>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.0.next().copied().ok_or_else(|| "it ends too early".to_string())
    }

    fn takes(&mut self, word: &str) -> bool {
        self.0.next_if(|next| **next == word).is_some()
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        let found = self.next()?;
        if found == word { Ok(()) } else { Err(format!("'{word}' is expected, not '{found}'")) }
    }
}

/// Reads a rule.
pub(super) fn entry(line: usize, words: &[&str]) -> Result<Entry, String> {
    let mut words = Words(words.iter().peekable());
    words.expect("flow")?;
    words.expect("create")?;
    let port = number(words.next()?, u32::MAX.into())? as u32;
    let mut entry = Entry {
        line,
        port,
        group: 0,
        priority: 0,
        items: Vec::new(),
        when: Vec::new(),
        acts: Vec::new(),
    };
    let mut ingress = false;
    while !words.takes("pattern") {
        match words.next()? {
            "group" => entry.group = number(words.next()?, u32::MAX.into())? as u32,
            "priority" => entry.priority = number(words.next()?, u32::MAX.into())? as u32,
            "ingress" => ingress = true,
            other => return Err(format!("'{other}' is no attribute that is known")),
        }
    }
    if !ingress {
        return Err("it is no rule for packets that come in".into());
    }
    pattern(&mut words, &mut entry)?;
    words.expect("actions")?;
    while !words.takes("end") {
        entry.acts.push(act(&mut words)?);
        words.expect("/")?;
    }
    match words.0.next() {
        None => Ok(entry),
        Some(other) => Err(format!("'{other}' stands behind the end")),
    }
}

fn pattern(words: &mut Words<'_>, entry: &mut Entry) -> Result<(), String> {
    while !words.takes("end") {
        let kind = match words.next()? {
            "eth" => Kind::Eth,
            "vlan" => Kind::Vlan,
            "ipv4" => Kind::Ipv4,
            "ipv6" => Kind::Ipv6,
            "tcp" => Kind::Tcp,
            "udp" => Kind::Udp,
            "sctp" => Kind::Sctp,
            "icmp" => Kind::Icmp,
            other => return Err(format!("'{other}' is no item that is known")),
        };
        let follows = matches!(
            (entry.items.last(), kind),
            (None, Kind::Eth)
                | (Some(Kind::Eth), Kind::Vlan)
                | (Some(Kind::Eth | Kind::Vlan), Kind::Ipv4 | Kind::Ipv6)
                | (Some(Kind::Ipv4), Kind::Tcp | Kind::Udp | Kind::Sctp | Kind::Icmp)
        );
        if !follows {
            return Err(format!("{kind:?} does not stand there"));
        }
        entry.items.push(kind);
        // Numbers and masks, by place.
        let mut fields: Vec<(ItemField, Option<u128>, Option<u128>)> = Vec::new();
        while !words.takes("/") {
            let name = words.next()?;
            let place = place(kind, name).ok_or_else(|| format!("{kind:?} has no '{name}'"))?;
            let (how, text) = (words.next()?, words.next()?);
            let at = match fields.iter().position(|field| field.0 == place) {
                Some(at) => at,
                None => {
                    fields.push((place, None, None));
                    fields.len() - 1
                }
            };
            let (_, spec, mask) = &mut fields[at];
            let all = u128::MAX >> (128 - place.width);
            let (number, into) = match how {
                "is" => {
                    set(mask, all, name)?;
                    (value(name, place, text)?, spec)
                }
                "spec" => (value(name, place, text)?, spec),
                "mask" => (value(name, place, text)?, mask),
                "prefix" => {
                    let length = number(text, place.width.into())? as u32;
                    (all & !(all.checked_shr(length).unwrap_or(0)), mask)
                }
                other => return Err(format!("'{other}' stands where 'spec' or 'mask' may")),
            };
            set(into, number, name)?;
        }
        for (place, spec, mask) in fields {
            let (Some(value), Some(mask)) = (spec, mask) else {
                return Err("a field has a number without a mask, or none".into());
            };
            if value & !mask != 0 {
                return Err(format!("{value:#x} has bits that its mask has not"));
            }
            if mask != 0 {
                entry.when.push(Bits { place, value, mask });
            }
        }
    }
    entry.when.sort_by_key(|bits| bits.place);
    apart(entry)
}

/// Fields that overlap would have to be compared with each other.
fn apart(entry: &Entry) -> Result<(), String> {
    let overlap = entry.when.windows(2).any(|pair| {
        let (a, b) = (pair[0].place, pair[1].place);
        a.kind == b.kind && b.from < a.from + a.width
    });
    if overlap { Err("two fields share bits".into()) } else { Ok(()) }
}

fn set(into: &mut Option<u128>, number: u128, name: &str) -> Result<(), String> {
    match into.replace(number) {
        None => Ok(()),
        Some(_) => Err(format!("'{name}' is given twice")),
    }
}

fn place(kind: Kind, name: &str) -> Option<ItemField> {
    let (from, width) = match (kind, name) {
        (Kind::Eth, "has_vlan") => return Some(HAS_VLAN),
        (Kind::Eth, "dst") => (0, 48),
        (Kind::Eth, "src") => (48, 48),
        (Kind::Eth, "type") => (96, 16),
        (Kind::Vlan, "tci") => (0, 16),
        (Kind::Vlan, "pcp") => (0, 3),
        (Kind::Vlan, "vid") => (4, 12),
        (Kind::Vlan, "inner_type") => (16, 16),
        (Kind::Ipv4, "tos") => (8, 8),
        (Kind::Ipv4, "ttl") => (64, 8),
        (Kind::Ipv4, "proto") => (72, 8),
        (Kind::Ipv4, "src") => (96, 32),
        (Kind::Ipv4, "dst") => (128, 32),
        (Kind::Ipv6, "hop") => (56, 8),
        (Kind::Ipv6, "src") => (64, 128),
        (Kind::Ipv6, "dst") => (192, 128),
        (Kind::Tcp | Kind::Udp | Kind::Sctp, "src") => (0, 16),
        (Kind::Tcp | Kind::Udp | Kind::Sctp, "dst") => (16, 16),
        (Kind::Tcp, "flags") => (104, 8),
        (Kind::Icmp, "type") => (0, 8),
        (Kind::Icmp, "code") => (8, 8),
        _ => return None,
    };
    Some(ItemField { kind, from, width })
}

/// A number in decimal or, behind `0x`, hexadecimal.
fn number(text: &str, most: u128) -> Result<u128, String> {
    let value = match text.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u128::from_str_radix(hex, 16).ok(),
        _ if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    let fits = value.filter(|value| *value <= most);
    fits.ok_or_else(|| format!("'{text}' is no number that fits here"))
}

fn address(text: &str) -> Result<u128, String> {
    let wrong = || format!("'{text}' is no MAC address");
    let (mut value, mut bytes) = (0, 0);
    for byte in text.split(':') {
        let fits = (1..=2).contains(&byte.len()) && !byte.starts_with('+');
        let byte = u8::from_str_radix(byte, 16).ok().filter(|_| fits && bytes < 6);
        value = value << 8 | u128::from(byte.ok_or_else(wrong)?);
        bytes += 1;
    }
    if bytes == 6 { Ok(value) } else { Err(wrong()) }
}

/// A number of a field.
fn value(name: &str, place: ItemField, text: &str) -> Result<u128, String> {
    let wrong = |_| format!("'{text}' is no address");
    match (place.kind, place.width, name) {
        (Kind::Eth, 48, _) => address(text),
        (Kind::Ipv4, 32, _) => {
            text.parse::<Ipv4Addr>().map(|address| address.to_bits().into()).map_err(wrong)
        }
        (Kind::Ipv6, 128, _) => text.parse::<Ipv6Addr>().map(Ipv6Addr::to_bits).map_err(wrong),
        _ => number(text, u128::MAX >> (128 - place.width)),
    }
}

fn act(words: &mut Words<'_>) -> Result<Act, String> {
    let name = words.next()?;
    let (argument, most) = match name {
        "drop" => return Ok(Act::Drop),
        "dec_ttl" => return Ok(Act::Age),
        "of_pop_vlan" => return Ok(Act::PopTag),
        "set_mac_dst" | "set_mac_src" => {
            words.expect("mac_addr")?;
            let address = address(words.next()?)?;
            return Ok(match name {
                "set_mac_dst" => Act::Destination(address),
                _ => Act::Source(address),
            });
        }
        "mark" => ("id", u32::MAX),
        "queue" => ("index", u16::MAX.into()),
        "jump" => ("group", u32::MAX),
        "count" => ("identifier", u32::MAX),
        other => return Err(format!("'{other}' is no action that is known")),
    };
    words.expect(argument)?;
    let number = number(words.next()?, most.into())? as u32;
    Ok(match name {
        "mark" => Act::Mark(number),
        "queue" => Act::Queue(number as u16),
        "jump" => Act::Jump(number),
        _ => Act::Count(number),
    })
}
