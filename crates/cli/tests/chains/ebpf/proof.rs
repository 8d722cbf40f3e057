//! Programs read back from instruction words, proven to be the ones that these were made from.

use codegen::Target;
use codegen::ebpf::{self, Object};
use compiler::prove::{BUDGET, Comparison, Verdict, View, compare};
use ir::{NodeId, Program};

use super::{device, subjects};

fn name(node: NodeId) -> String {
    format!("element {node}")
}

/// What comparing a program with what is read from an object finds.
fn judge(program: &Program, object: &Object) -> Result<Verdict, String> {
    let read = ebpf::decompile(object, 0, &device(program));
    let read = read.map_err(|(at, why)| format!("instruction {at}: {why}"))?;
    let compared = compare(&Comparison {
        a: &program.clone().lower(),
        b: &read.clone().lower(),
        names_a: &name,
        names_b: &name,
        view: View::Whole,
        budget: BUDGET,
    });
    if std::env::var_os("SHOW").is_some() && !matches!(compared.verdict, Verdict::Equal) {
        eprintln!("SEGMENT\n{program}\nREAD\n{read}");
    }
    Ok(compared.verdict)
}

#[test]
fn what_is_read_back_is_proven_equal() {
    let (mut failed, mut count) = (Vec::new(), 0);
    for subject in subjects("ebpf-proof") {
        for (name, _, program) in subject.segments() {
            count += 1;
            let device = device(&program);
            let compiled = match ebpf::compile(&device) {
                Ok(compiled) => compiled,
                Err((_, step, lack)) => {
                    failed.push(format!("{name}: s{}: {lack}", step.0));
                    continue;
                }
            };
            let files = ebpf::EBPF.emit(&device).expect("it fits");
            let object = ebpf::object(&files).unwrap_or_else(|unread| panic!("{name}: {unread}"));
            assert_eq!(object, compiled.object, "{name}");
            match judge(&program, &object) {
                Ok(Verdict::Equal) => {}
                other => failed.push(format!("{name}: {other:?}")),
            }
        }
    }
    assert!(failed.is_empty(), "{} of {count}:\n{}", failed.len(), failed.join("\n"));
    assert!(count > 100 || std::env::var_os("FILETEST").is_some(), "{count} programs");
}
