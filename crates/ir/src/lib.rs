//! Meaning: what packets, elements and chains mean, said once for every target.
#![forbid(unsafe_code)]

pub mod costs;
mod diagnostic;
pub mod field;
mod graph;
pub mod hash;
pub mod header_space;
pub mod interp;
mod interval;
pub mod layout;
pub mod model;
mod notation;
mod prefix_table;
pub mod program;
pub mod quantity;
mod range_map;
pub mod state;
pub mod text;
pub mod topology;
pub mod verify;
pub mod yaml;

pub use diagnostic::{
    Diagnostic, FileId, Label, LineColumn, Severity, Sources, Span, has_errors, nearest,
};
pub use field::{Base, Field};
pub use graph::{Edge, Graph, Group, Node, NodeId, Port, Processing, Terminal, Wire};
pub use header_space::{Cube, HeaderSpace, TooLarge};
pub use interval::{IntervalSet, MAX_MASK_INTERVALS};
pub use model::{Cond, Expr, Model, Op, Reason};
pub use prefix_table::{PrefixEntry, PrefixRange, PrefixTable};
pub use program::Program;
pub use range_map::RangeMap;
pub use state::{StateValue, Store};
