//! Rules of one group and priority: a card takes any of those that match, so none may contradict another.

use std::collections::{BTreeMap, HashMap};

use super::text::{Bits, Entry, ItemField, Kind};
use crate::draft::Failure;

/// Fields that rules look at, with their masks.
type Masks = Vec<(ItemField, u128)>;

/// # Errors
/// The later of two rules that may match one packet, have one priority and do different things.
pub(super) fn check(entries: &[Entry]) -> Result<(), Failure> {
    let mut groups: BTreeMap<(u32, u32, u32), BTreeMap<Masks, Vec<&Entry>>> = BTreeMap::new();
    for entry in entries {
        let masks = said(entry).iter().map(|bits| (bits.place, bits.mask)).collect();
        let group = groups.entry((entry.port, entry.group, entry.priority)).or_default();
        group.entry(masks).or_default().push(entry);
    }
    for shapes in groups.values() {
        if shapes.len() > MOST_SHAPES {
            let line = shapes.values().flatten().map(|entry| entry.line).max().unwrap_or(0);
            return Err((
                line,
                format!("rules of one priority have {} different sets of fields", shapes.len()),
            ));
        }
        let shapes: Vec<_> = shapes.iter().collect();
        for (at, (masks, entries)) in shapes.iter().enumerate() {
            for (others, more) in &shapes[at..] {
                meet(masks, entries, others, more)?;
            }
        }
    }
    Ok(())
}

/// What a rule says, the protocol that an item stands for included.
fn said(entry: &Entry) -> Vec<Bits> {
    let mut all = entry.when.clone();
    let value = match entry.items.last() {
        Some(Kind::Tcp) => 6,
        Some(Kind::Udp) => 17,
        Some(Kind::Sctp) => 132,
        Some(Kind::Icmp) => 1,
        _ => return all,
    };
    let place = ItemField { kind: Kind::Ipv4, from: 72, width: 8 };
    if !all.iter().any(|bits| bits.place == place) {
        all.push(Bits { place, value, mask: 0xff });
        all.sort_by_key(|bits| bits.place);
    }
    all
}

/// Whether items of two rules contradict each other.
fn are_apart(a: &Entry, b: &Entry) -> bool {
    let (mut a, mut b) = (a.items.iter().peekable(), b.items.iter().peekable());
    while let (Some(x), Some(y)) = (a.next(), b.next()) {
        if x != y {
            // A tag that only one of them mentions says nothing.
            return *x != Kind::Vlan && *y != Kind::Vlan;
        }
    }
    false
}

fn meet(a: &Masks, first: &[&Entry], b: &Masks, second: &[&Entry]) -> Result<(), Failure> {
    // Two rules meet if they agree where both look.
    let common: Masks = a
        .iter()
        .filter_map(|(place, mask)| {
            let other = b.iter().find(|other| other.0 == *place)?;
            Some((*place, mask & other.1)).filter(|both| both.1 != 0)
        })
        .collect();
    let numbers = |entry: &Entry| -> Vec<u128> {
        let all = said(entry);
        let of = |(place, mask): &(ItemField, u128)| {
            all.iter().find(|bits| bits.place == *place).map_or(0, |bits| bits.value & mask)
        };
        common.iter().map(of).collect()
    };
    // By what they say in common, and their items: one of those that do the same stands for all.
    let mut known: HashMap<Vec<u128>, Vec<&Entry>> = HashMap::with_capacity(first.len());
    for entry in first {
        let there = known.entry(numbers(entry)).or_default();
        if !there.iter().any(|other| other.acts == entry.acts && other.items == entry.items) {
            there.push(entry);
        }
        if there.len() > MOST_ALIKE {
            return Err((entry.line, "too many rules have one priority".into()));
        }
    }
    for entry in second {
        let there = known.get(&numbers(entry)).map_or(&[][..], Vec::as_slice);
        let other = there.iter().find(|other| {
            other.line != entry.line && other.acts != entry.acts && !are_apart(other, entry)
        });
        if let Some(other) = other {
            let (a, b) = (other.line.min(entry.line), other.line.max(entry.line));
            let message = format!("it and line {a} have one priority and match one packet");
            return Err((b, message));
        }
    }
    Ok(())
}

/// Sets of fields that rules of one priority may have.
const MOST_SHAPES: usize = 1024;

/// Rules that do different things and say the same where they look in common.
const MOST_ALIKE: usize = 64;
