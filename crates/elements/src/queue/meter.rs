//! Meter and BandwidthMeter: outputs by the recent rate.

use ir::field::meta;
use ir::model::{Block, Reg, StateKind, StateRef};
use ir::{Expr, Model, Op};
use net::Batch;

use crate::argument::BytesPerSecond;
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::rate::show_real;

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
    /// Rates, and the least averages of each.
    meters: Vec<(u64, u64)>,
    /// [`TOTAL`], [`BEGAN`], [`UNTIL`] and [`AVERAGE`].
    cells: Cells,
}

/// The cell of all that was counted.
const TOTAL: usize = 0;
/// The cell of the total when the epoch began.
const BEGAN: usize = 1;
/// The cell of the time when the epoch ends.
const UNTIL: usize = 2;
/// The cell of the moving average of what is counted in an epoch, in parts.
const AVERAGE: usize = 3;

/// Nanoseconds after which the average takes in what was counted.
const EPOCH: u64 = 10_000_000;
/// Epochs in a second.
const EPOCHS: u64 = 1_000_000_000 / EPOCH;
/// Each epoch replaces one part of so many of the average.
const WEIGHT: u64 = 16;
/// Bits of an average behind the point.
const PART: u32 = 24;
/// More is not counted in an epoch.
const MOST: u64 = 1 << 35;
/// After so many epochs without packets, the average is 0.
const FORGOTTEN: u64 = 1 << DECAYS;
/// Powers of two epochs for which [`decay`] says what is left.
const DECAYS: u32 = 10;

/// What is left of an average after `2^power` epochs without packets: a fraction with 32 bits.
const fn decay(power: u32) -> u64 {
    let mut left = ((WEIGHT - 1) << 32) / WEIGHT;
    let mut squared = 0;
    while squared < power {
        left = (left * left) >> 32;
        squared += 1;
    }
    left
}

/// The name of the cells.
const NAME: &str = "rate";

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
        let meters = meters.into_iter().map(|rate| (rate, threshold(rate))).collect();
        Ok(Self { bytes, meters, cells: Cells::new([0; 4]) })
    }

    /// The average, measured anew if the epoch has ended.
    fn average(&self, now: u64) -> u64 {
        let [total, began, until, average] =
            [TOTAL, BEGAN, UNTIL, AVERAGE].map(|c| self.cells.get(c));
        let Some(late) = now.checked_sub(until) else { return average };
        let counted = total.saturating_sub(began).min(MOST) << PART;
        let average = (average * (WEIGHT - 1) + counted) / WEIGHT;
        let idle = (late / EPOCH).min(FORGOTTEN);
        (0..DECAYS).fold(if idle < FORGOTTEN { average } else { 0 }, |average, power| {
            match idle >> power & 1 {
                0 => average,
                _ => ((u128::from(average) * u128::from(decay(power))) >> 32) as u64,
            }
        })
    }

    /// Ends the epoch, if it is time.
    #[inline]
    fn observe(&mut self, now: u64) {
        if now >= self.cells.get(UNTIL) {
            self.cells.set(AVERAGE, self.average(now));
            self.cells.set(BEGAN, self.cells.get(TOTAL));
            self.cells.set(UNTIL, (now / EPOCH + 1).saturating_mul(EPOCH));
        }
    }

    /// What [`Meter::observe`] does at the end of an epoch, with the cells in registers.
    fn end_of_epoch(&self, cells: StateRef, [total, began, until, average]: [Reg; 4]) -> Block {
        const IDLE: Reg = Reg(4);
        let counted = (Expr::from(total).max(began) - began).min(MOST) << PART;
        let mean = (Expr::from(average) * (WEIGHT - 1) + counted) / WEIGHT;
        let idle = || Expr::from(IDLE);
        let mut block = vec![
            Op::Let(IDLE, ((Expr::Now - until) / EPOCH).min(FORGOTTEN)),
            Op::Let(average, Expr::choose(idle().lt(FORGOTTEN), mean, 0u8)),
        ];
        block.extend((0..DECAYS).map(|power| {
            let bit = idle() >> power & 1u8;
            let left = (Expr::from(average) * decay(power)) >> 32u8;
            Op::Let(average, Expr::choose(bit.eq(0u8), average, left))
        }));
        let next = ((Expr::Now / EPOCH + 1u8) * EPOCH).min(u64::MAX);
        block.extend([
            Op::Write(cells, AVERAGE.into(), average.into()),
            Op::Write(cells, BEGAN.into(), total.into()),
            Op::Write(cells, UNTIL.into(), next),
        ]);
        block
    }
}

/// The least average of a rate.
fn threshold(rate: u64) -> u64 {
    let parts = (u128::from(rate) << PART).div_ceil(EPOCHS.into());
    u64::try_from(parts).unwrap_or(u64::MAX)
}

impl Element for Meter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.observe(cx.now());
        let more = if self.bytes { batch.bytes() } else { batch.len() as u64 };
        self.cells.set(TOTAL, self.cells.get(TOTAL).wrapping_add(more));
        let average = self.cells.get(AVERAGE);
        let port = self.meters.partition_point(|(_, least)| average >= *least);
        cx.emit_all(port, batch);
    }

    fn model(&self) -> Model {
        let registers @ [total, _, until, average] = [0, 1, 2, 3].map(Reg);
        let mut model = Model::default();
        let cells = StateKind::Cells { width: 64, initial: vec![0; 4] };
        let cells = model.declare(NAME, cells);
        let more = if self.bytes { meta::LEN.get() } else { 1u8.into() };
        let port = |low: Expr, ((_, least), port): (&(u64, u64), usize)| {
            Expr::choose(Expr::from(average).lt(*least), low, port)
        };
        let lowest_last = self.meters.iter().zip(1..).fold(Expr::from(0u8), port);
        let mut block: Block = registers
            .into_iter()
            .zip(0usize..)
            .map(|(reg, cell)| Op::Read(reg, cells, cell.into()))
            .collect();
        block.extend([
            // An epoch is long: the element ends it.
            Op::Expect(Expr::Now.lt(until)),
            Op::when(Expr::Now.ge(until), self.end_of_epoch(cells, registers)),
            Op::Write(cells, TOTAL.into(), Expr::from(total) + more),
            Op::Emit(lowest_last),
        ]);
        model.inputs = vec![block];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.cells.clone())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.cells.export(name, NAME, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.cells.import(name, NAME, from);
        let most = MOST << PART;
        self.cells.set(AVERAGE, self.cells.get(AVERAGE).min(most));
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("rate"), Handler::read("meters")] }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "meters" => {
                self.meters.iter().map(|(rate, _)| rate.to_string()).collect::<Vec<_>>().join(" ")
            }
            _ => show_real(self.average(cx.now) as f64 * EPOCHS as f64 / f64::from(1 << PART)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Meter {
        Meter { bytes: false, meters: Vec::new(), cells: Cells::new([0; 4]) }
    }

    fn rate(meter: &Meter, now: u64) -> f64 {
        meter.average(now) as f64 * EPOCHS as f64 / f64::from(1 << PART)
    }

    #[test]
    fn a_steady_rate_is_found_and_forgotten() {
        let mut meter = meter();
        for ms in 0..2000u64 {
            meter.observe(1_000_000_000 + ms * 1_000_000);
            meter.cells.set(TOTAL, meter.cells.get(TOTAL) + 5);
        }
        let found = rate(&meter, 3_000_000_000);
        assert!((found - 5000.0).abs() < 50.0, "{found}");
        let later = rate(&meter, 4_000_000_000);
        assert!(later < 20.0, "{later}");
        assert_eq!(rate(&meter, u64::MAX), 0.0);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut meter = meter();
        meter.observe(1);
        for total in [u64::MAX, 0, u64::MAX] {
            meter.cells.set(TOTAL, total);
            meter.observe(meter.cells.get(UNTIL));
        }
        assert!(meter.cells.get(AVERAGE) <= MOST << PART);
        meter.observe(u64::MAX);
        assert_eq!(meter.cells.get(AVERAGE), 0);
    }
}
