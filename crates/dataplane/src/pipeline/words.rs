//! Which columns numbers of more than 32 bits take.

use elements::flow_access::columns;
use ir::Field;
use ir::program::{LookupId, Program};

/// Bits of a word.
pub(super) const BITS: u32 = 32;

/// Where what a lookup takes and yields stands in columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// How many columns each number of the key takes; one each where it is empty.
    pub(super) key: &'static [u8],
    /// By number that is bound: its first column and how many there are.
    pub(super) numbers: Vec<(u8, u8)>,
    /// How many of the columns are the direction's.
    pub(super) values: u8,
    /// How many both directions share.
    pub(super) common: u8,
    /// Whether each of the numbers that directions share has one column.
    pub(super) shares_words: bool,
}

impl Layout {
    /// By lookup.
    pub(super) fn of(program: &Program) -> Vec<Self> {
        let one = |lookup| {
            let asked = &program.lookups[usize::from(lookup)];
            let state = program.flows_of(LookupId(lookup));
            let mut layout = Self { shares_words: true, ..Self::default() };
            for index in 0..asked.values.saturating_add(asked.common) {
                let width = state.map_or(BITS as u16, |state| state.kind.width(index.into()));
                let words = columns(width);
                layout.numbers.push((layout.values.saturating_add(layout.common), words));
                let (of, is_common) = match index < asked.values {
                    true => (&mut layout.values, false),
                    false => (&mut layout.common, true),
                };
                *of = of.saturating_add(words);
                layout.shares_words &= !is_common || words == 1;
            }
            layout
        };
        (0..program.lookups.len() as u16).map(one).collect()
    }
}

/// The word of this number of a field, if it has one.
pub(super) fn part(field: Field, word: u8) -> Option<Field> {
    let behind = u32::from(word) * BITS;
    let left = u32::from(field.width).checked_sub(behind).filter(|bits| *bits > 0)?;
    let width = left.min(BITS);
    Some(Field { offset: field.offset + (left - width) as u16, width: width as u16, ..field })
}
