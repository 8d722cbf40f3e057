//! What every chain of the filetests and examples becomes for every target: nothing differs, and no class that a
//! device took care of is left to cores, or no longer proven, unseen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread::available_parallelism;

use codegen::openflow;
use compiler::partition::{Class, Compiled, Site, Trust, Wires, compile};
use compiler::prove::Verdict;
use control::openflow::{Mark, Plan, Switch};
use engine::session;
use ir::topology::Address;
use ir::{Graph, Model, NodeId, Port, Processing, Span};
use lab::ovs;

use crate::filetests;
use crate::programs::chain;
use crate::support::Started;
use crate::tables::models;

/// The wires of a chain under test: whatever a program begins behind, and what leads nowhere else or is a queue.
pub(crate) fn wires(graph: &Graph, models: &[Model]) -> Wires {
    let mut wires = Wires::default();
    for (number, program) in compiler::synthesize_tables(graph, models).programs.iter().enumerate()
    {
        wires.ingress.insert(program.entry, vec![format!("in{number}")]);
    }
    for (node, of) in graph.nodes.iter().enumerate() {
        let is_end = of.outputs.is_empty() || of.outputs.contains(&Processing::Pull);
        if is_end && !of.inputs.is_empty() {
            wires.egress.insert(Port { node, port: 0 }, of.name.clone());
        }
    }
    wires
}

/// Compiles a chain for all targets. A line tells how many classes each takes care of.
pub fn compiled(
    graph: &Graph,
    models: &[Model],
    wires: &Wires,
    faults: &mut Vec<String>,
) -> Vec<(String, Compiled)> {
    let origin = |node: NodeId, _: Option<Span>| graph.nodes[node].name.clone();
    let mut all = Vec::new();
    let none: &[Trust] = &[];
    let only = std::env::var("TARGET").unwrap_or_default();
    for target in codegen::targets().iter().filter(|of| of.label().contains(&only)) {
        for (suffix, trust) in [("", none), (" trusting", &Trust::ALL.map(|of| of.1)[..])] {
            let name = format!("{}{suffix}", target.label());
            let site = Site::numbered(wires, trust);
            match compile(graph, models, wires, *target, &site, &origin, None) {
                Ok(compiled) => {
                    for part in &compiled.parts {
                        match &part.proof.together.verdict {
                            Verdict::Equal | Verdict::Unproven(_) => {}
                            verdict => {
                                faults.push(format!("{name}, {:?}: {verdict:?}", part.wires))
                            }
                        }
                    }
                    all.push((name, compiled));
                }
                Err(compiler::partition::NotCompiled::NoWires) => {}
                Err(why) => faults.push(format!("{name}: {why}")),
            }
        }
    }
    all
}

fn line(name: &str, target: &str, compiled: &Compiled) -> String {
    let classes = || compiled.parts.iter().flat_map(|part| &part.offload.classes);
    let of = |is: fn(&&Class) -> bool| classes().filter(is).count();
    let unproven = compiled.parts.iter().any(|part| !part.proof.holds());
    format!(
        "{name}, {target}: {} done, {} decided, {} left{}\n",
        of(|class| class.done),
        of(|class| !class.done && !class.decided.is_empty()),
        of(|class| !class.done && class.decided.is_empty()),
        if unproven { ", not proven" } else { "" },
    )
}

/// What starts a chain; nothing if it is refused.
type Begin = Box<dyn FnOnce() -> Option<(Graph, Vec<Model>)> + Send>;

/// A switch that is given entries as text, by its own tool, and as bytes, by Catena: it has the same both times.
struct Loads {
    ovs: ovs::Switch,
    switch: Switch,
    /// Texts that were loaded.
    seen: BTreeSet<String>,
}

impl Loads {
    fn start() -> Self {
        let ovs = ovs::Switch::start(2);
        let switch = Switch::connect(&Address::Unix(ovs.socket()), lab::live::PATIENCE);
        Self { switch: switch.unwrap_or_else(|why| panic!("{why}")), ovs, seen: BTreeSet::new() }
    }

    fn entries(&self) -> Vec<String> {
        let text = self.ovs.flows(&["--no-stats", "dump-flows", "br0"]);
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        lines.sort();
        lines
    }

    fn compare(&mut self, name: &str, graph: &Graph, compiled: &Compiled) -> Result<(), String> {
        let origin = |node: NodeId, _: Option<Span>| graph.nodes[node].name.clone();
        let target = name.split(' ').next().unwrap_or_default();
        let Some(entries) = openflow::entries(target, &compiled.device(&origin)) else {
            return Ok(());
        };
        let entries = entries.map_err(|why| format!("{name}: {why:?}"))?;
        let mark = Mark::of(name);
        let plan = Plan::new(Vec::new(), entries.clone(), mark);
        let text = openflow::text(target, &plan.add).unwrap_or_default();
        if !self.seen.insert(text.clone()) {
            return Ok(());
        }
        let file = self.ovs.socket().with_file_name("chain.txt");
        fs::write(&file, &text).map_err(|why| why.to_string())?;
        self.ovs.flows(&["--bundle", "add-flows", "br0", &file.to_string_lossy()]);
        let by_text = self.entries();
        // What the text became reads back as what it was printed from.
        let there = self.switch.entries().map_err(|why| why.to_string())?;
        let read = Plan::new(there, entries, mark);
        self.switch.remove(mark).map_err(|why| format!("{name}: {why}"))?;
        self.switch.apply(&plan).map_err(|why| format!("{name}: {why}"))?;
        let by_bytes = self.entries();
        self.switch.remove(mark).map_err(|why| format!("{name}: {why}"))?;
        let unlike = by_text.iter().zip(&by_bytes).find(|(text, bytes)| text != bytes);
        match unlike {
            None if by_text.len() == by_bytes.len() && read.is_empty() => Ok(()),
            _ => Err(format!(
                "{name}: as text and as bytes {unlike:?}; what the text became lacks {:?} of {:?}",
                read.add.first(),
                read.change.first()
            )),
        }
    }
}

/// `BLESS=1` writes down how many classes devices take care of now. `TARGET=ovs` and `FILETEST=acl` look at some only.
#[test]
fn devices_and_cores_together_do_what_chains_do() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("targets");
    let only = std::env::var("FILETEST").unwrap_or_default();
    let of_filetests = filetests::chains(&folder).into_iter().map(|(name, begin)| {
        let begin = move || {
            let mut started = begin(session::Path::Native.into())?;
            let models = models(&mut started);
            let Started { chain, .. } = started;
            Some((chain.graph, models))
        };
        (name, Box::new(begin) as Begin)
    });
    let files = fs::read_dir(root.join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|of| of == "click"));
    let of_examples = files.map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let begin = move || {
            let (chain, models) = chain(&path);
            Some((chain.graph, models))
        };
        (name, Box::new(begin) as Begin)
    });
    let chains = of_filetests.chain(of_examples).filter(|(name, _)| name.contains(&only));
    let (chains, loads) = (Mutex::new(chains), Mutex::new(Loads::start()));
    let next = || chains.lock().unwrap().next();
    let examined = || {
        let (mut lines, mut faults) = (BTreeMap::new(), Vec::new());
        while let Some((name, begin)) = next() {
            let Some((graph, models)) = begin() else { continue };
            let (mut text, mut wrong) = (String::new(), Vec::new());
            for (target, compiled) in compiled(&graph, &models, &wires(&graph, &models), &mut wrong)
            {
                text += &line(&name, &target, &compiled);
                wrong.extend(loads.lock().unwrap().compare(&target, &graph, &compiled).err());
            }
            faults.extend(wrong.into_iter().map(|fault| format!("{name}: {fault}")));
            lines.insert(name, text);
        }
        (lines, faults)
    };
    let (mut lines, mut faults) = (BTreeMap::new(), Vec::new());
    std::thread::scope(|scope| {
        let cores = available_parallelism().map_or(1, |count| count.get());
        let all: Vec<_> = (0..cores).map(|_| scope.spawn(examined)).collect();
        for one in all {
            let (here, more) = one.join().unwrap_or_else(|panic| resume_unwind(panic));
            lines.extend(here);
            faults.extend(more);
        }
    });
    assert!(faults.is_empty(), "{} failures:\n{}", faults.len(), faults.join("\n"));
    if !only.is_empty() || std::env::var_os("TARGET").is_some() {
        lines.values().for_each(|line| print!("{line}"));
        return;
    }
    let mut text = String::from(
        "Classes of packets that devices take care of, by chain and target; `trusting` tests nothing that a port can be \
         trusted in.\n",
    );
    lines.values().for_each(|line| text.push_str(line));
    let golden = root.join("filetests/targets.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&golden, &text).unwrap();
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    let (now, before): (BTreeSet<_>, BTreeSet<_>) =
        (text.lines().collect(), expected.lines().collect());
    let mut unlike = String::new();
    for (sign, line) in before
        .difference(&now)
        .map(|l| ('-', l))
        .chain(now.difference(&before).map(|l| ('+', l)))
        .take(20)
    {
        let _ = writeln!(unlike, "{sign} {line}");
    }
    assert!(
        text == expected,
        "classes are taken care of elsewhere (BLESS=1 writes that down):\n{unlike}"
    );
}
