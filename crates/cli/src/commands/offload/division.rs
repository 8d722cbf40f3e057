//! How a run's chain is divided between a device and the run, as long as the run goes on: another chain that is swapped in is
//! divided, too, if no tag that the device may have set already means something else then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use compiler::partition;
use dataplane::io::Wires;
use engine::control::Front;
use engine::session::Cut;
use ir::program::Continuation;

use super::super::compile::{Behind, device_wires};
use super::ahead::Source;
use crate::log::Log;

/// What tags and ports mean.
#[derive(Clone, Debug, Default)]
struct Meaning {
    tags: BTreeMap<Continuation, String>,
    ports: BTreeMap<String, u32>,
}

impl Meaning {
    fn of(behind: &Behind) -> Self {
        let ports = behind.rack.sited.site.ports.iter();
        let ports = ports.map(|(wire, port)| (wire.clone(), port.number)).collect();
        Self { tags: behind.compiled.tags(&behind.loaded.chain.graph), ports }
    }

    /// Whether nothing means something else.
    fn agrees(&self, other: &Self) -> bool {
        let same = |(tag, means): (&Continuation, &String)| {
            self.tags.get(tag).is_none_or(|known| known == means)
        };
        let at_same =
            |(wire, port): (&String, &u32)| self.ports.get(wire).is_none_or(|known| known == port);
        other.tags.iter().all(same) && other.ports.iter().all(at_same)
    }
}

/// How a run's chain is divided.
pub(crate) struct Division {
    source: Source,
    wires: Arc<Wires>,
    log: Log,
    /// What runs, and what was divided last.
    meanings: Mutex<(Meaning, Option<Meaning>)>,
}

impl Division {
    pub(crate) fn of(source: &Source, behind: &Behind, wires: Arc<Wires>, log: Log) -> Self {
        let meanings = Mutex::new((Meaning::of(behind), None));
        Self { source: source.clone(), wires, log, meanings }
    }

    /// Whether what runs goes on where a device hands packets to this server, if that is given a chain as it is divided now.
    pub(super) fn serves(&self, behind: &Behind) -> bool {
        let meanings = self.meanings.lock().unwrap_or_else(PoisonError::into_inner);
        let (runs, other) = (&meanings.0, Meaning::of(behind));
        let number = behind.rack.sited.site.servers.get(behind.server).map(|of| of.number);
        let (handoffs, first) = (&behind.compiled.servers.handoffs, behind.compiled.cores);
        let is_own = |tag: &Continuation| Some(*handoffs.get(tag).unwrap_or(&first)) == number;
        let mut own = other.tags.iter().filter(|(tag, _)| is_own(tag));
        own.all(|(tag, means)| runs.tags.get(tag) == Some(means))
            && runs.agrees(&Meaning { tags: BTreeMap::new(), ..other })
    }
}

impl Front for Division {
    fn divide(&self, path: &str) -> Option<Cut> {
        let behind = match self.source.with_file(path).behind() {
            Ok(behind) => behind,
            Err(why) => {
                let why = why.text(false);
                self.log.warn(&format!(
                    "offload: {path} is not divided, so all is decided here: {}",
                    why.trim_end()
                ));
                return None;
            }
        };
        let meaning = Meaning::of(&behind);
        let mut meanings = self.meanings.lock().unwrap_or_else(PoisonError::into_inner);
        if !meanings.0.agrees(&meaning) {
            self.log.info(&format!(
                "offload: tags mean something else by {path}: all is decided here until the next start"
            ));
            return None;
        }
        // Frames that are on their path have tags of before.
        self.wires.learn(&device_wires(&behind.rack.sited.site, &behind.compiled));
        meanings.1 = Some(meaning);
        Some(Arc::new(partition::on_cores(&behind.compiled)))
    }

    fn runs(&self) {
        let mut meanings = self.meanings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meaning) = meanings.1.take() {
            meanings.0 = meaning;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(tags: &[(u16, &str)], ports: &[(&str, u32)]) -> Meaning {
        let tags = tags.iter().map(|(tag, means)| (Continuation(*tag), (*means).to_string()));
        let ports = ports.iter().map(|(wire, port)| ((*wire).to_string(), *port));
        Meaning { tags: tags.collect(), ports: ports.collect() }
    }

    #[test]
    fn a_tag_or_port_that_means_something_else_is_seen() {
        let runs = meaning(&[(1, "a"), (2, "b")], &[("lan", 1)]);
        for (tags, ports, agrees) in [
            (&[(1, "a"), (3, "c")][..], &[("lan", 1), ("wan", 2)][..], true),
            (&[], &[], true),
            (&[(1, "b")], &[], false),
            (&[], &[("lan", 2)], false),
        ] {
            assert_eq!(runs.agrees(&meaning(tags, ports)), agrees, "{tags:?} {ports:?}");
        }
    }
}
