//! Symbolic execution, as far as readers share it: numbers as terms, places as steps, what leaves as exits.

pub(crate) mod graph;
pub(crate) mod output;
pub(crate) mod terms;
