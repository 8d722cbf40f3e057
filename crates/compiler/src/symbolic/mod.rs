//! Symbolic execution: what becomes of every packet that comes to an input port (SNF §7.2.2.3,
//! algorithms 1 and 2), with what was written before taken into account.

pub(crate) mod cache;
pub(crate) mod draft;
mod evaluate;
pub(crate) mod execute;
pub(crate) mod facts;
pub(crate) mod packet;
pub(crate) mod rules;
pub(crate) mod simplify;
mod split;
pub(crate) mod table;
pub(crate) mod terms;

pub use rules::table_of_rules;

#[cfg(test)]
mod tests;
