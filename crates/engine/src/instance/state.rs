//! Declared state that goes to another process: see [`ir::state::snapshot`].

use std::collections::{BTreeMap, BTreeSet};

use dataplane::Router;
use dataplane::change::{Declaration, Distributed, HandoverState, Inventory};
use elements::element_state::Scope;
use ir::model::StateKind;
use ir::state::snapshot::{ElementState, Snapshot};
use ir::{StateValue, Store};

use super::{Instance, lock};
use crate::error::Error;

/// Which state is exported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Share {
    /// Everything.
    #[default]
    All,
    /// What a worker has.
    Worker(usize),
    /// The flows of a group of traffic classes, counted from 0.
    Group(usize),
}

/// What a snapshot that was taken over came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Elements that have state from it.
    pub elements: usize,
    /// Flows in it that go on.
    pub flows: usize,
    /// Flows in it whose directions come to different workers, so that none could have them.
    pub lost: u64,
}

/// Whether numbers fit the widths that are declared for them.
fn fit(numbers: &[u128], width: impl Fn(usize) -> u16) -> bool {
    let fits =
        |(index, number): (usize, &u128)| number.checked_shr(width(index).into()).unwrap_or(0) == 0;
    numbers.iter().enumerate().all(fits)
}

/// Why a piece of state cannot be an element's, if it cannot.
fn objection(value: &StateValue, kind: &StateKind) -> Option<&'static str> {
    match (value, kind) {
        (StateValue::Counter { .. }, StateKind::Counter) => None,
        (StateValue::Cells(cells), StateKind::Cells { width, initial }) => {
            if cells.len() != initial.len() {
                return Some("it has another number of cells");
            }
            (!fit(cells, |_| *width)).then_some("a number is too large")
        }
        (StateValue::Flows(flows), StateKind::Flows { .. }) => {
            let fits = |flow: &ir::state::Flow| {
                let of = |values: &[u128]| {
                    let shared = |index| kind.width(values.len() + index);
                    fit(values, |index| kind.width(index)) && fit(&flow.common, shared)
                };
                flow.values.iter().all(|values| of(values))
            };
            (!flows.iter().all(fits)).then_some("a number of a flow is too large")
        }
        _ => Some("it is something else"),
    }
}

/// The state of a worker's elements as a store, with the flows that live now; what does not fit the chain is an error.
fn store(
    state: &BTreeMap<String, ElementState>,
    inventory: &Inventory,
    now: u64,
) -> Result<Store, String> {
    let mut store = Store::new();
    for (name, ElementState { class, state }) in state {
        let declaration = inventory.elements.iter().find(|declaration| declaration.name == *name);
        let declaration =
            declaration.ok_or_else(|| format!("the chain has no element '{name}'"))?;
        if declaration.class != *class {
            return Err(format!("'{name}' is of class {}, not {class}", declaration.class));
        }
        for (piece, value) in state {
            let declared = declaration.state.iter().find(|(declared, _)| declared == piece);
            let (_, kind) = declared.ok_or_else(|| format!("'{name}' keeps no '{piece}'"))?;
            if let Some(why) = objection(value, kind) {
                return Err(format!("{piece} of '{name}' does not fit: {why}"));
            }
            let mut value = value.clone();
            if let (StateValue::Flows(flows), StateKind::Flows { capacity, .. }) =
                (&mut value, kind)
            {
                flows.expire(now);
                flows.resize(*capacity);
            }
            store.set(name, piece, value);
        }
    }
    Ok(store)
}

impl Instance {
    /// The declared state of all workers' elements, or a share of it, as text, for [`Instance::import_state`] of another
    /// process. Each worker gives its own between two rounds, and keeps it.
    ///
    /// # Errors
    /// If a worker is dead, or there is no such worker or group.
    pub fn export_state(&self, share: Share) -> Result<String, Error> {
        let _one = lock(&self.changing);
        let declarations: Vec<Declaration> = lock(&self.running).inventory.elements.clone();
        let (dispatch, workers) = (&self.options.dispatch, self.fleet.len());
        let (meant, scope) = match share {
            Share::All => (0..workers, Scope::All),
            Share::Worker(worker) if worker >= workers => {
                return Err(Error::NoWorker { worker, workers });
            }
            Share::Worker(worker) => (worker..worker + 1, Scope::All),
            Share::Group(group) => {
                let (worker, _) = dispatch.group(group).ok_or_else(|| self.no_group(group))?;
                (worker..worker + 1, Scope::Group(group as u16 + 1))
            }
        };
        let mut snapshot = Snapshot { is_part: share != Share::All, ..Snapshot::default() };
        for worker in meant {
            let store = self.fleet.call(worker, move |router| router.copy(scope));
            let store = store.ok_or(Error::WorkerDead)?;
            let mut worker: BTreeMap<String, ElementState> = BTreeMap::new();
            for (owner, name, value) in store.iter() {
                // An element may have more than its model declares now.
                let declares = |declaration: &&Declaration| {
                    declaration.name == owner
                        && declaration.state.iter().any(|(declared, _)| *declared == name)
                };
                let Some(declaration) = declarations.iter().find(declares) else { continue };
                let new =
                    || ElementState { class: declaration.class.clone(), ..Default::default() };
                let element = worker.entry(owner.to_string()).or_insert_with(new);
                element.state.insert(name.to_string(), value.clone());
            }
            snapshot.workers.push(worker);
        }
        Ok(snapshot.to_string())
    }

    /// Takes over what [`Instance::export_state`] gave, in place of what elements of these names have; other elements
    /// keep what they have. Each flow goes to the worker that its packets come to; all else to the worker that has the
    /// number of the one that it was of, and counts of further ones to the first. Of a share, flows are added to those
    /// that are there, and counts to those of the first worker. Nothing changes if anything does not fit the chain.
    ///
    /// # Errors
    /// What is wrong with it; or there are several workers, and the host does not know whose a flow is.
    pub fn import_state(&self, text: &str) -> Result<Imported, Error> {
        let _one = lock(&self.changing);
        let (dispatch, workers) = (&self.options.dispatch, self.fleet.len());
        if workers != 1 && !dispatch.is_elastic() {
            return Err(Error::State(format!(
                "by dispatch mode {} it is not known which of {workers} workers a flow comes to; start with \
                 `catena run --workers {workers}`",
                dispatch.mode()
            )));
        }
        let snapshot = Snapshot::parse(text).map_err(Error::State)?;
        let now = self.time().now();
        let inventory = lock(&self.running).inventory.clone();
        let store = |worker| store(worker, &inventory, now);
        let stores: Result<Vec<Store>, String> = snapshot.workers.iter().map(store).collect();
        let stores = stores.map_err(Error::State)?;
        let count = |(.., value): (&str, &str, &StateValue)| match value {
            StateValue::Flows(flows) => flows.len(),
            _ => 0,
        };
        let flows: usize = stores.iter().flat_map(Store::iter).map(count).sum();
        let names: BTreeSet<&String> = snapshot.workers.iter().flat_map(BTreeMap::keys).collect();
        let (by, is_part) = (dispatch.clone(), snapshot.is_part);
        let distribute = move |router: &mut Router| -> Vec<Distributed> {
            let shares = stores.iter().map(|store| {
                let mut given = store.clone();
                given.retain(|owner, name| {
                    !is_part || matches!(store.get(owner, name), Some(StateValue::Flows(_)))
                });
                let mut distributed = router.distribute(&given, is_part, &by);
                if is_part {
                    distributed.rest = store.clone();
                }
                distributed
            });
            shares.collect()
        };
        let all = self.fleet.call(0, distribute).ok_or(Error::WorkerDead)?;
        let lost: usize = all.iter().map(|distributed| distributed.lost).sum();
        let mut shares: Vec<(Store, Vec<HandoverState>)> = Vec::new();
        shares.resize_with(workers, Default::default);
        for (worker, Distributed { flows, rest, .. }) in all.into_iter().enumerate() {
            for (group, flows) in flows {
                let group =
                    usize::from(group).checked_sub(1).and_then(|group| dispatch.group(group));
                shares[group.map_or(0, |(worker, _)| worker)].1.push(flows);
            }
            match worker < workers && !is_part {
                true => shares[worker].0 = rest,
                false => add_counts(&mut shares[0].0, &rest),
            }
        }
        for (worker, (rest, flows)) in shares.into_iter().enumerate() {
            let take = move |router: &mut Router| {
                let mut rest = rest;
                if is_part {
                    let own = router.state();
                    add_counts(&mut rest, &own);
                }
                router.import(HandoverState::declared(rest));
                flows.into_iter().for_each(|flows| router.import(flows));
            };
            self.fleet.call(worker, take).ok_or(Error::WorkerDead)?;
        }
        Ok(Imported { elements: names.len(), flows: flows - lost, lost: lost as u64 })
    }
}

/// Adds what counters counted to others.
fn add_counts(to: &mut Store, from: &Store) {
    for (owner, name, value) in from.iter() {
        if let StateValue::Counter { packets, bytes } = *value {
            let (p, b) = to.counter(owner, name);
            let (packets, bytes) = (packets.wrapping_add(p), bytes.wrapping_add(b));
            to.set(owner, name, StateValue::Counter { packets, bytes });
        }
    }
}
