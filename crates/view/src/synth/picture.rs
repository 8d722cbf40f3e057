//! Before and after, side by side: the chain's elements by network function, and the stages of the
//! programs that they became.

use std::collections::BTreeSet;

use compiler::explain::provenance::Figures;
use elements::element::Category;
use elements::registry;
use ir::NodeId;
use ir::program::{LookupId, Step};

use super::text::{longest, title, weight};
use super::{Became, Class, Egress, Report};
use crate::layout::{Point, Rect};
use crate::paint::count;
use crate::picture::text_width;
use crate::svg::{Svg, Theme, escape, style};
use crate::table::grouped;

/// Width of a side.
const SIDE: f64 = 420.0;
/// Room between the sides.
const GAP: f64 = 64.0;
const MARGIN: f64 = 24.0;
const PADDING: f64 = 12.0;
/// Height of a line of text, and of an element with the room below it.
const LINE: f64 = 17.0;
const CHIP: f64 = 20.0;
/// Elements of a network function, and functions of a program, that are drawn.
const CHIPS: usize = 18;
const FUNCTIONS: usize = 12;
/// Lines of a stage.
const LINES: usize = 7;

/// Elements that stand in one compound of the outermost level.
struct Function {
    name: String,
    class: String,
    elements: Vec<NodeId>,
}

/// A step of a program, as people see it.
struct Stage {
    title: &'static str,
    figure: String,
    lines: Vec<String>,
    category: Category,
}

/// Draws a report.
pub fn draw(report: &Report<'_>, theme: Theme) -> String {
    let mut body = Svg(String::new());
    let mut categories: BTreeSet<Category> = BTreeSet::new();
    let mut y = MARGIN + 26.0;
    for became in &report.programs {
        y = program(report, became, y, &mut body, &mut categories) + 30.0;
    }
    if report.programs.is_empty() {
        body.text(
            "legend",
            MARGIN,
            y,
            "no packet comes to an element that a program could take over",
        );
        y += LINE;
    }
    let (width, height) = (2.0 * MARGIN + 2.0 * SIDE + GAP, (y + MARGIN - 30.0).ceil());
    let mut svg = Svg(String::new());
    svg.line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#
    ));
    svg.line(format_args!("<title>{}</title>", escape(&report.name)));
    svg.line(format_args!("<style>\n{}</style>", style(&categories, theme)));
    svg.line(format_args!(r#"<rect class="page" width="{width}" height="{height}"/>"#));
    svg.title(Point { x: MARGIN, y: MARGIN + 8.0 }, "the chain", "", "heading");
    let right = MARGIN + SIDE + GAP;
    svg.title(Point { x: right, y: MARGIN + 8.0 }, "what it became", "", "heading");
    svg.0.push_str(&body.0);
    svg.line(format_args!("</svg>"));
    svg.0
}

/// Draws a program and what it replaces; returns where the picture ends.
fn program(
    report: &Report<'_>,
    became: &Became<'_>,
    top: f64,
    svg: &mut Svg,
    categories: &mut BTreeSet<Category>,
) -> f64 {
    let class = longest(became).into_iter().max_by_key(|c| weight(c));
    svg.text("legend", MARGIN, top + 6.0, &format!("from {}", title(report, became)));
    let start = top + 18.0;
    let mut left = start;
    let functions = functions(report, became);
    for function in functions.iter().take(FUNCTIONS) {
        let end = box_of(report, function, left, svg, categories);
        if left > start {
            svg.arrow(MARGIN + SIDE / 2.0, left - 12.0, left);
        }
        left = end + 12.0;
    }
    if functions.len() > FUNCTIONS {
        let more = format!("… {} more", functions.len() - FUNCTIONS);
        svg.text("legend", MARGIN + PADDING, left + 4.0, &more);
        left += LINE;
    }
    let mut right = start;
    let x = MARGIN + SIDE + GAP;
    for stage in stages(report, became, class) {
        categories.insert(stage.category);
        let height = PADDING + LINE * (1 + stage.lines.len()) as f64 + PADDING / 2.0;
        let rect = Rect { x, y: right, width: SIDE, height };
        if right > start {
            svg.arrow(x + SIDE / 2.0, right - 12.0, right);
        }
        svg.rect(&format!("element f{}", stage.category as usize), &rect, 7.0);
        let at = Point { x: x + PADDING, y: right + PADDING + 8.0 };
        svg.title(at, stage.title, "", "heading");
        let beside = at.x + text_width(stage.title, 12.0, true) + 8.0;
        svg.text("legend", beside, at.y, &stage.figure);
        for (i, line) in stage.lines.iter().enumerate() {
            let y = right + PADDING + 8.0 + LINE * (i + 1) as f64;
            svg.text("config", x + PADDING, y, line);
        }
        right += height + 12.0;
    }
    let mut bottom = left.max(right);
    if let Some(class) = class {
        bottom += 4.0;
        let to = super::text::destination(report, class);
        let on = format!("the longest path that {to}:");
        svg.text("legend", MARGIN, bottom + 6.0, &format!("on {on}"));
        bottom += LINE;
        for (x, figures, who) in [(MARGIN, class.chain, "elements"), (x, class.figures, "program")]
        {
            for (i, line) in said(figures, who).iter().enumerate() {
                svg.text("legend", x, bottom + 6.0 + LINE * i as f64, line);
            }
        }
        bottom += 2.0 * LINE;
    }
    svg.across(MARGIN + SIDE + 8.0, x - 8.0, start + 24.0);
    bottom
}

/// The figures of a side, in two lines.
fn said(f: Figures, who: &str) -> [String; 2] {
    let elements = match who {
        "program" => "1 program".to_string(),
        _ => count(f.elements, "element"),
    };
    [
        format!(
            "{elements}, {}, {}, {}",
            count(f.decisions, "decision"),
            count(f.reads, "read"),
            count(f.writes, "write")
        ),
        format!(
            "sums: {} checked, {} written; lookups: {} flow, {} table; headers moved: {}",
            f.verified, f.updated, f.flows, f.tables, f.moves
        ),
    ]
}

/// The network functions that packets of a program come through, in the order in which they are met
/// on the longest path.
fn functions(report: &Report<'_>, became: &Became<'_>) -> Vec<Function> {
    let graph = report.graph;
    let outermost = |node: NodeId| {
        let mut group = graph.nodes[node].group?;
        while let Some(parent) = graph.groups[group].parent {
            group = parent;
        }
        Some(group)
    };
    let mut seen: BTreeSet<NodeId> = BTreeSet::new();
    let mut order: Vec<(Option<usize>, Vec<NodeId>)> = Vec::new();
    let mut classes: Vec<&Class<'_>> = became.classes.iter().collect();
    classes.sort_by_key(|c| std::cmp::Reverse(c.visits.len()));
    for node in classes.iter().flat_map(|c| &c.exit.visited).map(|p| p.node) {
        if !seen.insert(node) {
            continue;
        }
        let group = outermost(node);
        match order.iter_mut().find(|(g, _)| *g == group) {
            Some((_, nodes)) => nodes.push(node),
            None => order.push((group, vec![node])),
        }
    }
    let function = |(group, elements): (Option<usize>, Vec<NodeId>)| {
        let (name, class) = match group.and_then(|g| graph.groups.get(g)) {
            Some(group) => (group.name.clone(), group.class.clone()),
            None => (String::new(), "elements of the chain itself".to_string()),
        };
        Function { name, class, elements }
    };
    order.into_iter().map(function).collect()
}

/// Draws a network function with its elements; returns where it ends.
fn box_of(
    report: &Report<'_>,
    function: &Function,
    top: f64,
    svg: &mut Svg,
    categories: &mut BTreeSet<Category>,
) -> f64 {
    let mut chips: Vec<(Rect, String, String, Category)> = Vec::new();
    let (mut x, mut y) = (PADDING, top + PADDING + LINE);
    let mut place = |label: &str| {
        let width = text_width(label, 11.0, false) + 14.0;
        if x + width > SIDE - PADDING && x > PADDING {
            (x, y) = (PADDING, y + CHIP + 5.0);
        }
        let rect = Rect { x: MARGIN + x, y, width: width.min(SIDE - 2.0 * PADDING), height: CHIP };
        x += width + 6.0;
        rect
    };
    for &node in function.elements.iter().take(CHIPS) {
        let element = &report.graph.nodes[node];
        let category =
            registry::find(&element.class).map_or(Category::Plumbing, |class| class.category);
        categories.insert(category);
        let tooltip = format!("{} :: {}\n{}", element.name, element.class, report.place(node));
        let label = element.class.clone();
        chips.push((place(&label), label, tooltip, category));
    }
    let more = function.elements.len().saturating_sub(CHIPS);
    if more > 0 {
        let label = format!("… {more} more");
        categories.insert(Category::Plumbing);
        chips.push((place(&label), label, String::new(), Category::Plumbing));
    }
    let bottom = y + CHIP + PADDING;
    let rect = Rect { x: MARGIN, y: top, width: SIDE, height: bottom - top };
    svg.rect("compound d0", &rect, 9.0);
    let figure = match (function.name.as_str(), function.class.as_str()) {
        ("", class) => format!("{}: {}", class, count(function.elements.len(), "element")),
        (_, class) => format!("{class}, {}", count(function.elements.len(), "element")),
    };
    let at = Point { x: MARGIN + PADDING, y: top + PADDING + 6.0 };
    svg.title(at, &function.name, &figure, "heading");
    for (rect, label, tooltip, category) in chips {
        svg.line(format_args!("<g><title>{}</title>", escape(&tooltip)));
        svg.rect(&format!("element f{}", category as usize), &rect, 5.0);
        svg.text("legend", rect.x + 7.0, rect.y + 14.0, &label);
        svg.line(format_args!("</g>"));
    }
    bottom
}

fn stages(report: &Report<'_>, became: &Became<'_>, class: Option<&Class<'_>>) -> Vec<Stage> {
    let program = became.program;
    let decisions =
        program.steps.iter().filter(|s| !matches!(s, Step::Exit(_) | Step::Lookup { .. }));
    let mut lines = Vec::new();
    if let Some(class) = class {
        let words = report.words(program, class);
        let known = super::in_order(&class.known);
        let flows = |asked: &compiler::explain::provenance::ConditionSubject| {
            matches!(asked, compiler::explain::provenance::ConditionSubject::Flow(_))
        };
        lines.extend(known.iter().filter(|k| !flows(k.0)).map(|(a, c)| words.condition(a, c)));
    }
    let rules = match became.rules() {
        0 => String::new(),
        n => format!(", {} rules", grouped(n as u64)),
    };
    let classes = count(became.classes.len(), "class").replace("classs", "classes");
    let mut all = vec![Stage {
        title: "classify",
        figure: format!("{}{rules}, {classes}", count(decisions.count(), "decision")),
        lines: shorten(lines),
        category: Category::Classify,
    }];
    if !program.lookups.is_empty() {
        let mut owners: Vec<String> = Vec::new();
        for lookup in (0..program.lookups.len() as u16).map(LookupId) {
            let owner = program.flows_of(lookup).map_or("?", |flows| flows.owner.as_str());
            if !owners.iter().any(|o| o == owner) {
                owners.push(owner.to_string());
            }
        }
        let most = became.classes.iter().map(|c| c.figures.flows).max().unwrap_or(0);
        all.push(Stage {
            title: "state",
            figure: format!("at most {} a packet", count(most, "flow lookup")),
            lines: shorten(owners),
            category: Category::Nat,
        });
    }
    if let Some(class) = class {
        let words = report.words(program, class);
        let done = class.done(&words);
        let fields = done.iter().filter(|d| d.place.is_some()).map(super::Done::said);
        let fields = shorten(fields.collect());
        if !fields.is_empty() {
            all.push(Stage {
                title: "write",
                figure: count(class.figures.writes, "write") + " on the longest path",
                lines: fields,
                category: Category::Ip,
            });
        }
    }
    let mut leaving: Vec<(Egress, usize)> = Vec::new();
    for class in &became.classes {
        let key = match class.egress {
            Egress::Dropped(..) => continue,
            other => other,
        };
        match leaving.iter_mut().find(|(e, _)| *e == key) {
            Some((_, n)) => *n += 1,
            None => leaving.push((key, 1)),
        }
    }
    let dropped = became.classes.iter().filter(|c| matches!(c.egress, Egress::Dropped(..))).count();
    let mut lines: Vec<String> = leaving
        .iter()
        .map(|(egress, n)| match egress {
            Egress::Leaves(node) => format!("leaves by {} ({n})", report.element(*node)),
            Egress::GoesOn(node) => format!("continues at {} ({n})", report.element(*node)),
            Egress::HandedOver(node) => format!("native code of {} ({n})", report.element(*node)),
            Egress::Dropped(node, _) => format!("dropped at {} ({n})", report.element(*node)),
        })
        .collect();
    lines = shorten(lines);
    if dropped > 0 {
        lines.push(format!("dropped, untouched ({dropped})"));
    }
    all.push(Stage {
        title: "egress",
        figure: "classes by where they go".to_string(),
        lines,
        category: Category::Io,
    });
    all
}

/// As many lines as fit, each cut to the width of a stage.
fn shorten(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES);
    if more > 0 {
        lines.truncate(LINES - 1);
        lines.push(format!("… {} more", more + 1));
    }
    lines.iter().map(|l| super::words::cut(l, 62)).collect()
}
