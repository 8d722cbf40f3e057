//! Pictures of chains as SVG.

use std::collections::BTreeSet;
use std::fmt::Write;

use elements::element::Category;

use crate::layout::{self, Layout, Point, Rect, Route, Segment};
use crate::picture::{
    CONFIG_SIZE, LINE_HEIGHT, NUMBERS, PADDING, Picture, TITLE_HEIGHT, TITLE_SIZE, text_width,
};

/// Which colours a picture has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// As the viewer likes it.
    Auto,
    /// Dark on light ground.
    Light,
    /// Light on dark ground.
    Dark,
}

/// Space around the picture.
const MARGIN: f64 = 24.0;
/// Height of the legend.
const LEGEND: f64 = 34.0;

/// A category's colours: fill and stroke on light ground, fill and stroke on dark ground.
fn colours(category: Category) -> [&'static str; 4] {
    match category {
        Category::Io => ["#e3f6e8", "#2f9150", "#12301e", "#4fb873"],
        Category::Ethernet => ["#eef4fb", "#5b7fb0", "#182434", "#7fa3d3"],
        Category::Ip => ["#eaf3ff", "#3b76c4", "#142740", "#6ba3ee"],
        Category::Ip6 => ["#e6f7fa", "#26889a", "#0f2d34", "#54bdcf"],
        Category::Transport => ["#e9ecff", "#5560c8", "#1b1f45", "#8b95ee"],
        Category::Tunnel => ["#e6f7f2", "#25866a", "#0f2d25", "#53bd9c"],
        Category::Classify => ["#fff6db", "#b88a12", "#33290c", "#dcb345"],
        Category::Lookup => ["#f6f8dc", "#8a8f1c", "#292b0d", "#bfc44c"],
        Category::Switch => ["#fdeceb", "#c0564f", "#3a1b1a", "#e2857f"],
        Category::Nat => ["#f3ebfd", "#7d52c2", "#281a3f", "#ab84e8"],
        Category::Payload => ["#fbe9f3", "#b04585", "#371428", "#e07fb6"],
        Category::Queue => ["#ffefe2", "#c9702a", "#382012", "#ec9a5a"],
        Category::Plumbing => ["#f5f6f8", "#7a8294", "#20252d", "#98a1b3"],
        Category::Control => ["#f2f2f2", "#8a8a8a", "#26282b", "#a0a0a0"],
    }
}

/// Lays a picture out and draws it. `name` is what the picture is of.
pub fn draw(picture: &Picture, name: &str, theme: Theme) -> String {
    let layout = &layout::layout(&picture.diagram);
    let categories: BTreeSet<Category> = picture.elements.iter().map(|e| e.category).collect();
    let legend = Legend::of(picture, &categories);
    let width = (layout.width + 2.0 * MARGIN).max(legend.width + 2.0 * MARGIN).max(120.0).ceil();
    let height = (layout.height + 2.0 * MARGIN + legend.height()).ceil();
    let mut svg = Svg(String::new());
    svg.line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#
    ));
    svg.line(format_args!("<title>{}</title>", escape(name)));
    svg.line(format_args!("<style>\n{}</style>", style(&categories, theme)));
    svg.line(format_args!(r#"<rect class="page" width="{width}" height="{height}"/>"#));
    let left = ((width - layout.width) / 2.0).floor();
    svg.line(format_args!(r#"<g transform="translate({left} {MARGIN})">"#));
    for (heading, rect) in picture.compounds.iter().zip(&layout.compounds) {
        let depth = heading.depth % 2;
        svg.line(format_args!("<g><title>{}</title>", escape(&heading.tooltip)));
        svg.rect(&format!("compound d{depth}"), rect, 9.0);
        svg.line(format_args!("</g>"));
    }
    for ((pulled, tooltip), route) in picture.wires.iter().zip(&layout.routes) {
        let class = if *pulled { "wire pull" } else { "wire" };
        let (path, title) = (path(route), escape(tooltip));
        svg.line(format_args!(r#"<path class="{class}" d="{path}"><title>{title}</title></path>"#));
    }
    for ((heading, at), rect) in picture.compounds.iter().zip(&layout.titles).zip(&layout.compounds)
    {
        if rect.width > 0.0 {
            svg.title(*at, &heading.name, &heading.class, "heading");
        }
    }
    for (i, (label, rect)) in picture.elements.iter().zip(&layout.elements).enumerate() {
        svg.element(label, rect, &picture.diagram.elements[i]);
    }
    svg.ports(picture, layout);
    svg.line(format_args!("</g>"));
    legend.draw(&mut svg, layout.height + 2.0 * MARGIN);
    svg.line(format_args!("</svg>"));
    svg.0
}

pub(crate) fn style(categories: &BTreeSet<Category>, theme: Theme) -> String {
    let font = "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',sans-serif";
    let mut light = String::new();
    let mut dark = String::new();
    let common = format!(
        "text{{{font};font-size:{TITLE_SIZE}px}}\n\
         .name,.heading .name{{font-weight:600}}\n\
         .config{{font-family:ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:{CONFIG_SIZE}px;white-space:pre}}\n\
         .heading{{font-size:12px}}\n\
         .number{{font-size:8px;text-anchor:middle}}\n\
         .legend{{font-size:11px}}\n\
         .wire{{fill:none;stroke-width:1.4}}\n\
         .pull{{stroke-dasharray:5 3.5}}\n\
         .port,.hollow{{stroke-width:1.2}}\n\
         .wire:hover{{stroke-width:3}}\n\
         .element{{stroke-width:1.1}}\n"
    );
    for (sheet, page, text, muted, wire, fills, edge) in [
        (&mut light, "#ffffff", "#1c2430", "#5d6877", "#5c6778", ["#f7f8fb", "#eef1f6"], "#bcc5d3"),
        (&mut dark, "#0d1117", "#e8edf4", "#9aa5b5", "#8b97a8", ["#151b24", "#1c242f"], "#3d4a5c"),
    ] {
        let _ = write!(
            sheet,
            ".page{{fill:{page}}}\ntext{{fill:{text}}}\n.class,.config,.number,.legend{{fill:{muted}}}\n\
             .wire{{stroke:{wire}}}\n.port{{fill:{wire};stroke:{wire}}}\n.hollow{{fill:{page};stroke:{wire}}}\n\
             .compound{{stroke:{edge}}}\n.d0{{fill:{}}}\n.d1{{fill:{}}}\n",
            fills[0], fills[1]
        );
    }
    for &category in categories {
        let [fill, stroke, dark_fill, dark_stroke] = colours(category);
        let class = category as usize;
        let _ = writeln!(light, ".f{class}{{fill:{fill};stroke:{stroke}}}");
        let _ = writeln!(dark, ".f{class}{{fill:{dark_fill};stroke:{dark_stroke}}}");
    }
    match theme {
        Theme::Light => common + &light,
        Theme::Dark => common + &dark,
        Theme::Auto => format!("{common}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n"),
    }
}

/// A number with at most one decimal.
pub(crate) struct N(pub(crate) f64);

impl std::fmt::Display for N {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounded = (self.0 * 10.0).round() / 10.0;
        // No negative zero.
        write!(f, "{}", if rounded == 0.0 { 0.0 } else { rounded })
    }
}

fn path(route: &Route) -> String {
    let mut d = format!("M{} {}", N(route.start.x), N(route.start.y));
    for segment in &route.segments {
        let _ = match segment {
            Segment::Line(p) => write!(d, "L{} {}", N(p.x), N(p.y)),
            Segment::Curve(a, b, p) => {
                write!(d, "C{} {} {} {} {} {}", N(a.x), N(a.y), N(b.x), N(b.y), N(p.x), N(p.y))
            }
        };
    }
    d
}

/// A picture in the making.
pub(crate) struct Svg(pub(crate) String);

impl Svg {
    pub(crate) fn line(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{text}");
    }

    pub(crate) fn rect(&mut self, class: &str, rect: &Rect, radius: f64) {
        let Rect { x, y, width, height } = rect;
        self.line(format_args!(
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}" rx="{radius}"/>"#,
            N(*x),
            N(*y),
            N(*width),
            N(*height)
        ));
    }

    /// `name :: Class`, the name in bold.
    pub(crate) fn title(&mut self, at: Point, name: &str, class: &str, kind: &str) {
        let (x, y) = (N(at.x), N(at.y));
        let class = escape(class);
        if class.is_empty() {
            self.text(&format!("{kind} name"), at.x, at.y, name);
        } else if name.is_empty() {
            self.line(format_args!(
                r#"<text class="{kind}" x="{x}" y="{y}"><tspan class="name">{class}</tspan></text>"#
            ));
        } else {
            let name = escape(name);
            self.line(format_args!(
                r#"<text class="{kind}" x="{x}" y="{y}"><tspan class="name">{name}</tspan><tspan class="class" dx="0.35em">:: {class}</tspan></text>"#
            ));
        }
    }

    /// A line of text.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y, text) = (N(x), N(y), escape(text));
        self.line(format_args!(r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#));
    }

    /// An arrow down.
    pub(crate) fn arrow(&mut self, x: f64, from: f64, to: f64) {
        let (at, from, to, neck) = (N(x), N(from), N(to), N(to - 6.0));
        let (left, right) = (N(x - 4.0), N(x + 4.0));
        self.line(format_args!(r#"<path class="wire" d="M{at} {from}L{at} {neck}"/>"#));
        self.line(format_args!(
            r#"<path class="port" d="M{left} {neck}L{right} {neck}L{at} {to}Z"/>"#
        ));
    }

    /// An arrow to the right.
    pub(crate) fn across(&mut self, from: f64, to: f64, y: f64) {
        let (from, neck, to, at) = (N(from), N(to - 9.0), N(to), N(y));
        let (above, below) = (N(y - 6.0), N(y + 6.0));
        self.line(format_args!(r#"<path class="wire" d="M{from} {at}L{neck} {at}"/>"#));
        self.line(format_args!(
            r#"<path class="port" d="M{neck} {above}L{neck} {below}L{to} {at}Z"/>"#
        ));
    }

    fn element(&mut self, label: &crate::picture::Label, rect: &Rect, element: &layout::Element) {
        self.line(format_args!("<g><title>{}</title>", escape(&label.tooltip)));
        self.rect(&format!("element f{}", label.category as usize), rect, 5.0);
        let x = rect.x + PADDING;
        let numbers = if element.inputs > 1 { NUMBERS } else { 0.0 };
        let mut y = rect.y + PADDING / 2.0 + numbers + TITLE_HEIGHT * 0.74;
        self.title(Point { x, y }, &label.name, &label.class, "title");
        for line in &label.config {
            y += LINE_HEIGHT;
            let (x, y, line) = (N(x), N(y), escape(line));
            self.line(format_args!(r#"<text class="config" x="{x}" y="{y}">{line}</text>"#));
        }
        self.line(format_args!("</g>"));
        let port = |p, n| rect.x + layout::Element::port(rect.width, p, n);
        let sides = [(element.inputs, rect.y + 8.0), (element.outputs, rect.y + rect.height - 2.6)];
        for (n, y) in sides.into_iter().filter(|(n, _)| *n > 1) {
            (0..n).for_each(|p| self.number(port(p, n), y, p));
        }
    }

    fn number(&mut self, x: f64, y: f64, number: usize) {
        let (x, y) = (N(x), N(y));
        self.line(format_args!(r#"<text class="number" x="{x}" y="{y}">{number}</text>"#));
    }

    /// Marks where wires end; hollow where packets are pulled.
    fn ports(&mut self, picture: &Picture, layout: &Layout) {
        let mut drawn = std::collections::HashSet::new();
        for (i, (pulled, _)) in picture.wires.iter().enumerate() {
            let route = &layout.routes[i];
            if route.segments.is_empty() {
                continue;
            }
            let class = if *pulled { "hollow" } else { "port" };
            let wire = picture.diagram.wires[i];
            let (start, end) = (route.start, route.end_point());
            if let layout::End::Element(..) = wire.from
                && drawn.insert((wire.from, true))
            {
                let (x, y) = (N(start.x), N(start.y));
                self.line(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="2"/>"#));
            }
            if let layout::End::Element(..) = wire.to
                && drawn.insert((wire.to, false))
            {
                let (x, y) = (end.x, end.y);
                let d = format!(
                    "M{} {}L{} {}L{} {}Z",
                    N(x - 4.0),
                    N(y - 7.0),
                    N(x + 4.0),
                    N(y - 7.0),
                    N(x),
                    N(y)
                );
                self.line(format_args!(r#"<path class="{class}" d="{d}"/>"#));
            }
        }
        for (ports, compound) in layout.ports.iter().zip(&picture.diagram.compounds) {
            for (side, (points, n)) in
                ports.iter().zip([compound.inputs, compound.outputs]).enumerate()
            {
                for (p, at) in points.iter().enumerate() {
                    let (x, y) = (N(at.x - 3.5), N(at.y - 3.5));
                    self.line(format_args!(
                        r#"<rect class="hollow" x="{x}" y="{y}" width="7" height="7" rx="1.5"/>"#
                    ));
                    if n > 1 {
                        self.number(at.x + 9.0, at.y + if side == 0 { 11.0 } else { -5.0 }, p);
                    }
                }
            }
        }
    }
}

/// What colours and lines mean.
struct Legend {
    categories: Vec<Category>,
    pulls: bool,
    width: f64,
}

impl Legend {
    fn of(picture: &Picture, categories: &BTreeSet<Category>) -> Self {
        let categories: Vec<Category> = categories.iter().copied().collect();
        let pulls = picture.wires.iter().any(|w| w.0);
        let texts: f64 = categories.iter().map(|f| Self::space(f.title())).sum();
        let width = texts + if pulls { 130.0 } else { 0.0 };
        Self { categories, pulls, width }
    }

    fn space(text: &str) -> f64 {
        text_width(text, 11.0, false) + 34.0
    }

    fn height(&self) -> f64 {
        if self.categories.is_empty() { 0.0 } else { LEGEND }
    }

    fn draw(&self, svg: &mut Svg, top: f64) {
        let (mut x, y) = (MARGIN, top + 4.0);
        let text = |svg: &mut Svg, x: f64, words: &str| {
            let (x, y) = (N(x), N(y + 9.5));
            svg.line(format_args!(r#"<text class="legend" x="{x}" y="{y}">{words}</text>"#));
        };
        for &category in &self.categories {
            let rect = Rect { x, y, width: 12.0, height: 12.0 };
            svg.rect(&format!("element f{}", category as usize), &rect, 3.0);
            text(svg, x + 18.0, category.title());
            x += Self::space(category.title());
        }
        if self.pulls {
            for (class, words) in [("wire", "push"), ("wire pull", "pull")] {
                let (from, to, y) = (N(x), N(x + 26.0), N(y + 6.0));
                svg.line(format_args!(r#"<path class="{class}" d="M{from} {y}L{to} {y}"/>"#));
                text(svg, x + 31.0, words);
                x += 66.0;
            }
        }
    }
}

/// Text as XML has it.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no other control characters.
            c if c.is_control() && c != '\n' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
