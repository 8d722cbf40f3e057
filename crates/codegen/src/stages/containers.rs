//! Which registers hold which fields. A register is written as a whole: tables that write fields of one register
//! conflict. There are enough of them for metadata not to share.

use std::collections::HashMap;

use super::hardware::Stages;
use super::pipeline::Pipeline;

/// Registers by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// By field: the registers that it has bits in.
    pub of: Vec<Vec<u32>>,
    /// By width in the device's order: how many are taken.
    pub taken: Vec<u32>,
}

/// Takes registers.
struct Taking<'a> {
    stages: &'a Stages,
    taken: Vec<u32>,
    next: u32,
}

impl Taking<'_> {
    /// A register for so many bits that are left: the widest that they fill, or else the narrowest that holds them.
    fn take(&mut self, left: u32) -> Option<(u32, u32)> {
        let all = || self.stages.containers.iter().enumerate();
        let free = |at: &usize| self.taken[*at] < self.stages.containers[*at].count;
        let filled =
            all().filter(|(at, of)| free(at) && of.bits <= left).max_by_key(|(_, of)| of.bits);
        let (at, of) =
            filled.or_else(|| all().filter(|(at, _)| free(at)).min_by_key(|(_, of)| of.bits))?;
        self.taken[at] += 1;
        self.next += 1;
        Some((self.next - 1, of.bits))
    }
}

impl Allocation {
    /// Puts fields in registers: those of a header one behind the other, metadata each in its own.
    ///
    /// # Errors
    /// Bits that do not fit.
    pub fn new(pipeline: &Pipeline, stages: &Stages) -> Result<Self, u32> {
        let mut taking = Taking { stages, taken: vec![0; stages.containers.len()], next: 0 };
        let mut of = vec![Vec::new(); pipeline.fields.len()];
        // Runs of fields that stand next to each other, with their bits.
        let mut runs: Vec<Vec<usize>> = Vec::new();
        let mut header: HashMap<&str, usize> = HashMap::new();
        for (at, field) in pipeline.fields.iter().enumerate() {
            let run = match &field.header {
                Some(name) => *header.entry(name).or_insert_with(|| {
                    runs.push(Vec::new());
                    runs.len() - 1
                }),
                None => {
                    runs.push(Vec::new());
                    runs.len() - 1
                }
            };
            runs[run].push(at);
        }
        let bits = |run: &[usize]| run.iter().map(|&at| pipeline.fields[at].bits).sum::<u32>();
        for run in &runs {
            let mut left = bits(run);
            let mut room: Option<(u32, u32)> = None;
            for &at in run {
                let mut need = pipeline.fields[at].bits;
                while need > 0 {
                    let (register, free) = match room {
                        Some(room) => room,
                        None => taking.take(left).ok_or(left)?,
                    };
                    let used = need.min(free);
                    of[at].push(register);
                    need -= used;
                    left -= used;
                    room = (free > used).then_some((register, free - used));
                }
            }
        }
        Ok(Self { of, taken: taking.taken })
    }
}
