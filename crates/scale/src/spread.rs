//! Spreading buckets over cores with few moves: what policies share that say how many cores there are.

use crate::frame::{Action, Core, GroupSeen, Observation};

/// Differences of load below which a move gains nothing.
const GAIN: f64 = 0.01;

/// Actions after which so many cores are dedicated, and their squared imbalance is least as far as single moves lower it.
pub(crate) fn resize(seen: &Observation, want: usize, balance: bool) -> Vec<Action> {
    let (mut actions, mut last) = (Vec::new(), Vec::new());
    let mut cores: Vec<(Core, f64)> = seen.dedicated().map(|of| (of.core, 0.0)).collect();
    let before = cores.len();
    for of in seen.spare().take(want.saturating_sub(before)) {
        actions.push(Action::Add(of.core));
        cores.push((of.core, 0.0));
    }
    let mut groups: Vec<(GroupSeen, Core)> = seen.groups.iter().map(|of| (*of, of.core)).collect();
    for (group, at) in &groups {
        if let Some((_, load)) = cores.iter_mut().find(|(core, _)| core == at) {
            *load += group.load;
        }
    }
    // The least loaded cores go, those with buckets that move excepted.
    let mut order = cores.clone();
    order.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)));
    let mut gone = before.saturating_sub(want.max(1));
    for (core, _) in order {
        if gone == 0 {
            break;
        }
        if groups.iter().any(|(group, at)| *at == core && group.moves()) {
            continue;
        }
        gone -= 1;
        cores.retain(|of| of.0 != core);
        last.push(Action::Release(core));
        for (group, at) in groups.iter_mut().filter(|(_, at)| *at == core) {
            if let Some(to) =
                cores.iter_mut().min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
            {
                to.1 += group.load;
                *at = to.0;
            }
        }
    }
    let mut left = if balance || cores.len() > before { groups.len() } else { 0 };
    while left > 0 && cores.len() > 1 {
        left -= 1;
        let by_load = |a: &usize, b: &usize| {
            cores[*a].1.total_cmp(&cores[*b].1).then(cores[*b].0.cmp(&cores[*a].0))
        };
        let (Some(high), Some(low)) =
            ((0..cores.len()).max_by(by_load), (0..cores.len()).min_by(by_load))
        else {
            break;
        };
        let difference = cores[high].1 - cores[low].1;
        // Moving x from one to the other lowers the squared imbalance by 2x(difference - x).
        let gain = |group: &GroupSeen| group.load * (difference - group.load);
        let of_high =
            groups.iter_mut().filter(|(group, at)| *at == cores[high].0 && !group.moves());
        let best = of_high
            .max_by(|a, b| gain(&a.0).total_cmp(&gain(&b.0)).then(b.0.group.cmp(&a.0.group)));
        let Some((group, at)) = best.filter(|(group, _)| gain(group) > GAIN * GAIN) else { break };
        *at = cores[low].0;
        cores[high].1 -= group.load;
        cores[low].1 += group.load;
    }
    let moves = groups.iter().filter(|(group, to)| group.core != *to && !group.moves());
    actions.extend(moves.map(|(group, to)| Action::Move {
        group: group.group,
        from: group.core,
        to: *to,
    }));
    actions.extend(last);
    actions
}

/// The loads of dedicated cores.
pub(crate) fn loads(seen: &Observation) -> Vec<f64> {
    seen.dedicated().map(|of| of.load).collect()
}
