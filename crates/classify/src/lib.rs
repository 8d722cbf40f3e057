//! Packet classification: structures that find the first of many rules that a key matches
//! ([`Classifier`]), and the longest of many prefixes ([`lpm`]).
//!
//! A key is a handful of numbers taken from a packet. This crate knows neither packets nor where
//! rules come from. [`build`] picks the structure for a set of rules by what looking keys up in
//! it costs; every structure gives the same answers. [`Updatable`] lets rules change meanwhile,
//! and [`RuleList`] those of a list by their index.

mod bit_vector;
mod block;
mod classifier;
mod linear;
pub mod lpm;
mod memory;
mod rule_list;
mod rule_set;
mod simd;
mod tree;
mod tuples;
mod updatable;

pub use bit_vector::BitVector;
pub use classifier::{Classifier, build};
pub use linear::Linear;
pub use memory::prefer_huge_pages;
pub use rule_list::{Edit, NoRoom, RuleList, edits};
pub use rule_set::{Cube, Key, MAX_DIMENSIONS, MAX_RULE, RuleSet, TooManyCubes};
pub use simd::{Instructions, Level, equal_halves, prefetch};
pub use tree::Forest;
pub use tuples::TupleSpace;
pub use updatable::{Rebuild, Rebuilt, Updatable};
