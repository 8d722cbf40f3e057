//! Packets for the rules of a list: headers drawn at random so that each rule of IPFilter or ClassBench is the first that
//! matches some.

use fastrand::Rng;
use ir::IntervalSet;
use net::wire::{Ipv4, Tcp, Udp, ip_protocol, ipv4, tcp};
use net::{Batch, Pool};

use crate::classify::ip_filter;
use crate::classify::pattern::{Filter, Origin, Pattern, Rule, Version, Vocabulary};
use crate::names::Names;

/// Bytes of the headers that are drawn: IPv4 without options, and as much as a TCP header.
pub const HEADERS: usize = ipv4::HEADER_LEN + tcp::HEADER_LEN;

/// Draws for a packet at the most. A rule that none of them reaches is shadowed by others, or all but.
const DRAWS: usize = 64;
/// Outputs that actions may name.
const OUTPUTS: usize = 256;

/// What was drawn for a list of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Headers of packets, in the order of the rules that they are for, again and again.
    pub headers: Vec<[u8; HEADERS]>,
    /// How many rules there are.
    pub rules: usize,
    /// Lines of rules that no packet reaches: others match all packets that were drawn for them.
    pub unreached: Vec<usize>,
}

/// Draws headers for a list of rules, one a line, as IPFilter's `file` has them: for each rule the same number of packets, and
/// `packets` in all or one more for some rules. Rules that no drawn packet reaches have none. Packets of one rule do not
/// follow each other.
///
/// # Errors
/// What is wrong with a line, or that no packet reaches any rule.
pub fn draw(text: &str, packets: usize, rng: &mut Rng) -> Result<Drawn, String> {
    let (lines, rules): (Vec<usize>, Vec<Rule>) = parse(text)?.into_iter().unzip();
    let mut filter = Filter::new(rules.clone(), u32::MAX >> 1, Version::V4);
    let (mut pool, mut batch) = (Pool::new(), Batch::new());
    let mut drawn = Vec::new();
    let mut reached = vec![false; rules.len()];
    for _ in 0..packets.div_ceil(rules.len().max(1)).max(1) {
        let mut left: Vec<&Rule> = rules.iter().collect();
        let mut found = Vec::new();
        for _ in 0..DRAWS {
            let mut unreached = Vec::new();
            for some in left.chunks(Batch::DEFAULT_BURST) {
                let all: Vec<_> = some.iter().map(|rule| headers(&rule.pattern, rng)).collect();
                for headers in &all {
                    let mut packet = pool.packet(headers);
                    packet.set_ip_header(0, ipv4::HEADER_LEN);
                    batch.push(packet);
                }
                for ((rule, headers), arm) in some.iter().zip(all).zip(filter.arms(&batch)) {
                    match *arm == rule.arm {
                        true => found.push((rule.arm, headers)),
                        false => unreached.push(*rule),
                    }
                }
                batch.drain().for_each(|packet| pool.recycle(packet));
            }
            left = unreached;
        }
        found.sort_by_key(|(rule, _)| *rule);
        found.iter().for_each(|(rule, _)| reached[*rule as usize] = true);
        drawn.extend(found.into_iter().map(|(_, headers)| headers));
    }
    if drawn.is_empty() {
        return Err("no packet reaches any of the rules".into());
    }
    let unreached = lines.into_iter().zip(reached).filter(|(_, is_reached)| !is_reached);
    let unreached = unreached.map(|(line, _)| line).collect();
    Ok(Drawn { headers: drawn, rules: rules.len(), unreached })
}

/// The rules, each with its line's number and its own arm.
fn parse(text: &str) -> Result<Vec<(usize, Rule)>, String> {
    let vocabulary = Vocabulary {
        names: &Names::default(),
        element: "",
        version: Version::V4,
        has_others: true,
    };
    let lines = text.lines().map(str::trim).enumerate();
    let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    rules
        .enumerate()
        .map(|(arm, (at, line))| match ip_filter::rule(line, OUTPUTS, 0, &vocabulary) {
            Ok((_, pattern)) => {
                let rule = Rule { pattern, arm: arm as u32, text: line.into(), span: None };
                Ok((at + 1, rule))
            }
            Err(wrong) => Err(format!("line {}: {}", at + 1, wrong.message)),
        })
        .collect()
}

/// Headers of which a pattern probably holds; what it says nothing of is random.
fn headers(pattern: &Pattern, rng: &mut Rng) -> [u8; HEADERS] {
    let mut headers = [0; HEADERS];
    let mut ip = Ipv4::of(headers.first_chunk_mut().expect("as long as that"));
    ip.set_ttl(64);
    ip.set_protocol(if rng.bool() { ip_protocol::TCP } else { ip_protocol::UDP });
    ip.set_src((10 << 24 | rng.u32(..1 << 24)).into());
    ip.set_dst((20 << 24 | rng.u32(..1 << 24)).into());
    let ports = [rng.u16(1024..), rng.u16(1024..)].map(u16::to_be_bytes);
    headers[ipv4::HEADER_LEN..][..4].copy_from_slice(ports.as_flattened());
    make(pattern, true, &mut headers, rng);
    complete(&mut headers);
    headers
}

/// Makes a pattern hold or not, if it does not contradict itself.
fn make(pattern: &Pattern, holds: bool, headers: &mut [u8; HEADERS], rng: &mut Rng) {
    match (pattern, holds) {
        (Pattern::Const(_), _) => {}
        (Pattern::Not(inner), _) => make(inner, !holds, headers, rng),
        (Pattern::All(parts), true) | (Pattern::Any(parts), false) => {
            parts.iter().for_each(|part| make(part, holds, headers, rng));
        }
        (Pattern::All(parts), false) | (Pattern::Any(parts), true) => {
            if let Some(part) = rng.choice(parts) {
                make(part, holds, headers, rng);
            }
        }
        (Pattern::Choose(parts), _) => {
            let [condition, then, otherwise] = parts.as_ref();
            let is_then = rng.bool();
            make(condition, is_then, headers, rng);
            make(if is_then { then } else { otherwise }, holds, headers, rng);
        }
        (Pattern::Test(test), _) => {
            let begin = match test.place.origin {
                Origin::Network => 0,
                Origin::Transport => ipv4::HEADER_LEN,
                Origin::Data | Origin::Mac | Origin::Network6 | Origin::Transport6 => return,
            };
            let begin = begin + usize::from(test.place.offset);
            let Some(bytes) = headers.get_mut(begin..begin + usize::from(test.place.length)) else {
                return;
            };
            let width = 8 * u16::from(test.place.length);
            let complement = || test.set.complement(width);
            let set = if holds { &test.set } else { &complement() };
            let Some(number) = choose(set, rng) else { return };
            let old = bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte));
            let new = old & !test.mask | number & test.mask;
            bytes.copy_from_slice(&new.to_be_bytes()[4 - bytes.len()..]);
        }
    }
}

/// One of the numbers of a set, each of its ranges being as likely.
fn choose(set: &IntervalSet, rng: &mut Rng) -> Option<u32> {
    let &(low, high) = rng.choice(set.intervals())?;
    Some(rng.u32(low as u32..=high as u32))
}

/// Makes headers those of a valid packet without a payload, but for its checksums.
fn complete(headers: &mut [u8; HEADERS]) {
    let (ip, transport) = headers.split_at_mut(ipv4::HEADER_LEN);
    let Some(mut ip) = Ipv4::new(ip) else { return };
    ip.set_header_len(ipv4::HEADER_LEN);
    ip.set_total_len(HEADERS as u16);
    match ip.protocol() {
        _ if ip.is_later_fragment() => {}
        ip_protocol::TCP => {
            if let Some(mut tcp) = Tcp::new(transport) {
                tcp.set_header_len(tcp::HEADER_LEN);
            }
        }
        ip_protocol::UDP => {
            if let Some(mut udp) = Udp::new(transport) {
                udp.set_len(tcp::HEADER_LEN as u16);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "\
# Shadowing and overlapping rules.
deny src net 10.0.0.0/8 and dst port 53
allow tcp dst port 80 or 443
allow tcp and syn and not ack
1 udp && src port 53 && dst net 192.168.0.0/16
deny icmp type echo

@1.2.3.0/24 5.0.0.0/8 0 : 65535 1024 : 2048 0x11/0xFF 0x0000/0x0000
allow ip proto 89 or ip frag
deny src 10.1.1.1 and dst port 53
drop all";

    #[test]
    fn every_rule_that_can_be_reached_is() {
        let drawn = draw(RULES, 90, &mut Rng::with_seed(1)).unwrap();
        assert_eq!(drawn, draw(RULES, 90, &mut Rng::with_seed(1)).unwrap());
        assert_eq!((drawn.rules, &drawn.unreached[..]), (9, &[10][..]));
        let rules = parse(RULES).unwrap().into_iter().map(|(_, rule)| rule).collect();
        let mut filter = Filter::new(rules, 99, Version::V4);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        for headers in &drawn.headers {
            let mut packet = pool.packet(headers);
            packet.set_ip_header(0, ipv4::HEADER_LEN);
            batch.push(packet);
        }
        let mut reached = [0; 9];
        filter.arms(&batch).iter().for_each(|arm| reached[*arm as usize] += 1);
        // The first rule shadows the last but one, in line 10.
        assert_eq!(reached, [10, 10, 10, 10, 10, 10, 10, 0, 10]);
    }

    #[test]
    fn wrong_lines_and_lists_without_packets_are_refused() {
        let draw = |text| draw(text, 1, &mut Rng::with_seed(1)).unwrap_err();
        assert!(draw("allow tcp\n\nallow nonsense").starts_with("line 3: "));
        assert_eq!(draw("# nothing"), "no packet reaches any of the rules");
        assert_eq!(draw("allow tcp and udp"), "no packet reaches any of the rules");
    }
}
