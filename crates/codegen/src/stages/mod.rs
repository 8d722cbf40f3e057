//! Whether a pipeline of match-action tables fits a device: which table lies where, and why.
//!
//! A [`Pipeline`] is plain data, in the order in which packets meet tables. [`Hardware`] is what a device has room for,
//! read from a file. On a device with stages that share memory, [`place`] puts tables in stages; on one whose tables
//! are there in a fixed order, [`assign`] finds a table for each. [`fit`] does either. No vendor's compiler is asked.

mod bits;
mod containers;
mod demand;
mod dependence;
mod fit;
mod fixed;
mod hardware;
mod joint;
mod pipeline;
mod place;
mod simplify;

pub use containers::Allocation;
pub use demand::{Amounts, Resource, Shortage};
pub use dependence::{Dependence, DependenceKind, dependences};
pub use fit::{At, Fit, Misfit, fit};
pub use fixed::{Assignment, Refused, Unassigned, assign};
pub use hardware::{Containers, FixedTable, Hardware, Instructions, Memory, Mode, Room, Stages};
pub use joint::{Joint, Member, Members, Taken};
pub use pipeline::{
    Action, Branch, BranchId, Decision, Field, FieldId, Guard, Key, MatchKind, Pipeline, Table,
    TableId,
};
pub use place::{Placement, StageRange, TablePart, Unplaceable, place};
pub use simplify::simplified;
