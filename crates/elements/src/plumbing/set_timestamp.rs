//! SetTimestamp.

use click::config::Argument;
use ir::field::meta;
use ir::{Base, Expr, Field, Model, Op};
use net::{Batch, annotation};

use crate::argument::FromArgument;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;
use crate::names::Names;

element! {
    /// SetTimestamp([TIMESTAMP, KEYWORDS FIRST, PER_BATCH]) -- stamps packets with a time
    ///
    /// Sets the packets' timestamp to TIMESTAMP (seconds since 1970, with up to nine decimals),
    /// or to the current time if that is not given.
    ///
    /// = KEYWORDS
    ///
    /// FIRST (bool, default false): whether the first-timestamp annotation, which holds
    /// nanoseconds, is set instead.
    /// PER_BATCH (bool): accepted; the time is read once a batch in any case.
    ///
    /// = SEE ALSO
    ///
    /// FromDump
    SetTimestamp {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("1700000000.123456789", 1, 1), ("FIRST true", 1, 1)]
    }
}

/// See [`SetTimestamp::CLASS`].
pub(crate) struct SetTimestamp {
    time: Option<Time>,
    first: bool,
}

/// Nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Time(u64);

impl FromArgument for Time {
    const EXPECTED: &'static str = "seconds since 1970, such as 1700000000.5";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let nanoseconds = format!("{decimals:0<9}");
        let time = (digits(seconds) && digits(decimals) && decimals.len() <= 9)
            .then(|| seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000))
            .flatten()
            .and_then(|time| time.checked_add(nanoseconds.parse().ok()?));
        time.map(Self).ok_or_else(|| format!("'{text}' is not {}", Self::EXPECTED))
    }
}

impl SetTimestamp {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["TIMESTAMP", "FIRST", "PER_BATCH"]);
        let time = arguments.optional("TIMESTAMP");
        let first = arguments.keyword("FIRST").unwrap_or(false);
        arguments.keyword::<bool>("PER_BATCH");
        arguments.finish()?;
        Ok(Self { time, first })
    }
}

impl Element for SetTimestamp {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let time = self.time.map_or(cx.now(), |time| time.0);
        for packet in batch.iter_mut() {
            if self.first {
                packet.annotations_mut().set_u64(annotation::FIRST_TIMESTAMP, time);
            } else {
                packet.set_timestamp(time);
            }
        }
    }

    fn model(&self) -> Model {
        let first = Field::bytes(Base::Annotation, annotation::FIRST_TIMESTAMP as u16, 8);
        let to = if self.first { first } else { meta::TIMESTAMP };
        let time = self.time.map_or(Expr::Now, |time| time.0.into());
        Model::from_block(vec![to.set(time), Op::emit(0u8)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument::parse_value;

    #[test]
    fn times_are_exact_to_the_nanosecond() {
        let time = |text| parse_value::<Time>(text).map(|t| t.0);
        assert_eq!(time("1700000000.123456789"), Ok(1_700_000_000_123_456_789));
        assert_eq!(time("1.5"), Ok(1_500_000_000));
        assert_eq!(time("0"), Ok(0));
        for bad in ["-1", "1.2345678901", "1.2.3", "99999999999999999999", "+1", "1e9"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
