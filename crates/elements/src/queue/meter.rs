//! Meter and BandwidthMeter: outputs by the recent rate.

use ir::Model;
use net::Batch;

use crate::argument::BytesPerSecond;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::rate::{Rates, show_real};

element! {
    /// Meter(RATE1, ..., RATEn) -- sends packets to outputs by the recent rate of packets
    ///
    /// Measures the rate of packets, a moving average over about 160 ms. Packets go to output 0
    /// while it is below RATE1, to output 1 while it is at least RATE1 but below RATE2, and so on
    /// to output n. Rates are in packets per second and must increase.
    ///
    /// = HANDLERS
    ///
    /// rate (read): the recent rate.
    /// meters (read): the rates of the configuration.
    ///
    /// = SEE ALSO
    ///
    /// BandwidthMeter, RatedSplitter, Shaper
    Meter {
        category: Queue, ports: "1/2-", processing: "h/h",
        samples: [("1000", 1, 2), ("10, 10000", 1, 3)]
    }
}

/// See [`Meter::CLASS`].
pub(crate) struct Meter {
    bytes: bool,
    meters: Vec<u64>,
    total: u64,
    rates: Rates<1>,
}

impl Meter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Self::of_unit(cx, false)
    }

    fn of_unit(cx: &mut Configure<'_>, bytes: bool) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&[]);
        let mut meters: Vec<u64> = Vec::new();
        for argument in arguments.rest() {
            let rate = match bytes {
                true => arguments.parse::<BytesPerSecond>("RATE", &argument).map(|b| b.0),
                false => arguments.parse::<u32>("RATE", &argument).map(u64::from),
            };
            if rate.is_some_and(|rate| meters.last().is_some_and(|last| rate <= *last)) {
                arguments.error(&argument, "rates must increase");
            }
            meters.push(rate.unwrap_or(0));
        }
        if meters.len() + 1 != outputs {
            let span = arguments.cx().span();
            let message = format!(
                "{} rates are needed, one less than outputs, not {}",
                outputs.saturating_sub(1),
                meters.len()
            );
            arguments.report(ir::Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        Ok(Self { bytes, meters, total: 0, rates: Rates::default() })
    }
}

impl Element for Meter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.rates.observe([self.total], cx.now());
        self.total += if self.bytes { batch.bytes() } else { batch.len() as u64 };
        let [rate] = self.rates.current();
        let port = self.meters.partition_point(|meter| rate >= *meter as f64);
        cx.emit_all(port, batch);
    }

    fn model(&self) -> Model {
        Model::opaque("depends on time")
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("rate"), Handler::read("meters")] }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "meters" => self.meters.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
            _ => show_real(self.rates.per_second([self.total], cx.now)[0]),
        })
    }
}

/// Makes [`Meter`] elements that measure bytes.
pub(crate) struct BandwidthMeter;

element! {
    /// BandwidthMeter(RATE1, ..., RATEn) -- sends packets to outputs by the recent bandwidth
    ///
    /// Like Meter, but measures bytes per second. Rates may be in bits: 10Mbps.
    ///
    /// = HANDLERS
    ///
    /// rate (read): the recent rate in bytes per second.
    /// meters (read): the rates of the configuration.
    ///
    /// = SEE ALSO
    ///
    /// Meter, BandwidthRatedSplitter, BandwidthShaper
    BandwidthMeter {
        category: Queue, ports: "1/2-", processing: "h/h",
        samples: [("1000", 1, 2), ("10, 10000", 1, 3)]
    }
}

impl BandwidthMeter {
    fn configure(cx: &mut Configure<'_>) -> Result<Meter, Failed> {
        Meter::of_unit(cx, true)
    }
}
