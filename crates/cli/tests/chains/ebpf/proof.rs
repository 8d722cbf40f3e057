//! Programs read back from instruction words, proven to be the ones that these were made from.

use codegen::Target;
use codegen::ebpf::{self, Object};
use compiler::prove::{BUDGET, Comparison, Verdict, View, compare};
use ir::{NodeId, Program};

use super::{device, segments};

fn name(node: NodeId) -> String {
    format!("element {node}")
}

/// What comparing a program with what is read from an object finds.
fn judge(program: &Program, object: &Object) -> Result<Verdict, String> {
    let read = ebpf::decompile(object, 0, &device(program));
    let read = read.map_err(|(at, why)| format!("instruction {at}: {why}"))?;
    if std::env::var_os("SHOW").is_some() {
        eprintln!("SEGMENT\n{program}\nREAD\n{read}");
    }
    let compared = compare(&Comparison {
        a: &program.clone().lower(),
        b: &read.lower(),
        names_a: &name,
        names_b: &name,
        view: View::Whole,
        budget: BUDGET,
    });
    Ok(compared.verdict)
}

const CHAINS: [&str; 11] = [
    "filetests/programs/vlan.click",
    "filetests/programs/classes.click",
    "filetests/programs/acl.click",
    "filetests/programs/list-behind-list.click",
    "filetests/programs/tunnel.click",
    "filetests/programs/two-routers.click",
    "filetests/programs/ip6-router.click",
    "examples/ten-routers.click",
    "examples/ip-router.click",
    "examples/snf-motivating.click",
    "examples/isp-edge.click",
];

#[test]
fn what_is_read_back_is_proven_equal() {
    let mut failed = Vec::new();
    for path in CHAINS {
        for (name, program) in segments(path) {
            let compiled = ebpf::compile(&device(&program))
                .unwrap_or_else(|(_, step, lack)| panic!("{name}: s{}: {lack}", step.0));
            let begun = std::time::Instant::now();
            let files = ebpf::EBPF.emit(&device(&program)).expect("it fits");
            let object = ebpf::object(&files).unwrap_or_else(|unread| panic!("{name}: {unread}"));
            assert_eq!(object, compiled.object, "{name}");
            let verdict = judge(&program, &object);
            let words = compiled.object.programs[0].words.len();
            let text = format!("{verdict:?}");
            eprintln!("{name}: {words} {:?} {}", begun.elapsed(), &text[..text.len().min(3000)]);
            if !matches!(verdict, Ok(Verdict::Equal)) {
                failed.push(name);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
