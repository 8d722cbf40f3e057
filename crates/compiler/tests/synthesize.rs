//! What chains become.

use std::sync::Arc;

use catena_compiler::{
    Options, Synthesis, Synthesizer, elaborate, instantiate, synthesize, synthesize_unsimplified,
};
use elements::configure::{Devices, Files};
use elements::device::{Device, DeviceRequest, Received};
use ir::model::Rule;
use ir::program::verify::is_well_formed;
use ir::program::{Atom, Barrier, Effect, End, Exit, Program, Step, StepId, Term, TermId};
use ir::{FileId, Graph, IntervalSet, Model, Op, Sources};
use net::{Batch, Header, Pool};

/// Devices that neither receive nor send.
struct Quiet;

impl Device for Quiet {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Ok(())
    }
}

impl Devices for Quiet {
    fn open(&mut self, _: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        Ok(Box::new(Quiet))
    }
}

struct NoFiles;

impl Files for NoFiles {
    fn read(&mut self, _: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        Err(format!("{path}: there are no files here"))
    }
}

fn chain(text: &str) -> (Graph, Vec<Model>) {
    let mut sources = Sources::new();
    let file = sources.add("chain.click", text);
    let mut diagnostics = Vec::new();
    let options = Options::default();
    let (chain, found) = elaborate(&mut sources, file, &options, &mut NoFiles);
    let chain = chain.unwrap_or_else(|| panic!("{found:?}"));
    let elements = instantiate(&chain, &mut sources, &mut NoFiles, &mut diagnostics);
    let mut elements = elements.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let ready =
        elements.initialize(&chain, &mut sources, &mut NoFiles, &mut Quiet, &mut diagnostics);
    assert!(ready, "{diagnostics:?}");
    let models = elements.elements.iter().map(|e| e.model()).collect();
    (chain.graph, models)
}

fn synthesis(text: &str) -> (Graph, Synthesis) {
    let (graph, models) = chain(text);
    let synthesis = synthesize(&graph, &models);
    for program in &synthesis.programs {
        let problems = ir::program::verify::verify(program);
        assert!(is_well_formed(program), "{problems:?}");
    }
    (graph, synthesis)
}

/// The only program of a chain.
fn program(text: &str) -> (Graph, Program) {
    let (graph, synthesis) = synthesis(text);
    assert_eq!(synthesis.notes, []);
    let [program] = &synthesis.programs[..] else {
        panic!("{} programs", synthesis.programs.len())
    };
    (graph, program.clone())
}

/// Steps of the path with the fewest steps to an exit that comes through the most inputs, of those that leave.
fn shortest_long_path(program: &Program) -> Vec<StepId> {
    let leaves = |exit: &Exit| matches!(exit.barrier, Some(Barrier::Opaque(_)));
    let leaving = || program.exits().map(|(_, exit)| exit).filter(|exit| leaves(exit));
    let longest = leaving().map(|exit| exit.visited.len()).max().expect("an exit");
    let mut paths: Vec<Option<Vec<StepId>>> = vec![None; program.steps.len()];
    for (i, step) in program.steps.iter().enumerate().rev() {
        let at = StepId(i as u32);
        paths[i] = match step {
            Step::Exit(exit) => (leaves(exit) && exit.visited.len() == longest).then(|| vec![at]),
            step => {
                let on = step.next().filter_map(|n| paths[n.0 as usize].clone());
                on.min_by_key(Vec::len).map(|mut path| {
                    path.insert(0, at);
                    path
                })
            }
        };
    }
    paths.remove(0).expect("a path")
}

const ROUTER: &str = "elementclass R { $ip |
    input -> Strip(14) -> CheckIPHeader(INTERFACES $ip/24) -> GetIPAddress(16)
        -> rt :: RadixIPLookup(20.0.0.0/16 0, 20.1.0.0/16 0, 0.0.0.0/0 1);
    rt[1] -> Discard;
    rt[0] -> DropBroadcasts -> dt :: DecIPTTL -> FixIPSrc($ip) -> fr :: IPFragmenter(1500)
        -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> output;
    dt[1] -> ICMPError($ip, timeexceeded) -> Discard;
    fr[1] -> ICMPError($ip, unreachable, needfrag) -> Discard;
}\n";

fn routers(count: usize) -> String {
    let chain: String = (1..=count).map(|i| format!("-> R(172.16.{i}.1) ")).collect();
    format!("{ROUTER} FromDump(in) {chain} -> ToDump(out);")
}

#[test]
fn ten_routers_ask_no_more_than_one() {
    let (_, one) = program(&routers(1));
    let (graph, ten) = program(&routers(10));
    let paths = [&one, &ten].map(|p| shortest_long_path(p).len());
    // Packets with options go on to the next router, too: they are distinguished from broken ones first.
    assert!(paths[1] <= paths[0] + 1, "{}", ten.text(&graph));
    // Of the packets that go the whole path, those whose source nothing asks to fix.
    let written = |e: &Exit| e.writes.bytes.iter().any(|w| w.offset == 26);
    let leaves = |e: &Exit| matches!(e.barrier, Some(Barrier::Opaque(_)));
    let all = ten.exits().map(|(_, e)| e).filter(|e| leaves(e) && !written(e));
    let exit = all.max_by_key(|e| e.visited.len()).expect("an exit");
    assert!(matches!(exit.end, End::Push { native: true, .. }), "{exit:?}");
    // Ten encapsulations, time-to-lives and checksums: each place is written once.
    let places: Vec<(i32, u8)> = exit.writes.bytes.iter().map(|w| (w.offset, w.length)).collect();
    assert_eq!(places, [(0, 14), (22, 1), (24, 2)]);
    assert_eq!(exit.writes.start, 0);
}

#[test]
fn a_time_to_live_expires_at_the_router_that_it_would() {
    let (graph, ten) = program(&routers(10));
    let reached: Vec<String> = ten
        .exits()
        .filter_map(|(_, exit)| match exit.end {
            End::Push { to, .. } => Some(graph.nodes[to.node].name.clone()),
            End::Drop { .. } | End::Handoff { .. } => None,
        })
        .filter(|name| name.contains("ICMPError"))
        .collect();
    for router in 2..=11 {
        let errors = reached.iter().filter(|n| n.starts_with(&format!("R@{router}/")));
        assert!(errors.count() >= 2, "router {router} of {reached:?}");
    }
}

fn nats(count: usize) -> String {
    let nat = |i| {
        format!(
            "-> Strip(14) -> CheckIPHeader -> rw{i} :: IPRewriter(pattern 30.0.{i}.1 1024-65535 - - 0 1);
             rw{i}[1] -> Discard; rw{i}[0] -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) "
        )
    };
    let chain: String = (1..=count).map(nat).collect();
    format!("FromDump(in) {chain} -> ToDump(out);")
}

#[test]
fn translators_are_looked_up_one_after_the_other_and_written_once() {
    let (graph, program) = program(&nats(3));
    let out = program.exits().map(|(_, e)| e).filter(|e| matches!(e.end, End::Push { .. }));
    let exit = out.max_by_key(|e| e.visited.len()).expect("an exit");
    let updates = exit.effects.iter().filter(|e| matches!(e, Effect::Update { .. }));
    assert_eq!(updates.count(), 3, "{}", program.text(&graph));
    let checksums: Vec<i32> = exit.writes.bytes.iter().map(|w| w.offset).collect();
    assert_eq!(checksums.iter().filter(|&&o| o == 24).count(), 1);
    // Of the second and third check of the header nothing is left: the first tells them.
    let asks = program.steps.iter().filter(|s| match s {
        Step::Test { element, .. } => graph.nodes[*element].class == "CheckIPHeader",
        _ => false,
    });
    let first = graph.find("CheckIPHeader@3").expect("the first check");
    for step in asks {
        assert!(matches!(step, Step::Test { element, .. } if *element == first), "{step:?}");
    }
}

#[test]
fn the_pool_of_a_translator_decides_what_is_asked_behind_it() {
    let (graph, program) = program(
        "FromDump(in) -> Strip(14) -> CheckIPHeader
            -> rw :: IPRewriter(pattern 203.0.113.1 1024-2047 - - 0 1);
         rw[0] -> pool :: IPFilter(0 src host 203.0.113.1 and src port >= 1024 and src port < 2048, 1 all)
            -> ToDump(out);
         pool[1] -> Discard; rw[1] -> Discard;",
    );
    let (pool, rw) = (graph.find("pool").expect("pool"), graph.find("rw").expect("rw"));
    for step in &program.steps {
        if let Step::Test { element, .. } | Step::Classify { element, .. } = step {
            assert_ne!(*element, pool, "{}", program.text(&graph));
        }
    }
    // Flows that another pool's rewriter left are the element's own business.
    let barriers = program.exits().filter(|(_, exit)| match exit.end {
        End::Push { to, native } => native && to.node == rw && exit.barrier.is_some(),
        End::Drop { .. } | End::Handoff { .. } => false,
    });
    assert!(barriers.count() >= 2, "{}", program.text(&graph));
}

#[test]
fn a_list_asks_nothing_that_was_decided_by_what_was_written() {
    let rules = |prefix: &str| -> String {
        (0..200).map(|i| format!("deny {prefix}.{i} && tcp dst port {i}, ")).collect()
    };
    let written = [
        ("src", "rw :: IPRewriter(pattern 203.0.113.1 1024-2047 - - 0 1); rw[1] -> Discard;"),
        ("src", "rw :: IPAddrRewriter(pattern 203.0.113.1-203.0.113.9 - 0 1); rw[1] -> Discard;"),
        ("src", "rw :: StoreIPAddress(203.0.113.1, src);"),
        (
            "dst",
            "servers :: RoundRobinIPMapper(- - 20.0.0.1 - 0 1, - - 20.0.0.2 8080 0 1);
             rw :: IPRewriter(servers); rw[1] -> Discard;",
        ),
    ];
    for (side, rewriter) in written {
        let chain = |rules| {
            program(&format!(
                "{rewriter} FromDump(in) -> Strip(14) -> CheckIPHeader -> IPClassifier(tcp)
                    -> rw -> list :: IPFilter({rules} allow all) -> ToDump(out);"
            ))
        };
        let asked = |(graph, program): (_, Program)| {
            let list = Graph::find(&graph, "list").expect("the list");
            let of = |step: &Step| match step {
                Step::Classify { element, keys, rules, .. } if *element == list => {
                    Some((keys.len(), rules.len()))
                }
                _ => None,
            };
            program.steps.iter().filter_map(of).max()
        };
        assert_eq!(asked(chain(rules(&format!("{side} host 10.0.0")))), None, "{rewriter}");
        // Of a list that is still needed, neither protocol nor that address are asked any more.
        let some = rules("src host 10.0.0") + &rules("dst host 10.0.0");
        let (keys, left) = asked(chain(some)).expect("other addresses are distinguished");
        assert!(left == 201 && keys <= 4, "{left} rules ask {keys} numbers: {rewriter}");
    }
}

/// Stages of classifiers that each fork a chain so many times; each path writes something of its
/// own, and they join again.
fn forks(stages: usize, paths: usize) -> String {
    let (mut classifiers, mut writes) = (String::new(), String::new());
    for i in 0..stages {
        let next = if i + 1 < stages { format!("c{}", i + 1) } else { "out".into() };
        let pattern = |path: usize| {
            let (byte, bit) = (12 + (i + path / 8) % 20, 1 << (path % 8));
            format!("{byte}/{bit:02x}%{bit:02x}")
        };
        let patterns: Vec<String> = (1..paths).map(pattern).collect();
        classifiers += &format!("c{i} :: Classifier({}, -);", patterns.join(", "));
        for path in 1..paths {
            writes += &format!("c{i}[{}] -> Paint({}) -> {next};", path - 1, (i + path) % 256);
        }
        writes += &format!("c{i}[{}] -> SetIPDSCP({}) -> {next};", paths - 1, i % 64);
    }
    format!(
        "out :: Counter -> ToDump(out); {classifiers} {writes}
         FromDump(in) -> Strip(14) -> CheckIPHeader -> c0;"
    )
}

#[test]
fn a_chain_whose_ways_multiply_is_cut_into_stages() {
    for (stages, paths) in [(32, 2), (150, 2), (20, 7)] {
        let (graph, synthesis) = synthesis(&forks(stages, paths));
        assert!(synthesis.programs.len() > 2);
        assert_eq!(synthesis.notes.len() + 1, synthesis.programs.len());
        for note in &synthesis.notes {
            assert!(note.message.contains("paths lead here and multiply"), "{note:?}");
            let begins = |p: &&Program| p.entry.node == note.element;
            let program = synthesis.programs.iter().find(begins).expect("a program begins there");
            assert!(program.steps.len() < 2000);
        }
        // Stages lead to one another through the programs, and the last to the end.
        let mut is_out = false;
        for (_, exit) in synthesis.programs.iter().flat_map(Program::exits) {
            if let End::Push { to, native } = exit.end {
                let begins = synthesis.programs.iter().any(|p| p.entry == to);
                assert!(native || begins, "{exit:?}");
                is_out |= graph.nodes[to.node].class == "ToDump";
            }
        }
        assert!(is_out);
    }
}

#[test]
fn the_work_is_bounded_however_long_a_chain_is() {
    let work = |stages| {
        let (graph, models) = chain(&forks(stages, 2));
        synthesize(&graph, &models).work
    };
    let (some, more) = (work(50), work(200));
    assert!(more < 5 * some, "{some} become {more}");
    let far = work(3000);
    assert!(far < 1_000_000, "{far}");
}

#[test]
fn a_long_way_is_cut_into_stages() {
    let chain = "-> Paint(1) ".repeat(1200);
    let (graph, synthesis) = synthesis(&format!("FromDump(in) {chain} -> ToDump(out);"));
    assert_eq!(synthesis.programs.len(), 3);
    for note in &synthesis.notes {
        assert_eq!(graph.nodes[note.element].class, "Paint");
        assert!(note.message.contains("more than 500 elements"), "{note:?}");
    }
}

#[test]
fn a_chain_that_leads_back_ends() {
    let text = "FromDump(in) -> a :: Paint(1) -> c :: Classifier(0/01, -);
        c[0] -> Strip(1) -> a; c[1] -> ToDump(out);";
    let (graph, synthesis) = synthesis(text);
    let back = synthesis.programs[0].exits().find(|(_, e)| e.barrier == Some(Barrier::Loop));
    let (_, exit) = back.expect("an exit that leads back");
    let End::Push { to, native: true } = exit.end else { panic!("{exit:?}") };
    assert_eq!(graph.nodes[to.node].name, "a");
}

#[test]
fn opaque_elements_are_barriers_between_programs() {
    let text = "FromDump(in) -> Strip(14) -> CheckIPHeader -> Queue -> Unqueue
        -> DecIPTTL -> q :: Queue -> ToDump(out);";
    let (graph, synthesis) = synthesis(text);
    let entries: Vec<&str> =
        synthesis.programs.iter().map(|p| graph.nodes[p.entry.node].class.as_str()).collect();
    assert_eq!(entries, ["Strip", "DecIPTTL"]);
}

#[test]
fn lists_of_rules_that_follow_each_other_are_told_of() {
    let rules = |what: &str| -> Vec<String> {
        (0..20).map(|i| format!("allow {what} port {i} && ip ttl {i}")).collect()
    };
    let text = format!(
        "FromDump(in) -> MarkIPHeader -> a :: IPFilter({}) -> b :: IPFilter({}) -> Discard;",
        rules("src").join(", "),
        rules("dst").join(", ")
    );
    let (graph, synthesis) = synthesis(&text);
    let told: Vec<(&str, &str)> = synthesis
        .notes
        .iter()
        .map(|note| (graph.nodes[note.element].name.as_str(), note.message.as_str()))
        .collect();
    assert_eq!(told, [("b", "its 20 rules are looked up behind the 20 of a: they would multiply")]);
}

#[test]
fn a_list_is_shown_once_however_many_of_its_rules_can_match_on_each_path() {
    let networks: Vec<String> = (0..20).map(|i| format!("src net 10.{i}.0.0/16")).collect();
    let pattern = |i: usize| format!("src net 10.{}.0.0/16 and dst port {i}", i % 3);
    let ports: Vec<String> = (0..20).map(pattern).collect();
    let paths: String = (0..21).map(|i| format!("a[{i}] -> Paint({i}) -> b;")).collect();
    let text = format!(
        "a :: IPClassifier({}, -); b :: IPFilter(allow {}, deny all) -> Discard;
         FromDump(in) -> MarkIPHeader -> a; {paths}",
        networks.join(", "),
        ports.join(", allow ")
    );
    let (graph, synthesis) = synthesis(&text);
    let [note] = &synthesis.notes[..] else { panic!("{:?}", synthesis.notes) };
    assert_eq!(graph.nodes[note.element].name, "b");
    assert!(note.message.starts_with("its 21 rules are looked up behind the 21 of a"), "{note:?}");
}

/// Lists of rules behind each other, of which packets that come to the second are known to be TCP or UDP.
fn filters(lists: [&[&str]; 2]) -> String {
    // The first rules ask all there is to ask, so that it is asked in the same order however lists change.
    let all = "src 1.2.3.4 && dst 1.2.3.4 && ip ttl 1 && dst port 9";
    let [first, second] = lists.map(|rules| rules.join(", "));
    format!(
        "FromDump(in) -> Strip(14) -> CheckIPHeader -> a :: IPFilter(allow tcp && {all}, {first}, deny all)
         -> b :: IPFilter(allow udp && {all}, {second}, deny all) -> ToDump(out);"
    )
}

#[test]
fn rules_are_exchanged_where_ways_do_not_depend_on_them() {
    let first: Vec<String> =
        (1..20).map(|i| format!("allow tcp && dst port {i}, allow udp && dst port 5{i}")).collect();
    let mut first: Vec<&str> = first.iter().map(String::as_str).collect();
    let second: Vec<String> = (1..20).map(|i| format!("allow src 10.0.0.{i} && udp")).collect();
    let mut second: Vec<&str> = second.iter().map(String::as_str).collect();
    let (graph, models) = chain(&filters([&first, &second]));
    let mut synthesizer = Synthesizer::new(graph.clone(), models);
    assert!(synthesizer.synthesize().work > 0);
    // A change, and whether paths stay what they are.
    type Change = fn(&mut Vec<&str>, &mut Vec<&str>);
    let changes: [(Change, bool); 9] = [
        (|first, _| first.insert(7, "deny tcp && src 7.7.7.7"), true),
        (|first, _| first.insert(0, "deny dst 7.7.7.7"), true),
        (
            |first, second| {
                first.remove(8);
                second.push("deny src 10.1.0.0/16 && tcp");
            },
            true,
        ),
        // No packet to this port comes to the second list any more.
        (|first, _| _ = first.remove(4), false),
        // Packets of another protocol come to it.
        (|first, _| first.insert(3, "allow icmp && dst 10.0.0.1"), false),
        (|first, _| _ = first.remove(3), false),
        // A rule that no packet can match that comes there.
        (|_, second| second.push("deny src 10.1.0.0/16 && icmp"), false),
        (|_, second| _ = second.pop(), false),
        // So few that they are tested one after the other.
        (|_, second| second.truncate(1), false),
    ];
    for (number, (change, stays)) in changes.into_iter().enumerate() {
        change(&mut first, &mut second);
        let (_, models) = chain(&filters([&first, &second]));
        let expected = synthesize(&graph, &models);
        for (element, model) in models.into_iter().enumerate() {
            synthesizer.change(element, model);
        }
        let synthesis = synthesizer.synthesize();
        assert_eq!(synthesis.work == 0, stays, "change {number}");
        assert_eq!(synthesis.notes, expected.notes, "change {number}");
        for (program, expected) in synthesis.programs.iter().zip(&expected.programs) {
            let [program, expected] = [program, expected].map(|p| p.text(&graph).to_string());
            assert_eq!(program, expected, "change {number}");
        }
    }
}

/// The rules of a model, list by list.
fn lists(model: &mut Model) -> Vec<&mut Arc<[Rule]>> {
    let mut waiting: Vec<&mut Op> = model.inputs.iter_mut().flatten().collect();
    let mut lists = Vec::new();
    while let Some(op) = waiting.pop() {
        match op {
            Op::Match { rules, .. } => lists.push(rules),
            op => waiting.extend(op.blocks_mut().flatten()),
        }
    }
    lists
}

/// What a number is, without the numbers of terms.
fn words(program: &Program, term: TermId) -> String {
    match program.term(term) {
        Term::Binary(op, a, b) => {
            format!("{op:?}({}, {})", words(program, *a), words(program, *b))
        }
        term => format!("{term:?}"),
    }
}

/// The program without its lists of rules, and these in an order that does not depend on which number is
/// asked first.
fn comparable(graph: &Graph, program: &Program) -> (String, Vec<String>) {
    let mut lists = Vec::new();
    let mut rest = program.clone();
    for step in &mut rest.steps {
        let Step::Classify { keys, rules, .. } = step else { continue };
        let key = |key: u8| words(program, keys[usize::from(key)]);
        for rule in rules.iter() {
            let of = |cube: &Vec<(u8, IntervalSet)>| {
                let mut tests: Vec<_> =
                    cube.iter().map(|(k, set)| (key(*k), set.clone())).collect();
                tests.sort();
                tests
            };
            let cubes: Vec<_> = rule.cubes.iter().map(of).collect();
            lists.push(format!("{} {}: {cubes:?}", rule.number, rule.arm));
        }
        let mut asked: Vec<String> = (0..keys.len() as u8).map(key).collect();
        asked.retain(|key| !key.starts_with("Const"));
        asked.sort();
        lists.push(format!("{asked:?}"));
        (*keys, *rules) = (Vec::new(), Arc::new([]));
    }
    // Names of terms count those of the lists.
    let text = rest.text(graph).to_string();
    let mut names = Vec::new();
    let words = text.split_inclusive(|c: char| !c.is_alphanumeric()).map(|word| {
        let is_name = word.strip_prefix('t').is_some_and(|rest| rest.starts_with(char::is_numeric));
        if !is_name {
            return word.to_owned();
        }
        let (name, end) =
            word.split_at(word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len()));
        let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        format!("t{at}{end}")
    });
    (words.collect(), lists)
}

#[test]
fn paths_that_rules_change_are_as_if_all_were_new() {
    let of = |protocol: &str, all: usize| -> Vec<String> {
        (1..=all).map(|i| format!("allow {protocol} && src 10.0.0.{i} && dst port {i}")).collect()
    };
    let mut rules = [of("tcp", 30), of("udp", 30)];
    let text = |rules: &[Vec<String>; 2]| {
        let [first, second] = rules.each_ref().map(|rules| rules.join(", "));
        format!(
            "FromDump(in) -> Strip(14) -> CheckIPHeader -> a :: IPFilter({first})
             -> b :: IPFilter({second}) -> ToDump(out);"
        )
    };
    let (graph, models) = chain(&text(&rules));
    let mut synthesizer = Synthesizer::new(graph.clone(), models);
    synthesizer.synthesize();
    // The list, where, and what comes there, or that what is there goes.
    let changes = [
        // All that the second list asks for comes to it, and then does not any more.
        (0, 20, Some("allow udp && dst 10.0.0.9")),
        (1, 20, Some("allow tcp && dst 10.0.0.9")),
        (0, 20, None),
        (1, 20, None),
        // Fields that no rule asked; the first to go leave places in the middle.
        (0, 3, Some("deny ip ttl 7")),
        (0, 9, Some("allow ip tos 4 && dst 10.1.1.1")),
        (0, 3, None),
        (1, 0, Some("deny ip ttl 7 && src 1.2.3.4")),
        (1, 0, None),
        // More than keys have room for: those places are taken, then packets distinguished.
        (0, 0, Some("allow ip ttl 8")),
        (0, 0, Some("deny src port 7")),
        (0, 0, Some("allow tcp opt syn")),
        (0, 0, Some("deny icmp type 8")),
        (0, 0, Some("deny ip vers 5")),
        (0, 0, Some("deny ip hl 9")),
        (0, 0, Some("deny tcp win 9")),
        (0, 0, None),
        (0, 0, None),
        (0, 0, None),
        // The first and the last rule that leads elsewhere.
        (1, 7, Some("deny udp && src 10.0.0.9")),
        (1, 7, None),
        (1, 30, Some("deny all")),
        (1, 30, None),
    ];
    for (number, (list, at, rule)) in changes.into_iter().enumerate() {
        match rule {
            Some(rule) => rules[list].insert(at, rule.to_owned()),
            None => _ = rules[list].remove(at),
        }
        let (_, mut models) = chain(&text(&rules));
        let expected = synthesize(&graph, &models);
        // Rules that were there are what they were, as if a handler had changed the list.
        for (model, known) in models.iter_mut().zip(synthesizer.models()) {
            let mut known = known.clone();
            for (rules, known) in lists(model).into_iter().zip(lists(&mut known)) {
                let shared = |rule: &Rule| {
                    let is_same =
                        |k: &&Rule| (&k.text, &k.when, k.arm) == (&rule.text, &rule.when, rule.arm);
                    known.iter().find(is_same).unwrap_or(rule).clone()
                };
                *rules = rules.iter().map(shared).collect();
            }
        }
        for (element, model) in models.into_iter().enumerate() {
            synthesizer.change(element, model);
        }
        let synthesis = synthesizer.synthesize();
        assert_eq!(synthesis.notes, expected.notes, "change {number}");
        assert_eq!(synthesis.programs.len(), expected.programs.len(), "change {number}");
        for (program, expected) in synthesis.programs.iter().zip(&expected.programs) {
            assert!(is_well_formed(program), "change {number}");
            let [program, expected] = [program, expected].map(|p| comparable(&graph, p));
            assert_eq!(program, expected, "change {number}");
        }
    }
}

#[test]
fn rules_with_many_alternatives_are_left_to_the_element() {
    let is_left = |alternatives: usize| {
        let ports: Vec<String> =
            (0..alternatives).map(|port| format!("src port {}", 2 * port)).collect();
        let (_, program) = program(&format!(
            "FromDump(in) -> Strip(14) -> CheckIPHeader
             -> IPFilter(allow {}, deny all) -> ToDump(out);",
            ports.join(" or ")
        ));
        program.exits().any(|(_, exit)| exit.barrier == Some(Barrier::TooManyAlternatives))
    };
    assert!(!is_left(270));
    assert!(is_left(2000));
}

#[test]
fn nothing_is_behind_a_rule_that_takes_all() {
    // No two rules of an action ask of the same.
    let rules: String = (1..20)
        .flat_map(|i| ["allow src 10.0.0", "deny dst 10.0.0"].map(|rule| format!("{rule}.{i}, ")))
        .collect();
    let list = |last: &str| {
        let more = "allow ip ttl 1, deny ip ttl 2, ";
        format!(
            "FromDump(in) -> Strip(14) -> CheckIPHeader -> IPFilter({rules}{more}{last}, allow ip ttl 3)
             -> ToDump(out);"
        )
    };
    let (graph, models) = chain(&list("deny all"));
    let mut synthesizer = Synthesizer::new(graph.clone(), models);
    synthesizer.synthesize();
    for (last, missed) in [
        ("deny all", false),
        ("allow all", false),
        ("allow ip ttl 4", true),
        ("deny all", false),
        ("deny all, deny ip ttl 5, allow all", false),
    ] {
        let (_, models) = chain(&list(last));
        let [expected] = &synthesize(&graph, &models).programs[..] else { panic!("{last}") };
        for (element, model) in models.into_iter().enumerate() {
            synthesizer.change(element, model);
        }
        let synthesis = synthesizer.synthesize();
        let text = synthesis.programs[0].text(&graph).to_string();
        assert_eq!(text, expected.text(&graph).to_string(), "{last}");
        assert_eq!(text.contains("drop no-match"), missed, "{last}: {text}");
    }
}

#[test]
fn programs_begin_behind_elements_that_none_leads_through() {
    let (graph, synthesis) = synthesis(
        "FromDump(in) -> DecIPTTL -> t :: StrideSwitch(1, 1); t[0] -> a :: Counter -> DecIPTTL -> ToDump(a);
         t[1] -> b :: Counter -> StrideSwitch(1) -> c :: CheckIPHeader -> ToDump(b);",
    );
    let entries: Vec<&str> =
        synthesis.programs.iter().map(|p| graph.nodes[p.entry.node].name.as_str()).collect();
    assert_eq!(entries, ["DecIPTTL@2", "a", "b", "c"]);
    // Where most packets pass, those that do not go on as they are.
    let (_, program) = program(&format!("{ROUTER} FromDump(in) -> R(172.16.1.1) -> ToDump(out);"));
    assert!(program.exits().any(|(_, e)| matches!(e.end, End::Push { native: true, .. })));
}

#[test]
fn headers_are_expected_one_behind_the_other() {
    let (graph, synthesis) = synthesis(
        "FromDump(in) -> t :: StrideSwitch(1, 1) -> a :: SetIPAddress(1.0.0.1) -> ICMPPingResponder -> ToDump(out);
         t[1] -> Discard;",
    );
    let [program] = &synthesis.programs[..] else { panic!("{:?}", synthesis.programs) };
    assert_eq!(graph.nodes[program.entry.node].name, "a");
    // Where the network header lies, and where then the transport header does.
    let asked = program.steps.iter().filter_map(|step| match step {
        Step::Test { atom: Atom::Test(term, at), .. } => match program.term(*term) {
            Term::Position(Header::Transport) => at.as_single(),
            _ => None,
        },
        _ => None,
    });
    let asked: Vec<u128> = asked.filter(|at| *at < 1000).collect();
    assert_eq!(asked, [20, 34], "{}", program.text(&graph));
}

#[test]
fn simplified_programs_are_not_larger_than_they_may() {
    let (graph, models) = chain(&routers(10));
    let (plain, simple) = (synthesize_unsimplified(&graph, &models), synthesize(&graph, &models));
    let steps = |s: &Synthesis| s.programs.iter().map(|p| p.steps.len()).sum::<usize>();
    assert!(steps(&simple) < 2 * steps(&plain));
    let path = |s: &Synthesis| shortest_long_path(&s.programs[0]).len();
    assert!(path(&simple) < path(&plain));
}
