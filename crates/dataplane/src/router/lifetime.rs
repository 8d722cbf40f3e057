//! How long a chain runs, as far as its elements know.

use std::fmt;

use super::Router;

/// How long a chain runs, the longest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// It always has something to do, or waits for packets that may come.
    Endless,
    /// It comes to rest: nothing comes from outside, and its own work ends.
    #[default]
    Rests,
    /// The element of this name stops the driver.
    Stops(String),
}

impl Lifetime {
    /// Whether it ends or comes to rest sooner than another.
    pub fn is_shorter_than(&self, other: &Self) -> bool {
        let rank = |lifetime: &Self| match lifetime {
            Self::Endless => 0,
            Self::Rests => 1,
            Self::Stops(_) => 2,
        };
        rank(self) > rank(other)
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endless => f.write_str("the chain does not come to rest"),
            Self::Rests => f.write_str(
                "the chain comes to rest: no element of it receives from an interface, or makes packets \
                 without a limit",
            ),
            Self::Stops(element) => {
                write!(f, "the chain ends: '{element}' stops the driver")
            }
        }
    }
}

impl Router {
    /// How long the chain runs.
    pub fn lifetime(&self) -> Lifetime {
        let all = || {
            let elements = self.nodes.elements().iter();
            elements.filter_map(|node| Some((&node.name, &node.cell.as_ref()?.element)))
        };
        if let Some((name, _)) = all().find(|(_, element)| element.stops_driver()) {
            return Lifetime::Stops(name.clone());
        }
        match all().any(|(_, element)| element.is_endless()) {
            true => Lifetime::Endless,
            false => Lifetime::Rests,
        }
    }

    /// Whether somebody outside of the chain had the driver stopped, by a handler.
    pub fn was_stopped(&self) -> bool {
        self.was_stopped
    }
}
