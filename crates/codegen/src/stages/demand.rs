//! What tables take of a stage.

use std::fmt;

use super::bits::Bits;
use super::hardware::Stages;
use super::pipeline::{Decision, FieldId, MatchKind, Pipeline, Table};

/// What a stage has a bounded number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Tables.
    Tables,
    /// Tables that are looked up by masks.
    TernaryTables,
    /// Blocks of SRAM.
    Sram,
    /// Blocks of TCAM.
    Tcam,
    /// Blocks that count or meter.
    MapRams,
    /// Bytes that tables without masks see.
    ExactCrossbar,
    /// Groups of bytes that tables with masks see.
    TernaryGroups,
    /// Hash functions.
    HashGroups,
    /// Actions.
    Instructions,
    /// Units that count.
    Statistics,
    /// Units that keep more than counts.
    Meters,
}

impl Resource {
    /// All.
    pub const ALL: [Self; 11] = [
        Self::Tables,
        Self::TernaryTables,
        Self::Sram,
        Self::Tcam,
        Self::MapRams,
        Self::ExactCrossbar,
        Self::TernaryGroups,
        Self::HashGroups,
        Self::Instructions,
        Self::Statistics,
        Self::Meters,
    ];

    /// How much of it a stage has.
    pub fn of(self, stages: &Stages) -> u32 {
        match self {
            Self::Tables => stages.tables,
            Self::TernaryTables => stages.ternary_tables,
            Self::Sram => stages.sram.blocks,
            Self::Tcam => stages.tcam.blocks,
            Self::MapRams => stages.map_rams,
            Self::ExactCrossbar => stages.exact_crossbar_bytes,
            Self::TernaryGroups => stages.ternary_groups,
            Self::HashGroups => stages.hash_groups,
            Self::Instructions => stages.instructions,
            Self::Statistics => stages.statistics,
            Self::Meters => stages.meters,
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::TernaryTables => "ternary tables",
            Self::Sram => "blocks of SRAM",
            Self::Tcam => "blocks of TCAM",
            Self::MapRams => "map RAMs",
            Self::ExactCrossbar => "bytes of the exact crossbar",
            Self::TernaryGroups => "ternary groups",
            Self::HashGroups => "hash groups",
            Self::Instructions => "instructions",
            Self::Statistics => "statistics ALUs",
            Self::Meters => "meter ALUs",
        }
    }

    /// A short name without spaces.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tables => "tables",
            Self::TernaryTables => "ternary-tables",
            Self::Sram => "sram",
            Self::Tcam => "tcam",
            Self::MapRams => "map-rams",
            Self::ExactCrossbar => "exact-crossbar-bytes",
            Self::TernaryGroups => "ternary-groups",
            Self::HashGroups => "hash-groups",
            Self::Instructions => "instructions",
            Self::Statistics => "statistics",
            Self::Meters => "meters",
        }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An amount of each resource.
pub type Amounts = [u32; Resource::ALL.len()];

/// What is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// Of what.
    pub resource: Resource,
    /// How much is needed.
    pub needed: u32,
    /// How much is free.
    pub free: u32,
}

/// How the entries of a table lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// No entries.
    Always,
    /// So many entries in a row of so many blocks.
    Hashed { entries: u64, blocks: u64 },
    /// A row is so many blocks wide.
    Masked { blocks: u64 },
}

/// What a table takes of a stage, whichever part of its entries lies there.
#[derive(Clone, Debug)]
pub(super) struct Demand {
    /// Without memory and the crossbar.
    fixed: Amounts,
    /// Fields that it sees on the crossbar of exact matches.
    pub(super) seen: Bits,
    format: Format,
    /// Bits of arguments that take memory of their own; 0 if they lie with the entries.
    data: u64,
    /// Whether masks lead to actions by a table of their own.
    indirect: bool,
    counters: bool,
    meters: bool,
    /// Entries of all parts together.
    pub(super) entries: u64,
}

/// Counters of a row of SRAM, and what is kept more than counts.
const COUNTERS_OF_A_ROW: u64 = 2;

/// Bits with which an entry tells its version, its action, and where its arguments lie.
const VERSION: u64 = 4;
const POINTER: u64 = 17;

/// Most blocks that a row of a hash table is wide.
const WIDEST: u64 = 8;

impl Demand {
    pub(super) fn new(pipeline: &Pipeline, table: &Table, stages: &Stages) -> Self {
        let width = |field: FieldId| pipeline.fields[field.0 as usize].bits;
        let mut keys = table.keys.clone();
        keys.sort_unstable();
        keys.dedup_by_key(|key| key.field);
        let mut seen = Bits::default();
        for guard in &table.guards {
            if let Decision::Fields(fields) = &pipeline.branches[guard.branch.0 as usize].on {
                fields.iter().for_each(|field| seen.insert(field.0 as usize));
            }
        }
        let bits: u64 = keys
            .iter()
            .map(|key| {
                let bits = u64::from(width(key.field));
                // Ranges of four bits take as much as eight bits under masks.
                if key.kind == MatchKind::Range { 2 * bits } else { bits }
            })
            .sum();
        let actions =
            table.actions.iter().filter(|action| !action.writes.is_empty()).count() as u64;
        let largest = table.actions.iter().map(|action| u64::from(action.data)).max().unwrap_or(0);
        let immediate = largest <= u64::from(stages.immediate_bits);
        let mut fixed = Amounts::default();
        fixed[Resource::Tables as usize] = 1;
        fixed[Resource::Instructions as usize] = u32::try_from(actions).unwrap_or(u32::MAX);
        fixed[Resource::Statistics as usize] = table.counters.into();
        fixed[Resource::Meters as usize] = table.meters.into();
        let format = if keys.is_empty() {
            Format::Always
        } else if table.is_ternary() {
            let blocks = bits.div_ceil(stages.tcam.bits.into()).max(1);
            let bytes: u64 = keys.iter().map(|key| u64::from(width(key.field).div_ceil(8))).sum();
            let groups = bytes.div_ceil(stages.ternary_group_bytes.into()).min(blocks.max(1));
            fixed[Resource::TernaryTables as usize] = 1;
            fixed[Resource::TernaryGroups as usize] = u32::try_from(groups).unwrap_or(u32::MAX);
            Format::Masked { blocks }
        } else {
            keys.iter().for_each(|key| seen.insert(key.field.0 as usize));
            fixed[Resource::HashGroups as usize] = 1;
            let choice = u64::from(usize::BITS - table.actions.len().leading_zeros());
            let entry = bits + VERSION + choice + if immediate { largest } else { POINTER };
            let row = u64::from(stages.sram.bits);
            // Most entries to a block; of equals, the narrowest row.
            let fits = (1..=WIDEST).map(|blocks| (blocks * row / entry, blocks));
            let best = fits.filter(|(entries, _)| *entries > 0).reduce(|best, other| {
                if other.0 * best.1 > best.0 * other.1 { other } else { best }
            });
            let (entries, blocks) = best.unwrap_or((1, entry.div_ceil(row)));
            Format::Hashed { entries, blocks }
        };
        let indirect = matches!(format, Format::Masked { .. }) && (actions > 1 || largest > 0);
        let data = if immediate || format == Format::Always { 0 } else { largest };
        Self {
            fixed,
            seen,
            format,
            data,
            indirect,
            counters: table.counters,
            meters: table.meters,
            entries: if format == Format::Always { 1 } else { table.entries.max(1) },
        }
    }

    /// What a part with so many entries takes, without the crossbar.
    pub(super) fn amounts(&self, entries: u64, stages: &Stages) -> Amounts {
        let mut all = self.fixed;
        let rows = u64::from(stages.sram.rows);
        let mut sram = match self.format {
            Format::Hashed { entries: of_row, blocks } => {
                let full = of_row * rows * u64::from(stages.hash_occupancy);
                (entries * 100).div_ceil(full).max(stages.hash_ways.into()) * blocks
            }
            _ => 0,
        };
        if let Format::Masked { blocks } = self.format {
            let depth = entries.div_ceil(stages.tcam.rows.into());
            all[Resource::Tcam as usize] = u32::try_from(blocks * depth).unwrap_or(u32::MAX);
        }
        if self.indirect {
            sram += entries.div_ceil(2 * rows);
        }
        if self.data > 0 {
            // Arguments lie in pieces of a power of two.
            let piece = self.data.next_power_of_two().max(8);
            let row = u64::from(stages.sram.bits);
            sram += match row / piece {
                0 => entries.div_ceil(rows) * piece.div_ceil(row),
                of_row => entries.div_ceil(of_row * rows),
            };
        }
        let mut maps = 0;
        // One block more, so that a row is read while another is written.
        if self.counters {
            maps += entries.div_ceil(COUNTERS_OF_A_ROW * rows) + 1;
        }
        if self.meters {
            maps += entries.div_ceil(rows) + 1;
        }
        all[Resource::Sram as usize] = u32::try_from(sram + maps).unwrap_or(u32::MAX);
        all[Resource::MapRams as usize] = u32::try_from(maps).unwrap_or(u32::MAX);
        all
    }

    /// The step by which parts grow.
    pub(super) fn step(&self, stages: &Stages) -> u64 {
        match self.format {
            Format::Always => 1,
            Format::Hashed { entries, .. } => {
                (entries * u64::from(stages.sram.rows) * u64::from(stages.hash_occupancy) / 100)
                    .max(1)
            }
            Format::Masked { .. } => stages.tcam.rows.into(),
        }
    }
}

/// What is taken of a stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    amounts: Amounts,
    seen: Bits,
}

impl Taken {
    /// What is short for a part.
    pub(super) fn lacks(
        &self,
        demand: &Demand,
        more: &Amounts,
        widths: &[u32],
        stages: &Stages,
    ) -> Option<Shortage> {
        let crossbar = Resource::ExactCrossbar;
        let new = demand.seen.iter().filter(|field| !self.seen.contains(*field));
        let bytes = new.map(|field| widths[field].div_ceil(8)).sum::<u32>();
        Resource::ALL.into_iter().find_map(|resource| {
            let at = resource as usize;
            let needed = if resource == crossbar { bytes } else { more[at] };
            let free = resource.of(stages).saturating_sub(self.amounts[at]);
            (needed > free).then_some(Shortage { resource, needed, free })
        })
    }

    pub(super) fn take(&mut self, demand: &Demand, more: &Amounts, widths: &[u32]) {
        let new = demand.seen.iter().filter(|field| !self.seen.contains(*field));
        let bytes = new.map(|field| widths[field].div_ceil(8)).sum::<u32>();
        self.amounts.iter_mut().zip(more).for_each(|(all, more)| *all += more);
        self.amounts[Resource::ExactCrossbar as usize] += bytes;
        self.seen.add(&demand.seen);
    }

    pub(super) fn amounts(&self) -> &Amounts {
        &self.amounts
    }
}
