//! Chains of files, divided between a device and cores, and how much of them the device does.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use codegen::Lack;
use compiler::Chain;
use compiler::library::Function;
use compiler::partition::{self, Compiled, NotCompiled, Wires};
use engine::{Closed, Disk};
use ir::model::Block;
use ir::program::{End, Step};
use ir::{Model, Op, Port, Sources};

use crate::front::Front;
use crate::live::Catena;

/// A chain of a file, and what its elements mean.
pub struct Loaded {
    /// What it was elaborated to.
    pub chain: Chain,
    /// Where it meets wires.
    pub wires: Wires,
    models: Vec<Model>,
}

/// How much of a chain a device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All classes end there.
    Whole,
    /// Some classes that leave by a wire end there, of which some are flows that cores give leases of.
    Leased,
    /// Some classes that leave by a wire end there.
    Partly,
    /// Some classes are found or dropped there; all that leaves comes from cores.
    Decided,
    /// All is left to cores.
    Nothing,
}

impl Extent {
    /// As tables have it.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Whole => "W",
            Self::Leased => "L",
            Self::Partly => "P",
            Self::Decided => "D",
            Self::Nothing => "–",
        }
    }
}

/// What a device does of a chain, in classes. Those of rare packets are left out: of fragments, of packets for which elements have
/// code beside what their models say, and of those for which what the device takes for granted does not hold.
#[derive(Clone, Debug)]
pub struct Taken {
    /// How much that is.
    pub extent: Extent,
    /// Classes that end on the device.
    pub done: usize,
    /// Classes that it finds, and cores act for.
    pub decided: usize,
    /// All classes.
    pub all: usize,
    /// Why classes do not end there, with their number.
    pub why: BTreeMap<String, usize>,
}

/// Why elements need their own code for fragments.
const FRAGMENTS: [&str; 2] = ["keeps fragments", "makes fragments"];

impl Loaded {
    /// Reads a chain. Devices are not opened.
    ///
    /// # Panics
    /// If it is wrong.
    pub fn read(path: &Path) -> Self {
        let name = path.display().to_string();
        let (mut sources, mut files) = (Sources::new(), Disk::default());
        let file = files.configuration(&mut sources, &name);
        let file = file.unwrap_or_else(|why| panic!("{name}: {why}"));
        let options = compiler::Options::default();
        let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
        let chain = chain.unwrap_or_else(|| panic!("{name}: {found:?}"));
        let made = compiler::instantiate(&chain, &mut sources, &mut files, &mut found);
        let mut made = made.unwrap_or_else(|| panic!("{name}: {found:?}"));
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut closed = Closed::beside(folder.to_path_buf());
        made.initialize(&chain, &mut sources, &mut files, &mut closed, &mut found);
        let models = made.elements.iter().map(|element| element.model()).collect();
        let wires = Wires::of(&chain.graph, |node| made.elements[node].receives_frames());
        Self { chain, wires, models }
    }

    /// Reads the example of a network function of the library, which is written to a folder with what it reads.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn example(catena: Catena, function: &Function, folder: &Path) -> Self {
        let folder = folder.join(function.name);
        let mut command = Command::new(catena.0);
        let made = command.args(["nfs", function.name, "--output"]).arg(&folder).output();
        assert!(made.is_ok_and(|made| made.status.success()), "{}", function.name);
        Self::read(&folder.join(function.file))
    }

    /// Divides it. `None` if there is nothing that the device could be given.
    ///
    /// # Panics
    /// If what the device is given is not understood.
    pub fn divide(&self, front: Front) -> Option<Compiled> {
        let Self { chain: Chain { graph, .. }, models, wires } = self;
        let origin = |node: usize, _| graph.nodes[node].name.clone();
        let (target, site) = (front.target(), front.site(wires));
        match partition::compile(graph, models, wires, target, &site, &origin, None) {
            Ok(compiled) => Some(compiled),
            Err(NotCompiled::NoWires) => None,
            Err(why) => panic!("{}: {why}", front.target),
        }
    }

    /// How much of it a device does.
    pub fn taken(&self, compiled: &Compiled) -> Taken {
        let class_of = |node: usize| &self.chain.graph.nodes[node].class;
        let (mut done, mut decided, mut all, mut why) = (0, 0, 0, BTreeMap::new());
        let (mut leaves, mut is_leased) = (false, false);
        for part in &compiled.parts {
            for class in &part.offload.classes {
                let Step::Exit(exit) = part.program.step(class.exit) else { continue };
                let native = match exit.end {
                    End::Push { to, .. } if !compiled.egress.contains_key(&to) => {
                        let reasons = self.opaque(to);
                        let why = reasons.into_iter().find(|why| !FRAGMENTS.contains(why));
                        let Some(why) = why else { continue };
                        Some(format!("{} {why}", class_of(to.node)))
                    }
                    _ => None,
                };
                if !class.done && class.decided.is_empty() && class.stops.is_empty() {
                    continue;
                }
                all += 1;
                if class.done {
                    done += 1;
                    leaves |= matches!(exit.end, End::Push { .. });
                    continue;
                }
                decided += usize::from(!class.decided.is_empty());
                is_leased |= class.stops.iter().any(|stay| stay.lack == Lack::Lease);
                let lacks = class.why().map(|stay| (class_of(stay.element), &stay.lack));
                let lacks = lacks.map(|(class, lack)| format!("{class}: {lack}"));
                if let Some(reason) = native.or(lacks) {
                    *why.entry(reason).or_default() += 1;
                }
            }
        }
        let extent = match () {
            () if all > 0 && done == all => Extent::Whole,
            () if leaves && is_leased => Extent::Leased,
            () if leaves => Extent::Partly,
            () if done + decided > 0 => Extent::Decided,
            () => Extent::Nothing,
        };
        Taken { extent, done, decided, all, why }
    }

    /// Why a model does not say what becomes of some packets of an input.
    fn opaque(&self, at: Port) -> BTreeSet<&'static str> {
        let mut reasons = BTreeSet::new();
        if let Some(block) = self.models[at.node].input(at.port) {
            collect(block, &mut reasons);
        }
        reasons
    }
}

fn collect(block: &Block, reasons: &mut BTreeSet<&'static str>) {
    for op in block {
        if let Op::Opaque(why) = op {
            reasons.insert(why);
        }
        op.blocks().for_each(|block| collect(block, reasons));
    }
}
