//! Declared state that goes to another process: see [`ir::state::snapshot`].

use std::collections::{BTreeMap, BTreeSet};

use dataplane::Router;
use dataplane::change::{Distributed, Estate, Inventory, Keeper};
use ir::model::StateKind;
use ir::state::snapshot::{ElementState, Snapshot};
use ir::{StateValue, Store};

use super::{Instance, lock};
use crate::error::Error;

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
        let keeper = inventory.elements.iter().find(|keeper| keeper.name == *name);
        let keeper = keeper.ok_or_else(|| format!("the chain has no element '{name}'"))?;
        if keeper.class != *class {
            return Err(format!("'{name}' is of class {}, not {class}", keeper.class));
        }
        for (piece, value) in state {
            let declared = keeper.state.iter().find(|(declared, _)| declared == piece);
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
    /// The declared state of all workers' elements as text, for [`Instance::import_state`] of another process. Each
    /// worker gives its own between two rounds.
    ///
    /// # Errors
    /// If a worker is dead.
    pub fn export_state(&self) -> Result<String, Error> {
        let _one = lock(&self.changing);
        let keepers: Vec<Keeper> = lock(&self.running).inventory.elements.clone();
        let all = self.fleet.call_all(|router| router.state());
        if all.len() != self.fleet.len() {
            return Err(Error::WorkerDead);
        }
        let mut snapshot = Snapshot::default();
        for (_, store) in all {
            let mut worker: BTreeMap<String, ElementState> = BTreeMap::new();
            for (owner, name, value) in store.iter() {
                // An element may have more than its model declares now.
                let declares = |keeper: &&Keeper| {
                    keeper.name == owner
                        && keeper.state.iter().any(|(declared, _)| *declared == name)
                };
                let Some(keeper) = keepers.iter().find(declares) else { continue };
                let new = || ElementState { class: keeper.class.clone(), ..Default::default() };
                let element = worker.entry(owner.to_string()).or_insert_with(new);
                element.state.insert(name.to_string(), value.clone());
            }
            snapshot.workers.push(worker);
        }
        Ok(snapshot.to_string())
    }

    /// Takes over what [`Instance::export_state`] gave, in place of what elements of these names have; other elements
    /// keep what they have. Each flow goes to the worker that its packets come to; all else to the worker that has the
    /// number of the one that it was of, and counts of further ones to the first. Nothing changes if anything of it
    /// does not fit the chain.
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
        let by = dispatch.clone();
        let distribute = move |router: &mut Router| -> Vec<Distributed> {
            stores.iter().map(|store| router.distribute(store, &by)).collect()
        };
        let all = self.fleet.call(0, distribute).ok_or(Error::WorkerDead)?;
        let lost: usize = all.iter().map(|distributed| distributed.lost).sum();
        let mut shares: Vec<(Store, Vec<Estate>)> = Vec::new();
        shares.resize_with(workers, Default::default);
        for (worker, Distributed { flows, rest, .. }) in all.into_iter().enumerate() {
            for (group, flows) in flows {
                let group =
                    usize::from(group).checked_sub(1).and_then(|group| dispatch.group(group));
                shares[group.map_or(0, |(worker, _)| worker)].1.push(flows);
            }
            match worker < workers {
                true => shares[worker].0 = rest,
                false => add_counts(&mut shares[0].0, &rest),
            }
        }
        for (worker, (rest, flows)) in shares.into_iter().enumerate() {
            let take = move |router: &mut Router| {
                router.set_state(&rest);
                flows.into_iter().for_each(|flows| router.import_group(flows));
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
