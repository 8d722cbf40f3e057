//! Tables: the lists of a segment by the longest path to them. Lists of one table are distinguished by a number.

use ir::program::StepId;

use super::Dialect;
use super::condition::{Match, Sends};
use crate::rule::{self, Lists};
use crate::{Lack, Segment};

/// A list of entries, or the end of a path.
pub(super) type Node = rule::Node<Match, Sends>;

/// The lists of a segment.
pub(super) struct Graph {
    pub(super) lists: Lists<Match, Sends>,
    /// Tables, each the lists in it.
    pub(super) levels: Vec<Vec<usize>>,
}

impl Graph {
    /// # Errors
    /// What the switch lacks, and at which step.
    pub(super) fn new(dialect: Dialect, segment: &Segment) -> Result<Self, (StepId, Lack)> {
        let lists = Lists::new(&dialect, segment)?;
        let mut depth = vec![0usize; lists.nodes.len()];
        let mut levels: Vec<Vec<usize>> = Vec::new();
        for &list in &lists.order {
            let level = depth[list];
            for line in lists.lines(list) {
                depth[line.to] = depth[line.to].max(level + 1);
            }
            if levels.len() <= level {
                levels.resize(level + 1, Vec::new());
            }
            levels[level].push(list);
        }
        Ok(Self { lists, levels })
    }
}
