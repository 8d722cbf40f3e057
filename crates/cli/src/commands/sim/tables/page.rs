//! The page about Ironside's evaluation: method, tables, figures, and what was reached.

use std::fmt::Write as _;
use std::path::Path;

use bench::plot::{Curves, Look, Scale};
use sim::experiments::{CHAINS, Cell, FIGURES, LINKS, SLOS, rack};
use sim::{LOOSE, Report, Row, SERVICES, TABLES, Table, published};

use super::{Ran, goals};
use crate::failure::Failure;
use crate::outputs;

/// The page and its plots, by file.
pub(super) struct Page {
    pub(super) text: String,
    plots: Vec<(String, String)>,
}

/// Microseconds; a dash where it is infinite.
pub(super) fn us(time: Option<u64>) -> String {
    time.map_or("–".into(), |time| number(time as f64 / 1e3))
}

/// A number with as many places as it is worth.
pub(super) fn number(of: f64) -> String {
    match of {
        of if of >= 1000.0 => format!("{of:.0}"),
        of => format!("{of:.1}"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A series of a plot: its name, how it looks, and its points.
type Series = (String, Look, Vec<(f64, f64)>);

/// How series of a plot look.
const LOOKS: [Look; 4] =
    [Look::Synthesised(2), Look::Elements(1), Look::Reference(0), Look::Elements(2)];

impl Page {
    /// One that begins with some text.
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into(), plots: Vec::new() }
    }

    /// That of what was run.
    pub(super) fn of(ran: &Ran) -> Self {
        let mut page = Self::new(BEGINNING);
        page.method(ran);
        goals::put(&mut page, ran);
        page.superbursts(ran);
        TABLES.iter().for_each(|table| page.table(ran, table));
        page.loose(ran);
        for figure in FIGURES {
            page.figure(ran, figure);
        }
        page.text.push_str(END);
        page
    }

    /// Writes it into a folder.
    pub(super) fn write(&self, folder: &Path, name: &str) -> Result<(), Failure> {
        outputs::write(&folder.join(name), &self.text)?;
        for (name, svg) in &self.plots {
            outputs::write(&folder.join(name), svg)?;
        }
        Ok(())
    }

    /// Appends a line.
    pub(super) fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Appends a row of a table.
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.put(&format!("| {} |", cells.join(" | ")));
    }

    /// Appends a table's head: so many columns are text, the others are numbers.
    pub(super) fn head<const N: usize>(&mut self, text: usize, columns: [&str; N]) {
        self.put(&format!("\n| {} |", columns.join(" | ")));
        self.put(&format!("|{}{}", "---|".repeat(text), "---:|".repeat(N - text)));
    }

    fn method(&mut self, ran: &Ran) {
        let rack = rack();
        let window = ran.window;
        let seconds = |time: u64| time as f64 / 1e9;
        let mut text = format!(
            "- All runs see the same part of each trace: {} s, of which the first {} s are not measured. Seed 1.\n",
            seconds(window.end),
            seconds(window.warmup),
        );
        let _ = writeln!(
            text,
            "- The rack is Ironside's: {} servers of {} cores at {} GHz. Receive queues hold {} packets.",
            rack.servers.len(),
            rack.servers[0],
            rack.core.hertz as f64 / 1e9,
            rack.ring
        );
        for (trace, found) in &ran.superbursts {
            let rate = found.packets as f64 / found.time.max(1) as f64 * 1e3;
            let _ = writeln!(
                text,
                "- A link of the {trace} trace has {rate:.2} million packets/s; {LINKS} such links are led to the rack, {:.1} million packets/s.",
                rate * f64::from(LINKS)
            );
        }
        let costs = ran.chains.iter().filter_map(|chain| {
            let time = rack.core.time(chain.all(988)) as f64 / 1e3;
            let cores = ran.report(&Cell::of(&chain.name, "backbone", "metron", 0))?.cores;
            let name = &chain.name;
            Some(format!(
                "{name} takes {time:.2} µs for a packet of 988 bytes, and Metron uses {cores:.1} cores"
            ))
        });
        let costs: Vec<String> = costs.collect();
        let _ = writeln!(
            text,
            "- Costs are fitted until Metron uses as many cores on the backbone trace as printed: {}.",
            costs.join("; ")
        );
        text.push_str(METHOD);
        self.text.push_str(&text);
    }

    fn superbursts(&mut self, ran: &Ran) {
        self.put("\n## Superbursts (tables 4.1 and 4.2)\n");
        self.put("p99 in µs over 2 s of each trace: whales with a core for each flow; minnows hashed to as few cores as have a median below ten services.");
        self.head(2, ["trace", "effect", "service", "cores", "p99", "theirs", "ours/theirs"]);
        for (trace, found) in &ran.superbursts {
            let Some(published) = published(trace) else { continue };
            for (at, (ours, theirs)) in found.all().into_iter().zip(published).enumerate() {
                let (effect, cores) = match at / 3 {
                    0 => ("whales", "one a flow".to_string()),
                    _ => ("minnows", found.cores[at % 3].to_string()),
                };
                let service = (SERVICES[at % 3] / 1000).to_string();
                let ratio = format!("{:.2}", ours / theirs);
                self.row([
                    (*trace).into(),
                    effect.into(),
                    service,
                    cores,
                    number(ours),
                    number(theirs),
                    ratio,
                ]);
            }
        }
    }

    fn table(&mut self, ran: &Ran, table: &Table) {
        let Table { number: n, chain, trace, rows } = table;
        self.put(&format!("\n## Table {n}: {chain} on the {trace} trace\n"));
        self.put("Times in µs; *theirs* is what the thesis prints. Cores are dedicated and lent together.");
        self.head(
            1,
            [
                "policy",
                "SLO",
                "p50",
                "theirs",
                "p99",
                "theirs",
                "p99 with losses",
                "cores",
                "theirs",
                "lent",
                "idle",
                "loss %",
                "theirs",
            ],
        );
        let ours = SLOS.map(|slo| (Cell::of(chain, trace, "ours", slo), None));
        let all = rows.iter().map(|row| (goals::cell(table, row), Some(row)));
        let (ironside, rest): (Vec<_>, Vec<_>) =
            all.partition(|(cell, _)| cell.policy == "ironside");
        for (cell, row) in ours.into_iter().chain(ironside).chain(rest) {
            let Some(of) = ran.report(&cell) else { continue };
            self.cell(&cell, of, row);
        }
    }

    fn cell(&mut self, cell: &Cell, of: &Report, row: Option<&Row>) {
        let theirs = |value: fn(&Row) -> f64| row.map_or("–".into(), |row| number(value(row)));
        let slo =
            if cell.policy == "metron" { "–".into() } else { (cell.slo / 1000).to_string() };
        self.row([
            cell.policy.clone(),
            slo,
            us(of.latency.p50),
            theirs(|row| row.p50),
            us(of.latency.p99),
            theirs(|row| row.p99),
            us(of.with_losses.p99),
            number(of.cores),
            theirs(|row| row.cores),
            number(of.lent),
            number(of.idle),
            percent(of.loss()),
            theirs(|row| row.loss * 100.0),
        ]);
    }

    fn loose(&mut self, ran: &Ran) {
        self.put("\n## Table 4.7: loose SLOs on the backbone trace\n");
        self.put("Ironside with the SLO that Metron reaches in the thesis.");
        self.head(
            2,
            ["chain", "policy", "SLO", "p50", "theirs", "p99", "theirs", "cores", "theirs"],
        );
        for (chain, slo, [p50, p99, cores]) in LOOSE {
            let metron = TABLES.iter().find(|of| of.chain == chain && of.trace == "backbone");
            let row = metron.and_then(|of| of.rows.iter().find(|row| row.policy == "metron"));
            let metron = row.map(|row| ("metron", 0, [row.p50, row.p99, row.cores]));
            for (policy, slo, theirs) in
                metron.into_iter().chain([("ironside", slo, [p50, p99, cores])])
            {
                let cell = Cell::of(chain, "backbone", policy, slo * 1000);
                let Some(of) = ran.report(&cell) else { continue };
                let slo = if slo == 0 { "–".into() } else { slo.to_string() };
                self.row([
                    chain.into(),
                    policy.into(),
                    slo,
                    us(of.latency.p50),
                    number(theirs[0]),
                    us(of.latency.p99),
                    number(theirs[1]),
                    number(of.cores),
                    number(theirs[2]),
                ]);
            }
        }
    }

    fn figure(&mut self, ran: &Ran, (figure, what, policies): (&str, &str, &[&str])) {
        self.put(&format!("\n## Figure {figure}: {what}, on the backbone trace\n"));
        self.put("p99 in µs / cores. The thesis prints curves without numbers.");
        for chain in CHAINS {
            self.head(2, ["chain", "policy", "100 µs", "200 µs", "300 µs", "400 µs", "500 µs"]);
            let (mut latencies, mut cores) = (Vec::new(), Vec::new());
            for (policy, look) in policies.iter().zip(LOOKS) {
                let of = SLOS.map(|slo| ran.report(&Cell::of(chain, "backbone", policy, slo)));
                let cell = |of: Option<&Report>| {
                    of.map_or("–".into(), |of| {
                        format!("{} / {}", us(of.latency.p99), number(of.cores))
                    })
                };
                let [a, b, c, d, e] = of.map(cell);
                self.row([chain.into(), (*policy).into(), a, b, c, d, e]);
                let points = |value: fn(&Report) -> Option<f64>| {
                    let all = SLOS.iter().zip(of);
                    all.filter_map(|(slo, of)| Some((*slo as f64 / 1e3, value(of?)?)))
                        .collect::<Vec<_>>()
                };
                let p99 = points(|of| of.latency.p99.map(|time| time as f64 / 1e3));
                latencies.push(((*policy).to_string(), look, p99));
                cores.push(((*policy).to_string(), look, points(|of| Some(of.cores))));
            }
            let across = || Scale::linear("SLO [us]", SLOS.iter().map(|slo| *slo as f64 / 1e3));
            let name = figure.replace('.', "-");
            let title = format!("Figure {figure}: {chain}");
            self.plot(
                &format!("ironside-{name}-{chain}-p99.svg"),
                &title,
                ("p99 [us]", true),
                across(),
                latencies,
            );
            // The thesis has no cores of figure 4.8.
            if figure != "4.8" {
                self.plot(
                    &format!("ironside-{name}-{chain}-cores.svg"),
                    &title,
                    ("cores", false),
                    across(),
                    cores,
                );
            }
        }
    }

    /// Appends a plot, which is drawn over what goes across.
    pub(super) fn plot(
        &mut self,
        file: &str,
        title: &str,
        (label, is_log): (&str, bool),
        across: Scale,
        series: Vec<Series>,
    ) {
        let values = || series.iter().flat_map(|(.., points)| points.iter().map(|point| point.1));
        let up = if is_log { Scale::log(label, values()) } else { Scale::linear(label, values()) };
        let svg = Curves { title: title.into(), across, up, series }.draw();
        self.put(&format!("\n![{title}, {label}]({file})"));
        self.plots.push((file.into(), svg));
    }
}

const BEGINNING: &str = "\
# Ironside's evaluation, simulated

Ironside (chapter 4 of Jianfeng Wang's doctoral thesis) scales chains of network functions on a rack so that the 99th percentile of latency stays below a
millisecond. These are the tables and figures of its evaluation, as [`catena sim`](howto-sim.md) simulates them, with what the thesis prints beside. Written by a
program; to repeat it:

```sh
cargo xtask figures ironside
```

## Method

";

const METHOD: &str = "\
- The traces of the thesis cannot be had. Generated ones have its arrivals of flows, sizes of packets, longest flows and longest durations. What it does not print
  was searched for until tables 4.1 and 4.2 came out (`catena sim fit backbone --tries 200`). Then they were left alone.
- The thesis prints no packet rates. A single link cannot have been all: with half a million packets/s, Metron's printed cores would mean 17 µs for a packet of
  chain 1, and a batch of 32 would outlast every SLO. With 16 links, a packet costs what figure 4.3 shows (160 packets in 200 µs), and a full receive queue of
  2,048 packets takes about the 99th percentiles that are printed of Metron and Quadrant. The links' flows add up; crowds of new flows come on all links at
  once.
- What a flow costs is not fitted: 2,000 cycles for its first packet, and 2,100 for each after 100 µs without one.
- What is not named here as fitted was not fitted. Some was chosen with results in sight: the number of links, after Metron had been run with other numbers, and then a few
  cells of the other policies with 16; that policies start with the cores that the trace takes with what flows cost; that the fit takes the factor nearest to 1, after a search had
  found 1.25, with which Metron has the printed cores, too; and the quarter of an epoch of `ours`, after batches had been seen to break 100 µs on chain 2. Which flows
  Quadrant moves, and how new ones get room, was mended several times, the last time after all cells had been run: until then 3 of 44, not 5, were within a factor of
  two. Costs, traces and seeds were left alone after the fit, and so were the other policies.
- `ironside` is as published. `ours` lends state by pointer, so that a burst costs no cold tables, fills auxiliary cores first fit, and ends a batch after a quarter
  of an epoch.
- Cores are those of the part that is measured. Metron moves no core more than once in 3 s and decides every 500 ms; the server mapper decides every second: a
  longer part may settle elsewhere. `--full` shows it.
- A second percentile counts lost packets as infinite: – where more than 1 % were lost.
";

/// The last part: what differs from the thesis, and why.
const END: &str = "
## What differs, and which unknown decides it

- *Cores of Ironside.* The thesis prints more for Ironside than for Metron, here it is the other order: flows last for milliseconds, each core has many, and the
  server mapper's table lets it fill cores to 90 %. The spread of load over seconds, which the thesis does not print and the generated traces do not have,
  decides how many cores must be kept.
- *Losses.* Only Dyssect on the `as` trace loses packets (7 and 9 %), where the thesis prints 0.2 to 29 % of all: no core is overloaded here for as long as in its
  traces.
- *Metron* comes within a factor of 2.2 on the backbone, and has more cores than printed on the other trace: it splits at the first loss, and the part that is
  measured is too short to merge again.
- *Quadrant* has about the printed cores on the backbone, and the printed latency where half of the SLO is shorter than a batch. With looser SLOs its estimate, two
  batches, never comes near the SLO, and new flows keep finding cores with room. The thesis sees full queues at any SLO.
- *Dyssect* has 2 to 6 ms where the thesis prints 12 to 87 ms. Its locks in the data plane, and what its offloading cores do, are not simulated.
- *Boost mode* (figure 4.8) does not matter here: a backlog that lasts over many epochs is lent epoch by epoch, too.
";

#[cfg(test)]
mod tests {
    use sim::experiments::Window;
    use sim::{Chain, Latencies, Superbursts};

    use super::*;

    /// A page of runs whose latencies are a share of what is sought.
    fn page(share: f64) -> Page {
        let cells = Cell::all().into_iter().map(|cell| {
            let p99 = Some((cell.slo as f64 * share) as u64);
            let latency = Latencies { p99, ..Latencies::default() };
            let report = Report { slo: cell.slo, latency, packets: 1, ..Report::default() };
            (cell, report)
        });
        let cells = cells.collect();
        let chains = CHAINS.into_iter().filter_map(Chain::named).collect();
        let superbursts = vec![("backbone", Superbursts::default())];
        Page::of(&Ran { window: Window::SHORT, chains, superbursts, cells })
    }

    #[test]
    fn goals_are_met_or_missed_by_what_came_out() {
        let (below, above) = (page(0.5).text, page(1.5).text);
        let goal = "| `ours`: p99 within the SLO in all cells (theirs: 19 of 20) |";
        assert!(below.contains(&format!("{goal} met | 20 of 20 |")), "{below}");
        assert!(above.contains(&format!("{goal} missed | 0 of 20 |")), "{above}");
        let row = "| ironside | 100 | – | 28.8 | 50.0 | 89.4 |";
        assert!(below.contains(row), "{below}");
    }

    #[test]
    fn each_plot_is_in_the_page() {
        let page = page(1.0);
        assert_eq!(page.plots.len(), 2 * (2 + 2 + 1));
        for (file, svg) in &page.plots {
            assert!(page.text.contains(&format!("]({file})")) && svg.starts_with("<svg"), "{file}");
        }
    }
}
