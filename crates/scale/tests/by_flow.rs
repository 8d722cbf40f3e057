//! What holds of Quadrant, which moves flows and not groups: over random histories of a rack whose flows have rates.

use scale::{
    Action, Core, CoreSeen, Guarded, Nanos, Observation, Policy, Profile, Quadrant, Role, S,
    Settings, US,
};

/// Cores of the rack.
const CORES: u32 = 24;
/// Packets a second that a core does.
const MOST: f64 = 1e6;

/// A rack: flows with their rates, and the core of each.
struct Rack {
    roles: Vec<Role>,
    flows: Vec<(f64, u32)>,
    now: Nanos,
    /// What the policy saw last.
    last: Observation,
}

impl Rack {
    fn new(rates: &[f64], cores: u32) -> Self {
        let role = |core| if core < cores { Role::Dedicated } else { Role::Spare };
        let flow = |(at, rate): (usize, &f64)| (*rate, at as u32 % cores);
        let flows = rates.iter().enumerate().map(flow).collect();
        Self { roles: (0..CORES).map(role).collect(), flows, now: 0, last: Observation::default() }
    }

    fn dedicated(&self) -> usize {
        self.roles.iter().filter(|role| **role == Role::Dedicated).count()
    }

    fn seen(&self) -> Observation {
        let core = |core: u32| {
            let own = || self.flows.iter().filter(move |(_, of)| *of == core);
            let rate: f64 = own().map(|(rate, _)| rate).sum();
            let load = rate / MOST;
            CoreSeen {
                load: load.min(1.0),
                rate,
                flows: own().count() as f64,
                // Batches grow with the load.
                batch_p99: ((5.0 + 45.0 * load * load) * 1e3) as Nanos,
                ..CoreSeen::idle(Core(core), self.roles[core as usize])
            }
        };
        Observation {
            at: self.now,
            cores: (0..CORES).map(core).collect(),
            ..Observation::default()
        }
    }

    /// Has a policy decide once; checks each order, and executes it.
    fn step(&mut self, policy: &mut Guarded<Quadrant>) -> Vec<Action> {
        self.now += policy.period();
        self.last = self.seen();
        let actions = policy.decide(self.now, &self.last);
        for action in &actions {
            if let Some(to) = action.to() {
                assert_eq!(self.roles[to.0 as usize], Role::Dedicated, "{action:?}");
            }
            match *action {
                Action::Add(Core(core)) => {
                    assert_eq!(self.roles[core as usize], Role::Spare, "{action:?}");
                    self.roles[core as usize] = Role::Dedicated;
                }
                Action::Release(Core(core)) => {
                    assert_eq!(self.roles[core as usize], Role::Dedicated, "{action:?}");
                    assert!(
                        self.flows.iter().all(|(_, of)| *of != core),
                        "{action:?}: it has flows"
                    );
                    self.roles[core as usize] = Role::Spare;
                }
                Action::Migrate { from, to, rate } => {
                    assert!(from != to && rate > 0.0, "{action:?}");
                    let mut left = rate;
                    for flow in self.flows.iter_mut().filter(|(_, of)| *of == from.0) {
                        if flow.0 <= left {
                            (left, flow.1) = (left - flow.0, to.0);
                        }
                    }
                }
                Action::Place { room, .. } => assert!(room >= 0.0, "{action:?}"),
                ref other => panic!("{other:?} is not an order of these"),
            }
        }
        assert!(self.dedicated() >= 1);
        actions
    }

    fn scale(&mut self, factor: f64) {
        self.flows.iter_mut().for_each(|(rate, _)| *rate *= factor);
    }
}

fn rates(random: &mut fastrand::Rng, total: f64) -> Vec<f64> {
    let shares: Vec<f64> = (0..400).map(|_| random.f64() + 0.05).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum * total * MOST).collect()
}

fn guarded(least: usize, most: usize) -> Guarded<Quadrant> {
    let settings = Settings::default();
    let mut guards = serde_json::to_value(&settings.guards).unwrap();
    (guards["least"], guards["most"]) = (least.into(), most.into());
    let profile = Profile { most: MOST, network: vec![(MOST, 5 * US)] };
    let policy = Quadrant::new(&settings.quadrant, 100 * US, profile);
    Guarded::new(policy, &serde_json::from_value(guards).unwrap())
}

fn is_change(action: &Action) -> bool {
    !matches!(action, Action::Place { .. })
}

#[test]
fn bounds_hold_and_orders_fit_whatever_comes() {
    for seed in 0..10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut rack = Rack::new(&rates(&mut random, 3.0), 6);
        let mut policy = guarded(4, 8);
        let mut factor = 1.0;
        for step in 0..300 {
            if step % 20 == 0 {
                let next = [0.05, 0.5, 1.0, 2.0, 4.0][random.usize(..5)];
                rack.scale(next / factor);
                factor = next;
            }
            rack.step(&mut policy);
            assert!((4..=8).contains(&rack.dedicated()), "seed {seed}: {}", rack.dedicated());
        }
    }
}

/// A minute of a constant load, and neither flows nor cores change in the next.
#[test]
fn a_constant_load_settles_and_stays() {
    for (seed, total) in [(1, 0.3), (2, 2.0), (3, 5.0), (4, 9.0)] {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut rack = Rack::new(&rates(&mut random, total), 6);
        let mut policy = guarded(1, usize::MAX);
        let minute = 60 * S / policy.period();
        for _ in 0..minute {
            rack.step(&mut policy);
        }
        for _ in 0..minute {
            let actions = rack.step(&mut policy);
            assert_eq!(actions.iter().find(|of| is_change(of)), None, "a load of {total}");
        }
    }
}

#[test]
fn twice_the_load_never_ends_with_fewer_cores() {
    for seed in 0..20 {
        let end = |factor: f64| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut rack = Rack::new(&rates(&mut random, 0.4 + 0.3 * seed as f64), 6);
            rack.scale(factor);
            let mut policy = guarded(1, usize::MAX);
            for _ in 0..1200 {
                rack.step(&mut policy);
            }
            rack.dedicated()
        };
        let (once, twice) = (end(1.0), end(2.0));
        assert!(twice >= once, "seed {seed}: {once} {twice}");
    }
}

/// Other names in the same order: the same decisions by other names, to the bit.
#[test]
fn names_of_cores_decide_nothing() {
    let rename = |core: Core| Core(core.0 * 3 + 100);
    let mut random = fastrand::Rng::with_seed(9);
    let mut rack = Rack::new(&rates(&mut random, 4.0), 6);
    let (mut one, mut other) = (guarded(1, usize::MAX), guarded(1, usize::MAX));
    for step in 0..200 {
        rack.scale([1.0, 1.4, 1.0 / 1.4][step % 3]);
        let actions = rack.step(&mut one);
        let mut seen = rack.last.clone();
        seen.cores.iter_mut().for_each(|of| of.core = rename(of.core));
        let renamed = |action: Action| match action {
            Action::Add(core) => Action::Add(rename(core)),
            Action::Release(core) => Action::Release(rename(core)),
            Action::Migrate { from, to, rate } => {
                Action::Migrate { from: rename(from), to: rename(to), rate }
            }
            Action::Place { to, room } => Action::Place { to: rename(to), room },
            other => other,
        };
        let expected: Vec<Action> = actions.into_iter().map(renamed).collect();
        assert_eq!(other.decide(rack.now, &seen), expected, "step {step}");
    }
}
