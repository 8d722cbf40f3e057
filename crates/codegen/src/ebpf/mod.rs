//! eBPF for XDP: programs that the kernel runs on frames as they come in.

mod emit;
pub mod insn;
mod object;
mod read;

pub use object::{Code, Map, MapKind, Object};

use ir::Program;
use ir::layout::{Layout, Layouts};
use ir::program::StepId;

use crate::{Device, Lack};
use emit::{Around, Emitter};

/// What a device is to be given, before it is written to files; and which step's block begins at
/// which instruction of each program.
pub struct Compiled {
    /// Programs and maps.
    pub object: Object,
    /// By program: first instructions of blocks and their steps, in order.
    pub blocks: Vec<Vec<(usize, StepId)>>,
}

/// Compiles a device's segments.
///
/// # Errors
/// What does not fit, and the step of which segment it is about.
pub fn compile(device: &Device<'_>) -> Result<Compiled, (usize, StepId, Lack)> {
    let layouts: Vec<Layouts> =
        device.segments.iter().map(|segment| Layouts::of(&segment.program)).collect();
    let mut around = Around { device: Some(device), maps: Vec::new(), ports: None };
    let (mut programs, mut blocks) = (Vec::new(), Vec::new());
    for (number, (segment, layouts)) in device.segments.iter().zip(&layouts).enumerate() {
        let emitter =
            Emitter::new(&segment.program, Some(layouts), &mut around, number, &segment.ingress);
        let emitted = emitter.emit().map_err(|(step, lack)| (number, step, lack))?;
        programs.push(emitted.code);
        blocks.push(emitted.blocks);
    }
    Ok(Compiled { object: Object { maps: around.maps, programs }, blocks })
}

/// Whether a step alone can be turned into instructions.
///
/// # Errors
/// What is lacking.
pub fn can(program: &Program, step: StepId, _layout: &Layout) -> Result<(), Lack> {
    let mut around = Around { device: None, maps: Vec::new(), ports: None };
    Emitter::new(program, None, &mut around, 0, &[]).step(step, program.step(step))
}

/// Reads the program of a segment from an object.
///
/// # Errors
/// The first instruction that is not understood, and why.
pub fn decompile(
    object: &Object,
    number: usize,
    device: &Device<'_>,
) -> Result<Program, (usize, String)> {
    read::read(object, number, device)
}
