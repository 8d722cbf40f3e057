//! A plan: where each function runs, with how many cores, and the rate that each chain gets.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::change::Changed;
use crate::problem::{Chain, Kind, Problem};
use crate::shape::Shape;

/// Where a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Site {
    /// On the switch.
    Switch,
    /// On the card of a host.
    Card(usize),
    /// On a host's cores.
    Core(usize),
}

impl Site {
    /// The kind of device.
    pub fn kind(self) -> Kind {
        match self {
            Site::Switch => Kind::Switch,
            Site::Card(_) => Kind::Card,
            Site::Core(_) => Kind::Core,
        }
    }

    /// The host behind whose link it is.
    pub fn host(self) -> Option<usize> {
        match self {
            Site::Switch => None,
            Site::Card(host) | Site::Core(host) => Some(host),
        }
    }
}

/// A chain in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// By function: where it runs.
    pub sites: Vec<Site>,
    /// By group of functions next to each other on a host, in the order of their first functions: cores by host. Replicas on
    /// several hosts share packets by their cores; sites name one of the hosts.
    pub cores: Vec<BTreeMap<usize, usize>>,
    /// What it gets, in bits a second.
    pub rate: f64,
}

/// A plan for all chains of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Chains, in the problem's order.
    pub chains: Vec<Placed>,
    /// What is known of how good it is.
    pub bound: Bound,
}

/// How good a plan is among all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// None is better.
    Best,
    /// None gains more than so much, in bits a second times their price.
    AtMost(f64),
    /// Nothing is known.
    Unknown,
}

impl Plan {
    /// The rates of all chains together, in bits a second.
    pub fn rate(&self) -> f64 {
        self.chains.iter().map(|chain| chain.rate).sum()
    }
}

/// Cores of a group that are believed.
const MAX_CORES: usize = 1 << 20;

/// The version of a plan's document.
const VERSION: u32 = 1;

/// A plan as a document: with names instead of numbers, so that people read it, and that it cannot be taken for
/// one of other chains or hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// The format's version.
    pub plan: u32,
    /// How it was found.
    pub policy: String,
    /// What is known of how good it is.
    pub bound: Bound,
    /// What it was made of, so that it is deployed on nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_of: Option<MadeOf>,
    /// Chains.
    pub chains: Vec<ChainDocument>,
    /// By host: what follows if it fails; nothing if the others do not hold all chains.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub backups: BTreeMap<String, Option<Backup>>,
}

/// What follows a plan if a host fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backup {
    /// Functions that move.
    pub moves: usize,
    /// How long it takes until the last chain is at its new places, in seconds.
    pub takes: f64,
    /// Chains that get less than their least rates until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short: Vec<String>,
    /// Chains that are elsewhere then, or get another rate.
    pub chains: Vec<ChainDocument>,
}

/// What a plan was made of: files, and how they were read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeOf {
    /// The manifest's file.
    pub manifest: String,
    /// The topology's file.
    pub topology: String,
    /// Files of cost profiles that were named besides those of the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<String>,
    /// The share that is left unused.
    #[serde(default)]
    pub headroom: f64,
    /// Whether groups with branches and merges do not replicate.
    #[serde(default)]
    pub lemur: bool,
    /// By file that was read: a number that is another one if the file changed.
    pub digests: BTreeMap<String, String>,
}

/// A chain in a plan's document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainDocument {
    /// Its name.
    pub name: String,
    /// Bits a second that it gets.
    pub rate: f64,
    /// Its functions.
    pub functions: Vec<FunctionDocument>,
    /// Groups of functions that share cores.
    pub groups: Vec<GroupDocument>,
}

/// Where a function runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionDocument {
    /// Its name.
    pub name: String,
    /// The kind of device.
    pub on: Kind,
    /// The host of the card or the cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Functions that share cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupDocument {
    /// Their names.
    pub functions: Vec<String>,
    /// Cores.
    pub cores: usize,
    /// By host, if replicas are on several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, usize>,
}

impl Document {
    /// Of a plan.
    pub fn of(problem: &Problem, plan: &Plan, policy: &str) -> Self {
        let host_name = |host: usize| problem.hosts[host].name.clone();
        let chains = problem.chains.iter().zip(&plan.chains).map(|(chain, placed)| {
            let name = |at: usize| chain.functions[at].name.clone();
            let site = |(at, site): (usize, &Site)| FunctionDocument {
                name: name(at),
                on: site.kind(),
                host: site.host().map(host_name),
            };
            let shape = Shape::of(problem, chain, placed.sites.clone());
            let groups = shape.groups.iter().zip(&placed.cores);
            ChainDocument {
                name: chain.name.clone(),
                rate: placed.rate,
                functions: placed.sites.iter().enumerate().map(site).collect(),
                groups: groups
                    .map(|(group, cores)| GroupDocument {
                        functions: group.functions.iter().map(|at| name(*at)).collect(),
                        cores: cores.values().sum(),
                        hosts: match cores.len() {
                            1 => BTreeMap::new(),
                            _ => cores.iter().map(|(host, of)| (host_name(*host), *of)).collect(),
                        },
                    })
                    .collect(),
            }
        });
        Self {
            plan: VERSION,
            policy: policy.to_string(),
            bound: plan.bound,
            made_of: None,
            chains: chains.collect(),
            backups: BTreeMap::new(),
        }
    }

    /// What follows this plan of a problem by a change.
    pub fn backup(&self, problem: &Problem, changed: &Changed) -> Backup {
        let next = Self::of(problem, &changed.plan, &self.policy).chains;
        let both = next.into_iter().zip(&self.chains);
        let short = changed.steps.iter().filter(|step| !step.keeps_its_least);
        Backup {
            moves: changed.moved.len(),
            takes: changed.steps.iter().map(|step| step.takes).sum(),
            short: short.map(|step| problem.chains[step.chain].name.clone()).collect(),
            chains: both.filter(|(next, now)| next != *now).map(|(next, _)| next).collect(),
        }
    }

    /// The plan of a problem that follows if a host fails, if that is in it.
    ///
    /// # Errors
    /// How it is a plan for another, in words.
    pub fn after(&self, problem: &Problem, host: &str) -> Option<Result<Plan, String>> {
        let backup = self.backups.get(host)?.as_ref()?;
        let mut next = Self { backups: BTreeMap::new(), ..self.clone() };
        for chain in &backup.chains {
            if let Some(of) = next.chains.iter_mut().find(|of| of.name == chain.name) {
                *of = chain.clone();
            }
        }
        next.bound = Bound::Unknown;
        Some(next.plan(problem))
    }

    /// By chain of a problem: where it was, if it is in the plan with the same functions and hosts.
    pub fn placed(&self, problem: &Problem) -> Vec<Option<Placed>> {
        let names = host_names(problem);
        let known: HashMap<&str, &ChainDocument> =
            self.chains.iter().map(|of| (of.name.as_str(), of)).collect();
        let of = |chain: &Chain| {
            let there = known.get(chain.name.as_str()).filter(|_| self.plan == VERSION)?;
            there.placed(problem, chain, &names).ok()
        };
        problem.chains.iter().map(of).collect()
    }

    /// The plan, for a problem.
    ///
    /// # Errors
    /// How it is a plan for another, in words.
    pub fn plan(&self, problem: &Problem) -> Result<Plan, String> {
        if self.plan != VERSION {
            return Err(format!("it is of version {}, this reads {VERSION}", self.plan));
        }
        let (here, there) = (
            names(self.chains.iter().map(|chain| &chain.name)),
            names(problem.chains.iter().map(|chain| &chain.name)),
        );
        if here != there {
            return Err(format!("it is for the chains {here}; at hand are {there}"));
        }
        let hosts = host_names(problem);
        let chains = problem.chains.iter().zip(&self.chains);
        let chains = chains.map(|(chain, of)| of.placed(problem, chain, &hosts));
        Ok(Plan { chains: chains.collect::<Result<_, String>>()?, bound: self.bound })
    }
}

fn names<'a>(of: impl Iterator<Item = &'a String>) -> String {
    of.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Hosts by their names.
type HostNames<'a> = HashMap<&'a str, usize>;

fn host_names(problem: &Problem) -> HostNames<'_> {
    problem.hosts.iter().enumerate().map(|(at, host)| (host.name.as_str(), at)).collect()
}

impl ChainDocument {
    /// The chain in a plan.
    fn placed(
        &self,
        problem: &Problem,
        chain: &Chain,
        hosts: &HostNames<'_>,
    ) -> Result<Placed, String> {
        let here = names(self.functions.iter().map(|function| &function.name));
        let there = names(chain.functions.iter().map(|function| &function.name));
        if here != there {
            return Err(format!(
                "chain {} has the functions {here} in it, and {there} at hand",
                chain.name
            ));
        }
        let named = |name: &String| {
            let host = hosts.get(name.as_str()).copied();
            host.ok_or_else(|| format!("there is no host '{name}' at hand"))
        };
        let site = |function: &FunctionDocument| match (
            function.on,
            function.host.as_ref().map(named).transpose()?,
        ) {
            (Kind::Switch, None) => Ok(Site::Switch),
            (Kind::Card, Some(host)) => Ok(Site::Card(host)),
            (Kind::Core, Some(host)) => Ok(Site::Core(host)),
            (Kind::Switch, Some(_)) => {
                Err(format!("{} is on the switch, and on a host", function.name))
            }
            (kind, None) => Err(format!("{} is on a {kind} of no host", function.name)),
        };
        let sites = self.functions.iter().map(site).collect::<Result<Vec<Site>, String>>()?;
        let shape = Shape::of(problem, chain, sites.clone());
        let mut cores = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let most = group.hosts.values().chain([&group.cores]).max();
            if let Some(most) = most.filter(|most| **most > MAX_CORES) {
                return Err(format!("a group of chain {} has {most} cores", chain.name));
            }
            let host = |(name, cores): (&String, &usize)| Ok((named(name)?, *cores));
            cores.push(match (group.hosts.is_empty(), shape.groups.get(number)) {
                (true, Some(of)) => BTreeMap::from([(of.host, group.cores)]),
                (true, None) => BTreeMap::new(),
                _ => group.hosts.iter().map(host).collect::<Result<_, String>>()?,
            });
        }
        Ok(Placed { sites, cores, rate: self.rate })
    }
}
