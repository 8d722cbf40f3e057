//! Chains of routers on one CPU: figures 6.5, 6.11 and 6.12, tables 6.5 and 6.8.

use bench::plot::Look;
use bench::profile::system::Policy;
use bench::statistics::Spread;

use crate::cells::{Cell, PROFILE, boxes, explain_empty, profile, two};
use crate::machine;
use crate::paper::{Page, thousands};
use crate::routers::lost;
use crate::testbed::{Between, How, Load, Row, Testbed};

/// Routers in a chain, as in tables 6.5 and 6.8.
const LENGTHS: [usize; 4] = [1, 2, 4, 8];
/// Frames per second: less than the longest chain takes.
const RATE: f64 = 8_000.0;
/// Seconds of a load.
const SECONDS: f64 = 0.5;
/// Bytes of a frame, without frame check sequence.
const SIZE: u16 = 64;

/// More than any chain takes.
const OVERLOAD: Load = Load { rate: 300_000.0, size: SIZE, seconds: 0.25 };

/// How the routers of a chain run.
struct Kind {
    name: &'static str,
    io: &'static str,
    poll: &'static str,
    policy: Policy,
    look: Look,
}

const ONE: &str = "af-packet";
const MANY: &str = "af-packet-mmsg,batch=32";

const KINDS: [Kind; 6] = [
    Kind {
        name: "default",
        io: ONE,
        poll: "sleep",
        policy: Policy::Other,
        look: Look::Reference(0),
    },
    Kind { name: "batch", io: ONE, poll: "sleep", policy: Policy::Batch, look: Look::Elements(0) },
    Kind {
        name: "round robin",
        io: ONE,
        poll: "sleep",
        policy: Policy::RoundRobin,
        look: Look::Elements(1),
    },
    Kind { name: "FIFO", io: ONE, poll: "sleep", policy: Policy::Fifo, look: Look::Elements(2) },
    Kind {
        name: "batch, 32 frames",
        io: MANY,
        poll: "sleep",
        policy: Policy::Batch,
        look: Look::Synthesised(1),
    },
    Kind {
        name: "FIFO, 32 frames",
        io: MANY,
        poll: "sleep",
        policy: Policy::Fifo,
        look: Look::Synthesised(2),
    },
];

/// A row for each kind, a cell for each length: under a load that all take, and under one that none does.
pub(crate) struct Chains {
    moderate: Vec<Vec<Cell>>,
    overload: Vec<Vec<Cell>>,
}

impl Chains {
    pub(crate) fn measure(testbed: &Testbed, rounds: usize) -> Option<Self> {
        let rows = LENGTHS.map(|length| Row::new(length, Between::Links));
        let load = Load { rate: RATE, size: SIZE, seconds: SECONDS };
        let cells = || LENGTHS.iter().map(|_| Cell::default()).collect::<Vec<_>>();
        let all = || KINDS.iter().map(|_| cells()).collect::<Vec<_>>();
        let (mut moderate, mut overload) = (all(), all());
        for _ in 0..rounds {
            for (index, kind) in KINDS.iter().enumerate() {
                let how = How { io: kind.io.into(), poll: kind.poll, policy: kind.policy };
                for (length, row) in rows.iter().enumerate() {
                    let processes = row.start(testbed, &how);
                    let measured = row.measure(testbed, load, (&processes, load))?;
                    moderate[index][length].0.push(measured);
                    let measured = row.measure(testbed, OVERLOAD, (&[], OVERLOAD))?;
                    overload[index][length].0.push(measured);
                }
            }
        }
        Some(Self { moderate, overload })
    }

    pub(crate) fn show(&self, page: &mut Page, machine: &machine::Figures) {
        self.show_latency(page);
        self.show_ratios(page);
        page.put(format_args!(
            "
What a packet takes in chains of {} routers, watched and computed as for table 6.4; a context switch takes what table 6.2 has for
the policy:
",
            LENGTHS[LENGTHS.len() - 1]
        ));
        page.head(&[&["scheduling, I/O"], &PROFILE[..]].concat());
        for (kind, cells) in KINDS.iter().zip(&self.moderate) {
            let mut row = vec![kind.name.to_string()];
            let last = cells.last().into_iter();
            row.extend(last.flat_map(|cell| profile(cell, &machine.costs(kind.policy))));
            page.row(row);
        }
        explain_empty(page, self.moderate.iter().flatten());
    }

    fn show_latency(&self, page: &mut Page) {
        let title = "Figures 6.5, 6.11 and 6.12: latency of chains of routers by their length";
        page.put(format_args!(
            "
## {title}

Each router is a process on a host of its own; hosts are linked back to back, as for figure 6.12. All routers share CPU {}.
{SIZE}-byte frames, {} per second, {SECONDS} s in each round; the thesis offers 820,000 per second. Policies are those of table
6.2. One frame in a system call (`--io {ONE}`), or up to 32 (`--io {MANY}`). A router with nothing to do sleeps
at once (`--poll sleep`). In the thesis, *batch* also has longer time slices, by nice values; since Linux 6.6 they change no
slices.",
            crate::testbed::MEASURED,
            thousands(RATE as u64)
        ));
        let series = KINDS.iter().zip(&self.moderate);
        let series = series
            .map(|(kind, cells)| (kind.name.to_string(), kind.look, cells.iter().collect()))
            .collect();
        let groups = LENGTHS.map(|length| length.to_string()).to_vec();
        page.plot(
            "scc-6-12.svg",
            "Latency of chains by their length",
            boxes(title, "routers in the chain", groups, series),
        );
        for (name, index) in [("Median latency in µs", 2), ("99th percentile in µs", 4)] {
            page.put(format_args!("\n{name}:\n"));
            self.table(page, &["µs per router more"], |cells| {
                let all = cells.iter().map(|cell| cell.percentile(index).to_string());
                let slope = self.slope(cells, index);
                all.chain([format!(
                    "{:.1} ({:.1}–{:.1})",
                    slope.median, slope.least, slope.greatest
                )])
                .collect()
            });
        }
        page.put(format_args!("\nPer cent of the packets that were lost in the worst round:\n"));
        self.table(page, &[], |cells| cells.iter().map(lost).collect());
        page.put(format_args!(
            "
Thousands of frames per second that come out when {} are offered:
",
            thousands(OVERLOAD.rate as u64)
        ));
        Self::table_of(page, &self.overload, &[], |cells| {
            cells.iter().map(|cell| cell.rate().to_string()).collect()
        });
        page.put(format_args!(
            "
Under FIFO, a router that always finds frames never sleeps and keeps the CPU from those behind it; under round robin, until its
time slice ends.

The thesis, per router more, from 2 routers on: behind Open vSwitch 1,769 µs by default, 1,349 and 532 µs with batch and slices of 420
and 800 ms; back to back 1,335 µs by default, 1,268 µs with batch, 1,189 µs with batch and 2 frames in a system call, and up to half
less with 16 and 32."
        ));
    }

    /// How much a router more adds, from 2 routers on, in each round.
    fn slope(&self, cells: &[Cell], index: usize) -> Spread {
        let rounds = cells.iter().map(|cell| cell.0.len()).min().unwrap_or(0);
        let of_round = |round: usize| {
            let points = LENGTHS.iter().zip(cells).filter(|(length, _)| **length >= 2);
            let points: Vec<_> = points
                .map(|(length, cell)| (*length as f64, cell.0[round].arrived.percentiles[index]))
                .collect();
            let count = points.len() as f64;
            let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
            let (x, y) = (mean(|p| p.0), mean(|p| p.1));
            let covariance: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
            covariance / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
        };
        Spread::of((0..rounds).map(of_round))
    }

    fn table(&self, page: &mut Page, more: &[&str], row: impl Fn(&[Cell]) -> Vec<String>) {
        Self::table_of(page, &self.moderate, more, row);
    }

    fn table_of(
        page: &mut Page,
        all: &[Vec<Cell>],
        more: &[&str],
        row: impl Fn(&[Cell]) -> Vec<String>,
    ) {
        let mut head = vec!["scheduling, I/O".to_string()];
        head.extend(
            LENGTHS.map(|length| if length == 1 { "1 router".into() } else { length.to_string() }),
        );
        head.extend(more.iter().map(|title| title.to_string()));
        page.head(&head);
        for (kind, cells) in KINDS.iter().zip(all) {
            page.row(std::iter::once(kind.name.to_string()).chain(row(cells)));
        }
    }

    fn show_ratios(&self, page: &mut Page) {
        page.put(format_args!(
            "
## Tables 6.5 and 6.8: waiting and scheduling contention to run time

Of the workers of all routers of a chain, while they were watched: the time that they waited for frames, and the time that they were
ready and had no CPU (`/proc/PID/schedstat`), each as a multiple of the time that they ran. A chain that is offered less than it takes
waits more.

SchedContention/RunTime:
"
        ));
        let ratio = |of: fn(&crate::testbed::Profile) -> f64| {
            move |cells: &[Cell]| -> Vec<String> {
                cells.iter().map(|cell| cell.profiled(of).map_or(String::new(), two)).collect()
            }
        };
        self.table(page, &[], ratio(|profile| profile.contention));
        page.put(format_args!(
            "
| the thesis | 1 router | 2 | 4 | 8 |
|---|---:|---:|---:|---:|
| behind Open vSwitch, default | 0 | 1.25 | 2.88 | 3.78 |
| behind Open vSwitch, batch | 0 | 4.34 | 2.73 | 2.58 |
| back to back, default | 0 | 1.39 | 3.11 | 4.17 |
| back to back, batch | 0 | 2.83 | 2.92 | 2.82 |
| back to back, batch, 32 frames | 0 | 2.82 | 2.91 | 2.98 |

Wait/RunTime:
"
        ));
        self.table(page, &[], ratio(|profile| profile.wait));
        page.put(format_args!(
            "
| the thesis | 1 router | 2 | 4 | 8 |
|---|---:|---:|---:|---:|
| behind Open vSwitch, default | 14.76 | 18.80 | 30.20 | 74.36 |

I/O multiplexing reduces it by 40 to 60 % there."
        ));
    }
}
