//! Changing a chain while it runs: what of the old chain's state goes on in the new one.
//!
//! State is carried from an element to the one of the same name and class. Elements without a
//! name of their own are numbered, and a number can come to mean another element: those must have
//! the same configuration too. Declared state must be of the same kind, see [`Plan::new`].

use std::collections::{HashMap, HashSet};
use std::fmt;

use elements::context::{Tally, WorkerResources};
use elements::element_state::ElementState;
use ir::model::StateKind;
use ir::{StateValue, Store};
use net::Packet;

use crate::stats::{Holding, Load};

/// What the elements of a router may keep; it does not change while the router runs.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// By element, in the order of the chain.
    pub elements: Vec<Declaration>,
}

impl Inventory {
    /// The elements that share an element's flows.
    fn sharers(&self, owner: &str) -> Vec<&str> {
        let shares = |declaration: &&Declaration| declaration.shares.as_deref() == Some(owner);
        self.elements.iter().filter(shares).map(|declaration| declaration.name.as_str()).collect()
    }
}

/// What state an element declares.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its full name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Its configuration.
    pub config: String,
    /// The state that its model declares as its own.
    pub state: Vec<(&'static str, StateKind)>,
    /// The element whose flows are this one's, too, if it is another.
    pub shares: Option<String>,
    /// Whether its successor does over again what it did.
    pub starts_over: bool,
}

impl Declaration {
    /// Whether its name is a number that it was given.
    fn is_anonymous(&self) -> bool {
        self.name.rsplit('/').next().is_some_and(|name| name.contains('@'))
    }
}

/// What becomes of an element's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All of it goes on.
    Kept,
    /// Some of it does not go on, or may not.
    Partly,
    /// None of it goes on.
    Lost,
    /// The element was not there before.
    New,
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Fate::Kept => "kept",
            Fate::Partly => "partly",
            Fate::Lost => "lost",
            Fate::New => "new",
        })
    }
}

/// What becomes of the state of one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementPlan {
    /// The element's full name.
    pub element: String,
    /// Its class, in the old chain if it was there.
    pub class: String,
    /// What becomes of it.
    pub fate: Fate,
    /// The declared state that it is about.
    pub state: Vec<&'static str>,
    /// What it holds, as far as that is known.
    pub holding: Holding,
    /// Why, if not everything is kept; or what keeping it can cost.
    pub why: String,
}

/// What becomes of all state when one router replaces another.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// By element: first those that keep something, in the old chain's order, then the new ones.
    pub lines: Vec<ElementPlan>,
    /// The old chain's elements, and whether each has a successor.
    kept: HashMap<String, bool>,
    /// Declared state that does not go over, by owner and name.
    excluded: HashSet<(String, String)>,
    /// How many flows there is room for, by owner and name.
    capacities: Vec<(String, &'static str, u64)>,
    /// Elements whose flows do not go over.
    strange_flows: HashSet<String>,
}

fn differs(old: &StateKind, new: &StateKind, flows: usize) -> Option<(String, bool)> {
    match (old, new) {
        (StateKind::Counter, StateKind::Counter) => None,
        (
            StateKind::Cells { width: a, initial: old },
            StateKind::Cells { width: b, initial: new },
        ) => match (a == b, old.len() == new.len(), old == new) {
            (true, true, true) => None,
            (true, true, false) => Some(("its configuration gives other values".into(), true)),
            _ => Some((
                format!("{} numbers of {a} bits become {} of {b}", old.len(), new.len()),
                true,
            )),
        },
        (
            StateKind::Flows { capacity: old, widths: a },
            StateKind::Flows { capacity: new, widths: b },
        ) => match (a == b, old <= new) {
            (false, _) => Some(("its flows hold something else".into(), true)),
            (true, true) => None,
            (true, false) if flows as u64 <= *new => None,
            (true, false) => Some((format!("{flows} flows, room for {new}"), false)),
        },
        _ => Some(("is something else".into(), true)),
    }
}

/// Fewer flows than this go over in no time, in any mode.
const FEW: usize = 2000;
/// Flows that go over in a millisecond if each is looked at, roughly.
const IN_A_MILLISECOND: usize = 2000;

/// What it can cost that so many flows are of other elements than before.
fn delay(flows: usize) -> String {
    match flows {
        0..FEW => String::new(),
        _ => format!(
            "the elements that share its flows become others: packets can wait some {} ms until all are looked at",
            flows / IN_A_MILLISECOND
        ),
    }
}

impl Plan {
    /// What becomes of the state of `old`, whose elements hold this much now, in `new`.
    ///
    /// Counters go over; numbers do if they start out the same in both configurations; flows do
    /// if they are of one form, as many as there is room for.
    pub fn new(old: &Inventory, holdings: &HashMap<String, Holding>, new: &Inventory) -> Self {
        let mut plan = Self::default();
        let successors: HashMap<&str, &Declaration> =
            new.elements.iter().map(|k| (k.name.as_str(), k)).collect();
        for declaration in &old.elements {
            let holding = holdings.get(&declaration.name).cloned().unwrap_or_default();
            let lost = match successors.get(declaration.name.as_str()) {
                None => Some("the new configuration has no element of this name".to_string()),
                Some(to) if to.class != declaration.class => {
                    Some(format!("its class becomes {}", to.class))
                }
                Some(to) if declaration.is_anonymous() && to.config != declaration.config => {
                    Some("has no name of its own, and its configuration changes".to_string())
                }
                Some(_) => None,
            };
            let mut line = ElementPlan {
                element: declaration.name.clone(),
                class: declaration.class.clone(),
                fate: Fate::Kept,
                state: declaration.state.iter().map(|(name, _)| *name).collect(),
                holding,
                why: String::new(),
            };
            let holds = !declaration.state.is_empty() || line.holding != Holding::default();
            match (lost, successors.get(declaration.name.as_str())) {
                (None, Some(to)) => {
                    plan.kept.insert(declaration.name.clone(), true);
                    plan.compare(declaration, to, &mut line);
                    if declaration.starts_over {
                        line.fate = if holds { Fate::Partly } else { Fate::Lost };
                        line.why = "starts over".to_string();
                    } else if line.fate == Fate::Kept
                        && old.sharers(&declaration.name) != new.sharers(&declaration.name)
                    {
                        line.why = delay(line.holding.flows);
                    }
                }
                (why, _) => {
                    line.fate = Fate::Lost;
                    line.why = why.unwrap_or_default();
                    plan.kept.insert(declaration.name.clone(), false);
                }
            }
            if holds || declaration.starts_over {
                plan.lines.push(line);
            }
        }
        for declaration in &new.elements {
            for (name, kind) in &declaration.state {
                if let StateKind::Flows { capacity, .. } = kind {
                    plan.capacities.push((declaration.name.clone(), name, *capacity));
                }
            }
        }
        let before: HashSet<&str> = old.elements.iter().map(|k| k.name.as_str()).collect();
        for declaration in new.elements.iter().filter(|k| !before.contains(k.name.as_str())) {
            if !declaration.state.is_empty() {
                plan.lines.push(ElementPlan {
                    element: declaration.name.clone(),
                    class: declaration.class.clone(),
                    fate: Fate::New,
                    state: declaration.state.iter().map(|(name, _)| *name).collect(),
                    holding: Holding::default(),
                    why: String::new(),
                });
            }
        }
        plan
    }

    fn compare(&mut self, old: &Declaration, new: &Declaration, line: &mut ElementPlan) {
        let mut reasons = Vec::new();
        let mut lost = 0;
        for (name, kind) in &old.state {
            let found = new.state.iter().find(|(n, _)| n == name);
            let difference = match found {
                None => Some(("is not kept any more".to_string(), true)),
                Some((_, to)) => differs(kind, to, line.holding.flows),
            };
            let Some((why, excluded)) = difference else { continue };
            reasons.push(format!("{name}: {why}"));
            if excluded {
                lost += 1;
                if matches!(kind, StateKind::Flows { .. }) {
                    self.strange_flows.insert(old.name.clone());
                }
                self.excluded.insert((old.name.clone(), name.to_string()));
            }
        }
        if !reasons.is_empty() {
            let all = lost == old.state.len() && line.holding.packets == 0;
            line.fate = if all { Fate::Lost } else { Fate::Partly };
            line.why = reasons.join("; ");
        }
    }

    /// Whether anything is lost, or may be.
    pub fn loses(&self) -> bool {
        self.lines.iter().any(|line| matches!(line.fate, Fate::Lost | Fate::Partly))
    }

    /// Leaves of state that was handed over what goes over; gives the packets of elements that have no successor.
    pub(crate) fn sift(
        &self,
        HandoverState { declared, elements }: &mut HandoverState,
    ) -> Vec<Packet> {
        declared.retain(|owner, name| self.carries(owner, name));
        for (owner, name, capacity) in &self.capacities {
            if let Some(StateValue::Flows(flows)) = declared.get_mut(owner, name) {
                flows.resize(*capacity);
            }
        }
        for (name, state) in &mut *elements {
            if self.strange_flows.contains(name) {
                state.native = None;
            }
        }
        let gone = elements.extract_if(.., |(name, _)| !self.keeps(name));
        gone.flat_map(|(_, state)| state.packets).collect()
    }

    /// Whether an element of this name replaces one.
    pub(crate) fn keeps(&self, element: &str) -> bool {
        self.kept.get(element) == Some(&true)
    }

    /// Whether declared state goes over. Owners that are no elements are common to all.
    fn carries(&self, owner: &str, state: &str) -> bool {
        self.kept.get(owner).is_none_or(|kept| *kept)
            && !self.excluded.contains(&(owner.to_string(), state.to_string()))
    }
}

/// All that goes from one router to the next, in a form that another thread can take.
pub struct Handover {
    /// The worker's clock, pool and random numbers.
    pub(crate) core: WorkerResources,
    pub(crate) state: HandoverState,
    /// Errors that elements met.
    pub(crate) errors: u64,
    /// How busy the worker has been.
    pub(crate) load: Load,
    pub(crate) elements: Vec<ElementCounts>,
    /// Packets that came to network functions, by name.
    pub(crate) functions: Vec<(String, u64)>,
}

/// What an element did, for the one that replaces it.
pub(crate) struct ElementCounts {
    /// Its full name.
    pub(crate) name: String,
    /// What it dropped or noted.
    pub(crate) tally: Tally,
    /// Packets that came to it.
    pub(crate) packets: u64,
}

/// What the elements of a router keep of a [`Scope`](elements::element_state::Scope).
#[derive(Default)]
pub struct HandoverState {
    /// Declared state.
    pub declared: Store,
    /// What elements keep beyond, by name.
    pub(crate) elements: Vec<(String, ElementState)>,
}

impl HandoverState {
    /// Declared state alone.
    pub fn declared(declared: Store) -> Self {
        Self { declared, elements: Vec::new() }
    }

    /// How many packets are in it.
    pub fn packets(&self) -> usize {
        self.elements.iter().map(|(_, state)| state.packets.len()).sum()
    }
}

/// Declared state, sorted by the workers whose it is.
pub struct Distributed {
    /// Flows by their group, as [`net::Packet::group`].
    pub flows: Vec<(u16, HandoverState)>,
    /// What is of no group.
    pub rest: Store,
    /// Flows that no worker could have: packets of their directions come to different ones.
    pub lost: usize,
}

/// What a take-over came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenOver {
    /// Elements that took something over.
    pub elements: usize,
    /// Packets that had been held by elements without a successor.
    pub unclaimed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declaration(
        name: &str,
        class: &str,
        config: &str,
        state: &[(&'static str, StateKind)],
    ) -> Declaration {
        let text = |s: &str| s.to_string();
        let (name, class, config) = (text(name), text(class), text(config));
        Declaration { name, class, config, state: state.to_vec(), shares: None, starts_over: false }
    }

    fn cells(initial: &[u128]) -> StateKind {
        StateKind::Cells { width: 32, initial: initial.to_vec() }
    }

    fn flows(capacity: u64, width: u16) -> StateKind {
        StateKind::Flows { capacity, widths: vec![width] }
    }

    fn fates(old: &[Declaration], new: &[Declaration], held: usize) -> Vec<(String, Fate, String)> {
        let holding = Holding { packets: 0, flows: held };
        let holdings = old.iter().map(|k| (k.name.clone(), holding.clone())).collect();
        let inventory = |all: &[Declaration]| Inventory { elements: all.to_vec() };
        let plan = Plan::new(&inventory(old), &holdings, &inventory(new));
        plan.lines.into_iter().map(|l| (l.element, l.fate, l.why)).collect()
    }

    fn fate(old: Declaration, new: Declaration, held: usize) -> (Fate, String) {
        let (_, fate, why) = fates(&[old], &[new], held).remove(0);
        (fate, why)
    }

    #[test]
    fn state_goes_by_name_and_class() {
        let counter = |name: &str, class: &str| {
            declaration(name, class, "", &[("count", StateKind::Counter)])
        };
        assert_eq!(fate(counter("a", "Counter"), counter("a", "Counter"), 0).0, Fate::Kept);
        assert_eq!(
            fate(counter("a", "Counter"), counter("a", "Discard"), 0),
            (Fate::Lost, "its class becomes Discard".to_string())
        );
        let all = fates(&[counter("a", "Counter")], &[counter("b", "Counter")], 0);
        let all: Vec<_> = all.iter().map(|(name, fate, _)| (name.as_str(), *fate)).collect();
        assert_eq!(all, [("a", Fate::Lost), ("b", Fate::New)]);
    }

    #[test]
    fn a_number_is_no_name() {
        let counter = |config: &str| {
            declaration("x/Counter@2", "Counter", config, &[("count", StateKind::Counter)])
        };
        assert_eq!(fate(counter(""), counter(""), 0).0, Fate::Kept);
        assert_eq!(fate(counter(""), counter("COUNT_CALL 3 s.run"), 0).0, Fate::Lost);
    }

    #[test]
    fn what_starts_over_is_told() {
        let script =
            Declaration { starts_over: true, ..declaration("s", "Script", "wait 1s", &[]) };
        assert_eq!(fate(script.clone(), script, 0), (Fate::Lost, "starts over".to_string()));
    }

    #[test]
    fn numbers_go_if_the_configuration_does_not_set_others() {
        let switch =
            |initial: &[u128]| declaration("s", "Switch", "", &[("output", cells(initial))]);
        assert_eq!(fate(switch(&[0]), switch(&[0]), 0).0, Fate::Kept);
        assert_eq!(fate(switch(&[0]), switch(&[1]), 0).0, Fate::Lost);
        assert_eq!(fate(switch(&[0]), switch(&[0, 0]), 0).0, Fate::Lost);
    }

    #[test]
    fn flows_go_as_far_as_there_is_room() {
        let nat = |kind: StateKind| declaration("n", "IPRewriter", "", &[("flows", kind)]);
        assert_eq!(fate(nat(flows(100, 32)), nat(flows(200, 32)), 50).0, Fate::Kept);
        assert_eq!(fate(nat(flows(100, 32)), nat(flows(50, 32)), 50).0, Fate::Kept);
        assert_eq!(
            fate(nat(flows(100, 32)), nat(flows(50, 32)), 51),
            (Fate::Partly, "flows: 51 flows, room for 50".to_string())
        );
        assert_eq!(fate(nat(flows(100, 32)), nat(flows(100, 33)), 1).0, Fate::Lost);
        assert_eq!(fate(nat(flows(100, 32)), nat(cells(&[])), 1).0, Fate::Lost);
    }

    /// Many flows under another configuration cost nothing; that others share them can, and is told.
    #[test]
    fn what_keeping_flows_can_cost_is_told() {
        let nat =
            |config: &str| declaration("n", "IPRewriter", config, &[("flows", flows(1 << 20, 32))]);
        assert_eq!(fate(nat("a"), nat("b"), 100_000), (Fate::Kept, String::new()));
        let other = |name: &str| Declaration {
            shares: Some("n".to_string()),
            ..declaration(name, "IPRewriter", "", &[])
        };
        let (kept, cost) = {
            let (old, new) = ([nat(""), other("b")], [nat(""), other("a"), other("b")]);
            let (_, kept, cost) = fates(&old, &new, 100_000).remove(0);
            (kept, cost)
        };
        assert!(kept == Fate::Kept && cost.contains("some 50 ms"), "{cost}");
        let same = [nat(""), other("b")];
        assert_eq!(fates(&same, &same, 100_000)[0].2, "");
    }
}
