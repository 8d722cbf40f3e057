//! What people look at: reports of what a chain becomes, explanations of what it does to packets, drawings, and
//! diagnostics with the lines that they are about.
//!
//! All of it is pure: from what the compiler and the data plane know to text, JSON, SVG or DOT. Who prints it, and where,
//! is not decided here.
#![forbid(unsafe_code)]

pub mod candidates;
pub mod diagnostics;
pub mod dot;
pub mod explain;
pub mod flame;
pub mod json;
mod layout;
pub mod offload;
pub mod paint;
pub mod picture;
pub mod placement;
pub mod rack;
pub mod stages;
pub mod summary;
pub mod svg;
pub mod synth;
pub mod table;
