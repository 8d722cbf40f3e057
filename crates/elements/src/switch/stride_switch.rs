//! StrideSwitch.

use ir::model::{Block, Expr, Reg, StateKind};
use ir::{Model, Op, Reason, StateValue};
use net::Batch;

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, NamedHandler};
use crate::element_state::ElementState;
use crate::queue::stride::Stride;

element! {
    /// StrideSwitch(TICKETS0, ..., TICKETSn) -- sends packets to its outputs in proportion to tickets
    ///
    /// Schedules its outputs by strides, as StrideSched does its inputs: an output with twice the
    /// tickets of another gets twice the packets. There is one argument for each output; an output
    /// with 0 tickets gets none. Tickets are at most 32768. If no output has tickets, packets are
    /// dropped.
    ///
    /// = HANDLERS
    ///
    /// tickets0 ... ticketsn (read, write): the tickets of an output.
    /// tickets (read): the tickets of all outputs.
    ///
    /// = SEE ALSO
    ///
    /// StrideSched, RoundRobinSwitch, HashSwitch, RandomSwitch, Switch
    StrideSwitch {
        category: Switch, ports: "1/1-", processing: "h/h",
        samples: [("1", 1, 1), ("1, 2, 5", 1, 3), ("3, 0, 3, 32768", 1, 4), ("0, 0", 1, 2)]
    }
}

/// See [`StrideSwitch::CLASS`].
pub(crate) struct StrideSwitch {
    stride: Stride,
}

/// No output has a ticket.
const NO_TICKETS: Reason = Reason("no-tickets");

impl StrideSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        Ok(Self { stride: Stride::configure(cx, outputs, "output")? })
    }

    fn order(&self) -> Vec<u128> {
        self.stride.order().iter().map(|&o| o as u128).collect()
    }

    fn passes(&self) -> Vec<u128> {
        self.stride.passes().map(u128::from).collect()
    }

    /// The stride of the output in a register.
    fn stride_of(&self, output: Reg) -> Expr {
        self.stride.strides().enumerate().fold(Expr::from(0u8), |others, (i, stride)| {
            Expr::choose(Expr::from(output).eq(i), stride, others)
        })
    }
}

impl Element for StrideSwitch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.drain() {
            match self.stride.order().first() {
                Some(&output) => {
                    self.stride.turn(1);
                    cx.emit(output, packet);
                }
                None => cx.drop(packet, NO_TICKETS),
            }
        }
    }

    fn model(&self) -> Model {
        const FIRST: Reg = Reg(0);
        const PASS: Reg = Reg(1);
        const AT: Reg = Reg(2);
        const OTHER: Reg = Reg(3);
        const THEIRS: Reg = Reg(4);
        if self.stride.order().is_empty() {
            return Model::from_block(vec![Op::Drop(NO_TICKETS)]);
        }
        let mut model = Model::default();
        let passes = StateKind::Cells { width: 32, initial: self.passes() };
        let passes = model.declare("passes", passes);
        let order = StateKind::Cells { width: 16, initial: self.order() };
        let order = model.declare("order", order);
        let at = || Expr::from(AT);
        let behind = (Expr::from(THEIRS) - PASS) & u32::MAX;
        // Outputs that come before the new pass of the first move up.
        let move_up: Block = vec![
            Op::Read(OTHER, order, at() + 1u8),
            Op::Read(THEIRS, passes, OTHER.into()),
            Op::when(behind.le(i32::MAX as u32), vec![Op::Break]),
            Op::Write(order, at(), OTHER.into()),
            Op::Let(AT, at() + 1u8),
        ];
        model.inputs = vec![vec![
            Op::Read(FIRST, order, 0u8.into()),
            Op::Read(PASS, passes, FIRST.into()),
            Op::Let(PASS, (Expr::from(PASS) + self.stride_of(FIRST)) & u32::MAX),
            Op::Write(passes, FIRST.into(), PASS.into()),
            Op::Let(AT, 0u8.into()),
            Op::Repeat { limit: self.stride.order().len() as u32 - 1, body: move_up },
            Op::Write(order, at(), FIRST.into()),
            Op::emit(FIRST),
        ]];
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        if !self.stride.order().is_empty() {
            to.set(name, "passes", StateValue::Cells(self.passes()));
            to.set(name, "order", StateValue::Cells(self.order()));
        }
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.stride
            .restore(from.declared.cells(name, "order"), from.declared.cells(name, "passes"));
    }

    fn handlers(&self) -> &'static [Handler] {
        Stride::HANDLERS
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        self.stride.named_handlers()
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.stride.read(handler))
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.stride.write(handler, value)
    }
}
