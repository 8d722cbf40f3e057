//! Plots as SVG, readable on light and on dark ground.

use std::fmt::Write;

use view::svg::escape;

use crate::statistics::Spread;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 44.0;
/// From the horizontal axis to the legend.
const AXIS: f64 = 52.0;
const LEGEND_ROW: f64 = 20.0;
const LEGEND_COLUMNS: f64 = 3.0;

/// How a series looks: its colours on light and on dark ground.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// What stands beside the comparison; fainter, the second.
    Reference(usize),
    /// Element by element, in three shades.
    Elements(usize),
    /// Synthesised, in three shades.
    Synthesised(usize),
}

impl Look {
    /// Which of the legend's columns it stands in, and in which row.
    fn place(self) -> (usize, usize) {
        match self {
            Look::Reference(shade) => (0, shade),
            Look::Elements(shade) => (1, shade),
            Look::Synthesised(shade) => (2, shade),
        }
    }

    fn class(self) -> String {
        match self {
            Look::Reference(shade) => format!("r{shade}"),
            Look::Elements(shade) => format!("e{shade}"),
            Look::Synthesised(shade) => format!("s{shade}"),
        }
    }
}

const COLOURS: [(Look, &str, &str); 8] = [
    (Look::Reference(0), "#6b7280", "#a3abb8"),
    (Look::Reference(1), "#b3b9c4", "#6b7280"),
    (Look::Elements(0), "#f0a35e", "#fcc693"),
    (Look::Elements(1), "#d9741b", "#f0994a"),
    (Look::Elements(2), "#9a4a08", "#cc6f1f"),
    (Look::Synthesised(0), "#74aae8", "#a9cdf7"),
    (Look::Synthesised(1), "#2f74c9", "#5f9fe8"),
    (Look::Synthesised(2), "#153f80", "#3a76c4"),
];

/// Values of a quantity on an axis of a plot.
#[derive(Clone, Debug)]
pub struct Scale {
    label: String,
    log: bool,
    low: f64,
    high: f64,
    name: fn(f64) -> String,
}

impl Scale {
    /// From nothing to the greatest of the values.
    pub fn linear(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let high = values.into_iter().fold(0.0, f64::max);
        let step = step(high);
        let high = ((high / step).ceil() * step).max(step);
        Self { label: label.into(), log: false, low: 0.0, high, name: tick_name }
    }

    /// Over the powers of ten between which the values lie.
    pub fn log(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let positive = values.into_iter().filter(|value| *value > 0.0);
        let (low, high) =
            positive.fold((f64::INFINITY, 0f64), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low <= high { (low, high) } else { (1.0, 1.0) };
        let low = low.log10().floor();
        let high = high.log10().ceil().max(low + 1.0);
        Self { label: label.into(), log: true, low, high, name: tick_name }
    }

    /// Percentiles, as how many values there are for one that is greater: 10 is the 90th percentile, 100 the 99th.
    pub fn percentiles(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        Self { name: percentile_name, ..Self::log(label, values) }
    }

    /// Where a value lies, from 0 to 1.
    fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        (value - self.low) / (self.high - self.low)
    }

    /// Values to name.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            return (self.low as i32..=self.high as i32).map(|e| 10f64.powi(e)).collect();
        }
        let step = step(self.high);
        (0..=(self.high / step).round() as u32).map(|i| f64::from(i) * step).collect()
    }
}

/// A round distance between ticks.
fn step(high: f64) -> f64 {
    let rough = (high / 5.0).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(rough)
}

/// Lines over numbers.
#[derive(Debug)]
pub struct Lines {
    /// What is shown.
    pub title: String,
    /// What the numbers are.
    pub across: String,
    /// The numbers, ascending; two at the least.
    pub xs: Vec<u32>,
    /// What the lines show.
    pub up: Scale,
    /// Name, look, and a point for each number.
    pub series: Vec<(String, Look, Vec<Spread>)>,
}

impl Lines {
    /// Draws them.
    pub fn draw(&self) -> String {
        let names = self.series.iter().map(|(name, look, _)| (name.as_str(), *look)).collect();
        let mut svg = Svg::new((&self.title, &self.across), &self.up, names, true);
        let (first, last) = (f64::from(self.xs[0]), f64::from(self.xs[self.xs.len() - 1]));
        let inset = 14.0;
        let x = |value: u32| {
            let share = (f64::from(value) - first) / (last - first);
            LEFT + inset + share * (WIDTH - LEFT - RIGHT - 2.0 * inset)
        };
        let mut named = f64::NEG_INFINITY;
        for &value in &self.xs {
            svg.line(x(value), y(0.0), x(value), y(0.0) + 4.0, "axis");
            // Names that would run into one another are left out.
            if x(value) - named > 26.0 {
                svg.text(x(value), y(0.0) + 18.0, "middle", &value.to_string());
                named = x(value);
            }
        }
        for (index, (_, look, points)) in self.series.iter().enumerate() {
            let class = look.class();
            let at = |value: f64| y(self.up.at(value));
            let mut path = String::new();
            for (&value, point) in self.xs.iter().zip(points) {
                let _ = write!(path, "{:.1},{:.1} ", x(value), at(point.median));
                svg.line(x(value), at(point.least), x(value), at(point.greatest), &class);
            }
            svg.put(format_args!(r#"<polyline class="{class} line" points="{}"/>"#, path.trim()));
            for (&value, point) in self.xs.iter().zip(points) {
                svg.marker(x(value), at(point.median), index, &class);
            }
        }
        svg.finish()
    }
}

/// A point: across, and up.
pub type Point = (f64, f64);

/// Lines through points.
#[derive(Debug)]
pub struct Curves {
    /// What is shown.
    pub title: String,
    /// The horizontal axis.
    pub across: Scale,
    /// The vertical axis.
    pub up: Scale,
    /// Name, look, and points from left to right.
    pub series: Vec<(String, Look, Vec<Point>)>,
}

impl Curves {
    /// Draws them.
    pub fn draw(&self) -> String {
        let names = self.series.iter().map(|(name, look, _)| (name.as_str(), *look)).collect();
        let mut svg = Svg::new((&self.title, &self.across.label), &self.up, names, true);
        let x = |value: f64| LEFT + self.across.at(value) * (WIDTH - LEFT - RIGHT);
        for tick in self.across.ticks() {
            svg.line(x(tick), y(0.0), x(tick), y(1.0), "grid");
            let at_the_end = x(tick) > WIDTH - RIGHT - 20.0;
            let anchor = if at_the_end { "end" } else { "middle" };
            svg.text(x(tick), y(0.0) + 18.0, anchor, &(self.across.name)(tick));
        }
        for (index, (_, look, points)) in self.series.iter().enumerate() {
            let class = look.class();
            let at = |&(across, up): &Point| (x(across), y(self.up.at(up)));
            let mut path = String::new();
            for (x, y) in points.iter().map(at) {
                let _ = write!(path, "{x:.1},{y:.1} ");
            }
            svg.put(format_args!(r#"<polyline class="{class} line" points="{}"/>"#, path.trim()));
            // A marker for each tick that was passed distinguishes series without colours.
            let mut passed = 0;
            for point in points {
                let ticks = self.across.ticks().iter().filter(|tick| **tick <= point.0).count();
                if ticks > passed {
                    let (x, y) = at(point);
                    svg.marker(x, y, index, &class);
                }
                passed = ticks;
            }
        }
        svg.finish()
    }
}

/// Bars from left to right, each with its name before it.
#[derive(Debug)]
pub struct Ranking {
    /// What is shown.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// Name, look and value.
    pub bars: Vec<(String, Look, f64)>,
}

/// Height of a bar of a [`Ranking`] and the gap below it.
const BAR: f64 = 22.0;
/// Width of the names.
const NAMES: f64 = 230.0;
/// Width of the values.
const VALUES: f64 = 150.0;
/// Characters of a name that are shown.
const LONGEST_NAME: usize = 30;

impl Ranking {
    /// Draws it.
    pub fn draw(&self) -> String {
        let height = TOP + BAR * self.bars.len() as f64 + 12.0;
        let mut svg = Svg::page(&self.title, height);
        let most = self.bars.iter().map(|(.., value)| *value).fold(f64::MIN_POSITIVE, f64::max);
        for (index, (name, look, value)) in self.bars.iter().enumerate() {
            let top = TOP + BAR * index as f64;
            let width = (value / most * (WIDTH - NAMES - RIGHT - VALUES)).max(1.0);
            let mut shown: String = name.chars().take(LONGEST_NAME).collect();
            if shown.len() < name.len() {
                shown.push('…');
            }
            svg.text(NAMES - 8.0, top + 13.0, "end", &shown);
            svg.put(format_args!(
                r#"<rect class="{} fill" x="{NAMES}" y="{top:.1}" width="{width:.1}" height="{}"/>"#,
                look.class(),
                BAR - 6.0
            ));
            let value = format!("{value:.1} {}", self.unit);
            svg.text(NAMES + width + 6.0, top + 13.0, "start", &value);
        }
        svg.finish()
    }
}

/// What stands in a place of [`Groups`].
#[derive(Clone, Debug)]
pub enum Shape {
    /// A bar up to the median, with a line from the least to the greatest.
    Bar(Spread),
    /// Percentiles 1, 25, 50, 75 and 99.
    Box([f64; 5]),
}

/// Bars or boxes side by side, in groups.
#[derive(Debug)]
pub struct Groups {
    /// What is shown.
    pub title: String,
    /// What the groups are.
    pub across: String,
    /// The groups' names.
    pub groups: Vec<String>,
    /// What the shapes show.
    pub up: Scale,
    /// Name, look, and a shape for each group.
    pub series: Vec<(String, Look, Vec<Shape>)>,
}

impl Groups {
    /// Draws them.
    pub fn draw(&self) -> String {
        let names = self.series.iter().map(|(name, look, _)| (name.as_str(), *look)).collect();
        let mut svg = Svg::new((&self.title, &self.across), &self.up, names, false);
        let width = (WIDTH - LEFT - RIGHT) / self.groups.len() as f64;
        let place = width / (self.series.len() as f64 + 1.0);
        for (group, name) in self.groups.iter().enumerate() {
            let left = LEFT + group as f64 * width;
            svg.text(left + width / 2.0, y(0.0) + 18.0, "middle", name);
            if group > 0 {
                svg.line(left, y(0.0), left, y(1.0), "grid");
            }
            for (index, (_, look, shapes)) in self.series.iter().enumerate() {
                let middle = left + (index as f64 + 1.0) * place;
                svg.shape(&shapes[group], middle, place * 0.78, &self.up, &look.class());
            }
        }
        svg.finish()
    }
}

/// From the share of a scale to the height on the page.
fn y(share: f64) -> f64 {
    TOP + (1.0 - share) * (HEIGHT - TOP)
}

struct Svg(String);

impl Svg {
    /// Title, axes, grid and legend; with `marked`, each series has its own marker.
    fn new(
        (title, across): (&str, &str),
        up: &Scale,
        legend: Vec<(&str, Look)>,
        marked: bool,
    ) -> Self {
        let rows = legend.iter().map(|(_, look)| look.place().1 + 1).max().unwrap_or(0);
        let height = HEIGHT + AXIS + rows as f64 * LEGEND_ROW + 10.0;
        let mut svg = Self::page(title, height);
        for tick in up.ticks() {
            let at = y(up.at(tick));
            svg.line(LEFT, at, WIDTH - RIGHT, at, "grid");
            svg.text(LEFT - 8.0, at + 4.0, "end", &(up.name)(tick));
        }
        svg.line(LEFT, y(0.0), WIDTH - RIGHT, y(0.0), "axis");
        svg.line(LEFT, y(0.0), LEFT, y(1.0), "axis");
        svg.text((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT + 38.0, "middle", across);
        let middle = (TOP + HEIGHT) / 2.0;
        svg.put(format_args!(
            r#"<text text-anchor="middle" transform="translate(18 {middle}) rotate(-90)">{}</text>"#,
            escape(&up.label)
        ));
        for (index, (name, look)) in legend.iter().enumerate() {
            let (column, row) = look.place();
            let x = LEFT + column as f64 * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS;
            let y = HEIGHT + AXIS + 12.0 + row as f64 * LEGEND_ROW;
            let shape = if marked { index } else { 1 };
            svg.marker(x + 5.0, y - 4.0, shape, &look.class());
            svg.text(x + 16.0, y, "start", name);
        }
        svg
    }

    /// An empty page with a title.
    fn page(title: &str, height: f64) -> Self {
        let (mut svg, title) = (Svg(String::new()), escape(title));
        svg.put(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">"#
        ));
        svg.put(format_args!("<title>{title}</title>\n<style>\n{}</style>", style()));
        svg.put(format_args!(r#"<rect class="page" width="{WIDTH}" height="{height}"/>"#));
        svg.put(format_args!(r#"<text class="title" x="{LEFT}" y="24">{title}</text>"#));
        svg
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{text}");
    }

    fn line(&mut self, x1: f64, y1: f64, x2: f64, y2: f64, class: &str) {
        self.put(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        self.put(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape(text)
        ));
    }

    /// Series are distinguished by their markers too, not by colour alone.
    fn marker(&mut self, x: f64, y: f64, index: usize, class: &str) {
        let class = format!("{class} fill");
        match index % 4 {
            0 => {
                self.put(format_args!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="4"/>"#))
            }
            1 => self.put(format_args!(
                r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="8" height="8"/>"#,
                x - 4.0,
                y - 4.0
            )),
            2 => self.put(format_args!(
                r#"<path class="{class}" d="M{x:.1} {:.1}l5 9h-10z"/>"#,
                y - 5.0
            )),
            _ => self.put(format_args!(
                r#"<path class="{class}" d="M{x:.1} {:.1}l5 5l-5 5l-5-5z"/>"#,
                y - 5.0
            )),
        }
    }

    fn shape(&mut self, shape: &Shape, x: f64, width: f64, up: &Scale, class: &str) {
        let at = |value: f64| y(up.at(value));
        let left = x - width / 2.0;
        let (low, high, bottom, top) = match shape {
            Shape::Bar(s) => (at(s.least), at(s.greatest), y(0.0), at(s.median)),
            Shape::Box([p1, p25, _, p75, p99]) => (at(*p1), at(*p99), at(*p25), at(*p75)),
        };
        // Flat boxes keep enough height to show their colours.
        let missing = match shape {
            Shape::Bar(_) => 0.0,
            Shape::Box(_) => (5.0 - (bottom - top)).max(0.0),
        };
        let (top, height) = (top - missing / 2.0, bottom - top + missing);
        if let Shape::Box(_) = shape {
            self.line(x, low, x, high, class);
        }
        self.put(format_args!(
            r#"<rect class="{class} fill" x="{left:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
        match shape {
            Shape::Bar(_) => self.line(x, low, x, high, "whisker"),
            Shape::Box(percentiles) => {
                let middle = at(percentiles[2]);
                self.line(left, middle, left + width, middle, "median");
            }
        }
    }

    fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn style() -> String {
    let mut common = String::from(
        "text{font:13px system-ui,sans-serif}.title{font-size:15px;font-weight:600}\
         line{stroke-width:1.2}polyline{fill:none;stroke-width:2}.grid{stroke-width:1}\
         .median{stroke-width:1.5}\n",
    );
    let mut dark = String::from(
        "text{fill:#e6e8ec}.page{fill:#14171c}.axis{stroke:#98a1b3}.grid{stroke:#2b313b}\
         .whisker,.median{stroke:#e6e8ec}\n",
    );
    common.push_str(
        "text{fill:#22262e}.page{fill:#fff}.axis{stroke:#5b6474}.grid{stroke:#e3e6eb}\
         .whisker,.median{stroke:#22262e}\n",
    );
    for (look, light_colour, dark_colour) in COLOURS {
        let class = look.class();
        for (sheet, colour) in [(&mut common, light_colour), (&mut dark, dark_colour)] {
            let _ = writeln!(sheet, ".{class}{{stroke:{colour}}}.{class}.fill{{fill:{colour}}}");
        }
    }
    format!("{common}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
}

fn percentile_name(values: f64) -> String {
    if values <= 1.0 {
        return "0 %".into();
    }
    let digits = (values.log10().round() as usize).saturating_sub(2);
    format!("{:.digits$} %", 100.0 * (1.0 - 1.0 / values))
}

/// A tick without what multiplying added (three steps of 0.1 are 0.3); from 10,000 on in thousands or millions, for which there
/// is room beside the axis.
fn tick_name(tick: f64) -> String {
    let (tick, unit) = match tick {
        1e6.. => (tick / 1e6, "M"),
        1e4.. => (tick / 1e3, "k"),
        _ => (tick, ""),
    };
    let text = format!("{tick:.9}");
    text.trim_end_matches('0').trim_end_matches('.').to_string() + unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_short_names_that_differ() {
        let names = |most: f64| -> Vec<String> {
            let scale = Scale::linear("", [most]);
            scale.ticks().into_iter().map(scale.name).collect()
        };
        assert_eq!(names(0.4), ["0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(names(2.4), ["0", "0.5", "1", "1.5", "2", "2.5"]);
        assert_eq!(names(100.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(names(12_000.0), ["0", "5000", "10k", "15k"]);
        let powers = Scale::log("", [20.0, 900_000.0]);
        let names: Vec<String> = powers.ticks().into_iter().map(powers.name).collect();
        assert_eq!(names, ["10", "100", "1000", "10k", "100k", "1M"]);
    }
}
