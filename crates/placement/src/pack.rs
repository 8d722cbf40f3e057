//! A plan for many chains and hosts: prices say what each chain should have, hosts are filled with that, and then
//! share their cores among their chains. Improved by moving chains, one or two at a time.

use crate::choose::OnSwitch;
use crate::dual::{Dual, UNIT, best, value};
use crate::options::Options;
use crate::plan::{Bound, Plan};
use crate::problem::Chain;
use crate::rack::{LANES, Rack};
use crate::seat::{Left, Seat, gain, rates, seat};

/// Chains on hosts.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// By chain.
    pub seats: Vec<Seat>,
    pub rates: Vec<f64>,
    /// In Gb/s times price.
    pub gain: f64,
}

impl Packed {
    pub(crate) fn plan(&self, bound: Bound) -> Plan {
        let chains = self.seats.iter().zip(&self.rates).map(|(seat, rate)| seat.placed(*rate));
        Plan { chains: chains.collect(), bound }
    }

    /// What is on the switch.
    pub(crate) fn on_switch(&self) -> OnSwitch {
        let of = |(chain, seat): (usize, &Seat)| {
            let sites = seat.sites.iter().enumerate();
            let there = sites.filter(|(_, site)| site.host().is_none());
            there.map(move |(function, _)| (chain, function)).collect::<Vec<_>>()
        };
        self.seats.iter().enumerate().flat_map(of).collect()
    }
}

/// Makes plans of choices.
pub(crate) struct Packer<'a> {
    pub rack: &'a Rack<'a>,
    pub options: &'a [Options],
    pub dual: &'a Dual,
    /// What there is for these chains.
    pub left: Left,
    /// By chain, pool and number of cores: what is gained most on one host, and how.
    table: Vec<Vec<Vec<Entry>>>,
}

/// What a chain gains most with some cores of one host, less what its links cost, and by which choice.
type Entry = Option<(f64, usize)>;

impl<'a> Packer<'a> {
    pub(crate) fn new(rack: &'a Rack<'a>, options: &'a [Options], dual: &'a Dual) -> Self {
        Self::within(rack, options, dual, Left::all(rack.whole))
    }

    /// Within what is left of hosts.
    pub(crate) fn within(
        rack: &'a Rack<'a>,
        options: &'a [Options],
        dual: &'a Dual,
        left: Left,
    ) -> Self {
        let mut links = dual.prices.clone();
        links.iter_mut().for_each(|prices| prices[0] = 0.0);
        let table = rack.whole.chains.iter().zip(options).map(|(chain, options)| {
            let mut by_pool: Vec<Vec<Entry>> = rack
                .pools
                .iter()
                .map(|pool| vec![None; rack.whole.hosts[pool[0]].cores + 1])
                .collect();
            for &number in &options.allowed {
                let (shape, choice) = options.choice(number);
                let Some(first) = shape.islands.first() else { continue };
                if shape.islands.iter().any(|island| island.host != first.host)
                    || !chain.wishes.is_empty()
                {
                    continue;
                }
                let pool = first.host / LANES;
                let gained = value(&links, (chain, options), number).0;
                let entries = by_pool[pool].iter_mut().skip(choice.on_pool[pool]);
                for entry in entries {
                    if entry.is_none_or(|(most, _)| gained > most) {
                        *entry = Some((gained, number));
                    }
                }
            }
            by_pool
        });
        let table = table.collect();
        Self { rack, options, dual, left, table }
    }

    fn chains(&self) -> &'a [Chain] {
        &self.rack.whole.chains
    }

    /// A plan of one choice for each chain; `None` if the hosts do not hold them.
    pub(crate) fn realize(&self, choices: &[usize]) -> Option<Packed> {
        let of = |chain: usize| self.options[chain].choice(choices[chain]);
        let mut order: Vec<usize> = (0..choices.len()).collect();
        let cores = |chain: usize| of(chain).1.on_pool.iter().sum::<usize>();
        order.sort_by_key(|chain| std::cmp::Reverse(cores(*chain)));
        let mut best: Option<Packed> = None;
        for mode in 0..3 {
            let mut left = self.left.clone();
            let mut seats: Vec<Option<Seat>> = vec![None; choices.len()];
            for &chain in &order {
                let prefer = |host: usize| match mode {
                    // The fullest, the emptiest, or that with most of its link left.
                    0 => -(left.cores[host] as f64),
                    1 => left.cores[host] as f64,
                    _ => left.rates[host][0],
                };
                let found = seat(self.rack, &self.chains()[chain], of(chain), &left, &prefer);
                let Some(found) = found else { break };
                left.take(&found.needs, self.chains()[chain].slo.min);
                seats[chain] = Some(found);
            }
            let Some(seats) = seats.into_iter().collect::<Option<Vec<Seat>>>() else { continue };
            let packed = self.settle(choices, seats);
            if let Some(packed) = packed
                && best.as_ref().is_none_or(|best| packed.gain > best.gain)
            {
                best = Some(packed);
            }
            if self.rack.whole.hosts.len() == 1 {
                break;
            }
        }
        best
    }

    /// At the best rates.
    pub(crate) fn settle(&self, choices: &[usize], seats: Vec<Seat>) -> Option<Packed> {
        let limits: Vec<f64> = choices
            .iter()
            .zip(self.options)
            .map(|(choice, options)| options.choice(*choice).1.rate)
            .collect();
        let chains: Vec<&Chain> = self.chains().iter().collect();
        let needs: Vec<_> = seats.iter().map(|seat| &seat.needs).collect();
        let rates = rates(&chains, &needs, &limits, &self.left)?;
        let gain = gain(self.chains(), &rates);
        Some(Packed { seats, rates, gain })
    }

    /// A plan by prices; `None` if some chain found no place.
    pub(crate) fn pack(&self, go_on: &mut dyn FnMut() -> bool) -> Option<Packed> {
        let chains = self.chains();
        let prices = &self.dual.prices;
        // By chain: what it should have, and what it needs at least, cheapest first.
        let mut targets = Vec::new();
        let mut needs: Vec<Vec<usize>> = Vec::new();
        for asking @ (chain, options) in chains.iter().zip(self.options) {
            targets.push(best(prices, asking)?.1);
            let cost = |number: &usize| {
                let (_, choice) = options.choice(*number);
                let mut cost = choice.on_pool.iter().sum::<usize>() as f64 * TIE;
                for (pool, price) in prices.iter().enumerate() {
                    cost += price[0] * choice.on_pool[pool] as f64;
                    let loads = options.loads(*number)[pool].iter().zip(&price[1..]);
                    cost +=
                        loads.map(|(load, price)| load * price).sum::<f64>() * chain.slo.min / UNIT;
                }
                cost
            };
            let mut all: Vec<(f64, usize)> =
                options.allowed.iter().map(|number| (cost(number), *number)).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            all.truncate(TRIES);
            needs.push(all.into_iter().map(|(_, number)| number).collect());
        }
        let cores = |chain: usize, number: usize| {
            self.options[chain].choice(number).1.on_pool.iter().sum::<usize>()
        };
        let mut order: Vec<usize> = (0..chains.len()).collect();
        order.sort_by_key(|chain| {
            let (need, target) = (cores(*chain, needs[*chain][0]), cores(*chain, targets[*chain]));
            std::cmp::Reverse((need, target))
        });
        let mut state = State::new(self);
        // By host: what is left once each chain has what it should.
        let mut room: Vec<f64> = self.left.cores.iter().map(|cores| *cores as f64).collect();
        for &chain in &order {
            let found = needs[chain].iter().find_map(|number| {
                let of = self.options[chain].choice(*number);
                let prefer = |host: usize| room[host];
                let seat = seat(self.rack, &chains[chain], of, &state.left, &prefer)?;
                Some((*number, seat))
            });
            let (number, seat) = match found {
                Some(found) => found,
                None => state.eject(chain, &needs)?,
            };
            let needs = &seat.needs.0;
            let all = needs.iter().map(|(_, need)| need.cores).sum::<usize>().max(1) as f64;
            let target = cores(chain, targets[chain]) as f64;
            for (host, need) in needs {
                room[*host] -= target * need.cores as f64 / all;
            }
            state.put(chain, number, seat);
        }
        // Chains that are on several hosts, or none.
        for (chain, target) in targets.iter().enumerate() {
            if state.home(chain).is_none() {
                state.change(chain, *target);
            }
        }
        for host in 0..self.left.cores.len() {
            if let Some((_, choices)) = state.share(host, &state.members[host]) {
                state.apply(host, choices);
            }
        }
        state.moves(go_on);
        // Cores that are left go to chains on several hosts, and that spread.
        state.grow(go_on);
        let choices: Vec<usize> = state.choices.iter().map(|choice| choice.unwrap_or(0)).collect();
        let seats = state.seats.iter().cloned().collect::<Option<Vec<_>>>()?;
        self.settle(&choices, seats)
    }
}

/// What a core costs at least, to choose between what costs nothing.
const TIE: f64 = 1e-9;

/// Choices of a chain that are tried for its least rate.
const TRIES: usize = 24;

/// Hosts that a move of a chain is tried to.
const TARGETS: usize = 6;

/// While hosts are filled.
struct State<'p, 'a> {
    packer: &'p Packer<'a>,
    left: Left,
    choices: Vec<Option<usize>>,
    seats: Vec<Option<Seat>>,
    /// By host: chains that are there alone.
    members: Vec<Vec<usize>>,
    random: u64,
}

impl<'p, 'a> State<'p, 'a> {
    fn new(packer: &'p Packer<'a>) -> Self {
        let chains = packer.chains().len();
        Self {
            left: packer.left.clone(),
            choices: vec![None; chains],
            seats: vec![None; chains],
            members: vec![Vec::new(); packer.left.cores.len()],
            random: 1,
            packer,
        }
    }

    /// The host that a chain is on, if it is one that it could share out.
    fn home(&self, chain: usize) -> Option<usize> {
        let seat = self.seats[chain].as_ref()?;
        let [(host, _)] = seat.needs.0[..] else { return None };
        let can = self.packer.table[chain][self.pool(host)].last().is_some_and(Option::is_some);
        can.then_some(host)
    }

    fn pool(&self, host: usize) -> usize {
        self.packer.rack.pool_of[host]
    }

    fn put(&mut self, chain: usize, number: usize, seat: Seat) {
        self.left.take(&seat.needs, self.packer.chains()[chain].slo.min);
        self.choices[chain] = Some(number);
        self.seats[chain] = Some(seat);
        if let Some(host) = self.home(chain) {
            self.members[host].push(chain);
        }
    }

    fn remove(&mut self, chain: usize) -> Option<(usize, Seat)> {
        if let Some(host) = self.home(chain) {
            self.members[host].retain(|of| *of != chain);
        }
        let seat = self.seats[chain].take()?;
        self.left.give(&seat.needs, self.packer.chains()[chain].slo.min);
        Some((self.choices[chain].take()?, seat))
    }

    fn seat(&self, chain: usize, number: usize, prefer: &dyn Fn(usize) -> f64) -> Option<Seat> {
        let of = self.packer.options[chain].choice(number);
        seat(self.packer.rack, &self.packer.chains()[chain], of, &self.left, prefer)
    }

    /// Another choice for a chain, if it finds a place; else as it was.
    fn change(&mut self, chain: usize, number: usize) -> bool {
        let Some((old, was)) = self.remove(chain) else { return false };
        let fullest = |host: usize| -(self.left.cores[host] as f64);
        match self.seat(chain, number, &fullest) {
            Some(seat) => {
                self.put(chain, number, seat);
                true
            }
            None => {
                self.put(chain, old, was);
                false
            }
        }
    }

    /// A place for a chain by moving another elsewhere.
    fn eject(&mut self, chain: usize, needs: &[Vec<usize>]) -> Option<(usize, Seat)> {
        for host in 0..self.members.len() {
            for other in self.members[host].clone() {
                let Some((number, was)) = self.remove(other) else { continue };
                let fullest = |host: usize| -(self.left.cores[host] as f64);
                let found = needs[chain].iter().find_map(|number| {
                    self.seat(chain, *number, &fullest).map(|seat| (*number, seat))
                });
                if let Some((own, seat)) = found {
                    self.left.take(&seat.needs, self.packer.chains()[chain].slo.min);
                    let fullest = |host: usize| -(self.left.cores[host] as f64);
                    let moved = needs[other].iter().find_map(|number| {
                        self.seat(other, *number, &fullest).map(|seat| (*number, seat))
                    });
                    self.left.give(&seat.needs, self.packer.chains()[chain].slo.min);
                    if let Some((number, there)) = moved {
                        self.put(other, number, there);
                        return Some((own, seat));
                    }
                }
                self.put(other, number, was);
            }
        }
        None
    }

    /// How some chains share a host's cores so that most is gained, and how much that is.
    fn share(&self, host: usize, members: &[usize]) -> Option<(f64, Vec<(usize, usize)>)> {
        let pool = self.pool(host);
        let chains = self.packer.chains();
        // What is left once they are gone.
        let mut cores = self.left.cores[host];
        let mut room = self.left.rates[host];
        for chain in &self.members[host] {
            if let Some(seat) = &self.seats[*chain] {
                let need = seat.needs.on(host);
                cores += need.cores;
                room.iter_mut()
                    .zip(need.loads)
                    .for_each(|(room, load)| *room += load * chains[*chain].slo.min);
            }
        }
        // By number of cores: the most that is gained by the chains so far.
        let mut most = vec![0.0; cores + 1];
        let mut taken: Vec<Vec<usize>> = Vec::new();
        for &chain in members {
            let table = &self.packer.table[chain][pool];
            let mut next = vec![f64::NEG_INFINITY; cores + 1];
            let mut takes = vec![0; cores + 1];
            for (all, next) in next.iter_mut().enumerate() {
                for own in 0..=all.min(table.len() - 1) {
                    let Some((gained, _)) = table[own] else { continue };
                    let sum = most[all - own] + gained;
                    if sum > *next {
                        (*next, takes[all]) = (sum, own);
                    }
                }
            }
            (most, _) = (next, taken.push(takes));
        }
        if most[cores] == f64::NEG_INFINITY {
            return None;
        }
        let mut choices = Vec::new();
        let mut all = cores;
        for (chain, takes) in members.iter().zip(&taken).rev() {
            let own = takes[all];
            choices.push((*chain, self.packer.table[*chain][pool][own]?.1));
            all -= own;
        }
        // What links and the card carry.
        let mut least = [0.0; 3];
        let mut full = [0.0; 3];
        let mut gained = 0.0;
        for &(chain, number) in &choices {
            let options = &self.packer.options[chain];
            let slo = &chains[chain].slo;
            let rate = options.choice(number).1.rate.max(slo.min);
            gained += slo.price * (rate - slo.min) / UNIT;
            for (at, load) in options.loads(number)[pool].iter().enumerate() {
                least[at] += load * slo.min;
                full[at] += load * rate;
            }
        }
        if least.iter().zip(room).any(|(least, room)| *least > room * (1.0 + 1e-9)) {
            return None;
        }
        // The rates above the least shrink alike until all is carried: no more than an estimate.
        let mut part: f64 = 1.0;
        for ((least, full), room) in least.iter().zip(full).zip(room) {
            if full > room {
                part = part.min(((room - least) / (full - least)).max(0.0));
            }
        }
        Some((gained * part, choices))
    }

    fn apply(&mut self, host: usize, choices: Vec<(usize, usize)>) {
        let members = std::mem::take(&mut self.members[host]);
        for chain in members {
            if let Some(seat) = self.seats[chain].take() {
                self.left.give(&seat.needs, self.packer.chains()[chain].slo.min);
            }
        }
        for (chain, number) in choices {
            let of = self.packer.options[chain].choice(number);
            let mut alone = self.left.clone_of(host);
            alone.cores[host] = self.left.cores[host];
            let only = |of: usize| if of == host { 1.0 } else { 0.0 };
            if let Some(seat) =
                seat(self.packer.rack, &self.packer.chains()[chain], of, &alone, &only)
            {
                self.put(chain, number, seat);
            }
        }
    }

    fn next(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 33) as usize % below.max(1)
    }

    /// Moves chains to other hosts, or exchanges two, as long as that gains something.
    fn moves(&mut self, go_on: &mut dyn FnMut() -> bool) {
        let hosts = self.members.len();
        let chains = self.seats.len();
        let mut gains: Vec<f64> = (0..hosts)
            .map(|host| self.share(host, &self.members[host]).map_or(0.0, |(gain, _)| gain))
            .collect();
        let mut without_gain = 0;
        while hosts > 1 && without_gain < 2 * chains {
            let chain = self.next(chains);
            without_gain += 1;
            if !go_on() {
                return;
            }
            let Some(from) = self.home(chain) else { continue };
            let rest: Vec<usize> =
                self.members[from].iter().copied().filter(|of| *of != chain).collect();
            for _ in 0..TARGETS.min(hosts - 1) {
                let to = (from + 1 + self.next(hosts - 1)) % hosts;
                let back = match self.members[to].len() {
                    0 => None,
                    some => Some(self.next(some + 1)).filter(|at| *at < some),
                };
                let back = back.map(|at| self.members[to][at]);
                let mut here = rest.clone();
                here.extend(back);
                let mut there: Vec<usize> =
                    self.members[to].iter().copied().filter(|of| Some(*of) != back).collect();
                there.push(chain);
                let (Some((a, one)), Some((b, other))) =
                    (self.share(from, &here), self.share(to, &there))
                else {
                    continue;
                };
                if a + b > (gains[from] + gains[to]) * (1.0 + 1e-6) + 1e-9 {
                    for of in here.iter().chain(&there) {
                        if let Some(seat) = self.seats[*of].take() {
                            self.left.give(&seat.needs, self.packer.chains()[*of].slo.min);
                        }
                    }
                    (self.members[from], self.members[to]) = (Vec::new(), Vec::new());
                    self.apply(from, one);
                    self.apply(to, other);
                    (gains[from], gains[to]) = (a, b);
                    without_gain = 0;
                    break;
                }
            }
        }
    }

    /// Gives cores that are left to chains that gain by them, those first that gain most.
    fn grow(&mut self, go_on: &mut dyn FnMut() -> bool) {
        let free: usize = self.left.cores.iter().sum();
        if free == 0 {
            return;
        }
        let chains = self.packer.chains();
        let none = vec![[0.0; 4]; self.packer.rack.pools.len()];
        let mut wanted: Vec<(f64, usize, usize)> = Vec::new();
        for (chain, of) in chains.iter().enumerate() {
            let Some(now) = self.choices[chain] else { continue };
            let options = &self.packer.options[chain];
            let asking = (of, options);
            let gained = value(&none, asking, now).0;
            let cores = |number: usize| options.choice(number).1.on_pool.iter().sum::<usize>();
            for &number in &options.allowed {
                let more = value(&none, asking, number).0 - gained;
                let costs = cores(number).saturating_sub(cores(now));
                if more > 0.0 && costs <= free {
                    wanted.push((more / (costs as f64 + TIE), chain, number));
                }
            }
        }
        wanted.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        for (_, chain, number) in wanted {
            if !go_on() {
                return;
            }
            let Some(now) = self.choices[chain] else { continue };
            let asking = (&chains[chain], &self.packer.options[chain]);
            if value(&none, asking, number).0 > value(&none, asking, now).0 {
                self.change(chain, number);
            }
        }
    }
}
