//! Cells: numbers that an element keeps from packet to packet, shared with programs in its place.

use std::cell::Cell;
use std::rc::Rc;

use ir::StateValue;

use crate::element_state::ElementState;

/// The numbers of a [`ir::model::StateKind::Cells`] that a model declares, of at most 64 bits each.
/// Clones share them.
#[derive(Clone, Debug)]
pub struct Cells(Rc<[Cell<u64>]>);

impl Cells {
    /// Cells that hold these numbers.
    pub fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        Self(numbers.into_iter().map(Cell::new).collect())
    }

    /// What a cell holds; 0 if there is no such cell.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, Cell::get)
    }

    /// Writes a cell, if there is one.
    #[inline]
    pub fn set(&self, index: usize, number: u64) {
        if let Some(cell) = self.0.get(index) {
            cell.set(number);
        }
    }

    /// Whether these are the same cells.
    pub fn is(&self, other: &Cells) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "nobody has none")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes them, as the state of this name.
    pub(crate) fn export(&self, element: &str, name: &'static str, to: &mut ElementState) {
        let numbers = self.0.iter().map(|cell| cell.get().into()).collect();
        to.set(element, name, StateValue::Cells(numbers));
    }

    /// Takes them from exported state, as far as they are there.
    pub(crate) fn import(&self, element: &str, name: &str, from: &ElementState) {
        for (cell, &number) in self.0.iter().zip(from.declared.cells(element, name)) {
            cell.set(number as u64);
        }
    }
}
