//! Switch and its kin, which send packets to an output (or take them from an input) that a
//! handler or the configuration chooses.

use ir::model::{Expr, Reg, StateKind};
use ir::{Diagnostic, Model, Op, Reason};
use net::{Batch, Packet};

use crate::argument::parse_value;
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;

element! {
    /// Switch([OUTPUT]) -- sends packets to one output, which can be changed
    ///
    /// Sends every packet to output OUTPUT, 0 by default. If OUTPUT is negative, drops them.
    ///
    /// = HANDLERS
    ///
    /// switch (read, write): the output; what is not an output is taken for -1.
    ///
    /// = SEE ALSO
    ///
    /// StaticSwitch, PullSwitch, PaintSwitch, RoundRobinSwitch, HashSwitch
    Switch {
        category: Switch, ports: "1/1-", processing: "h/h",
        samples: [("", 1, 1), ("1", 1, 3), ("OUTPUT -1", 1, 2)]
    }
}

/// See [`Switch::CLASS`].
pub(crate) struct Switch {
    /// What it starts out with, which stays when handlers choose another output.
    configured: i32,
    /// As 32 bits; negative for none.
    output: Cells,
    outputs: usize,
}

/// The switch has no output at present.
const OFF: Reason = Reason("switched-off");

impl Switch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (outputs, span) = (cx.outputs(), cx.span());
        let mut arguments = cx.arguments(&["OUTPUT"]);
        let configured: i32 = arguments.optional("OUTPUT").unwrap_or(0);
        if usize::try_from(configured).is_ok_and(|o| o >= outputs) {
            let message = format!("there is no output {configured}: {outputs} are connected");
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        Ok(Self { configured, output: Cells::new([u64::from(configured as u32)]), outputs })
    }
}

impl Switch {
    fn output(&self) -> i32 {
        self.output.get(0) as u32 as i32
    }
}

/// Sends a batch to an output, or drops it.
fn push(output: i32, batch: &mut Batch, cx: &mut Context<'_>) {
    match usize::try_from(output) {
        Ok(0) => {}
        Ok(output) => cx.emit_all(output, batch),
        Err(_) => {
            for packet in batch.drain() {
                cx.drop(packet, OFF);
            }
        }
    }
}

/// What a port number is to the handlers: -1 if there is no such port.
fn port(value: &str, ports: usize) -> Result<i32, String> {
    let port: i32 = parse_value(value)?;
    Ok(if usize::try_from(port).is_ok_and(|p| p >= ports) { -1 } else { port })
}

const SWITCH: &[Handler] = &[Handler::both("switch")];

impl Element for Switch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        push(self.output(), batch, cx);
    }

    fn model(&self) -> Model {
        const OUTPUT: Reg = Reg(0);
        let mut model = Model::default();
        // Negative numbers are large ones here.
        let initial = vec![(self.configured as u32).into()];
        let cells = StateKind::Cells { width: 32, initial };
        let output = model.declare("output", cells);
        model.inputs = vec![vec![
            Op::Read(OUTPUT, output, 0u8.into()),
            Op::when(Expr::from(OUTPUT).ge(self.outputs), vec![Op::Drop(OFF)]),
            Op::emit(OUTPUT),
        ]];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.output.clone())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.output.export(name, "output", to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        if let [output] = *from.declared.cells(name, "output") {
            let output = output as u32 as i32;
            let exists = usize::try_from(output).is_ok_and(|o| o < self.outputs);
            let output = if exists { output } else { output.min(-1) };
            self.output.set(0, u64::from(output as u32));
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        SWITCH
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.output().to_string())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.output.set(0, u64::from(port(value, self.outputs)? as u32));
        Ok(())
    }
}

element! {
    /// StaticSwitch(OUTPUT) -- sends packets to one output
    ///
    /// Sends every packet to output OUTPUT. If there is no such output, or OUTPUT is negative,
    /// drops them. Unlike that of Switch, the output never changes.
    ///
    /// = SEE ALSO
    ///
    /// Switch, StaticPullSwitch
    StaticSwitch {
        category: Switch, ports: "1/-", processing: "h/h",
        samples: [("0", 1, 1), ("1", 1, 3), ("OUTPUT 3", 1, 2), ("-1", 1, 1)]
    }
}

/// See [`StaticSwitch::CLASS`].
pub(crate) struct StaticSwitch {
    output: i32,
}

impl StaticSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        Ok(Self { output: configured_port(cx, "OUTPUT", outputs)? })
    }
}

/// The port that the only argument names; negative if there is none.
fn configured_port(
    cx: &mut Configure<'_>,
    name: &'static str,
    ports: usize,
) -> Result<i32, Failed> {
    let keywords: &'static [&'static str] = if name == "OUTPUT" { &["OUTPUT"] } else { &["INPUT"] };
    let mut arguments = cx.arguments(keywords);
    let port: i32 = arguments.required(name);
    arguments.finish()?;
    Ok(if usize::try_from(port).is_ok_and(|p| p < ports) { port } else { -1 })
}

impl Element for StaticSwitch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        push(self.output, batch, cx);
    }

    fn model(&self) -> Model {
        Model::from_block(vec![match usize::try_from(self.output) {
            Ok(output) => Op::emit(output),
            Err(_) => Op::Drop(OFF),
        }])
    }
}

element! {
    /// PullSwitch([INPUT]) -- takes packets from one input, which can be changed
    ///
    /// Packets are pulled from input INPUT, 0 by default. If there is no such input, or INPUT is
    /// negative, there are none.
    ///
    /// = HANDLERS
    ///
    /// switch (read, write): the input; what is not an input is taken for -1.
    ///
    /// = SEE ALSO
    ///
    /// StaticPullSwitch, Switch, RoundRobinSched, PrioSched
    PullSwitch {
        category: Switch, ports: "-/1", processing: "l/l",
        samples: []
    }
}

/// See [`PullSwitch::CLASS`].
pub(crate) struct PullSwitch {
    /// -1 for none.
    input: i32,
    inputs: usize,
}

impl PullSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = cx.inputs();
        let mut arguments = cx.arguments(&["INPUT"]);
        let input: i32 = arguments.optional("INPUT").unwrap_or(0);
        arguments.finish()?;
        let exists = usize::try_from(input).is_ok_and(|i| i < inputs);
        Ok(Self { input: if exists { input } else { -1 }, inputs })
    }
}

/// Pulls from an input, if it is one.
fn pull(input: i32, cx: &mut Context<'_>) -> Option<Packet> {
    usize::try_from(input).ok().and_then(|input| cx.pull(input))
}

impl Element for PullSwitch {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        pull(self.input, cx)
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }

    fn handlers(&self) -> &'static [Handler] {
        SWITCH
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.input.to_string())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.input = port(value, self.inputs)?.max(-1);
        Ok(())
    }
}

element! {
    /// StaticPullSwitch(INPUT) -- takes packets from one input
    ///
    /// Packets are pulled from input INPUT. If there is no such input, or INPUT is negative,
    /// there are none. Unlike that of PullSwitch, the input never changes.
    ///
    /// = SEE ALSO
    ///
    /// PullSwitch, StaticSwitch
    StaticPullSwitch {
        category: Switch, ports: "-/1", processing: "l/l",
        samples: []
    }
}

/// See [`StaticPullSwitch::CLASS`].
pub(crate) struct StaticPullSwitch {
    input: i32,
}

impl StaticPullSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let inputs = cx.inputs();
        Ok(Self { input: configured_port(cx, "INPUT", inputs)? })
    }
}

impl Element for StaticPullSwitch {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        pull(self.input, cx)
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }
}

element! {
    /// RoundRobinSwitch([MAX, KEYWORD SPLITBATCH]) -- sends packets to its outputs in turn
    ///
    /// The first packet goes to output 0, the next to output 1, and so on around.
    ///
    /// = KEYWORDS
    ///
    /// MAX (number): outputs that take part, from the first on; by default all.
    /// SPLITBATCH (boolean): accepted, without effect: each packet takes its turn.
    ///
    /// = HANDLERS
    ///
    /// max (read, write): outputs that take part.
    ///
    /// = SEE ALSO
    ///
    /// StrideSwitch, HashSwitch, RandomSwitch, IPRRSwitch, RoundRobinSched
    RoundRobinSwitch {
        category: Switch, ports: "1/1-", processing: "h/h",
        samples: [("", 1, 1), ("", 1, 3), ("MAX 2", 1, 3)]
    }
}

/// See [`RoundRobinSwitch::CLASS`].
pub(crate) struct RoundRobinSwitch {
    /// The output of the next packet.
    next: Cells,
    max: usize,
    outputs: usize,
}

impl RoundRobinSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (outputs, span) = (cx.outputs(), cx.span());
        let mut arguments = cx.arguments(&["MAX", "SPLITBATCH"]);
        let max: Option<i32> = arguments.optional("MAX");
        let _: Option<bool> = arguments.keyword("SPLITBATCH");
        let max = max.and_then(|max| usize::try_from(max).ok()).unwrap_or(outputs);
        if max > outputs {
            let message = format!("{max} outputs cannot take part: {outputs} are connected");
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        Ok(Self { next: Cells::new([0]), max, outputs })
    }
}

impl Element for RoundRobinSwitch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let mut next = self.next.get(0);
        cx.each(batch, |_, _| {
            let output = next;
            next = if next + 1 < self.max as u64 { next + 1 } else { 0 };
            Verdict::To(output as usize)
        });
        self.next.set(0, next);
    }

    fn model(&self) -> Model {
        const NEXT: Reg = Reg(0);
        let mut model = Model::default();
        let next = model.declare("next", StateKind::Cells { width: 32, initial: vec![0] });
        let after = Expr::from(NEXT) + 1u8;
        let wrapped = Expr::choose(after.clone().ge(self.max), 0u8, after);
        model.inputs = vec![vec![
            Op::Read(NEXT, next, 0u8.into()),
            Op::Write(next, 0u8.into(), wrapped),
            Op::emit(NEXT),
        ]];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.next.clone())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.next.export(name, "next", to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.next.import(name, "next", from);
        if self.next.get(0) >= self.outputs as u64 {
            self.next.set(0, 0);
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("max")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.max.to_string())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match parse_value(value)? {
            max if max <= self.outputs => self.max = max,
            max => return Err(format!("there are {} outputs, not {max}", self.outputs)),
        }
        Ok(())
    }
}

element! {
    /// HashSwitch(OFFSET, LENGTH [, KEYWORD MAX]) -- sends packets to outputs by some of their bytes
    ///
    /// Adds up the LENGTH bytes at OFFSET. With 2, 4 or 8 outputs, the sum's low bits, combined
    /// (exclusive or) with those four bits higher, are the output's number; else it is the
    /// remainder of dividing the sum by the number of outputs. Packets that are too short leave
    /// on output 0.
    ///
    /// = KEYWORDS
    ///
    /// MAX: accepted, without effect.
    ///
    /// = EXAMPLE
    ///
    /// HashSwitch(26, 4) chooses by the source address of IP packets in Ethernet frames.
    ///
    /// = SEE ALSO
    ///
    /// RoundRobinSwitch, RandomSwitch, StrideSwitch, IPRRSwitch
    HashSwitch {
        category: Switch, ports: "1/1-", processing: "h/h",
        samples: [("26, 4", 1, 1), ("26, 4", 1, 2), ("0, 20", 1, 3), ("OFFSET 12, LENGTH 40", 1, 4)]
    }
}

/// See [`HashSwitch::CLASS`].
pub(crate) struct HashSwitch {
    offset: u32,
    length: u32,
    outputs: usize,
}

impl HashSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (outputs, span) = (cx.outputs(), cx.span());
        let mut arguments = cx.arguments(&["OFFSET", "LENGTH", "MAX"]);
        let offset = arguments.required("OFFSET");
        let length = arguments.required("LENGTH");
        let _: Option<i32> = arguments.keyword("MAX");
        if length == 0 {
            let error = Diagnostic::error("bad-argument", "LENGTH must be greater than 0");
            arguments.report(error.label(span, ""));
        }
        arguments.finish()?;
        Ok(Self { offset, length, outputs })
    }

    /// Whether the output is taken from bits of the sum.
    fn by_bits(&self) -> bool {
        matches!(self.outputs, 2 | 4 | 8)
    }
}

impl Element for HashSwitch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let (offset, length) = (self.offset as usize, self.length as usize);
        let by_bits = self.by_bits();
        cx.each(batch, |packet, _| {
            let bytes = packet.data().get(offset..).and_then(|b| b.get(..length));
            let output = match bytes {
                None => 0,
                Some(bytes) => {
                    let sum: usize = bytes.iter().map(|&b| usize::from(b)).sum();
                    if by_bits { (sum ^ sum >> 4) & (self.outputs - 1) } else { sum % self.outputs }
                }
            };
            Verdict::To(output)
        });
    }

    fn model(&self) -> Model {
        const SUM: Reg = Reg(0);
        let end = u64::from(self.offset) + u64::from(self.length);
        let sum = Expr::ByteSum {
            base: ir::field::Base::Data,
            offset: Box::new(self.offset.into()),
            length: Box::new(self.length.into()),
        };
        let output = if self.by_bits() {
            (Expr::from(SUM) ^ (Expr::from(SUM) >> 4u8)) & (self.outputs - 1)
        } else {
            Expr::from(SUM) % self.outputs
        };
        Model::from_block(vec![
            Op::when(ir::field::meta::LEN.lt(end), vec![Op::emit(0u8)]),
            Op::Let(SUM, sum),
            Op::Emit(output),
        ])
    }
}
