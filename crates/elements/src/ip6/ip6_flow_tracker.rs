//! IP6FlowTracker.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use ir::field::ip6;
use ir::model::{Block, StateKind, reject};
use ir::{Cond, Diagnostic, Model, Op, Reason, StateValue};
use net::wire::icmpv6::message::{ECHO, ECHO_REPLY};
use net::wire::ip_protocol::{ICMPV6, UDP};
use net::{Batch, Packet};

use crate::argument::Nanoseconds;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::flow_table::{FlowOf, FlowTable, GroupFlows, HandedOver, Table};
use crate::ip6::ip6_header::{self, NO_HEADER};
use crate::ip6::upper::{self, EXTENSIONS, Key6, Whole};
use crate::listing::{self, Record, SLICE, Slice};

element! {
    /// IP6FlowTracker([KEYWORDS]) -- tells packets of known flows of UDP and pings of IPv6 from others
    ///
    /// Expects IPv6 packets with their header marked. Has an even number of inputs, 2N. On the first N come packets of
    /// which it is not known whether they belong to a flow. Those that do leave on the output of the same number. Those
    /// that may begin one, and all packets that are of no kind that is tracked, leave on the output N further, and nothing
    /// is remembered of them yet: others decide whether they may, and send them back to the input of that number. There
    /// they begin a flow, and leave on the output that they would have left on.
    ///
    /// Flows are those of UDP, by addresses and ports, and of pings, by addresses and identifier. They have packets in both
    /// directions. Answers to a ping begin no flow. An ICMPv6 error of RFC 4443, types 1 to 4, belongs to the flow of the
    /// packet that it quotes; it must go to the one that sent this packet.
    ///
    /// UDP and ICMPv6 are found behind extension headers, of which at most 16 are looked at. Packets that have more or one
    /// that is cut off are invalid, as are fragments, packets with a routing header that has segments left, answers
    /// to pings and errors that belong to no flow. They go to output 2N, or are dropped if that is not connected.
    /// A packet that is all of its fragments is none (RFC 6946).
    ///
    /// When the table is full, the flow that expires first is forgotten for a new one, if it expires before
    /// the new one: flows without an answer go first.
    ///
    /// = KEYWORDS
    ///
    /// CAPACITY (number, default 4194304): how many flows there may be.
    /// UDP_TIMEOUT (time, default 5 minutes): of flows of UDP that have packets in both directions.
    /// OPEN_TIMEOUT (time, default 2 minutes): of flows of UDP that have them in one only; at most UDP_TIMEOUT.
    /// ICMP_TIMEOUT (time, default 1 minute): of pings.
    ///
    /// = HANDLERS
    ///
    /// count (read): number of flows.
    /// table (read): the flows, with their states; the identifier of a ping stands where ports do.
    /// invalid (read): how many packets were invalid, by reason.
    ///
    /// = IPV6
    ///
    /// Tracked; see above.
    ///
    /// = EXAMPLE
    ///
    /// t :: IP6FlowTracker; ... -> CheckIP6Header -> [0] t [0] -> ...;
    /// t[1] -> IP6Filter(allow udp dst port 53, allow icmp6 type echo) -> [1] t;
    ///
    /// = SEE ALSO
    ///
    /// TCP6Tracker, IP6Filter, CheckIP6Header
    IP6FlowTracker {
        category: Ip6, ports: "2-/2-", processing: "h/h",
        samples: [
            ("", 2, 2), ("", 4, 5), ("CAPACITY 2, OPEN_TIMEOUT 1, UDP_TIMEOUT 3, ICMP_TIMEOUT 2", 2, 3)
        ]
    }
}

/// See [`IP6FlowTracker::CLASS`].
pub(crate) struct IP6FlowTracker {
    /// Half the number of inputs.
    half: usize,
    outputs: usize,
    flows: Rc<RefCell<Table<Addresses>>>,
    timeouts: [u64; 3],
    classes: [u16; 3],
}

type Addresses = [u128; 2];

/// What the declared flows are called.
const STATE: &str = "flows";
/// A flow's state when there were packets in both directions; 0 before.
const ANSWERED: u8 = 1;
/// Keys of answers to pings have this in their map, as the identifier is no port.
const ANSWER: u16 = 0x100;
const SECOND: u64 = 1_000_000_000;
const CAPACITY: u64 = 4 << 20;

/// There is no such flow, and the packet may not begin one.
const NO_FLOW: Reason = Reason("no-flow");
/// All flows that are remembered live longer than a new one.
const NO_ROOM: Reason = Reason("no-room-for-flow");
/// The packet is shorter than its header.
const LENGTH: Reason = Reason("bad-length");

const REASONS: [Reason; 7] = [
    NO_FLOW,
    NO_ROOM,
    LENGTH,
    upper::FRAGMENT,
    upper::BAD_EXTENSION,
    upper::SEGMENTS_LEFT,
    upper::BAD_QUOTE,
];

/// What is tracked of a packet.
enum What {
    /// It may begin a flow, or be of one.
    Begins(Key6),
    /// It may be of a flow.
    Answers(Key6),
    /// It is about a flow.
    Error(Key6),
    Other,
}

/// What a whole packet is.
fn of_whole(whole: &Whole<'_>) -> Result<What, Reason> {
    match (whole.protocol, whole.body.first()) {
        (UDP, _) => whole.key().filter(|_| whole.body.len() >= 8).map(What::Begins).ok_or(LENGTH),
        (ICMPV6, Some(&kind @ (ECHO | ECHO_REPLY))) => {
            let identifier = whole.half(4).ok_or(LENGTH)?;
            Ok(match kind {
                ECHO => What::Begins(Key6::new(ICMPV6.into(), whole.src, identifier, whole.dst, 0)),
                _ => {
                    let map = u16::from(ICMPV6) | ANSWER;
                    What::Answers(Key6::new(map, whole.src, 0, whole.dst, identifier))
                }
            })
        }
        _ => Ok(What::Other),
    }
}

fn see(packet: &Packet) -> Result<What, Reason> {
    let whole = Whole::of(packet)?;
    match whole.quoted().transpose()? {
        None => of_whole(&whole),
        Some(quoted) => Ok(match of_whole(&quoted)? {
            What::Begins(key) | What::Answers(key) => What::Error(key),
            _ => What::Other,
        }),
    }
}

/// The key of answers.
fn answer(key: Key6) -> Key6 {
    let is_ping = key.map == u16::from(ICMPV6);
    Key6 { map: if is_ping { key.map | ANSWER } else { key.map }, ..key.reverse() }
}

/// Which of the timeouts a flow has.
fn class(protocol: u8, state: u8) -> usize {
    match (protocol, state) {
        (ICMPV6, _) => 2,
        (_, ANSWERED) => 1,
        _ => 0,
    }
}

fn class_of(classes: [u16; 3]) -> impl Fn(&FlowOf<Addresses>) -> Option<u16> {
    move |flow| (flow.state <= ANSWERED).then_some(classes[class(flow.protocol, flow.state)])
}

impl IP6FlowTracker {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (inputs, outputs, span) = (cx.inputs(), cx.outputs(), cx.span());
        let mut arguments =
            cx.arguments(&["CAPACITY", "UDP_TIMEOUT", "OPEN_TIMEOUT", "ICMP_TIMEOUT"]);
        let capacity = arguments.keyword("CAPACITY").unwrap_or(CAPACITY);
        let mut time = |name, usual: u64| {
            arguments.keyword::<Nanoseconds>(name).map_or(usual * SECOND, |time| time.0)
        };
        let udp = time("UDP_TIMEOUT", 300);
        let timeouts = [time("OPEN_TIMEOUT", 120).min(udp), udp, time("ICMP_TIMEOUT", 60)];
        if !inputs.is_multiple_of(2) || !(inputs..=inputs + 1).contains(&outputs) {
            let message = format!("there are {inputs} inputs and {outputs} outputs");
            let error = Diagnostic::error("bad-ports", message).label(span, "");
            arguments.report(error.help(
                "connect an even number of inputs, as many outputs, and one more for what is invalid if you like",
            ));
        }
        arguments.finish()?;
        cx.claim(None, span, FlowTable::EMPTY)?;
        let mut flows = Table::new(capacity);
        let classes = timeouts.map(|timeout| flows.class(timeout, 0));
        let flows = Rc::new(RefCell::new(flows));
        Ok(Self { half: inputs / 2, outputs, flows, timeouts, classes })
    }

    /// Whether there is a flow with a key; if so, it had a packet, unless that was an error about it.
    fn find(&self, key: &Key6, is_error: bool, now: u64) -> bool {
        let mut flows = self.flows.borrow_mut();
        let Some((number, side)) = flows.lookup(key, now) else { return false };
        if !is_error {
            let flow = flows.flow(number);
            let (protocol, state) = (flow.protocol, flow.state.max(side as u8));
            flows.set_state(number, state);
            flows.touch(number, self.classes[class(protocol, state)], now);
        }
        true
    }

    /// Where a packet goes of which it is not known whether it belongs to a flow, or why it is invalid.
    fn check(&self, port: usize, packet: &Packet, now: u64) -> Result<usize, Reason> {
        let others_decide = port + self.half;
        let (key, is_error, begins) = match see(packet)? {
            What::Other => return Ok(others_decide),
            What::Begins(key) => (key, false, true),
            What::Answers(key) => (key, false, false),
            What::Error(key) => (key, true, false),
        };
        match self.find(&key, is_error, now) {
            true => Ok(port),
            false => begins.then_some(others_decide).ok_or(NO_FLOW),
        }
    }

    /// Begins the flow of a packet that others let pass.
    fn begin(&self, packet: &Packet, now: u64) -> Result<(), Reason> {
        let What::Begins(key) = see(packet)? else { return Ok(()) };
        if self.find(&key, false, now) {
            return Ok(());
        }
        let mut flow = FlowOf::new(key, answer(key));
        flow.protocol = key.map as u8;
        let mut flows = self.flows.borrow_mut();
        let number = flows.insert(flow, self.classes[class(flow.protocol, 0)], now);
        let number = number.ok_or(NO_ROOM)?;
        flows.set_group(number, packet.group());
        Ok(())
    }
}

impl Element for IP6FlowTracker {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let (now, half) = (cx.now(), self.half);
        let mut flows = self.flows.borrow_mut();
        flows.expire(now);
        if flows.is_mixed() {
            flows.regroup(class_of(self.classes));
        }
        drop(flows);
        cx.each(batch, |packet, _| {
            let output = match port.checked_sub(half) {
                None => self.check(port, packet, now),
                Some(output) => self.begin(packet, now).map(|()| output),
            };
            match output {
                Ok(output) => Verdict::To(output),
                Err(reason) => Verdict::Reject(2 * half, reason),
            }
        });
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let input = |port: usize| -> Block {
            let missing = reject(2 * self.half, self.outputs, NO_HEADER);
            let other = [UDP, ICMPV6].iter().chain(&EXTENSIONS).map(|&kind| ip6::NEXT.ne(kind));
            let decide = (port + self.half) % (2 * self.half);
            vec![
                Op::when(ip6_header::is_missing(), missing),
                Op::when(Cond::All(other.collect()), vec![Op::emit(decide as u32)]),
                Op::Opaque("keeps flows that are found behind extension headers and in errors"),
            ]
        };
        model.inputs = (0..2 * self.half).map(input).collect();
        let capacity = self.flows.borrow().capacity();
        let widths = vec![128, 16, 128, 16, 16, 1, 8, 16, 8, 8];
        model.declare(STATE, StateKind::Flows { capacity, widths });
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        let mut flows = self.flows.borrow_mut();
        match to.group() {
            group if to.is_copy() => {
                to.declared.set(name, STATE, StateValue::Flows(flows.export(group)));
            }
            None => {
                to.native = Some(Box::new(flows.hand_over()));
                to.numbers = self.timeouts.to_vec();
            }
            Some(group) => to.native = Some(Box::new(flows.export_group(group))),
        }
    }

    fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        let mut flows = self.flows.borrow_mut();
        if let Some(group) = from.take_native::<GroupFlows<Addresses>>() {
            flows.import_group(*group, now, class_of(self.classes));
        } else if let Some(whole) = from.take_native::<HandedOver<Addresses>>() {
            flows.take_over(*whole);
            if from.counts() != Some(self.timeouts) {
                flows.change_timeouts();
            }
            self.classes = self.timeouts.map(|timeout| flows.class(timeout, 0));
        } else if let Some(StateValue::Flows(declared)) = from.declared.get(name, STATE) {
            flows.import(declared, class_of(self.classes), |_| [0; 2]);
        }
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.flows) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("count"), Handler::read("table"), Handler::read("invalid")] }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        if handler != "invalid" {
            return Ok(listing::whole(|from| self.list(handler, from, cx)));
        }
        let line = |reason| format!("{reason} {}\n", cx.tally.count(reason));
        Ok(REASONS.into_iter().map(line).collect())
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        let (mut living, mut records) = (0, Vec::new());
        let is_table = match handler {
            "table" => true,
            "count" => false,
            _ => return None,
        };
        let (next, touches) = self.flows.borrow().visit(from, SLICE, |flow| {
            if flow.expiry() <= cx.now {
                return;
            }
            living += 1;
            if is_table {
                let tuple = flow.key(0).tuple();
                let from = SocketAddr::new(tuple.src, tuple.src_port);
                let to = SocketAddr::new(tuple.dst, tuple.dst_port);
                let protocol = if flow.protocol == ICMPV6 { "icmp6" } else { "udp" };
                let state = if flow.state == ANSWERED { "answered" } else { "new" };
                let left = (flow.expiry() - cx.now) / SECOND;
                let text = format!("{protocol} {from} > {to} {state} {left}s");
                records.push(Record::Row(u64::from(flow.touched()), text));
            }
        });
        if !is_table {
            records.push(Record::Count(0, living));
        }
        Some(Slice { records, next, touches, ..Slice::default() })
    }
}
