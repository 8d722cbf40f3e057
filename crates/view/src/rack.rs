//! A plan as a picture: devices as boxes, chains as lines through their functions, as wide as their rates.
//!
//! Each chain has a row. Its line enters the switch from the left, goes through functions there, over to a host and back, and leaves to
//! the left. Branches are drawn one after the other.

use std::collections::BTreeSet;
use std::fmt::Write;

use ::placement::{Kind, Plan, Problem, Shape, Slack};

use crate::layout::Rect;
use crate::picture::text_width;
use crate::placement::{is_wire, rate};
use crate::svg::{N, Svg, Theme, escape, style};

const MARGIN: f64 = 24.0;
/// Title of the picture, and of devices.
const TITLE: f64 = 30.0;
const HEADER: f64 = 34.0;
/// Between devices, and between lanes of a row and functions.
const LINKS: f64 = 64.0;
const GAP: f64 = 8.0;
/// Space at the ends of a device's box.
const INSET: f64 = 18.0;

/// Sizes, which are smaller where there are many chains.
struct Sizes {
    lane: f64,
    box_height: f64,
    font: f64,
    between: f64,
    widest: f64,
}

impl Sizes {
    fn of(chains: usize) -> Self {
        match chains {
            0..=12 => {
                Self { lane: 26.0, box_height: 20.0, font: 11.0, between: 14.0, widest: 12.0 }
            }
            _ => Self { lane: 17.0, box_height: 13.0, font: 9.0, between: 6.0, widest: 8.0 },
        }
    }
}

/// Functions of a chain that packets meet at a place before they go elsewhere.
struct Visit {
    host: Option<usize>,
    /// Cores that some of them share, or none, and their names.
    parts: Vec<Part>,
}

/// Functions next to each other that share cores, or are alone.
struct Part {
    cores: Option<String>,
    is_card: bool,
    names: Vec<String>,
}

impl Part {
    fn width(&self, sizes: &Sizes) -> f64 {
        let names: f64 =
            self.names.iter().map(|name| text_width(name, sizes.font, false) + 10.0 + GAP).sum();
        let cores = self.label().map_or(0.0, |label| text_width(&label, sizes.font, false) + 6.0);
        names + cores
    }

    /// What is said of it beside its functions.
    fn label(&self) -> Option<String> {
        self.cores.clone()
    }
}

/// A chain's row.
struct Row {
    chain: usize,
    /// At the switch and at hosts by turns: it begins and ends at the switch.
    visits: Vec<Visit>,
}

impl Row {
    fn of(problem: &Problem, plan: &Plan, chain: usize) -> Self {
        let (of, placed) = (&problem.chains[chain], &plan.chains[chain]);
        let shape = Shape::of(problem, of, placed.sites.clone());
        let mut visits = vec![Visit { host: None, parts: Vec::new() }];
        for (number, site) in placed.sites.iter().enumerate() {
            if is_wire(&of.functions[number].name) {
                continue;
            }
            let here = visits.last().and_then(|visit| visit.host);
            if here != site.host() {
                // From host to host the switch lies between.
                if here.is_some() && site.host().is_some() {
                    visits.push(Visit { host: None, parts: Vec::new() });
                }
                visits.push(Visit { host: site.host(), parts: Vec::new() });
            }
            let group = shape.groups.iter().position(|group| group.functions.contains(&number));
            let cores = group.and_then(|group| placed.cores.get(group)).and_then(|cores| {
                // One core is not said; replicas on several hosts are said with these.
                let one = |(host, cores): (&usize, &usize)| {
                    format!("×{cores} {}", problem.hosts[*host].name)
                };
                match cores.len() {
                    1 => cores.values().find(|of| **of > 1).map(|of| format!("×{of}")),
                    _ => Some(cores.iter().map(one).collect::<Vec<_>>().join(" ")),
                }
            });
            let name = of.functions[number].name.clone();
            let is_card = site.kind() == Kind::Card;
            let follows = number.checked_sub(1).is_some_and(|last| {
                group.is_some_and(|group| shape.groups[group].functions.contains(&last))
            });
            let Some(visit) = visits.last_mut() else { continue };
            match visit.parts.last_mut().filter(|_| follows) {
                Some(part) => part.names.push(name),
                None => visit.parts.push(Part { cores, is_card, names: vec![name] }),
            }
        }
        if visits.last().is_some_and(|visit| visit.host.is_some()) {
            visits.push(Visit { host: None, parts: Vec::new() });
        }
        Self { chain, visits }
    }

    fn lanes(&self) -> usize {
        // One to each place and one back.
        (self.visits.len() - 1).max(1)
    }

    /// The hosts, by their first visits.
    fn hosts(&self) -> Vec<usize> {
        let mut hosts = Vec::new();
        for host in self.visits.iter().filter_map(|visit| visit.host) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }

    /// The widest visit to the switch, or to the host in a column.
    fn width(&self, host: Option<usize>, sizes: &Sizes) -> f64 {
        let visits = self.visits.iter().filter(|visit| visit.host == host);
        let width = |visit: &Visit| visit.parts.iter().map(|part| part.width(sizes)).sum::<f64>();
        visits.map(width).fold(0.0, f64::max)
    }
}

/// A chain's colour.
fn colour(chain: usize) -> String {
    // By the golden angle, so that neighbours differ.
    let hue = (chain as f64 * 137.508 + 210.0) % 360.0;
    let light = [46, 58, 38][chain % 3];
    format!("hsl({} 62% {light}%)", N(hue))
}

/// Draws a plan. `name` is what it is of, `switch` the switch's name.
pub fn draw(
    (problem, plan, slacks): (&Problem, &Plan, &[Slack]),
    (name, switch): (&str, &str),
    theme: Theme,
) -> String {
    let sizes = Sizes::of(plan.chains.len());
    let mut rows: Vec<Row> =
        (0..plan.chains.len()).map(|chain| Row::of(problem, plan, chain)).collect();
    rows.sort_by_key(|row| (row.hosts(), row.chain));
    // Columns: names, the switch, a host for each that a chain uses beside others.
    let label = |row: &Row| {
        format!("{}  {}", problem.chains[row.chain].name, rate(plan.chains[row.chain].rate))
    };
    let labels = rows.iter().map(|row| text_width(&label(row), sizes.font + 1.0, true));
    let labels = labels.fold(0.0, f64::max) + 28.0;
    let bars = bars(problem, slacks);
    let header =
        |host: usize| text_width(&problem.hosts[host].name, 12.0, true) + 3.0 * (BAR + 12.0) + 30.0;
    let columns = rows.iter().map(|row| row.hosts().len()).max().unwrap_or(0);
    let column_of = |column: usize| {
        let widths = rows.iter().filter_map(|row| {
            let host = *row.hosts().get(column)?;
            Some(row.width(Some(host), &sizes).max(header(host)))
        });
        widths.fold(0.0, f64::max) + 2.0 * INSET
    };
    let widths: Vec<f64> = (0..columns).map(column_of).collect();
    let on_switch = rows.iter().map(|row| row.width(None, &sizes)).fold(0.0, f64::max);
    let on_switch = on_switch.max(text_width(switch, 12.0, true) + 40.0) + 2.0 * INSET;
    let left = MARGIN + labels;
    let x_of = |column: usize| {
        left + on_switch + LINKS + widths[..column].iter().map(|w| w + LINKS).sum::<f64>()
    };
    // Rows, with room for the header of the host that begins there.
    let mut y = MARGIN + TITLE + HEADER;
    let mut tops = Vec::new();
    let mut before: Vec<usize> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let hosts = row.hosts();
        if at > 0 && hosts != before {
            y += HEADER + sizes.between;
        }
        before = hosts;
        tops.push(y);
        y += row.lanes() as f64 * sizes.lane + sizes.between;
    }
    let bottom = y;
    let right =
        if columns == 0 { left + on_switch } else { x_of(columns - 1) + widths[columns - 1] };
    let (width, height) = ((right + MARGIN).ceil(), (bottom + MARGIN).ceil());
    let mut svg = Svg(String::new());
    svg.line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#
    ));
    svg.line(format_args!("<title>{}</title>", escape(name)));
    svg.line(format_args!(
        "<style>\n{}{}</style>",
        style(&BTreeSet::new(), theme),
        colours(theme, &sizes)
    ));
    svg.line(format_args!(r#"<rect class="page" width="{width}" height="{height}"/>"#));
    svg.text("heading name", MARGIN, MARGIN + 10.0, name);
    // Devices.
    let above = HEADER - sizes.between / 2.0;
    let top = MARGIN + TITLE + HEADER - above;
    svg.rect("compound d0", &Rect { x: left, y: top, width: on_switch, height: bottom - top }, 9.0);
    svg.text("heading name", left + 12.0, top + 19.0, switch);
    let mut barred: BTreeSet<usize> = BTreeSet::new();
    for (column, &wide) in widths.iter().enumerate() {
        let mut at = 0;
        while at < rows.len() {
            let host = rows[at].hosts().get(column).copied();
            let end = (at..rows.len()).find(|&of| rows[of].hosts().get(column).copied() != host);
            let end = end.unwrap_or(rows.len());
            if let Some(host) = host {
                let (x, y) = (x_of(column), tops[at] - above);
                let last =
                    tops[end - 1] + rows[end - 1].lanes() as f64 * sizes.lane + sizes.between / 2.0;
                svg.rect("compound d0", &Rect { x, y, width: wide, height: last - y }, 9.0);
                svg.text("heading name", x + 12.0, y + 19.0, &problem.hosts[host].name);
                if barred.insert(host) {
                    let mut x = x + wide - 12.0;
                    for bar in bars[host].iter().rev() {
                        x -= BAR;
                        bar.draw(&mut svg, x, y + 8.0);
                        x -= 12.0;
                    }
                }
            }
            at = end;
        }
    }
    let most = plan.chains.iter().map(|of| of.rate).fold(f64::MIN_POSITIVE, f64::max);
    for (row, top) in rows.iter().zip(&tops) {
        let share = (plan.chains[row.chain].rate / most).clamp(0.0, 1.0);
        let thick = (sizes.widest * share).max(1.2);
        draw_row(&mut svg, row, (*top, thick), &sizes, (left, on_switch), &|host| {
            let column = row.hosts().iter().position(|of| *of == host).unwrap_or(0);
            (x_of(column), widths[column])
        });
        let label = label(row);
        svg.line(format_args!("<g><title>{}</title>", escape(&label)));
        svg.text("chain name", MARGIN, top + sizes.lane / 2.0 + sizes.font * 0.36, &label);
        svg.line(format_args!("</g>"));
    }
    svg.line(format_args!("</svg>"));
    svg.0
}

/// A chain's line, and its functions on it.
fn draw_row(
    svg: &mut Svg,
    row: &Row,
    (top, thick): (f64, f64),
    sizes: &Sizes,
    (left, on_switch): (f64, f64),
    column: &dyn Fn(usize) -> (f64, f64),
) {
    let lane = |number: usize| top + (number as f64 + 0.5) * sizes.lane;
    let start = left - 16.0;
    let mut path = format!("M{} {}", N(start), N(lane(0)));
    let mut boxes = String::new();
    let mut y = lane(0);
    let last = row.visits.len() - 1;
    for (number, visit) in row.visits.iter().enumerate() {
        let (x, width) = visit.host.map_or((left, on_switch), column);
        // To the right at first, and back from each host.
        let turns = visit.host.is_some();
        let right = x + width - INSET / 2.0;
        if turns {
            let next = lane(number);
            let middle = (y + next) / 2.0;
            let _ = write!(
                path,
                "L{} {}Q{} {} {} {}Q{} {} {} {}",
                N(right - 6.0),
                N(y),
                N(right),
                N(y),
                N(right),
                N(middle),
                N(right),
                N(next),
                N(right - 6.0),
                N(next)
            );
            boxes.push_str(&parts(visit, x + INSET / 2.0 + 4.0, y, sizes, row.chain));
            y = next;
        } else if number == 0 {
            boxes.push_str(&parts(visit, x + INSET, y, sizes, row.chain));
        } else {
            boxes.push_str(&parts(visit, x + INSET, y, sizes, row.chain));
            if number < last {
                // Once more: it turns round at the left.
                let next = lane(number);
                let (at, middle) = (x + INSET / 2.0, (y + next) / 2.0);
                let _ = write!(
                    path,
                    "L{} {}Q{} {} {} {}Q{} {} {} {}",
                    N(at + 6.0),
                    N(y),
                    N(at),
                    N(y),
                    N(at),
                    N(middle),
                    N(at),
                    N(next),
                    N(at + 6.0),
                    N(next)
                );
                y = next;
            }
        }
    }
    let end = match last {
        // All on the switch: it leaves where it came.
        0 => left + on_switch - INSET / 2.0,
        _ => start,
    };
    let _ = write!(path, "L{} {}", N(end), N(y));
    let colour = colour(row.chain);
    svg.line(format_args!(
        r#"<path class="flow" stroke="{colour}" stroke-width="{}" d="{path}"/>"#,
        N(thick)
    ));
    svg.0.push_str(&boxes);
}

/// The functions of a visit from a point on.
fn parts(visit: &Visit, mut x: f64, y: f64, sizes: &Sizes, chain: usize) -> String {
    let mut svg = Svg(String::new());
    let top = y - sizes.box_height / 2.0;
    let colour = colour(chain);
    for part in &visit.parts {
        let label = part.label();
        let names = part.names.len();
        if names > 1 {
            let width = part.width(sizes) - GAP + 6.0;
            svg.line(format_args!(
                r#"<rect class="cores" stroke="{colour}" x="{}" y="{}" width="{}" height="{}" rx="5"/>"#,
                N(x - 3.0), N(top - 2.5), N(width), N(sizes.box_height + 5.0)
            ));
        }
        for name in &part.names {
            let width = text_width(name, sizes.font, false) + 10.0;
            let class = if part.is_card { "nf card" } else { "nf" };
            svg.line(format_args!(
                r#"<rect class="{class}" stroke="{colour}" x="{}" y="{}" width="{}" height="{}" rx="4"/>"#,
                N(x), N(top), N(width), N(sizes.box_height)
            ));
            svg.text("function", x + 5.0, y + sizes.font * 0.36, name);
            x += width + GAP;
        }
        if let Some(label) = label {
            svg.line(format_args!(
                r#"<rect class="mark" x="{}" y="{}" width="{}" height="{}" rx="3"/>"#,
                N(x - GAP + 2.0),
                N(top + 1.0),
                N(text_width(&label, sizes.font, false) + 2.0),
                N(sizes.box_height - 2.0)
            ));
            svg.text("function", x - GAP + 3.0, y + sizes.font * 0.36, &label);
            x += text_width(&label, sizes.font, false) + 6.0;
        }
    }
    svg.0
}

/// Width of a bar.
const BAR: f64 = 62.0;

/// How much of something is used.
struct Bar {
    name: &'static str,
    used: f64,
    limit: f64,
    words: String,
}

impl Bar {
    fn draw(&self, svg: &mut Svg, x: f64, y: f64) {
        let share = if self.limit > 0.0 { (self.used / self.limit).clamp(0.0, 1.0) } else { 1.0 };
        let class = if share > 0.97 { "full" } else { "used" };
        svg.line(format_args!("<g><title>{}</title>", escape(&self.words)));
        svg.rect("bar", &Rect { x, y: y + 10.0, width: BAR, height: 5.0 }, 2.5);
        svg.rect(class, &Rect { x, y: y + 10.0, width: BAR * share, height: 5.0 }, 2.5);
        let text = match self.name {
            "cores" => format!("cores {:.0}/{:.0}", self.used, self.limit),
            name => format!("{name} {:.0} %", share * 100.0),
        };
        svg.text("number bar-name", x + BAR / 2.0, y + 6.0, &text);
        svg.line(format_args!("</g>"));
    }
}

/// By host.
fn bars(problem: &Problem, slacks: &[Slack]) -> Vec<Vec<Bar>> {
    let of = |host: &::placement::Host| {
        let named = [
            ("cores", "cores"),
            ("link from the switch", "in"),
            ("link to the switch", "out"),
            ("card", "card"),
        ];
        let bar = |(what, name): (&str, &'static str)| {
            let all = slacks.iter().filter(|slack| slack.chain.is_none());
            let slack = all.clone().find(|slack| slack.what == format!("{}: {what}", host.name))?;
            let words =
                format!("{}: {:.3e} of {:.3e} {}", slack.what, slack.used, slack.limit, slack.unit);
            Some(Bar { name, used: slack.used, limit: slack.limit, words })
        };
        named.into_iter().filter_map(bar).collect()
    };
    problem.hosts.iter().map(of).collect()
}

fn colours(theme: Theme, sizes: &Sizes) -> String {
    let font = sizes.font;
    let common = format!(
        ".flow{{fill:none;stroke-opacity:.55;stroke-linecap:round;stroke-linejoin:round}}\n\
         .function{{font-size:{font}px}}\n.chain{{font-size:{}px}}\n.nf{{stroke-width:1.2}}\n\
         .card{{stroke-dasharray:3 2}}\n.cores{{fill:none;stroke-width:1;stroke-opacity:.7}}\n.bar-name{{font-size:9px}}\n",
        font + 1.0
    );
    let light =
        ".nf,.mark{fill:#ffffff}\n.bar{fill:#dfe4ec}\n.used{fill:#3b76c4}\n.full{fill:#c0564f}\n";
    let dark =
        ".nf,.mark{fill:#0d1117}\n.bar{fill:#2a3442}\n.used{fill:#6ba3ee}\n.full{fill:#e2857f}\n";
    match theme {
        Theme::Light => common + light,
        Theme::Dark => common + dark,
        Theme::Auto => format!("{common}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"),
    }
}
