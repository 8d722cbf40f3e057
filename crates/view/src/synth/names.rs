//! Names of places in a packet, by where its headers are.

use compiler::explain::provenance::{ConditionSubject, Conditions, Visit};
use ir::Program;
use ir::layout::{Facts, Layout, Start};
use ir::program::Writes;
use net::Header;

use crate::explain::Placed;

/// A part of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// The field that it is, if it is a whole one.
    pub(crate) field: Option<Placed>,
}

/// The name of some bits: of a field, or else of bytes.
pub(crate) fn named(layout: &Layout, start: i32, width: u32) -> Named {
    if let Some(name) = layout.name(start, width) {
        let header = layout.headers()[name.header].kind;
        let field = name.field.map(|field| (header, field).into());
        return Named { name: name.text, field };
    }
    let end = start + width as i32;
    let name = match (start % 8, width % 8) {
        (0, 0) if width == 8 => format!("byte {}", start / 8),
        (0, 0) => format!("bytes {}..{}", start / 8, end / 8),
        _ => format!("bits {start}..{end}"),
    };
    Named { name, field: None }
}

/// The layout of packets of which `facts` are known, that come to an exit: what elements on the path
/// marked says where the network header is, else it is where it usually is.
pub(super) fn coming_in(
    program: &Program,
    writes: &Writes,
    facts: &Facts,
    visits: &[Visit],
    usual: Option<i32>,
) -> Layout {
    let network = came_in(visits).or(facts.position(Header::Network)).or(usual);
    let follows = |visit: &Visit| visit.transport.filter(|at| Some(*at) > network);
    let transport = visits.iter().rev().find_map(follows);
    Layout::coming_in(program, writes, facts, Start::of(facts, network, transport))
}

/// What is known besides if conditions hold.
pub(super) fn learnt(program: &Program, facts: &Facts, known: &Conditions) -> Facts {
    known.iter().fold(facts.clone(), |facts, (asked, condition)| match asked {
        ConditionSubject::Number(term) => facts.with(program, *term, &condition.set),
        _ => facts,
    })
}

/// Where elements last found a network header that came in, and was not pushed.
pub(super) fn came_in(visits: &[Visit]) -> Option<i32> {
    visits.iter().rev().find_map(|visit| visit.network.filter(|&at| at >= 0))
}
