//! A split drawn: wires, what the device does of what comes from them, what frames carry to the server, and what is left to it.

use std::collections::BTreeMap;

use compiler::Synthesis;
use compiler::partition::Divided;

use super::{Offloaded, classes_of, place};
use crate::layout::Rect;
use crate::picture::text_width;
use crate::svg::{N, Svg, Theme, escape, style};
use crate::synth::{Cost, Report};

/// Lines of one mark in a panel.
const LINES: usize = 7;
/// Letters of a line.
const LETTERS: usize = 76;
const SIZE: f64 = 11.5;
const LINE: f64 = 18.0;
const HEAD: f64 = 46.0;
const SPACE: f64 = 14.0;
const MARGIN: f64 = 24.0;
/// Between the device and the server: an arrow with a text.
const GAP: f64 = 150.0;
/// Wires, in front of the device.
const AHEAD: f64 = 34.0;

/// Where a class is taken care of: colours of the bar and of marks.
const PLACES: [(&str, &str, [&str; 2]); 3] = [
    ("done there", "done", ["#2f9150", "#4fb873"]),
    ("decided there", "decided", ["#c9912a", "#e0b04e"]),
    ("stays", "stays", ["#8a94a6", "#6f7b8f"]),
];

/// A line of a panel: its mark, what it says, and of how many classes.
struct Line {
    mark: usize,
    text: String,
    classes: usize,
}

/// The part of a chain behind one entry.
struct Panel {
    wires: String,
    of: [usize; 3],
    device: Vec<Line>,
    server: Vec<Line>,
    tags: Option<(u16, u16)>,
}

/// Lines, the most classes first, of each mark; what else there is of a mark is one line.
fn lines(counted: BTreeMap<(usize, String), usize>) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    for of in 0..PLACES.len() {
        let same = counted.iter().filter(|((mark, _), _)| *mark == of);
        let line = |((mark, text), classes): (&(usize, String), &usize)| Line {
            mark: *mark,
            text: text.clone(),
            classes: *classes,
        };
        let mut lines: Vec<Line> = same.map(line).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.classes));
        if lines.len() > LINES {
            let rest = lines.split_off(LINES - 1);
            let classes = rest.iter().map(|line| line.classes).sum();
            lines.push(Line { mark: of, text: format!("… {} more", rest.len()), classes });
        }
        all.append(&mut lines);
    }
    all
}

impl Panel {
    fn of(all: &Offloaded<'_>, part: &Divided) -> Self {
        let Offloaded { chain, sources, models, .. } = *all;
        let synthesis = Synthesis { programs: vec![part.program.clone()], ..Synthesis::default() };
        let report = Report::of(chain, sources, "", models, &synthesis, Cost::default());
        let (mut device, mut server) = (BTreeMap::new(), BTreeMap::new());
        let mut of = [0; 3];
        for class in report.programs.iter().flat_map(|became| &became.classes) {
            let fate = part.offload.classes.iter().find(|fate| fate.exit == class.step);
            let Some(fate) = fate else { continue };
            let Some(mark) = PLACES.iter().position(|(name, ..)| *name == place(fate)) else {
                continue;
            };
            of[mark] += 1;
            if mark < 2 {
                *device.entry((mark, all.said(&report, class))).or_insert(0) += 1;
            }
            if let (1.., Some(why)) = (mark, fate.why()) {
                *server.entry((mark, all.reason(why))).or_insert(0) += 1;
            }
        }
        let numbers = || part.offload.handoffs.keys().map(|to| to.0);
        Self {
            wires: part.wires.join(", "),
            of,
            device: lines(device),
            server: lines(server),
            tags: numbers().min().zip(numbers().max()),
        }
    }

    fn height(&self) -> f64 {
        let lines = self.device.len().max(self.server.len()).max(1);
        HEAD + lines as f64 * LINE + 8.0
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}

fn width(lines: &[Line]) -> f64 {
    let of = |line: &Line| text_width(&shorten(&line.text), SIZE, false) + 80.0;
    lines.iter().map(of).fold(0.0, f64::max)
}

impl Offloaded<'_> {
    /// As a picture; `server` is the port of the server at the link to the device.
    pub fn svg(&self, server: &str, theme: Theme) -> String {
        let panels: Vec<Panel> =
            self.compiled.parts.iter().map(|part| Panel::of(self, part)).collect();
        let ahead = panels.iter().map(|panel| text_width(&panel.wires, 12.5, true));
        let ahead = ahead.fold(40.0, f64::max) + AHEAD;
        let widest = |of: fn(&Panel) -> &[Line], least: f64| {
            panels.iter().map(|panel| width(of(panel))).fold(least, f64::max)
        };
        let device = widest(|panel| &panel.device, 300.0);
        let cores = widest(|panel| &panel.server, 260.0);
        let left = MARGIN + ahead;
        let right = left + device + 2.0 * SPACE + GAP;
        let frame = |x: f64, width: f64, height: f64| Rect {
            x,
            y: MARGIN,
            width: width + 2.0 * SPACE,
            height,
        };
        let inner: f64 = panels.iter().map(|panel| panel.height() + SPACE).sum();
        let height = 34.0 + inner;
        let whole = (right + cores + 2.0 * SPACE + MARGIN).ceil();
        let tall = (height + 2.0 * MARGIN + 34.0).ceil();
        let mut svg = Svg(String::new());
        svg.line(format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{tall}" viewBox="0 0 {whole} {tall}" role="img">"#
        ));
        svg.line(format_args!("<title>{} ↔ {}</title>", escape(self.target), escape(server)));
        let style = style(&std::collections::BTreeSet::new(), theme);
        svg.line(format_args!("<style>\n{style}{}</style>", colours(theme)));
        svg.line(format_args!(r#"<rect class="page" width="{whole}" height="{tall}"/>"#));
        for (x, width, name) in [(left, device, self.target), (right, cores, server)] {
            svg.rect("compound d0", &frame(x, width, height), 9.0);
            svg.text("name", x + SPACE, MARGIN + 22.0, name);
        }
        let mut y = MARGIN + 34.0;
        for panel in &panels {
            svg.panel(panel, (left, device), (right, cores), y);
            y += panel.height() + SPACE;
        }
        svg.legend(tall - MARGIN - 8.0);
        svg.line(format_args!("</svg>"));
        svg.0
    }
}

impl Svg {
    fn panel(
        &mut self,
        panel: &Panel,
        (left, device): (f64, f64),
        (right, cores): (f64, f64),
        y: f64,
    ) {
        let height = panel.height();
        let middle = y + 23.0;
        self.text("name", MARGIN, middle + 4.0, &panel.wires);
        let wire = MARGIN + text_width(&panel.wires, 12.5, true) + 6.0;
        self.across(wire, left + SPACE, middle);
        let all: usize = panel.of.iter().sum();
        let of_device = Rect { x: left + SPACE, y, width: device, height };
        self.rect("compound d1", &of_device, 6.0);
        let inside = device - 24.0;
        self.text("class", of_device.x + 12.0, y + 17.0, &classes_of(all));
        let mut x = of_device.x + 12.0;
        for (n, (what, class, _)) in panel.of.iter().zip(PLACES) {
            let width = inside * *n as f64 / all.max(1) as f64;
            if *n > 0 {
                self.line(format_args!(
                    r#"<rect class="{class}" x="{}" y="{}" width="{}" height="7"><title>{n} {what}</title></rect>"#,
                    N(x),
                    N(y + 25.0),
                    N(width)
                ));
            }
            x += width;
        }
        self.lines(&panel.device, of_device.x, y + HEAD, device);
        if panel.device.is_empty() {
            self.text("class", of_device.x + 12.0, y + HEAD + 12.0, "all is handed to cores");
        }
        let of_server = Rect { x: right + SPACE, y, width: cores, height };
        self.rect("compound d1", &of_server, 6.0);
        let left_over = panel.of[1] + panel.of[2];
        let text = match left_over {
            0 => "nothing is left to cores".to_string(),
            n => format!("{}: why cores see them", classes_of(n)),
        };
        self.text("class", of_server.x + 12.0, y + 17.0, &text);
        self.lines(&panel.server, of_server.x, y + HEAD, cores);
        let (from, to) = (of_device.x + device, of_server.x);
        if let Some((first, last)) = panel.tags {
            self.across(from, to, middle);
            let at = (from + to) / 2.0;
            let numbers =
                if first == last { format!("{first}") } else { format!("{first}–{last}") };
            self.middle(at, middle - 10.0, "802.1ad tags");
            self.middle(at, middle + 18.0, &format!("VLAN ID {numbers}"));
        }
    }

    fn lines(&mut self, lines: &[Line], x: f64, top: f64, width: f64) {
        for (line, n) in lines.iter().zip(0_u32..) {
            let y = top + f64::from(n) * LINE;
            let class = PLACES[line.mark].1;
            self.line(format_args!("<g><title>{}</title>", escape(&line.text)));
            let mark = Rect { x: x + 12.0, y: y + 3.0, width: 8.0, height: 8.0 };
            self.rect(class, &mark, 2.0);
            self.text("row", x + 28.0, y + 11.0, &shorten(&line.text));
            let (at, y) = (N(x + width - 12.0), N(y + 11.0));
            self.line(format_args!(
                r#"<text class="row end" x="{at}" y="{y}">{}</text>"#,
                line.classes
            ));
            self.line(format_args!("</g>"));
        }
    }

    fn middle(&mut self, x: f64, y: f64, text: &str) {
        let (x, y) = (N(x), N(y));
        self.line(format_args!(r#"<text class="legend mid" x="{x}" y="{y}">{text}</text>"#));
    }

    fn legend(&mut self, y: f64) {
        let mut x = MARGIN;
        for (what, class, _) in PLACES {
            self.rect(class, &Rect { x, y, width: 12.0, height: 12.0 }, 3.0);
            let what = if class == "stays" { "left to cores" } else { what };
            self.text("legend", x + 18.0, y + 10.0, what);
            x += text_width(what, 11.0, false) + 40.0;
        }
        self.text(
            "legend",
            x,
            y + 10.0,
            "numbers count classes; frames back from cores carry the number of their port",
        );
    }
}

fn colours(theme: Theme) -> String {
    let sheet = |at: usize| -> String {
        PLACES.iter().map(|(_, class, of)| format!(".{class}{{fill:{}}}\n", of[at])).collect()
    };
    let common = format!(
        ".row{{font-size:{SIZE}px}}\n.end{{text-anchor:end}}\n.mid{{text-anchor:middle}}\n"
    );
    match theme {
        Theme::Light => common + &sheet(0),
        Theme::Dark => common + &sheet(1),
        Theme::Auto => {
            let (light, dark) = (sheet(0), sheet(1));
            format!("{common}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
        }
    }
}
