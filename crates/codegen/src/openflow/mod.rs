//! OpenFlow 1.3 and Open vSwitch: segments as flow entries, in the text of `ovs-ofctl`.
//!
//! Two dialects: what OpenFlow 1.3 has, and what Open vSwitch has besides (registers, masks on ports, time to live,
//! fragments, TCP flags). A switch knows fields, not bytes: `condition` finds them for the numbers that a
//! program tests, `action` for those that it writes, `table` makes tables of steps, and `emit` flow entries of these.
//! `flow` prints them as text, `codec` as bytes, and `sketch` notes what their tables match. `read` executes a text as Open
//! vSwitch does, and shares nothing with the rest.
//!
//! What no switch tells apart: a VLAN tag's two types (0x8100 and 0x88a8), types behind an LLC and SNAP header and
//! in front of one, and headers that are cut off or malformed, of which all fields are 0.

mod action;
pub mod codec;
mod condition;
mod emit;
mod flow;
mod presume;
mod read;
mod sketch;
mod table;

use ir::Program;
use ir::layout::Layout;
use ir::program::StepId;

use crate::rule::{self, Packets};
use crate::{Device, File, Lack, Presumed, Presumption, Tables, Target, Unread};

pub use flow::{Action, Bits, Class, Field, Flow, FlowEntry, IN_PORT, Key};

/// The file of flow entries.
const FLOWS: &str = "flows.txt";

/// What a switch understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// OpenFlow 1.3.
    Standard,
    /// That, and Open vSwitch's extensions.
    OpenVSwitch,
}

impl Dialect {
    /// Tables that there are.
    fn tables(self) -> usize {
        254
    }
}

/// Switches that are given flow entries.
pub(crate) struct OpenFlow(Dialect);

/// Any switch with OpenFlow 1.3.
pub(crate) static OPENFLOW: OpenFlow = OpenFlow(Dialect::Standard);

/// Open vSwitch.
pub(crate) static OVS: OpenFlow = OpenFlow(Dialect::OpenVSwitch);

/// The entries that a target gives a device: what [`Target::emit`] writes as text.
///
/// # Errors
/// What does not fit, and the step of which segment it is about; nothing if the target is no switch's.
pub fn entries(
    target: &str,
    device: &Device<'_>,
) -> Option<Result<Vec<FlowEntry>, (usize, StepId, Lack)>> {
    let of = [&OPENFLOW, &OVS].into_iter().find(|of| of.name() == target)?;
    Some(emit::emit(of.0, device).map(|emitted| emitted.entries))
}

/// Entries as the text that [`Target::emit`] writes for a target.
pub fn text(target: &str, entries: &[FlowEntry]) -> Option<String> {
    let of = [&OPENFLOW, &OVS].into_iter().find(|of| of.name() == target)?;
    Some(of.text(entries))
}

impl OpenFlow {
    /// The text of entries.
    fn text(&self, entries: &[FlowEntry]) -> String {
        let load = format!("Load with: ovs-ofctl -O OpenFlow13 --bundle add-flows BRIDGE {FLOWS}");
        let fragments = "First fragments show their ports after: ovs-ofctl -O OpenFlow13 set-frags BRIDGE nx-match";
        match self.0 {
            Dialect::Standard => flow::text(entries, &[&load]),
            Dialect::OpenVSwitch => flow::text(entries, &[&load, fragments]),
        }
    }
}

impl Target for OpenFlow {
    fn name(&self) -> &'static str {
        match self.0 {
            Dialect::Standard => "openflow",
            Dialect::OpenVSwitch => "ovs",
        }
    }

    fn cuts(&self) -> bool {
        false
    }

    fn knows_servers(&self) -> bool {
        true
    }

    fn limits_rates(&self) -> bool {
        true
    }

    fn decides(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumption>, Lack> {
        rule::decide(&self.0, Packets { program, layout }, step)?;
        presume::presumed(program, step, layout)
    }

    fn does(
        &self,
        program: &Program,
        step: StepId,
        layout: &Layout,
    ) -> Result<Vec<Presumed>, Lack> {
        rule::does(&self.0, Packets { program, layout }, step)?;
        Ok(presume::written(program, step, layout))
    }

    fn emit(&self, device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
        let entries = emit::emit(self.0, device)?.entries;
        Ok(vec![File { name: FLOWS.into(), contents: self.text(&entries).into_bytes() }])
    }

    fn read(&self, files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread> {
        read::read(files, device)
    }

    fn tables(&self, device: &Device<'_>) -> Option<Tables> {
        emit::emit(self.0, device).ok().map(sketch::tables)
    }

    fn hardware(&self) -> Option<&'static str> {
        (self.0 == Dialect::OpenVSwitch).then_some("ovs")
    }
}
