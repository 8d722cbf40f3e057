//! Patterns: what Classifier, IPClassifier and IPFilter decide by.
//!
//! A pattern is parsed ([`language`], [`primitive`]) into a tree of tests ([`expr`]), which is
//! the meaning: it becomes a condition of the model. To be executed, a list of rules becomes
//! a classifier's cubes ([`cubes`]) or a program of tests and jumps ([`program`]); [`engine`]
//! chooses. [`filter`] is the list of rules, which may change.

#[cfg(test)]
mod agreement;
pub(crate) mod class_bench;
mod cubes;
mod engine;
mod expr;
mod filter;
pub(crate) mod iptables;
mod language;
pub(crate) mod nftables;
mod primitive;
mod program;
mod text;
mod version;

pub(crate) use expr::{Origin, PacketBytes, Pattern};
pub(crate) use filter::{Filter, Rule};
pub(crate) use language::{parse, parse_words};
pub(crate) use primitive::Vocabulary;
pub(crate) use program::{Headers, Program};
pub(crate) use text::{Text, Word, Wrong, words};
pub(crate) use version::Version;
