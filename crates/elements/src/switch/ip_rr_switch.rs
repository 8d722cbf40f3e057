//! IPRRSwitch.

use std::cell::RefCell;
use std::rc::Rc;

use ir::field::{ip, meta, transport};
use ir::model::{Block, Expr, FlowSide, Reg, StateKind};
use ir::{Cond, Diagnostic, IntervalSet, Model, Op, StateValue};
use net::{Batch, Packet};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::flow_table::{Flow, FlowTable, GroupFlows, HandedOver, Key};
use crate::ip::ip_header::{self, NO_HEADER};
use crate::listing::{self, Record, SLICE, Slice};

element! {
    /// IPRRSwitch([KEYWORDS MAX, CAPACITY]) -- sends flows to its outputs in turn
    ///
    /// Expects IP packets with their header marked. All packets of a flow leave on one output; a
    /// new flow gets the output after the one that the last new flow got, the first flow output
    /// 1. A flow is the packets of the same addresses, protocol and, for TCP, UDP, DCCP, SCTP and
    /// UDP-Lite, ports. Fragments that do not start with the ports are distinguished without them.
    /// Packets without an IP header are dropped.
    ///
    /// = KEYWORDS
    ///
    /// MAX (number): outputs that take part, from the first on; by default all.
    /// CAPACITY (number, default 65536): flows that are remembered. If there are more, the one
    /// whose last packet was longest ago is forgotten.
    ///
    /// = HANDLERS
    ///
    /// flow_count (read): flows that are remembered and have not expired.
    ///
    /// = SEE ALSO
    ///
    /// RoundRobinSwitch, HashSwitch, StrideSwitch, RandomSwitch, IPRewriter
    IPRRSwitch {
        category: Switch, ports: "1/1-", processing: "h/h",
        samples: [("", 1, 1), ("", 1, 3), ("MAX 2, CAPACITY 4", 1, 3), ("CAPACITY 0", 1, 2)]
    }
}

/// See [`IPRRSwitch::CLASS`].
pub(crate) struct IPRRSwitch {
    /// Shared with the programs that look flows up in it.
    flows: Rc<RefCell<FlowTable>>,
    class: u16,
    /// The output of the last new flow.
    current: u16,
    max: u16,
}

/// Longer than any chain runs, in nanoseconds: ten years. What orders flows by their last packet.
const FOREVER: u64 = 10 * 365 * 86400 * 1_000_000_000;
const CAPACITY: u64 = 65536;

/// Whether packets of the protocol start with two ports.
fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}

fn key(packet: &Packet) -> Option<Key> {
    let ip = ip_header::view(packet)?;
    let ports = match packet.transport().and_then(|t| t.first_chunk()) {
        Some(&ports) if !ip.is_later_fragment() && has_ports(ip.protocol()) => ports,
        _ => [0; 4],
    };
    let ports = u32::from_be_bytes(ports);
    let (src_port, dst_port) = ((ports >> 16) as u16, ports as u16);
    let (src, dst) = (ip.src().to_bits(), ip.dst().to_bits());
    Some(Key::new(ip.protocol().into(), src, src_port, dst, dst_port))
}

impl IPRRSwitch {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (outputs, span) = (cx.outputs(), cx.span());
        let mut arguments = cx.arguments(&["MAX", "CAPACITY"]);
        let max = arguments.keyword("MAX").unwrap_or(outputs);
        let capacity = arguments.keyword("CAPACITY").unwrap_or(CAPACITY);
        let max = match u16::try_from(max) {
            Ok(most @ 1..) if max <= outputs => most,
            _ => {
                let message = format!("MAX is {max}, but must be from 1 to {outputs}");
                arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
                1
            }
        };
        arguments.finish()?;
        cx.claim(None, span, FlowTable::EMPTY)?;
        let mut flows = FlowTable::new(capacity);
        let class = flows.class(FOREVER, 0);
        Ok(Self { flows: Rc::new(RefCell::new(flows)), class, current: 0, max })
    }
}

impl Element for IPRRSwitch {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        let mut flows = self.flows.borrow_mut();
        flows.expire(now);
        cx.each(batch, |packet, _| {
            let Some(key) = key(packet) else { return Verdict::Drop(NO_HEADER) };
            if let Some((number, _)) = flows.lookup(&key, now) {
                flows.touch(number, self.class, now);
                return Verdict::To(flows.flow(number).output(1).into());
            }
            self.current = (self.current + 1) % self.max;
            // Both directions have the same key: the packets' own.
            let mut flow = Flow::new(key, key);
            flow.set_outputs([self.current; 2]);
            if let Some(number) = flows.insert(flow, self.class, now) {
                flows.set_group(number, packet.group());
            }
            Verdict::To(self.current.into())
        });
    }

    fn model(&self) -> Model {
        const SRC_PORT: Reg = Reg(0);
        const DST_PORT: Reg = Reg(1);
        const OUTPUT: Reg = Reg(2);
        let mut model = Model::default();
        let capacity = self.flows.borrow().capacity();
        let flows =
            model.declare("flows", StateKind::Flows { capacity, widths: vec![32, 16, 32, 16, 16] });
        let cells = StateKind::Cells { width: 16, initial: vec![0] };
        let current = model.declare("current", cells);

        let protocols = (0..=255).filter(|&p| has_ports(p));
        let protocols = protocols.map(|p| IntervalSet::single(p.into()));
        let protocols = protocols.reduce(|a, b| a.union(&b)).unwrap_or_default();
        let has_ports = Cond::All(vec![
            ip::PROTO.is_in(protocols),
            ip::FRAG.eq(0u8),
            meta::AVAIL_TRANSPORT.ge(4u8),
        ]);
        let key = || -> Vec<Expr> {
            let [src, dst] = [ip::SRC, ip::DST].map(Expr::from);
            vec![ip::PROTO.into(), src, SRC_PORT.into(), dst, DST_PORT.into()]
        };
        let side = |side: u8| {
            let [src, dst] = [ip::SRC, ip::DST].map(Expr::from);
            let value =
                vec![dst, DST_PORT.into(), src, SRC_PORT.into(), OUTPUT.into(), side.into()];
            FlowSide { key: key(), value }
        };
        let common = || -> Vec<Expr> { vec![0u8.into(); 4] };
        let expiry = || (Expr::Now | self.flows.borrow().tick()) + FOREVER;

        let new: Block = vec![
            Op::Read(OUTPUT, current, 0u8.into()),
            Op::Let(OUTPUT, (Expr::from(OUTPUT) + 1u8) % self.max),
            Op::Write(current, 0u8.into(), OUTPUT.into()),
            Op::FlowInsert {
                flows,
                forward: side(0),
                reverse: side(1),
                common: common(),
                expiry: expiry(),
                guarantee: 0u8.into(),
                full: vec![Op::emit(OUTPUT)],
            },
            Op::emit(OUTPUT),
        ];
        let rest = [3, 4, 5, 6].map(Reg);
        model.inputs = vec![vec![
            Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            Op::Let(SRC_PORT, Expr::choose(has_ports.clone(), transport::SPORT, 0u8)),
            Op::Let(DST_PORT, Expr::choose(has_ports, transport::DPORT, 0u8)),
            Op::FlowLookup {
                flows,
                key: key(),
                value: rest.into_iter().chain([OUTPUT]).collect(),
                common: Vec::new(),
                miss: new,
            },
            Op::FlowUpdate {
                flows,
                key: key(),
                common: common(),
                expiry: expiry(),
                guarantee: 0u8.into(),
            },
            Op::emit(OUTPUT),
        ]];
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        let mut flows = self.flows.borrow_mut();
        match to.group() {
            group if to.is_copy() => {
                to.declared.set(name, "flows", StateValue::Flows(flows.export(group)));
            }
            None => {
                to.native = Some(Box::new(flows.hand_over()));
                to.numbers = vec![self.max.into()];
            }
            Some(group) => to.native = Some(Box::new(flows.export_group(group))),
        }
        to.set(name, "current", StateValue::Cells(vec![self.current.into()]));
    }

    fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        let (mut table, max) = (self.flows.borrow_mut(), self.max);
        if let Some(flows) = from.take_native::<GroupFlows>() {
            table.import_group(*flows, now, |_| Some(self.class));
        } else if let Some(flows) = from.take_native::<HandedOver>() {
            table.take_over(*flows);
            self.class = table.class(FOREVER, 0);
            if from.counts() != Some([u64::from(max)]) {
                table.retain(|flow| flow.output(1) < max);
            }
        } else if let Some(StateValue::Flows(flows)) = from.declared.get(name, "flows") {
            let class_of = |flow: &Flow| (flow.output(1) < max).then_some(self.class);
            table.import(flows, class_of, |_| [0; 2]);
        }
        if let [current] = *from.declared.cells(name, "current") {
            self.current = u16::try_from(current).unwrap_or(0) % max;
        }
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.flows) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("flow_count")] }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(listing::whole(|from| self.list(handler, from, cx)))
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        if handler != "flow_count" {
            return None;
        }
        let mut living = 0;
        let count = |flow: &Flow| living += u64::from(flow.expiry() > cx.now);
        let (next, touches) = self.flows.borrow().visit(from, SLICE, count);
        Some(Slice { records: vec![Record::Count(0, living)], next, touches, ..Slice::default() })
    }
}
