//! The programs of a router.

use ir::Port;
use ir::program::Program;

use super::{Planner, ProgramUse, Router, Stage};
use crate::pipeline::{Pipeline, Prepared};

/// The programs of a router that replace elements.
pub struct Programs<'a>(pub(super) &'a mut Router);

impl Programs<'_> {
    /// Lets a stage take the packets that come to the entry of its program. It is taken out again
    /// when a handler that is written changes what one of the program's elements means.
    pub fn install_stage(&mut self, program: &Program, stage: Box<dyn Stage>) {
        self.0.nodes.install(&mut self.0.core, program, stage);
    }

    /// Executes programs in place of the elements that they were made from. Gives
    /// for which entries that cannot be done, and why; there the elements go on as they are. What
    /// programs that were taken out looked keys up in is used again by those that are given at
    /// the next call.
    pub fn install(&mut self, programs: impl IntoIterator<Item = Prepared>) -> Vec<(Port, String)> {
        let mut refused = Vec::new();
        for program in programs {
            match Pipeline::new(&program, &self.0.nodes) {
                Ok(pipeline) => self.install_stage(program.program(), Box::new(pipeline)),
                Err(why) => refused.push((program.program().entry, why)),
            }
        }
        self.0.nodes.classifiers.tidy();
        refused
    }

    /// Takes out the stage of an entry; elements go on in its place. Nobody is asked for another.
    pub fn uninstall(&mut self, entry: Port) {
        self.0.nodes.report_paths(&mut self.0.core);
        self.0.nodes.discard_stage(entry);
    }

    /// Sets whether programs take all bursts that come to them, or the elements in their place where these are faster.
    pub fn set_use(&mut self, program_use: ProgramUse) {
        self.0.nodes.stages.set_program_use(program_use);
    }

    /// The elements at which programs begin whose bursts elements take, because they were faster when both were tried.
    pub fn slower(&self) -> Vec<String> {
        let nodes = &self.0.nodes;
        nodes.slower_programs().map(|node| nodes.nodes[node].name.clone()).collect()
    }

    /// Has a planner called at the start of the next round, and then of each for which it asks or
    /// in which there are entries without their stages.
    pub fn set_planner(&mut self, planner: Planner) {
        (self.0.planner, self.0.planning) = (Some(planner), true);
    }

    /// Whether there are entries whose stages were taken out.
    pub fn is_stale(&self) -> bool {
        !self.0.nodes.stages.stale.is_empty()
    }

    /// Entries whose stages were taken out since the last call.
    pub fn stale(&mut self) -> Vec<Port> {
        std::mem::take(&mut self.0.nodes.stages.stale)
    }
}
