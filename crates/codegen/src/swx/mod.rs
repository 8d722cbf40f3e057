//! DPDK's software switch (SWX): segments as a `.spec` for DPDK 22.11, with the entries of its tables.
//!
//! The language has fields of whole bytes, numbers of at most 64 bits to compute with, forward jumps, and tables that match
//! exactly or by masks. A step becomes instructions behind a label; lists of rules, routes and what is tested of numbers
//! wider than 64 bits become tables whose entries name the arm that is jumped to. Headers are found first, by one parser for all segments; an
//! exit writes to them, counts the packet under its number, and sends it.
//!
//! Nothing there knows how long a frame is: a header that is cut off is read as whatever the buffer holds, so a core asks for lengths
//! first. What leaves is as long as what came in.
//!
//! A frame that is handed off leaves by the port towards the cores, behind an 802.1ad tag whose VLAN ID is the number of the
//! continuation; one from there leaves by the port that its tag names.
//!
//! `read` executes instructions and entries symbolically, and shares nothing with what writes them.

pub mod change;
mod emit;
mod read;
pub mod spec;

use ir::Program;
use ir::layout::Layout;
use ir::program::StepId;

use crate::{Device, File, Lack, Presumed, Presumption, Target, Unread};

/// The specification.
pub const SPEC: &str = "catena.spec";
/// Commands for DPDK's example `pipeline`.
const COMMANDS: &str = "catena.cli";

/// The registers that count packets, by exit.
pub const CLASSES: &str = "classes";

/// The file of a table's entries.
pub fn entries_of(table: &str) -> String {
    format!("{table}.txt")
}

/// Pipelines of SWX.
pub(crate) struct Swx;

/// Pipelines of SWX.
pub(crate) static SWX: Swx = Swx;

impl Target for Swx {
    fn name(&self) -> &'static str {
        "swx"
    }

    fn cuts(&self) -> bool {
        false
    }

    fn decides(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumption>, Lack> {
        emit::decides(program, step, layout)
    }

    fn does(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumed>, Lack> {
        emit::does(program, step, layout)
    }

    fn emit(&self, device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
        emit::emit(device)
    }

    fn read(&self, files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread> {
        read::read(files, device)
    }
}
