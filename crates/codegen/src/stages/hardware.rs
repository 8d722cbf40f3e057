//! What a device has room for, read from a file.
//!
//! A device is one of three kinds: a pipeline of stages that share memory among tables (`stages`), tables that are
//! there in a fixed order (`tables`), or a processor that runs instructions (`instructions`).

use ir::yaml::Reading;
use ir::{Diagnostic, FileId, nearest};
use serde::Deserialize;
use serde_saphyr::Spanned;

/// What a device has room for.
#[derive(Clone, Debug, PartialEq)]
pub struct Hardware {
    /// Its name.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// Its parts.
    pub room: Room,
}

/// The parts of a device.
#[derive(Clone, Debug, PartialEq)]
pub enum Room {
    /// A pipeline of equal stages.
    Stages(Stages),
    /// Tables in a fixed order.
    Tables(Vec<FixedTable>),
    /// A processor.
    Instructions(Instructions),
}

/// A pipeline of equal stages.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stages {
    /// Stages.
    pub count: u32,
    /// Tables in a stage.
    pub tables: u32,
    /// Those among them that are looked up by masks.
    pub ternary_tables: u32,
    /// SRAM.
    pub sram: Memory,
    /// TCAM.
    pub tcam: Memory,
    /// Blocks of SRAM that can count or meter.
    pub map_rams: u32,
    /// Bytes of packets that tables without masks see.
    pub exact_crossbar_bytes: u32,
    /// Groups of bytes that tables with masks see.
    pub ternary_groups: u32,
    /// Bytes of such a group.
    pub ternary_group_bytes: u32,
    /// Hash functions of tables without masks.
    pub hash_groups: u32,
    /// Blocks, at least, over which a hash table is spread.
    pub hash_ways: u32,
    /// How full a hash table may be, in percent.
    pub hash_occupancy: u32,
    /// Instructions: actions.
    pub instructions: u32,
    /// Units that count.
    pub statistics: u32,
    /// Units that keep more than counts.
    pub meters: u32,
    /// Bits of an entry that may be arguments of its action, before they take memory of their own.
    pub immediate_bits: u32,
    /// Registers that hold a packet's fields, the widest first.
    pub containers: Vec<Containers>,
}

/// Blocks of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Blocks.
    pub blocks: u32,
    /// Bits of a row.
    pub bits: u32,
    /// Rows.
    pub rows: u32,
}

/// Registers of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Containers {
    /// Their width.
    pub bits: u32,
    /// How many there are.
    pub count: u32,
}

/// A table that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedTable {
    /// Its name, or number.
    pub name: String,
    /// What it may hold, one of these.
    pub modes: Vec<Mode>,
    /// Fields that its actions may write; all, if none are given.
    pub sets: Option<Vec<String>>,
}

/// What a table may hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// Fields that it matches; all, if none are given.
    #[serde(default)]
    pub fields: Option<Vec<String>>,
    /// Fields among them of which it matches whole numbers only.
    #[serde(default)]
    pub exact: Vec<String>,
    /// Entries; not bounded, if none are given.
    #[serde(default)]
    pub entries: Option<u64>,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Instructions {
    /// Instructions of a program.
    pub count: u64,
    /// Bytes of its stack.
    pub stack: u32,
    /// Whether it may jump back.
    pub loops: bool,
    /// Whether it may call functions.
    pub calls: bool,
}

/// Devices that are known by name, each with its file.
const KNOWN: [(&str, &str); 7] = [
    ("tofino-1", include_str!("devices/tofino-1.yaml")),
    ("of-dpa", include_str!("devices/of-dpa.yaml")),
    ("noviflow-1132", include_str!("devices/noviflow-1132.yaml")),
    ("hp-5130", include_str!("devices/hp-5130.yaml")),
    ("ovs", include_str!("devices/ovs.yaml")),
    ("netronome-agilio-cx", include_str!("devices/netronome-agilio-cx.yaml")),
    ("linux", include_str!("devices/linux.yaml")),
];

mod written {
    //! As it is written.

    use super::{Deserialize, Instructions, Mode, Spanned, Stages};

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Hardware {
        pub(super) name: Spanned<String>,
        #[serde(default)]
        pub(super) about: String,
        pub(super) stages: Option<Stages>,
        pub(super) tables: Option<Vec<Tables>>,
        pub(super) instructions: Option<Instructions>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Tables {
        pub(super) name: Option<String>,
        #[serde(default = "one")]
        pub(super) count: Spanned<u32>,
        #[serde(default)]
        pub(super) holds: Vec<Mode>,
        #[serde(default)]
        pub(super) sets: Option<Vec<String>>,
    }

    fn one() -> Spanned<u32> {
        Spanned::new(1, serde_saphyr::Location::UNKNOWN, serde_saphyr::Location::UNKNOWN)
    }
}

/// Tables of a device, at most.
const MOST_TABLES: usize = 1 << 12;

impl Hardware {
    /// The names of the devices that are known.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|known| known.0)
    }

    /// The file of a device that is known.
    pub fn file(name: &str) -> Option<&'static str> {
        KNOWN.iter().find(|known| known.0 == name).map(|known| known.1)
    }

    /// A device that is known, by name.
    ///
    /// # Errors
    /// That there is none, and what there is.
    pub fn known(name: &str) -> Result<Self, String> {
        let Some(text) = Self::file(name) else {
            let help = match nearest(name, Self::names()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("there are {}", Self::names().collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("there is no device '{name}': {help}"));
        };
        Self::parse(FileId(0), text)
            .map_err(|found| found.first().map_or_else(String::new, |first| first.message.clone()))
    }

    /// Reads a device.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(file: FileId, text: &str) -> Result<Self, Vec<Diagnostic>> {
        let (written, mut reading) = Reading::of::<written::Hardware>(file, text, "device", None)?;
        let name = written.name;
        let room = match (written.stages, written.tables, written.instructions) {
            (Some(stages), None, None) => {
                if let Some(zero) = stages.zero() {
                    reading.wrong(&name, format!("a device with stages needs {zero}"), None);
                }
                Room::Stages(stages)
            }
            (None, Some(tables), None) => {
                let mut all = Vec::new();
                for of in tables {
                    let count = of.count.value as usize;
                    if all.len().saturating_add(count) > MOST_TABLES {
                        let message = format!("a device has at most {MOST_TABLES} tables");
                        reading.wrong(&of.count, message, None);
                        break;
                    }
                    let holds = match of.holds.is_empty() {
                        true => vec![Mode { fields: None, exact: Vec::new(), entries: None }],
                        false => of.holds,
                    };
                    for _ in 0..count {
                        let name = match (&of.name, count) {
                            (Some(name), 1) => name.clone(),
                            _ => all.len().to_string(),
                        };
                        all.push(FixedTable { name, modes: holds.clone(), sets: of.sets.clone() });
                    }
                }
                Room::Tables(all)
            }
            (None, None, Some(instructions)) => Room::Instructions(instructions),
            _ => {
                let message = "a device has one of `stages`, `tables` and `instructions`";
                reading.wrong(&name, message.into(), None);
                return Err(reading.found);
            }
        };
        match reading.found.is_empty() {
            true => Ok(Self { name: name.value, about: written.about, room }),
            false => Err(reading.found),
        }
    }
}

impl Stages {
    /// What must be there and is not, or is more than any device has.
    fn zero(&self) -> Option<&'static str> {
        let within = |n: u32| (1..=1 << 16).contains(&n);
        let memory =
            |memory: Memory| within(memory.bits) && within(memory.rows) && memory.blocks <= 1 << 16;
        let registers = |of: &Containers| within(of.bits) && of.count <= 1 << 16;
        match () {
            () if !(1..=256).contains(&self.count) => Some("1 to 256 of them (`count`)"),
            () if !within(self.tables) => Some("`tables`, 1 to 65,536"),
            () if !memory(self.sram) => Some("`sram` with `bits` and `rows`, 1 to 65,536"),
            () if !memory(self.tcam) => Some("`tcam` with `bits` and `rows`, 1 to 65,536"),
            () if !within(self.ternary_group_bytes) => Some("`ternary-group-bytes`, 1 to 65,536"),
            () if !(1..=100).contains(&self.hash_occupancy) => Some("`hash-occupancy`, 1 to 100"),
            () if self.hash_ways > 64 => Some("`hash-ways`, at most 64"),
            () if !self.containers.iter().all(registers) => Some("`containers` with `bits`"),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ir::Sources;

    #[test]
    fn all_devices_are_read_and_bear_their_names() {
        for name in Hardware::names() {
            let hardware = Hardware::known(name).expect(name);
            assert_eq!(hardware.name, name);
            assert!(!hardware.about.is_empty(), "{name}");
        }
        let Room::Tables(tables) = Hardware::known("noviflow-1132").unwrap().room else { panic!() };
        assert_eq!((tables.len(), tables[54].modes[0].entries), (55, Some(4096)));
        let unknown = Hardware::known("noviflow").unwrap_err();
        assert!(unknown.starts_with("there is no device 'noviflow'"), "{unknown}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let tofino = Hardware::file("tofino-1").unwrap();
        let found = |text: &str| {
            let mut sources = Sources::new();
            let file = sources.add("mine.yaml", text);
            let found = Hardware::parse(file, text).expect_err(text);
            let at = found[0].labels.first().map(|label| sources.landmark(label.span));
            format!("{}: {}", at.unwrap_or_default(), found[0].message)
        };
        let unknown = found(&tofino.replace("map-rams: 48", "map-ram: 48"));
        assert!(unknown.contains("map-ram"), "{unknown}");
        let none = found(&tofino.replace("count: 12", "count: 0"));
        assert!(none.contains("1 to 256 of them"), "{none}");
        assert_eq!(
            found("name: x\nabout: y\n"),
            "mine.yaml:1: a device has one of `stages`, `tables` and `instructions`"
        );
        let many = found("name: x\ntables:\n  - count: 4000000000\n");
        assert_eq!(many, "mine.yaml:3: a device has at most 4096 tables");
    }

    #[test]
    fn nothing_hostile_crashes_it() {
        let mut random = fastrand::Rng::with_seed(2);
        for round in 0..2000 {
            let name = Hardware::names().nth(round % KNOWN.len()).unwrap();
            let mut text = Hardware::file(name).unwrap().as_bytes().to_vec();
            for _ in 0..random.usize(1..6) {
                let at = random.usize(..text.len().max(1));
                if at >= text.len() {
                    break;
                }
                match random.u8(..3) {
                    0 => {
                        text[at] =
                            random.choice(b"{}[]:&*!|>-# \n0123456789").copied().unwrap_or(b'x')
                    }
                    1 => drop(text.remove(at)),
                    _ => text.truncate(at.max(1)),
                }
            }
            let _ = Hardware::parse(FileId(0), &String::from_utf8_lossy(&text));
        }
    }
}
