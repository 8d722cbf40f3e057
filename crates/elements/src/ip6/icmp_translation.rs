//! What ICMP and ICMPv6 messages become of each other (RFC 7915, 4.2 and 5.2).

use ir::Reason;
use net::wire::icmpv4::message as v4;
use net::wire::icmpv6::message as v6;

use crate::configure::Arguments;

/// A message that the other version of ICMP does not have, or that goes no further than a link.
pub(crate) const NO_MESSAGE: Reason = Reason("no-such-icmp-message");

/// Type, code and second word of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub kind: u8,
    pub code: u8,
    pub rest: u32,
}

/// The longest packets that links on both sides take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mtus {
    pub ip4: u32,
    pub ip6: u32,
}

impl Mtus {
    /// From the keywords `MTU4` and `MTU6`.
    pub(crate) fn of(arguments: &mut Arguments<'_, '_>) -> Self {
        let mut mtu = |name: &'static str, least: u32| {
            let Some(word) = arguments.keyword_argument(name) else { return 1500 };
            let mtu = arguments.parse(name, &word).unwrap_or(1500);
            if !(least..=65535).contains(&mtu) {
                arguments.error(&word, format!("{name} is out of range: {least} to 65535"));
            }
            mtu
        };
        Self { ip4: mtu("MTU4", 68), ip6: mtu("MTU6", LEAST_MTU) }
    }
}

/// The least MTU of IPv6.
pub(crate) const LEAST_MTU: u32 = 1280;
/// MTUs that are common (RFC 1191, 7.1), for routers that tell none.
const PLATEAUS: [u32; 10] = [65535, 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296];
/// Difference between the IP headers' lengths.
const LONGER: u32 = 20;

const FRAGMENTATION_NEEDED: u8 = 4;
const PORT4: u8 = 3;
const PORT6: u8 = 4;
const PROTOCOL4: u8 = 2;
const NEXT_HEADER: u8 = 1;
const PROHIBITED6: u8 = 1;
const PROHIBITED4: u8 = 10;
const HOST: u8 = 1;

/// Offsets in IPv4's header, and of the same fields in IPv6's.
const POINTERS4: &[(std::ops::RangeInclusive<u32>, u32)] =
    &[(0..=0, 0), (1..=1, 1), (2..=3, 4), (8..=8, 7), (9..=9, 6), (12..=15, 8), (16..=19, 24)];
/// And back.
const POINTERS6: &[(std::ops::RangeInclusive<u32>, u32)] =
    &[(0..=0, 0), (1..=1, 1), (4..=5, 2), (6..=6, 9), (7..=7, 8), (8..=23, 12), (24..=39, 16)];

fn pointer(table: &[(std::ops::RangeInclusive<u32>, u32)], offset: u32) -> Option<u32> {
    table.iter().find(|(offsets, _)| offsets.contains(&offset)).map(|&(_, to)| to)
}

/// The type of an ICMPv6 echo message as ICMP has it.
pub(crate) fn echo6(kind: u8) -> Option<u8> {
    match kind {
        v6::ECHO => Some(v4::ECHO),
        v6::ECHO_REPLY => Some(v4::ECHO_REPLY),
        _ => None,
    }
}

/// The type of an ICMP echo message as ICMPv6 has it.
pub(crate) fn echo4(kind: u8) -> Option<u8> {
    match kind {
        v4::ECHO => Some(v6::ECHO),
        v4::ECHO_REPLY => Some(v6::ECHO_REPLY),
        _ => None,
    }
}

/// What an ICMP error becomes that quotes a packet of so many bytes.
pub(crate) fn error4(from: Message, mtus: Mtus, quoted: u16) -> Option<Message> {
    let Message { kind, code, rest } = from;
    let unreachable = |code| Message { kind: v6::UNREACHABLE, code, rest: 0 };
    let parameter = |code, rest| Message { kind: v6::PARAMETER_PROBLEM, code, rest };
    Some(match (kind, code) {
        (v4::UNREACHABLE, 0 | 1 | 5..=8 | 11 | 12) => unreachable(0),
        (v4::UNREACHABLE, PROTOCOL4) => parameter(NEXT_HEADER, 6),
        (v4::UNREACHABLE, PORT4) => unreachable(PORT6),
        (v4::UNREACHABLE, FRAGMENTATION_NEEDED) => {
            let mtu = match rest & 0xffff {
                0 => {
                    let less = |mtu: &u32| *mtu < quoted.into();
                    PLATEAUS.into_iter().find(less).unwrap_or(0)
                }
                mtu => mtu,
            };
            let mtu = (mtu + LONGER).min(mtus.ip6).min(mtus.ip4 + LONGER).max(LEAST_MTU);
            Message { kind: v6::PACKET_TOO_BIG, code: 0, rest: mtu }
        }
        (v4::UNREACHABLE, 9 | 10 | 13 | 15) => unreachable(PROHIBITED6),
        (v4::TIME_EXCEEDED, _) => Message { kind: v6::TIME_EXCEEDED, code, rest: 0 },
        (v4::PARAMETER_PROBLEM, 0 | 2) => parameter(0, pointer(POINTERS4, rest >> 24)?),
        _ => return None,
    })
}

/// What an ICMPv6 error becomes that quotes a packet with or without a fragment header.
pub(crate) fn error6(from: Message, mtus: Mtus, is_fragment: bool) -> Option<Message> {
    let Message { kind, code, rest } = from;
    let unreachable = |code, rest| Message { kind: v4::UNREACHABLE, code, rest };
    Some(match (kind, code) {
        (v6::UNREACHABLE, 0 | 2 | 3) => unreachable(HOST, 0),
        (v6::UNREACHABLE, PROHIBITED6) => unreachable(PROHIBITED4, 0),
        (v6::UNREACHABLE, PORT6) => unreachable(PORT4, 0),
        (v6::PACKET_TOO_BIG, _) => {
            let longer = LONGER + if is_fragment { 8 } else { 0 };
            let mtu = rest.saturating_sub(longer).min(mtus.ip4).min(mtus.ip6 - LONGER);
            unreachable(FRAGMENTATION_NEEDED, mtu & 0xffff)
        }
        (v6::TIME_EXCEEDED, _) => Message { kind: v4::TIME_EXCEEDED, code, rest: 0 },
        (v6::PARAMETER_PROBLEM, 0) => {
            Message { kind: v4::PARAMETER_PROBLEM, code: 0, rest: pointer(POINTERS6, rest)? << 24 }
        }
        (v6::PARAMETER_PROBLEM, NEXT_HEADER) => unreachable(PROTOCOL4, 0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTUS: Mtus = Mtus { ip4: 1500, ip6: 1500 };

    fn become4(kind: u8, code: u8, rest: u32) -> Option<(u8, u8, u32)> {
        error4(Message { kind, code, rest }, MTUS, 1400).map(|m| (m.kind, m.code, m.rest))
    }

    fn become6(kind: u8, code: u8, rest: u32, is_fragment: bool) -> Option<(u8, u8, u32)> {
        error6(Message { kind, code, rest }, MTUS, is_fragment).map(|m| (m.kind, m.code, m.rest))
    }

    /// RFC 7915, 4.2 and figure 3.
    #[test]
    fn icmp_errors_become_those_of_icmpv6() {
        let unreachable = [
            Some((1, 0, 0)),
            Some((1, 0, 0)),
            Some((4, 1, 6)),
            Some((1, 4, 0)),
            Some((2, 0, 1280)),
            Some((1, 0, 0)),
            Some((1, 0, 0)),
            Some((1, 0, 0)),
            Some((1, 0, 0)),
            Some((1, 1, 0)),
            Some((1, 1, 0)),
            Some((1, 0, 0)),
            Some((1, 0, 0)),
            Some((1, 1, 0)),
            None,
            Some((1, 1, 0)),
            None,
        ];
        for (code, expected) in unreachable.into_iter().enumerate() {
            assert_eq!(become4(3, code as u8, 0), expected, "code {code}");
        }
        // The MTU that the router tells, but no more than links take, and no less than the least of IPv6.
        for (told, mtu) in [(1300, 1320), (1480, 1500), (1490, 1500), (9000, 1500), (576, 1280)] {
            assert_eq!(become4(3, 4, told), Some((2, 0, mtu)));
        }
        let large = Mtus { ip4: 9000, ip6: 9000 };
        let silent = Message { kind: 3, code: 4, rest: 0 };
        assert_eq!(error4(silent, large, 4000).map(|m| m.rest), Some(2022));
        assert_eq!(become4(11, 1, 0), Some((3, 1, 0)));
        let pointers = [
            Some(0),
            Some(1),
            Some(4),
            Some(4),
            None,
            None,
            None,
            None,
            Some(7),
            Some(6),
            None,
            None,
            Some(8),
            Some(8),
            Some(8),
            Some(8),
            Some(24),
            Some(24),
            Some(24),
            Some(24),
            None,
        ];
        for (offset, to) in pointers.into_iter().enumerate() {
            let expected = to.map(|to| (4, 0, to));
            assert_eq!(become4(12, 0, (offset as u32) << 24), expected, "pointer {offset}");
            assert_eq!(become4(12, 2, (offset as u32) << 24), expected);
        }
        for (kind, code) in [(12, 1), (12, 3), (4, 0), (5, 1), (6, 0), (9, 0), (13, 0), (40, 0)] {
            assert_eq!(become4(kind, code, 0), None);
        }
    }

    /// RFC 7915, 5.2 and figure 6.
    #[test]
    fn icmpv6_errors_become_those_of_icmp() {
        for (code, to) in
            [(0, Some(1)), (1, Some(10)), (2, Some(1)), (3, Some(1)), (4, Some(3)), (5, None)]
        {
            assert_eq!(become6(1, code, 0, false), to.map(|code| (3, code, 0)));
        }
        assert_eq!(become6(2, 0, 1300, false), Some((3, 4, 1280)));
        assert_eq!(become6(2, 0, 1300, true), Some((3, 4, 1272)));
        assert_eq!(become6(2, 0, 9000, false), Some((3, 4, 1480)));
        assert_eq!(become6(2, 0, 3, false), Some((3, 4, 0)));
        assert_eq!(become6(3, 1, 0, false), Some((11, 1, 0)));
        assert_eq!(become6(4, 1, 6, false), Some((3, 2, 0)));
        assert_eq!(become6(4, 2, 40, false), None);
        for (offset, to) in [
            (0, Some(0)),
            (1, Some(1)),
            (2, None),
            (3, None),
            (4, Some(2)),
            (5, Some(2)),
            (6, Some(9)),
            (7, Some(8)),
            (8, Some(12)),
            (23, Some(12)),
            (24, Some(16)),
            (39, Some(16)),
            (40, None),
            (u32::MAX, None),
        ] {
            assert_eq!(become6(4, 0, offset, false), to.map(|to| (12, 0, to << 24)));
        }
        for kind in [0, 5, 100, 127, 130, 133, 137, 143] {
            assert_eq!(become6(kind, 0, 0, false), None);
        }
    }
}
