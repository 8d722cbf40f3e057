//! Whatever a pattern says, the program, the cubes and the definition agree on every packet.

use net::{Batch, Packet, Pool};
use proptest::prelude::*;

use super::cubes::cubes;
use super::expr::Pattern;
use super::filter::{Filter, Rule};
use super::language::parse;
use super::primitive::Vocabulary;
use super::program::{Headers, Program};
use super::version::Version;
use crate::names::Names;

fn pattern(text: &str) -> Pattern {
    let vocabulary = Vocabulary {
        names: &Names::default(),
        element: "",
        version: Version::V4,
        has_others: true,
    };
    parse(text, &vocabulary).unwrap_or_else(|wrong| panic!("{text}: {}", wrong.message))
}

/// The definition.
fn holds(pattern: &Pattern, headers: &Headers<'_>) -> bool {
    match pattern {
        Pattern::Const(value) => *value,
        Pattern::Test(test) => headers
            .number(test.place)
            .is_some_and(|number| test.set.contains(u128::from(number & test.mask))),
        Pattern::Not(inner) => !holds(inner, headers),
        Pattern::All(parts) => parts.iter().all(|p| holds(p, headers)),
        Pattern::Any(parts) => parts.iter().any(|p| holds(p, headers)),
        Pattern::Choose(parts) => {
            let [condition, then, otherwise] = parts.as_ref();
            holds(if holds(condition, headers) { then } else { otherwise }, headers)
        }
    }
}

const TESTS: &[&str] = &[
    "tcp",
    "udp",
    "icmp",
    "tcp or udp",
    "ip proto > 6",
    "ip proto & 1 == 1",
    "src port 1",
    "dst port 2",
    "port 3",
    "port != 3",
    "src and dst port < 3",
    "src and dst port >= 2",
    "tcp port 1 or 2",
    "udp dst port > 1",
    "udp dst port & 3 == 2",
    "not dst port <= 2",
    "syn",
    "syn and not ack",
    "tcp opt 18",
    "icmp type echo",
    "icmp type != 8",
    "ip frag",
    "ip unfrag",
    "src 0.0.0.1",
    "host 0.0.0.2",
    "host != 0.0.0.2",
    "src and dst net 0.0.0.0/30",
    "dst net 0.0.0.2/31",
    "src net 0.0.0.0 mask 255.255.255.1",
    "ip ttl < 2",
    "ip ttl & 1 = 1",
    "ip tos 1",
    "ip dscp > 0",
    "ip ect",
    "not ip ce",
    "ip hl > 5",
    "ip id & 5 > 1",
    "ip len <= 40",
    "ip[20:2] 1",
    "transp[0:2] > 1",
    "tcp[13] & 0x12 != 0x12",
    "udp[4:2] 1",
    "true",
    "false",
];

/// Pattern texts.
fn text() -> impl Strategy<Value = String> {
    let test = proptest::sample::select(TESTS).prop_map(str::to_string);
    test.prop_recursive(3, 12, 3, |inner| {
        let three = (inner.clone(), inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|a| format!("not ({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) and ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) || !({b})")),
            three.prop_map(|(a, b, c)| format!("(({a}) ? ({b}) : ({c}))")),
        ]
    })
}

/// Pattern texts that look at a few places, so that many of them make a classifier.
fn few_places() -> impl Strategy<Value = String> {
    let places: &[&str] =
        &["tcp", "udp", "src port", "dst port >", "src host", "dst net 0.0.0.2/31 or dst host"];
    prop::collection::vec((proptest::sample::select(places), 0u32..4), 1..4).prop_map(|tests| {
        let test = |(place, number): &(&str, u32)| match *place {
            "tcp" | "udp" => (*place).to_string(),
            _ if place.ends_with("host") => format!("({place} 0.0.0.{number})"),
            _ => format!("{place} {number}"),
        };
        tests.iter().map(test).collect::<Vec<_>>().join(" and ")
    })
}

/// IP packets of small numbers, so that tests hold often, cut anywhere behind the IP header.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let small = prop::collection::vec(prop_oneof![3 => 0u8..4, 1 => any::<u8>()], 48);
    let protocol = proptest::sample::select(vec![6u8, 17, 1, 47]);
    let fragment = proptest::sample::select(vec![[0u8, 0], [0x40, 0], [0x20, 0], [0, 1]]);
    let flags = proptest::sample::select(vec![0u8, 2, 0x10, 0x12]);
    (small, protocol, fragment, flags, 5u8..7, 0usize..49).prop_map(
        |(mut bytes, protocol, fragment, flags, words, length)| {
            bytes[0] = 0x40 | words;
            bytes[6..8].copy_from_slice(&fragment);
            bytes[9] = protocol;
            [bytes[12], bytes[13], bytes[14]] = [0; 3];
            [bytes[16], bytes[17], bytes[18]] = [0; 3];
            bytes[usize::from(words) * 4 + 13] = flags;
            bytes.truncate(length.max(20));
            bytes
        },
    )
}

fn packet(pool: &mut Pool, bytes: &[u8]) -> Packet {
    let mut packet = pool.packet(bytes);
    packet.set_ip_header(0, usize::from(bytes[0] & 15) * 4);
    packet
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn program_and_cubes_agree_with_the_definition(
        texts in prop::collection::vec(text(), 1..6),
        packets in prop::collection::vec(bytes(), 1..20),
    ) {
        let patterns: Vec<Pattern> = texts.iter().map(|t| pattern(t)).collect();
        let rules: Vec<(&Pattern, u32)> = patterns.iter().zip(0..).collect();
        let program = Program::new(rules.iter().copied(), 99);
        let cubes = cubes(&rules).map(|(keys, set)| (keys, classify::build(&set)));
        let mut pool = Pool::new();
        for bytes in &packets {
            let packet = packet(&mut pool, bytes);
            let headers = Headers::of(&packet);
            let defined = patterns.iter().position(|p| holds(p, &headers)).map(|i| i as u32);
            prop_assert_eq!(program.run(&headers), defined.unwrap_or(99), "{:?}", texts);
            if let Some((keys, classifier)) = &cubes {
                prop_assert_eq!(classifier.lookup(&keys.key(&headers)), defined, "{:?}", texts);
            }
            pool.recycle(packet);
        }
    }

    #[test]
    fn a_filter_that_changed_is_as_good_as_new(
        texts in prop_oneof![
            prop::collection::vec((text(), 0u32..4), 1..20),
            prop::collection::vec((few_places(), 0u32..4), 20..80),
        ],
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, prop::collection::vec((prop_oneof![few_places(), text()], 0u32..4), 0..3), any::<bool>()), 1..12),
        packets in prop::collection::vec(bytes(), 1..20),
    ) {
        let rule = |(text, arm): &(String, u32)| {
            Rule { pattern: pattern(text), arm: *arm, text: text.as_str().into(), span: None }
        };
        let mut rules: Vec<Rule> = texts.iter().map(rule).collect();
        let mut filter = Filter::new(rules.clone(), 9, Version::V4);
        let mut pool = Pool::new();
        let mut batch = Batch::new();
        packets.iter().for_each(|bytes| batch.push(packet(&mut pool, bytes)));
        batch.push(pool.packet(&[1, 2, 3]));
        for (at, removed, added, as_a_whole) in steps {
            let at = at.index(rules.len() + 1);
            let removed = removed.min(rules.len() - at);
            let added: Vec<Rule> = added.iter().map(rule).collect();
            rules.splice(at..at + removed, added.iter().cloned());
            match as_a_whole {
                true => filter.set(rules.clone()),
                false => filter.splice(at, removed, added),
            }
            let mut new = Filter::new(rules.clone(), 9, Version::V4);
            prop_assert_eq!(filter.arms(&batch), new.arms(&batch), "{:?}", texts);
            prop_assert_eq!(filter.model(vec![], vec![]), new.model(vec![], vec![]));
            for (packet, &arm) in batch.iter().zip(new.arms(&batch)) {
                let headers = Headers::of(packet);
                if !headers.network.is_empty() {
                    let first = rules.iter().find(|rule| holds(&rule.pattern, &headers));
                    prop_assert_eq!(arm, first.map_or(9, |rule| rule.arm));
                }
            }
        }
        pool.recycle_all(&mut batch);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "[a-z0-9 ()!&|<>=?:./@_\\[\\]-]{0,60}") {
        let vocabulary = Vocabulary { names: &Names::default(), element: "", version: Version::V4, has_others: true };
        if let Err(wrong) = parse(&text, &vocabulary) {
            prop_assert!(text.get(wrong.range.clone()).is_some(), "{:?} in {:?}", wrong, text);
        }
    }

    #[test]
    fn any_words_are_parsed_or_refused(words in prop::collection::vec(proptest::sample::select(WORDS), 0..14)) {
        let vocabulary = Vocabulary { names: &Names::default(), element: "", version: Version::V4, has_others: true };
        let text = words.join(" ");
        if let Err(wrong) = parse(&text, &vocabulary) {
            prop_assert!(text.get(wrong.range.clone()).is_some(), "{:?} in {:?}", wrong, text);
        }
    }
}

const WORDS: &[&str] = &[
    "src",
    "dst",
    "and",
    "or",
    "not",
    "!",
    "(",
    ")",
    "&&",
    "||",
    "?",
    ":",
    "host",
    "net",
    "port",
    "ip",
    "tcp",
    "udp",
    "icmp",
    "transp",
    "tcpudp",
    "frag",
    "proto",
    "type",
    "opt",
    "ether",
    "[",
    "]",
    "0:2",
    "4",
    "&",
    "0xff",
    "=",
    "!=",
    "<",
    ">=",
    "10.0.0.1",
    "10/8",
    "10.0.0.0/8",
    "mask",
    "255.0.0.0",
    "00:01:02:03:04:05",
    "80",
    "4294967295",
    "www",
    "echo",
    "syn",
    "true",
    "ttl",
    "ect",
    "ce",
    "-",
    "300",
];

#[test]
fn most_tests_become_cubes() {
    for text in TESTS {
        let pattern = pattern(text);
        assert!(cubes(&[(&pattern, 0)]).is_some(), "{text}");
    }
}

#[test]
fn deep_nesting_is_refused_and_does_not_overflow() {
    let vocabulary = Vocabulary {
        names: &Names::default(),
        element: "",
        version: Version::V4,
        has_others: true,
    };
    for part in ["(", "not (", "tcp ? ", "tcp ? udp : ", "(tcp ? udp : udp) ? ", "! "] {
        assert!(parse(&part.repeat(100_000), &vocabulary).is_err(), "{part}");
    }
    let deep = format!("{}tcp{}", "(udp or not (".repeat(60), "))".repeat(60));
    let _ = pattern(&deep).cond();
    let conditions = format!("{}udp{}", "(".repeat(60), " ? tcp : udp)".repeat(60));
    let _ = pattern(&conditions).cond();
}

#[test]
fn words_are_carried_over() {
    for (short, long) in [
        ("src port 80 or 81", "src port 80 or src port 81"),
        ("dst tcp port 8000 or 8080", "dst tcp port 8000 or dst tcp port 8080"),
        ("src 10.0.0.1 or 10.0.0.2", "src host 10.0.0.1 or src host 10.0.0.2"),
        ("tcp and www", "tcp and tcp port www"),
        ("icmp type echo or 3", "icmp type echo or icmp type 3"),
        ("ip ttl 1 or 2", "ip ttl 1 or ip ttl 2"),
        ("src port > 1023 or 80", "src port > 1023 or src port == 80"),
        ("src or dst host 1.2.3.4", "src host 1.2.3.4 or dst host 1.2.3.4"),
        ("172.16/12", "net 172.16.0.0 mask 255.240.0.0"),
        ("net 10.0.0.0/8 tcp", "net 10.0.0.0/8 and tcp"),
        ("not not tcp", "tcp"),
        ("ip proto tcp", "tcp"),
    ] {
        assert_eq!(pattern(short), pattern(long), "{short}");
    }
}
