//! From segments to a specification, and the entries of its tables.

mod code;
mod exit;
mod number;
mod print;
mod steps;
mod table;

use ir::layout::Layout;
use ir::program::{Program, StepId};

use crate::{Device, File, Lack, Presumed, Presumption};

pub(super) fn decides(
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumption>, Lack> {
    steps::decides(program, step, layout)
}

pub(super) fn does(
    program: &Program,
    step: StepId,
    layout: &Layout,
) -> Result<Vec<Presumed>, Lack> {
    steps::does(program, step, layout)
}

pub(super) fn emit(device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
    let mut builder = steps::Builder::new(device);
    builder.build()?;
    print::files(builder, device).map_err(|lack| (0, StepId(0), lack))
}
