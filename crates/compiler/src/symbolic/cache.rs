//! What tables and lists of rules come to, kept from synthesis to synthesis.

use std::collections::HashMap;
use std::sync::Arc;

use ir::model::Rule;
use ir::program::ClassifyRule;
use ir::{IntervalSet, Model, NodeId, Op, PrefixTable};

use super::rules::Rules;
use super::table::Table;

/// What is known of each number that a list asks, where something is.
pub(super) type Known = Vec<Option<IntervalSet>>;

/// How the paths of the last synthesis depend on a list of rules.
#[derive(Clone, Default)]
pub(super) enum RuleDependence {
    #[default]
    Never,
    /// On each rule: they are tested one after the other.
    InTurn,
    /// On what rules ask and where they lead, not on which rules there are: paths fork on the whole
    /// list, knowing one of these.
    Whole(Vec<Known>),
    /// On which rules can match: paths fork on those alone.
    InPart,
}

/// An element's list of rules.
#[derive(Clone)]
struct List {
    element: NodeId,
    rules: Arc<[Rule]>,
    /// What it comes to; `None` if that cannot be said as conjunctions.
    made: Option<Arc<Rules>>,
    asked: RuleDependence,
    /// What its rules fit but for those that were added to the list before, where each number stood
    /// in the same place.
    fit: Vec<Known>,
}

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Cache {
    /// By address.
    tables: HashMap<usize, (Arc<PrefixTable>, Arc<Table>)>,
    /// By element and address.
    lists: HashMap<(NodeId, usize), List>,
    /// Lists of before, for those that differ from them a little.
    past: Vec<List>,
}

/// Rules, and those that take their places.
pub(crate) type Exchanged = (Arc<[ClassifyRule]>, Arc<[ClassifyRule]>);

impl Cache {
    /// Puts aside what lists and tables came to that an element does not mean any more.
    pub(crate) fn retire(&mut self, element: NodeId, model: &Model) {
        for op in operations(model) {
            match op {
                Op::Match { rules, .. } => {
                    self.past.extend(self.lists.remove(&(element, address(rules))));
                }
                Op::Lookup { table, .. } => drop(self.tables.remove(&Arc::as_ptr(table).addr())),
                _ => {}
            }
        }
    }

    /// Forgets how lists were asked.
    pub(crate) fn begin(&mut self) {
        for list in self.lists.values_mut() {
            if let RuleDependence::Whole(fit) = std::mem::take(&mut list.asked) {
                list.fit = fit;
            }
        }
    }

    /// Forgets the past.
    pub(crate) fn settle(&mut self) {
        self.past.clear();
    }

    /// A table by its rows; made once.
    pub(super) fn table(&mut self, table: &Arc<PrefixTable>) -> Arc<Table> {
        let made = || (Arc::clone(table), Arc::new(Table::new(table)));
        let address = Arc::as_ptr(table).addr();
        Arc::clone(&self.tables.entry(address).or_insert_with(made).1)
    }

    /// An element's rules as conjunctions, if they can be; made once.
    pub(super) fn rules(&mut self, element: NodeId, rules: &Arc<[Rule]>) -> Option<Arc<Rules>> {
        if let Some(list) = self.lists.get(&(element, address(rules))) {
            return list.made.clone();
        }
        let changed = |old: &List| Rules::changed(rules, &old.rules, old.made.as_ref()?);
        let made = self.past.iter().rev().find_map(changed).or_else(|| Rules::new(rules));
        let made = made.map(Arc::new);
        self.keep(element, rules, made.clone(), RuleDependence::Never);
        made
    }

    fn keep(
        &mut self,
        element: NodeId,
        rules: &Arc<[Rule]>,
        made: Option<Arc<Rules>>,
        asked: RuleDependence,
    ) {
        let list = List { element, rules: Arc::clone(rules), made, asked, fit: Vec::new() };
        self.lists.insert((element, address(rules)), list);
    }

    /// Whether all conjunctions of an element's list can hold of numbers of which this is known.
    pub(super) fn all_fit(
        &self,
        element: NodeId,
        rules: &Arc<[Rule]>,
        made: &Rules,
        known: &Known,
    ) -> bool {
        let list = self.lists.get(&(element, address(rules)));
        // Of numbers that others do not ask.
        let same = |fit: &Known| fit.iter().zip(known).all(|(fit, known)| fit == known);
        match list.is_some_and(|list| list.fit.iter().any(same)) {
            true => made.added_fit(known),
            false => made.all_fit(known),
        }
    }

    /// A path asks an element's list.
    pub(super) fn ask(&mut self, element: NodeId, rules: &Arc<[Rule]>, now: RuleDependence) {
        let Some(list) = self.lists.get_mut(&(element, address(rules))) else { return };
        match (&mut list.asked, now) {
            (RuleDependence::Whole(all), RuleDependence::Whole(mut known)) => {
                known.retain(|known| !all.contains(known));
                all.extend(known);
            }
            (RuleDependence::InPart, _) => {}
            (asked, now) => *asked = now,
        }
    }

    /// The rules to exchange in programs, if the change of an element comes to no more: if the same
    /// paths lead through it, and only the rules that they fork on are others.
    pub(crate) fn exchange(
        &mut self,
        element: NodeId,
        old: &Model,
        new: &Model,
    ) -> Option<Vec<Exchanged>> {
        if without_lists(old) != without_lists(new) {
            return None;
        }
        let mut exchanged = Vec::new();
        let mut forks = 0;
        for (old, new) in operations(old).zip(operations(new)) {
            let (Op::Match { rules: old, .. }, Op::Match { rules: new, .. }) = (old, new) else {
                continue;
            };
            let is_old = |l: &&List| l.element == element && Arc::ptr_eq(&l.rules, old);
            let Some(List { made, asked, .. }) = self.past.iter().find(is_old).cloned() else {
                // No path came to it.
                continue;
            };
            forks +=
                usize::from(matches!(asked, RuleDependence::Whole(_) | RuleDependence::InPart));
            if old == new {
                self.keep(element, new, made, asked);
                continue;
            }
            match asked {
                RuleDependence::Never => {}
                RuleDependence::Whole(known) => {
                    let made = made?;
                    let changed = Rules::changed(new, old, &made).or_else(|| Rules::new(new))?;
                    let fits = |known: &Known| changed.added_fit(known);
                    let stays = changed.is_like(&made) && known.iter().all(fits);
                    exchanged.push((Arc::clone(&made.rules), Arc::clone(&changed.rules)));
                    // Paths that are not the same go on with it, too.
                    self.keep(element, new, Some(Arc::new(changed)), RuleDependence::Whole(known));
                    if !stays {
                        return None;
                    }
                }
                RuleDependence::InTurn | RuleDependence::InPart => return None,
            }
        }
        // Of several lists, equal ones may have become one.
        (forks <= 1).then_some(exchanged)
    }
}

fn address(rules: &Arc<[Rule]>) -> usize {
    rules.as_ptr().addr()
}

/// All operations of a model.
fn operations(model: &Model) -> impl Iterator<Item = &Op> {
    let mut waiting: Vec<&Op> = model.inputs.iter().flatten().collect();
    std::iter::from_fn(move || {
        let op = waiting.pop()?;
        waiting.extend(op.blocks().flatten());
        Some(op)
    })
}

/// The model with empty lists of rules, which are many.
fn without_lists(model: &Model) -> Model {
    let mut model = model.clone();
    let mut waiting: Vec<&mut Op> = model.inputs.iter_mut().flatten().collect();
    while let Some(op) = waiting.pop() {
        if let Op::Match { rules, .. } = op {
            *rules = Arc::new([]);
        }
        waiting.extend(op.blocks_mut().flatten());
    }
    model
}
