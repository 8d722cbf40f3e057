//! Elements that let packets through at a rate: shapers, which are pulled, and rated unqueues,
//! which pull.

use ir::field::meta;
use ir::{Diagnostic, Model, Op};
use net::{Batch, Packet};

use crate::argument::{BytesPerSecond, Nanoseconds, parse_value};
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict, Work};
use crate::element_state::ElementState;
use crate::token_bucket::{Burst, TokenBucket};

/// What a rate counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Packets,
    Bytes,
}

impl Unit {
    /// What a packet costs.
    fn cost(self, packet: &Packet) -> u64 {
        match self {
            Unit::Packets => 1,
            Unit::Bytes => packet.len() as u64,
        }
    }

    /// Parses a rate that a handler is given.
    fn parse(self, value: &str) -> Result<u64, String> {
        match self {
            Unit::Packets => parse_value::<u32>(value).map(u64::from),
            Unit::Bytes => parse_value::<BytesPerSecond>(value).map(|b| b.0),
        }
    }
}

/// How long a shaper that could not send makes up for, in nanoseconds.
const SHAPER_BURST: u64 = 10_000_000;
/// The same for an unqueue, unless it is configured.
const UNQUEUE_BURST: u64 = 20_000_000;

element! {
    /// Shaper(RATE) -- lets packets be pulled at a rate
    ///
    /// Lets at most RATE packets per second be pulled through it, evenly spaced as far as the
    /// puller's turns allow.
    ///
    /// = HANDLERS
    ///
    /// rate (read, write): the rate.
    ///
    /// = SEE ALSO
    ///
    /// BandwidthShaper, RatedUnqueue
    Shaper {
        category: Queue, ports: "1/1", processing: "l/l",
        samples: []
    }
}

/// See [`Shaper::CLASS`].
pub(crate) struct Shaper {
    unit: Unit,
    bucket: TokenBucket,
}

impl Shaper {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["RATE"]);
        let rate: u32 = arguments.required("RATE");
        arguments.finish()?;
        Ok(Self::new(Unit::Packets, rate.into()))
    }

    fn new(unit: Unit, rate: u64) -> Self {
        Self { unit, bucket: TokenBucket::with_duration(rate, SHAPER_BURST) }
    }
}

impl Element for Shaper {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        self.bucket.fill(cx.now());
        if self.bucket.available() == 0 {
            cx.wake_at(self.bucket.time_of(1));
            return None;
        }
        let packet = cx.pull(0)?;
        self.bucket.take(self.unit.cost(&packet));
        Some(packet)
    }

    fn model(&self) -> Model {
        Model::opaque("depends on time")
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("rate")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.bucket.rate().to_string())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        let rate = self.unit.parse(value)?;
        self.bucket.change(Burst::Duration(SHAPER_BURST).at(rate));
        Ok(())
    }
}

/// Makes [`Shaper`] elements that count bytes.
pub(crate) struct BandwidthShaper;

element! {
    /// BandwidthShaper(RATE) -- lets packets be pulled at a bandwidth
    ///
    /// Lets at most RATE bytes per second (or bits: 10Mbps) be pulled through it.
    ///
    /// = HANDLERS
    ///
    /// rate (read, write): the rate in bytes per second.
    ///
    /// = SEE ALSO
    ///
    /// Shaper, BandwidthRatedUnqueue
    BandwidthShaper {
        category: Queue, ports: "1/1", processing: "l/l",
        samples: []
    }
}

impl BandwidthShaper {
    fn configure(cx: &mut Configure<'_>) -> Result<Shaper, Failed> {
        let mut arguments = cx.arguments(&["RATE"]);
        let rate: BytesPerSecond = arguments.required("RATE");
        arguments.finish()?;
        Ok(Shaper::new(Unit::Bytes, rate.0))
    }
}

element! {
    /// RatedUnqueue(RATE [, KEYWORDS BURST_DURATION, BURST_SIZE]) -- pulls packets at a rate
    ///
    /// Pulls at most RATE packets per second and pushes them on.
    ///
    /// = KEYWORDS
    ///
    /// RATE (number): packets per second; 0 means without limit.
    /// BURST_DURATION (time, default 20ms): after a pause, so much time's packets may come at
    /// once.
    /// BURST_SIZE (number): the same as a number of packets.
    ///
    /// = HANDLERS
    ///
    /// rate (read, write): the rate.
    /// active (read, write): whether it works.
    /// calls (read): how often it was its turn, and what came of it.
    ///
    /// = SEE ALSO
    ///
    /// BandwidthRatedUnqueue, Unqueue, Shaper
    RatedUnqueue {
        category: Queue, ports: "1/1", processing: "l/h",
        samples: []
    }
}

/// See [`RatedUnqueue::CLASS`].
pub(crate) struct RatedUnqueue {
    unit: Unit,
    burst: Burst,
    bucket: TokenBucket,
    active: bool,
    runs: u64,
    empty_runs: u64,
    failed_pulls: u64,
    packets: u64,
}

impl RatedUnqueue {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Self::of_unit(cx, Unit::Packets)
    }

    fn of_unit(cx: &mut Configure<'_>, unit: Unit) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["RATE", "BURST_DURATION", "BURST_SIZE", "BURST_BYTES"]);
        let rate = match unit {
            Unit::Packets => arguments.required::<u32>("RATE").into(),
            Unit::Bytes => arguments.required::<BytesPerSecond>("RATE").0,
        };
        let duration: Option<Nanoseconds> = arguments.keyword("BURST_DURATION");
        let (name, other) = match unit {
            Unit::Packets => ("BURST_SIZE", "BURST_BYTES"),
            Unit::Bytes => ("BURST_BYTES", "BURST_SIZE"),
        };
        let size: Option<u32> = arguments.keyword(name);
        if let Some(wrong) = arguments.keyword_argument(other) {
            arguments.error(&wrong, format!("{name} is meant"));
        }
        if duration.is_some() && size.is_some() {
            let span = arguments.cx().span();
            let message = format!("BURST_DURATION and {name} exclude each other");
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        let burst = match size {
            Some(size) => Burst::Tokens(size.into()),
            None => Burst::Duration(duration.map_or(UNQUEUE_BURST, |d| d.0)),
        };
        let bucket = TokenBucket::from(burst.at(rate));
        let (runs, empty_runs, failed_pulls, packets) = (0, 0, 0, 0);
        Ok(Self { unit, burst, bucket, active: true, runs, empty_runs, failed_pulls, packets })
    }
}

impl Element for RatedUnqueue {
    fn model(&self) -> Model {
        Model::opaque("depends on time")
    }

    fn has_task(&self) -> bool {
        true
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.active {
            return Work::Idle;
        }
        self.runs += 1;
        self.bucket.fill(cx.now());
        let mut pulled = 0;
        while pulled < Batch::DEFAULT_BURST && self.bucket.available() > 0 {
            let Some(packet) = cx.pull(0) else {
                self.failed_pulls += 1;
                break;
            };
            self.bucket.take(self.unit.cost(&packet));
            self.packets += 1;
            pulled += 1;
            cx.emit(0, packet);
        }
        if self.bucket.available() == 0 {
            self.empty_runs += u64::from(pulled == 0);
            cx.wake_at(self.bucket.time_of(1));
        }
        if pulled > 0 { Work::Done } else { Work::Idle }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("rate"), Handler::both("active"), Handler::count("calls")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "active" => self.active.to_string(),
            "calls" => format!(
                "{} calls to run_task()\n{} empty runs\n{} pushes\n{} failed pulls\n{} packets\n",
                self.runs, self.empty_runs, self.packets, self.failed_pulls, self.packets
            ),
            _ => self.bucket.rate().to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "active" => self.active = parse_value(value)?,
            _ => {
                let rate = self.unit.parse(value)?;
                self.bucket.change(self.burst.at(rate));
            }
        }
        Ok(())
    }
}

/// Makes [`RatedUnqueue`] elements that count bytes.
pub(crate) struct BandwidthRatedUnqueue;

element! {
    /// BandwidthRatedUnqueue(RATE [, KEYWORDS]) -- pulls packets at a bandwidth
    ///
    /// Pulls at most RATE bytes per second (or bits: 10Mbps) and pushes the packets on.
    ///
    /// = KEYWORDS
    ///
    /// RATE (bandwidth): the rate; 0 means without limit.
    /// BURST_DURATION (time, default 20ms): after a pause, so much time's bytes may come at once.
    /// BURST_BYTES (number): the same as a number of bytes.
    ///
    /// = HANDLERS
    ///
    /// rate (read, write): the rate in bytes per second.
    /// active (read, write): whether it works.
    /// calls (read): how often it was its turn, and what came of it.
    ///
    /// = SEE ALSO
    ///
    /// RatedUnqueue, BandwidthShaper
    BandwidthRatedUnqueue {
        category: Queue, ports: "1/1", processing: "l/h",
        samples: []
    }
}

impl BandwidthRatedUnqueue {
    fn configure(cx: &mut Configure<'_>) -> Result<RatedUnqueue, Failed> {
        RatedUnqueue::of_unit(cx, Unit::Bytes)
    }
}

element! {
    /// RatedSplitter(RATE [, KEYWORDS]) -- sends what exceeds a rate elsewhere
    ///
    /// Packets up to RATE per second go to output 0, the others to output 1.
    ///
    /// = KEYWORDS
    ///
    /// As those of RatedUnqueue.
    ///
    /// = HANDLERS
    ///
    /// rate (read, write): the rate.
    ///
    /// = SEE ALSO
    ///
    /// BandwidthRatedSplitter, Meter
    RatedSplitter {
        category: Queue, ports: "1/2", processing: "h/h",
        samples: [("1000", 1, 2), ("5, BURST_SIZE 3", 1, 2), ("0", 1, 2)]
    }
}

/// See [`RatedSplitter::CLASS`].
pub(crate) struct RatedSplitter {
    unit: Unit,
    burst: Burst,
    bucket: TokenBucket,
}

impl RatedSplitter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let RatedUnqueue { unit, burst, bucket, .. } = RatedUnqueue::of_unit(cx, Unit::Packets)?;
        Ok(Self { unit, burst, bucket })
    }
}

impl Element for RatedSplitter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.bucket.fill(cx.now());
        cx.each(batch, |packet, _| {
            let has_token = self.bucket.has_token();
            if has_token {
                self.bucket.take(self.unit.cost(packet));
            }
            if has_token { Verdict::Pass } else { Verdict::To(1) }
        });
    }

    fn model(&self) -> Model {
        let cost = match self.unit {
            Unit::Packets => 1u8.into(),
            Unit::Bytes => meta::LEN.get(),
        };
        self.bucket.model(cost, vec![Op::emit(0u8)], vec![Op::emit(1u8)])
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.bucket.cells())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.bucket.export(name, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.bucket.import(name, from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("rate")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.bucket.rate().to_string())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        let rate = self.unit.parse(value)?;
        self.bucket.change(self.burst.at(rate));
        Ok(())
    }
}

/// Makes [`RatedSplitter`] elements that count bytes.
pub(crate) struct BandwidthRatedSplitter;

element! {
    /// BandwidthRatedSplitter(RATE [, KEYWORDS]) -- sends what exceeds a bandwidth elsewhere
    ///
    /// Packets up to RATE bytes per second go to output 0, the others to output 1.
    ///
    /// = KEYWORDS
    ///
    /// As those of BandwidthRatedUnqueue.
    ///
    /// = HANDLERS
    ///
    /// rate (read, write): the rate in bytes per second.
    ///
    /// = SEE ALSO
    ///
    /// RatedSplitter, BandwidthMeter
    BandwidthRatedSplitter {
        category: Queue, ports: "1/2", processing: "h/h",
        samples: [("1000", 1, 2), ("100kBps, BURST_BYTES 2000", 1, 2)]
    }
}

impl BandwidthRatedSplitter {
    fn configure(cx: &mut Configure<'_>) -> Result<RatedSplitter, Failed> {
        let RatedUnqueue { unit, burst, bucket, .. } = RatedUnqueue::of_unit(cx, Unit::Bytes)?;
        Ok(RatedSplitter { unit, burst, bucket })
    }
}
