//! Long lists of rules: trees in arrays.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use codegen::ebpf::MapKind;
use compiler::prove::Verdict;
use compiler::synthesize_tables;
use elements::rule_packets;
use ir::Program;
use net::wire::{Ipv4, ipv4};

use super::proof::judge;
use super::{device, kernel, root, segment};
use crate::programs::chain;
use lab::shared;

/// Lists: those of the examples, and those of the folder of shared data.
fn lists() -> Vec<(String, PathBuf)> {
    let mut all = vec![("isp-edge".to_string(), root().join("examples/isp-edge.rules.gz"))];
    if let Some(folder) = shared("data/isp-acl") {
        for kind in ["acl1", "fw1", "ipc1"] {
            for size in [250, 700, 8500] {
                let name = format!("{kind}-{size}");
                all.push((name.clone(), folder.join(format!("{name}.ipfilter.gz"))));
            }
        }
    }
    let only = std::env::var("LIST").unwrap_or_default();
    all.retain(|(name, _)| name.contains(&only));
    all
}

fn text(list: &Path) -> String {
    let mut text = String::new();
    let file = fs::File::open(list).expect("it is there");
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    text
}

/// A chain that lets pass what a list allows.
fn allows(name: &str, list: &Path) -> Program {
    allows_rules(name, &format!("file {}", list.display()))
}

fn allows_rules(name: &str, rules: &str) -> Program {
    let text = format!(
        "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
         c[0] -> Strip(14) -> CheckIPHeader -> IPFilter({rules})
           -> Unstrip(14) -> Queue -> ToDevice(eth1);"
    );
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("ebpf-lists");
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(format!("{name}.click"));
    fs::write(&file, text).expect("a file");
    let (chain, models) = chain(&file);
    let programs = synthesize_tables(&chain.graph, &models).programs;
    segment(&programs[0])
}

/// Frames for each rule, and others that are made from them.
fn frames(list: &Path, count: usize) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(1);
    let drawn = rule_packets::draw(&text(list), count, &mut random).expect("rules");
    let mut all = Vec::new();
    for mut headers in drawn.headers {
        let mut frame = [[2, 0, 0, 0, 0, 1].repeat(2), vec![8, 0]].concat();
        if random.u8(..4) == 0 {
            let at = 12 + random.usize(..12);
            headers[at] ^= 1 << random.u8(..8);
        }
        if let Some(mut ip) = headers.first_chunk_mut().map(Ipv4::of) {
            ip.fill_checksum();
        }
        frame.extend(headers);
        if random.u8(..16) == 0 {
            frame.truncate(14 + ipv4::HEADER_LEN + random.usize(..8));
        }
        frame.resize(frame.len().max(60), 0);
        all.push(frame);
    }
    all
}

#[test]
fn long_lists_run_in_the_kernel() {
    let mut most = 0;
    for (name, list) in lists() {
        let program = allows(&name, &list);
        // Of a list that allows whatever comes nothing is left.
        most = most.max(kernel::run(&name, &program, &frames(&list, 3000)));
    }
    assert!(most >= 2, "{most} exits");
}

#[test]
fn long_lists_are_proven() {
    let mut trees = 0;
    for (name, list) in lists() {
        // `LIST` proves longer ones, which takes minutes.
        if !name.ends_with("-250") && std::env::var_os("LIST").is_none() {
            continue;
        }
        let program = allows(&name, &list);
        let began = Instant::now();
        let compiled = codegen::ebpf::compile(&device(&program)).expect("it fits");
        let emitted = began.elapsed();
        let tree = compiled.object.maps.iter().find(|map| map.kind == MapKind::Array);
        let entries = tree.map_or(0, |map| map.room);
        let began = Instant::now();
        let verdict = judge(&program, &compiled.object);
        eprintln!("{name}: {entries} entries in {emitted:?}; judged in {:?}", began.elapsed());
        assert!(matches!(verdict, Ok(Verdict::Equal)), "{name}: {verdict:?}");
        trees += usize::from(entries > 0);
    }
    assert!(trees > 0);
}

/// Faults in what arrays hold.
#[test]
fn faults_in_trees_are_found() {
    let rules: Vec<String> = (0..80_u32)
        .map(|at| {
            let rule = ["allow", "deny"][at as usize % 2];
            let (source, port) = (at * 7 % 16, 80 + at * 5 % 23);
            format!("{rule} src net 10.{source}.0.0/16 && tcp dst port < {port}")
        })
        .collect();
    let program = allows_rules("faults", &format!("{}, deny all", rules.join(", ")));
    let compiled = codegen::ebpf::compile(&device(&program)).expect("it fits");
    let tree = compiled.object.maps.iter().position(|map| map.kind == MapKind::Array);
    let tree = tree.expect("it is a tree");
    let entries = compiled.object.maps[tree].entries.len();
    let (mut random, mut found, mut equal) = (fastrand::Rng::with_seed(1), 0, 0);
    for _ in 0..60 {
        let mut object = compiled.object.clone();
        let entry = &mut object.maps[tree].entries[random.usize(..entries)].1;
        let before = entry.clone();
        // Behind where it leads stand how many may follow, and whether it is a rule's.
        let is_rule = entry[58] == 1;
        match (random.u8(..4), is_rule) {
            // An end of a range is off by one.
            (0 | 1, true) => entry[4 * random.usize(..8)] ^= 1,
            // What holds, and what does not, are swapped.
            (2, true) => (48..52).for_each(|at| entry.swap(at, at + 4)),
            // A cut is off by one.
            (0, false) => entry[8 * random.usize(..3)] ^= 1,
            // Another number is compared.
            (1, false) => entry[40 + random.usize(..3)] ^= 8,
            // Arms or subtrees are swapped.
            (2, false) => {
                let (a, b) = (24 + 4 * random.usize(..4), 24 + 4 * random.usize(..4));
                (0..4).for_each(|byte| entry.swap(a + byte, b + byte));
            }
            // No entries may follow.
            _ => entry[56..58].fill(0),
        }
        if *entry == before {
            continue;
        }
        match judge(&program, &object) {
            Ok(Verdict::Different(_)) | Err(_) => found += 1,
            // What is changed may be a comparison that decides nothing.
            Ok(Verdict::Equal) => equal += 1,
            Ok(other) => panic!("{other:?}"),
        }
    }
    assert!(found > 25 && found > equal, "{found} found, {equal} equal");
}
