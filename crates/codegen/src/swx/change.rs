//! Changes of tables. One that matches by masks is built anew as a whole when an entry changes, which takes seconds for
//! thousands of entries. So a long one has a small table in front of it, which says what becomes of packets that a change is about,
//! whatever the long one still holds. Sooner or later that is built anew, beside the packets, and the small one is empty again.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::spec::{Spec, TableEntry};

/// Entries of a table that is not built anew for each change.
pub(super) const LONG: usize = 256;

/// Entries that the table in front has room for.
pub(super) const ROOM: usize = 1024;

/// Entries in front from which on the long table is built anew.
const MANY: usize = 128;

/// The table in front of a long one.
#[must_use]
pub fn in_front_of(table: &str) -> String {
    format!("{table}_changes")
}

/// Entries by table, in the order in which they count.
pub type Entries = BTreeMap<String, Vec<TableEntry>>;

/// An entry that a table loses, or gets, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The table, and the entry that is deleted.
    Delete(String, String),
    /// The table, and the entry that is added.
    Add(String, String),
}

/// What the tables of a pipeline hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    tables: Entries,
}

fn mask(of: (u128, Option<u128>)) -> (u128, u128) {
    (of.0, of.1.unwrap_or(u128::MAX))
}

type Cube = Vec<(u128, Option<u128>)>;

/// What two entries match both, if there is something.
fn meet(a: &Cube, b: &Cube) -> Option<Cube> {
    let both = a.iter().zip(b).map(|(a, b)| {
        let ((a, of_a), (b, of_b)) = (mask(*a), mask(*b));
        ((a ^ b) & of_a & of_b == 0).then_some((a | b, Some(of_a | of_b)))
    });
    both.collect()
}

fn same(a: &Cube, b: &Cube) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| mask(*a) == mask(*b))
}

/// Entries that come before those of a list and make it another list: they say for all packets that an entry which came, went or
/// changed matches what the other list says. `otherwise` is the action where nothing matches. None if the lists differ in more
/// than single entries, or there would be more than 1,024 of them.
#[must_use]
pub fn overrides(
    old: &[TableEntry],
    new: &[TableEntry],
    otherwise: &str,
) -> Option<Vec<TableEntry>> {
    fn says(of: &TableEntry) -> (&Cube, &String, &Vec<(String, u128)>) {
        (&of.matches, &of.action, &of.arguments)
    }
    let [in_old, in_new] = [old, new].map(|all| all.iter().map(says).collect::<HashSet<_>>());
    let stay = |of: &&TableEntry| in_old.contains(&says(of)) && in_new.contains(&says(of));
    if !old.iter().filter(stay).map(says).eq(new.iter().filter(stay).map(says)) {
        return None;
    }
    let changed = old.iter().chain(new).filter(|of| !stay(of));
    let mut all: Vec<TableEntry> = Vec::new();
    let mut seen: HashSet<Cube> = HashSet::new();
    let mut push = |matches: Cube, of: &TableEntry| {
        if seen.insert(matches.clone()) {
            all.push(TableEntry { line: 0, matches, priority: all.len() as u32, ..of.clone() });
        }
        all.len() <= ROOM
    };
    for of in changed {
        let cube = &of.matches;
        let mut is_covered = false;
        for entry in new {
            let Some(both) = meet(cube, &entry.matches) else { continue };
            is_covered = same(&both, cube);
            if !push(both, entry) {
                return None;
            }
            if is_covered {
                break;
            }
        }
        let rest = TableEntry { action: otherwise.into(), arguments: Vec::new(), ..of.clone() };
        if !is_covered && !push(cube.clone(), &rest) {
            return None;
        }
    }
    Some(all)
}

impl Held {
    /// What has to be done for tables to hold other entries than these, and what they hold then. Long tables stay, as long as
    /// those in front of them have room.
    #[must_use]
    pub fn change(&self, spec: &Spec, new: &Entries) -> (Vec<Edit>, Self) {
        let none = Vec::new();
        let mut tables = new.clone();
        for table in &spec.tables {
            let front = in_front_of(&table.name);
            let Some(held) = self.tables.get(&table.name).filter(|_| new.contains_key(&front))
            else {
                continue;
            };
            let wanted = new.get(&table.name).unwrap_or(&none);
            if let Some(before) = overrides(held, wanted, &table.default) {
                tables.insert(table.name.clone(), held.clone());
                tables.insert(front, before);
            }
        }
        let held = Self { tables };
        (self.edits(&held), held)
    }

    /// Whether so much is in front of a long table that it should be [built anew](Self::fold).
    #[must_use]
    pub fn is_full(&self) -> bool {
        let is_front = |name: &str| self.tables.keys().any(|table| in_front_of(table) == *name);
        self.tables.iter().any(|(name, all)| all.len() > MANY && is_front(name))
    }

    /// What has to be done for long tables to hold all themselves, and nothing to be in front of them.
    #[must_use]
    pub fn fold(&self, new: &Entries) -> (Vec<Edit>, Self) {
        let held = Self { tables: new.clone() };
        (self.edits(&held), held)
    }

    /// What becomes other entries.
    fn edits(&self, new: &Self) -> Vec<Edit> {
        let none = Vec::new();
        let mut all = Vec::new();
        let lines = |entries: &[TableEntry]| {
            entries.iter().map(TableEntry::to_string).collect::<BTreeSet<_>>()
        };
        let names: BTreeSet<&String> = self.tables.keys().chain(new.tables.keys()).collect();
        for name in names {
            let of = |held: &Self| lines(held.tables.get(name).unwrap_or(&none));
            let (before, after) = (of(self), of(new));
            let delete =
                before.difference(&after).map(|line| Edit::Delete(name.clone(), line.clone()));
            all.extend(delete);
            all.extend(after.difference(&before).map(|line| Edit::Add(name.clone(), line.clone())));
        }
        all
    }
}

/// The entry of a list that matches numbers, by its place.
#[must_use]
pub fn first(all: &[TableEntry], numbers: &[u128]) -> Option<usize> {
    all.iter().position(|entry| {
        entry.matches.iter().zip(numbers).all(|(of, number)| {
            let (value, mask) = mask(*of);
            (value ^ number) & mask == 0
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of rules on two numbers of 4 bits.
    fn list(random: &mut fastrand::Rng, count: usize) -> Vec<TableEntry> {
        let mut seen: HashSet<Cube> = HashSet::new();
        let mut all = Vec::new();
        while all.len() < count {
            let mut one = || {
                let mask = [0, 8, 12, 14, 15][random.usize(..5)];
                (random.u128(..16) & mask, Some(mask))
            };
            let matches = vec![one(), one()];
            if seen.insert(matches.clone()) {
                let arguments = vec![("arm".into(), random.u128(1..4))];
                let priority = all.len() as u32;
                let (action, wide) = ("go".into(), Vec::new());
                all.push(TableEntry { line: 0, matches, priority, action, arguments, wide });
            }
        }
        all
    }

    #[test]
    fn overrides_make_a_list_another_one() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let old = list(&mut random, 12);
            let mut new = old.clone();
            for _ in 0..random.usize(1..4) {
                match random.u8(..3) {
                    0 => drop(new.remove(random.usize(..new.len()))),
                    1 => {
                        let at = random.usize(..new.len());
                        new[at].arguments[0].1 = random.u128(1..4);
                    }
                    _ => {
                        let added = list(&mut random, 1).remove(0);
                        if !new.iter().any(|of| of.matches == added.matches) {
                            new.insert(random.usize(..=new.len()), added);
                        }
                    }
                }
            }
            let before = overrides(&old, &new, "otherwise").expect("single entries differ");
            for a in 0..16 {
                for b in 0..16 {
                    let says = |all: &[TableEntry]| {
                        let at = first(all, &[a, b])?;
                        let entry = &all[at];
                        Some((entry.action.clone(), entry.arguments.clone()))
                    };
                    let is_default = |of: &(String, Vec<(String, u128)>)| of.0 != "otherwise";
                    let together = says(&before).or_else(|| says(&old)).filter(is_default);
                    assert_eq!(together, says(&new), "{a} {b}: {old:?} {new:?} {before:?}");
                }
            }
        }
    }

    #[test]
    fn an_order_that_changes_is_no_change_of_single_entries() {
        let mut random = fastrand::Rng::with_seed(1);
        let old = list(&mut random, 12);
        let mut new = old.clone();
        new.swap(2, 7);
        assert_eq!(overrides(&old, &new, "otherwise"), None);
        assert_eq!(overrides(&old, &old, "otherwise"), Some(Vec::new()));
    }
}
