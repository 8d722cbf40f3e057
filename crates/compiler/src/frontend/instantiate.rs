//! Making the elements of a chain from their arguments.

use std::collections::HashMap;

use elements::Element;
use elements::configure::{
    Allowance, Configure, Devices, Files, Initialize, Shared, Surroundings, WorkerShare,
};
use elements::element::Class;
use elements::names::Names;
use elements::registry;
use ir::{Diagnostic, NodeId, Sources, Span};

use crate::Chain;
use crate::frontend::report::Report;
use crate::library;

/// The elements of a chain, with what they share.
pub struct Elements {
    /// The elements, in the order of the graph's nodes.
    pub elements: Vec<Box<dyn Element>>,
    names: Names,
    shared: Shared,
    classes: HashMap<String, String>,
    /// Indices in the order in which the elements were made.
    order: Vec<usize>,
    part: WorkerShare,
    memory: Allowance,
}

/// What an element takes at least: itself, its name and ports, its places in tables.
const ELEMENT: u64 = 2 << 10;
/// What is made of a byte of its configuration, such as rules and what finds them.
const PER_BYTE: u64 = 16;

/// Makes every element of a chain, those that others refer to first. Appends all errors and
/// warnings of their arguments to `diagnostics`; `None` if an element could not be made. Elements
/// of unknown classes were reported by [`crate::frontend::elaborate`] and are left out.
pub fn instantiate(
    chain: &Chain,
    sources: &mut Sources,
    files: &mut dyn Files,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Elements> {
    instantiate_part(chain, WorkerShare::default(), sources, files, diagnostics)
}

/// The same for one of the workers that run the chain.
pub fn instantiate_part(
    chain: &Chain,
    part: WorkerShare,
    sources: &mut Sources,
    files: &mut dyn Files,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Elements> {
    let nodes = &chain.graph.nodes;
    let classes: HashMap<String, String> =
        nodes.iter().map(|node| (node.name.clone(), node.class.clone())).collect();
    let mut known: Vec<(usize, &'static Class)> =
        (0..nodes.len()).filter_map(|n| Some((n, registry::find(&nodes[n].class)?))).collect();
    // Stable: within a phase in the order of declaration.
    known.sort_by_key(|(_, class)| class.phase);
    let (mut names, mut shared) = (Names::default(), Shared::default());
    let mut made: Vec<Option<Box<dyn Element>>> = nodes.iter().map(|_| None).collect();
    let mut report = Report::default();
    let mut memory = Allowance::new(chain.limits.memory);
    let mut found = Vec::new();
    let order = known.iter().map(|&(index, _)| index).collect();
    for (index, class) in known {
        let node = &nodes[index];
        let least = ELEMENT + PER_BYTE * node.config.len() as u64;
        if let Err(error) = memory.claim((&node.name, &node.class), None, least) {
            // It is the same for all that come after.
            report.add(error.label(node.span, ""));
            break;
        }
        let around = Surroundings {
            sources: &mut *sources,
            files: &mut *files,
            names: &mut names,
            shared: &mut shared,
            elements: &classes,
            part,
            memory: &mut memory,
            diagnostics: &mut found,
        };
        let mut configure = Configure::new(
            (&node.name, &node.class, node.span),
            chain.arguments[index].clone(),
            (&node.inputs, &node.outputs),
            around,
        );
        made[index] = (class.configure)(&mut configure).ok();
        for diagnostic in found.drain(..) {
            report.add_message(with_use(diagnostic, chain, index, sources));
        }
    }
    let failed = report.failed();
    diagnostics.append(&mut report.diagnostics);
    let elements: Option<Vec<_>> = made.into_iter().collect();
    let elements = elements.filter(|_| !failed)?;
    Some(Elements { elements, names, shared, classes, order, part, memory })
}

/// What is wrong with an element of a network function of the library, with the place where that is used.
fn with_use(
    diagnostic: Diagnostic,
    chain: &Chain,
    element: NodeId,
    sources: &Sources,
) -> Diagnostic {
    let is_library = |span: Span| library::holds(sources, span.file);
    if !diagnostic.span().is_some_and(is_library) {
        return diagnostic;
    }
    let graph = &chain.graph;
    let mut around = graph.nodes[element].group.map(|group| &graph.groups[group]);
    while let Some(group) = around {
        if !is_library(group.span) {
            return diagnostic
                .label(group.span, format!("in '{}', which is used here", group.name));
        }
        around = group.parent.map(|parent| &graph.groups[parent]);
    }
    diagnostic
}

impl Elements {
    /// Initializes every element, in the order in which they were made: references are resolved, devices
    /// opened. Appends what goes wrong to `diagnostics` and returns whether all went well.
    pub fn initialize(
        &mut self,
        chain: &Chain,
        sources: &mut Sources,
        files: &mut dyn Files,
        devices: &mut dyn Devices,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> bool {
        let mut report = Report::default();
        let mut found = Vec::new();
        let mut well = true;
        for &index in &self.order {
            let (element, node) = (&mut self.elements[index], &chain.graph.nodes[index]);
            let around = Surroundings {
                sources: &mut *sources,
                files: &mut *files,
                names: &mut self.names,
                shared: &mut self.shared,
                elements: &self.classes,
                part: self.part,
                memory: &mut self.memory,
                diagnostics: &mut found,
            };
            let mut initialize = Initialize::new(&node.name, node.span, &mut *devices, around);
            well &= element.initialize(&mut initialize).is_ok();
            for diagnostic in found.drain(..) {
                report.add_message(with_use(diagnostic, chain, index, sources));
            }
        }
        well &= !report.failed();
        diagnostics.append(&mut report.diagnostics);
        well
    }
}
