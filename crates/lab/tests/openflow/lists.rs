//! Long lists: proven, and how many entries they take.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use catena_lab::shared;
use codegen::target;

use crate::segments::Made;

fn rules(file: &Path) -> Vec<String> {
    let mut text = String::new();
    let file = std::fs::File::open(file).unwrap();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    text.lines()
        .map(|line| line.trim().trim_end_matches(',').to_string())
        .filter(|l| !l.is_empty())
        .collect()
}

#[test]
fn lists_are_proven() {
    let Some(folder) = shared("data/isp-acl") else { return };
    let ovs = target("ovs").unwrap();
    for list in ["acl1-250", "ipc1-250", "fw1-250", "acl1-700"] {
        let rules = rules(&folder.join(format!("{list}.ipfilter.gz")));
        let chain = format!(
            "FromDevice(eth0) -> c :: Classifier(12/0800, -); c[1] -> Discard;
             c[0] -> Strip(14) -> CheckIPHeader -> IPFilter({}, deny all)
               -> Unstrip(14) -> Queue -> ToDevice(eth1);",
            rules.join(",\n")
        );
        let made = Made::of_chain(ovs, &chain);
        let began = Instant::now();
        let text = made.emit(ovs);
        let emitted = began.elapsed();
        let read = made.read(ovs, &text).unwrap_or_else(|e| panic!("{list}: {e}"));
        let taken = began.elapsed() - emitted;
        let verdict = made.compare(&read);
        let proven = began.elapsed() - emitted - taken;
        let entries = text.lines().filter(|line| line.contains(",table=1")).count();
        println!(
            "{list}: {} rules, {entries} entries; emitted in {emitted:?}, read in {taken:?}, compared in {proven:?}",
            rules.len()
        );
        assert!(matches!(verdict, compiler::prove::Verdict::Equal), "{list}: {verdict:?}");
        assert!(entries >= 100, "{list}");
    }
}
