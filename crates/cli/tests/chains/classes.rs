//! The traffic classes of large chains: each packet that leaves is of one of them, and leaves as it
//! tells.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path as Folder, PathBuf};

use compiler::classes::{TrafficClass, traffic_classes};
use engine::session::Path;
use fastrand::Rng;
use ir::program::{Atom, End, Program, Step, StepId, Term, TermId, interp};
use ir::{Base, Field, Graph, IntervalSet, Model, NodeId, Reason, Store};
use net::checksum::checksum;
use net::{Packet, Pool};

use crate::support::start;
use crate::tables::programs;
use lab::{cases, shared};

/// A program and the classes of what comes to its entry.
pub type Programmed = (Program, Vec<TrafficClass>);

/// What a chain became, and the classes of its traffic.
pub struct Classified {
    graph: Graph,
    state: Store,
    pub programs: Vec<Programmed>,
}

/// The step that a packet came to last.
struct Ended {
    step: StepId,
}

impl interp::Environment for Ended {
    fn now(&self) -> u64 {
        1_000_000_000_000
    }

    fn note(&mut self, _: NodeId, _: Reason) {}

    fn reached(&mut self, step: StepId) {
        self.step = step;
    }
}

/// Bits of a frame; there are zeros behind it.
fn bits(frame: &[u8], field: Field) -> Option<u128> {
    assert_eq!(field.base, Base::Data);
    let bit = |at: u16| {
        let byte = frame.get(usize::from(at / 8)).copied().unwrap_or(0);
        u128::from(byte >> (7 - at % 8) & 1)
    };
    Some((field.offset..field.offset + field.width).fold(0, |all, at| all << 1 | bit(at)))
}

/// Writes bits of a frame that are there.
fn set_bits(frame: &mut [u8], field: Field, value: u128) {
    for i in 0..field.width {
        let at = field.offset + field.width - 1 - i;
        if let Some(byte) = frame.get_mut(usize::from(at / 8)) {
            let mask = 1 << (7 - at % 8);
            *byte = *byte & !mask | if value >> i & 1 == 1 { mask } else { 0 };
        }
    }
}

impl Classified {
    /// The traffic classes of programs, and state that they may find.
    pub fn new(graph: &Graph, models: &[Model], state: &Store, programs: &[Program]) -> Self {
        let (graph, mut state) = (graph.clone(), state.clone());
        for (model, node) in models.iter().zip(&graph.nodes) {
            for declared in &model.state {
                state.entry(&node.name, declared);
            }
        }
        let with_classes =
            |program: &Program| (program.clone(), traffic_classes(program, &graph, models));
        let programs = programs.iter().map(with_classes).collect();
        Self { graph, state, programs }
    }

    /// The classes that a frame is of.
    fn classes<'a>(classes: &'a [TrafficClass], frame: &[u8]) -> Vec<&'a TrafficClass> {
        let is_in =
            |class: &&TrafficClass| class.space.contains(|field| bits(frame, field)) == Some(true);
        classes.iter().filter(is_in).collect()
    }

    /// Where a packet of these classes may leave: the elements.
    fn places(&self, program: &Program, classes: &[&TrafficClass]) -> BTreeSet<&str> {
        let exits = classes.iter().flat_map(|class| &class.exits);
        let place = |exit: &StepId| match program.step(*exit) {
            Step::Exit(exit) => match exit.end {
                End::Push { to, .. } => Some(self.graph.nodes[to.node].name.as_str()),
                End::Drop { .. } | End::Handoff { .. } => None,
            },
            _ => panic!("no exit"),
        };
        exits.filter_map(place).collect()
    }

    /// Takes a packet through a program; the element that it leaves by, and those that its class
    /// tells of.
    ///
    /// # Errors
    /// A message, if its class is wrong.
    pub fn examine(
        &self,
        program: &Programmed,
        mut packet: Packet,
    ) -> Result<(Option<&str>, BTreeSet<&str>), String> {
        let (program, classes) = program;
        let frame = packet.data().to_vec();
        let of = Self::classes(classes, &frame);
        let mut end = Ended { step: StepId(0) };
        let exit = interp::interpret(program, &mut packet, &mut self.state.clone(), &mut end)
            .map_err(|fault| fault.to_string())?;
        let left = match exit.end {
            End::Push { to, .. } => {
                let node = &self.graph.nodes[to.node];
                (node.outputs.is_empty() || node.class == "Queue").then_some(node.name.as_str())
            }
            End::Drop { .. } | End::Handoff { .. } => None,
        };
        if of.len() > 1 {
            return Err(format!("of {} classes: {frame:02x?}", of.len()));
        }
        if left.is_some() && !of.iter().any(|class| class.exits.contains(&end.step)) {
            return Err(format!("leaves by {left:?} and is of {} classes: {frame:02x?}", of.len()));
        }
        Ok((left, self.places(program, &of)))
    }
}

/// A number of a set, often its first or last.
fn member(set: &IntervalSet, random: &mut Rng) -> u128 {
    let Some(&(low, high)) = random.choice(set.intervals()) else { return 0 };
    match random.u8(..4) {
        0 => low,
        1 => high,
        _ => random.u128(low..=high),
    }
}

/// What a program asks of bytes: sets of numbers of them.
enum Ask<'a> {
    Field(Field, Vec<&'a IntervalSet>),
    Rules(&'a [TermId], &'a [ir::program::ClassifyRule]),
}

/// Makes frames that a program tells apart.
struct Frames<'a> {
    program: &'a Program,
    asks: Vec<Ask<'a>>,
}

impl<'a> Frames<'a> {
    fn of(program: &'a Program) -> Self {
        let mut asks = Vec::new();
        for step in &program.steps {
            let (term, sets) = match step {
                Step::Test { atom: Atom::Test(term, set), .. } => (term, vec![&**set]),
                Step::Switch { on, cases, .. } => (on, cases.iter().map(|case| &case.0).collect()),
                Step::Classify { keys, rules, .. } => {
                    asks.push(Ask::Rules(keys, rules));
                    continue;
                }
                _ => continue,
            };
            if let Term::Input(field) = program.term(*term)
                && field.base == Base::Data
            {
                asks.push(Ask::Field(*field, sets));
            }
        }
        Self { program, asks }
    }

    /// An ordinary frame of TCP or UDP, then with some numbers that the program asks for.
    fn frame(&self, random: &mut Rng) -> Vec<u8> {
        let is_ip6 = random.bool();
        let mut frame: Vec<u8> = (0..14 + 60).map(|_| random.u8(..)).collect();
        let protocol = [6, 17, 6, 17, 1, 58][random.usize(..6)];
        if is_ip6 {
            frame[12..14].copy_from_slice(&[0x86, 0xdd]);
            frame[14] = 0x60;
            frame[18..20].copy_from_slice(&[0, 20]);
            (frame[20], frame[21], frame[22]) = (protocol, 64, 0x20);
        } else {
            frame[12..14].copy_from_slice(&[8, 0]);
            frame[14] = if random.u8(..16) == 0 { 0x46 } else { 0x45 };
            frame[16..18].copy_from_slice(&[0, 60]);
            frame[20..22].fill(0);
            (frame[22], frame[23]) = (64, protocol);
            frame[26] &= 0x7f;
        }
        for _ in 0..random.usize(..4) {
            match random.choice(&self.asks) {
                Some(Ask::Field(field, sets)) => {
                    let set = random.choice(sets).copied();
                    set_bits(&mut frame, *field, set.map_or(0, |set| member(set, random)));
                }
                Some(Ask::Rules(keys, rules)) => {
                    let cubes = random.choice(*rules).map(|rule| &rule.cubes);
                    let cube = cubes.and_then(|cubes| random.choice(&**cubes));
                    for (key, set) in cube.into_iter().flatten() {
                        if let Term::Input(field) = self.program.term(keys[usize::from(*key)]) {
                            set_bits(&mut frame, *field, member(set, random));
                        }
                    }
                }
                None => {}
            }
        }
        if !is_ip6 && random.u8(..20) > 0 {
            let end = 14 + usize::from(frame[14] & 15) * 4;
            frame[24..26].fill(0);
            let sum = checksum(&frame[14..end.max(34)]);
            frame[24..26].copy_from_slice(&sum.to_be_bytes());
        }
        if random.u8(..20) == 0 {
            frame.truncate(random.usize(14..frame.len()));
        }
        frame
    }
}

/// What random packets of a chain came to.
#[derive(Debug, Default)]
struct Came {
    /// By the element that they left by, and those that their class may leave by.
    left: BTreeMap<(String, Vec<String>), usize>,
    /// Those that did not leave: of a class, and of none.
    dropped: [usize; 2],
}

impl Came {
    /// Of the packets that left, the share whose class leaves as they did alone.
    fn distinguished(&self) -> f64 {
        let all: usize = self.left.values().sum();
        let alone: usize =
            self.left.iter().filter(|((_, may), _)| may.len() == 1).map(|l| l.1).sum();
        alone as f64 / all as f64
    }

    fn places(&self) -> BTreeSet<&str> {
        self.left.keys().map(|(place, _)| place.as_str()).collect()
    }
}

/// Takes random packets through a chain; `CASES` asks for more.
fn come(text: &str, folder: &Folder) -> Came {
    let mut started = start("classes", text, folder, Path::Native)
        .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
    let programs = programs(&mut started);
    let graph = &started.chain.graph;
    let mut model = |name: &str| started.router.element(name).expect("an element").model();
    let models: Vec<Model> = graph.nodes.iter().map(|node| model(&node.name)).collect();
    let classified = Classified::new(graph, &models, &started.router.state(), &programs);
    let [program] = &classified.programs[..] else { panic!("one program") };
    let frames = Frames::of(&program.0);
    let (mut random, mut pool, mut came) = (Rng::with_seed(1), Pool::new(), Came::default());
    for _ in 0..cases(2000) {
        let packet = pool.packet(&frames.frame(&mut random));
        match classified.examine(program, packet).unwrap_or_else(|why| panic!("{why}")) {
            (Some(left), places) => {
                let may = places.into_iter().map(str::to_string).collect();
                *came.left.entry((left.to_string(), may)).or_default() += 1;
            }
            (None, places) => came.dropped[usize::from(places.is_empty())] += 1,
        }
    }
    let cubes: usize = program.1.iter().map(|class| class.space.cubes().len()).sum();
    eprintln!("{} classes, {cubes} cubes: {came:?}, {}", program.1.len(), came.distinguished());
    came
}

/// A folder with files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).expect("a file"));
    folder
}

fn unpacked(file: PathBuf) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(file).expect("a file");
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("it can be read");
    text
}

/// Queues that packets leave to, behind a router's outputs.
fn queues(router: &str, outputs: usize) -> String {
    let queue = |i| format!("{router}[{i}] -> {router}{i} :: Queue -> Idle;\n");
    (0..outputs).map(queue).collect()
}

/// Routes to so many networks of a real table.
fn routes(networks: usize, is_ip6: bool, outputs: usize) -> Option<String> {
    let table = unpacked(shared("data/prefixes")?.join("rib-2015-11-01.tsv.gz"));
    let all: Vec<&str> = table
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.contains('/')))
        .filter(|network| network.contains(':') == is_ip6)
        .collect();
    let step = all.len() / networks;
    let mut routes = String::new();
    for (i, network) in all.iter().step_by(step).take(networks).enumerate() {
        let more = if i == 0 { "" } else { ", " };
        write!(routes, "{more}{network} {}", i * 7 % outputs).expect("text");
    }
    Some(routes)
}

const IP4: &str = "Strip(14) -> CheckIPHeader -> GetIPAddress(16)";
const IP6: &str = "Strip(14) -> CheckIP6Header -> GetIP6Address(24)";

#[test]
fn routes_of_both_versions_are_distinguished() {
    let (Some(four), Some(six)) = (routes(5000, false, 3), routes(5000, true, 3)) else { return };
    let text = format!(
        "in0 :: Idle -> kind :: Classifier(12/0800, 12/86dd, -); kind[2] -> Discard;
         kind[0] -> {IP4} -> four :: RadixIPLookup({four}); kind[1] -> {IP6} -> six :: LookupIP6Route({six});
         {} {}",
        queues("four", 3),
        queues("six", 3)
    );
    let came = come(&text, Folder::new("."));
    assert_eq!(came.places().len(), 6);
    assert_eq!(came.distinguished(), 1.0);
}

/// Lists with rules of four kinds, by what they say of the destination.
#[test]
fn rules_of_long_lists_are_distinguished() {
    let Some(lists) = shared("data/isp-acl") else { return };
    for list in ["acl1-8500", "fw1-8500", "ipc1-8500"] {
        let text = unpacked(lists.join(format!("{list}.ipfilter.gz")));
        let mut rules = String::new();
        for rule in text.lines() {
            let words = rule.split_whitespace().skip_while(|word| *word != "dst").skip(1);
            let kind = words.take(2).flat_map(str::bytes).map(u32::from).sum::<u32>() % 4;
            writeln!(rules, "{}", rule.replace("allow", &kind.to_string())).expect("text");
        }
        let folder = folder("classes", &[(list, &rules)]);
        let text =
            format!("in0 :: Idle -> {IP4} -> f :: IPFilter(file {list}); {}", queues("f", 4));
        let came = come(&text, &folder);
        assert_eq!(came.places().len(), 4);
        // Of the others, many rules overlap that lead elsewhere: no packet is of a wrong class, which
        // `come` sees to, but most classes are of several outputs.
        let is_told = list != "acl1-8500" || came.distinguished() > 0.95;
        assert!(is_told, "{list}: {}", came.distinguished());
    }
}

/// A rule that also asks for what no switch matches leaves packets to the rules behind it.
#[test]
fn rules_that_ask_for_more_are_not_sure() {
    let rule = |i: u8| {
        let pair = format!("src 10.{i}.0.0/16 && dst 10.{}.0.0/16", 255 - i);
        format!("{} {pair} && ip tos {}, {} {pair}", i % 2, 1 + i, 2 + i % 2)
    };
    let rules: Vec<String> = (0..64).map(rule).collect();
    let list = format!("IPFilter({}, drop all)", rules.join(", "));
    let came =
        come(&format!("in0 :: Idle -> {IP4} -> f :: {list}; {}", queues("f", 4)), Folder::new("."));
    assert_eq!(came.places().len(), 4);
}

/// What a list lets pass is routed.
#[test]
fn routes_behind_long_lists_are_distinguished() {
    let Some(lists) = shared("data/isp-acl") else { return };
    for list in ["acl1-8500", "fw1-8500", "ipc1-8500"] {
        let list = lists.join(format!("{list}.ipfilter.gz"));
        let text = format!(
            "in0 :: Idle -> {IP4} -> IPFilter(file {}) -> rt :: RadixIPLookup(0.0.0.0/0 0, 48.0.0.0/5 1, 64.0.0.0/2 1); {}",
            list.display(),
            queues("rt", 2)
        );
        let came = come(&text, Folder::new("/"));
        assert_eq!(came.distinguished(), 1.0);
    }
}

/// Fields of IPv6 that patterns of bytes look at, ports among them.
#[test]
fn bytes_of_ip6_are_distinguished() {
    let text = format!(
        "in0 :: Idle -> Classifier(12/86dd) -> k :: Classifier(20/06 56/0050, 20/06 56/01bb, 20/11 54/0035,
           22/20010db8, 38/fd%f0, -); {}",
        queues("k", 6)
    );
    let came = come(&text, Folder::new("."));
    assert_eq!(came.places().len(), 6);
    // Those that are too short go where none of these go.
    let first = ["k0", "k1", "k2"];
    for (_, may) in came.left.keys() {
        assert!(may.iter().filter(|place| first.contains(&place.as_str())).count() < 2, "{may:?}");
    }
}
