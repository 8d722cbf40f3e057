//! Types that arguments are parsed into.

use std::net::{Ipv4Addr, Ipv6Addr};

use click::config::Argument;
use ipnet::{Ipv4Net, Ipv6Net};
use net::annotation;

use crate::names::Names;

/// A type that an argument can be parsed into.
pub trait FromArgument: Sized {
    /// What is expected, with its article: “a number from 0 to 255”.
    const EXPECTED: &'static str;

    /// Parses; `element` is who asks, for names that are scoped.
    ///
    /// # Errors
    /// What is wrong, as a sentence without a full stop.
    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String>;
}

fn unexpected<T: FromArgument>(argument: &Argument) -> String {
    format!("'{}' is not {}", argument.text, T::EXPECTED)
}

/// Parses a value that was written to a handler.
///
/// # Errors
/// What is wrong with it.
pub fn parse_value<T: FromArgument>(text: &str) -> Result<T, String> {
    T::from_argument(&Argument::bare(text.trim()), &Names::default(), "")
}

/// A number in decimal, hexadecimal (`0x…`) or octal (`0…`), as C writes them.
pub fn parse_integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -value } else { value })
}

macro_rules! integers {
    ($($type:ty: $expected:literal),* $(,)?) => {$(
        impl FromArgument for $type {
            const EXPECTED: &'static str = $expected;

            fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
                let value = parse_integer(&argument.text).ok_or_else(|| unexpected::<Self>(argument))?;
                Self::try_from(value).map_err(|_| {
                    format!("{} is out of range: {} to {}", argument.text, <$type>::MIN, <$type>::MAX)
                })
            }
        }
    )*};
}
integers! {
    u8: "a number from 0 to 255",
    u16: "a number from 0 to 65535",
    u32: "a number from 0 to 4294967295",
    u64: "a number from 0 on",
    usize: "a number from 0 on",
    i32: "a number",
    i64: "a number",
}

impl FromArgument for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        match argument.text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" | "t" | "y" => Ok(true),
            "false" | "no" | "0" | "f" | "n" => Ok(false),
            _ => Err(unexpected::<Self>(argument)),
        }
    }
}

impl FromArgument for f64 {
    const EXPECTED: &'static str = "a real number";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        let value = argument.text.parse().ok().filter(|v: &f64| v.is_finite());
        value.ok_or_else(|| unexpected::<Self>(argument))
    }
}

/// Text without its quotation marks.
impl FromArgument for String {
    const EXPECTED: &'static str = "a string";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        String::from_utf8(argument.unquote()).map_err(|_| "the string is not UTF-8".to_string())
    }
}

/// Bytes, quotation marks removed and escapes resolved.
impl FromArgument for Vec<u8> {
    const EXPECTED: &'static str = "a string";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        Ok(argument.unquote())
    }
}

/// An Ethernet address; the zero address by default.
pub type EtherAddress = net::wire::EtherAddr;

/// An IPv4 address that defaults to 0.0.0.0, for [`crate::configure::Arguments::required`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ip(pub Ipv4Addr);

impl Default for Ip {
    fn default() -> Self {
        Self(Ipv4Addr::UNSPECIFIED)
    }
}

impl FromArgument for Ip {
    const EXPECTED: &'static str = "an IP address such as 10.0.0.1";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        parse_ipv4(text)
            .or_else(|| names.find(element, text.strip_suffix(":ip").unwrap_or(text), |m| m.ip))
            .map(Ip)
            .ok_or_else(|| unexpected::<Self>(argument))
    }
}

/// Four decimal numbers with dots, leading zeros allowed.
pub fn parse_ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 3 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

/// One to three numbers with dots, with zeros for the others.
fn parse_ipv4_start(text: &str) -> Option<Ipv4Addr> {
    let missing = 3usize.checked_sub(text.matches('.').count())?;
    parse_ipv4(&(text.to_string() + &".0".repeat(missing)))
}

/// An IPv4 network: an address and a mask, which need not be a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IpMask {
    /// The address as written, host bits included.
    pub address: u32,
    /// The mask.
    pub mask: u32,
}

impl IpMask {
    /// The network with its host bits, if the mask is a prefix.
    pub fn prefix(self) -> Option<Ipv4Net> {
        let [address, mask] = [self.address, self.mask].map(Ipv4Addr::from_bits);
        Ipv4Net::with_netmask(address, mask).ok()
    }

    /// Whether the network holds the address.
    pub fn contains(self, address: u32) -> bool {
        (self.address ^ address) & self.mask == 0
    }
}

impl From<Ipv4Net> for IpMask {
    fn from(network: Ipv4Net) -> Self {
        Self { address: network.addr().to_bits(), mask: network.netmask().to_bits() }
    }
}

/// `ADDR/LENGTH`, `ADDR/MASK`, `ADDR` (all 32 bits), or a name.
impl FromArgument for IpMask {
    const EXPECTED: &'static str = "an IP network such as 10.0.0.0/8";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        parse_ip_mask(&argument.text, names, element).ok_or_else(|| unexpected::<Self>(argument))
    }
}

/// `ADDR/LENGTH`, `ADDR/MASK`, `ADDR` or a name for one of them. Before a length, zeros at the
/// end of ADDR may be left out: `172.16/12`.
pub fn parse_ip_mask(text: &str, names: &Names, element: &str) -> Option<IpMask> {
    let host = |a: Ipv4Addr| IpMask { address: a.to_bits(), mask: u32::MAX };
    let Some((address, mask)) = text.split_once('/') else {
        let bare = |suffix| text.strip_suffix(suffix).unwrap_or(text);
        return parse_ipv4(text)
            .map(host)
            .or_else(|| names.find(element, bare(":ipnet"), |m| m.ip_prefix).map(IpMask::from))
            .or_else(|| names.find(element, bare(":ip"), |m| m.ip).map(host));
    };
    let address = parse_ipv4(address)
        .or_else(|| parse_ipv4_start(address).filter(|_| !mask.contains('.')))
        .or_else(|| names.find(element, address, |m| m.ip))?;
    match mask.parse() {
        Ok(length) => Ipv4Net::new(address, length).ok().map(IpMask::from),
        Err(_) => Some(IpMask { address: address.to_bits(), mask: parse_ipv4(mask)?.to_bits() }),
    }
}

/// An IPv6 address that defaults to `::`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ip6(pub Ipv6Addr);

impl Default for Ip6 {
    fn default() -> Self {
        Self(Ipv6Addr::UNSPECIFIED)
    }
}

impl FromArgument for Ip6 {
    const EXPECTED: &'static str = "an IPv6 address such as 2001:db8::1";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let parsed = text.parse().ok().or_else(|| names.find(element, text, |m| m.ip6));
        parsed.map(Ip6).ok_or_else(|| unexpected::<Self>(argument))
    }
}

/// `ADDR/LENGTH`, or an address with all 128 bits; with its host bits.
impl FromArgument for Ipv6Net {
    const EXPECTED: &'static str = "an IPv6 network such as 2001:db8::/32";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let parsed = match text.split_once('/') {
            Some((address, length)) => {
                let network = address.parse().ok().zip(length.parse().ok());
                network.and_then(|(address, length)| Self::new(address, length).ok())
            }
            None => match text.parse::<Ipv6Addr>() {
                Ok(address) => Some(address.into()),
                Err(_) => names
                    .find(element, text, |m| m.ip6_prefix)
                    .or_else(|| names.find(element, text, |m| m.ip6.map(Self::from))),
            },
        };
        parsed.ok_or_else(|| unexpected::<Self>(argument))
    }
}

impl FromArgument for EtherAddress {
    const EXPECTED: &'static str = "an Ethernet address such as 00:11:22:33:44:55";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let bare = text.strip_suffix(":eth").unwrap_or(text);
        let parsed = text.parse().ok().or_else(|| names.find(element, bare, |m| m.ether).map(Self));
        parsed.ok_or_else(|| unexpected::<Self>(argument))
    }
}

/// Byte offset of an annotation of `SIZE` bytes, by its name or as a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnotationOffset<const SIZE: usize>(pub usize);

/// Named annotations: name, offset, size in bytes.
const ANNOTATIONS: &[(&str, usize, usize)] = &[
    ("DST_IP", annotation::DST_IP, 4),
    ("DST_IP6", annotation::DST_IP6, 16),
    ("PAINT", annotation::PAINT, 1),
    ("ICMP_PARAMPROB", annotation::ICMP_PARAMETER_PROBLEM, 1),
    ("FIX_IP_SRC", annotation::FIX_IP_SRC, 1),
    ("VLAN_TCI", annotation::VLAN_TCI, 2),
    ("AGGREGATE", annotation::AGGREGATE, 4),
    ("EXTRA_PACKETS", annotation::EXTRA_PACKETS, 2),
    ("EXTRA_LENGTH", annotation::EXTRA_LENGTH, 4),
    ("PACKET_NUMBER", annotation::PACKET_NUMBER, 4),
    ("SEQUENCE_NUMBER", annotation::SEQUENCE_NUMBER, 4),
    ("FIRST_TIMESTAMP", annotation::FIRST_TIMESTAMP, 8),
    ("PERFCTR", annotation::PERFCTR, 8),
];

/// The offset and the size (0 for any) of the annotation of this name.
pub(crate) fn find_annotation(text: &str, names: &Names, element: &str) -> Option<(usize, usize)> {
    let bare = text.strip_suffix("_ANNO").unwrap_or(text);
    let known = ANNOTATIONS.iter().find(|(name, ..)| *name == bare);
    known
        .map(|&(_, offset, size)| (offset, size))
        .or_else(|| names.find(element, text, |m| m.annotation))
}

impl<const SIZE: usize> FromArgument for AnnotationOffset<SIZE> {
    const EXPECTED: &'static str = "an annotation's name such as PAINT, or its offset in bytes";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let offset = match find_annotation(text, names, element) {
            Some((offset, size)) if size == SIZE => return Ok(Self(offset)),
            Some((offset, 0)) => Some(offset),
            Some((_, size)) => {
                return Err(format!("the annotation {text} has {size} bytes, not {SIZE}"));
            }
            None => {
                let offset = parse_integer(text).ok_or_else(|| unexpected::<Self>(argument))?;
                usize::try_from(offset).ok()
            }
        };
        offset.filter(|o| *o <= annotation::SIZE - SIZE).map(Self).ok_or_else(|| {
            format!("{text} is out of range: 0 to {} for {SIZE} bytes", annotation::SIZE - SIZE)
        })
    }
}

/// A span of time in nanoseconds; a bare number is seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanoseconds(pub u64);

impl FromArgument for Nanoseconds {
    const EXPECTED: &'static str = "a time such as 2s, 50ms or 10us";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        let text = argument.text.trim();
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let unit = match text[digits..].trim_start().to_ascii_lowercase().as_str() {
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
            "ms" | "msec" | "msecs" => 1_000_000,
            "us" | "usec" | "usecs" => 1_000,
            "ns" | "nsec" | "nsecs" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
            "h" | "hr" | "hour" | "hours" => 3_600_000_000_000,
            "d" | "day" | "days" => 86_400_000_000_000,
            _ => return Err(unexpected::<Self>(argument)),
        };
        decimal(&text[..digits], unit).map(Self).ok_or_else(|| unexpected::<Self>(argument))
    }
}

/// A decimal fraction of a unit, rounded to the nearest.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10u128.pow(fraction.len() as u32);
    let fraction = (u128::from(digits(fraction)?) * u128::from(unit) + scale / 2) / scale;
    digits(whole)?.checked_mul(unit)?.checked_add(u64::try_from(fraction).ok()?)
}

/// A bandwidth in bytes per second: `10Mbps`, `2.5GBps`; a bare number is bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BytesPerSecond(pub u64);

impl FromArgument for BytesPerSecond {
    const EXPECTED: &'static str = "a bandwidth such as 10Mbps or 2MBps";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        let text = argument.text.trim();
        let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
        let number: f64 = text[..digits].parse().map_err(|_| unexpected::<Self>(argument))?;
        let unit = text[digits..].trim_start();
        let (scale, unit) = match unit.chars().next() {
            Some('k' | 'K') => (1e3, &unit[1..]),
            Some('M' | 'm') => (1e6, &unit[1..]),
            Some('G' | 'g') => (1e9, &unit[1..]),
            _ => (1.0, unit),
        };
        let bytes = match unit {
            "" | "Bps" | "B/s" => number * scale,
            "bps" | "b/s" | "bit/s" | "baud" => number * scale / 8.0,
            _ => return Err(unexpected::<Self>(argument)),
        };
        Ok(Self(bytes as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_in_c() {
        assert_eq!(parse_value::<u32>("0x10"), Ok(16));
        assert_eq!(parse_value::<u32>("010"), Ok(8));
        assert_eq!(parse_value::<i32>("-3"), Ok(-3));
        assert!(
            parse_value::<u8>("256").is_err()
                && parse_value::<u8>("x").is_err()
                && parse_value::<u8>("").is_err()
        );
        assert!(
            parse_value::<u32>("--1").is_err()
                && parse_value::<u32>("0x").is_err()
                && parse_value::<u32>("1 2").is_err()
        );
    }

    #[test]
    fn networks_take_lengths_and_masks() {
        let net = parse_value::<IpMask>("10.1.2.3/255.255.0.0").unwrap();
        assert_eq!(
            (net.address, net.mask, net.prefix().map(|net| net.prefix_len())),
            (0x0a01_0203, 0xffff_0000, Some(16))
        );
        assert_eq!(parse_value::<IpMask>("0.0.0.0/0").unwrap().mask, 0);
        assert_eq!(parse_value::<IpMask>("172.16/12").unwrap().address, 0xac10_0000);
        assert!(
            parse_value::<IpMask>("10.0.0.0/33").is_err()
                && parse_value::<IpMask>("10.0.0/255.0.0.0").is_err()
                && parse_value::<IpMask>("/8").is_err()
        );
        assert_eq!(parse_value::<Ipv6Net>("2001:db8::/32").unwrap().prefix_len(), 32);
    }

    #[test]
    fn annotations_have_names_and_sizes() {
        assert_eq!(parse_value::<AnnotationOffset<1>>("PAINT").unwrap().0, annotation::PAINT);
        assert_eq!(parse_value::<AnnotationOffset<4>>("44").unwrap().0, 44);
        assert!(parse_value::<AnnotationOffset<4>>("45").is_err());
        assert!(parse_value::<AnnotationOffset<4>>("PAINT").is_err());
        assert!(parse_value::<AnnotationOffset<1>>("-1").is_err());
    }

    #[test]
    fn times_and_rates_have_units() {
        assert_eq!(parse_value::<Nanoseconds>("1.5").unwrap().0, 1_500_000_000);
        assert_eq!(parse_value::<Nanoseconds>("10us").unwrap().0, 10_000);
        let exact = parse_value::<Nanoseconds>("1577836800.123456789");
        assert_eq!(exact.unwrap().0, 1_577_836_800_123_456_789);
        assert_eq!(parse_value::<Nanoseconds>(".5ns").unwrap().0, 1);
        for wrong in ["", ".", "1.2.3", "s", "99999999999999999999", "1e3", "-1"] {
            assert!(parse_value::<Nanoseconds>(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_value::<BytesPerSecond>("8kbps").unwrap().0, 1000);
        assert!(parse_value::<BytesPerSecond>("8 parsecs").is_err());
    }
}
