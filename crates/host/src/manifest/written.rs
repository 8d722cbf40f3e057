//! A host chain as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostChain {
    pub(super) kind: Spanned<String>,
    pub(super) nfs: Vec<Nf>,
    pub(super) chain: Spanned<String>,
    pub(super) runtime: Option<Spanned<String>>,
    pub(super) fabric: Option<Spanned<String>>,
    pub(super) io: Io,
    #[serde(default)]
    pub(super) schedule: Schedule,
    pub(super) isolation: Option<Spanned<Isolation>>,
    pub(super) state: Option<Spanned<State>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nf {
    pub(super) name: Spanned<String>,
    pub(super) click: Option<Spanned<String>>,
    pub(super) program: Option<Spanned<String>>,
    pub(super) image: Option<Spanned<String>>,
    pub(super) runtime: Option<Spanned<String>>,
    pub(super) memory: Option<Spanned<String>>,
    pub(super) threads: Option<Spanned<u32>>,
    pub(super) config: Option<Spanned<String>>,
    pub(super) writes: Option<Spanned<String>>,
    pub(super) api: Option<Spanned<String>>,
    pub(super) addresses: Option<Spanned<BTreeMap<String, Spanned<String>>>>,
    pub(super) routes: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) forward: Option<Spanned<bool>>,
    pub(super) privileges: Option<Spanned<Vec<Spanned<String>>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Io {
    #[serde(rename = "in")]
    pub(super) input: Spanned<String>,
    #[serde(rename = "out")]
    pub(super) output: Spanned<String>,
    pub(super) driver: Option<Spanned<String>>,
    pub(super) batch: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Schedule {
    pub(super) policy: Option<Spanned<String>>,
    pub(super) slice: Option<Spanned<String>>,
    pub(super) priority: Option<Spanned<u32>>,
    pub(super) core: Option<Spanned<usize>>,
    pub(super) switch: Option<Spanned<usize>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Isolation {
    pub(super) within: Option<Spanned<String>>,
    pub(super) hand_off: Option<Spanned<String>>,
    pub(super) overhead: Option<Spanned<String>>,
    pub(super) timeout: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct State {
    pub(super) redis: Spanned<String>,
    pub(super) durability: Spanned<String>,
    pub(super) password_file: Option<Spanned<String>>,
    pub(super) password_env: Option<Spanned<String>>,
    pub(super) ca: Option<Spanned<String>>,
    pub(super) away: Option<Spanned<String>>,
    pub(super) wait: Option<Spanned<String>>,
    pub(super) hold: Option<Spanned<u32>>,
    pub(super) cache: Option<Spanned<u32>>,
    pub(super) expire: Option<Spanned<String>>,
    pub(super) prefix: Option<Spanned<String>>,
}
