//! Instructions with jumps to labels, the headers that they use, and the metadata that hold numbers.

use std::collections::{BTreeMap, BTreeSet};

use crate::Lack;
use crate::headers::Instance;

pub(super) type Label = u32;

/// Numbers that are computed at a time.
const MOST_NUMBERS: usize = 10;

/// Bytes of metadata: operands are found by an offset of one byte.
const MOST_METADATA: usize = 255;

#[derive(Clone, Debug)]
pub(super) enum Line {
    Label(Label),
    Comment(String),
    Do(String),
    /// An instruction that may lead to a label: its name, the label, its operands.
    Jump(&'static str, Label, String),
}

/// A part of a header, in whole bytes.
pub(super) struct Container {
    pub(super) name: String,
    /// Its first bit in the header.
    pub(super) bit: i32,
    pub(super) width: u16,
}

/// The fields of a header's struct: those of the header, where they share no byte.
pub(super) fn containers(instance: Instance) -> Vec<Container> {
    let mut all: Vec<Container> = Vec::new();
    let mut bit = 0;
    for &(field, width) in instance.fields() {
        match all.last_mut() {
            Some(last) if last.width % 8 != 0 => {
                last.name = format!("{}_{field}", last.name);
                last.width += width;
            }
            _ => all.push(Container { name: field.into(), bit, width }),
        }
        bit += i32::from(width);
    }
    all
}

/// What is written so far.
#[derive(Default)]
pub(super) struct Code {
    pub(super) lines: Vec<Line>,
    labels: Label,
    /// Headers that are read or written.
    pub(super) headers: BTreeSet<Instance>,
    /// Metadata that hold what lookups found, and their widths.
    pub(super) found: BTreeMap<String, u16>,
    numbers: usize,
    /// How many keys of each width a table has at most.
    keys: BTreeMap<u16, usize>,
    wide: usize,
}

impl Code {
    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        self.labels
    }

    pub(super) fn place(&mut self, label: Label) {
        self.lines.push(Line::Label(label));
    }

    pub(super) fn run(&mut self, instruction: String) {
        self.lines.push(Line::Do(instruction));
    }

    pub(super) fn jump(&mut self, name: &'static str, to: Label, operands: String) {
        self.lines.push(Line::Jump(name, to, operands));
    }

    pub(super) fn go(&mut self, to: Label) {
        self.jump("jmp", to, String::new());
    }

    /// The metadata that holds a number while others are computed.
    pub(super) fn number(&mut self, at: usize) -> Result<String, Lack> {
        if at >= MOST_NUMBERS {
            return Err(Lack::Number("a number of that size"));
        }
        self.numbers = self.numbers.max(at + 1);
        Ok(format!("m.t{at}"))
    }

    /// The same for numbers of 128 bits, which are moved only.
    pub(super) fn wide(&mut self, at: usize) -> String {
        self.wide = self.wide.max(at + 1);
        format!("m.w{at}")
    }

    /// The metadata that holds a key of a table: the one of that width with that number.
    pub(super) fn key(&mut self, width: u16, at: usize) -> String {
        let most = self.keys.entry(width).or_default();
        *most = (*most).max(at + 1);
        format!("m.key{width}_{at}")
    }

    /// Metadata and their widths.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn metadata(&self) -> Result<Vec<(String, u16)>, Lack> {
        let mut all: Vec<(String, u16)> =
            vec![("port_in".into(), 32), ("port_out".into(), 32), ("arm".into(), 32)];
        all.extend((0..self.numbers).map(|at| (format!("t{at}"), 64)));
        all.extend((0..self.wide).map(|at| (format!("w{at}"), 128)));
        for (&width, &count) in self.keys.iter().rev() {
            all.extend((0..count).map(|at| (format!("key{width}_{at}"), width)));
        }
        all.extend(self.found.iter().map(|(name, width)| (name.clone(), *width)));
        // The library reads and writes eight bytes from wherever a field begins.
        all.push(("end".into(), 64));
        let bytes: usize = all.iter().map(|field| usize::from(field.1) / 8).sum();
        match bytes <= MOST_METADATA {
            true => Ok(all),
            false => Err(Lack::Room("bytes of metadata", bytes, MOST_METADATA)),
        }
    }
}
