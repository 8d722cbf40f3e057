//! Groups of traffic classes: what goes to one worker, and can go to another, as a whole (Metron
//! §2.3.4), with what a switch must match to tag their frames.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use compiler::classes::{
    ETH_TYPE, FIELDS, Family, ICMP_TYPE, ICMP6_TYPE, IP_PROTO, IP_VERSION, IP6_NEXT, TrafficClass,
    traffic_classes,
};
use dataplane::io::Tags;
use elements::configure::{Devices, WorkerShare};
use elements::device::{Device, DeviceRequest, OwnedPorts};
use ir::{Cube, Field, IntervalSet, Model, has_errors};
use net::wire::ip_protocol;

use crate::closed::Closed;
use crate::control::protocol::{Answers, Bits, Bound, Class, FieldRanges, Tagged};
use crate::instance::Configuration;

/// Groups that are made at the most where nobody says how many: each has its share of what is allocated.
const USUAL_GROUPS: usize = 255;

/// Halvings of a class by bits of the source address.
const MOST_HALVINGS: u16 = 16;

/// Cubes that two classes may have in common, lest it take too long to find them.
const MOST_SHARED: usize = 1 << 16;

/// What of a group's traffic is one class.
struct Member {
    /// The name of the input that it comes in by.
    input: String,
    class: TrafficClass,
    /// How often it was halved already.
    halved: u16,
}

/// Members that must be at one worker.
#[derive(Default)]
struct Together(Vec<Member>);

impl Together {
    /// How much of all that can come in is of these and of another member.
    fn shares(&self, other: &Member) -> f64 {
        let same = self.0.iter().filter(|member| member.input == other.input);
        let both =
            same.filter_map(|one| one.class.space.intersect(&other.class.space, MOST_SHARED).ok());
        let part = |(field, set): &(Field, IntervalSet)| {
            set.count() as f64 / 2f64.powi(field.width.into())
        };
        let of = |cube: &Cube| cube.fields().iter().map(part).product::<f64>();
        both.map(|space| space.cubes().iter().map(of).sum::<f64>()).sum()
    }
}

/// The groups of a chain's traffic classes.
pub struct Grouping {
    /// By group.
    groups: Vec<Vec<Together>>,
    /// What is allocated, to each group from its share.
    owned: Vec<OwnedPorts>,
}

/// Devices that are not opened; it is noted which element receives from which.
struct Noted {
    closed: Closed,
    inputs: BTreeMap<String, String>,
}

impl Devices for Noted {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        self.closed.open(request)
    }

    fn open_for(&mut self, element: &str, of: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        if let DeviceRequest::Interface { name, receive: true } = of {
            self.inputs.insert(element.to_string(), name.clone());
        }
        self.open(of)
    }
}

impl Grouping {
    /// Groups the classes of a configuration: those that share a table of flows stay together, the
    /// others are spread evenly, and halved until there are as many groups as are wanted. Without
    /// a wish, there is one for each class, and at least one for each worker.
    ///
    /// # Errors
    /// A message.
    pub fn of(
        configuration: &Configuration,
        wanted: Option<usize>,
        workers: usize,
    ) -> Result<Self, String> {
        Self::meaning(configuration, None, wanted, workers)
    }

    /// So many groups of a chain that runs, by what its elements mean now. What is of traffic that was in a group
    /// before is in it again, so that flows stay where they are.
    ///
    /// # Errors
    /// A message.
    pub fn now(
        configuration: &Configuration,
        models: &[Model],
        (groups, workers): (usize, usize),
        before: Option<&Self>,
    ) -> Result<Self, String> {
        let models = Some(models.to_vec());
        let mut grouping = Self::meaning(configuration, models, Some(groups), workers)?;
        grouping.groups.resize_with(groups, Vec::new);
        if let Some(before) = before {
            grouping.stay(before);
        }
        Ok(grouping)
    }

    fn stay(&mut self, before: &Self) {
        let all: Vec<Together> = self.groups.iter_mut().flat_map(std::mem::take).collect();
        let mut new = Vec::new();
        for together in all {
            let share = |group| before.members(group).map(|member| together.shares(member)).sum();
            let shares = (0..self.groups.len()).map(|group| (share(group), group));
            let most = shares.max_by(|one: &(f64, usize), other| one.0.total_cmp(&other.0));
            match most.filter(|(share, _)| *share > 0.0) {
                Some((_, group)) => self.groups[group].push(together),
                None => new.push(together),
            }
        }
        for together in new {
            if let Some(least) = self.groups.iter_mut().min_by_key(|group| group.len()) {
                least.push(together);
            }
        }
    }

    fn meaning(
        configuration: &Configuration,
        models: Option<Vec<Model>>,
        wanted: Option<usize>,
        workers: usize,
    ) -> Result<Self, String> {
        let (chain, mut sources, mut files) = configuration.parts();
        let mut found = Vec::new();
        let name = configuration.name();
        let beside = Path::new(name).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let mut noted = Noted { closed: Closed::beside(beside), inputs: BTreeMap::new() };
        let made = compiler::instantiate(&chain, &mut sources, &mut files, &mut found);
        let Some(mut made) = made.filter(|_| !has_errors(&found)) else {
            // It is told when the chain is made to run.
            return Ok(Self { groups: vec![Vec::new()], owned: Vec::new() });
        };
        made.initialize(&chain, &mut sources, &mut files, &mut noted, &mut found);
        let graph = &chain.graph;
        let all = || made.elements.iter().zip(&graph.nodes);
        let as_configured = || made.elements.iter().map(|element| element.model()).collect();
        let models: Vec<Model> = models.unwrap_or_else(as_configured);
        let found_by_owned: BTreeSet<&str> = all()
            .filter(|(element, _)| element.owns_all_flows())
            .map(|(_, node)| node.name.as_str())
            .collect();
        let mut owned: Vec<OwnedPorts> = Vec::new();
        for own in made.elements.iter().flat_map(|element| element.owned()) {
            if !owned.contains(&own) {
                owned.push(own);
            }
        }
        let mut members = Vec::new();
        for program in &compiler::synthesize(graph, &models).programs {
            let feeders = graph.predecessors(program.entry).map(|port| port.node);
            let names = feeders.filter_map(|node| noted.inputs.get(&graph.nodes[node].name));
            let classes = traffic_classes(program, graph, &models);
            for input in names {
                for class in &classes {
                    let mut class = class.clone();
                    class.tables.retain(|table| !found_by_owned.contains(table.as_str()));
                    members.push(Member { input: input.clone(), class, halved: 0 });
                }
            }
        }
        let mut together = join(members);
        let wanted =
            wanted.unwrap_or_else(|| together.len().clamp(workers, USUAL_GROUPS.max(workers)));
        halve(&mut together, wanted);
        let count = wanted.min(together.len()).max(1);
        let mut groups: Vec<Vec<Together>> = (0..count).map(|_| Vec::new()).collect();
        for (i, members) in together.into_iter().enumerate() {
            groups[i % count].push(members);
        }
        Ok(Self { groups, owned })
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    fn members(&self, group: usize) -> impl Iterator<Item = &Member> {
        self.groups.get(group).into_iter().flatten().flat_map(|together| &together.0)
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        (0..self.groups()).map(|group| self.members(group).count()).sum()
    }

    /// What is to be tagged as a group. Answers to what translators allocate take precedence.
    pub fn tagged(&self, group: usize, tags: Tags, workers: usize) -> Tagged {
        let classes = |member: &Member| -> Vec<Class> {
            let cubes = member.class.space.cubes().iter();
            cubes.map(|cube| Class { input: member.input.clone(), fields: fields(cube) }).collect()
        };
        let part = WorkerShare { index: 0, count: workers, groups: self.groups() };
        let share = |low, high| part.share(group as u16 + 1, low, high);
        let answer = |own: &OwnedPorts| {
            let (mut addresses, mut ports) =
                (own.addresses, (own.ports.0.into(), own.ports.1.into()));
            let of = if own.by_address() { &mut addresses } else { &mut ports };
            *of = share(of.0, of.1)?;
            let addresses = (Ipv4Addr::from_bits(addresses.0), Ipv4Addr::from_bits(addresses.1));
            Some(Answers { addresses, ports })
        };
        Tagged {
            tag: tags.of(group).to_string(),
            classes: self.members(group).flat_map(classes).collect(),
            answers: self.owned.iter().filter_map(answer).collect(),
        }
    }
}

/// Brings those together that share a table of flows.
fn join(members: Vec<Member>) -> Vec<Together> {
    let mut all: Vec<(BTreeSet<String>, Together)> = Vec::new();
    for member in members {
        let mut tables = member.class.tables.clone();
        let mut together = Together(vec![member]);
        // Those that it connects become one, where the first of them stood.
        let mut place = None;
        let mut i = 0;
        while i < all.len() {
            if all[i].0.is_disjoint(&tables) {
                i += 1;
                continue;
            }
            let (more, mut others) = all.remove(i);
            tables.extend(more);
            others.0.append(&mut together.0);
            together = others;
            place = place.or(Some(i));
        }
        all.insert(place.unwrap_or(all.len()), (tables, together));
    }
    all.into_iter().map(|(_, together)| together).collect()
}

/// Halves classes that are alone until there are so many, or none can be halved.
fn halve(all: &mut Vec<Together>, wanted: usize) {
    let mut stuck = BTreeSet::new();
    while all.len() < wanted {
        let can_be = |(i, together): &(usize, &Together)| match &together.0[..] {
            [one] => {
                one.class.tables.is_empty() && one.halved < MOST_HALVINGS && !stuck.contains(i)
            }
            _ => false,
        };
        let least = all.iter().enumerate().filter(can_be).min_by_key(|(_, t)| t.0[0].halved);
        let Some((i, together)) = least else { return };
        let Member { input, class, halved } = &together.0[0];
        let mut bits = *halved..MOST_HALVINGS;
        let Some((bit, [one, other])) =
            bits.find_map(|bit| class.halves(bit).map(|halves| (bit, halves)))
        else {
            stuck.insert(i);
            continue;
        };
        let member = |class| Member { input: input.clone(), class, halved: bit + 1 };
        let (one, other) = (member(one), member(other));
        all[i] = Together(vec![one]);
        all.push(Together(vec![other]));
    }
}

/// Where the type of an ICMP message is, where ports are otherwise: the field of a message's protocol,
/// its number, where its type is, and the name of that.
const ICMP_TYPES: [(Field, u8, Field, &str); 2] = [
    (IP_PROTO.field, ip_protocol::ICMP, ICMP_TYPE.field, "icmp.type"),
    (IP6_NEXT.field, ip_protocol::ICMPV6, ICMP6_TYPE.field, "icmp6.type"),
];

/// What of a frame must be how: for each field the runs of numbers that it can be, or of some of
/// its bits, counted from the lowest.
fn fields(cube: &Cube) -> Vec<FieldRanges> {
    let family = Family::of(cube);
    let of_icmp = ICMP_TYPES.iter().find(|(protocol, number, ..)| {
        cube.get(*protocol).is_some_and(|set| set.as_single() == Some((*number).into()))
    });
    let said = |(field, set): &(Field, IntervalSet)| {
        if let Some((.., name)) = of_icmp.filter(|(_, _, place, _)| place == field) {
            let number = |n: u128| Bound::Number(n as u64);
            let ranges = set.intervals().iter().map(|&(from, to)| (number(from), number(to)));
            return Some(FieldRanges {
                field: name.to_string(),
                ranges: ranges.collect(),
                bits: None,
            });
        }
        // Ethernet's type says it already.
        if *field == IP_VERSION.field && cube.get(ETH_TYPE.field).is_some() && family.is_some() {
            return None;
        }
        let mut known = FIELDS.iter().filter(|known| known.holds(*field));
        let known = known.find(|known| known.of.is_none() || known.of == family)?;
        let low = known.field.offset + known.field.width - field.offset - field.width;
        let is_whole = field.width == known.field.width;
        let number = |n: u128| match (known.field.width, is_whole) {
            (128, true) => Bound::Text(Ipv6Addr::from_bits(n).to_string()),
            (128, false) if field.width > 64 => Bound::Text(format!("{n:#x}")),
            (32, true) => Bound::Text(Ipv4Addr::from_bits(n as u32).to_string()),
            _ => Bound::Number(n as u64),
        };
        let ranges = set.intervals().iter().map(|&(from, to)| (number(from), number(to)));
        let bits = (!is_whole).then_some(Bits { lowest: low, count: field.width });
        Some(FieldRanges { field: known.name().to_string(), ranges: ranges.collect(), bits })
    };
    cube.fields().iter().filter_map(said).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn shown(grouping: &Grouping, group: usize, tags: Tags) -> Value {
        serde_json::to_value(grouping.tagged(group, tags, 2)).unwrap()
    }

    const FIREWALL: &str = "FromDevice(lan) -> Strip(14) -> CheckIPHeader
          -> f :: IPFilter(deny src host 10.0.0.66, allow tcp dst port 80, allow udp dst port 53, deny all)
          -> DecIPTTL -> c :: IPClassifier(tcp, udp);
        c[0] -> nat :: IPRewriter(NAT, INPUT1) -> Unstrip(14) -> ToDevice(wan);
        c[1] -> Unstrip(14) -> udp :: ToDevice(wan);
        nat[1] -> Unstrip(14) -> back :: ToDevice(lan);
        FromDevice(wan) -> Strip(14) -> CheckIPHeader -> IPClassifier(tcp) -> [1] nat;";

    fn grouped(chain: &str, wanted: Option<usize>) -> Grouping {
        let read = Configuration::of_text("chain", chain, &Default::default());
        Grouping::of(&read.unwrap(), wanted, 2).unwrap()
    }

    fn inputs(grouping: &Grouping) -> Vec<Vec<&str>> {
        let of = |group| grouping.members(group).map(|member| member.input.as_str()).collect();
        (0..grouping.groups()).map(of).collect()
    }

    #[test]
    fn classes_are_groups_of_their_own_where_answers_are_found_by_what_was_given_out() {
        let chain = FIREWALL.replace("NAT", "pattern 1.2.3.4 1024-65535 - - 0 1");
        let grouping = grouped(&chain.replace("INPUT1", "drop"), None);
        assert_eq!(inputs(&grouping), [["lan"], ["lan"], ["wan"]]);
        let tags = Tags::Vlan(100);
        let all: Vec<Value> = (0..3).map(|group| shown(&grouping, group, tags)).collect();
        let first = json!({
            "tag": "100",
            "classes": [{ "in": "lan", "fields": [
                { "field": "ip.version", "ranges": [[4, 4]] },
                { "field": "ip.frag", "ranges": [[0, 0]] },
                { "field": "ip.proto", "ranges": [[6, 6]] },
                { "field": "ip.src", "ranges": [["0.0.0.0", "10.0.0.65"], ["10.0.0.67", "255.255.255.255"]] },
                { "field": "transport.dport", "ranges": [[80, 80]] },
            ] }],
            "answers": [{ "ip.dst": ["1.2.3.4", "1.2.3.4"], "transport.dport": [26828, 39730] }],
        });
        assert_eq!(all[0], first);
        assert_eq!(all[2]["answers"][0]["transport.dport"][1], 65535);
    }

    #[test]
    fn what_shares_flows_that_only_it_knows_stays_together() {
        for spec in ["pattern - - - - 0 1", "keep 0 1"] {
            let chain = FIREWALL.replace("NAT", spec).replace("INPUT1", "drop");
            let grouping = grouped(&chain, None);
            assert_eq!(inputs(&grouping), [vec!["lan", "wan"], vec!["lan"]], "{spec}");
            // Only the class of UDP can be halved.
            let halved = grouped(&chain, Some(4));
            assert_eq!(
                inputs(&halved),
                [vec!["lan", "wan"], vec!["lan"], vec!["lan"], vec!["lan"]]
            );
        }
    }

    #[test]
    fn traffic_stays_in_its_group_when_rules_change() {
        let chain = |rules: &[&str]| {
            let outputs = (0..rules.len())
                .map(|i| format!("c[{i}] -> Unstrip(14) -> o{i} :: ToDevice(out{i});\n"));
            format!(
                "FromDevice(in) -> Strip(14) -> CheckIPHeader -> c :: IPClassifier({});\n{}",
                rules.join(", "),
                outputs.collect::<String>()
            )
        };
        let of = |grouping: &Grouping, address: [u8; 4]| {
            let address = u128::from(Ipv4Addr::from(address).to_bits());
            let value = |field: Field| match field.offset {
                112 => Some(4),
                240..272 => Some(address >> (272 - field.offset - field.width) & field.max()),
                _ => Some(0),
            };
            let has = |group: &usize| {
                grouping.members(*group).any(|m| m.class.space.contains(value) == Some(true))
            };
            let all: Vec<usize> = (0..grouping.groups()).filter(has).collect();
            let [group] = all[..] else { panic!("{address:x} is of {all:?}") };
            group
        };
        let rules = ["dst net 10.0.0.0/8", "dst net 11.0.0.0/8", "dst net 12.0.0.0/8"];
        let before = grouped(&chain(&rules), Some(3));
        // One more class before the others, and the first of them less; a class that is new.
        let rules =
            ["dst host 12.0.0.1", "dst net 13.0.0.0/8", "dst net 11.0.0.0/8", rules[2], rules[0]];
        let mut after = grouped(&chain(&rules), Some(3));
        let moved = |after: &Grouping| {
            let all = [[10, 0, 0, 1], [11, 0, 0, 1], [12, 0, 0, 1], [12, 9, 9, 9]];
            all.into_iter().filter(|to| of(after, *to) != of(&before, *to)).count()
        };
        assert!(moved(&after) > 0, "numbers alone would do");
        after.stay(&before);
        assert_eq!(moved(&after), 0);
        assert_eq!(after.members(of(&after, [12, 0, 0, 1])).count(), 2);
        of(&after, [13, 0, 0, 1]);
    }

    #[test]
    fn classes_of_ip6_are_told_and_halved_by_its_addresses() {
        let chain = "FromDevice(lan) -> Classifier(12/86dd) -> Strip(14) -> CheckIP6Header
              -> GetIP6Address(24) -> r :: LookupIP6Route(2001:db8::/32 0, fd00::/8 1);
            r[0] -> Unstrip(14) -> ToDevice(wan); r[1] -> Unstrip(14) -> other :: ToDevice(lan);";
        let told = |grouping: &Grouping| -> Vec<Value> {
            (0..grouping.groups()).map(|group| shown(grouping, group, Tags::Mac)).collect()
        };
        let whole = told(&grouped(chain, None));
        assert_eq!(whole.len(), 2);
        let field = |group: &Value, at: usize| group["classes"][0]["fields"][at].clone();
        assert_eq!(
            field(&whole[0], 0),
            json!({ "field": "eth.type", "ranges": [[0x86dd, 0x86dd]] })
        );
        let last = "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(
            field(&whole[0], 2),
            json!({ "field": "ip6.dst", "ranges": [["2001:db8::", last]] })
        );
        let halved = told(&grouped(chain, Some(4)));
        assert_eq!(halved.len(), 4);
        let bits: Vec<Value> = halved.iter().map(|group| field(group, 2)).collect();
        let of = |bit: u8| json!({ "field": "ip6.src", "ranges": [[bit, bit]], "bits": { "lowest": 0, "count": 1 } });
        assert_eq!(bits, [of(0), of(0), of(1), of(1)], "{bits:?}");
    }

    #[test]
    fn no_packet_is_of_two_classes_and_halves_are_all_of_a_class() {
        let chain = FIREWALL.replace("NAT", "pattern 1.2.3.4 1024-65535 - - 0 1");
        let chain = chain.replace("INPUT1", "drop");
        let (few, many) = (grouped(&chain, None), grouped(&chain, Some(16)));
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..5000 {
            let (source, port) = (random.u32(..), [80, 53, 9][random.usize(..3)]);
            let protocol = [6, 17, 1][random.usize(..3)];
            let source = if random.bool() { 0x0a00_0042 } else { source };
            let value = |field: Field| {
                let (of, from, width) = match field.offset {
                    112..116 => (4, 112, 4),
                    184..192 => (protocol, 184, 8),
                    208..240 => (u128::from(source), 208, 32),
                    288..304 => (port, 288, 16),
                    _ => return Some(0),
                };
                let low = from + width - field.offset - field.width;
                Some(of >> low & field.max())
            };
            let classes = |grouping: &Grouping| {
                let all = (0..grouping.groups()).flat_map(|group| grouping.members(group));
                let of_lan = all.filter(|member| member.input == "lan");
                of_lan.filter(|m| m.class.space.contains(value) == Some(true)).count()
            };
            let allowed = matches!((protocol, port), (6, 80) | (17, 53)) && source != 0x0a00_0042;
            assert_eq!((classes(&few), classes(&many)), (allowed.into(), allowed.into()));
        }
    }
}
