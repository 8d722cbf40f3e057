//! A plan for people: what each chain gets, what bounds it, where its functions run and why not elsewhere, and what is
//! left of each device.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ::placement::{BATCH, Bound, Delay, Kind, Plan, Problem, Shape, Site, Slack, Switch, Waiting};

use crate::candidates::Known;
use crate::paint::{Paint, count, shown};
use crate::table::{Table, WIDTH, grouped, lines, wrapped};

/// What is shown of a plan.
pub struct Placement<'a> {
    /// What was to be placed.
    pub problem: &'a Problem,
    /// The plan.
    pub plan: &'a Plan,
    /// Every constraint, as it was checked.
    pub slacks: &'a [Slack],
    /// What is known of functions that are Click.
    pub known: &'a [Known],
    /// What the switch holds.
    pub switch: &'a dyn Switch,
}

/// A rate as `2.24 Gb/s`.
pub fn rate(bits: f64) -> String {
    match bits {
        0.0 => "0 b/s".into(),
        bits if bits >= 1e9 => format!("{:.2} Gb/s", bits / 1e9),
        bits if bits >= 1e6 => format!("{:.2} Mb/s", bits / 1e6),
        bits => format!("{:.2} kb/s", bits / 1e3),
    }
}

/// A quantity in its unit.
fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" => rate(value),
        "s" => format!("{:.1} us", value * 1e6),
        "cycles/s" => format!("{:.2} Gcycles/s", value / 1e9),
        _ => format!("{value:.0} {unit}"),
    }
}

/// Constraints of which no more than this share is left bound a chain.
const BINDS: f64 = 1e-6;
/// What is met with no more than this share to spare is met only just: profiles are no better than that.
const JUST: f64 = 0.03;

/// Whether a function is a wire: one where packets of a chain enter or leave.
pub(crate) fn is_wire(name: &str) -> bool {
    name.contains(' ')
}

/// Names of functions one after the other, without wires.
fn names(chain: &::placement::Chain, functions: impl Iterator<Item = usize>) -> String {
    let names = functions.map(|at| chain.functions[at].name.as_str()).filter(|name| !is_wire(name));
    shown(&names.collect::<Vec<_>>().join(" ")).into_owned()
}

/// Where some functions of a chain run.
struct Row {
    place: String,
    functions: String,
}

impl Placement<'_> {
    /// As text.
    pub fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        let bound = match self.plan.bound {
            Bound::Best => "no plan gains more".to_string(),
            Bound::AtMost(gain) => {
                format!("no plan gains more than {} above the least", rate(gain))
            }
            Bound::Unknown => "whether another gains more is not known".to_string(),
        };
        let _ = writeln!(
            text,
            "{} in all for {}; {bound}\n",
            paint.bold(&rate(self.plan.rate())),
            count(self.plan.chains.len(), "chain")
        );
        text.push_str(&self.rates());
        let mut table = Table::new(["chain", "where", "functions"]);
        let all: Vec<Vec<Row>> = (0..self.problem.chains.len()).map(|at| self.rows(at)).collect();
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let name = |at: usize| shown(&self.problem.chains[at].name);
        let names = widest(&mut (0..all.len()).map(|at| name(at).chars().count()));
        let places = widest(&mut all.iter().flatten().map(|row| row.place.chars().count()));
        let room = WIDTH.saturating_sub(names + places + 6).max(WIDTH / 4);
        for (at, rows) in all.into_iter().enumerate() {
            let mut name = name(at).into_owned();
            for Row { mut place, functions } in rows {
                for line in lines(&functions, room) {
                    table.row([std::mem::take(&mut name), std::mem::take(&mut place), line]);
                }
            }
        }
        let _ = write!(text, "\n{}", table.render());
        let reasons = self.reasons();
        if !reasons.is_empty() {
            text.push_str("\n  not on the switch:\n");
            for (why, functions) in reasons {
                text.push_str(&wrapped(&shown(&format!("{functions}: {why}")), 4));
            }
        }
        let mut table = Table::new(["device", "used", "of", "left"]);
        for slack in self.slacks.iter().filter(|slack| slack.chain.is_none()) {
            let Slack { what, used, limit, unit, .. } = slack;
            let left = if *limit > 0.0 { slack.left().max(0.0) } else { 0.0 };
            table.row([
                shown(what).into_owned(),
                quantity(*used, unit),
                quantity(*limit, unit),
                format!("{:.0} %", left * 100.0),
            ]);
        }
        let _ = write!(text, "\n{}", table.render());
        text
    }

    /// What each chain gets.
    fn rates(&self) -> String {
        let most = self.plan.chains.iter().map(|of| of.rate).fold(0.0, f64::max);
        let (unit, one) = if most >= 1e9 || most == 0.0 { ("Gb/s", 1e9) } else { ("Mb/s", 1e6) };
        let mut table =
            Table::titled(&["chain", unit, "least", "most", "delay", "bounces", "bound by"]);
        let mut just = false;
        for (at, (chain, placed)) in self.problem.chains.iter().zip(&self.plan.chains).enumerate() {
            let shape = Shape::of(self.problem, chain, placed.sites.clone());
            let guess = if self.guesses(at).next().is_some() { "?" } else { "" };
            let close = if self.is_just(at) { "!" } else { "" };
            just |= !close.is_empty();
            table.cells(vec![
                shown(&chain.name).into_owned(),
                format!("{:.2}{guess}", placed.rate / one),
                format!("{:.2}{close}", chain.slo.min / one),
                match chain.slo.max {
                    all if all >= 1e12 => "-".into(),
                    most => format!("{:.2}", most / one),
                },
                quantity(shape.delay, "s"),
                shape.bounces.to_string(),
                self.bound_by(at),
            ]);
        }
        let mut text = table.render();
        if just {
            let _ = writeln!(
                text,
                "  ! met with less than {:.0} % to spare: an error of the profile that large breaks it",
                JUST * 100.0
            );
        }
        if self.known.iter().any(|of| of.is_guess) {
            text.push_str("  ? rests on costs that are guessed\n");
        }
        text
    }

    /// Functions of a chain on cores whose costs are guesses.
    fn guesses(&self, at: usize) -> impl Iterator<Item = &Known> {
        let (chain, placed) = (&self.problem.chains[at], &self.plan.chains[at]);
        let on_core = |name: &str| {
            let sites = chain.functions.iter().zip(&placed.sites);
            sites.into_iter().any(|(of, site)| of.name == name && site.kind() != Kind::Switch)
        };
        let guessed = self.known.iter().filter(|of| of.is_guess && of.chain == chain.name);
        guessed.filter(move |of| on_core(&of.function))
    }

    /// Whether a least rate or a delay is met only just.
    fn is_just(&self, at: usize) -> bool {
        let own = self.slacks.iter().filter(|slack| slack.chain == Some(at));
        let (chain, placed) = (&self.problem.chains[at], &self.plan.chains[at]);
        let delay = own.clone().any(|of| of.what.ends_with(": delay") && of.left() < JUST);
        // A rate that is not more than the least because more is not asked for, or gained elsewhere, can be more.
        let least = chain.slo.min > 0.0 && placed.rate < chain.slo.min * (1.0 + JUST);
        let cycles = own.clone().any(|of| of.unit == "cycles/s" && of.left() < JUST);
        delay || (least && cycles)
    }

    /// Where a chain's functions run, in the order in which packets come there.
    fn rows(&self, at: usize) -> Vec<Row> {
        let (chain, placed) = (&self.problem.chains[at], &self.plan.chains[at]);
        let shape = Shape::of(self.problem, chain, placed.sites.clone());
        let mut rows: Vec<(usize, Row)> = Vec::new();
        let mut add = |functions: Vec<usize>, place: String| {
            let named = names(chain, functions.iter().copied());
            if let (Some(first), false) = (functions.first(), named.is_empty()) {
                rows.push((*first, Row { place, functions: named }));
            }
        };
        add(shape.on_switch().collect(), "switch".into());
        for (number, host) in self.problem.hosts.iter().enumerate() {
            let sites = placed.sites.iter().enumerate();
            let on_card = sites.filter(|(_, site)| **site == Site::Card(number)).map(|(at, _)| at);
            add(on_card.collect(), format!("{}, card", host.name));
        }
        for (group, cores) in shape.groups.iter().zip(&placed.cores) {
            for (host, cores) in cores {
                let host = &self.problem.hosts[*host].name;
                add(group.functions.clone(), format!("{}, {}", shown(host), count(*cores, "core")));
            }
        }
        rows.sort_by_key(|(first, _)| *first);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    /// Why functions are not on the switch, and which: by kind of function, each reason once.
    fn reasons(&self) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
        for (at, chain) in self.problem.chains.iter().enumerate() {
            for (number, function) in chain.functions.iter().enumerate() {
                if let Some(why) = self.elsewhere(at, number) {
                    let name = function.name.split('@').next().unwrap_or_default();
                    *all.entry(why).or_default().entry(name).or_default() += 1;
                }
            }
        }
        let said = |(name, times): (&str, usize)| match times {
            1 => name.to_string(),
            times => format!("{name} ({times} times)"),
        };
        let joined = |functions: BTreeMap<&str, usize>| {
            functions.into_iter().map(said).collect::<Vec<_>>().join(", ")
        };
        all.into_iter().map(|(why, functions)| (why, joined(functions))).collect()
    }

    /// Why a function is not on the switch.
    fn elsewhere(&self, at: usize, number: usize) -> Option<String> {
        let (chain, placed) = (&self.problem.chains[at], &self.plan.chains[at]);
        if placed.sites[number] == Site::Switch {
            return None;
        }
        let function = &chain.functions[number];
        let known = self.known_of(&chain.name, &function.name);
        if !chain.can(number, Kind::Switch) {
            let verdict = known.and_then(|of| of.devices.iter().find(|of| of.kind == Kind::Switch));
            return Some(match verdict {
                _ if function.can(Kind::Switch) => "a wish of the manifest".into(),
                Some(verdict) if verdict.runs => "the manifest says so".into(),
                // The reason without its element: it stands for all functions of the kind.
                Some(verdict) => {
                    verdict.why.first().map_or("it does nothing of it".into(), |why| {
                        why.split_once("): ").map_or(why.as_str(), |(_, lack)| lack).to_string()
                    })
                }
                None => "the manifest says so".into(),
            });
        }
        let mut sites = placed.sites.clone();
        sites[number] = Site::Switch;
        let on_switch: Vec<(usize, usize)> = (0..self.problem.chains.len())
            .flat_map(|other| {
                let sites = if other == at { &sites } else { &self.plan.chains[other].sites };
                let there = sites.iter().enumerate().filter(|(_, site)| **site == Site::Switch);
                there.map(move |(number, _)| (other, number)).collect::<Vec<_>>()
            })
            .collect();
        if let Err(why) = self.switch.fits(&on_switch) {
            return Some(why);
        }
        let now = Shape::of(self.problem, chain, placed.sites.clone());
        let then = Shape::of(self.problem, chain, sites);
        let cores = |shape: &Shape| -> usize {
            let needed = (0..shape.groups.len()).map(|group| {
                let one = shape.core_rate(self.problem, group);
                (placed.rate / one - 1e-9).ceil().max(1.0) as usize
            });
            needed.sum()
        };
        Some(match chain.slo.delay {
            Some(delay) if then.delay > delay => "its chain would be late".into(),
            _ if cores(&then) >= cores(&now) => "saves no core".into(),
            _ if then.bounces > now.bounces => "packets would bounce once more".into(),
            _ => "the policy did not choose it".into(),
        })
    }

    fn known_of(&self, chain: &str, function: &str) -> Option<&Known> {
        self.known.iter().find(|of| of.chain == chain && of.function == function)
    }

    /// What keeps a chain from getting more.
    fn bound_by(&self, at: usize) -> String {
        let binds = |slack: &&Slack| slack.left() < BINDS && slack.used > 0.0;
        let prefix = format!("chain {}: ", self.problem.chains[at].name);
        let own = self.slacks.iter().filter(|slack| slack.chain == Some(at));
        let own = own.filter(|slack| {
            !slack.what.ends_with("least rate") && !slack.what.ends_with(": delay")
        });
        let placed = &self.plan.chains[at];
        let on_cores = placed.cores.iter().flat_map(|cores| cores.keys().copied());
        let hosts: BTreeSet<usize> =
            placed.sites.iter().filter_map(|site| site.host()).chain(on_cores).collect();
        let passes = |what: &str| {
            let mut names = hosts.iter().map(|host| &self.problem.hosts[*host].name);
            names.any(|name| what.starts_with(&format!("{name}: ")))
        };
        let shared = self
            .slacks
            .iter()
            .filter(|slack| slack.chain.is_none() && slack.unit != "cores" && passes(&slack.what));
        let names: Vec<&str> = own
            .chain(shared)
            .filter(binds)
            .map(|slack| {
                let what = slack.what.strip_prefix(&prefix).unwrap_or(&slack.what);
                match what.strip_prefix("cycles of ") {
                    Some(cores) => cores,
                    None if what == "greatest rate" => "its most",
                    None => what,
                }
            })
            .collect();
        match names.is_empty() {
            true => "its price: others gain more".into(),
            false => shown(&names.join(", ")).into_owned(),
        }
    }

    /// All about one chain; nothing, if there is none of that name.
    pub fn explain(&self, name: &str, paint: Paint) -> Option<String> {
        let at = self.problem.chains.iter().position(|chain| chain.name == name)?;
        let (chain, placed) = (&self.problem.chains[at], &self.plan.chains[at]);
        let shape = Shape::of(self.problem, chain, placed.sites.clone());
        let mut text = String::new();
        let slo = chain.slo;
        let most = if slo.max >= 1e12 { "any rate".into() } else { rate(slo.max) };
        let _ = writeln!(
            text,
            "{}  {} of {} to {most}, bound by {}",
            paint.bold(&shown(name)),
            rate(placed.rate),
            rate(slo.min),
            self.bound_by(at)
        );
        let delay = Delay::of(self.problem, chain, &placed.sites);
        let within =
            slo.delay.map_or(String::new(), |of| format!(" of {} at most", quantity(of, "s")));
        let _ = writeln!(
            text,
            "delay  {}{within}: {} of links ({} passes), {} to transmit, {} of execution",
            quantity(delay.total(), "s"),
            quantity(delay.propagation, "s"),
            delay.passes,
            quantity(delay.transmission, "s"),
            quantity(delay.execution, "s"),
        );
        let waiting = Waiting::of(self.problem, chain, placed);
        let queues = match waiting.queues.is_finite() {
            true => format!("about {} in queues of cores", quantity(waiting.queues, "s")),
            false => "without bound, as cores have no time left: `--headroom` leaves some".into(),
        };
        let _ = writeln!(
            text,
            "waiting, beside that, at this rate: {queues}; {} for the others of a full batch of {BATCH}",
            quantity(waiting.batch, "s")
        );
        let shares = chain.shares();
        let mut table = Table::new(["function", "packets", "cycles", "where"]);
        let mut cores: BTreeMap<usize, String> = BTreeMap::new();
        for (group, on) in shape.groups.iter().zip(&placed.cores) {
            let one = |(host, cores): (&usize, &usize)| {
                let host = &self.problem.hosts[*host].name;
                format!("{}, {}", shown(host), count(*cores, "core"))
            };
            let place = on.iter().map(one).collect::<Vec<_>>().join("; ");
            group.functions.iter().for_each(|function| {
                cores.insert(*function, place.clone());
            });
        }
        for (number, function) in chain.functions.iter().enumerate() {
            if is_wire(&function.name) {
                continue;
            }
            let place = match placed.sites[number] {
                Site::Switch => "switch".to_string(),
                Site::Card(host) => format!("{}, card", self.problem.hosts[host].name),
                Site::Core(_) => cores.get(&number).cloned().unwrap_or_default(),
            };
            let mark = match self.known_of(name, &function.name) {
                Some(known) if known.is_guess => "?",
                _ => "",
            };
            table.row([
                shown(&function.name).into_owned(),
                crate::candidates::percent(shares[number]),
                format!("{}{mark}", grouped(function.core_cycles.round() as u64)),
                place,
            ]);
        }
        let _ = write!(text, "\n{}", table.render());
        for (number, function) in chain.functions.iter().enumerate() {
            let known = self.known_of(name, &function.name);
            let why = self.elsewhere(at, number);
            if known.is_none() && why.is_none() {
                continue;
            }
            let _ = write!(text, "\n{}\n", paint.bold(&shown(&function.name)));
            if let Some(why) = why {
                text.push_str(&wrapped(&shown(&format!("not on the switch: {why}")), 2));
            }
            for line in known.iter().flat_map(|known| known.words()) {
                text.push_str(&wrapped(&shown(&line), 2));
            }
        }
        let mut table = Table::new(["constraint", "used", "of", "left"]);
        let prefix = format!("chain {name}: ");
        for slack in self.slacks.iter().filter(|slack| slack.chain == Some(at)) {
            table.row([
                shown(slack.what.strip_prefix(&prefix).unwrap_or(&slack.what)).into_owned(),
                quantity(slack.used, slack.unit),
                quantity(slack.limit, slack.unit),
                format!("{:.1} %", slack.left().max(0.0) * 100.0),
            ]);
        }
        let _ = write!(text, "\n{}", table.render());
        Some(text)
    }
}
