//! What the machine takes: table 6.2 and figure 6.3.

use bench::Machine;
use bench::machine::Environment;
use bench::plot::{Curves, Look, Point, Scale};
use bench::profile::formula::{BySource, Source};
use bench::profile::machine::{Costs, measure};
use bench::profile::system::Policy;
use bench::statistics::{Samples, Spread};
use dataplane::clock::RealClock;

use crate::paper::Page;

/// The CPU that network functions run on: the last.
fn bind() -> Machine {
    Machine::bind(None).expect("a CPU")
}

/// The machine in a line.
pub(crate) fn description() -> String {
    let Environment { processor, cpus, is_virtual, kernel, .. } =
        std::thread::spawn(|| bind().environment()).join().expect("the machine");
    let kind = if is_virtual { ", a virtual machine that shares its host" } else { "" };
    format!("{processor}, {cpus} cores{kind}, Linux {kernel}")
}

/// What was measured of the machine, once in each round.
pub(crate) struct Figures {
    rounds: Vec<Costs>,
}

impl Figures {
    pub(crate) fn measure(rounds: usize) -> Self {
        // On a thread of its own: it is bound to a CPU.
        let one = |round: usize| {
            let costs = std::thread::spawn(move || {
                let machine = bind();
                // The curve takes most of the time.
                let with_curve = round == 0;
                measure(&machine, &RealClock::new(), with_curve, &mut |_| {}, &|| false)
            });
            costs.join().expect("costs").unwrap_or_else(|why| panic!("{why:?}"))
        };
        Self { rounds: (0..rounds).map(one).collect() }
    }

    /// The medians of the rounds.
    fn spread<'a>(&'a self, of: impl Fn(&'a Costs) -> Option<&'a Samples>) -> Option<Spread> {
        let medians: Vec<f64> = self.rounds.iter().filter_map(|c| Some(of(c)?.median)).collect();
        (!medians.is_empty()).then(|| Spread::of(medians))
    }

    /// Nanoseconds of a context switch.
    fn switch(&self, policy: Policy) -> Option<Spread> {
        self.spread(|costs| {
            let all = &costs.system.switches;
            all.iter().find(|switch| switch.policy == policy)?.time.as_ref()
        })
    }

    /// Nanoseconds of a system call that sends or receives.
    fn io_call(&self) -> Option<Spread> {
        self.spread(|costs| Some(&costs.system.io_call))
    }

    /// What the formula takes, with context switches of a policy.
    pub(crate) fn costs(&self, policy: Policy) -> BySource {
        let mut costs = self.rounds.first().map(Costs::costs).unwrap_or_default();
        costs.set(Source::ContextSwitch, self.switch(policy).map(|time| time.median));
        costs.set(Source::SystemCall, self.io_call().map(|time| time.median));
        costs
    }

    pub(crate) fn show(&self, page: &mut Page) {
        self.show_system(page);
        self.show_memory(page);
    }

    fn show_system(&self, page: &mut Page) {
        page.put(format_args!(
            "
## Table 6.2: system calls and context switches

Nanoseconds. A context switch is from one of two threads on a CPU to the other: they hand a byte to and fro by pipes, and the
system calls that this takes are not counted. A network I/O system call sends or receives 64 bytes on a local socket. A round's
figure is the median of 15 samples of 200 round trips, or 1,000 calls.
"
        ));
        page.head(&["source of latency", "thesis", "here"]);
        let policies = [
            (Policy::Other, "Context switch, default (`SCHED_OTHER`)", "1000"),
            (Policy::Batch, "Context switch, batch (`SCHED_BATCH`)", "1140"),
            (Policy::RoundRobin, "Context switch, real time, round robin (`SCHED_RR`)", "940"),
            (Policy::Fifo, "Context switch, real time, first in, first out (`SCHED_FIFO`)", "940"),
        ];
        let cell = |time: Option<Spread>| time.map_or("not measured".into(), |t| t.to_string());
        for (policy, name, thesis) in policies {
            page.row([name.into(), thesis.into(), cell(self.switch(policy))]);
        }
        page.row(["Network I/O system call".into(), "41".into(), cell(self.io_call())]);
        let empty = self.spread(|costs| Some(&costs.system.system_call));
        page.row(["System call that does nothing (`getppid`)".into(), "–".into(), cell(empty)]);
        page.put(format_args!(
            "
The default scheduler of the thesis's kernel is CFS; Linux has had EEVDF in its place since 6.6."
        ));
    }

    fn show_memory(&self, page: &mut Page) {
        let Some(first) = self.rounds.first() else { return };
        let title = "Figure 6.3: latency of loads by working set and order";
        page.put(format_args!(
            "
## {title}

Nanoseconds of a load that needs the one before, by the bytes that are visited round and round: in equal strides, as `lmbench`
does; line by line in random order within windows of 256 KiB, which leaves hardware prefetchers without a hint and address
translation cheap; and in random order. Pages are of 4 KiB. Measured once; each figure is the median of 15 samples."
        ));
        page.plot("scc-6-3.svg", title, draw(title, first));
        let orders = &first.orders;
        page.head(&[&["KiB".to_string()], &orders[..]].concat());
        for point in &first.memory.curve {
            let times = point.times.iter().map(|time| format!("{:.1}", time.median));
            page.row(std::iter::once((point.bytes >> 10).to_string()).chain(times));
        }
        page.put(format_args!(
            "
What the formula of §6.2.1.3 takes for a hit of each level, in every round: loads in windows, in half of the cache, or in the
largest working set.
"
        ));
        page.head(&["level", "thesis, ns", "here, ns", "here, size"]);
        for (index, level) in first.memory.levels.iter().enumerate() {
            let thesis = match level.name.as_str() {
                "L1" => "1.18",
                "L2" => "1.25–5",
                "L3" => "1.3–14.3",
                "memory" => "7–71.7",
                _ => "–",
            };
            let time = self.spread(|costs| Some(&costs.memory.levels.get(index)?.time));
            page.row([
                level.name.clone(),
                thesis.into(),
                time.map_or(String::new(), |time| time.to_string()),
                level.size.map_or("–".into(), |bytes| format!("{} KiB", bytes >> 10)),
            ]);
        }
        page.put(format_args!(
            "
The thesis: L1 takes 1.18 ns whatever the stride, L2 1.25 to 5 ns. L3 and memory take ten times as long by strides of 1,024
bytes as by strides of 64. Strides that are no power of two (1,500 to 9,000 bytes) are faster: beyond L3 about as fast as L3 is
by strides of 256 to 1,024 bytes. Each level's worst latency goes into its formula."
        ));
        for remark in &first.remarks {
            page.put(format_args!("\nNote: {remark}."));
        }
    }
}

fn draw(title: &str, costs: &Costs) -> String {
    // Strides that are powers of two, the one that is not, and random orders.
    const LOOKS: [Look; 7] = [
        Look::Elements(0),
        Look::Elements(1),
        Look::Elements(2),
        Look::Synthesised(1),
        Look::Synthesised(2),
        Look::Reference(1),
        Look::Reference(0),
    ];
    let series: Vec<(String, Look, Vec<Point>)> = costs
        .orders
        .iter()
        .zip(LOOKS)
        .enumerate()
        .map(|(index, (name, look))| {
            let point = |p: &bench::profile::loads::Point| {
                Some((p.bytes as f64 / 1024.0, p.times.get(index)?.median))
            };
            let name = match name.strip_suffix(" B") {
                Some(bytes) => format!("stride of {bytes} bytes"),
                None => name.clone(),
            };
            (name, look, costs.memory.curve.iter().filter_map(point).collect())
        })
        .collect();
    let points = || series.iter().flat_map(|(.., points)| points);
    Curves {
        title: title.into(),
        across: Scale::log("working set, KiB", points().map(|point| point.0)),
        up: Scale::log("ns per load", points().map(|point| point.1)),
        series: series.clone(),
    }
    .draw()
}
