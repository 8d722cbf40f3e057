//! What was to be reached, and what was.

use sim::experiments::{CHAINS, Cell, SLOS};
use sim::{LOOSE, Report, Row, TABLES, Table};

use super::Ran;
use super::page::Page;

/// What holds of a variant's report beside that of `ironside`.
type Sign<'a> = &'a dyn Fn(&Report, &Report) -> bool;

/// The run of a row.
pub(super) fn cell(table: &Table, row: &Row) -> Cell {
    Cell::of(table.chain, table.trace, row.policy, row.slo * 1000)
}

/// Whether a report keeps its SLO.
fn keeps(of: &Report) -> bool {
    of.latency.p99.is_some_and(|p99| p99 <= of.slo)
}

fn met(is_met: bool) -> String {
    if is_met { "met" } else { "missed" }.into()
}

/// Appends goals with what came of them.
pub(super) fn put(page: &mut Page, ran: &Ran) {
    page.put("\n## Goals\n");
    page.put("Set before the first run, and not changed by what came out.");
    page.head(2, ["goal", "", "here"]);
    let cells = |policy: &'static str| {
        TABLES.into_iter().flat_map(move |table| {
            SLOS.into_iter()
                .map(move |slo| (table, Cell::of(table.chain, table.trace, policy, slo)))
        })
    };
    let reports =
        |policy| cells(policy).filter_map(|(table, cell)| Some((table, ran.report(&cell)?)));
    let theirs = |table: &Table, slo: u64| {
        table.rows.iter().find(|row| row.policy == "ironside" && row.slo * 1000 == slo).copied()
    };
    let all = reports("ours").count();
    let kept = reports("ours").filter(|(_, of)| keeps(of)).count();
    let mut goal =
        |what: &str, is_met: bool, here: String| page.row([what.into(), met(is_met), here]);
    goal(
        "`ours`: p99 within the SLO in all cells (theirs: 19 of 20)",
        kept == all,
        format!("{kept} of {all}"),
    );
    let kept = reports("ironside").filter(|(_, of)| keeps(of)).count();
    goal(
        "`ironside`: p99 within the SLO in 19 cells, as printed",
        kept >= 19,
        format!("{kept} of {all}"),
    );
    let low = reports("ours").filter(|(table, of)| {
        of.loss() < 0.005 && theirs(table, of.slo).is_some_and(|row| of.loss() <= row.loss)
    });
    let low = low.count();
    goal(
        "`ours`: losses at most theirs and below 0.5 % in all cells",
        low == all,
        format!("{low} of {all}"),
    );
    for table in TABLES {
        let own = |policy| reports(policy).filter(move |(of, _)| of.number == table.number);
        let sum = |policy| own(policy).map(|(_, of)| of.cores).sum::<f64>();
        let printed: f64 =
            table.rows.iter().filter(|row| row.policy == "ironside").map(|row| row.cores).sum();
        let what = format!(
            "`ours`: cores at most theirs in the sum over the SLOs of table {}",
            table.number
        );
        goal(&what, sum("ours") <= printed, format!("{:.1}, theirs {printed:.1}", sum("ours")));
    }
    let (mut near, mut ordered, mut count) = (0, 0, 0);
    for table in TABLES {
        for row in table.rows.iter().filter(|row| row.policy != "ironside") {
            let Some(p99) = ran.report(&cell(&table, row)).and_then(|of| of.latency.p99) else {
                continue;
            };
            let ratio = p99 as f64 / 1e3 / row.p99;
            near += u32::from((0.5..=2.0).contains(&ratio));
            count += 1;
        }
        let mean = |policy: &str| {
            let rows = table.rows.iter().filter(|row| row.policy == policy);
            let logs: Vec<f64> = rows
                .filter_map(|row| ran.report(&cell(&table, row))?.latency.p99)
                .map(|p99| (p99 as f64).ln())
                .collect();
            logs.iter().sum::<f64>() / logs.len().max(1) as f64
        };
        let [ironside, metron, quadrant, dyssect] =
            ["ironside", "metron", "quadrant", "dyssect"].map(mean);
        ordered += u32::from(ironside < metron.min(quadrant) && metron.max(quadrant) < dyssect);
    }
    goal(
        "p99 of Metron, Quadrant and Dyssect within a factor of two of what is printed",
        near == count,
        format!("{near} of {count}"),
    );
    goal(
        "the order of p99: Ironside, then Metron and Quadrant, then Dyssect",
        ordered == 4,
        format!("{ordered} of 4 tables"),
    );
    for (chain, slo, [_, p99, cores]) in LOOSE {
        let of = |policy, slo| ran.report(&Cell::of(chain, "backbone", policy, slo));
        let (Some(ironside), Some(metron)) = (of("ironside", slo * 1000), of("metron", 0)) else {
            continue;
        };
        let is_met = ironside.latency.p99 < metron.latency.p99;
        let here = format!(
            "{:.0} µs and {:.1} cores; Metron {:.0} µs and {:.1} cores",
            ironside.latency.p99.unwrap_or(0) as f64 / 1e3,
            ironside.cores,
            metron.latency.p99.unwrap_or(0) as f64 / 1e3,
            metron.cores
        );
        goal(
            &format!(
                "table 4.7, {chain}: Ironside below Metron's p99 (theirs: {p99:.0} µs, {cores} cores)"
            ),
            is_met,
            here,
        );
    }
    for chain in CHAINS {
        let of = |policy: &str| {
            SLOS.map(|slo| {
                ran.report(&Cell::of(chain, "backbone", policy, slo)).cloned().unwrap_or_default()
            })
        };
        let p99 = |of: &Report| of.latency.p99.unwrap_or(u64::MAX);
        let base = of("ironside");
        let at = |others: &[Report; 5], is: Sign<'_>| {
            others.iter().zip(&base).filter(|(other, base)| is(other, base)).count()
        };
        let signs: [(&str, &str, Sign<'_>); 6] = [
            ("4.5", "ironside-no-core-mapper", &|other, _| p99(other) >= 1_000_000),
            ("4.5", "ironside-unsafe", &|other, base| p99(other) >= p99(base)),
            ("4.5", "ironside-safe", &|other, base| {
                p99(other) <= p99(base) && other.cores >= base.cores
            }),
            ("4.6", "ironside-unsafe-server", &|other, base| p99(other) >= p99(base)),
            ("4.8", "ironside-no-boost", &|other, _| p99(other) >= 1_000_000),
            ("4.8", "ironside-on-demand", &|other, _| p99(other) >= 1_000_000),
        ];
        let texts = [
            "p99 of a millisecond or more",
            "p99 at least that of `ironside`",
            "p99 at most that of `ironside`, with as many cores or more",
            "p99 at least that of `ironside`",
            "p99 of a millisecond or more",
            "p99 of a millisecond or more",
        ];
        for ((figure, policy, is), text) in signs.iter().zip(texts) {
            let count = at(&of(policy), is);
            // The text speaks of some SLOs with the bold core mapper, and of most with the cautious one.
            let enough = match *policy {
                "ironside-unsafe" | "ironside-unsafe-server" => count >= 1,
                "ironside-safe" => count >= 3,
                _ => count == 5,
            };
            goal(
                &format!("figure {figure}, {chain}: `{policy}` has a {text}"),
                enough,
                format!("at {count} of 5 SLOs"),
            );
        }
    }
}
