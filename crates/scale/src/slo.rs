//! Quadrant's scaling (§3.5): new flows go to the most loaded chain that is well within its latency; flows leave one that is not.

use serde::{Deserialize, Serialize};

use crate::frame::{Action, Core, CoreSeen, MS, Nanos, Note, Observation, Policy, Role};

/// What is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Nanoseconds between decisions (Ironside §4.4.2 of Quadrant: 50 ms).
    pub period: Nanos,
    /// Share of the SLO below which an estimate lets new flows in (the text prints none; ours).
    pub alpha: f64,
    /// Share of the SLO above which flows move away (the text prints none; ours).
    pub beta: f64,
    /// Load from which on no new flows come (§3.5.1: "e.g., 90%").
    pub most: f64,
    /// Whether the rate-adjusting term of equation 3.4 counts.
    pub adjust: bool,
    /// The least value of that term where it is bounded (§3.5.3: 0.25).
    pub term: f64,
    /// Load from which on the term is bounded (§3.5.3: 0.8).
    pub bounded: f64,
    /// Share of a core's rate that moves in a period at the most (Ironside §4.4.2 of Quadrant: half of the flows).
    pub half: f64,
    /// Idle cores that are kept to absorb starts (§3.5; the text prints no number; ours).
    pub pool: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let (period, most, adjust, term, bounded, half, pool) =
            (50 * MS, 0.9, true, 0.25, 0.8, 0.5, 1);
        Self { period, alpha: 0.6, beta: 0.8, most, adjust, term, bounded, half, pool }
    }
}

/// What was profiled of a chain and its network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Packets a second that one core does.
    pub most: f64,
    /// 99th percentile of the network's time in nanoseconds, up to so many packets a second of a worker.
    pub network: Vec<(f64, Nanos)>,
}

impl Profile {
    fn network(&self, rate: f64) -> Nanos {
        let found = self.network.iter().find(|(up_to, _)| rate <= *up_to);
        found.or(self.network.last()).map_or(0, |(_, time)| *time)
    }
}

/// Quadrant's controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Quadrant {
    settings: Settings,
    slo: Nanos,
    profile: Profile,
    notes: Vec<Note>,
}

impl Quadrant {
    /// One for an SLO.
    pub fn new(settings: &Settings, slo: Nanos, profile: Profile) -> Self {
        Self { settings: settings.clone(), slo, profile, notes: Vec::new() }
    }

    /// The 99th percentile of the latency: a packet waits for the batch before it and for its own.
    pub fn estimate(&self, of: &CoreSeen) -> Nanos {
        2 * of.batch_p99 + self.profile.network(of.rate)
    }

    /// Equation 3.4: packets a second that are to leave a core with a latency.
    pub fn leaving(&self, rate: f64, latency: Nanos) -> f64 {
        let (latency, target) = (latency as f64, self.settings.alpha * self.slo as f64);
        let share = ((latency - target) / latency).max(0.0);
        if !self.settings.adjust || rate <= 0.0 {
            return rate * share;
        }
        let mut term = self.profile.most / rate - 1.0;
        if rate >= self.settings.bounded * self.profile.most {
            term = term.max(self.settings.term);
        }
        rate * share * term
    }
}

impl Policy for Quadrant {
    fn period(&self) -> Nanos {
        self.settings.period
    }

    fn decide(&mut self, now: Nanos, seen: &Observation) -> Vec<Action> {
        let Settings { alpha, beta, most, half, pool, .. } = self.settings;
        let (low, high) = (alpha * self.slo as f64, beta * self.slo as f64);
        let best = self.profile.most;
        let mut actions = Vec::new();
        let mut spare = seen.spare().map(|of| of.core);
        let is_idle = |of: &CoreSeen| of.rate == 0.0 && of.flows == 0.0 && of.queued == 0;
        // With their loads, as they will be.
        let mut open: Vec<(Core, f64)> = Vec::new();
        let mut idle: Vec<Core> = Vec::new();
        for of in seen.dedicated() {
            if is_idle(of) {
                idle.push(of.core);
            } else if (self.estimate(of) as f64) < low && of.rate < most * best {
                open.push((of.core, of.rate / best));
            }
        }
        open.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut idle = idle.into_iter();
        open.extend(idle.by_ref().take(pool).map(|core| (core, 0.0)));
        let kept = open.len();
        for of in seen.dedicated() {
            let latency = self.estimate(of);
            if latency as f64 <= high || is_idle(of) {
                continue;
            }
            let mut rate = self.leaving(of.rate, latency).min(half * of.rate);
            let why = format!(
                "core {}: an estimate of {latency} ns is above {high:.0}: {rate:.0} of {:.0} packets/s leave",
                of.core.0, of.rate
            );
            self.notes.push(Note { at: now, why });
            while rate > 0.0 {
                let at = match open.iter().position(|(_, load)| *load < most - 1e-3) {
                    Some(at) => at,
                    None => match idle.next() {
                        Some(core) => {
                            open.push((core, 0.0));
                            open.len() - 1
                        }
                        None => {
                            let Some(core) = spare.next() else { break };
                            actions.push(Action::Add(core));
                            open.push((core, 0.0));
                            open.len() - 1
                        }
                    },
                };
                let (to, load) = &mut open[at];
                let part = rate.min((most - *load) * best);
                *load += part / best;
                rate -= part;
                actions.push(Action::Migrate { from: of.core, to: *to, rate: part });
            }
        }
        let count = |role| seen.cores.iter().filter(|of| of.role == role).count();
        let mut left = count(Role::Dedicated) + count(Role::Starting);
        for core in idle {
            if left > 1 {
                left -= 1;
                actions.push(Action::Release(core));
            }
        }
        // The pool absorbs starts.
        let fresh = open.iter().filter(|(_, load)| *load == 0.0).count();
        for core in spare.take(pool.max(usize::from(kept == 0)).saturating_sub(fresh)) {
            actions.push(Action::Add(core));
            open.push((core, 0.0));
        }
        open.retain(|(_, load)| *load < most);
        open.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        actions.extend(
            open.into_iter().map(|(to, load)| Action::Place { to, room: (most - load) * best }),
        );
        actions
    }

    fn notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::US;

    fn quadrant(settings: &Settings) -> Quadrant {
        Quadrant::new(
            settings,
            100 * US,
            Profile { most: 1e6, network: vec![(5e5, 4 * US), (1e6, 10 * US)] },
        )
    }

    fn core(core: u32, rate: f64, batch_p99: Nanos) -> CoreSeen {
        CoreSeen { rate, batch_p99, flows: 1.0, ..CoreSeen::idle(Core(core), Role::Dedicated) }
    }

    #[test]
    fn an_estimate_is_two_batches_and_the_network() {
        assert_eq!(quadrant(&Settings::default()).estimate(&core(0, 6e5, 20 * US)), 50 * US);
        assert_eq!(quadrant(&Settings::default()).estimate(&core(0, 4e5, 20 * US)), 44 * US);
    }

    /// Equation 3.4 by hand: r = 0.5 of 1 Mpps, t = 120 µs, α·T = 60 µs: 500,000 · 60/120 · (2 - 1) = 250,000.
    #[test]
    fn flows_leave_as_equation_3_4_says() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        let of = quadrant(&Settings::default());
        near(of.leaving(5e5, 120 * US), 250_000.0);
        // r = 0.9: the term is 0.11, and at least 0.25. r = 1.2 of the most, by errors of measuring, too.
        near(of.leaving(9e5, 120 * US), 900_000.0 * 0.5 * 0.25);
        near(of.leaving(1.2e6, 120 * US), 1_200_000.0 * 0.5 * 0.25);
        // r = 0.75: the term is 1/3 and not bounded.
        near(of.leaving(7.5e5, 120 * US), 750_000.0 * 0.5 / 3.0);
        let plain = quadrant(&Settings { adjust: false, ..Settings::default() });
        near(plain.leaving(9e5, 120 * US), 450_000.0);
        near(of.leaving(5e5, 50 * US), 0.0);
    }

    #[test]
    fn new_flows_go_to_the_most_loaded_core_below_alpha_and_none_between_alpha_and_beta() {
        let mut of = quadrant(&Settings { pool: 0, ..Settings::default() });
        let cores = vec![
            core(0, 2e5, 10 * US),
            core(1, 4e5, 20 * US),
            core(2, 4.5e5, 33 * US),
            core(3, 9.5e5, 10 * US),
        ];
        let seen = Observation { cores, ..Observation::default() };
        let places: Vec<Core> = of.decide(0, &seen).iter().filter_map(Action::to).collect();
        assert_eq!(places, [Core(1), Core(0)]);
    }

    #[test]
    fn idle_cores_are_given_back_but_for_the_pool() {
        let mut of = quadrant(&Settings::default());
        let idle = |n| CoreSeen::idle(Core(n), Role::Dedicated);
        let cores = vec![core(0, 2e5, 10 * US), idle(1), idle(2), idle(3)];
        let seen = Observation { cores, ..Observation::default() };
        let released: Vec<Action> =
            of.decide(0, &seen).into_iter().filter(|of| matches!(of, Action::Release(_))).collect();
        assert_eq!(released, [Action::Release(Core(2)), Action::Release(Core(3))]);
    }

    #[test]
    fn flows_leave_a_core_above_beta_for_a_spare_one() {
        let mut of = quadrant(&Settings { pool: 0, ..Settings::default() });
        let cores = vec![core(0, 5e5, 58 * US), CoreSeen::idle(Core(1), Role::Spare)];
        let seen = Observation { cores, ..Observation::default() };
        let actions = of.decide(0, &seen);
        assert_eq!(actions[0], Action::Add(Core(1)));
        assert!(
            matches!(actions[1], Action::Migrate { from: Core(0), to: Core(1), rate } if rate == 250_000.0),
            "{actions:?}"
        );
        assert!(of.notes()[0].why.contains("120000 ns"));
    }
}
