//! Choosing packets by what people write: the pattern language of IPClassifier, wherever the
//! packets are in a chain.

use net::{Header, Packet};

use crate::classify::pattern::{Headers, Origin, Pattern, Program, Version, Vocabulary, parse};
use crate::io::link_type::{self, ETHERNET, RAW_IP};
use crate::names::Names;

/// What frames of a packet that is neither Ethernet nor IP begin with: reserved for private use.
const PRIVATE: u32 = 147;

/// The link type of what a packet's data begins with, as far as marks and bytes tell: Ethernet,
/// IP without anything in front of it, or neither.
pub fn link_type_of(packet: &Packet) -> u32 {
    match [Header::Network, Header::Mac].map(|header| packet.header_offset(header)) {
        [Some(0), _] => RAW_IP,
        [_, Some(0)] => ETHERNET,
        _ if is_ip(packet.data()) => RAW_IP,
        // Its Ethernet header was stripped.
        [_, Some(..0)] => PRIVATE,
        _ => ETHERNET,
    }
}

/// Whether bytes begin with a whole IP header that says no more bytes than there are.
fn is_ip(data: &[u8]) -> bool {
    let word = |at: usize| {
        data.get(at..at + 2).map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])))
    };
    match data.first().map(|b| (b >> 4, usize::from(b & 0xf) * 4)) {
        Some((4, header)) => header >= 20 && (header..=data.len()).contains(&word(2)),
        Some((6, _)) => data.len() >= 40 && 40 + word(4) <= data.len(),
        _ => false,
    }
}

/// What is asked of a packet.
#[derive(Clone, Debug)]
enum Test {
    All,
    /// The EtherType, or the IP version where there is no Ethernet header.
    Protocol(u16),
    Pattern {
        whole: Program,
        without_ip: Program,
    },
}

/// Chooses packets. IP headers that no element marked are found where they usually are.
#[derive(Clone, Debug)]
pub struct Selector(Test);

/// What patterns lead to.
const YES: u32 = 0;
const NO: u32 = 1;

impl Selector {
    /// Reads a pattern of IPClassifier, or one of the words `ip`, `ip6` and `arp`; an empty text
    /// chooses everything.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub fn new(text: &str) -> Result<Self, String> {
        let protocol = match text.trim() {
            "" => return Ok(Self(Test::All)),
            "ip" => Some(0x0800),
            "ip6" => Some(0x86dd),
            "arp" => Some(0x0806),
            _ => None,
        };
        if let Some(protocol) = protocol {
            return Ok(Self(Test::Protocol(protocol)));
        }
        let names = Names::default();
        let vocabulary =
            Vocabulary { names: &names, element: "", version: Version::V4, has_others: false };
        let pattern = parse(text, &vocabulary).map_err(|wrong| {
            let column = wrong.range.start.min(text.len());
            let help = wrong.help.map_or(String::new(), |help| format!("; {help}"));
            format!("'{text}', at '{}': {}{help}", &text[column..], wrong.message)
        })?;
        let mut looks_at_ip = false;
        pattern.for_each_test(&mut |test| {
            looks_at_ip |= matches!(test.place.origin, Origin::Network | Origin::Transport);
        });
        let program = |pattern: &Pattern| Program::new([(pattern, YES)], NO);
        let whole = program(&pattern);
        let without_ip =
            if looks_at_ip { program(&pattern.without_header()) } else { whole.clone() };
        Ok(Self(Test::Pattern { whole, without_ip }))
    }

    /// Whether a packet is chosen.
    pub fn chooses(&self, packet: &Packet) -> bool {
        match &self.0 {
            Test::All => true,
            Test::Protocol(wanted) => link_type::protocol_of(packet) == Some(*wanted),
            Test::Pattern { whole, without_ip } => {
                let headers = Headers::of(packet);
                let headers = match packet.header_offset(Header::Network) {
                    Some(_) => headers,
                    None => headers.with_ip(link_type::ip_in(link_type_of(packet), packet.data())),
                };
                // The language is IPv4's.
                let is_ip4 = headers.network.first().is_some_and(|first| first >> 4 == 4);
                YES == if is_ip4 {
                    whole.run(&headers)
                } else {
                    without_ip.run(&headers.without_ip())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::Pool;

    fn chosen(filter: &str, packet: &Packet) -> bool {
        Selector::new(filter).unwrap().chooses(packet)
    }

    #[test]
    fn packets_are_chosen_with_and_without_marks() {
        let mut pool = Pool::new();
        let frame = net::notation::parse("udp 10.0.0.1:5 > 10.0.0.2:53 payload 'x'").unwrap();
        let mut packet = pool.packet(&frame);
        for marked in [false, true] {
            if marked {
                packet.set_header_offset(Header::Mac, 0);
                packet.set_ip_header(14, 20);
            }
            assert_eq!(link_type_of(&packet), ETHERNET);
            for filter in ["", "udp", "dst port 53 and src host 10.0.0.1", "not tcp", "ip"] {
                assert!(chosen(filter, &packet), "{filter}");
            }
            for filter in ["tcp", "port 54", "arp", "ip6", "ip frag"] {
                assert!(!chosen(filter, &packet), "{filter}");
            }
        }
        // The Ethernet header was stripped.
        packet.pull(14);
        assert_eq!(link_type_of(&packet), RAW_IP);
        assert!(chosen("udp and dst port 53", &packet) && chosen("ip", &packet));
        let bare = pool.packet(&frame[14..]);
        assert_eq!(link_type_of(&bare), RAW_IP);
        assert!(chosen("udp and dst port 53", &bare) && !chosen("ip6", &bare));
    }

    #[test]
    fn what_is_not_ip4_fails_tests_of_it() {
        let mut pool = Pool::new();
        let arp = pool.packet(&net::notation::parse("arp who-has 10.0.0.2 tell 10.0.0.1").unwrap());
        assert!(chosen("arp", &arp) && chosen("not udp", &arp) && !chosen("ip vers 4", &arp));
        let frame = net::notation::parse("udp [fd00::1]:5 > [fd00::2]:53").unwrap();
        let mut ip6 = pool.packet(&frame);
        assert!(chosen("ip6", &ip6) && !chosen("udp", &ip6) && chosen("not udp", &ip6));
        ip6.set_ip_header(14, 40);
        assert!(!chosen("ip vers 6", &ip6));
        for length in 0..frame.len() {
            chosen("udp or tcp or ip[3] 7", &pool.packet(&frame[..length]));
        }
    }

    #[test]
    fn nonsense_is_told_of() {
        let wrong = Selector::new("tcp port nowhere").unwrap_err();
        assert!(wrong.contains("nowhere"), "{wrong}");
        for text in ["(", "é", "tcp é", "ip[é]", "host é and", "not é"] {
            assert!(Selector::new(text).is_err(), "{text}");
        }
    }
}
