//! Declared state that goes to another process: see [`ir::state::snapshot`].

use std::collections::BTreeMap;

use dataplane::change::{Inventory, Keeper};
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
    /// Flows in it.
    pub flows: usize,
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
                let Some(keeper) = keepers.iter().find(|keeper| keeper.name == owner) else {
                    continue;
                };
                let new = || ElementState { class: keeper.class.clone(), ..Default::default() };
                let element = worker.entry(owner.to_string()).or_insert_with(new);
                element.state.insert(name.to_string(), value.clone());
            }
            snapshot.workers.push(worker);
        }
        Ok(snapshot.to_string())
    }

    /// Takes over what [`Instance::export_state`] gave, in place of what elements of these names have; other elements
    /// keep what they have. Nothing changes if anything of it does not fit the chain.
    ///
    /// # Errors
    /// What is wrong with it; or there are several workers: whose a flow is they would not know.
    pub fn import_state(&self, text: &str) -> Result<Imported, Error> {
        let _one = lock(&self.changing);
        if self.fleet.len() != 1 {
            let workers = self.fleet.len();
            return Err(Error::State(format!(
                "state can be taken over by a run with one worker only, and there are {workers}"
            )));
        }
        let snapshot = Snapshot::parse(text).map_err(Error::State)?;
        let [worker] = &snapshot.workers[..] else {
            let workers = snapshot.workers.len();
            return Err(Error::State(format!("it is of {workers} workers, and this run has one")));
        };
        let now = self.time().now();
        let store = store(worker, &lock(&self.running).inventory, now).map_err(Error::State)?;
        let flows = |(.., value): (&str, &str, &StateValue)| match value {
            StateValue::Flows(flows) => flows.len(),
            _ => 0,
        };
        let imported = Imported { elements: worker.len(), flows: store.iter().map(flows).sum() };
        self.fleet.call(0, move |router| router.set_state(&store)).ok_or(Error::WorkerDead)?;
        Ok(imported)
    }
}
