//! Entries of one priority: a switch takes any of those that match, so none may contradict another.

use std::collections::{BTreeMap, HashMap};

use super::text::{Entry, Name};
use crate::draft::Failure;

type Masks = Vec<(Name, u128)>;

/// # Errors
/// The later of two entries that match one packet, have one priority and do different things.
pub(super) fn check(entries: &[Entry]) -> Result<(), Failure> {
    let mut groups: BTreeMap<(u8, u16), BTreeMap<Masks, Vec<&Entry>>> = BTreeMap::new();
    for entry in entries {
        let masks = entry.when.iter().map(|bits| (bits.name, bits.mask)).collect();
        let group = groups.entry((entry.table, entry.priority)).or_default();
        group.entry(masks).or_default().push(entry);
    }
    for shapes in groups.values() {
        let shapes: Vec<_> = shapes.iter().collect();
        for (at, (masks, entries)) in shapes.iter().enumerate() {
            for (others, more) in &shapes[at..] {
                meet(masks, entries, others, more)?;
            }
        }
    }
    Ok(())
}

fn meet(a: &Masks, first: &[&Entry], b: &Masks, second: &[&Entry]) -> Result<(), Failure> {
    // Two entries meet if they agree where both look.
    let common: Masks = a
        .iter()
        .filter_map(|(name, mask)| {
            let other = b.iter().find(|other| other.0 == *name)?;
            Some((*name, mask & other.1)).filter(|both| both.1 != 0)
        })
        .collect();
    let numbers = |entry: &Entry| -> Vec<u128> {
        let of = |(name, mask): &(Name, u128)| {
            entry.when.iter().find(|bits| bits.name == *name).map_or(0, |bits| bits.value & mask)
        };
        common.iter().map(of).collect()
    };
    let mut known: HashMap<Vec<u128>, &Entry> = HashMap::with_capacity(first.len());
    let same = |a: &Entry, b: &Entry| a.acts == b.acts && a.cookie == b.cookie;
    let both = |a: &Entry, b: &Entry| {
        let message =
            format!("it and line {} have one priority and match one packet", a.line.min(b.line));
        Err((a.line.max(b.line), message))
    };
    for entry in first {
        if let Some(other) = known.insert(numbers(entry), entry)
            && !same(entry, other)
            && std::ptr::eq(first, second)
        {
            return both(entry, other);
        }
    }
    for entry in second {
        if let Some(other) = known.get(&numbers(entry))
            && entry.line != other.line
            && !same(entry, other)
        {
            return both(entry, other);
        }
    }
    Ok(())
}
