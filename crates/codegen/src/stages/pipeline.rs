//! A pipeline of match-action tables, as plain data.

use std::fmt;

/// Fields of a pipeline are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub u32);

/// Tables of a pipeline are numbered in the order in which packets meet them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// Branches of a pipeline are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchId(pub u32);

/// A field of a header, or of metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, such as `ipv4.dst`.
    pub name: String,
    /// Its width.
    pub bits: u32,
    /// The header that it is a part of. A header's fields stand next to each other, in the order of the
    /// pipeline's fields. Metadata is in no header.
    pub header: Option<String>,
}

/// How a key is compared with entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchKind {
    /// All bits.
    Exact,
    /// A longest prefix.
    Lpm,
    /// Bits under a mask.
    Ternary,
    /// From a number to a number.
    Range,
    /// All bits, or none.
    Optional,
}

impl fmt::Display for MatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MatchKind::Exact => "exact",
            MatchKind::Lpm => "lpm",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
        })
    }
}

/// A part of a table's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The field.
    pub field: FieldId,
    /// How it is matched.
    pub kind: MatchKind,
}

/// What a table may do with a packet. All of it happens at once: what is read was written by earlier tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// Fields that it reads.
    pub reads: Vec<FieldId>,
    /// Fields that it writes.
    pub writes: Vec<FieldId>,
    /// Bits of each entry that are its arguments.
    pub data: u32,
}

/// Where packets part: each takes one of the arms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// How many tables come before it.
    pub at: u32,
    /// What decides.
    pub on: Decision,
}

/// What decides which arm a packet takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Fields. Arms are exclusive sets of their numbers.
    Fields(Vec<FieldId>),
    /// By which of its outcomes a table ended: a hit, a miss, or an action.
    Outcome(TableId),
}

/// Packets that a table is applied to: those that took one of these arms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The branch.
    pub branch: BranchId,
    /// Its arms, in order.
    pub arms: Vec<u32>,
}

/// A match-action table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The element that it comes from, with file and line.
    pub origin: String,
    /// Its key; none if its action is always the same.
    pub keys: Vec<Key>,
    /// What it may do.
    pub actions: Vec<Action>,
    /// Entries.
    pub entries: u64,
    /// All of these hold where it is applied, those of enclosing branches, too.
    pub guards: Vec<Guard>,
    /// Earlier tables on whose outcome it depends whether it is applied, beside the guards.
    pub after: Vec<TableId>,
    /// Whether its entries count packets.
    pub counters: bool,
    /// Whether its entries keep more than counts: meters, registers.
    pub meters: bool,
}

impl Table {
    /// Whether it is looked up by masks.
    pub fn is_ternary(&self) -> bool {
        self.keys.iter().any(|key| key.kind != MatchKind::Exact)
    }

    /// Whether it does nothing.
    pub(super) fn is_idle(&self) -> bool {
        !self.counters && !self.meters && self.actions.iter().all(|action| action.writes.is_empty())
    }
}

/// Tables in the order in which packets meet them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipeline {
    /// Fields.
    pub fields: Vec<Field>,
    /// Branches.
    pub branches: Vec<Branch>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// Widest field, and most entries and bits of data: what lies above is a mistake, and sums below do not overflow.
const MOST: u64 = 1 << 32;

impl Pipeline {
    /// A new field.
    pub fn field(&mut self, name: &str, bits: u32, header: Option<&str>) -> FieldId {
        let id = FieldId(self.fields.len() as u32);
        self.fields.push(Field { name: name.into(), bits, header: header.map(str::to_string) });
        id
    }

    /// A new branch behind the tables that there are.
    pub fn branch(&mut self, on: Decision) -> BranchId {
        let id = BranchId(self.branches.len() as u32);
        self.branches.push(Branch { at: self.tables.len() as u32, on });
        id
    }

    /// A new table behind those that there are.
    pub fn table(&mut self, table: Table) -> TableId {
        let id = TableId(self.tables.len() as u32);
        self.tables.push(table);
        id
    }

    /// The name of a field.
    pub fn name(&self, field: FieldId) -> &str {
        self.fields.get(field.0 as usize).map_or("?", |field| &field.name)
    }

    /// Whether its parts belong together.
    ///
    /// # Errors
    /// What does not, in words.
    pub fn check(&self) -> Result<(), String> {
        for field in &self.fields {
            if field.bits == 0 || field.bits > 1 << 16 {
                return Err(format!("field '{}' has {} bits", field.name, field.bits));
            }
        }
        let known = |field: &FieldId| (field.0 as usize) < self.fields.len();
        for branch in &self.branches {
            let right = match &branch.on {
                Decision::Fields(fields) => fields.iter().all(known),
                Decision::Outcome(table) => table.0 < branch.at,
            };
            if !right || branch.at as usize > self.tables.len() {
                return Err("a branch depends on what is not known there".into());
            }
        }
        for (at, table) in self.tables.iter().enumerate() {
            let name = &table.name;
            let mut used = table.keys.iter().map(|key| key.field).chain(
                table
                    .actions
                    .iter()
                    .flat_map(|action| action.reads.iter().chain(&action.writes).copied()),
            );
            if !used.all(|field| known(&field)) {
                return Err(format!("table '{name}' uses a field that is not there"));
            }
            let before = |guard: &Guard| {
                let branch = self.branches.get(guard.branch.0 as usize);
                branch.is_some_and(|branch| branch.at as usize <= at) && !guard.arms.is_empty()
            };
            if !table.guards.iter().all(before) || table.after.iter().any(|t| t.0 as usize >= at) {
                return Err(format!("table '{name}' depends on what comes behind it"));
            }
            if table.entries > MOST || table.actions.iter().any(|a| u64::from(a.data) > MOST / 1024)
            {
                return Err(format!("table '{name}' has {} entries", table.entries));
            }
        }
        Ok(())
    }

    /// Whether no packet meets both tables.
    pub fn exclusive(&self, a: TableId, b: TableId) -> bool {
        let (Some(a), Some(b)) = (self.tables.get(a.0 as usize), self.tables.get(b.0 as usize))
        else {
            return false;
        };
        a.guards.iter().any(|guard| {
            let same = b.guards.iter().filter(|other| other.branch == guard.branch);
            same.into_iter().any(|other| !guard.arms.iter().any(|arm| other.arms.contains(arm)))
        })
    }
}
