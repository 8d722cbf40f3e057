//! Flame graphs: what a whole consists of, as boxes whose widths are shares.

use std::collections::BTreeSet;

use crate::layout::Rect;
use crate::picture::text_width;
use crate::svg::{N, Svg, Theme, escape, style};

/// A part of a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Its name.
    pub name: String,
    /// What it has itself, besides its parts.
    pub own: f64,
    /// Its parts.
    pub parts: Vec<Frame>,
}

impl Frame {
    /// What it has together with its parts.
    pub fn total(&self) -> f64 {
        self.own + self.parts.iter().map(Self::total).sum::<f64>()
    }

    fn depth(&self) -> usize {
        1 + self.parts.iter().map(Self::depth).max().unwrap_or(0)
    }
}

/// Width of the whole.
const WIDTH: f64 = 960.0;
/// Height of a box, and of what is between two.
const HEIGHT: f64 = 22.0;
const GAP: f64 = 1.0;
/// Space around the picture.
const MARGIN: f64 = 20.0;
/// Height of the title.
const TITLE: f64 = 26.0;
/// Boxes that are narrower are not drawn.
const NARROWEST: f64 = 0.2;
/// Size of a box's text, and space before it.
const TEXT: f64 = 12.0;
const INDENT: f64 = 4.0;

/// Fill and stroke by depth, on light and on dark ground.
const COLOURS: [[&str; 4]; 3] = [
    ["#fbe3c8", "#d68a3a", "#4a2f12", "#e0a35c"],
    ["#f9c9a4", "#c9622a", "#5a2a12", "#ec8d5a"],
    ["#f6e08f", "#b88a12", "#493a0c", "#dcb345"],
];

/// Draws a flame graph: the whole below, its parts above it. `unit` follows values.
pub fn draw(whole: &Frame, title: &str, unit: &str, theme: Theme) -> String {
    let total = whole.total();
    let (width, depth) = (WIDTH + 2.0 * MARGIN, whole.depth());
    let height = 2.0 * MARGIN + TITLE + depth as f64 * (HEIGHT + GAP);
    let mut svg = Svg(String::new());
    svg.line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">"#
    ));
    svg.line(format_args!("<title>{}</title>", escape(title)));
    svg.line(format_args!("<style>\n{}{}</style>", style(&BTreeSet::new(), theme), colours(theme)));
    svg.line(format_args!(r#"<rect class="page" width="{width}" height="{height}"/>"#));
    svg.text("heading", MARGIN, MARGIN + 12.0, title);
    if total > 0.0 {
        let bottom = height - MARGIN - HEIGHT;
        part(&mut svg, whole, (MARGIN, bottom), 0, &(total, unit));
    }
    svg.line(format_args!("</svg>"));
    svg.0
}

fn part(svg: &mut Svg, frame: &Frame, (x, y): (f64, f64), depth: usize, scale: &(f64, &str)) {
    let (total, unit) = *scale;
    let value = frame.total();
    let width = value / total * WIDTH;
    if width < NARROWEST {
        return;
    }
    let share = 100.0 * value / total;
    let name = escape(&frame.name);
    svg.line(format_args!("<g><title>{name}: {value:.1} {unit} ({share:.1} %)</title>"));
    let rect = Rect { x, y, width, height: HEIGHT };
    svg.rect(&format!("element flame{}", depth % COLOURS.len()), &rect, 2.0);
    let label = fitting(&frame.name, width - 2.0 * INDENT);
    if !label.is_empty() {
        let (x, y, label) = (N(x + INDENT), N(y + HEIGHT * 0.68), escape(&label));
        svg.line(format_args!(r#"<text x="{x}" y="{y}">{label}</text>"#));
    }
    svg.line(format_args!("</g>"));
    let mut left = x;
    for inner in &frame.parts {
        part(svg, inner, (left, y - HEIGHT - GAP), depth + 1, scale);
        left += inner.total() / total * WIDTH;
    }
}

/// As much of a name as there is room for.
fn fitting(name: &str, width: f64) -> String {
    let fits = |text: &str| text_width(text, TEXT, false) <= width;
    if fits(name) {
        return name.to_string();
    }
    let mut cut: Vec<char> = name.chars().collect();
    while cut.len() > 2 {
        cut.pop();
        let text: String = cut.iter().chain(['…'].iter()).collect();
        if fits(&text) {
            return text;
        }
    }
    String::new()
}

fn colours(theme: Theme) -> String {
    let sheet = |fill: usize| -> String {
        let rule = |(depth, colours): (usize, &[&str; 4])| {
            format!(".flame{depth}{{fill:{};stroke:{}}}\n", colours[fill], colours[fill + 1])
        };
        COLOURS.iter().enumerate().map(rule).collect()
    };
    match theme {
        Theme::Light => sheet(0),
        Theme::Dark => sheet(2),
        Theme::Auto => {
            format!("{}@media (prefers-color-scheme:dark){{\n{}}}\n", sheet(0), sheet(2))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, own: f64, parts: Vec<Frame>) -> Frame {
        Frame { name: name.into(), own, parts }
    }

    #[test]
    fn widths_are_shares_and_parts_are_above_their_whole() {
        let whole = frame(
            "chain",
            0.0,
            vec![
                frame("fw <1>", 0.0, vec![frame("CheckIPHeader", 30.0, vec![])]),
                frame("a name for which there is no room", 1.0, vec![]),
                frame("nat", 69.0, vec![]),
                frame("nothing", 0.0, vec![]),
            ],
        );
        let svg = draw(&whole, "a & b", "ns", Theme::Auto);
        for part in [
            "<title>a &amp; b</title>",
            "<title>chain: 100.0 ns (100.0 %)</title>",
            r#"class="element flame0" x="20" y="93" width="960""#,
            "<title>fw &lt;1&gt;: 30.0 ns (30.0 %)</title>",
            r#"class="element flame1" x="20" y="70" width="288""#,
            r#"class="element flame2" x="20" y="47" width="288""#,
            // The third begins where the second ends.
            r#"class="element flame1" x="317.6" y="70" width="662.4""#,
            ">nat</text>",
        ] {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        // A narrow box has its name in its title alone.
        assert!(!svg.contains("nothing") && !svg.contains(r#"">a name"#), "{svg}");
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }

    #[test]
    fn labels_are_cut_to_their_boxes() {
        assert_eq!(fitting("nat", 100.0), "nat");
        let cut = fitting("CheckIPHeader", 50.0);
        assert!(cut.starts_with("Ch") && cut.ends_with('…') && cut.len() < 12, "{cut}");
        assert_eq!(fitting("CheckIPHeader", 5.0), "");
    }

    #[test]
    fn nothing_has_no_boxes() {
        let svg = draw(&frame("chain", 0.0, Vec::new()), "none", "ns", Theme::Dark);
        assert!(!svg.contains("<g>") && svg.ends_with("</svg>\n"), "{svg}");
    }
}
