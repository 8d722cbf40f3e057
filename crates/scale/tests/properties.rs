//! What holds of every policy, whatever it sees: over random histories of a server whose buckets or groups have loads.

use scale::{
    Action, Core, CoreSeen, Dyssect, Frontier, Group, GroupSeen, Guarded, Hpa, Knative, Metron,
    MetronSettings, Nanos, Observation, Pmd, Policy, Role, RssPlusPlus, S, Scaler, ServerMapper,
    Settings, Signal,
};

/// Cores of the server.
const CORES: u32 = 24;

/// All policies that move buckets or groups.
fn policies() -> Vec<(&'static str, Scaler)> {
    let of = Settings::default();
    let metron =
        |signal| Scaler::Metron(Metron::new(&MetronSettings { signal, ..of.metron.clone() }));
    let table = Frontier::through(&[(60, 900_000)]);
    vec![
        ("fixed", Scaler::Fixed(scale::Fixed::new(7))),
        ("metron by load", metron(Signal::Load)),
        ("metron by polls", metron(Signal::Polls)),
        ("metron by loss", metron(Signal::Loss)),
        ("server mapper", Scaler::ServerMapper(ServerMapper::new(&of.server_mapper, table))),
        ("rss++", Scaler::RssPlusPlus(RssPlusPlus::new(&of.rss_plus_plus))),
        ("dyssect", Scaler::Dyssect(Dyssect::new(&of.dyssect))),
        ("ovs", Scaler::Pmd(Pmd::new(&of.pmd))),
        ("hpa", Scaler::Hpa(Hpa::new(&of.hpa))),
        ("knative", Scaler::Knative(Knative::new(&of.knative))),
    ]
}

/// A server.
#[derive(Clone)]
struct Server {
    roles: Vec<Role>,
    retiring: Vec<bool>,
    groups: Vec<GroupSeen>,
    /// Orders in progress: in how many steps, which group, to which core.
    moves: Vec<(u32, usize, Core)>,
    /// Steps that an order takes at the most.
    delay: u32,
    now: Nanos,
    /// What the policy saw last.
    last: Observation,
}

impl Server {
    fn new(loads: &[f64], cores: u32, delay: u32) -> Self {
        let group = |(at, load): (usize, &f64)| GroupSeen {
            group: Group(at as u32),
            core: Core(at as u32 % cores),
            load: *load,
            rate: load * 1e6,
            flows: load * 50.0,
            parts: 64,
            operations: 0,
            next: None,
        };
        let role = |core| if core < cores { Role::Dedicated } else { Role::Spare };
        Self {
            roles: (0..CORES).map(role).collect(),
            retiring: vec![false; CORES as usize],
            groups: loads.iter().enumerate().map(group).collect(),
            moves: Vec::new(),
            delay,
            now: 0,
            last: Observation::default(),
        }
    }

    fn scale(&mut self, factor: f64) {
        for of in &mut self.groups {
            (of.load, of.rate, of.flows) = (of.load * factor, of.rate * factor, of.flows * factor);
        }
    }

    fn dedicated(&self) -> usize {
        self.roles.iter().filter(|role| **role == Role::Dedicated).count()
    }

    fn seen(&self) -> Observation {
        let core = |core: u32| {
            let own = || self.groups.iter().filter(move |of| of.core == Core(core));
            let load: f64 = own().map(|of| of.load).sum();
            let role = if self.retiring[core as usize] {
                Role::Auxiliary
            } else {
                self.roles[core as usize]
            };
            CoreSeen {
                load: load.min(1.0),
                useful: load.min(1.0),
                rate: own().map(|of| of.rate).sum(),
                flows: own().map(|of| of.flows).sum(),
                lost: u64::from(load > 1.0),
                ..CoreSeen::idle(Core(core), role)
            }
        };
        let groups = self.groups.iter().copied().filter(|of| of.parts > 0).collect();
        Observation {
            at: self.now,
            cores: (0..CORES).map(core).collect(),
            groups,
            ..Observation::default()
        }
    }

    /// Has a policy decide once; checks each order, and executes it.
    fn step(&mut self, policy: &mut Guarded<Scaler>, random: &mut fastrand::Rng) -> Vec<Action> {
        self.now += policy.period();
        let mut arrived = Vec::new();
        self.moves.retain_mut(|(steps, group, to)| {
            *steps = steps.saturating_sub(1);
            if *steps == 0 {
                arrived.push((*group, *to));
            }
            *steps > 0
        });
        for (group, to) in arrived {
            self.groups[group].core = to;
            self.groups[group].next = None;
        }
        for core in 0..CORES as usize {
            let owns = self.groups.iter().any(|of| of.parts > 0 && of.core == Core(core as u32));
            if self.retiring[core] && !owns {
                (self.retiring[core], self.roles[core]) = (false, Role::Spare);
            }
        }
        self.last = self.seen();
        let actions = policy.decide(self.now, &self.last);
        for action in &actions {
            self.execute(action, random);
        }
        assert!(self.dedicated() >= 1);
        actions
    }

    fn execute(&mut self, action: &Action, random: &mut fastrand::Rng) {
        if let Some(to) = action.to() {
            assert_eq!(self.roles[to.0 as usize], Role::Dedicated, "{action:?}");
            assert!(!self.retiring[to.0 as usize] && action.from() != Some(to), "{action:?}");
        }
        for group in action.groups() {
            let of = self.groups[group.0 as usize];
            assert!(!of.moves() && of.parts > 0, "it moves already: {action:?}");
        }
        let steps = random.u32(1..=self.delay);
        match *action {
            Action::Add(Core(core)) => {
                assert_eq!(self.roles[core as usize], Role::Spare, "{action:?}");
                self.roles[core as usize] = Role::Dedicated;
            }
            Action::Release(core) => {
                assert_eq!(self.roles[core.0 as usize], Role::Dedicated);
                let stays = |of: &&GroupSeen| of.parts > 0 && of.core == core && !of.moves();
                assert_eq!(
                    self.groups.iter().find(stays),
                    None,
                    "{action:?}: it owns something yet"
                );
                assert!(
                    self.moves.iter().all(|(.., to)| *to != core),
                    "{action:?}: something comes"
                );
                self.retiring[core.0 as usize] = true;
            }
            Action::Move { group, from, to } => {
                assert_eq!(self.groups[group.0 as usize].core, from, "{action:?}");
                self.groups[group.0 as usize].next = Some(to);
                self.moves.push((steps, group.0 as usize, to));
            }
            Action::Split { group, from, to } => {
                let of = &mut self.groups[group.0 as usize];
                assert!(of.core == from && of.parts > 1, "{action:?}");
                (of.load, of.rate, of.flows) = (of.load / 2.0, of.rate / 2.0, of.flows / 2.0);
                let half = of.parts / 2;
                of.parts -= half;
                let mut new = GroupSeen { parts: half, next: Some(to), ..*of };
                new.group = Group(self.groups.len() as u32);
                self.moves.push((steps, self.groups.len(), to));
                self.groups.push(new);
            }
            Action::Merge { group, from, into, to } => {
                let of = self.groups[group.0 as usize];
                assert!(of.core == from && self.groups[into.0 as usize].core == to, "{action:?}");
                self.groups[group.0 as usize].parts = 0;
                self.groups[group.0 as usize].load = 0.0;
                let into = &mut self.groups[into.0 as usize];
                into.parts += of.parts;
                (into.load, into.rate, into.flows) =
                    (into.load + of.load, into.rate + of.rate, into.flows + of.flows);
            }
            _ => panic!("{action:?} is not an order of these"),
        }
    }
}

fn loads(random: &mut fastrand::Rng, total: f64) -> Vec<f64> {
    let shares: Vec<f64> = (0..64).map(|_| random.f64() + 0.05).collect();
    let sum: f64 = shares.iter().sum();
    shares.iter().map(|share| share / sum * total).collect()
}

fn guarded(policy: &Scaler) -> Guarded<Scaler> {
    Guarded::new(policy.clone(), &Settings::default().guards)
}

/// The number of steps that cover some time.
fn steps(policy: &Guarded<Scaler>, time: Nanos) -> u64 {
    time / policy.period()
}

#[test]
fn each_group_has_one_owner_and_nothing_moves_while_it_moves() {
    for (name, policy) in policies() {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut server = Server::new(&loads(&mut random, 4.0), 6, 4);
            let mut policy = guarded(&policy);
            let mut factor = 1.0;
            for step in 0..300 {
                if step % 15 == 0 {
                    let next = [0.1, 0.5, 1.0, 2.0, 4.0][random.usize(..5)];
                    server.scale(next / factor);
                    factor = next;
                }
                let before = server.groups.iter().map(|of| of.load).sum::<f64>();
                server.step(&mut policy, &mut random);
                let after = server.groups.iter().map(|of| of.load).sum::<f64>();
                assert!((before - after).abs() < 1e-6, "{name}: load came or went");
            }
        }
    }
}

#[test]
fn bounds_hold() {
    for (name, policy) in policies() {
        let mut settings = serde_json::to_value(Settings::default().guards).unwrap();
        (settings["least"], settings["most"]) = (4.into(), 8.into());
        let mut policy = Guarded::new(policy, &serde_json::from_value(settings).unwrap());
        let mut random = fastrand::Rng::with_seed(3);
        let mut server = Server::new(&loads(&mut random, 4.0), 6, 1);
        for step in 0..200 {
            server.scale(if step == 50 {
                8.0
            } else if step == 120 {
                0.01
            } else {
                1.0
            });
            server.step(&mut policy, &mut random);
            let count = server.dedicated();
            assert!((4..=8).contains(&count), "{name}: {count}");
        }
    }
}

/// Ten minutes of a constant load, and nothing is ordered in the next five.
#[test]
fn a_constant_load_settles_and_stays() {
    // The constants of the authors' agent swing: see below.
    for (name, policy) in policies().into_iter().filter(|(name, _)| *name != "metron by polls") {
        for (seed, total) in [(1, 0.4), (2, 2.0), (3, 5.0), (4, 9.0), (5, 14.0)] {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut server = Server::new(&loads(&mut random, total), 6, 1);
            let mut policy = guarded(&policy);
            for _ in 0..steps(&policy, 600 * S) {
                server.step(&mut policy, &mut random);
            }
            for _ in 0..steps(&policy, 300 * S) {
                let actions = server.step(&mut policy, &mut random);
                assert_eq!(actions, [], "{name}, a load of {total}");
            }
        }
    }
}

/// 0.7 adds a core and 0.4 takes one away: two cores with 0.36 each merge into one with 0.72, and so on.
#[test]
fn the_constants_of_metrons_agent_swing_and_are_frozen() {
    let (_, policy) = policies().into_iter().find(|(name, _)| *name == "metron by polls").unwrap();
    let (mut policy, mut random) = (guarded(&policy), fastrand::Rng::with_seed(1));
    let mut server = Server::new(&[0.72], 1, 1);
    let mut notes = Vec::new();
    for _ in 0..steps(&policy, 120 * S) {
        server.step(&mut policy, &mut random);
        notes.extend(policy.notes());
    }
    assert!(notes.iter().any(|note| note.why.contains("the policy is frozen")), "{notes:?}");
}

#[test]
fn twice_the_load_never_ends_with_fewer_cores() {
    for (name, policy) in policies() {
        for seed in 0..8 {
            let mut ends = Vec::new();
            for factor in [1.0, 2.0] {
                let mut random = fastrand::Rng::with_seed(seed);
                let total = 0.5 + seed as f64;
                let mut server = Server::new(&loads(&mut random, total), 6, 1);
                server.scale(factor);
                let mut policy = guarded(&policy);
                for _ in 0..steps(&policy, 400 * S) {
                    server.step(&mut policy, &mut random);
                }
                ends.push(server.dedicated());
            }
            assert!(ends[1] >= ends[0], "{name}, seed {seed}: {ends:?}");
        }
    }
}

/// Other names in the same order: the same decisions by other names, to the bit.
#[test]
fn names_of_cores_decide_nothing() {
    let rename = |core: Core| Core(core.0 * 3 + 100);
    for (name, policy) in policies() {
        let mut random = fastrand::Rng::with_seed(9);
        let mut server = Server::new(&loads(&mut random, 7.0), 6, 3);
        let (mut one, mut other) = (guarded(&policy), guarded(&policy));
        for step in 0..200 {
            server.scale([1.0, 1.4, 0.6][step % 3]);
            let actions = server.step(&mut one, &mut random);
            let mut seen = server.last.clone();
            seen.cores.iter_mut().for_each(|of| of.core = rename(of.core));
            for of in &mut seen.groups {
                (of.core, of.next) = (rename(of.core), of.next.map(rename));
            }
            let found = other.decide(server.now, &seen);
            let text = serde_json::to_string(&found).unwrap();
            let expected: Vec<Action> =
                actions.iter().map(|action| renamed_action(action, rename)).collect();
            assert_eq!(text, serde_json::to_string(&expected).unwrap(), "{name}, step {step}");
        }
    }
}

fn renamed_action(action: &Action, rename: impl Fn(Core) -> Core) -> Action {
    match action.clone() {
        Action::Add(core) => Action::Add(rename(core)),
        Action::Release(core) => Action::Release(rename(core)),
        Action::Move { group, from, to } => {
            Action::Move { group, from: rename(from), to: rename(to) }
        }
        Action::Split { group, from, to } => {
            Action::Split { group, from: rename(from), to: rename(to) }
        }
        Action::Merge { group, from, into, to } => {
            Action::Merge { group, from: rename(from), into, to: rename(to) }
        }
        other => other,
    }
}
