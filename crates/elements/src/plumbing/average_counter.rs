//! AverageCounter.

use ir::model::{Reg, StateKind};
use ir::{Expr, Model, Op, StateValue};
use net::Batch;

use crate::argument::Nanoseconds;
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::rate::show_real;

element! {
    /// AverageCounter([IGNORE, LINK_FCS, KEYWORDS MAX]) -- counts packets and their average rate
    ///
    /// Passes packets unchanged and counts them. Rates are averages from the first packet to the
    /// last.
    ///
    /// = KEYWORDS
    ///
    /// IGNORE (time, default 0): packets are counted only after so long since the first.
    /// LINK_FCS (bool, default true): whether link_count and link_rate count the 4 bytes of the
    /// frame check sequence besides the 20 bytes of preamble and gap.
    /// MAX (time, default 0): packets are counted only so long since the first; 0 means for ever.
    ///
    /// = HANDLERS
    ///
    /// count, byte_count, bit_count, link_count (read): packets, bytes, bits, and bits on the
    /// link so far.
    /// rate, byte_rate, bit_rate, link_rate (read): the same per second.
    /// time (read): seconds that the rates are averages over.
    /// reset (write): starts again.
    ///
    /// = SEE ALSO
    ///
    /// Counter
    AverageCounter {
        category: Plumbing, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("IGNORE 1ms", 1, 1), ("0, MAX 1ms", 1, 1)]
    }
}

/// See [`AverageCounter::CLASS`].
pub(crate) struct AverageCounter {
    ignore: u64,
    max: u64,
    link_overhead: u64,
    /// Times of the first and the last packet; 0 before there was one.
    times: Cells,
    packets: u64,
    bytes: u64,
}

/// Preamble, start of frame and gap between frames.
const LINK_OVERHEAD: u64 = 20;
/// Frame check sequence.
const FCS: u64 = 4;
/// The shortest time that a rate is computed over, in nanoseconds.
const SHORTEST: u64 = 1_000_000;

impl AverageCounter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["IGNORE", "LINK_FCS", "MAX"]);
        let ignore: Option<Nanoseconds> = arguments.optional("IGNORE");
        let fcs = arguments.optional("LINK_FCS").unwrap_or(true);
        let max: Option<Nanoseconds> = arguments.keyword("MAX");
        arguments.finish()?;
        Ok(Self {
            ignore: ignore.unwrap_or_default().0,
            max: max.filter(|m| m.0 > 0).map_or(u64::MAX, |m| m.0),
            link_overhead: LINK_OVERHEAD + if fcs { FCS } else { 0 },
            times: Cells::new([0, 0]),
            packets: 0,
            bytes: 0,
        })
    }
}

impl Element for AverageCounter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        if self.times.get(0) == 0 {
            self.times.set(0, now);
        }
        let since = now.saturating_sub(self.times.get(0));
        if since >= self.max {
            return;
        }
        self.times.set(1, now);
        if since >= self.ignore {
            self.packets += batch.len() as u64;
            self.bytes += batch.bytes();
        }
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let count = model.declare("count", StateKind::Counter);
        let times = model.declare("times", StateKind::Cells { width: 64, initial: vec![0, 0] });
        let (first, now, since) = (Reg(0), Reg(1), Reg(2));
        let (now_is, first_is) = (Expr::from(now), Expr::from(first));
        model.inputs = vec![vec![
            Op::Let(now, Expr::Now),
            Op::Read(first, times, 0u8.into()),
            Op::when(
                Expr::from(first).eq(0u8),
                vec![Op::Let(first, now.into()), Op::Write(times, 0u8.into(), now.into())],
            ),
            // A clock never goes back, but a state that was handed over may be of later.
            Op::Let(since, now_is.max(first) - first_is),
            Op::when(
                Expr::from(since).lt(self.max),
                vec![
                    Op::Write(times, 1u8.into(), now.into()),
                    Op::when(Expr::from(since).ge(self.ignore), vec![Op::Count(count)]),
                ],
            ),
            Op::emit(0u8),
        ]];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.times.clone())
    }

    fn counted(&self) -> Option<(u64, u64)> {
        Some((self.packets, self.bytes))
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        to.set(name, "count", StateValue::Counter { packets: self.packets, bytes: self.bytes });
        self.times.export(name, "times", to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        (self.packets, self.bytes) =
            from.counter(name, "count").unwrap_or((self.packets, self.bytes));
        self.times.import(name, "times", from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::count("byte_count"),
                Handler::count("bit_count"),
                Handler::count("link_count"),
                Handler::count("rate"),
                Handler::count("byte_rate"),
                Handler::count("bit_rate"),
                Handler::count("link_rate"),
                Handler::read("time"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let [first, last] = [0, 1].map(|time| self.times.get(time));
        let over = last.saturating_sub(first).saturating_sub(self.ignore);
        let seconds = over.max(SHORTEST) as f64 / 1e9;
        let link = (self.bytes + self.packets * self.link_overhead) * 8;
        let per_second = |number: u64| show_real(number as f64 / seconds);
        Ok(match handler {
            "byte_count" => self.bytes.to_string(),
            "bit_count" => (self.bytes * 8).to_string(),
            "link_count" => link.to_string(),
            "rate" => per_second(self.packets),
            "byte_rate" => per_second(self.bytes),
            "bit_rate" => per_second(self.bytes * 8),
            "link_rate" => per_second(link),
            "time" => show_real(seconds),
            _ => self.packets.to_string(),
        })
    }

    fn write(&mut self, _: &str, _: &str, _: &mut Context<'_>) -> Result<(), String> {
        (0..self.times.len()).for_each(|time| self.times.set(time, 0));
        (self.packets, self.bytes) = (0, 0);
        Ok(())
    }
}
