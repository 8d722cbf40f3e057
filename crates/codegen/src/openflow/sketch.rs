//! What the tables of an artefact match, hold and write: for those who ask whether it fits a switch.

use std::collections::{BTreeMap, BTreeSet};

use super::emit::Emitted;
use super::flow::{Action, Field, Flow};
use crate::Tables;
use crate::stages::{self, FieldId, Key, MatchKind, Pipeline, Table, TableId};

/// How a field is matched by a table's entries.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Entries that name all of its bits.
    whole: u64,
    /// Entries that name the first of its bits.
    prefixes: u64,
    /// Entries that name others.
    masks: u64,
}

/// A table.
#[derive(Clone, Debug, Default)]
struct Sketch {
    entries: u64,
    uses: BTreeMap<Field, Use>,
    writes: BTreeSet<Field>,
    origins: Vec<String>,
}

/// Elements that a table is said to come from.
const MOST_ORIGINS: usize = 3;

impl Sketch {
    fn entry(&mut self, flow: &Flow) {
        self.entries += 1;
        for bits in &flow.when {
            let of = self.uses.entry(common(bits.field)).or_default();
            let free = bits.field.ones() & !bits.mask;
            match free {
                0 => of.whole += 1,
                _ if free & (free + 1) == 0 => of.prefixes += 1,
                _ => of.masks += 1,
            }
        }
        let set = flow.actions.iter().filter_map(|action| match action {
            Action::PushVlan(_) | Action::PopVlan => Some(Field::VlanId),
            Action::Set(field, _) => Some(*field),
            Action::DecTtl => Some(Field::IpTtl),
            Action::Output(_) | Action::Meter(_) => None,
            Action::Other(_) | Action::OtherInstruction(_) => None,
        });
        self.writes.extend(set.chain(flow.metadata.map(|_| Field::Metadata)).map(common));
    }

    fn origin(&mut self, origin: &str) {
        if self.origins.len() < MOST_ORIGINS && !self.origins.iter().any(|known| known == origin) {
            self.origins.push(origin.into());
        }
    }
}

/// Tables that follow one another.
pub(super) fn tables(emitted: Emitted) -> Tables {
    let Emitted { entries, steps } = emitted;
    let mut sketches = vec![Sketch::default(); steps.len()];
    for entry in &entries {
        let table = usize::from(entry.flow.table);
        let Some(sketch) = sketches.get_mut(table) else { continue };
        sketch.entry(&entry.flow);
        // The first table is that of ports.
        if table > 0 {
            sketch.origin(&entry.origin);
        }
    }
    let mut pipeline = Pipeline::default();
    let mut known: BTreeMap<Field, FieldId> = BTreeMap::new();
    for (number, sketch) in sketches.into_iter().enumerate() {
        let mut field = |of: Field| {
            let (name, bits) = described(of);
            *known.entry(of).or_insert_with(|| pipeline.field(name, bits, None))
        };
        let keys: Vec<Key> = sketch
            .uses
            .iter()
            .map(|(of, uses)| {
                let kind = match uses {
                    Use { whole, .. } if *whole == sketch.entries => MatchKind::Exact,
                    Use { masks: 0, prefixes: 0, .. } => MatchKind::Optional,
                    Use { masks: 0, .. } => MatchKind::Lpm,
                    _ => MatchKind::Ternary,
                };
                Key { field: field(*of), kind }
            })
            .collect();
        let writes: Vec<FieldId> = sketch.writes.iter().map(|of| field(*of)).collect();
        let before = number.checked_sub(1).map(|before| TableId(before as u32));
        pipeline.table(Table {
            name: number.to_string(),
            origin: match sketch.origins.is_empty() {
                true => "where frames come in".into(),
                false => sketch.origins.join(", "),
            },
            keys,
            actions: vec![stages::Action {
                name: "act".into(),
                writes,
                ..stages::Action::default()
            }],
            entries: sketch.entries,
            after: before.into_iter().collect(),
            counters: true,
            ..Table::default()
        });
    }
    Tables { pipeline, steps }
}

/// Fields of protocols that exclude each other are one, and so are those that hold a state's number.
fn common(field: Field) -> Field {
    match field {
        Field::Register0 => Field::Metadata,
        Field::UdpSrc | Field::SctpSrc => Field::TcpSrc,
        Field::UdpDst | Field::SctpDst => Field::TcpDst,
        _ => field,
    }
}

/// What such a field is called, and its bits.
fn described(field: Field) -> (&'static str, u32) {
    match field {
        // Numbers of states have no more bits.
        Field::Metadata => ("metadata", 32),
        Field::TcpSrc => ("l4_src", 16),
        Field::TcpDst => ("l4_dst", 16),
        _ => (field.name(), field.width().into()),
    }
}
