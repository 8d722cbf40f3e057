//! Leases of flows that a run gives the device in front of it.

use compiler::partition::{Compiled, Lessor, lessors};
use dataplane::io::LeaseMaps;
use dataplane::{Lease, Leased};
use engine::control::Controlled;

use crate::log::Log;

/// Who gives leases while a chain runs.
pub(super) struct Leasing {
    lessors: Vec<Lessor>,
    /// The device's programs that leases were given to.
    given: Option<Vec<u32>>,
    /// The chain was changed: what the device goes by is no more what elements do.
    is_over: bool,
    was_full: bool,
}

impl Leasing {
    pub(super) fn new(compiled: &Compiled) -> Self {
        Self { lessors: lessors(compiled), given: None, is_over: false, was_full: false }
    }

    /// Renews leases, and gives others. `maps` opens those of a device that holds what it should hold; its programs are known
    /// by numbers.
    pub(super) fn renew(
        &mut self,
        run: &Controlled,
        programs: Option<Vec<u32>>,
        maps: impl FnOnce(&[Lessor]) -> Result<Vec<LeaseMaps>, String>,
        (about, log): (&str, Log),
    ) {
        if self.is_over || self.lessors.is_empty() {
            return;
        }
        let fleet = run.instance.fleet();
        // Flows of several workers may have keys in common.
        let programs = programs.filter(|_| fleet.len() == 1);
        if self.given != programs {
            if self.given.take().is_some() {
                self.end(run);
            }
            let Some(programs) = programs else { return };
            match maps(&self.lessors) {
                Ok(maps) => {
                    let all = self.lessors.iter().cloned().zip(maps).map(lease).collect();
                    let give = |router: &mut dataplane::Router| router.leases().give(all);
                    fleet.call(0, give);
                }
                Err(why) => {
                    log.warn(&format!("offload: {about} is given no leases of flows: {why}"));
                    self.is_over = true;
                    return;
                }
            }
            self.given = Some(programs);
        }
        if self.given.is_none() {
            return;
        }
        loop {
            match fleet.call(0, |router| router.leases().renew()) {
                Some(Some(Leased { more: true, .. })) => {}
                Some(Some(Leased { full, flows, .. })) => {
                    if full && !self.was_full {
                        log.info(&format!(
                            "offload: {about} has leases of {flows} flows and room for no more; cores take the others"
                        ));
                    }
                    self.was_full = full;
                    return;
                }
                Some(None) => {
                    log.info(&format!(
                        "offload: {about} has no leases of flows any more: the chain was changed since this run began"
                    ));
                    self.is_over = true;
                    return;
                }
                None => return,
            }
        }
    }

    /// Ends all leases.
    pub(super) fn end(&mut self, run: &Controlled) {
        self.given = None;
        run.instance.fleet().call(0, |router| router.leases().end());
    }
}

fn lease((lessor, maps): (Lessor, LeaseMaps)) -> Lease {
    let owner = lessor.of.owner.clone();
    let allows = move |key: &[u128], bound: &[u128], times, prolonged| {
        lessor.allows(key, bound, times, prolonged)
    };
    Lease { owner, maps, allows: Box::new(allows) }
}
