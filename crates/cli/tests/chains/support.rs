//! What the tests of whole chains share.

pub use lab::chain::*;
