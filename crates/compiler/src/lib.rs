//! From the text of a configuration to programs that are proven to do what its elements do.
//!
//! The stages have a folder each: `frontend` turns a file into a flat [`Chain`] ([`elaborate`])
//! and makes its elements ([`instantiate`]); both report all they find, with places and help.
//! `symbolic` runs a packet of which nothing is known through the models, and [`synthesize`] makes
//! programs of it. [`prove`] compares programs with each other and with chains. [`explain`] says
//! which packets get where, and [`shadowed_rules`] which rules no packet gets to. [`classes`]
//! parts traffic for workers. [`functions`] are what placement puts somewhere. [`library`] holds network functions
//! that chains may require.
#![forbid(unsafe_code)]

pub mod classes;
pub mod explain;
mod frontend;
pub mod functions;
pub mod library;
pub mod partition;
pub mod prove;
mod symbolic;
mod synthesize;

pub use explain::{count_shadowed_rules, shadowed_rules};
pub use frontend::{
    Back, Chain, Device, Elements, Joined, JoinedPart, Joining, Limits, Options, Taken, elaborate,
    flatten, instantiate, instantiate_part, join,
};
pub use symbolic::table_of_rules;
pub use synthesize::{
    Note, Synthesis, Synthesizer, synthesize, synthesize_rare_paths, synthesize_tables,
    synthesize_unsimplified,
};
