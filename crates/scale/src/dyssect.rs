//! Dyssect: every 100 ms, the fewest working cores that bear all shards of flows, with the fewest shards moved, by an exact search.
//!
//! It sees the load of shards and nothing of their latency. The orders of a search come when the search would be done: they are
//! for what was seen then. Offloading cores, which Dyssect gives flows of a shard that is too much for a core, are not here:
//! such a shard has a core of its own.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Core, GroupSeen, MS, Nanos, Note, Observation, Policy, Role};

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between decisions (Ironside §4.4.2 of Dyssect: 100 ms).
    pub period: Nanos,
    /// Share of its time that a core may be given (the text prints none; ours).
    pub most: f64,
    /// Nanoseconds of the search for each shard on each core (the text prints none but that it is compute-intensive; ours).
    pub solve: Nanos,
    /// Steps of the search for homes after which one more core is taken.
    pub steps: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { period: 100 * MS, most: 0.8, solve: 5_000, steps: 20_000 }
    }
}

/// Dyssect's controller of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dyssect {
    settings: Settings,
    /// Orders that are being searched for: when they are found, and which they are.
    found: Option<(Nanos, Vec<Action>)>,
    notes: Vec<Note>,
}

/// A working core while it is decided: its load, and its shards from the greatest to the least.
#[derive(Clone)]
struct Cell {
    core: Core,
    load: f64,
    shards: Vec<GroupSeen>,
}

/// Sums of floating point leave dust.
const DUST: f64 = 1e-9;

impl Dyssect {
    /// One that has seen nothing.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), found: None, notes: Vec::new() }
    }

    /// The orders after which the fewest cores bear all, with the fewest shards moved.
    fn search(&self, seen: &Observation) -> Vec<Action> {
        let most = self.settings.most;
        let mut cells: Vec<Cell> = seen
            .dedicated()
            .map(|of| Cell { core: of.core, load: 0.0, shards: Vec::new() })
            .collect();
        for shard in &seen.groups {
            if let Some(cell) = cells.iter_mut().find(|cell| cell.core == shard.core) {
                cell.load += shard.load;
                cell.shards.push(*shard);
            }
        }
        for cell in &mut cells {
            cell.shards.sort_by(|a, b| b.load.total_cmp(&a.load).then(a.group.cmp(&b.group)));
        }
        // A shard that is too much for a core counts as a full one.
        let loads = cells.iter().flat_map(|cell| &cell.shards).map(|of| of.load.min(most));
        let bound = ((loads.sum::<f64>() / most - DUST).ceil().max(1.0)) as usize;
        let spare: Vec<Core> = seen.spare().map(|of| of.core).collect();
        for count in bound..=cells.len() + spare.len() {
            let few = || self.on(&cells, &spare, (count, false));
            if let Some(actions) = few().or_else(|| self.on(&cells, &spare, (count, true))) {
                return actions;
            }
        }
        // No number suffices: all are used as well as they can be.
        spare.into_iter().map(Action::Add).collect()
    }

    /// The orders after which so many cores bear all; nothing if none were found. Only what must go is moved, unless all is dealt
    /// afresh.
    fn on(
        &self,
        cells: &[Cell],
        spare: &[Core],
        (count, afresh): (usize, bool),
    ) -> Option<Vec<Action>> {
        let most = self.settings.most;
        let mut cells = cells.to_vec();
        // Those are emptied of which the fewest shards more must go, unless something of them moves.
        let mut order: Vec<(usize, usize)> = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            if !cell.shards.iter().any(GroupSeen::moves) {
                order.push((cell.shards.len() - self.surplus(&mut cell.clone()).len(), at));
            }
        }
        order.sort_by(|(a, at), (b, to)| {
            let (at, to) = (&cells[*at], &cells[*to]);
            a.cmp(b).then(at.load.total_cmp(&to.load)).then(to.core.cmp(&at.core))
        });
        let fewer = cells.len().saturating_sub(count);
        if order.len() < fewer {
            return None;
        }
        let leaving: Vec<Core> = order[..fewer].iter().map(|(_, at)| cells[*at].core).collect();
        let mut homeless: Vec<GroupSeen> = Vec::new();
        for cell in &mut cells {
            if afresh || leaving.contains(&cell.core) {
                let free = cell.shards.extract_if(.., |of| !of.moves());
                homeless.extend(free);
                cell.load = cell.shards.iter().map(|of| of.load).sum();
            } else {
                homeless.extend(self.surplus(cell));
            }
        }
        cells.retain(|cell| !leaving.contains(&cell.core));
        let added = &spare[..count.saturating_sub(cells.len()).min(spare.len())];
        cells.extend(added.iter().map(|core| Cell { core: *core, load: 0.0, shards: Vec::new() }));
        homeless.sort_by(|a, b| b.load.total_cmp(&a.load).then(a.group.cmp(&b.group)));
        let mut homes = Vec::with_capacity(homeless.len());
        let mut steps = self.settings.steps.max(homeless.len() as u32);
        let mut loads: Vec<f64> = cells.iter().map(|cell| cell.load).collect();
        if !place(&homeless, &mut loads, most, &mut homes, &mut steps) {
            return None;
        }
        let moves =
            homeless.iter().zip(&homes).filter(|(shard, to)| shard.core != cells[**to].core);
        let moves = moves.map(|(shard, to)| Action::Move {
            group: shard.group,
            from: shard.core,
            to: cells[*to].core,
        });
        let added = added.iter().copied().map(Action::Add);
        Some(added.chain(moves).chain(leaving.iter().copied().map(Action::Release)).collect())
    }

    /// Takes the fewest shards off a core after which it is given no more than it may. The last one stays, however great.
    fn surplus(&self, cell: &mut Cell) -> Vec<GroupSeen> {
        let (most, mut gone) = (self.settings.most + DUST, Vec::new());
        while cell.load > most && cell.shards.len() > 1 {
            // The least that suffices alone; if none does, the greatest.
            let suffices = |of: &GroupSeen| !of.moves() && cell.load - of.load <= most;
            let last = cell.shards.iter().rposition(suffices);
            let free = || cell.shards.iter().position(|of| !of.moves());
            let Some(at) = last.or_else(free) else { break };
            let shard = cell.shards.remove(at);
            cell.load -= shard.load;
            gone.push(shard);
        }
        gone
    }

    /// Whether orders still fit what is seen.
    fn holds(actions: &[Action], seen: &Observation) -> bool {
        actions.iter().all(|action| match action {
            Action::Add(core) => seen.spare().any(|of| of.core == *core),
            Action::Release(core) => seen.core(*core).is_some_and(|of| of.role == Role::Dedicated),
            Action::Move { group, from, .. } => {
                seen.groups.iter().any(|of| of.group == *group && of.core == *from && !of.moves())
            }
            _ => false,
        })
    }
}

/// Finds a home for each shard by a search in depth: the fullest core that has room first, then others. Whether there is one.
fn place(
    shards: &[GroupSeen],
    loads: &mut [f64],
    most: f64,
    homes: &mut Vec<usize>,
    steps: &mut u32,
) -> bool {
    let Some(shard) = shards.get(homes.len()) else { return true };
    let mut order: Vec<usize> = (0..loads.len()).collect();
    // One that is too much for any core needs one without others.
    order.retain(|at| loads[*at] + shard.load <= most + DUST || loads[*at] == 0.0);
    order.sort_by(|a, b| loads[*b].total_cmp(&loads[*a]).then(a.cmp(b)));
    // Cores with equal loads are equal.
    order.dedup_by(|a, b| loads[*a] == loads[*b]);
    for at in order {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        let before = loads[at];
        loads[at] += shard.load;
        homes.push(at);
        if place(shards, loads, most, homes, steps) {
            return true;
        }
        homes.pop();
        loads[at] = before;
    }
    false
}

impl Policy for Dyssect {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        match self.found.take() {
            Some((when, actions)) if when > now => self.found = Some((when, actions)),
            Some((_, actions)) if Self::holds(&actions, seen) => return actions,
            _ => {
                let actions = self.search(seen);
                let size = seen.groups.len() as u64 * seen.dedicated().count() as u64;
                let solve = self.settings.solve * size;
                if !actions.is_empty() {
                    let moves =
                        actions.iter().filter(|of| matches!(of, Action::Move { .. })).count();
                    let have = seen.dedicated().count();
                    let count =
                        |is: fn(&Action) -> bool| actions.iter().filter(|of| is(of)).count();
                    let want = have + count(|of| matches!(of, Action::Add(_)))
                        - count(|of| matches!(of, Action::Release(_)));
                    let why = format!(
                        "cores: {have} -> {want}, {moves} shards move, found after {:.0} ms",
                        solve as f64 / 1e6
                    );
                    self.notes.push(Note { at: now, why });
                }
                // What is found within a period is ordered at its begin: the next look comes when the last search is done.
                if solve < self.settings.period || actions.is_empty() {
                    return actions;
                }
                self.found = Some((now + solve, actions));
            }
        }
        Vec::new()
    }

    fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{CoreSeen, Group};

    /// Cores with shards of these loads, and some that are spare.
    fn seen(cores: &[&[f64]], spare: u32) -> Observation {
        let mut seen = Observation::default();
        for (core, loads) in cores.iter().enumerate() {
            let core = Core(core as u32);
            let load = loads.iter().sum();
            seen.cores.push(CoreSeen { load, ..CoreSeen::idle(core, Role::Dedicated) });
            for load in *loads {
                let group = Group(seen.groups.len() as u32);
                let (rate, flows) = (load * 1e6, 1.0);
                let (parts, operations, next) = (1, 0, None);
                let load = *load;
                seen.groups.push(GroupSeen {
                    group,
                    core,
                    load,
                    rate,
                    flows,
                    parts,
                    operations,
                    next,
                });
            }
        }
        let first = cores.len() as u32;
        seen.cores.extend((first..first + spare).map(|of| CoreSeen::idle(Core(of), Role::Spare)));
        seen
    }

    fn shift(group: u32, from: u32, to: u32) -> Action {
        Action::Move { group: Group(group), from: Core(from), to: Core(to) }
    }

    fn decide(seen: &Observation) -> Vec<Action> {
        Dyssect::new(&Settings::default()).decide(0, seen)
    }

    /// By hand, with 0.8 of a core at the most: 1.3 take two cores. Of 1.0 the least shard that suffices goes.
    #[test]
    fn the_fewest_shards_move_to_the_fewest_cores() {
        assert_eq!(decide(&seen(&[&[0.5, 0.3, 0.2], &[0.3]], 1)), [shift(2, 0, 1)]);
        assert_eq!(
            decide(&seen(&[&[0.5, 0.3, 0.2], &[0.7]], 1)),
            [Action::Add(Core(2)), shift(2, 0, 2)]
        );
        assert_eq!(
            decide(&seen(&[&[0.5], &[0.2, 0.1]], 0)),
            [shift(0, 0, 1), Action::Release(Core(0))]
        );
        assert_eq!(decide(&seen(&[&[0.5], &[0.6]], 3)), []);
        assert_eq!(
            decide(&seen(&[&[3.0]], 3)),
            [],
            "a shard that is too much has a core of its own"
        );
    }

    /// By hand: rooms of 0.6 and 0.5 take 0.3, 0.3, 0.25 and 0.25 only if both of a kind go together. The fullest core first fails.
    #[test]
    fn homes_are_searched_for_exactly() {
        let cores: [&[f64]; 3] = [&[0.04; 5], &[0.05; 6], &[0.3, 0.25, 0.3, 0.25]];
        let expected = [
            shift(11, 2, 0),
            shift(13, 2, 0),
            shift(12, 2, 1),
            shift(14, 2, 1),
            Action::Release(Core(2)),
        ];
        assert_eq!(decide(&seen(&cores, 0)), expected);
    }

    /// All assignments of a few shards: never do fewer cores suffice than it takes.
    #[test]
    fn no_deal_takes_fewer_cores() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..300 {
            let loads: Vec<f64> =
                (0..random.usize(1..7)).map(|_| f64::from(random.u32(5..60)) / 100.0).collect();
            let fits = |cores: usize| {
                (0..cores.pow(loads.len() as u32)).any(|mut deal| {
                    let mut sums = vec![0.0; cores];
                    for load in &loads {
                        sums[deal % cores] += load;
                        deal /= cores;
                    }
                    sums.iter().all(|sum| *sum <= 0.8 + DUST)
                })
            };
            let fewest = (1..=loads.len()).find(|cores| fits(*cores)).unwrap();
            let split = random.usize(..=loads.len());
            let seen = seen(&[&loads[..split], &loads[split..]], 6);
            let actions = decide(&seen);
            let count = |is: fn(&Action) -> bool| actions.iter().filter(|of| is(of)).count();
            let cores = 2 + count(|of| matches!(of, Action::Add(_)))
                - count(|of| matches!(of, Action::Release(_)));
            assert_eq!(cores, fewest, "{loads:?} {actions:?}");
        }
    }

    #[test]
    fn orders_come_when_the_search_is_done_if_they_still_fit() {
        let before = seen(&[&[0.5, 0.3, 0.2], &[0.3]], 1);
        // Four shards on two cores, 20 ms each.
        let settings = Settings { solve: 20 * MS, ..Settings::default() };
        let mut of = Dyssect::new(&settings);
        assert_eq!(of.decide(0, &before), []);
        assert_eq!(of.decide(100 * MS, &before), []);
        assert_eq!(of.decide(200 * MS, &before), [shift(2, 0, 1)]);
        let mut of = Dyssect::new(&settings);
        of.decide(0, &before);
        let calm = seen(&[&[0.3], &[0.3]], 1);
        let orders = of.decide(200 * MS, &calm);
        assert!(!orders.contains(&shift(2, 0, 1)), "{orders:?}");
    }
}
