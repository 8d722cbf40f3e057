//! Meaning: what packets, elements and chains mean, said once for every target.
#![forbid(unsafe_code)]

mod diagnostic;

pub use diagnostic::{
    Diagnostic, FileId, Label, LineColumn, Severity, Sources, Span, has_errors, nearest,
};
