//! Programs that are right are proven so; programs that are wrong are found out.

mod mutation;
mod offload;
mod parts;
#[path = "../shape/mod.rs"]
mod shape;

use std::env;
use std::path::PathBuf;

use catena_compiler::prove::differential::{self, Effort, Subject};
use catena_compiler::prove::{BUDGET, Comparison, Verdict, View, compare};
use catena_compiler::{
    Options, Synthesis, elaborate, instantiate, synthesize, synthesize_rare_paths,
    synthesize_tables,
};
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use elements::element_state::{ElementState, Scope};
use ir::{Graph, Model, NodeId, Program, Sources, Store};
use mutation::{Dice, MISTAKES};
use net::{Batch, Pool};
use shape::Folder;

/// Opens whatever is asked for.
struct Anything;

impl Devices for Anything {
    fn open(&mut self, _: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        Ok(Box::new(Self))
    }
}

impl Device for Anything {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Ok(())
    }
}

struct Made {
    graph: Graph,
    models: Vec<Model>,
    state: Store,
    synthesis: Synthesis,
}

impl Made {
    fn subject(&self) -> Subject<'_> {
        Subject {
            graph: &self.graph,
            models: &self.models,
            state: &self.state,
            programs: &self.synthesis.programs,
        }
    }
}

fn make(text: &str) -> Made {
    let mut sources = Sources::new();
    let file = sources.add("chain.click", text);
    let mut files = Folder::new(
        &PathBuf::from(env::var_os("CATENA_SHARED").unwrap_or_default()).join("data/bench-chains"),
    );
    let options = Options::default();
    let (chain, found) = elaborate(&mut sources, file, &options, &mut files);
    let messages: Vec<String> = found.iter().map(|d| d.message.clone()).collect();
    let chain = chain.unwrap_or_else(|| panic!("{messages:?}"));
    let mut diagnostics = Vec::new();
    let mut made =
        instantiate(&chain, &mut sources, &mut files, &mut diagnostics).unwrap_or_else(|| {
            panic!("{:?}", diagnostics.iter().map(|d| &d.message).collect::<Vec<_>>())
        });
    assert!(made.initialize(&chain, &mut sources, &mut files, &mut Anything, &mut diagnostics));
    let mut state = ElementState::copy(Scope::All);
    for (element, node) in made.elements.iter_mut().zip(&chain.graph.nodes) {
        element.export(&node.name, &mut state);
    }
    let models: Vec<Model> = made.elements.iter().map(|e| e.model()).collect();
    let synthesis = synthesize(&chain.graph, &models);
    Made { graph: chain.graph, models, state: state.declared, synthesis }
}

fn compared(made: &Made, a: &Program, b: &Program) -> Verdict {
    let names = |node: NodeId| made.graph.nodes[node].name.clone();
    let comparison =
        Comparison { a, b, names_a: &names, names_b: &names, view: View::Whole, budget: BUDGET };
    compare(&comparison).verdict
}

const CHAINS: &[&str] = &[
    "-> Strip(14) -> CheckIPHeader(INTERFACES 10.1.1.1/24) -> GetIPAddress(16)
        -> rt :: RadixIPLookup(20.0.0.0/16 0, 20.1.0.0/16 1, 30.0.0.0/8 1, 30.1.0.0/16 0);
        rt[0] -> DropBroadcasts -> dt :: DecIPTTL -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> q :: Queue -> Discard;
        rt[1] -> Paint(3) -> Counter -> SetIPDSCP(3) -> Strip(4) -> Unstrip(18) -> q; dt[1] -> Discard;",
    "-> Strip(14) -> CheckIPHeader
        -> fw :: IPFilter(drop src net 10.9.0.0/16, allow tcp && dst port 80 or 443, allow udp && src port >= 1000,
            drop src host 1.2.3.4 && dst net 20.0.0.0/8, allow icmp, drop all)
        -> SetIPDSCP(12) -> Unstrip(14) -> Queue -> Discard;",
    "-> Strip(14) -> CheckIPHeader -> rw :: IPRewriter(pattern 30.0.1.1 1024-65535 - - 0 1);
        rw[0] -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Queue -> Discard; rw[1] -> Counter -> Queue -> Discard;",
    "-> Strip(14) -> CheckIPHeader -> IPClassifier(tcp) -> a :: IPRewriter(pattern 30.0.1.1 1024-65535 - - 0 1)
        -> b :: IPRewriter(pattern 40.0.1.1 1024-65535 - - 0 1) -> Queue -> Discard;
        a[1] -> Discard; b[1] -> Discard;",
];

/// A filter of so many rules that they are not asked one by one.
fn long_filter() -> String {
    let mut rules = String::new();
    for i in 0..40 {
        let action = if i % 3 == 0 { "drop" } else { "allow" };
        let (net, length, port) = (i * 5 % 23, [16, 12, 16, 8, 16][i % 5], 1000 + i * 3 % 7);
        rules += &format!("{action} src net 10.{net}.0.0/{length} && dst port {port}, ");
    }
    format!(
        "-> Strip(14) -> CheckIPHeader -> IPFilter({rules} allow udp, drop all) -> Queue -> Discard;"
    )
}

/// A router with more gateways than make paths of their own.
fn many_gateways() -> String {
    let routes: Vec<String> =
        (0..100).map(|i| format!("20.{i}.0.0/16 10.0.{i}.1 {}", i % 2)).collect();
    format!(
        "-> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> rt :: RadixIPLookup({});
         rt[0] -> StoreIPAddress(16) -> Queue -> Discard; rt[1] -> Counter -> Queue -> Discard;",
        routes.join(", ")
    )
}

/// The chains that mistakes are made in.
fn chains() -> Vec<Made> {
    let (long, many) = (long_filter(), many_gateways());
    let texts = CHAINS.iter().copied().chain([&*long, &*many]);
    texts.map(|text| make(&format!("FromDump(in, BURST 32) {text}"))).collect()
}

#[test]
fn programs_are_equal_to_themselves_and_to_their_chains() {
    for made in chains() {
        assert!(!made.synthesis.programs.is_empty());
        for program in &made.synthesis.programs {
            assert!(matches!(compared(&made, program, program), Verdict::Equal));
        }
        let evidence = differential::run(&made.subject(), Effort { packets: 1500, seed: 1 });
        assert!(evidence.disagreement.is_none(), "{:?}", evidence.disagreement);
        assert!(evidence.packets >= 1500 && 2 * evidence.exits.0 > evidence.exits.1);
    }
}

/// What lies beyond a packet reads as 0, which some of these rules let through where it is there.
#[test]
fn whole_tables_mean_what_rules_say_of_packets_of_any_length() {
    let lists = [
        "-> c :: Classifier(20/0000, 12/0800, -); c[0] -> Queue -> Discard;
            c[1] -> Counter -> Queue -> Discard; c[2] -> Discard;",
        "-> Strip(14) -> CheckIPHeader -> IPFilter(drop tcp && dst port < 10, allow dst port != 80, drop all)
            -> Queue -> Discard;",
    ];
    let lists = lists.map(|text| make(&format!("FromDump(in, BURST 32) {text}")));
    for made in chains().into_iter().chain(lists) {
        let tables = synthesize_tables(&made.graph, &made.models).programs;
        let programs: Vec<Program> = tables.into_iter().map(Program::lower).collect();
        let subject = Subject { programs: &programs, ..made.subject() };
        let evidence = differential::run(&subject, Effort { packets: 2500, seed: 1 });
        assert!(evidence.disagreement.is_none(), "{:?}", evidence.disagreement);
    }
}

#[test]
fn what_rarely_comes_takes_the_same_path() {
    for mut made in chains() {
        let usual: usize = made.synthesis.programs.iter().map(|p| p.exits().count()).sum();
        made.synthesis = synthesize_rare_paths(&made.graph, &made.models);
        let all: usize = made.synthesis.programs.iter().map(|p| p.exits().count()).sum();
        assert!(all > usual);
        let evidence = differential::run(&made.subject(), Effort { packets: 2500, seed: 1 });
        assert!(evidence.disagreement.is_none(), "{:?}", evidence.disagreement);
        assert!(2 * evidence.exits.0 > evidence.exits.1, "{:?}", evidence.exits);
    }
}

#[test]
fn mistakes_of_every_class_are_caught() {
    let mut dice = Dice(7);
    let chains = chains();
    for (name, mistake) in MISTAKES {
        let mut caught = 0;
        for made in &chains {
            for original in &made.synthesis.programs {
                for _ in 0..8 {
                    let mut wrong = original.clone();
                    if !mistake(&mut wrong, &mut dice) {
                        continue;
                    }
                    match compared(made, original, &wrong) {
                        Verdict::Different(_) => caught += 1,
                        // The mistake does not matter: a rule was shadowed, a path impossible.
                        Verdict::Equal => {
                            let programs = [wrong];
                            let subject = Subject { programs: &programs, ..made.subject() };
                            let seen =
                                differential::run(&subject, Effort { packets: 500, seed: 3 });
                            let seen = seen.disagreement;
                            assert!(seen.is_none(), "{name}: taken for equal, but {seen:?}");
                        }
                        Verdict::Unproven(why) => panic!("{name}: {why}"),
                    }
                }
            }
        }
        assert!(caught > 0, "{name}: never caught");
    }
}

#[test]
fn packets_find_mistakes_too() {
    let mut dice = Dice(3);
    let (mut caught, mut made_in_all) = (0, 0);
    for made in chains() {
        for (_, mistake) in MISTAKES {
            let mut programs = made.synthesis.programs.clone();
            if !programs.iter_mut().any(|program| mistake(program, &mut dice)) {
                continue;
            }
            made_in_all += 1;
            let subject = Subject { programs: &programs, ..made.subject() };
            let evidence = differential::run(&subject, Effort { packets: 1000, seed: 5 });
            if let Some(found) = evidence.disagreement {
                assert_ne!(found.elements, found.programs);
                caught += 1;
            }
        }
    }
    assert!(3 * caught > 2 * made_in_all, "only {caught} of {made_in_all}");
}
