//! RandomSwitch and RandomSample, which draw lots.

use ir::model::{Block, Expr, Reg, StateKind, reject};
use ir::{Diagnostic, Model, Op, Reason};
use net::Batch;

use crate::argument::parse_value;
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::rate::show_real;

/// A linear congruential generator of an element's own, so that programs draw the same numbers in its place.
struct Generator(Cells);

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

/// The name of its state.
const NAME: &str = "generator";

impl Generator {
    fn new() -> Self {
        Self(Cells::new([0]))
    }

    /// Begins with a number of the worker's, unless it has begun.
    fn start(&self, cx: &mut Context<'_>) {
        if self.0.get(0) == 0 {
            self.0.set(0, cx.random(1, u64::MAX));
        }
    }

    /// A number below this one.
    #[inline]
    fn below(&self, end: u32) -> u32 {
        let next = self.0.get(0).wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        self.0.set(0, next);
        (((next >> 32) * u64::from(end)) >> 32) as u32
    }

    /// A model that draws a number below `end` and goes on with it.
    fn model(&self, end: u32, then: impl FnOnce(Reg) -> Block) -> Model {
        const DRAWN: Reg = Reg(0);
        let mut model = Model::default();
        let cells = StateKind::Cells { width: 64, initial: vec![0] };
        let state = model.declare(NAME, cells);
        let next = (Expr::from(DRAWN) * MULTIPLIER + INCREMENT) & u64::MAX;
        let mut block = vec![
            Op::Read(DRAWN, state, 0u8.into()),
            Op::Let(DRAWN, next),
            Op::Write(state, 0u8.into(), DRAWN.into()),
            Op::Let(DRAWN, ((Expr::from(DRAWN) >> 32u8) * end) >> 32u8),
        ];
        block.extend(then(DRAWN));
        model.inputs = vec![block];
        model
    }
}

element! {
    /// RandomSwitch() -- sends each packet to an output chosen at random
    ///
    /// Every output is as likely as any other. The choices begin from the worker's random numbers,
    /// so that a run with the same seed makes the same ones.
    ///
    /// = SEE ALSO
    ///
    /// RandomSample, RoundRobinSwitch, HashSwitch, StrideSwitch
    RandomSwitch {
        category: Switch, ports: "1/1-", processing: "h/h",
        samples: [("", 1, 1), ("", 1, 3)]
    }
}

/// See [`RandomSwitch::CLASS`].
pub(crate) struct RandomSwitch {
    generator: Generator,
    outputs: u32,
}

impl RandomSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs() as u32;
        cx.arguments(&[]).finish()?;
        Ok(Self { generator: Generator::new(), outputs })
    }
}

impl Element for RandomSwitch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |_, _| Verdict::To(self.generator.below(self.outputs) as usize));
    }

    fn model(&self) -> Model {
        self.generator.model(self.outputs, |output| vec![Op::emit(output)])
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        self.generator.start(cx);
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.generator.0.clone())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.generator.0.export(name, NAME, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.generator.0.import(name, NAME, from);
    }
}

element! {
    /// RandomSample([SAMPLE, KEYWORDS DROP, ACTIVE]) -- lets packets pass with a probability
    ///
    /// Each packet passes with probability SAMPLE. The others leave on output 1, if it is there, or
    /// are dropped. The choices begin from the worker's random numbers, as those of RandomSwitch do.
    ///
    /// = KEYWORDS
    ///
    /// SAMPLE (number): the probability with which packets pass, from 0 to 1.
    /// DROP (number): the probability with which they do not, instead of SAMPLE.
    /// ACTIVE (boolean, default true): if false, all packets pass.
    ///
    /// = HANDLERS
    ///
    /// sampling_prob (read, write): the probability with which packets pass.
    /// drop_prob (read, write): the probability with which they do not.
    /// active (read, write): whether it works.
    /// drops (read): how many packets did not pass.
    ///
    /// = SEE ALSO
    ///
    /// RandomSwitch
    RandomSample {
        category: Switch, ports: "1/1-2", processing: "h/h",
        samples: [("0.5", 1, 1), ("DROP 0.3", 1, 2), ("1, ACTIVE false", 1, 1), ("0", 1, 2)]
    }
}

/// See [`RandomSample::CLASS`].
pub(crate) struct RandomSample {
    generator: Generator,
    /// Of [`ALWAYS`] numbers, so many let a packet pass.
    passing: u32,
    active: bool,
    outputs: usize,
}

/// Denominator of probabilities.
const ALWAYS: u32 = 1 << 28;

/// The packet was not chosen.
const NOT_SAMPLED: Reason = Reason("not-sampled");

impl RandomSample {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (outputs, span) = (cx.outputs(), cx.span());
        let mut arguments = cx.arguments(&["SAMPLE", "DROP", "ACTIVE"]);
        let sample: Option<f64> = arguments.optional("SAMPLE");
        let drop: Option<f64> = arguments.keyword("DROP");
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        let passing = match (sample, drop) {
            (Some(sample), None) => parts(sample),
            (None, Some(drop)) => parts(drop).map(|drop| ALWAYS - drop),
            _ => Err("either SAMPLE or DROP is needed".into()),
        };
        let passing = passing.unwrap_or_else(|message: String| {
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
            ALWAYS
        });
        arguments.finish()?;
        Ok(Self { generator: Generator::new(), passing, active, outputs })
    }
}

fn parts(probability: f64) -> Result<u32, String> {
    match (0.0..=1.0).contains(&probability) {
        true => Ok((probability * f64::from(ALWAYS)).round() as u32),
        false => Err(format!("a probability is from 0 to 1, not {probability}")),
    }
}

impl Element for RandomSample {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if !self.active {
            return;
        }
        cx.each(batch, |_, _| match self.generator.below(ALWAYS) < self.passing {
            true => Verdict::Pass,
            false => Verdict::Reject(1, NOT_SAMPLED),
        });
    }

    fn model(&self) -> Model {
        if !self.active {
            return Model::from_block(vec![Op::emit(0u8)]);
        }
        self.generator.model(ALWAYS, |drawn| {
            let passes = Expr::from(drawn).lt(self.passing);
            vec![Op::If(passes, vec![Op::emit(0u8)], reject(1, self.outputs, NOT_SAMPLED))]
        })
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        self.generator.start(cx);
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.generator.0.clone())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        if self.active {
            self.generator.0.export(name, NAME, to);
        }
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.generator.0.import(name, NAME, from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::both("sampling_prob"),
                Handler::both("drop_prob"),
                Handler::both("active"),
                Handler::count("drops"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        let probability = |parts: u32| show_real(f64::from(parts) / f64::from(ALWAYS));
        Ok(match handler {
            "sampling_prob" => probability(self.passing),
            "drop_prob" => probability(ALWAYS - self.passing),
            "active" => self.active.to_string(),
            _ => cx.tally.count(NOT_SAMPLED).to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "sampling_prob" => self.passing = parts(parse_value(value)?)?,
            "drop_prob" => self.passing = ALWAYS - parts(parse_value(value)?)?,
            _ => self.active = parse_value(value)?,
        }
        Ok(())
    }
}
