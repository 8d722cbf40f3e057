//! What netbench measured: samples of cells, tables, and CSV.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use host::fabric::Fabric;
use serde::{Deserialize, Serialize};
use view::table::{Table, grouped};

use super::application::Outcome;
use super::hosts::HostOf;
use super::{Cell, Container, Request};
use crate::machine::Environment;
use crate::report::Percentiles;
use crate::statistics::{Spread, latencies};

/// The version of the format.
pub const VERSION: u32 = 3;

/// What was measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// Of this format.
    pub version: u32,
    /// The machine.
    pub machine: Environment,
    /// The seed of the order.
    pub seed: u64,
    /// How often each cell was to be run.
    pub repeat: usize,
    /// The containers that were asked for, if some were.
    pub containers: Vec<Container>,
    /// Two hosts, if it was measured between these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostOf>,
    /// Settings of the host that were changed while it was measured, and those that could not be.
    pub settings: Vec<String>,
    /// Whether it ended before all was measured.
    pub interrupted: bool,
    /// What a reader must know.
    pub remarks: Vec<String>,
    /// The cells.
    pub cells: Vec<CellResult>,
}

/// What was measured of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellResult {
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
    /// The version of the switch.
    pub version: String,
    /// Whether the switch has processes, whose CPU time is known.
    pub has_processes: bool,
    /// What was measured, a run each.
    pub samples: Vec<Sample>,
    /// Why runs failed.
    pub failures: Vec<String>,
}

/// What was measured in a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds until the switch ran and all namespaces were connected.
    pub start_seconds: f64,
    /// Seconds that each application's container took, until the application had its interface open.
    #[serde(default)]
    pub container_seconds: Vec<f64>,
    /// Throughput, if it was measured.
    pub throughput: Option<Throughput>,
    /// Round trips, if they were measured.
    pub round_trips: Option<RoundTrips>,
}

/// Packets of senders that came to receivers, of all pairs together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Throughput {
    /// Packets that senders tried to send.
    pub attempted: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that came, each once.
    pub received: u64,
    /// Packets that were sent and did not come.
    pub lost: u64,
    /// Of these, packets that sockets of receivers lost.
    pub overrun: u64,
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets that came after one that was sent later.
    pub reordered: u64,
    /// Packets per second that senders tried to send.
    pub attempted_rate: f64,
    /// Packets per second that were sent.
    pub sent_rate: f64,
    /// Packets per second that came.
    pub received_rate: f64,
    /// Packets per second that came, by pair.
    pub pairs: Vec<f64>,
    /// Packets that the kernel counted on interfaces of senders, or the switch at their sockets; nothing if it is not known.
    pub counted_sent: Option<u64>,
    /// Packets that the kernel counted on interfaces of receivers; nothing if they go past it.
    pub counted_received: Option<u64>,
    /// Processor time of senders for a packet that was sent, in nanoseconds: with the kernel's, also for a switch in it.
    pub sender_ns: f64,
    /// Processor time of receivers for a packet that came, in nanoseconds.
    pub receiver_ns: f64,
    /// Processor time of the switch's processes for a packet that was sent, in nanoseconds.
    pub switch_ns: Option<f64>,
}

/// Packets of clients that came back from servers, of all pairs together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that came back, each once.
    pub received: u64,
    /// Packets that did not.
    pub lost: u64,
    /// Packets that came back again.
    pub duplicates: u64,
    /// Packets that came back after one that was sent later.
    pub reordered: u64,
    /// From when packets were due until they were back, in nanoseconds.
    pub latency: Option<Percentiles>,
    /// The same, each time with how many packets took it.
    pub distribution: Vec<(u64, u64)>,
    /// Processor time of clients for a packet, in nanoseconds.
    pub client_ns: f64,
    /// Processor time of servers for a packet, in nanoseconds.
    pub server_ns: f64,
    /// Processor time of the switch's processes for a packet, in nanoseconds.
    pub switch_ns: Option<f64>,
}

/// A dimension's name, and how a cell has it.
pub(super) type Named = (&'static str, fn(&Cell) -> String);

/// Seconds for so many packets, in nanoseconds for one.
fn each(seconds: f64, packets: u64) -> f64 {
    seconds * 1e9 / packets.max(1) as f64
}

/// A rate; none of nothing.
fn per_second(packets: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { packets as f64 / seconds } else { 0.0 }
}

/// What the kernel counted on the interfaces of a pair, or the switch at its sockets: of who sends, and of who receives; nothing if
/// it is not known.
pub(super) type Counted = Option<[u64; 2]>;

impl Throughput {
    pub(super) fn of(outcomes: &[[Outcome; 2]], counted: &[Counted], switch: Option<f64>) -> Self {
        let sum = |of: fn(&[Outcome; 2]) -> u64| -> u64 { outcomes.iter().map(of).sum() };
        let time = |of: fn(&[Outcome; 2]) -> f64| -> f64 { outcomes.iter().map(of).sum() };
        // Packets that wait in sockets may come after the last was sent.
        let came = |[sender, receiver]: &[Outcome; 2]| {
            per_second(receiver.received, receiver.seconds.max(sender.seconds))
        };
        let pairs: Vec<f64> = outcomes.iter().map(came).collect();
        let (sent, received) = (sum(|[s, _]| s.sent), sum(|[_, r]| r.received));
        Self {
            attempted: sum(|[s, _]| s.attempted),
            sent,
            received,
            lost: sum(|[s, r]| s.sent.saturating_sub(r.received)),
            overrun: sum(|[_, r]| r.overrun),
            duplicates: sum(|[_, r]| r.duplicates),
            reordered: sum(|[_, r]| r.reordered),
            attempted_rate: time(|[s, _]| per_second(s.attempted, s.seconds)),
            sent_rate: time(|[s, _]| per_second(s.sent, s.seconds)),
            received_rate: pairs.iter().sum(),
            pairs,
            counted_sent: counted.iter().map(|of| of.map(|[sent, _]| sent)).sum(),
            counted_received: counted.iter().map(|of| of.map(|[_, received]| received)).sum(),
            sender_ns: each(time(|[s, _]| s.cpu_seconds), sent),
            receiver_ns: each(time(|[_, r]| r.cpu_seconds), received),
            switch_ns: switch.map(|seconds| each(seconds, sent)),
        }
    }

    /// The share of packets that were lost, in percent.
    pub fn loss(&self) -> f64 {
        100.0 * self.lost as f64 / self.sent.max(1) as f64
    }
}

/// Adds times, each with how many packets took it.
fn add(all: &mut Histogram<u64>, distribution: &[(u64, u64)]) {
    for (value, count) in distribution {
        all.saturating_record_n(*value, *count);
    }
}

impl RoundTrips {
    pub(super) fn of(outcomes: &[[Outcome; 2]], switch: Option<f64>) -> Self {
        let sum = |of: fn(&[Outcome; 2]) -> u64| -> u64 { outcomes.iter().map(of).sum() };
        let time = |of: fn(&[Outcome; 2]) -> f64| -> f64 { outcomes.iter().map(of).sum() };
        let mut all = latencies();
        outcomes.iter().for_each(|[client, _]| add(&mut all, &client.round_trips));
        let recorded = all.iter_recorded();
        let (sent, received) = (sum(|[c, _]| c.sent), sum(|[c, _]| c.received));
        Self {
            sent,
            received,
            lost: sum(|[c, _]| c.sent.saturating_sub(c.received)),
            duplicates: sum(|[c, _]| c.duplicates),
            reordered: sum(|[c, _]| c.reordered),
            latency: Percentiles::of(&all),
            distribution: recorded
                .map(|of| (of.value_iterated_to(), of.count_at_value()))
                .collect(),
            client_ns: each(time(|[c, _]| c.cpu_seconds), sent),
            server_ns: each(time(|[_, s]| s.cpu_seconds), sum(|[_, s]| s.received)),
            switch_ns: switch.map(|seconds| each(seconds, sent)),
        }
    }
}

impl CellResult {
    /// Medians and ranges of what samples have.
    pub fn spread(&self, of: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.samples.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| Spread::of(values))
    }

    /// The same of throughput.
    pub fn of_throughput(&self, of: impl Fn(&Throughput) -> f64) -> Option<Spread> {
        self.spread(|sample| sample.throughput.as_ref().map(&of))
    }

    /// The same of round trips.
    pub fn of_round_trips(&self, of: impl Fn(&RoundTrips) -> f64) -> Option<Spread> {
        self.spread(|sample| sample.round_trips.as_ref().map(&of))
    }

    /// Round trips of all samples together.
    pub fn round_trips(&self) -> Option<Percentiles> {
        let mut all = latencies();
        let trips = self.samples.iter().filter_map(|sample| sample.round_trips.as_ref());
        trips.for_each(|trips| add(&mut all, &trips.distribution));
        Percentiles::of(&all)
    }

    /// Gigabits per second of frames with their frame check sequences.
    pub fn gigabits(&self, rate: f64) -> f64 {
        const FCS: usize = 4;
        rate * 8.0 * (self.cell.size + FCS) as f64 / 1e9
    }
}

impl Results {
    pub(super) fn begin(
        request: &Request,
        machine: Environment,
        switches: &[(Box<dyn Fabric>, String)],
        hosts: &[HostOf],
    ) -> Self {
        let cells =
            request.cells.iter().zip(switches).map(|(cell, (fabric, version))| CellResult {
                cell: cell.clone(),
                version: version.clone(),
                has_processes: fabric.has_processes(),
                samples: Vec::new(),
                failures: Vec::new(),
            });
        Self {
            version: VERSION,
            machine,
            seed: request.seed,
            repeat: request.repeat,
            containers: request.containers.clone(),
            hosts: hosts.to_vec(),
            settings: Vec::new(),
            interrupted: false,
            remarks: Vec::new(),
            cells: cells.collect(),
        }
    }

    /// Takes samples of earlier results for cells that are the same, and what these had of other cells.
    ///
    /// # Errors
    /// If they were measured between other containers or hosts.
    pub(super) fn take_over(&mut self, earlier: Self) -> Result<(), String> {
        if earlier.containers != self.containers {
            let why = "the results that are there were measured between other containers";
            return Err(format!("{why}: choose another folder"));
        }
        let names = |of: &Self| -> Vec<(String, String)> {
            of.hosts.iter().map(|of| (of.name.clone(), of.uplink.clone())).collect()
        };
        if names(&earlier) != names(self) {
            let why = "the results that are there were measured between other hosts, or on one";
            return Err(format!("{why}: choose another folder"));
        }
        for result in earlier.cells {
            let same =
                |own: &&mut CellResult| own.cell == result.cell && own.version == result.version;
            match self.cells.iter_mut().find(same) {
                Some(own) => own.samples = result.samples,
                None => self.cells.push(result),
            }
        }
        Ok(())
    }

    /// Reads results that were written as JSON.
    ///
    /// # Errors
    /// If they are not results, or of another version.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let wrong = |why: serde_json::Error| format!("not results of netbench: {why}");
        let of: Versioned = serde_json::from_str(text).map_err(wrong)?;
        if of.version != VERSION {
            return Err(format!("results of version {}; this program reads {VERSION}", of.version));
        }
        serde_json::from_str(text).map_err(wrong)
    }

    /// A table of what cells have here and in other results. A change stands out where the ranges of runs do not overlap.
    pub fn compared(&self, other: &Self) -> Option<Table> {
        let dimensions = self.dimensions();
        let mut titles = vec!["switch"];
        titles.extend(dimensions.iter().map(|(name, _)| *name));
        titles.extend(["what", "here", "least–greatest", "there", "least–greatest", "ratio", ""]);
        let mut table = Table::titled(&titles);
        type Of = fn(&CellResult) -> Option<Spread>;
        let quantities: [(&str, bool, Of); 3] = [
            ("received/s", true, |of| of.of_throughput(|t| t.received_rate)),
            ("p50 ns", false, |of| {
                of.of_round_trips(|t| t.latency.map_or(f64::NAN, |l| l.p50 as f64))
            }),
            ("p99 ns", false, |of| {
                of.of_round_trips(|t| t.latency.map_or(f64::NAN, |l| l.p99 as f64))
            }),
        ];
        for result in self.sorted() {
            let Some(peer) = other.cells.iter().find(|of| of.cell == result.cell) else { continue };
            for (name, more_is_better, of) in quantities {
                let (Some(here), Some(there)) = (of(result), of(peer)) else { continue };
                let verdict = match (here.least > there.greatest, here.greatest < there.least) {
                    (true, _) if more_is_better => "better",
                    (_, true) if !more_is_better => "better",
                    (false, false) => "",
                    _ => "worse",
                };
                let mut row = vec![result.cell.switch.clone()];
                row.extend(dimensions.iter().map(|(_, of)| of(&result.cell)));
                row.push(name.into());
                for spread in [here, there] {
                    row.push(number(spread.median));
                    row.push(format!("{}–{}", number(spread.least), number(spread.greatest)));
                }
                row.push(format!("{:.3}", here.median / there.median));
                row.push(verdict.into());
                table.cells(row);
            }
        }
        (!table.is_empty()).then_some(table)
    }

    /// What all cells have, if they have the same.
    pub(super) fn common<T: PartialEq>(&self, of: impl Fn(&Cell) -> T) -> Option<T> {
        let mut all = self.cells.iter().map(|result| of(&result.cell));
        let first = all.next()?;
        all.all(|other| other == first).then_some(first)
    }

    /// How often and how long was measured, in words.
    pub(super) fn runs(&self) -> String {
        let plural = if self.repeat == 1 { "" } else { "s" };
        let seconds = self.common(|cell| cell.seconds);
        let seconds = seconds.map_or(String::new(), |seconds| format!(" of {seconds} s"));
        format!("{} run{plural}{seconds}", self.repeat)
    }

    /// Between which hosts it was measured, in words, if there were two.
    fn between(&self) -> String {
        match &self.hosts[..] {
            [first, second] => format!(" from {} to {}", first.name, second.name),
            _ => String::new(),
        }
    }

    /// Cells of which no run went well.
    pub fn failed(&self) -> usize {
        let failed = |of: &&CellResult| of.samples.is_empty() && !of.failures.is_empty();
        self.cells.iter().filter(failed).count()
    }

    /// Names of what differs between cells, and how a cell has it.
    pub(super) fn dimensions(&self) -> Vec<Named> {
        let all: [Named; 14] = [
            ("pairs", |cell| format!("{0}vs{0}", cell.pairs)),
            ("bytes", |cell| cell.size.to_string()),
            ("burst", |cell| cell.burst.to_string()),
            ("RTT burst", |cell| cell.latency_burst.to_string()),
            ("asked/s", |cell| cell.rate.map_or("most".into(), grouped)),
            ("RTT asked/s", |cell| grouped(cell.latency_rate)),
            ("cores", |cell| cell.cores.to_string()),
            ("I/O", |cell| cell.io.clone()),
            ("direction", |cell| format!("{:?}", cell.direction).to_lowercase()),
            ("peer", |cell| format!("{:?}", cell.peer).to_lowercase()),
            ("touch", |cell| if cell.touches { "yes" } else { "no" }.into()),
            ("s", |cell| cell.seconds.to_string()),
            ("warm-up", |cell| cell.warm_up.to_string()),
            ("container", |cell| cell.container.clone()),
        ];
        let differs = |of: fn(&Cell) -> String| {
            let mut cells = self.cells.iter().map(|result| of(&result.cell));
            let first = cells.next();
            cells.any(|other| Some(other) != first)
        };
        all.into_iter().filter(|(name, of)| *name == "bytes" || differs(*of)).collect()
    }

    /// The table of throughput.
    pub fn throughput_table(&self) -> Option<Table> {
        let dimensions = self.dimensions();
        let mut titles = vec!["switch"];
        titles.extend(dimensions.iter().map(|(name, _)| *name));
        titles.extend([
            "attempted/s",
            "sent/s",
            "received/s",
            "least–greatest",
            "Gb/s",
            "lost/s",
            "lost",
        ]);
        titles.extend(["duplicates", "reordered", "send ns", "recv ns", "switch ns"]);
        let mut table = Table::titled(&titles);
        for result in self.sorted() {
            let of = |of: fn(&Throughput) -> f64| result.of_throughput(of);
            let Some(received) = of(|t| t.received_rate) else { continue };
            let text = |of: fn(&Throughput) -> f64| {
                result.of_throughput(of).map_or(String::new(), |of| number(of.median))
            };
            let sum = |of: fn(&Throughput) -> u64| -> String {
                let all = result.samples.iter().filter_map(|sample| sample.throughput.as_ref());
                grouped(all.map(of).sum())
            };
            let mut row = vec![result.cell.switch.clone()];
            row.extend(dimensions.iter().map(|(_, of)| of(&result.cell)));
            row.push(text(|t| t.attempted_rate));
            row.push(text(|t| t.sent_rate));
            row.push(number(received.median));
            row.push(format!("{}–{}", number(received.least), number(received.greatest)));
            row.push(format!("{:.3}", result.gigabits(received.median)));
            row.push(text(|t| t.sent_rate * t.loss() / 100.0));
            row.push(
                of(Throughput::loss).map_or(String::new(), |of| format!("{:.2} %", of.median)),
            );
            row.extend([sum(|t| t.duplicates), sum(|t| t.reordered)]);
            row.extend([text(|t| t.sender_ns), text(|t| t.receiver_ns)]);
            row.push(text_or_kernel(result, text(|t| t.switch_ns.unwrap_or_default())));
            table.cells(row);
        }
        (!table.is_empty()).then_some(table)
    }

    /// The table of round trips.
    pub fn round_trip_table(&self) -> Option<Table> {
        let dimensions = self.dimensions();
        let mut titles = vec!["switch"];
        titles.extend(dimensions.iter().map(|(name, _)| *name));
        titles.extend([
            "p50 µs",
            "least–greatest",
            "p99 µs",
            "p99.99 µs",
            "max µs",
            "packets",
            "lost",
        ]);
        titles.extend(["client ns", "server ns", "switch ns"]);
        let mut table = Table::titled(&titles);
        for result in self.sorted() {
            let Some(all) = result.round_trips() else { continue };
            let micros = |nanoseconds: f64| format!("{:.1}", nanoseconds / 1e3);
            let median = result.of_round_trips(|trips| {
                trips.latency.map_or(f64::NAN, |latency| latency.p50 as f64)
            });
            let text = |of: fn(&RoundTrips) -> f64| {
                result.of_round_trips(of).map_or(String::new(), |of| number(of.median))
            };
            let sum = |of: fn(&RoundTrips) -> u64| -> String {
                let all = result.samples.iter().filter_map(|sample| sample.round_trips.as_ref());
                grouped(all.map(of).sum())
            };
            let mut row = vec![result.cell.switch.clone()];
            row.extend(dimensions.iter().map(|(_, of)| of(&result.cell)));
            row.push(micros(all.p50 as f64));
            row.push(median.map_or(String::new(), |of| {
                format!("{}–{}", micros(of.least), micros(of.greatest))
            }));
            row.extend([all.p99, all.p99_99, all.max].map(|value| micros(value as f64)));
            row.extend([sum(|trips| trips.received), sum(|trips| trips.lost)]);
            row.extend([text(|trips| trips.client_ns), text(|trips| trips.server_ns)]);
            row.push(text_or_kernel(result, text(|trips| trips.switch_ns.unwrap_or_default())));
            table.cells(row);
        }
        (!table.is_empty()).then_some(table)
    }

    /// The table of how long it took until there were switches and containers.
    pub fn start_table(&self) -> Option<Table> {
        let titles = [
            "switch",
            "container",
            "pairs",
            "network ms",
            "least–greatest",
            "container ms",
            "least–greatest",
        ];
        let mut table = Table::titled(&titles);
        let mut kinds: Vec<(&str, &str, usize)> = Vec::new();
        for result in self.sorted() {
            let kind = (&*result.cell.switch, &*result.cell.container, result.cell.pairs);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        for kind in kinds {
            let is_it =
                |of: &&CellResult| (&*of.cell.switch, &*of.cell.container, of.cell.pairs) == kind;
            let samples = || self.cells.iter().filter(is_it).flat_map(|of| &of.samples);
            let networks: Vec<f64> = samples().map(|of| of.start_seconds).collect();
            let containers: Vec<f64> =
                samples().flat_map(|of| &of.container_seconds).copied().collect();
            if networks.is_empty() || containers.is_empty() {
                continue;
            }
            let (switch, container, pairs) = kind;
            let mut row = vec![switch.to_string(), container.into(), format!("{pairs}vs{pairs}")];
            for spread in [networks, containers].map(Spread::of) {
                let millis = |seconds: f64| format!("{:.1}", seconds * 1e3);
                row.push(millis(spread.median));
                row.push(format!("{}–{}", millis(spread.least), millis(spread.greatest)));
            }
            table.cells(row);
        }
        (!table.is_empty()).then_some(table)
    }

    /// The table of Ara's statements.
    pub fn statements_table(&self) -> Table {
        let mut table = Table::new(["statement", "here", "figures"]);
        for of in self.statements() {
            let holds = of
                .holds
                .map_or("not measured", |holds| if holds { "holds" } else { "does not hold" });
            table.row([of.text.into(), holds.into(), of.evidence]);
        }
        table
    }

    /// Cells in the order in which they were asked for, those of one set of parameters together.
    fn sorted(&self) -> Vec<&CellResult> {
        let mut all: Vec<&CellResult> = self.cells.iter().collect();
        all.sort_by_key(|result| {
            let Cell { pairs, size, burst, latency_burst, rate, cores, .. } = &result.cell;
            (*pairs, *size, *burst, *latency_burst, *rate, *cores)
        });
        all
    }

    /// What failed, a line each.
    pub fn failures(&self) -> Vec<String> {
        let of = |result: &CellResult| {
            let Cell { switch, pairs, size, burst, .. } = &result.cell;
            let name = format!("{switch}, {pairs}vs{pairs}, {size} bytes, bursts of {burst}");
            let runs = self.repeat;
            let failed = move |why: &String| format!("{name}: a run of {runs} failed: {why}");
            result.failures.iter().map(failed).collect::<Vec<_>>()
        };
        self.cells.iter().flat_map(of).collect()
    }

    /// As people read it.
    pub fn render(&self) -> String {
        let mut out = String::new();
        if let Some(table) = self.throughput_table() {
            let _ = writeln!(out, "Throughput{}: medians of {}\n", self.between(), self.runs());
            out += &table.render();
        }
        if let Some(table) = self.round_trip_table() {
            let rate = self.common(|cell| cell.latency_rate).map(grouped);
            let rate = rate.map_or(String::new(), |rate| format!(", at {rate} packets/s a pair"));
            let _ =
                writeln!(out, "\nRound trips{}{rate}, since packets were due\n", self.between());
            out += &table.render();
        }
        if let Some(table) = self.start_table() {
            let _ = writeln!(
                out,
                "\nStart: of a switch with its namespaces, and of an application's container\n"
            );
            out += &table.render();
        }
        for advice in self.recommendations() {
            let _ = writeln!(out, "\n{advice}");
        }
        if !out.is_empty() {
            let _ = writeln!(
                out,
                "\n'ns' is CPU time for a packet; that of a switch in the kernel is with the applications"
            );
        }
        for why in self.failures() {
            let _ = writeln!(out, "! {why}");
        }
        if self.interrupted {
            let _ = writeln!(out, "! interrupted: this is what was measured until then");
        }
        out
    }

    /// A line for each sample, with its cell.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "switch,version,pairs,size,burst,latency_burst,rate,latency_rate,cores,io,direction,peer,touches,seconds,warm_up,\
             container,sample,start_seconds,container_seconds,attempted_rate,sent_rate,received_rate,sent,received,lost,overrun,duplicates,\
             reordered,sender_ns,receiver_ns,switch_ns,trips,trips_lost,p50_ns,p99_ns,p99_99_ns,max_ns,client_ns,\
             server_ns,latency_switch_ns\n",
        );
        for result in &self.cells {
            let Cell { pairs, size, burst, latency_burst, latency_rate, cores, .. } = &result.cell;
            let Cell { switch, rate, io, direction, peer, touches, seconds, warm_up, .. } =
                &result.cell;
            let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            let rate = rate.map_or(String::new(), |rate| rate.to_string());
            let direction = format!("{direction:?},{peer:?}").to_lowercase();
            for (number, sample) in result.samples.iter().enumerate() {
                let _ = write!(
                    out,
                    "{},{},{pairs},{size},{burst},{latency_burst},{rate},{latency_rate},{cores},{},{direction},{touches},\
                     {seconds},{warm_up},{},{},{:.6},{}",
                    quoted(switch),
                    quoted(&result.version),
                    quoted(io),
                    result.cell.container,
                    number + 1,
                    sample.start_seconds,
                    match sample.container_seconds.is_empty() {
                        true => String::new(),
                        false =>
                            format!("{:.6}", Spread::of(sample.container_seconds.clone()).median),
                    }
                );
                let optional =
                    |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.1}"));
                match &sample.throughput {
                    Some(t) => {
                        let _ = write!(
                            out,
                            ",{:.1},{:.1},{:.1},{},{},{},{},{},{},{:.1},{:.1},{}",
                            t.attempted_rate,
                            t.sent_rate,
                            t.received_rate,
                            t.sent,
                            t.received,
                            t.lost,
                            t.overrun,
                            t.duplicates,
                            t.reordered,
                            t.sender_ns,
                            t.receiver_ns,
                            optional(t.switch_ns)
                        );
                    }
                    None => out += &",".repeat(12),
                }
                match sample.round_trips.as_ref().and_then(|trips| Some((trips, trips.latency?))) {
                    Some((trips, latency)) => {
                        let _ = writeln!(
                            out,
                            ",{},{},{},{},{},{},{:.1},{:.1},{}",
                            trips.received,
                            trips.lost,
                            latency.p50,
                            latency.p99,
                            latency.p99_99,
                            latency.max,
                            trips.client_ns,
                            trips.server_ns,
                            optional(trips.switch_ns)
                        );
                    }
                    None => out += &(",".repeat(9) + "\n"),
                }
            }
        }
        out
    }
}

fn text_or_kernel(result: &CellResult, text: String) -> String {
    if result.has_processes { text } else { "–".into() }
}

/// A number as tables have it.
fn number(value: f64) -> String {
    grouped(value.round() as u64)
}
