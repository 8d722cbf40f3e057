//! From the text of a configuration to a chain that can run: compounds are expanded, names and
//! variables resolved, ports counted and their processing decided, elements configured.
//!
//! [`elaborate`] turns a file into a flat [`Chain`]; [`instantiate`] makes its elements. Both
//! report all they find, with places and help. [`shadowed_rules`] finds the rules of the elements
//! that no packet gets to.
#![forbid(unsafe_code)]

mod check;
pub mod classes;
mod connect;
mod elaborate;
pub mod equivalence;
mod expand;
mod flatten;
mod instantiate;
mod load;
mod ports;
mod processing;
pub mod provenance;
mod report;
mod scope;
mod shadow;
mod simplify;
mod stand_ins;
mod symbolic;
mod synthesize;
mod variables;
pub mod witness;

pub use elaborate::{Chain, Device, Limits, Options, elaborate};
pub use flatten::flatten;
pub use instantiate::{Elements, instantiate, instantiate_part};
pub use shadow::shadowed_rules;
pub use synthesize::{
    Note, Synthesis, Synthesizer, synthesize, synthesize_rare_paths, synthesize_tables,
    synthesize_unsimplified,
};
