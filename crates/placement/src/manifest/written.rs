//! A manifest as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) packet: Option<Spanned<String>>,
    pub(super) objective: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) require: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) costs: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) functions: BTreeMap<String, Function>,
    pub(super) chains: Vec<Chain>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Function {
    pub(super) cycles: Option<Spanned<f64>>,
    pub(super) card_cycles: Option<Spanned<f64>>,
    pub(super) on: Option<Vec<Spanned<String>>>,
    pub(super) replicates: Option<bool>,
    pub(super) hop: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chain {
    pub(super) name: Spanned<String>,
    pub(super) file: Option<Spanned<String>>,
    pub(super) chain: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) nfs: Vec<Nf>,
    #[serde(default)]
    pub(super) traffic: Vec<Traffic>,
    #[serde(default)]
    pub(super) splits: BTreeMap<String, Spanned<Split>>,
    #[serde(default)]
    pub(super) on: BTreeMap<String, Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) together: Vec<[Spanned<String>; 2]>,
    #[serde(default)]
    pub(super) apart: Vec<[Spanned<String>; 2]>,
    pub(super) slo: Spanned<Slo>,
}

impl Chain {
    /// Where its functions are said.
    pub(super) fn text(&self) -> &Spanned<String> {
        self.chain.as_ref().or(self.file.as_ref()).unwrap_or(&self.name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nf {
    pub(super) name: String,
    pub(super) click: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Traffic {
    #[serde(rename = "in")]
    pub(super) from: Option<String>,
    #[serde(rename = "out")]
    pub(super) to: Option<String>,
    pub(super) src: Option<Spanned<String>>,
    pub(super) dst: Option<Spanned<String>>,
    pub(super) flows: Option<u64>,
}

/// Shares of all outputs of a function, or of one; or the file of a run's counters that has them.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Split {
    One(f64),
    Each(Vec<f64>),
    Measured(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Slo {
    pub(super) min: Option<Spanned<String>>,
    pub(super) max: Option<Spanned<String>>,
    pub(super) elastic_pipe: Option<[Spanned<String>; 2]>,
    pub(super) virtual_pipe: Option<Spanned<String>>,
    pub(super) infinite_pipe: Option<Spanned<String>>,
    pub(super) metered_bulk: Option<Spanned<String>>,
    pub(super) delay: Option<Spanned<String>>,
    pub(super) price: Option<f64>,
}
