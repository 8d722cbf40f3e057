//! A test set as it is written.

use std::fmt;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestSet {
    pub(super) kind: Spanned<String>,
    pub(super) repeat: Option<Spanned<u64>>,
    pub(super) seed: Option<u64>,
    pub(super) cores: Option<Words>,
    pub(super) containers: Option<String>,
    pub(super) defaults: Option<Matrix>,
    pub(super) sets: Spanned<Vec<Spanned<Matrix>>>,
}

/// Each key is called as the option of the command line is.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Matrix {
    pub(super) switch: Option<Spanned<Words>>,
    pub(super) pairs: Option<Spanned<Words>>,
    pub(super) size: Option<Spanned<Words>>,
    pub(super) burst: Option<Spanned<Words>>,
    pub(super) latency_burst: Option<Spanned<Words>>,
    pub(super) rate: Option<Spanned<Words>>,
    pub(super) latency_rate: Option<Spanned<u64>>,
    pub(super) cores_for_switch: Option<Spanned<Words>>,
    pub(super) io: Option<Spanned<Words>>,
    pub(super) direction: Option<Spanned<Words>>,
    pub(super) peer: Option<Spanned<Words>>,
    pub(super) touch: Option<bool>,
    pub(super) what: Option<Spanned<String>>,
    pub(super) seconds: Option<Spanned<f64>>,
    pub(super) warm_up: Option<Spanned<f64>>,
    pub(super) container: Option<Spanned<Words>>,
}

impl Matrix {
    /// Where the value of a parameter stands.
    pub(super) fn place(&self, parameter: &str) -> Option<&Spanned<Words>> {
        match parameter {
            "switch" => self.switch.as_ref(),
            "pairs" => self.pairs.as_ref(),
            "size" => self.size.as_ref(),
            "burst" => self.burst.as_ref(),
            "latency-burst" => self.latency_burst.as_ref(),
            "rate" => self.rate.as_ref(),
            "cores-for-switch" => self.cores_for_switch.as_ref(),
            "io" => self.io.as_ref(),
            "direction" => self.direction.as_ref(),
            "peer" => self.peer.as_ref(),
            "container" => self.container.as_ref(),
            _ => None,
        }
    }
}

/// A value, or a list of values, as the command line has them: with commas between them.
pub(super) struct Words(pub(super) String);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;

        impl<'de> Visitor<'de> for Read {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, or a list of values")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
                Ok(Words(text.into()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Words, E> {
                Ok(Words(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Words, E> {
                Ok(Words(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Words, E> {
                Ok(Words(number.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Words, A::Error> {
                let mut words = Vec::new();
                while let Some(Words(word)) = all.next_element()? {
                    words.push(word);
                }
                Ok(Words(words.join(",")))
            }
        }

        from.deserialize_any(Read)
    }
}
