//! What entries of flow tables are called, and the values that lookups in them give.

use ir::model::StateKind;

/// A kind of flow table.
pub(super) struct Table {
    /// Name of the state, and how many values a lookup gives.
    is: (&'static str, usize),
    /// What an entry is.
    pub(super) entry: &'static str,
    /// What a lookup gives.
    values: &'static [&'static str],
}

/// Which of two directions of a flow a packet has.
pub(super) const DIRECTION: &str = "direction";
/// When an entry was made or confirmed.
pub(super) const LEARNED: &str = "time of confirmation";

const TABLES: [Table; 4] = [
    Table {
        is: ("flows", 10),
        entry: "flow",
        values: &[
            "new source address",
            "new source port",
            "new destination address",
            "new destination port",
            "output",
            DIRECTION,
            "connection state",
            "input",
            "protocol",
            "annotation",
        ],
    },
    Table {
        is: ("flows", 5),
        entry: "flow",
        values: &[
            "source address",
            "source port",
            "destination address",
            "destination port",
            "output",
        ],
    },
    Table { is: ("neighbours", 2), entry: "neighbour", values: &["MAC address", LEARNED] },
    Table { is: ("addresses", 1), entry: "MAC address", values: &["output"] },
];

impl Table {
    /// That of other elements.
    pub(super) const UNKNOWN: Self = Self { is: ("", 0), entry: "flow", values: &[] };

    /// The kind of a state.
    pub(super) fn of(name: &str, kind: &StateKind) -> &'static Self {
        let StateKind::Flows { widths, .. } = kind else { return &Self::UNKNOWN };
        TABLES.iter().find(|table| table.is == (name, widths.len())).unwrap_or(&Self::UNKNOWN)
    }

    /// What the value at this place is called.
    pub(super) fn value(&self, index: u8) -> Option<&'static str> {
        self.values.get(usize::from(index)).copied()
    }
}
