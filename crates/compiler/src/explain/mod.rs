//! What a user may ask of a chain: which packets get where and what becomes of them
//! ([`provenance`]), and which rules no packet gets to.

pub mod provenance;
mod shadow;

pub use shadow::{count_shadowed_rules, shadowed_rules};
