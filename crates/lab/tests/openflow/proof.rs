//! What is emitted is read back and compared; what is wrong is found.

use std::collections::BTreeMap;

use codegen::target;
use compiler::prove::Verdict;

use crate::frames;
use crate::segments::{Made, is_sane};
use crate::switch::expected;

/// Chains whose frames go through a switch whole.
pub(crate) const CHAINS: &[&str] = &[
    "FromDevice(eth0) -> c :: Classifier(12/0806 20/0001, 12/0800 23/06, 12/0800 23/11, 12/86dd, -);
     c[0] -> Queue -> ToDevice(eth1); c[1] -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth2);
     c[2] -> Queue -> ToDevice(eth3); c[3] -> Discard; c[4] -> Queue -> ToDevice(eth4);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
     c[0] -> Strip(14) -> CheckIPHeader
       -> f :: IPFilter(allow tcp dst port 80 or 443, allow udp src port >= 1000, deny src net 10.0.0.0/8 and dst host 1.2.3.4,
            allow dst net 192.168.0.0/16 and ip ttl 5, deny all)
       -> Unstrip(14) -> Queue -> ToDevice(eth1);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
     c[0] -> Strip(14) -> CheckIPHeader -> GetIPAddress(16)
       -> rt :: RadixIPLookup(10.0.0.0/8 0, 10.1.0.0/16 1, 10.1.2.0/24 0, 20.0.0.0/8 2, 30.0.0.0/8 1);
     rt[0] -> DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth1);
     rt[1] -> DecIPTTL -> SetIPDSCP(3) -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:3) -> Queue -> ToDevice(eth2);
     rt[2] -> DecIPTTL -> DecIPTTL -> DecIPTTL -> Unstrip(14) -> Queue -> ToDevice(eth3);",
    "FromDevice(eth0) -> c :: Classifier(12/8100, 12/0800, -); c[2] -> Discard;
     c[0] -> VLANDecap -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth1);
     c[1] -> VLANEncap(VLAN_ID 5, VLAN_PCP 2) -> Queue -> ToDevice(eth2);",
    "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
     c[0] -> MarkIPHeader(14) -> s :: IPClassifier(src net 10.0.0.0/8, src net 20.0.0.0/8, icmp, -);
     s[0] -> f :: IPFilter(allow tcp dst port 80, allow dst net 10.0.0.0/8, allow udp dst port 53, deny all)
       -> GetIPAddress(30) -> r :: RadixIPLookup(1.2.0.0/16 0, 10.1.0.0/16 1, 10.1.2.0/24 0, 192.168.0.0/16 1, 30.0.0.0/8 0);
     s[1] -> g :: IPFilter(allow tcp src port 443, allow dst net 192.168.0.0/16, allow udp src port 1000, deny all)
       -> GetIPAddress(30) -> t :: RadixIPLookup(1.2.0.0/16 1, 10.1.0.0/16 0, 10.1.2.0/24 1, 192.168.0.0/16 0, 30.0.0.0/8 1);
     s[2] -> IPClassifier(icmp type echo) -> Queue -> ToDevice(eth4); s[3] -> Queue -> ToDevice(eth3);
     r[0], t[0] -> SetIPDSCP(5) -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> ToDevice(eth1);
     r[1], t[1] -> EtherRewrite(2:0:0:0:0:1, 2:0:0:0:0:3) -> Queue -> ToDevice(eth2);",
];

#[test]
fn segments_are_proven() {
    for target in ["openflow", "ovs"].map(|name| target(name).unwrap()) {
        for chain in CHAINS {
            let made = Made::of_chain(target, chain);
            let (text, _) = made.prove(target);
            println!("{}\n{text}\nspared: {:?}", target.label(), made.spared);
        }
    }
}

/// A mistake: what it is called, and the text with it; nothing where the text has no place for it.
type Mistake = (&'static str, fn(&[String], usize) -> Option<Vec<String>>);

/// Replaces a line.
fn put(lines: &[String], at: usize, line: Option<String>) -> Option<Vec<String>> {
    let line = line.filter(|line| *line != lines[at])?;
    let mut lines = lines.to_vec();
    lines[at] = line;
    Some(lines)
}

/// A number behind a word, changed.
fn change(line: &str, word: &str, how: impl Fn(u64) -> u64) -> Option<String> {
    let from = line.find(word)? + word.len();
    let end = line[from..].find([',', '/', '-', ' ']).map_or(line.len(), |end| from + end);
    let text = &line[from..end];
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(format!("{}{}{}", &line[..from], how(number), &line[end..]))
}

const MISTAKES: &[Mistake] = &[
    ("an entry is dropped", |lines, at| {
        let mut lines = lines.to_vec();
        lines.remove(at);
        Some(lines)
    }),
    ("a priority is too high", |lines, at| {
        put(lines, at, change(&lines[at], "priority=", |p| p + 1))
    }),
    ("a priority is too low", |lines, at| {
        put(lines, at, change(&lines[at], "priority=", |p| p.saturating_sub(1)))
    }),
    ("a cookie is another's", |lines, at| {
        let of = |line: &String| Some(line.split(',').next()?.to_string());
        let mine = of(&lines[at])?;
        let exit = |line: &&String| line.starts_with("cookie=0x1");
        let other = lines.iter().filter(exit).filter_map(of).find(|other| *other != mine)?;
        exit(&&lines[at]).then_some(())?;
        put(lines, at, Some(lines[at].replacen(&mine, &other, 1)))
    }),
    ("a table is passed by", |lines, at| {
        put(lines, at, change(&lines[at], "goto_table:", |t| t + 1))
    }),
    ("a port is another", |lines, at| {
        put(lines, at, change(&lines[at], "output:", |p| if p == 2 { 3 } else { 2 }))
    }),
    ("time to live stays", |lines, at| put(lines, at, Some(lines[at].replacen("dec_ttl,", "", 1)))),
    ("time to live is counted down twice", |lines, at| {
        put(lines, at, Some(lines[at].replacen("dec_ttl,", "dec_ttl,dec_ttl,", 1)))
    }),
    ("a mask is a bit short", |lines, at| {
        let line = &lines[at];
        let from = line.find("ip_dst=")? + 7;
        let (address, rest) = line[from..].split_once(',')?;
        let (value, mask) = address.split_once('/').unwrap_or((address, "255.255.255.255"));
        let [value, mask] = [value, mask].map(|a| a.parse::<std::net::Ipv4Addr>().ok());
        let mask = mask?.to_bits();
        let less = mask & (mask << 1);
        let value = std::net::Ipv4Addr::from_bits(value?.to_bits() & less);
        let less = std::net::Ipv4Addr::from_bits(less);
        put(lines, at, Some(format!("{}ip_dst={value}/{less},{rest}", &line[..from - 7])))
    }),
    ("bytes of an address are turned around", |lines, at| {
        let line = &lines[at];
        let from = line.find("ip_dst=")? + 7;
        let (address, rest) = line[from..].split_once(',')?;
        let turn = |text: &str| -> Option<String> {
            let address: std::net::Ipv4Addr = text.parse().ok()?;
            Some(std::net::Ipv4Addr::from_bits(address.to_bits().swap_bytes()).to_string())
        };
        let turned = match address.split_once('/') {
            Some((value, mask)) => format!("{}/{}", turn(value)?, turn(mask)?),
            None => turn(address)?,
        };
        put(lines, at, Some(format!("{}ip_dst={turned},{rest}", &line[..from - 7])))
    }),
    ("bytes of a port are turned around", |lines, at| {
        put(lines, at, change(&lines[at], "tcp_dst=", |p| (p as u16).swap_bytes().into()))
    }),
    ("a MAC address is another", |lines, at| {
        put(lines, at, Some(lines[at].replacen("->eth_dst", "->eth_src", 1)))
    }),
    ("a tag is not taken off", |lines, at| {
        put(lines, at, Some(lines[at].replacen("pop_vlan,", "", 1)))
    }),
    ("a tag is of another VLAN", |lines, at| {
        put(lines, at, change(&lines[at], "set_field:", |v| v + 1))
    }),
    ("a packet is dropped", |lines, at| {
        let (when, _) = lines[at].split_once("actions=")?;
        put(lines, at, Some(format!("{when}actions=drop")))
    }),
    ("the return path leads elsewhere", |lines, at| {
        lines[at].contains("in_port=9,vlan_vid").then_some(())?;
        put(lines, at, change(&lines[at], "vlan_vid=", |v| v ^ 0x10))
    }),
];

#[test]
fn mistakes_are_found() {
    let ovs = target("ovs").unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let frames: Vec<Vec<u8>> = (0..400).map(|_| frames::good(&mut random)).collect();
    let frames: Vec<Vec<u8>> = frames.into_iter().filter(|frame| is_sane(frame)).collect();
    let mut found: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for chain in CHAINS {
        let made = Made::of_chain(ovs, chain);
        let text = made.emit(ovs);
        let lines: Vec<String> = text.lines().map(String::from).collect();
        for (name, mistake) in MISTAKES {
            for at in (0..lines.len()).filter(|&at| !lines[at].starts_with('#')) {
                let Some(wrong) = mistake(&lines, at) else { continue };
                let wrong = wrong.join("\n");
                let counts = found.entry(name).or_default();
                let Ok(read) = made.read(ovs, &wrong) else {
                    counts.0 += 1;
                    continue;
                };
                match made.compare(&read) {
                    Verdict::Different(_) => counts.0 += 1,
                    // Others make up for it: no packet tells the difference.
                    Verdict::Equal => {
                        counts.1 += 1;
                        for frame in &frames {
                            let sent = expected(&made, &read, frame);
                            let wanted = expected(&made, &made.segment.program, frame);
                            assert_eq!(sent, wanted, "{name}: {}\n{frame:02x?}", lines[at]);
                        }
                    }
                    Verdict::Unproven(why) => panic!("{name}: {why}: {}", lines[at]),
                }
            }
        }
    }
    println!("{found:#?}");
    for (name, _) in MISTAKES {
        assert!(found.get(name).is_some_and(|counts| counts.0 > 0), "{name}: nothing was found");
    }
}

/// Text that somebody wrote is read, or refused; nothing else.
#[test]
fn hostile_text_is_survived() {
    let ovs = target("ovs").unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let words = "0123456789abcdefx=,:/->. \n#";
    let letters: Vec<char> = words.chars().collect();
    let mut refused = 0;
    for chain in CHAINS {
        let made = Made::of_chain(ovs, chain);
        let text: Vec<char> = made.emit(ovs).chars().collect();
        for _ in 0..150 {
            let mut wrong = text.clone();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(0..wrong.len());
                match random.u8(0..4) {
                    0 => wrong[at] = random.choice(&letters).copied().unwrap(),
                    1 => drop(wrong.remove(at)),
                    2 => wrong.insert(at, random.choice(&letters).copied().unwrap()),
                    _ => {
                        let to = random.usize(at..wrong.len().min(at + 200));
                        let part: Vec<char> = wrong[at..to].to_vec();
                        let at = random.usize(0..wrong.len());
                        wrong.splice(at..at, part);
                    }
                }
            }
            let wrong: String = wrong.into_iter().collect();
            refused += usize::from(made.read(ovs, &wrong).is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}
