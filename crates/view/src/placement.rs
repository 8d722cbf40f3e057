//! A plan for people: what each chain gets, what bounds it, where its functions run, and what is left of each device.

use std::fmt::Write;

use ::placement::{Bound, Kind, Plan, Problem, Shape, Slack};

use crate::paint::{Paint, shown};
use crate::table::Table;

/// What is shown of a plan.
pub struct Placement<'a> {
    /// What was to be placed.
    pub problem: &'a Problem,
    /// The plan.
    pub plan: &'a Plan,
    /// Every constraint, as it was checked.
    pub slacks: &'a [Slack],
}

/// A rate as `2.24 Gb/s`.
fn rate(bits: f64) -> String {
    match bits {
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

impl Placement<'_> {
    /// As text.
    pub fn text(&self, paint: Paint) -> String {
        let mut text = String::new();
        let total: f64 = self.plan.rate();
        let bound = match self.plan.bound {
            Bound::Best => "no plan gains more".to_string(),
            Bound::AtMost(gain) => {
                format!("no plan gains more than {} above the least", rate(gain))
            }
            Bound::Unknown => "whether another gains more is not known".to_string(),
        };
        let _ = writeln!(
            text,
            "{} in all for {} chains; {bound}\n",
            paint.bold(&rate(total)),
            self.plan.chains.len()
        );
        let mut table =
            Table::new(["chain", "rate", "least", "greatest", "bounces", "delay", "bound by"]);
        for (at, (chain, placed)) in self.problem.chains.iter().zip(&self.plan.chains).enumerate() {
            let shape = Shape::of(self.problem, chain, placed.sites.clone());
            table.row([
                shown(&chain.name).into_owned(),
                rate(placed.rate),
                rate(chain.slo.min),
                rate(chain.slo.max),
                shape.bounces.to_string(),
                quantity(shape.delay, "s"),
                self.bound_by(at),
            ]);
        }
        text.push_str(&table.render());
        let mut table = Table::new(["chain", "functions", "run on"]);
        for (chain, placed) in self.problem.chains.iter().zip(&self.plan.chains) {
            let shape = Shape::of(self.problem, chain, placed.sites.clone());
            let names = |functions: &mut dyn Iterator<Item = usize>| {
                functions
                    .map(|at| shown(&chain.functions[at].name).into_owned())
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let mut rows = vec![(names(&mut shape.on_switch()), "switch".to_string())];
            for (number, host) in self.problem.hosts.iter().enumerate() {
                let sites = placed.sites.iter().enumerate();
                let mut on_card = sites
                    .filter(|(_, site)| site.host() == Some(number) && site.kind() == Kind::Card)
                    .map(|(at, _)| at);
                rows.push((names(&mut on_card), format!("card of {}", host.name)));
            }
            for (group, cores) in shape.groups.iter().zip(&placed.cores) {
                for (host, cores) in cores {
                    let host = &self.problem.hosts[*host].name;
                    let number =
                        if *cores == 1 { "1 core".into() } else { format!("{cores} cores") };
                    rows.push((
                        names(&mut group.functions.iter().copied()),
                        format!("{number} of {host}, {:.0} cycles a packet", group.cycles),
                    ));
                }
            }
            for (functions, place) in
                rows.into_iter().filter(|(functions, _)| !functions.is_empty())
            {
                table.row([shown(&chain.name).into_owned(), functions, place]);
            }
        }
        let _ = write!(text, "\n{}", table.render());
        let mut table = Table::new(["device", "used", "of"]);
        for slack in self.slacks.iter().filter(|slack| slack.chain.is_none()) {
            let Slack { what, used, limit, unit, .. } = slack;
            table.row([shown(what).into_owned(), quantity(*used, unit), quantity(*limit, unit)]);
        }
        let _ = write!(text, "\n{}", table.render());
        text
    }

    /// What keeps a chain from getting more.
    fn bound_by(&self, at: usize) -> String {
        let binds = |slack: &&Slack| slack.left() < BINDS && slack.used > 0.0;
        let prefix = format!("chain {}: ", self.problem.chains[at].name);
        let own = self.slacks.iter().filter(|slack| slack.chain == Some(at));
        let own = own.filter(|slack| !slack.what.ends_with("least rate"));
        let all = own.chain(
            self.slacks.iter().filter(|slack| slack.chain.is_none() && slack.unit != "cores"),
        );
        let names: Vec<&str> = all
            .filter(binds)
            .map(|slack| slack.what.strip_prefix(&prefix).unwrap_or(&slack.what))
            .collect();
        match names.is_empty() {
            true => "its price: others gain more by what both need".into(),
            false => shown(&names.join("; ")).into_owned(),
        }
    }
}
