//! Ironside's boost mode (§4.3.3): a core with a backlog over several epochs only pulls and deals until its queue is empty.

use serde::{Deserialize, Serialize};

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Epochs with a backlog after which a core only deals (§4.3.3: "more than a few"; ours).
    pub after: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { after: 3 }
    }
}

/// The state of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boost {
    epochs: u32,
    on: bool,
}

impl Boost {
    /// Whether it only deals in the next epoch, after one that ended with or without more than it can do, and with or
    /// without packets in the queue.
    pub fn epoch(&mut self, settings: &Settings, is_too_much: bool, is_empty: bool) -> bool {
        if self.on {
            self.on = !is_empty;
            self.epochs = 0;
        } else {
            self.epochs = if is_too_much { self.epochs + 1 } else { 0 };
            self.on = self.epochs > settings.after;
        }
        self.on
    }

    /// Whether it only deals.
    pub fn is_on(&self) -> bool {
        self.on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_after_several_epochs_and_ends_with_an_empty_queue() {
        let (settings, mut boost) = (Settings::default(), Boost::default());
        let mut epoch = |too_much, empty| boost.epoch(&settings, too_much, empty);
        assert!(!epoch(true, false) && !epoch(true, false) && !epoch(false, false));
        assert!(
            !epoch(true, false) && !epoch(true, false) && !epoch(true, false) && epoch(true, false)
        );
        assert!(epoch(false, false), "there are packets yet");
        assert!(!epoch(false, true) && !epoch(true, false));
    }
}
