//! A single router: figure 6.4 and table 6.4 by how frames reach it, figure 6.10 and table 6.7 by frames in a system call.

use bench::plot::Look;
use bench::profile::system::Policy;

use crate::cells::{Cell, PROFILE, boxes, explain_empty, profile};
use crate::machine;
use crate::paper::{Page, thousands};
use crate::testbed::{Between, How, Load, Row, Testbed};

/// Frames per second.
const RATE: f64 = 100_000.0;
/// Seconds of a load.
const SECONDS: f64 = 0.5;
/// Bytes of a frame, without frame check sequence.
const SIZE: u16 = 64;
/// While the router is watched: more than it takes, so that it never polls in vain.
const WATCHED: Load = Load { rate: 400_000.0, size: SIZE, seconds: 0.25 };

/// How frames reach the router.
struct Environment {
    name: &'static str,
    /// What the thesis has in its place: its name, latency in µs and references.
    thesis: [&'static str; 3],
    /// The I/O mode; the kernel forwards if there is none.
    io: Option<&'static str>,
    between: Between,
    look: Look,
}

const ENVIRONMENTS: [Environment; 5] = [
    Environment {
        name: "process behind bridges",
        thesis: ["User + OVSK", "259.14", "3836/182/70/3557"],
        io: Some("af-packet"),
        between: Between::Bridges,
        look: Look::Elements(0),
    },
    Environment {
        name: "process",
        thesis: ["User", "216.97", "3653/179/65/2964"],
        io: Some("af-packet"),
        between: Between::Links,
        look: Look::Elements(1),
    },
    Environment {
        name: "process, multiplexed I/O",
        thesis: ["–", "", ""],
        io: Some("af-packet-mmsg"),
        between: Between::Links,
        look: Look::Synthesised(0),
    },
    Environment {
        name: "kernel",
        thesis: ["Kernel", "25.45", "581/23/14/340"],
        io: None,
        between: Between::Links,
        look: Look::Reference(0),
    },
    Environment {
        name: "process, AF_XDP",
        thesis: ["DPDK", "8.01", "3250/95/163/7"],
        io: Some("af-xdp"),
        between: Between::Links,
        look: Look::Synthesised(1),
    },
];

/// How a router runs that has its CPU alone.
fn alone(io: &str) -> How {
    How { io: io.into(), poll: "adaptive", policy: Policy::Other }
}

/// The router in each environment.
pub(crate) struct Environments(Vec<Cell>);

impl Environments {
    pub(crate) fn measure(testbed: &Testbed, rounds: usize) -> Option<Self> {
        let rows = ENVIRONMENTS.map(|environment| {
            let row = Row::new(1, environment.between);
            if environment.io.is_none() {
                row.forward();
            }
            row
        });
        let load = Load { rate: RATE, size: SIZE, seconds: SECONDS };
        let mut cells: Vec<Cell> = ENVIRONMENTS.iter().map(|_| Cell::default()).collect();
        for _ in 0..rounds {
            for ((environment, row), cell) in ENVIRONMENTS.iter().zip(&rows).zip(&mut cells) {
                let processes =
                    environment.io.map_or(Vec::new(), |io| row.start(testbed, &alone(io)));
                cell.0.push(row.measure(testbed, load, (&processes, WATCHED))?);
            }
        }
        Some(Self(cells))
    }

    pub(crate) fn show(&self, page: &mut Page, machine: &machine::Figures) {
        let title = "Figure 6.4: latency of a router by how frames reach it";
        page.put(format_args!(
            "
## {title}

One router, {SIZE}-byte frames, {} frames per second, {SECONDS} s in each round. The thesis offers 820,000 per second. Boxes show
percentiles 1, 25, 50, 75 and 99.

- *Process*: `catena run --io af-packet`, one frame in a system call. *Multiplexed I/O*: `--io af-packet-mmsg`, as many as there are.
- *Behind bridges*: two bridges of the kernel's stand in the place of Open vSwitch's kernel datapath, which this kernel does not have.
- *Kernel*: Linux forwards by its routing table.
- *AF_XDP*: `--io af-xdp` stands in the place of a DPDK driver. On veth it has copy mode only: frames are copied, and the kernel still
  runs veth's code.",
            thousands(RATE as u64)
        ));
        let series = ENVIRONMENTS.iter().zip(&self.0);
        let series = series.map(|(e, cell)| (e.name.to_string(), e.look, vec![cell])).collect();
        let groups = vec![format!("{SIZE}-byte frames")];
        page.plot("scc-6-4.svg", title, boxes(title, "", groups, series));
        page.head(&[
            "router",
            "1st percentile, µs",
            "median, µs",
            "99th percentile, µs",
            "lost, %",
            "in the thesis",
        ]);
        for (environment, cell) in ENVIRONMENTS.iter().zip(&self.0) {
            page.row([
                environment.name.into(),
                cell.percentile(0).to_string(),
                cell.median().to_string(),
                cell.percentile(4).to_string(),
                lost(cell),
                environment.thesis[0].into(),
            ]);
        }
        page.put(format_args!(
            "
The thesis: DPDK's median is almost 8 times below the kernel's (61.34 µs), a process's 4 times above it, and Open vSwitch adds about
10 % to that.

## Table 6.4: what a packet takes, by how frames reach the router

The router is offered more than it takes ({} frames per second), so that it never polls in vain, and is watched. RunTime
and context switches are the kernel's figures of the worker's thread; system calls are counted at a tracepoint, which makes
each of them slower. All figures are divided by the frames that came out. The formula is that of §6.2.1.3 with the costs of
table 6.2 and figure 6.3; a system call takes what one of network I/O does. The kernel's forwarding is no process that could
be watched. The thesis's latency is by its formula.
",
            thousands(WATCHED.rate as u64)
        ));
        page.head(&[&["router"], &PROFILE[..], &["thesis, µs", "thesis, references"]].concat());
        let costs = machine.costs(Policy::Other);
        for (environment, cell) in ENVIRONMENTS.iter().zip(&self.0) {
            let [_, latency, references] = environment.thesis.map(String::from);
            let mut cells = vec![environment.name.to_string()];
            cells.extend(profile(cell, &costs));
            cells.extend([latency, references]);
            page.row(cells);
        }
        explain_empty(page, &self.0);
    }
}

/// Frames in a system call: powers of two, as the thesis has them.
const BATCHES: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Frame sizes.
const SIZES: [u16; 4] = [64, 128, 256, 1500];
/// Frames per second: more than a router with one frame in a system call takes.
const HIGH_RATE: f64 = 250_000.0;
/// Table 6.7 of the thesis: µs and references of a packet.
const TABLE_6_7: [(&str, &str); 9] = [
    ("216.97", "3653/179/65/2964"),
    ("126.94", "2048/138/49/1731"),
    ("117.47", "1872/125/46/1603"),
    ("101.05", "1601/115/42/1378"),
    ("95.23", "1503/119/41/1298"),
    ("84.20", "1315/110/38/1148"),
    ("85.88", "1331/113/40/1170"),
    ("94.31", "1471/145/46/1284"),
    ("155.0", "2564/252/81/2109"),
];

/// The router by frames in a system call: a row for each size, a cell for each batch.
pub(crate) struct Batches(Vec<Vec<Cell>>);

impl Batches {
    pub(crate) fn measure(testbed: &Testbed, rounds: usize) -> Option<Self> {
        let row = Row::new(1, Between::Links);
        let mut all: Vec<Vec<Cell>> =
            SIZES.iter().map(|_| BATCHES.iter().map(|_| Cell::default()).collect()).collect();
        for _ in 0..rounds {
            for (index, batch) in BATCHES.iter().enumerate() {
                let processes =
                    row.start(testbed, &alone(&format!("af-packet-mmsg,batch={batch}")));
                for (size, cells) in SIZES.into_iter().zip(&mut all) {
                    let load = Load { rate: HIGH_RATE, size, seconds: SECONDS / 2.0 };
                    let watched = if size == SIZE { &processes[..] } else { &[] };
                    cells[index].0.push(row.measure(testbed, load, (watched, WATCHED))?);
                }
            }
        }
        Some(Self(all))
    }

    pub(crate) fn show(&self, page: &mut Page, machine: &machine::Figures) {
        let title = "Figure 6.10: latency of a router by frames in a system call";
        page.put(format_args!(
            "
## {title}

The same router; a system call receives, or sends, up to so many frames (`recvmmsg`, `sendmmsg`). {} frames per second, {} s in each
round. The thesis offers 820,000 per second.",
            thousands(HIGH_RATE as u64),
            SECONDS / 2.0
        ));
        let looks = [Look::Elements(0), Look::Elements(1), Look::Elements(2), Look::Synthesised(1)];
        let series = SIZES.iter().zip(looks).zip(&self.0);
        let series = series.map(|((size, look), cells)| {
            (format!("{size}-byte frames"), look, cells.iter().collect())
        });
        let groups = BATCHES.map(|batch| batch.to_string()).to_vec();
        let across = "frames in a system call";
        page.plot("scc-6-10.svg", title, boxes(title, across, groups, series.collect()));
        page.put(format_args!(
            "Median latency in µs, and the share of packets that were lost in the worst round, where any were:\n"
        ));
        let names = SIZES.map(|size| format!("{size} bytes"));
        page.head(&[&["frames".to_string()], &names[..]].concat());
        for (index, batch) in BATCHES.iter().enumerate() {
            let cells = self.0.iter().map(|cells| {
                let lost = match cells[index].lost() {
                    lost if lost > 0.0 => format!(", {lost:.1} % lost"),
                    _ => String::new(),
                };
                format!("{}{lost}", cells[index].median())
            });
            page.row(std::iter::once(batch.to_string()).chain(cells));
        }
        page.put(format_args!("\n99th less 1st percentile in µs:\n"));
        page.head(&[&["frames".to_string()], &names[..]].concat());
        for (index, batch) in BATCHES.iter().enumerate() {
            let cells = self.0.iter().map(|cells| cells[index].jitter().to_string());
            page.row(std::iter::once(batch.to_string()).chain(cells));
        }
        page.put(format_args!(
            "
The thesis: medians are 80 to 115 µs with 2 to 32 frames in a system call, and 270 to 310 µs with one; 256 frames are slower than one.
Jitter falls from 400–600 µs with one frame to about 300 µs with two.

## Table 6.7: what a packet takes, by frames in a system call

{SIZE}-byte frames, watched and computed as for table 6.4.
"
        ));
        page.head(&[&["frames"], &PROFILE[..], &["thesis, µs", "thesis, references"]].concat());
        let costs = machine.costs(Policy::Other);
        for ((batch, cell), (latency, references)) in BATCHES.iter().zip(&self.0[0]).zip(TABLE_6_7)
        {
            let mut cells = vec![batch.to_string()];
            cells.extend(profile(cell, &costs));
            cells.extend([latency.to_string(), references.to_string()]);
            page.row(cells);
        }
        explain_empty(page, &self.0[0]);
    }
}

/// The greatest share of lost packets.
pub(crate) fn lost(cell: &Cell) -> String {
    let slower = if cell.is_slower() { ", sender too slow" } else { "" };
    format!("{:.2}{slower}", cell.lost())
}
