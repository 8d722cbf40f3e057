//! JSON Schemas of the documents that measurements write, from the types that are written.

use std::str::FromStr;

use ir::costs::CostProfile;
use schemars::{Schema, schema_for};

use crate::report::Report;

/// A document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// A [`Report`].
    Report,
    /// A [`CostProfile`].
    Costs,
}

impl FromStr for Document {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "report" => Ok(Self::Report),
            "costs" => Ok(Self::Costs),
            _ => Err("documents are 'report' and 'costs'"),
        }
    }
}

impl Document {
    /// Its schema.
    pub fn schema(self) -> Schema {
        match self {
            Self::Report => schema_for!(Report),
            Self::Costs => schema_for!(CostProfile),
        }
    }
}
