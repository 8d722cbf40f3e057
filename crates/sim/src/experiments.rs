//! The experiments of Ironside's evaluation (§4.4): which cells its tables and figures have, and how each is run here.

pub mod scaling;

use std::sync::Mutex;

use scale::{Nanos, Settings};
use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::generate::{Generated, Traffic};
use crate::published::{LOOSE, TABLES};
use crate::rack::Rack;
use crate::report::Report;
use crate::scheme::{Outlook, Scheme, Setup};
use crate::superbursts::Superbursts;
use crate::tape::Tape;
use crate::trace::{Trace, Until};

const US: Nanos = 1_000;
/// SLOs of the tables and figures.
pub const SLOS: [Nanos; 5] = [100 * US, 200 * US, 300 * US, 400 * US, 500 * US];
/// Chains of the tables and figures.
pub const CHAINS: [&str; 2] = ["chain1", "chain2"];
/// Traces of the tables.
pub const TRACES: [&str; 2] = ["backbone", "as"];
/// The SLO that is looked at where a policy has none.
const NONE: Nanos = 500 * US;

/// Figures 4.5, 4.6 and 4.8: their numbers, what they are about, and the policies in them. All are of the backbone trace.
pub const FIGURES: [(&str, &str, &[&str]); 3] = [
    (
        "4.5",
        "core mappers",
        &["ironside", "ironside-safe", "ironside-unsafe", "ironside-no-core-mapper"],
    ),
    ("4.6", "server mappers", &["ironside", "ironside-safe-server", "ironside-unsafe-server"]),
    ("4.8", "boost mode", &["ironside", "ironside-no-boost", "ironside-on-demand"]),
];

/// A run of the evaluation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// The chain.
    pub chain: String,
    /// The trace.
    pub trace: String,
    /// The policy.
    pub policy: String,
    /// The SLO.
    pub slo: Nanos,
}

impl Cell {
    /// The one of a chain, a trace, a policy and an SLO, which is ignored if the policy has none.
    pub fn of(chain: &str, trace: &str, policy: &str, slo: Nanos) -> Self {
        let slo = if policy == "metron" { NONE } else { slo };
        Self { chain: chain.into(), trace: trace.into(), policy: policy.into(), slo }
    }

    /// All of the evaluation, each once, and those of policies of ours beside them.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let mut add = |cell: Self| {
            if !all.contains(&cell) {
                all.push(cell);
            }
        };
        for table in TABLES {
            for row in table.rows {
                add(Self::of(table.chain, table.trace, row.policy, row.slo * US));
            }
            SLOS.iter().for_each(|slo| add(Self::of(table.chain, table.trace, "ours", *slo)));
        }
        for (chain, slo, _) in LOOSE {
            add(Self::of(chain, "backbone", "ironside", slo * US));
        }
        for (.., policies) in FIGURES {
            for (chain, policy) in
                CHAINS.iter().flat_map(|of| policies.iter().map(move |p| (of, p)))
            {
                SLOS.iter().for_each(|slo| add(Self::of(chain, "backbone", policy, *slo)));
            }
        }
        all
    }
}

/// The part of each trace that all runs see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Nanoseconds at the start that are not measured.
    pub warmup: Nanos,
    /// Nanoseconds after which the trace ends.
    pub end: Nanos,
}

impl Window {
    /// The short one. The server mapper has decided once before it is measured, and Metron twice.
    pub const SHORT: Self = Self { warmup: 1_100_000_000, end: 2_100_000_000 };
    /// The whole trace: 52 s, the longest flow of the backbone's.
    pub const FULL: Self = Self { warmup: 5_000_000_000, end: 52_000_000_000 };
}

/// The rack of the evaluation.
pub fn rack() -> Rack {
    Rack::default()
}

/// Links that carry traffic like a trace's and are led to the rack together. A single one of the backbone has half a million packets/s: for
/// Metron's printed cores they would have to cost more than a whole epoch each batch. With so many, chain 1 comes to cost
/// what figure 4.3 shows, 160 packets in 200 us, and a full receive queue takes about what is printed as Quadrant's 99th percentile.
pub const LINKS: u32 = 16;

/// Traffic of a trace of the evaluation on one link, as it is fitted.
///
/// # Errors
/// That there is no such trace.
pub fn link(trace: &str) -> Result<Traffic, String> {
    match trace {
        "backbone" => Ok(Traffic::backbone()),
        "as" => Ok(Traffic::autonomous_system()),
        _ => Err(format!("there is no trace '{trace}'")),
    }
}

/// Traffic of a trace of the evaluation at the rack: so many links' flows, each as it is on its link.
///
/// # Errors
/// That there is no such trace.
pub fn traffic(trace: &str) -> Result<Traffic, String> {
    let mut of = link(trace)?;
    of.arrivals *= f64::from(LINKS);
    of.peak *= f64::from(LINKS);
    Ok(of)
}

/// A trace of the evaluation, with what it asks of cores.
pub struct Bed {
    traffic: Traffic,
    window: Window,
    /// Its packets, if they are few enough to be held.
    held: Option<Tape>,
    /// By chain: what the trace asks of cores.
    outlooks: Mutex<Vec<(Chain, Outlook)>>,
}

/// Packets of a trace that are held for all runs; more are made anew for each.
const HELD: usize = 40_000_000;

impl Bed {
    /// That of a trace.
    ///
    /// # Errors
    /// That there is no such trace.
    pub fn new(trace: &str, window: Window) -> Result<Self, String> {
        let traffic = traffic(trace)?;
        let mut packets = Until { trace: Generated::new(&traffic), end: window.end };
        let held = Tape::record(&mut packets, HELD)?;
        Ok(Self { traffic, window, held, outlooks: Mutex::default() })
    }

    /// Its packets, from the first.
    fn open(&self) -> Box<dyn Trace + '_> {
        match &self.held {
            Some(held) => Box::new(held.play()),
            None => Box::new(Until { trace: Generated::new(&self.traffic), end: self.window.end }),
        }
    }

    /// What it asks of cores with a chain. No policy of the evaluation is an oracle, so the SLO does not matter.
    fn outlook(&self, chain: &Chain, rack: &Rack) -> Result<Outlook, String> {
        let known = |outlooks: &[(Chain, Outlook)]| {
            outlooks.iter().find(|(of, _)| of == chain).map(|(_, outlook)| *outlook)
        };
        let broken = |_| "a run broke off".to_string();
        if let Some(outlook) = known(&self.outlooks.lock().map_err(broken)?) {
            return Ok(outlook);
        }
        let outlook = Outlook::of(&mut *self.open(), chain, rack, NONE)?;
        self.outlooks.lock().map_err(broken)?.push((chain.clone(), outlook));
        Ok(outlook)
    }

    /// Runs a cell with a chain, which may have other costs than the fitted ones.
    ///
    /// # Errors
    /// What is wrong with the cell.
    pub fn run(&self, cell: &Cell, chain: &Chain) -> Result<Report, String> {
        let rack = rack();
        let mut settings = Settings::default();
        // No system of the evaluation has such a guard.
        settings.guards.swings = 0;
        let outlook = self.outlook(chain, &rack)?;
        let setup = Setup {
            scheme: Scheme::named(&cell.policy)?,
            initial: outlook.initial().min(rack.cores() as usize),
            rack,
            chain: chain.clone(),
            settings,
            slo: cell.slo,
            seed: self.traffic.seed,
            warmup: self.window.warmup,
            gap: outlook.gap,
            size: outlook.size,
            outlook,
        };
        setup.run(&mut *self.open())
    }
}

/// Nanoseconds of a trace in which superbursts are looked for, when it is fitted and when the fit is shown.
pub const FITTED: Nanos = 2_000_000_000;

/// Superbursts of a trace of the evaluation.
///
/// # Errors
/// That there is no such trace.
pub fn superbursts_of(trace: &str) -> Result<Superbursts, String> {
    Superbursts::of(&mut Until { trace: Generated::new(&link(trace)?), end: FITTED })
}

/// A chain with costs with which Metron uses as many cores on the backbone trace as printed: all functions are made slower or
/// faster by the same factor, the one nearest to 1 that there is in that direction.
///
/// # Errors
/// That there is no such chain, or no such factor.
pub fn fit_costs(name: &str, bed: &Bed) -> Result<Chain, String> {
    let printed = TABLES.iter().find(|of| of.chain == name && of.trace == "backbone");
    let printed = printed.and_then(|of| of.rows.iter().find(|row| row.policy == "metron"));
    let (Some(row), Some(chain)) = (printed, Chain::named(name)) else {
        return Err(format!("there is no {name}"));
    };
    let cell = Cell::of(name, "backbone", "metron", NONE);
    let scaled = |thousandths: u64| {
        let mut chain = chain.clone();
        for of in &mut chain.functions {
            of.cycles = of.cycles * thousandths / 1000;
            of.per_kilobyte = of.per_kilobyte * thousandths / 1000;
        }
        chain
    };
    let is_more = |factor| Ok::<_, String>(bed.run(&cell, &scaled(factor))?.cores >= row.cores);
    // One end has too few cores, the other one enough.
    let (mut near, is_near) = (1000, is_more(1000)?);
    let mut far = near;
    while is_more(far)? == is_near {
        near = far;
        far = if is_near { far * 93 / 100 } else { far * 107 / 100 };
        if !(50..20_000).contains(&far) {
            return Err(format!("no costs of {name} give Metron {} cores", row.cores));
        }
    }
    while near.abs_diff(far) > 3 {
        let middle = (near + far) / 2;
        match is_more(middle)? == is_near {
            true => near = middle,
            false => far = middle,
        }
    }
    Ok(scaled(if is_near { near } else { far }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets that are held have numbers instead of keys; runs see no difference.
    #[test]
    fn held_packets_are_the_same_as_new_ones() {
        let window = Window { warmup: 5_000_000, end: 25_000_000 };
        let mut bed = Bed::new("as", window).unwrap();
        let chain = Chain::named("chain1").unwrap();
        for policy in ["ironside", "quadrant"] {
            let cell = Cell::of("chain1", "as", policy, 200_000);
            let tape = bed.held.take();
            let new = bed.run(&cell, &chain).unwrap();
            bed.held = tape;
            let held = bed.run(&cell, &chain).unwrap();
            assert!(new == held && new.packets > 50_000, "{new:?}\n{held:?}");
        }
    }

    #[test]
    fn each_cell_is_there_once() {
        let all = Cell::all();
        assert!(all.iter().enumerate().all(|(at, cell)| !all[..at].contains(cell)));
        assert_eq!(all.len(), 4 * 21 + 2 + 2 * (3 + 2 + 2) * 5);
    }
}
