//! Paint and its kin: a byte of the annotations as a packet's colour.

use ir::field::{Base, Field};
use ir::{Model, Op, Reason, model};
use net::{Batch, annotation};

use crate::argument::{AnnotationOffset, parse_value};
use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};

/// A colour and the annotation that holds it.
struct Colour {
    at: usize,
    colour: u8,
}

impl Colour {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["COLOR", "ANNO"]);
        let colour = arguments.required("COLOR");
        let at = optional_annotation(&mut arguments);
        arguments.finish()?;
        Ok(Self { at, colour })
    }

    fn field(&self) -> Field {
        field(self.at)
    }

    #[inline]
    fn is_on(&self, packet: &net::Packet) -> bool {
        packet.annotations().u8(self.at) == self.colour
    }

    const HANDLERS: &'static [Handler] = &[Handler::both("color")];

    fn read(&self) -> String {
        self.colour.to_string()
    }

    fn write(&mut self, value: &str) -> Result<(), String> {
        self.colour = parse_value(value)?;
        Ok(())
    }
}

fn optional_annotation(arguments: &mut Arguments<'_, '_>) -> usize {
    arguments.optional("ANNO").unwrap_or(AnnotationOffset::<1>(annotation::PAINT)).0
}

fn field(at: usize) -> Field {
    Field::bytes(Base::Annotation, at as u16, 1)
}

element! {
    /// Paint(COLOR [, ANNO]) -- paints packets
    ///
    /// Sets the paint annotation, or the annotation of one byte that ANNO names by its name or
    /// its offset, to COLOR, a number from 0 to 255.
    ///
    /// = HANDLERS
    ///
    /// color (read, write): the colour.
    ///
    /// = SEE ALSO
    ///
    /// PaintSwitch, PaintTee, CheckPaint
    Paint {
        category: Switch, ports: "1/1", processing: "a/a",
        samples: [("3", 1, 1), ("255, 7", 1, 1), ("COLOR 0x10, ANNO FIX_IP_SRC", 1, 1)]
    }
}

/// See [`Paint::CLASS`].
pub(crate) struct Paint(Colour);

impl Paint {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Colour::configure(cx).map(Self)
    }
}

impl Element for Paint {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            packet.annotations_mut().set_u8(self.0.at, self.0.colour);
        }
    }

    fn model(&self) -> Model {
        Model::from_block(vec![self.0.field().set(self.0.colour), Op::emit(0u8)])
    }

    fn handlers(&self) -> &'static [Handler] {
        Colour::HANDLERS
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.0.read())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.0.write(value)
    }
}

element! {
    /// SetAnnoByte(ANNO, VALUE) -- sets a byte of the annotations
    ///
    /// An old name of Paint(VALUE, ANNO).
    ///
    /// = HANDLERS
    ///
    /// anno (read): the offset of the byte.
    /// value (read, write): the value.
    ///
    /// = SEE ALSO
    ///
    /// Paint
    SetAnnoByte {
        category: Switch, ports: "1/1", processing: "a/a",
        samples: [("20, 3", 1, 1), ("PAINT, 255", 1, 1)]
    }
}

/// See [`SetAnnoByte::CLASS`].
pub(crate) struct SetAnnoByte(Paint);

impl SetAnnoByte {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["ANNO", "VALUE"]);
        let AnnotationOffset::<1>(at) = arguments.required("ANNO");
        let colour = arguments.required("VALUE");
        arguments.finish()?;
        Ok(Self(Paint(Colour { at, colour })))
    }
}

impl Element for SetAnnoByte {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.0.push(port, batch, cx);
    }

    fn model(&self) -> Model {
        self.0.model()
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("anno"), Handler::both("value")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let colour = &self.0.0;
        Ok(if handler == "anno" { colour.at.to_string() } else { colour.read() })
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.0.0.write(value)
    }
}

element! {
    /// CheckPaint(COLOR [, ANNO]) -- passes packets of one colour
    ///
    /// Passes packets whose paint annotation, or the annotation of one byte that ANNO names, is
    /// COLOR. Others leave on output 1, or are dropped if there is none.
    ///
    /// = HANDLERS
    ///
    /// color (read, write): the colour.
    ///
    /// = SEE ALSO
    ///
    /// Paint, PaintTee, PaintSwitch
    CheckPaint {
        category: Switch, ports: "1/1-2", processing: "a/ah",
        samples: [("0", 1, 1), ("1", 1, 2), ("0, 19", 1, 2)]
    }
}

/// See [`CheckPaint::CLASS`].
pub(crate) struct CheckPaint {
    colour: Colour,
    outputs: usize,
}

/// The paint annotation has another colour.
const OTHER_COLOUR: Reason = Reason("other-color");

impl CheckPaint {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Ok(Self { outputs: cx.outputs(), colour: Colour::configure(cx)? })
    }
}

impl Element for CheckPaint {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| match self.colour.is_on(packet) {
            true => Verdict::Pass,
            false => Verdict::Reject(1, OTHER_COLOUR),
        });
    }

    fn model(&self) -> Model {
        let other = self.colour.field().ne(self.colour.colour);
        let reject = model::reject(1, self.outputs, OTHER_COLOUR);
        Model::from_block(vec![Op::If(other, reject, vec![Op::emit(0u8)])])
    }

    fn handlers(&self) -> &'static [Handler] {
        Colour::HANDLERS
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.colour.read())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.colour.write(value)
    }
}

element! {
    /// PaintTee(COLOR [, ANNO]) -- copies packets of one colour
    ///
    /// Passes all packets; of those whose paint annotation, or the annotation of one byte that
    /// ANNO names, is COLOR, a copy leaves on output 1. A router that paints packets by the
    /// interface that they came in on finds out with it which of them leave where they came from
    /// (and deserve an ICMP redirect).
    ///
    /// = HANDLERS
    ///
    /// color (read, write): the colour.
    ///
    /// = SEE ALSO
    ///
    /// Paint, CheckPaint, PaintSwitch, Tee, ICMPError
    PaintTee {
        category: Switch, ports: "1/2", processing: "a/ah",
        samples: [("0", 1, 2), ("1", 1, 2), ("0, 19", 1, 2)]
    }
}

/// See [`PaintTee::CLASS`].
pub(crate) struct PaintTee(Colour);

impl PaintTee {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Colour::configure(cx).map(Self)
    }
}

impl Element for PaintTee {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.iter().filter(|p| self.0.is_on(p)) {
            let copy = cx.core.pool.copy(packet);
            cx.emit(1, copy);
        }
    }

    fn model(&self) -> Model {
        let matches = self.0.field().eq(self.0.colour);
        Model::from_block(vec![Op::when(matches, vec![Op::EmitCopy(1u8.into())]), Op::emit(0u8)])
    }

    fn handlers(&self) -> &'static [Handler] {
        Colour::HANDLERS
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.0.read())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.0.write(value)
    }
}

element! {
    /// PaintSwitch([ANNO]) -- sends packets to the output of their colour
    ///
    /// The paint annotation, or the annotation of one byte that ANNO names, is the number of the
    /// output. Packets of colour 255 are copied to all outputs; other colours without an output
    /// are dropped.
    ///
    /// = SEE ALSO
    ///
    /// Paint, PaintTee, CheckPaint, Switch
    PaintSwitch {
        category: Switch, ports: "1/1-", processing: "h/h",
        samples: [("", 1, 1), ("", 1, 3), ("ANNO 19", 1, 2)]
    }
}

/// See [`PaintSwitch::CLASS`].
pub(crate) struct PaintSwitch {
    at: usize,
    outputs: usize,
}

/// The colour of packets for all outputs.
const ALL: u8 = 255;

impl PaintSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["ANNO"]);
        let at = optional_annotation(&mut arguments);
        arguments.finish()?;
        Ok(Self { at, outputs })
    }
}

impl Element for PaintSwitch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        // Packets for output 0 are emitted too, to stay in order with the copies there.
        for packet in batch.drain() {
            match packet.annotations().u8(self.at) {
                ALL => {
                    for port in 0..self.outputs - 1 {
                        let copy = cx.core.pool.copy(&packet);
                        cx.emit(port, copy);
                    }
                    cx.emit(self.outputs - 1, packet);
                }
                port => cx.emit(port.into(), packet),
            }
        }
    }

    fn model(&self) -> Model {
        let last = self.outputs - 1;
        let copies = (0..last).map(|port| Op::EmitCopy(port.into()));
        Model::from_block(vec![
            Op::when(field(self.at).eq(ALL), copies.chain([Op::emit(last)]).collect()),
            Op::Emit(field(self.at).get()),
        ])
    }
}
