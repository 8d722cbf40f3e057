//! eBPF for XDP: programs that the kernel runs on frames as they come in.
//!
//! A segment becomes one program, without a compiler or libbpf: [`compile`] makes instruction words and
//! maps of it, which are written as an object that `ip link set dev DEVICE xdp obj catena.o sec xdp`
//! and libbpf load. What maps hold from the beginning is a file of its own, and a listing names the
//! element behind each block of instructions.
//!
//! A frame that is handed off leaves by the port towards the cores, one that leaves by the only port
//! of its segment goes out with `XDP_TX`, others by a map of interfaces under the device's port
//! numbers. Every exit is a class that is counted: under its step's number there are, for each
//! processor, its packets, their bytes as they came in, and the sums of other lengths that the chain
//! counts them by. Flows are looked up in [leases](lease) of them; where there is none, a core goes on. Frames from the cores leave by the port that their tag names ([`back`]); this program is no part of
//! the object, and the same for all chains.

mod back;
mod emit;
mod files;
pub mod insn;
pub mod lease;
mod listing;
mod object;
mod read;

pub use back::back;
pub use object::{Code, Map, MapKind, Object, PORTS_MAP, counters_map};

use ir::layout::{Layout, Layouts};
use ir::program::StepId;
use ir::{NodeId, Program, Span};

use crate::{Device, File, Lack, Presumed, Presumption, Target, Unread};
use emit::{Around, Emitter};

/// Instructions that are for one step, or for one rule of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first instruction.
    pub first: usize,
    /// The step.
    pub step: StepId,
    /// The element that it is about.
    pub element: NodeId,
    /// Its rule, if it is about one.
    pub span: Option<Span>,
}

/// What a device is to be given, before it is written to files.
#[derive(Debug)]
pub struct Compiled {
    /// Programs and maps.
    pub object: Object,
    /// By program: blocks in order.
    pub blocks: Vec<Vec<Block>>,
}

impl Compiled {
    /// The block that an instruction of a program is in.
    pub fn block(&self, program: usize, instruction: usize) -> Option<&Block> {
        let blocks = self.blocks.get(program)?;
        blocks.iter().rev().find(|block| block.first <= instruction)
    }
}

/// Compiles a device's segments.
///
/// # Errors
/// What does not fit, and the step of which segment it is about.
pub fn compile(device: &Device<'_>) -> Result<Compiled, (usize, StepId, Lack)> {
    let layouts: Vec<Layouts> =
        device.segments.iter().map(|segment| Layouts::of(&segment.program)).collect();
    let leases = lease::leases(device.segments.iter().map(|segment| &segment.program));
    let mut around = Around::new(Some(device), leases);
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

/// An object from the files that [`Target::emit`] gives.
///
/// # Errors
/// The first place that is not understood.
pub fn object(files: &[File]) -> Result<Object, Unread> {
    files::read(files)
}

/// The target.
pub static EBPF: Ebpf = Ebpf;

/// eBPF for XDP in the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Ebpf;

/// Whether a step can be turned into instructions.
fn can(program: &Program, step: StepId) -> Result<(), Lack> {
    let ask = |layouts: Option<&Layouts>| {
        let mut around = Around::new(None, lease::leases([program]));
        let mut emitter = Emitter::new(program, layouts, &mut around, 0, &[]);
        emitter.step(step, program.step(step))
    };
    match ask(None) {
        // What numbers can be may follow from what was tested before.
        Err(Lack::Number(_) | Lack::Comparison | Lack::Match(..)) => {
            ask(Some(&Layouts::of(program)))
        }
        answer => answer,
    }
}

impl Target for Ebpf {
    fn name(&self) -> &'static str {
        "ebpf"
    }

    fn cuts(&self) -> bool {
        true
    }

    fn leases(&self) -> bool {
        true
    }

    // It tests whatever it looks at, and presumes nothing.
    fn decides(
        &self,
        program: &Program,
        step: StepId,
        _: &Layout,
    ) -> Result<Vec<Presumption>, Lack> {
        can(program, step).map(|()| Vec::new())
    }

    fn does(&self, program: &Program, step: StepId, _: &Layout) -> Result<Vec<Presumed>, Lack> {
        can(program, step).map(|()| Vec::new())
    }

    fn emit(&self, device: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
        let compiled = compile(device)?;
        let written = files::write(&compiled.object);
        let mut files = written.map_err(|_| (0, StepId(0), Lack::Room("bytes", 0, 0)))?;
        let listing = listing::listing(&compiled, device);
        files.push(File { name: files::LISTING.into(), contents: listing.into_bytes() });
        Ok(files)
    }

    fn read(&self, files: &[File], device: &Device<'_>) -> Result<Vec<Program>, Unread> {
        let object = files::read(files)?;
        let unread = |line, message| Unread { file: files::OBJECT.into(), line, message };
        if object.programs.len() != device.segments.len() {
            return Err(unread(0, "it has another number of programs".into()));
        }
        let read = |number| {
            read::read(&object, number, device).map_err(|(at, message)| unread(at + 1, message))
        };
        (0..device.segments.len()).map(read).collect()
    }
}
