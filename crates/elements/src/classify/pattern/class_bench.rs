//! Rules as ClassBench writes them:
//! `@SRC/LEN DST/LEN LOW : HIGH LOW : HIGH PROTO/MASK FLAGS/MASK`, source ports first.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use ir::IntervalSet;

use super::expr::{Origin, PacketBytes, Pattern};
use crate::argument::{parse_integer, parse_ipv4};

/// Parses a line. Ranges of all ports say nothing; others ask for a first fragment with ports,
/// of TCP or UDP unless the rule names a protocol. The flags are not looked at.
pub(crate) fn parse(line: &str) -> Option<Pattern> {
    let mut words = line.strip_prefix('@')?.split_ascii_whitespace();
    let mut tests = Vec::with_capacity(5);
    for at in [12, 16] {
        let (address, length) = words.next()?.split_once('/')?;
        let network = Ipv4Net::new(parse_ipv4(address)?, length.parse().ok()?).ok()?;
        let [address, mask] = [network.network(), network.netmask()].map(Ipv4Addr::to_bits);
        if mask != 0 {
            let address = IntervalSet::single(address.into());
            tests.push(Pattern::test(PacketBytes::new(Origin::Network, at, 4), mask, address));
        }
    }
    let mut ports = Vec::with_capacity(2);
    for at in [0, 2] {
        let low: u16 = words.next()?.parse().ok()?;
        if words.next()? != ":" {
            return None;
        }
        let high: u16 = words.next()?.parse().ok()?;
        if (low, high) != (0, u16::MAX) {
            let set = IntervalSet::range(u128::from(low), u128::from(high));
            ports.push(Pattern::test(PacketBytes::new(Origin::Transport, at, 2), 0xffff, set));
        }
    }
    let (protocol, mask) = words.next()?.split_once('/')?;
    let byte = |text| parse_integer(text).and_then(|n| u8::try_from(n).ok()).map(u32::from);
    let (protocol, mask) = (byte(protocol)?, byte(mask)?);
    let place = PacketBytes::new(Origin::Network, 9, 1);
    if mask != 0 {
        let set = IntervalSet::single(u128::from(protocol & mask));
        tests.push(Pattern::test(place, mask, set));
    } else if !ports.is_empty() {
        let set = IntervalSet::from_intervals(vec![(6, 6), (17, 17)]);
        tests.push(Pattern::test(place, 0xff, set));
    }
    Some(Pattern::all(tests.into_iter().chain(ports)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_patterns() {
        let line = "@10.1.2.3/8\t20.0.0.1/32\t0 : 65535\t1024 : 65535\t0x06/0xFF\t0x0000/0x0200\t";
        let Some(Pattern::All(tests)) = parse(line) else { panic!("no conjunction") };
        assert_eq!(tests.len(), 4);
        let any = "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000";
        assert_eq!(parse(any), Some(Pattern::Const(true)));
        let ports = "@0.0.0.0/0 0.0.0.0/0 7 : 7 0 : 65535 0x00/0x00";
        assert!(matches!(parse(ports), Some(Pattern::All(tests)) if tests.len() == 2));
    }

    #[test]
    fn other_lines_do_not() {
        for line in [
            "",
            "@",
            "10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
            "@10.0.0.0/33 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00",
            "@10.0.0.0/8 0.0.0.0/0 0 - 1 0 : 1 0x00/0x00",
            "@10.0.0.0/8 0.0.0.0/0 0 : 99999 0 : 1 0x00/0x00",
            "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1",
            "@10.0.0.0/8 0.0.0.0/0 0 : 1 0 : 1 0x106/0xff",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
