//! Several chains as one: each is a compound, and frames of a wire that several of them take go to the one whose addresses
//! they have. So chains share a device as the branches of a chain do: its entries are one set, tags are numbered once, and
//! the proof says that no chain takes another's packets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::Ipv4Addr;

use elements::element::Boundary;
use elements::registry;
use ir::{NodeId, Port};

use super::Chain;
use super::flatten;

/// IPv4 addresses: one, and how many of its bits all have.
type Network = (Ipv4Addr, u8);

/// Frames of a wire that a chain takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The wire.
    pub wire: String,
    /// Their source addresses; any, if nothing is said.
    pub source: Option<Network>,
    /// Their destination addresses.
    pub destination: Option<Network>,
}

impl Taken {
    /// Whether it takes whatever others do not.
    fn is_rest(&self) -> bool {
        self.source.is_none() && self.destination.is_none()
    }
}

/// A chain that is to be joined with others.
#[derive(Clone, Copy, Debug)]
pub struct Joining<'a> {
    /// What people call it.
    pub name: &'a str,
    /// The chain.
    pub chain: &'a Chain,
    /// What it takes of wires that others take frames from, too.
    pub takes: &'a [Taken],
    /// Connections by which packets come back from servers to a device in front.
    pub back: &'a [Back],
}

/// Connections that end at the same input, and that packets take through a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Back {
    /// What stands for the path there and back: a wire by this name.
    pub wire: String,
    /// Where they come from.
    pub from: Vec<Port>,
    /// Where they go.
    pub to: Port,
}

impl Back {
    /// How names of elements have the name of a wire.
    pub fn letters(wire: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        wire.chars().map(letter).collect()
    }

    /// Takes the connections out of a chain; what stands there instead, in Click.
    fn cut(&self, chain: &mut Chain, number: usize) -> String {
        let Self { wire, from, to } = self;
        chain.graph.edges.retain(|edge| edge.to != *to || !from.contains(&edge.from));
        let mut name = format!("back{number}_{}", Self::letters(wire));
        let is_taken = |name: &str| chain.graph.nodes.iter().any(|of| of.name.starts_with(name));
        while is_taken(&name) {
            name.push('_');
        }
        let of = |node: NodeId| &chain.graph.nodes[node].name;
        let mut text =
            format!("{name}to :: ToDevice({wire});\n{name}from :: FromDevice({wire});\n");
        for from in from {
            let _ = writeln!(text, "{}[{}] -> {name}to;", of(from.node), from.port);
        }
        // What comes from a wire comes from nowhere else.
        let _ = writeln!(text, "{name}from -> {name}in :: Null -> [{}]{};", to.port, of(to.node));
        text
    }
}

/// A chain that was joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinedPart {
    /// What the names of its elements begin with.
    pub prefix: String,
    /// Elements that count what comes into it, by wire: a source, or a counter.
    pub ingress: BTreeMap<String, String>,
    /// Elements that send what leaves it.
    pub egress: Vec<String>,
    /// What it is in the configuration, by itself.
    pub text: String,
    /// By wire that it shares: what is tested of frames that come to it. One that takes what is left depends on all.
    pub taken: BTreeMap<String, Vec<String>>,
}

/// Chains as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Joined {
    /// The configuration.
    pub text: String,
    /// By chain.
    pub parts: Vec<JoinedPart>,
}

/// Joins chains.
///
/// # Errors
/// All frames that would be taken by two of them, in words.
pub fn join(all: &[Joining<'_>]) -> Result<Joined, Vec<String>> {
    let mut joined = Joined::default();
    let mut wrong = Vec::new();
    // By wire: the chains that frames come into from there, with the elements that receive them.
    let mut wires: BTreeMap<String, Vec<(usize, NodeId)>> = BTreeMap::new();
    for (at, of) in all.iter().enumerate() {
        let names: BTreeSet<String> = joined.parts.iter().map(|part| part.prefix.clone()).collect();
        let mut part = JoinedPart { prefix: identifier(of.name, &names), ..JoinedPart::default() };
        for (node, is) in boundaries(of.chain) {
            match is {
                Boundary::Ingress => {
                    wires.entry(wire(of.chain, node)).or_default().push((at, node));
                }
                Boundary::Egress => {
                    part.egress
                        .push(format!("{}/{}", part.prefix, of.chain.graph.nodes[node].name));
                }
            }
        }
        joined.parts.push(part);
    }
    let requirements: BTreeSet<&String> =
        all.iter().flat_map(|of| &of.chain.requirements).collect();
    for package in requirements {
        let _ = writeln!(joined.text, "require(package {package});");
    }
    // By chain and the element that received frames: the input that takes its place.
    let mut inputs: BTreeMap<(usize, NodeId), usize> = BTreeMap::new();
    let mut between = String::new();
    let mut words: BTreeSet<String> = BTreeSet::new();
    for (name, takers) in &wires {
        // Known by its wire, whichever others there are.
        let mut word = Back::letters(name);
        while !words.insert(word.clone()) {
            word.push('_');
        }
        if let [(at, node)] = takers[..] {
            let part = &mut joined.parts[at];
            let element = format!("{}/{}", part.prefix, all[at].chain.graph.nodes[node].name);
            part.ingress.insert(name.clone(), element);
            continue;
        }
        let patterns = match patterns(all, name, takers) {
            Ok(patterns) => patterns,
            Err(mut found) => {
                wrong.append(&mut found);
                continue;
            }
        };
        let (first, node) = takers[0];
        let source = flatten::declaration(all[first].chain, node);
        let tests: Vec<&str> = patterns.iter().map(|(pattern, _)| pattern.as_str()).collect();
        let _ = writeln!(between, "wire_{word} :: {source};");
        let _ = writeln!(between, "whose_{word} :: Classifier({});", tests.join(", "));
        let _ = writeln!(between, "wire_{word} -> whose_{word};");
        for (at, node) in takers {
            let part = &mut joined.parts[*at];
            let counter = format!("{}_from_{word}", part.prefix);
            let port = inputs.keys().filter(|(of, _)| of == at).count();
            inputs.insert((*at, *node), port);
            let _ = writeln!(between, "{counter} :: Counter -> [{port}] {};", part.prefix);
            part.ingress.insert(name.clone(), counter);
            let own = patterns.iter().filter(|(_, of)| of == at).map(|(test, _)| test.clone());
            let mut own: Vec<String> = own.collect();
            if own.iter().any(|test| test == REST) {
                own = patterns.iter().map(|(test, _)| test.clone()).collect();
            }
            part.taken.insert(name.clone(), own);
        }
        for (output, (_, at)) in patterns.iter().enumerate() {
            let _ = writeln!(
                between,
                "whose_{word}[{output}] -> {}_from_{word};",
                joined.parts[*at].prefix
            );
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    for (at, of) in all.iter().enumerate() {
        let mut chain = of.chain.clone();
        let back: String =
            (1..).zip(of.back).map(|(number, back)| back.cut(&mut chain, number)).collect();
        let body = flatten::body(&chain, &|node| inputs.get(&(at, node)).copied());
        let part = &mut joined.parts[at];
        part.text = format!("{} :: {{\n{body}{back}}};\n", part.prefix);
        let _ = write!(joined.text, "\n{}", part.text);
    }
    if !between.is_empty() {
        let _ = write!(joined.text, "\n{between}");
    }
    Ok(joined)
}

/// The elements at which frames come in and leave.
fn boundaries(chain: &Chain) -> impl Iterator<Item = (NodeId, Boundary)> + '_ {
    let nodes = chain.graph.nodes.iter().enumerate();
    nodes.filter_map(|(node, of)| Some((node, registry::find(&of.class)?.boundary?)))
}

/// The device or file of an element.
fn wire(chain: &Chain, node: NodeId) -> String {
    chain.arguments[node].first().map_or_else(String::new, |first| first.text.trim().to_string())
}

/// A name as Click has them, that no other chain has and no element class.
fn identifier(name: &str, taken: &BTreeSet<String>) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut name: String = name.chars().map(letter).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "chain_");
    }
    let is_taken = |name: &String| {
        taken.contains(name)
            || registry::find(name).is_some()
            || ["input", "output", "define", "require", "elementclass", "provide"]
                .contains(&name.as_str())
            || ["wire", "whose"].iter().any(|of| name.starts_with(of))
            // Counters of chains at wires.
            || taken.iter().any(|of| {
                name.starts_with(&format!("{of}_from_")) || of.starts_with(&format!("{name}_from_"))
            })
    };
    while is_taken(&name) {
        name.push('_');
    }
    name
}

/// What a classifier tests of a wire's frames, and the chain that takes what passes: the one that takes all that is left
/// is the last.
fn patterns(
    all: &[Joining<'_>],
    wire: &str,
    takers: &[(usize, NodeId)],
) -> Result<Vec<(String, usize)>, Vec<String>> {
    let mut taken: Vec<(usize, Taken)> = Vec::new();
    for (at, _) in takers {
        let before = taken.len();
        let own = all[*at].takes.iter().filter(|of| of.wire == wire);
        taken.extend(own.map(|of| (*at, of.clone())));
        if taken.len() == before {
            let rest = Taken { wire: wire.into(), source: None, destination: None };
            taken.push((*at, rest));
        }
    }
    let mut wrong = Vec::new();
    for (number, (a, one)) in taken.iter().enumerate() {
        for (b, other) in &taken[number + 1..] {
            // What is said goes before the rest.
            if a != b && meet(one, other) && one.is_rest() == other.is_rest() {
                let (a, b) = (all[*a].name, all[*b].name);
                wrong.push(format!(
                    "chains '{a}' and '{b}' both take {} from wire '{wire}': say in their `traffic` which addresses are whose, such as \
                     `{{ in: {wire}, src: 10.7.0.0/16 }}`",
                    words(one, other)
                ));
            }
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    taken.sort_by_key(|(_, of)| of.is_rest());
    let tests = taken.iter().flat_map(|(at, of)| tests(of).into_iter().map(|test| (test, *at)));
    Ok(tests.collect())
}

fn words(one: &Taken, other: &Taken) -> String {
    if one.is_rest() && other.is_rest() { "all frames".into() } else { "some frames".into() }
}

/// Whether a frame can be both.
fn meet(one: &Taken, other: &Taken) -> bool {
    let meet = |a: Option<Network>, b: Option<Network>| match (a, b) {
        (Some((a, n)), Some((b, m))) => {
            let mask = mask(n.min(m));
            u32::from(a) & mask == u32::from(b) & mask
        }
        _ => true,
    };
    meet(one.source, other.source) && meet(one.destination, other.destination)
}

fn mask(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

/// What is tested for all that is left.
const REST: &str = "-";

/// Offsets in frames without a VLAN tag: of addresses in IPv4 packets, and of those that ARP is about.
const IP: [u32; 2] = [26, 30];
const ARP: [u32; 2] = [28, 38];

/// What a classifier tests: packets with these addresses, and questions and answers of ARP about them.
fn tests(of: &Taken) -> Vec<String> {
    let test = |offset: u32, (address, bits): Network| {
        let mask = mask(bits);
        match bits {
            0 => String::new(),
            _ => format!(" {offset}/{:08x}%{mask:08x}", u32::from(address) & mask),
        }
    };
    let Taken { source, destination, .. } = of;
    if source.is_none() && destination.is_none() {
        return vec![REST.into()];
    }
    let at = |[from, to]: [u32; 2]| {
        let from = source.map_or_else(String::new, |network| test(from, network));
        from + &destination.map_or_else(String::new, |network| test(to, network))
    };
    // Who asks is known by the own address, whoever is asked for.
    let arp = match source {
        Some(source) => test(ARP[0], *source),
        None => at(ARP),
    };
    vec![format!("12/0800{}", at(IP)), format!("12/0806{arp}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::{Options, elaborate};
    use elements::configure::Files;
    use ir::{FileId, Sources, has_errors};

    struct NoFiles;

    impl Files for NoFiles {
        fn read(&mut self, _: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
            Err(format!("no {path}"))
        }
    }

    fn chain(text: &str) -> Chain {
        let mut sources = Sources::new();
        let file = sources.add("chain", text);
        let options = Options::of(Vec::new());
        let (chain, found) = elaborate(&mut sources, file, &options, &mut NoFiles);
        assert!(!has_errors(&found), "{text}: {found:?}");
        chain.expect("a chain")
    }

    fn taken(wire: &str, source: Option<(Ipv4Addr, u8)>) -> Taken {
        Taken { wire: wire.into(), source, destination: None }
    }

    const CHAIN: &str = "FromDevice(lan) -> f :: { input -> Strip(14) -> Unstrip(14) -> output }
         -> ToDevice(wan); FromDevice(wan) -> ToDevice(lan);";
    const OTHER: &str = "FromDevice(lan) -> ToDevice(wan)";

    #[test]
    fn chains_that_share_a_wire_are_a_chain() {
        let (a, b) = (chain(CHAIN), chain(OTHER));
        let network = |last| Some((Ipv4Addr::new(10, last, 3, 4), 16));
        let (of_a, of_b) = ([taken("lan", network(7))], [taken("lan", network(8))]);
        let all = [
            Joining { name: "customer-7", chain: &a, takes: &of_a, back: &[] },
            Joining { name: "8", chain: &b, takes: &of_b, back: &[] },
        ];
        let joined = join(&all).expect("they are apart");
        for test in [
            "12/0800 26/0a070000%ffff0000, 12/0806 28/0a070000%ffff0000",
            "12/0800 26/0a080000%ffff0000, 12/0806 28/0a080000%ffff0000",
        ] {
            assert!(joined.text.contains(test), "{}", joined.text);
        }
        let whole = chain(&joined.text);
        let [seven, eight] = &joined.parts[..] else { panic!("{:?}", joined.parts) };
        assert_eq!((seven.prefix.as_str(), eight.prefix.as_str()), ("customer_7", "chain_8"));
        // What only one takes comes to it as before.
        assert!(seven.ingress["wan"].starts_with("customer_7/"));
        for part in [seven, eight] {
            for name in part.ingress.values().chain(&part.egress) {
                assert!(whole.find(name).is_some(), "{name}: {}", joined.text);
            }
        }
        assert!(whole.find("customer_7/f/Strip@1").is_some(), "{}", joined.text);
    }

    #[test]
    fn packets_come_back_by_a_wire_of_their_own() {
        let a = chain(CHAIN);
        let (strip, end) = (a.find("f/Strip@1").unwrap(), a.find("f/Unstrip@2").unwrap());
        let (from, to) = (Port { node: strip, port: 0 }, Port { node: end, port: 0 });
        let back = [Back { wire: "s1.eth0/1".into(), from: vec![from], to }];
        let joined = join(&[Joining { name: "a", chain: &a, takes: &[], back: &back }]);
        let joined = joined.expect("it is alone");
        let whole = chain(&joined.text);
        let [sent, from] = ["to", "from"].map(|of| {
            whole
                .find(&format!("a/back1_s1_eth0_1{of}"))
                .unwrap_or_else(|| panic!("{}", joined.text))
        });
        let leads =
            |node, to| whole.graph.successors(Port { node, port: 0 }).any(|of| of.node == to);
        let strip = whole.find("a/f/Strip@1").unwrap();
        assert!(leads(strip, sent) && !leads(strip, whole.find("a/f/Unstrip@2").unwrap()));
        assert!(leads(from, whole.find("a/back1_s1_eth0_1in").unwrap()));
        // It is no wire at which the chain's packets come in or leave.
        assert_eq!(joined.parts[0].ingress.keys().collect::<Vec<_>>(), ["lan", "wan"]);
        assert_eq!(joined.parts[0].egress.len(), 2);
    }

    #[test]
    fn frames_that_two_chains_take_are_named() {
        let (a, b) = (chain(OTHER), chain(OTHER));
        let wide = [taken("lan", Some((Ipv4Addr::new(10, 0, 0, 0), 8)))];
        let narrow = [taken("lan", Some((Ipv4Addr::new(10, 7, 0, 0), 16)))];
        let of = |takes: [&[Taken]; 2]| {
            let [x, y] = takes;
            let x = Joining { name: "x", chain: &a, takes: x, back: &[] };
            join(&[x, Joining { name: "y", chain: &b, takes: y, back: &[] }])
        };
        for takes in [[&wide[..], &narrow[..]], [&[], &[]]] {
            let wrong = of(takes).expect_err("they meet");
            assert!(wrong.len() == 1 && wrong[0].contains("chains 'x' and 'y' both"), "{wrong:?}");
        }
        // Who says nothing takes what is left.
        let joined = of([&[], &narrow[..]]).expect("the rest is x's");
        assert!(joined.text.contains("12/0806 28/0a070000%ffff0000, -)"), "{}", joined.text);
    }
}
