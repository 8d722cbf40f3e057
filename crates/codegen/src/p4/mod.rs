//! P4_16: segments as a program for v1model (BMv2) or TNA (Tofino), with the entries of its tables.
//!
//! A switch knows headers, not bytes: `headers` says which of them the bits of a packet lie in, and
//! what has to hold of the packet for that. What the architecture can test of it, it tests before; a packet for which it
//! does not hold goes to a core. One parser serves all segments. Steps become conditions and tables, exits
//! actions with parameters that count packets under the exit's number.
//!
//! A frame that is handed off leaves by the port towards the cores, behind an 802.1ad tag whose VLAN ID is the number
//! of the continuation; one from there leaves by the port that its tag names.
//!
//! `read` executes program and entries symbolically, and shares nothing with what writes them.

mod emit;
mod read;

use ir::Program;
use ir::layout::Layout;
use ir::program::StepId;

use crate::{Device, File, Lack, Presumed, Presumption, Tables, Target, Unread};

/// The program.
const PROGRAM: &str = "catena.p4";
/// What its tables hold, in P4Runtime's terms.
const ENTRIES: &str = "entries.json";
/// The same as commands for `simple_switch_CLI`.
const COMMANDS: &str = "commands.txt";

/// What a program is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arch {
    /// BMv2's `simple_switch`.
    V1model,
    /// Tofino.
    Tna,
}

impl Arch {
    /// Where the port stands at which a packet came in.
    fn ingress(self) -> &'static str {
        match self {
            Self::V1model => "standard_metadata.ingress_port",
            Self::Tna => "ig_intr_md.ingress_port",
        }
    }

    /// Where the port is put by which a packet leaves.
    fn egress(self) -> &'static str {
        match self {
            Self::V1model => "standard_metadata.egress_spec",
            Self::Tna => "ig_tm_md.ucast_egress_port",
        }
    }
}

/// Switches that are given P4 programs.
pub(crate) struct P4(Arch);

/// Software switches with v1model.
pub(crate) static V1MODEL: P4 = P4(Arch::V1model);

/// Tofino.
pub(crate) static TNA: P4 = P4(Arch::Tna);

impl Target for P4 {
    fn name(&self) -> &'static str {
        "p4"
    }

    fn arch(&self) -> Option<&'static str> {
        Some(match self.0 {
            Arch::V1model => "v1model",
            Arch::Tna => "tna",
        })
    }

    fn label(&self) -> &'static str {
        match self.0 {
            Arch::V1model => "p4",
            Arch::Tna => "p4 tna",
        }
    }

    fn cuts(&self) -> bool {
        self.0 == Arch::V1model
    }

    fn decides(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumption>, Lack> {
        emit::decides(self.0, program, step, layout)
    }

    fn does(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumed>, Lack> {
        emit::does(self.0, program, step, layout)
    }

    fn emit(&self, device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
        emit::emit(self.0, device)
    }

    fn read(&self, files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread> {
        read::read(self.0, files, device)
    }

    fn tables(&self, device: &Device<'_>) -> Option<Tables> {
        emit::tables(self.0, device)
    }

    fn hardware(&self) -> Option<&'static str> {
        (self.0 == Arch::Tna).then_some("tofino-1")
    }
}
