//! The stage limit (§2.6.2), and the program that Lemur published: tables by hand, placed by the estimator.

use codegen::stages::{Hardware, Joint, Pipeline, Room, Stages, place, simplified};
use placement::{
    Chain, Edge, Plan, Policy, Problem, Replication, Site, Slo, Switch, check, lemur, place as plan,
};

use super::GBPS;
use super::paper::Page;
use super::tables::{four_chains, four_chains_in_one, functions, nats, nats_in_one};

/// NATs of the chain.
const NATS: usize = 11;

/// What the chain gets at least, as the text has it.
const LEAST: f64 = 44.9 * GBPS;

/// BPF -> NATs in branches -> IPv4Fwd.
fn chain() -> Chain {
    let nats = (0..NATS).map(|at| lemur::function("NAT", format!("NAT{at}")));
    let ends = ["BPF", "IPv4Fwd"].map(|class| lemur::function(class, class.into()));
    let [first, last] = ends;
    let edges = (1..=NATS).flat_map(|nat| {
        let share = 1.0 / NATS as f64;
        [Edge { from: 0, to: nat, share }, Edge { from: nat, to: NATS + 1, share: 1.0 }]
    });
    Chain {
        name: "NATs".into(),
        functions: std::iter::once(first).chain(nats).chain([last]).collect(),
        edges: edges.collect(),
        slo: Slo { min: LEAST, max: 100.0 * GBPS, delay: None, price: 1.0 },
        wishes: Vec::new(),
    }
}

fn tofino() -> (Hardware, Stages) {
    let hardware = Hardware::known("tofino-1").expect("it is known");
    match &hardware.room {
        Room::Stages(stages) => (hardware.clone(), stages.clone()),
        _ => panic!("it has stages"),
    }
}

fn stages(pipeline: &Pipeline) -> u32 {
    let (_, tofino) = tofino();
    place(pipeline, &tofino).unwrap_or_else(|why| panic!("{}", why.said(pipeline))).stages
}

/// A switch whose program is Lemur's: as many NATs in branches as are there.
struct Published {
    /// By number of NATs.
    stages: Vec<u32>,
    there: u32,
}

impl Published {
    fn new() -> Self {
        let (_, tofino) = tofino();
        let of = |count: usize| if count == 0 { 0 } else { stages(&nats(count as u32)) };
        Self { stages: (0..=NATS).map(of).collect(), there: tofino.count }
    }
}

impl Switch for Published {
    fn fits(&self, placed: &[(usize, usize)]) -> Result<(), String> {
        let nats = placed.iter().filter(|(_, at)| (1..=NATS).contains(at)).count();
        let needed = self.stages[nats];
        match needed <= self.there {
            true => Ok(()),
            false => Err(format!("no stage left: {needed} of {}", self.there)),
        }
    }
}

/// A switch whose program is made of the tables that functions have alone.
struct Own(Joint);

impl Switch for Own {
    fn fits(&self, placed: &[(usize, usize)]) -> Result<(), String> {
        self.0.fit(placed).map(drop)
    }
}

fn in_words(problem: &Problem, plan: &Plan) -> String {
    let is_on_core = |site: &&Site| matches!(site, Site::Core(_));
    let there = plan.chains[0].sites.iter().filter(is_on_core).count();
    let on_cores = match there {
        0 => "all on the switch".into(),
        1 => "1 NAT on a core".into(),
        more => format!("{more} NATs on cores"),
    };
    let all =
        if plan.rate() >= problem.chains[0].slo.max - 1.0 { " (all it asks for)" } else { "" };
    format!("{on_cores}, {:.1} Gb/s{all}", plan.rate() / GBPS)
}

/// Which policies find a plan within the stages that there are.
pub(crate) fn limit(page: &mut Page) {
    let members = functions(NATS);
    let own = Own(Joint::new(std::slice::from_ref(&members), Some(tofino().0)));
    let published = Published::new();
    let all: Vec<(usize, usize)> = (0..members.all.len()).map(|at| (0, at)).collect();
    page.put(format_args!(
        "\n## The stage limit (§2.6.2)\n\nBPF, {NATS} NATs in branches, IPv4Fwd, at least {:.1} Gb/s, which is more than the server's link carries. \
         Lemur: 10 NATs fit the 12 stages of its Tofino, as its compiler says; one goes to the server; SW preferred breaks the SLO, and \
         all others exceed the stages. Without its elimination of dependences 10 NATs take 27 stages, by the estimate of others 14.\n\n\
         Here the estimator of `catena compile` is asked. *Lemur's tables* are NATs with its keys over metadata, as its compiler composes them; *Catena's* are those \
         that the functions have alone, joined as `catena place` joins them: NATs that exclude each other share one table.\n",
        LEAST / GBPS
    ));
    page.head(&["", "8 NATs", "9 NATs", "10 NATs", "11 NATs"]);
    page.row(["Lemur, Tofino's compiler", "", "", "12 stages", "more than 12"].map(String::from));
    let of = |stages: u32| format!("{stages} stages");
    let mut row = |name: &str, stages: &dyn Fn(usize) -> u32| {
        let cells = (NATS - 3..=NATS).map(|nats| of(stages(nats)));
        page.row(std::iter::once(name.to_string()).chain(cells));
    };
    row("Lemur's tables, the estimator", &|nats| published.stages[nats]);
    row("one table of NATs, by hand", &|nats| stages(&simplified(&nats_in_one(nats as u32))));
    row("Catena's, joined", &|nats| {
        let some: Vec<_> =
            all.iter().copied().filter(|(_, at)| !(nats + 1..=NATS).contains(at)).collect();
        own.0.fit(&some).ok().and_then(|taken| taken.stages).expect("it fits").0 as u32
    });
    page.put(format_args!(""));
    page.head(&["policy", "rules and tables of Lemur", "those of Catena"]);
    let policies = [
        Policy::Exact,
        Policy::Improved,
        Policy::Lemur,
        Policy::HwPreferred,
        Policy::SwPreferred,
        Policy::MinBounce,
        Policy::Greedy,
    ];
    for policy in policies {
        let cell = |switch: &dyn Switch, replication: Replication, nat: bool| {
            let mut problem =
                Problem { chains: vec![chain()], replication, ..lemur::problem(&[], 1.0) };
            for function in &mut problem.chains[0].functions {
                function.replicates |= nat;
            }
            match plan(&problem, switch, policy, &mut || true) {
                Ok(plan) => {
                    assert_eq!(check(&problem, switch, &plan).err(), None, "{policy}");
                    in_words(&problem, &plan)
                }
                Err(_) => "–".into(),
            }
        };
        page.row([
            policy.to_string(),
            cell(&published, Replication::Lemur, false),
            cell(&own, Replication::Model, true),
        ]);
    }
}

/// The program that Lemur published.
pub(crate) fn program(page: &mut Page) {
    let (published, own) = (four_chains(), four_chains_in_one());
    page.put(format_args!(
        "\n## Lemur's published program\n\nFour chains (Limiter and NAT, Encrypt and Tunnel, Limiter and ACL, Detunnel and Decrypt, each with IPv4Fwd), \
         whose P4 program Lemur published. Its tables by hand, and the same chains with what branches share in one table.\n"
    ));
    page.head(&["", "tables", "stages"]);
    page.row(["Lemur, Tofino's compiler", "30", "7"].map(String::from));
    for (name, pipeline) in [("Lemur's tables, the estimator", published), ("Catena's", own)] {
        let tables = pipeline.tables.len().to_string();
        page.row([name.to_string(), tables, stages(&pipeline).to_string()]);
    }
}
