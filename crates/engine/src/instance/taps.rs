//! Taps in the chain of an instance. They stay while its configuration changes.

use std::sync::{Arc, Mutex};

use dataplane::ports::InUse;
use dataplane::{Router, Tap};
use ir::Port;

use super::{Configuration, Instance, lock};
use crate::error::Error;

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapPoint {
    /// Where it begins.
    pub from: Port,
    /// Where it ends.
    pub to: Port,
    /// Its name for people.
    pub name: String,
    /// File and line where it was written.
    pub landmark: String,
}

/// What taps are there for.
pub trait Watcher: Send + Sync {
    /// The connections to tap in a configuration.
    ///
    /// # Errors
    /// Why there are none.
    fn places(
        &self,
        configuration: &Configuration,
        devices: &InUse,
    ) -> Result<Vec<TapPoint>, Error>;

    /// Hears which connections are tapped from now on, and the number of the first; the others'
    /// numbers follow.
    fn begins(&self, first: u32, places: &[TapPoint]);

    /// Puts a tap into the connection of a number, on a worker.
    fn tap(&self, router: &mut Router, place: &TapPoint, number: u32, worker: u32) -> Option<Tap>;

    /// Hears that no connection is tapped any more, and why.
    fn ends(&self, why: &str);
}

/// Connections that are tapped for a watcher as long as this lives.
pub struct Tapping<'a> {
    instance: &'a Instance,
    id: u64,
}

impl Drop for Tapping<'_> {
    fn drop(&mut self) {
        self.instance.untap(self.id);
    }
}

/// A watcher's taps.
struct Watched {
    id: u64,
    watcher: Arc<dyn Watcher>,
    /// How many places there have been.
    places: u32,
    /// By worker.
    at: Vec<(usize, Vec<Tap>)>,
}

/// All taps.
#[derive(Default)]
pub(super) struct Taps {
    all: Vec<Watched>,
    /// How many there have been.
    count: u64,
}

fn insert(
    router: &mut Router,
    watcher: &dyn Watcher,
    (first, places): (u32, &[TapPoint]),
    worker: usize,
) -> Vec<Tap> {
    let numbered = (first..).zip(places);
    let tap = |(number, place): (u32, &TapPoint)| watcher.tap(router, place, number, worker as u32);
    numbered.filter_map(tap).collect()
}

/// A watcher, and the number that its next place gets.
type Known = (u64, Arc<dyn Watcher>, u32);

/// What came of putting taps into routers that are built in the background, by watcher.
type Outcome = (u64, Result<(usize, Vec<Tap>, u32), Error>);

/// Puts the taps that there are into routers that are built to replace others.
#[derive(Clone)]
pub(super) struct Carrier {
    watchers: Arc<[Known]>,
    outcomes: Arc<Mutex<Vec<Outcome>>>,
}

impl Carrier {
    pub(super) fn insert(
        &self,
        router: &mut Router,
        worker: usize,
        configuration: &Configuration,
        devices: &InUse,
    ) {
        for (id, watcher, first) in self.watchers.iter() {
            let outcome = watcher.places(configuration, devices).map(|places| {
                if worker == 0 {
                    watcher.begins(*first, &places);
                }
                (worker, insert(router, &**watcher, (*first, &places), worker), places.len() as u32)
            });
            lock(&self.outcomes).push((*id, outcome));
        }
    }
}

impl Instance {
    /// Taps connections on all workers.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn tap(&self, watcher: Arc<dyn Watcher>) -> Result<Tapping<'_>, Error> {
        let _one = lock(&self.changing);
        let (configuration, devices) = {
            let running = lock(&self.running);
            (running.configuration.clone(), running.in_use.first().cloned().unwrap_or_default())
        };
        let places: Arc<[TapPoint]> = watcher.places(&configuration, &devices)?.into();
        watcher.begins(0, &places);
        let mut at = Vec::new();
        for worker in 0..self.fleet.len() {
            let (watcher, places) = (Arc::clone(&watcher), Arc::clone(&places));
            let work = move |router: &mut Router| insert(router, &*watcher, (0, &places), worker);
            at.extend(self.fleet.call(worker, work).map(|taps| (worker, taps)));
        }
        let mut taps = lock(&self.taps);
        taps.count += 1;
        let id = taps.count;
        taps.all.push(Watched { id, watcher, places: places.len() as u32, at });
        Ok(Tapping { instance: self, id })
    }

    /// Takes a watcher's taps out.
    fn untap(&self, id: u64) {
        let _one = lock(&self.changing);
        let mut taps = lock(&self.taps);
        let Some(place) = taps.all.iter().position(|watched| watched.id == id) else { return };
        let watched = taps.all.remove(place);
        drop(taps);
        for (worker, taps) in watched.at {
            let work = move |router: &mut Router| {
                taps.into_iter().for_each(|tap| router.taps().remove(tap));
            };
            self.fleet.call(worker, work);
        }
    }

    /// What puts the taps that there are into another router.
    pub(super) fn carrier(&self) -> Carrier {
        let taps = lock(&self.taps);
        let of = |t: &Watched| (t.id, Arc::clone(&t.watcher), t.places);
        Carrier { watchers: taps.all.iter().map(of).collect(), outcomes: Arc::default() }
    }

    /// The routers that taps were put into have taken over.
    pub(super) fn carried(&self, carrier: &Carrier) {
        let mut taps = lock(&self.taps);
        for watched in &mut taps.all {
            watched.at.clear();
        }
        for (id, outcome) in std::mem::take(&mut *lock(&carrier.outcomes)) {
            let Some(at) = taps.all.iter().position(|watched| watched.id == id) else { continue };
            match outcome {
                Ok((worker, own, places)) => {
                    let watched = &mut taps.all[at];
                    watched.places += if worker == 0 { places } else { 0 };
                    watched.at.push((worker, own));
                }
                Err(why) => taps.all.remove(at).watcher.ends(&why.to_string()),
            }
        }
    }
}
