//! From segments to a P4 program and its entries.

mod checksum;
mod entries;
mod exit;
mod nodes;
mod number;
mod part;
mod pipeline;
mod print;
mod sketch;
mod steps;

use ir::layout::Layout;
use ir::program::{Program, StepId};

use super::{Arch, COMMANDS, ENTRIES, PROGRAM};
use crate::{Device, File, Lack, Presumed, Presumption, Tables};

pub(super) fn decides(
    arch: Arch,
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumption>, Lack> {
    steps::decides(arch, program, step, layout)
}

pub(super) fn does(
    arch: Arch,
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumed>, Lack> {
    steps::does(arch, program, step, layout)
}

pub(super) fn emit(arch: Arch, device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
    let mut builder = steps::Builder::new(arch, device);
    builder.build()?;
    let pipeline = builder.pipeline;
    let file = |name: &str, text: String| File { name: name.into(), contents: text.into_bytes() };
    Ok(vec![
        file(PROGRAM, print::program(arch, &pipeline, device)),
        file(ENTRIES, entries::json(&pipeline, device)),
        file(COMMANDS, entries::commands(&pipeline, device)),
    ])
}

/// The tables of what [`emit`] writes.
pub(super) fn tables(arch: Arch, device: &Device<'_>) -> Option<Tables> {
    let mut builder = steps::Builder::new(arch, device);
    builder.build().ok()?;
    Some(sketch::tables(arch, &builder.pipeline, device))
}
