//! TCPTracker.

mod connection;
mod segment;
mod table;

use std::cell::RefCell;
use std::rc::Rc;

use ir::field::ip;
use ir::model::{Block, StateKind, reject};
use ir::{Diagnostic, Model, Op, Reason};
use net::wire::ip_protocol::TCP;
use net::{Batch, Packet};

use crate::argument::Nanoseconds;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::flow_table::{FlowTable, Key};
use crate::header_check::Check;
use crate::ip::ip_header;
use crate::listing::{self, Record, SLICE, Slice};
use crate::transport::check_tcp_header::CheckTCPHeader;
use connection::{BAD_RST, BAD_STATE, Connection, OUT_OF_WINDOW, State};
use segment::{Kind, Segment};
use table::{STATE, Table, Timeouts};

element! {
    /// TCPTracker([KEYWORDS]) -- checks TCP segments against their connections' states and windows
    ///
    /// Expects IPv4 packets with their header marked, fragments put together. Has an even number of inputs; what
    /// comes in on one leaves on the output of the same number. Segments that come in on the first half are
    /// checked: the valid ones leave, and so does a SYN that may begin a connection, though nothing is remembered of it yet. On the other
    /// half come segments that may pass in all: there a SYN begins a connection. In between, others decide which may.
    ///
    /// A segment is valid if it belongs to a connection, its flags go together, the connection's state lets it come,
    /// and its sequence and acknowledgment numbers lie within what its sender may send and acknowledge. Windows are
    /// shifted as the SYNs say, and selective acknowledgments count. A segment without data may
    /// come late. Both ends may open and close a connection at once. A reset ends a connection only with
    /// the exact number that is expected (RFC 5961); others within the window pass and change nothing. A SYN within
    /// a connection passes from the end that began it: it may have forgotten the connection.
    ///
    /// Invalid segments go to one output more than there are inputs, or are dropped if that is not connected.
    /// Packets that are not TCP pass.
    ///
    /// When the table is full, the connection that expires first is forgotten for a new one, if it expires
    /// before the new one: connections whose SYN was not answered go first.
    ///
    /// = KEYWORDS
    ///
    /// ACTIVE (bool, default true): whether anything is checked; if not, everything passes.
    /// LOOSE (bool, default false): whether connections are picked up that began before. Their windows are not checked.
    /// CHECKSUM (bool, default true): whether segments with a wrong checksum are invalid.
    /// CAPACITY (number, default 4194304): how many connections there may be.
    /// TIMEOUT (time, default 24 hours): of established connections.
    /// OPEN_TIMEOUT (time, default 2 minutes): of those that are not established yet.
    /// CLOSE_TIMEOUT (time, default 4 minutes): of those that RST, or FIN in both directions, ended.
    ///
    /// = HANDLERS
    ///
    /// count (read): number of connections.
    /// table (read): the connections, with their states.
    /// invalid (read): how many segments were invalid, by reason.
    ///
    /// = EXAMPLE
    ///
    /// t :: TCPTracker; ... -> [0] t [0] -> new :: IPClassifier(tcp opt syn and not tcp opt ack, -);
    /// new[0] -> IPFilter(allow dst port 80) -> [1] t [1] -> ...; new[1] -> ...
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, CheckTCPHeader, IPReassembler
    TCPTracker {
        category: Transport, ports: "2-/2-", processing: "h/h",
        samples: [
            ("", 2, 2), ("", 4, 5), ("LOOSE true, CAPACITY 2, CHECKSUM false", 2, 3), ("ACTIVE false", 4, 4),
            ("TIMEOUT 3, OPEN_TIMEOUT 1, CLOSE_TIMEOUT 2", 2, 2),
        ]
    }
}

/// See [`TCPTracker::CLASS`].
pub(crate) struct TCPTracker {
    is_active: bool,
    is_loose: bool,
    header: CheckTCPHeader,
    /// Half the number of inputs.
    half: usize,
    outputs: usize,
    table: Table,
}

/// Flags that contradict each other.
const BAD_FLAGS: Reason = Reason("bad-tcp-flags");
/// There is no such connection, and the segment may not begin one.
const NO_CONNECTION: Reason = Reason("no-connection");
/// All connections that are remembered live longer than a new one.
const NO_ROOM: Reason = Reason("no-room-for-connection");

/// What is invalid with a connection, and without.
const REASONS: [Reason; 6] = [OUT_OF_WINDOW, BAD_RST, BAD_STATE, NO_CONNECTION, BAD_FLAGS, NO_ROOM];
const HEADER: [&str; 3] = ["not-tcp", "bad-tcp-length", "bad-tcp-checksum"];

const CAPACITY: u64 = 4 << 20;
const SECOND: u64 = 1_000_000_000;

impl TCPTracker {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (inputs, outputs, span) = (cx.inputs(), cx.outputs(), cx.span());
        let keywords =
            ["ACTIVE", "LOOSE", "CHECKSUM", "CAPACITY", "TIMEOUT", "OPEN_TIMEOUT", "CLOSE_TIMEOUT"];
        let mut arguments = cx.arguments(&keywords);
        let is_active = arguments.keyword("ACTIVE").unwrap_or(true);
        let is_loose = arguments.keyword("LOOSE").unwrap_or(false);
        let checksum = arguments.keyword("CHECKSUM").unwrap_or(true);
        let capacity = arguments.keyword("CAPACITY").unwrap_or(CAPACITY);
        let mut time = |name, usual: u64| {
            arguments.keyword::<Nanoseconds>(name).map_or(usual * SECOND, |time| time.0)
        };
        let timeouts = Timeouts {
            open: time("TIMEOUT", 86_400),
            opening: time("OPEN_TIMEOUT", 120),
            over: time("CLOSE_TIMEOUT", 240),
        };
        if !inputs.is_multiple_of(2) || !(inputs..=inputs + 1).contains(&outputs) {
            let message = format!("there are {inputs} inputs and {outputs} outputs");
            let error = Diagnostic::error("bad-ports", message).label(span, "");
            arguments.report(error.help(
                "connect an even number of inputs, as many outputs, and one more for what is invalid if you like",
            ));
        }
        arguments.finish()?;
        cx.claim(None, span, FlowTable::EMPTY)?;
        let (half, table) = (inputs / 2, Table::new(capacity, timeouts));
        Ok(Self { is_active, is_loose, header: CheckTCPHeader { checksum }, half, outputs, table })
    }

    /// What passes, or why it is invalid.
    fn verdict(&mut self, port: usize, packet: &mut Packet, now: u64) -> Result<(), Reason> {
        let Some(ip) = ip_header::view(packet) else { return Err(ip_header::NO_HEADER) };
        if ip.protocol() != TCP {
            return Ok(());
        }
        self.header.check(packet)?;
        let (key, segment) = Segment::of(packet).ok_or(BAD_FLAGS)?;
        let known = self.table.find(&key, now);
        let is_syn = segment.kind == Kind::Syn;
        match known {
            Some((number, from)) if port < self.half => {
                self.table.change(number, now, |connection| connection.check(from, &segment))
            }
            Some((number, from)) if is_syn => self.table.change(number, now, |connection| {
                connection.add_syn(from, &segment);
                Ok(())
            }),
            Some(_) => Ok(()),
            None if port < self.half => self.unknown(key, &segment),
            None => {
                let connection = match is_syn {
                    true => self.table.take_begun(&key).unwrap_or(Connection::begin(&segment)),
                    false if self.may_be_found(&segment) => Connection::found(),
                    false => return Err(NO_CONNECTION),
                };
                let is_added = self.table.add(key, connection, packet.group(), now);
                is_added.then_some(()).ok_or(NO_ROOM)
            }
        }
    }

    /// Checks a segment of a connection that is not in the table.
    fn unknown(&mut self, key: Key, segment: &Segment) -> Result<(), Reason> {
        let is_syn = segment.kind == Kind::Syn;
        match self.table.begun(&key) {
            Some((connection, from)) if !is_syn => return connection.check(from, segment),
            None if is_syn => self.table.begin(key, Connection::begin(segment)),
            _ => {}
        }
        (is_syn || self.may_be_found(segment)).then_some(()).ok_or(NO_CONNECTION)
    }

    /// Whether a connection that began before may be picked up at a segment.
    fn may_be_found(&self, segment: &Segment) -> bool {
        self.is_loose && segment.kind == Kind::Ack && !segment.fin
    }
}

impl Element for TCPTracker {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let (now, invalid) = (cx.now(), 2 * self.half);
        self.table.expire(now);
        cx.each(batch, |packet, _| {
            if !self.is_active {
                return Verdict::To(port);
            }
            match self.verdict(port, packet, now) {
                Ok(()) => Verdict::To(port),
                Err(reason) => Verdict::Reject(invalid, reason),
            }
        });
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let input = |port: usize| -> Block {
            if !self.is_active {
                return vec![Op::emit(port as u32)];
            }
            let missing = reject(2 * self.half, self.outputs, ip_header::NO_HEADER);
            vec![
                Op::when(ip_header::is_missing(), missing),
                Op::when(ip::PROTO.ne(TCP), vec![Op::emit(port as u32)]),
                Op::Opaque("keeps the windows of connections"),
            ]
        };
        model.inputs = (0..2 * self.half).map(input).collect();
        if self.is_active {
            let capacity = self.table.flows.borrow().capacity();
            model.declare(STATE, StateKind::Flows { capacity, widths: table::widths() });
        }
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        if self.is_active {
            self.table.export(name, to);
        }
    }

    fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        if self.is_active {
            self.table.import(name, from, now);
        }
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        Some(Rc::clone(&self.table.flows) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("count"), Handler::read("table"), Handler::read("invalid")] }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        if handler != "invalid" {
            return Ok(listing::whole(|from| self.list(handler, from, cx)));
        }
        let reasons = REASONS.into_iter().chain(HEADER.map(Reason));
        let lines = reasons.map(|reason| format!("{reason} {}\n", cx.tally.count(reason)));
        Ok(lines.collect())
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        let (mut living, mut records) = (0, Vec::new());
        let is_table = match handler {
            "table" => true,
            "count" => false,
            _ => return None,
        };
        let (next, touches) = self.table.flows.borrow().visit(from, SLICE, |flow| {
            if flow.expiry() <= cx.now {
                return;
            }
            living += 1;
            if is_table {
                let tuple = flow.key(0).tuple();
                let state = State::of(flow.state).map_or("", State::name);
                let left = (flow.expiry() - cx.now) / SECOND;
                let ends = (tuple.src, tuple.src_port, tuple.dst, tuple.dst_port);
                let text = format!("{}:{} > {}:{} {state} {left}s", ends.0, ends.1, ends.2, ends.3);
                records.push(Record::Row(u64::from(flow.touched()), text));
            }
        });
        if !is_table {
            records.push(Record::Count(0, living));
        }
        Some(Slice { records, next, touches, ..Slice::default() })
    }
}
