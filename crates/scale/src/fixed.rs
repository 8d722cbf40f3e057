//! A fixed number of cores: that of the peak or of the mean, with or without balancing; or RSS alone.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, MS, Nanos, Observation, Policy};
use crate::spread::resize;

/// So many cores from the first decision on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fixed {
    cores: usize,
}

impl Fixed {
    /// Of a number that was chosen beforehand.
    pub fn new(cores: usize) -> Self {
        Self { cores }
    }

    /// The cores for a load of so many cores, each with so much of its time used at the most.
    pub fn for_load(load: f64, most: f64) -> Self {
        Self::new((load / most).ceil().max(1.0) as usize)
    }
}

impl Policy for Fixed {
    fn period(&self) -> Nanos {
        100 * MS
    }

    fn decide(&mut self, _: Nanos, seen: &Observation) -> Vec<Action> {
        match seen.dedicated().count() == self.cores {
            true => Vec::new(),
            false => resize(seen, self.cores, false),
        }
    }
}
