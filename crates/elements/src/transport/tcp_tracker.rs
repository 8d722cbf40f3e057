//! TCPTracker.

mod connection;
mod segment;
mod table;
mod version;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::rc::Rc;

use ir::model::{Block, StateKind, reject};
use ir::{Diagnostic, Model, Op, Reason};
use net::Batch;

use crate::argument::Nanoseconds;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::flow_table::{FlowKey, FlowTable};
use crate::listing::{self, Record, SLICE, Slice};
use connection::{BAD_RST, BAD_STATE, CLIENT, Connection, OUT_OF_WINDOW, State};
use segment::{Kind, Seen, Segment, What};
use table::{STATE, Table, Timeouts};
use version::{V4, V6, Version};

element! {
    /// TCPTracker([KEYWORDS]) -- checks TCP segments against their connections' states and windows
    ///
    /// Expects IPv4 packets with their header marked, fragments put together. Has an even number of inputs, 2N. On
    /// the first N come packets that are to be checked. What belongs to a connection leaves on the output of the same
    /// number. What may begin one leaves on the output N further, and nothing is remembered of it yet: others decide
    /// whether it may, and send it back to the input of that number. There it begins a connection, and leaves on the
    /// output that it would have left on.
    ///
    /// A segment belongs to a connection if its flags go together, the connection's state lets it come,
    /// and its sequence and acknowledgment numbers lie within what its sender may send and acknowledge. Windows are
    /// shifted as the SYNs say, and selective acknowledgments count. A segment without data may
    /// come late. Both ends may open and close a connection at once. A reset ends a connection only with
    /// the exact number that is expected (RFC 5961); others within the window pass and change nothing. A SYN within
    /// a connection passes from the end that began it: it may have forgotten the connection. When the connection is
    /// over, it may begin another. An ICMP error belongs to a connection if it quotes a segment that was sent in it not
    /// long ago (RFC 5927).
    ///
    /// Other segments, and errors about others, are invalid. They go to output 2N, or are dropped if that is not
    /// connected. All packets that are neither TCP nor errors about it leave as what may begin a connection does.
    ///
    /// When the table is full, the connection that expires first is forgotten for a new one, if it expires
    /// before the new one: connections that are not established go first.
    ///
    /// = KEYWORDS
    ///
    /// LOOSE (bool, default false): whether a segment may begin a connection without a SYN: one that began before. Its
    /// windows are not checked.
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
    /// t :: TCPTracker; ... -> [0] t [0] -> ...;
    /// t[1] -> IPFilter(allow tcp dst port 80) -> [1] t;
    ///
    /// = SEE ALSO
    ///
    /// TCP6Tracker, IPRewriter, CheckTCPHeader, IPReassembler
    TCPTracker {
        category: Transport, ports: "2-/2-", processing: "h/h",
        samples: [
            ("", 2, 2), ("", 4, 5), ("LOOSE true, CAPACITY 2, CHECKSUM false", 2, 3),
            ("TIMEOUT 3, OPEN_TIMEOUT 1, CLOSE_TIMEOUT 2", 2, 2),
        ]
    }
}

element! {
    /// TCP6Tracker([KEYWORDS]) -- checks TCP segments of IPv6 against their connections' states and windows
    ///
    /// Does with IPv6 what TCPTracker does with IPv4: inputs, outputs, checks, keywords and handlers are the same.
    /// Expects IPv6 packets with their header marked.
    ///
    /// Segments are found behind extension headers, of which at most 16 are looked at. Packets with more or with one that
    /// is cut off are invalid, as are fragments, and packets with a routing header that has segments left (RFC 5095).
    /// A packet that is all of its fragments is none (RFC 6946).
    ///
    /// Of ICMPv6 the errors of RFC 4443 are looked at, types 1 to 4: Packet Too Big among them. One that goes to another
    /// address than that which sent what it quotes is invalid.
    ///
    /// = KEYWORDS
    ///
    /// LOOSE, CHECKSUM, CAPACITY, TIMEOUT, OPEN_TIMEOUT, CLOSE_TIMEOUT: as for TCPTracker.
    ///
    /// = HANDLERS
    ///
    /// count (read): number of connections.
    /// table (read): the connections, with their states.
    /// invalid (read): how many segments were invalid, by reason.
    ///
    /// = IPV6
    ///
    /// Tracked; see above.
    ///
    /// = EXAMPLE
    ///
    /// t :: TCP6Tracker; ... -> CheckIP6Header -> [0] t [0] -> ...;
    /// t[1] -> IP6Filter(allow tcp dst port 80) -> [1] t;
    ///
    /// = SEE ALSO
    ///
    /// TCPTracker, IP6FlowTracker, CheckIP6Header
    TCP6Tracker {
        category: Transport, ports: "2-/2-", processing: "h/h",
        samples: [
            ("", 2, 2), ("", 4, 5), ("LOOSE true, CAPACITY 2, CHECKSUM false", 2, 3),
            ("TIMEOUT 3, OPEN_TIMEOUT 1, CLOSE_TIMEOUT 2", 2, 2),
        ]
    }
}

/// See [`TCPTracker::CLASS`].
pub(crate) type TCPTracker = Tracker<V4>;
/// See [`TCP6Tracker::CLASS`].
pub(crate) type TCP6Tracker = Tracker<V6>;

/// Tracks connections of a version of IP.
pub(crate) struct Tracker<V: Version> {
    is_loose: bool,
    checksum: bool,
    /// Half the number of inputs.
    half: usize,
    outputs: usize,
    table: Table<V::Addresses>,
    /// The packets of a batch.
    seen: Vec<Seen<V::Addresses>>,
    version: PhantomData<V>,
}

/// Flags that contradict each other.
const BAD_FLAGS: Reason = Reason("bad-tcp-flags");
/// There is no such connection, and the segment may not begin one.
const NO_CONNECTION: Reason = Reason("no-connection");
/// All connections that are remembered live longer than a new one.
const NO_ROOM: Reason = Reason("no-room-for-connection");

/// What is invalid with a connection, and without.
const REASONS: [Reason; 6] = [OUT_OF_WINDOW, BAD_RST, BAD_STATE, NO_CONNECTION, BAD_FLAGS, NO_ROOM];

const CAPACITY: u64 = 4 << 20;
const SECOND: u64 = 1_000_000_000;

impl<V: Version> Tracker<V> {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (inputs, outputs, span) = (cx.inputs(), cx.outputs(), cx.span());
        let keywords =
            ["LOOSE", "CHECKSUM", "CAPACITY", "TIMEOUT", "OPEN_TIMEOUT", "CLOSE_TIMEOUT"];
        let mut arguments = cx.arguments(&keywords);
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
        let (seen, version) = (Vec::new(), PhantomData);
        Ok(Self { is_loose, checksum, half, outputs, table, seen, version })
    }

    /// Where a packet goes that is to be checked, or why it is invalid.
    fn check(&mut self, port: usize, seen: &Seen<V::Addresses>, now: u64) -> Result<usize, Reason> {
        let others_decide = port + self.half;
        let segment = match seen.what? {
            What::Other => return Ok(others_decide),
            What::Error(seq) => {
                let (number, from) = self.table.find(seen, now).ok_or(NO_CONNECTION)?;
                return self.table.connection(number).quoted(from, seq).map(|()| port);
            }
            What::Segment(segment) => segment,
        };
        let Some((number, from)) = self.table.find(seen, now) else {
            return self.unknown(seen.at.key, &segment).map(|known| match known {
                true => port,
                false => others_decide,
            });
        };
        if segment.kind == Kind::Syn && from == CLIENT && self.table.connection(number).is_over() {
            return Ok(others_decide);
        }
        self.table.change(number, now, |connection| connection.check(from, &segment))?;
        Ok(port)
    }

    /// Checks a segment of a connection that is not in the table; whether its SYN came in this burst.
    fn unknown(&mut self, key: FlowKey<V::Addresses>, segment: &Segment) -> Result<bool, Reason> {
        let is_syn = segment.kind == Kind::Syn;
        match self.table.begun(&key) {
            Some((connection, from)) if !is_syn => {
                return connection.check(from, segment).map(|()| true);
            }
            None if is_syn => self.table.begin(key, Connection::begin(segment)),
            _ => {}
        }
        (is_syn || self.may_be_found(segment)).then_some(false).ok_or(NO_CONNECTION)
    }

    /// Begins the connection of a packet that others let pass; or why there is none.
    fn begin(&mut self, seen: &Seen<V::Addresses>, group: u16, now: u64) -> Result<(), Reason> {
        let What::Segment(segment) = seen.what? else { return Ok(()) };
        let is_syn = segment.kind == Kind::Syn;
        let Some((number, from)) = self.table.find(seen, now) else {
            let key = seen.at.key;
            let connection = match is_syn {
                true => self.table.take_begun(&key).unwrap_or(Connection::begin(&segment)),
                false if self.may_be_found(&segment) => Connection::found(),
                false => return Err(NO_CONNECTION),
            };
            let is_added = self.table.add(key, connection, group, now);
            return is_added.then_some(()).ok_or(NO_ROOM);
        };
        self.table.change(number, now, |connection| connection.check(from, &segment))
    }

    /// Whether a connection that began before may be picked up at a segment.
    fn may_be_found(&self, segment: &Segment) -> bool {
        self.is_loose && segment.kind == Kind::Ack && !segment.fin
    }
}

impl<V: Version> Element for Tracker<V> {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let (now, half) = (cx.now(), self.half);
        self.table.expire(now);
        let mut all = std::mem::take(&mut self.seen);
        all.extend(batch.iter_mut().map(|packet| Seen::of::<V>(packet, self.checksum)));
        self.table.prefetch(&mut all);
        let mut seen = all.iter();
        cx.each(batch, |packet, _| {
            let Some(seen) = seen.next() else { return Verdict::Drop(NO_CONNECTION) };
            let verdict = match port.checked_sub(half) {
                None => self.check(port, seen, now),
                Some(output) => self.begin(seen, packet.group(), now).map(|()| output),
            };
            match verdict {
                Ok(output) => Verdict::To(output),
                Err(reason) => Verdict::Reject(2 * half, reason),
            }
        });
        all.clear();
        self.seen = all;
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let input = |port: usize| -> Block {
            let missing = reject(2 * self.half, self.outputs, V::NO_HEADER);
            let [is_missing, is_other] = V::model();
            let other = (port + self.half) % (2 * self.half);
            vec![
                Op::when(is_missing, missing),
                Op::when(is_other, vec![Op::emit(other as u32)]),
                Op::Opaque("keeps the windows of connections"),
            ]
        };
        model.inputs = (0..2 * self.half).map(input).collect();
        let capacity = self.table.flows.borrow().capacity();
        model
            .declare(STATE, StateKind::Flows { capacity, widths: table::widths::<V::Addresses>() });
        model
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.table.export(name, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        self.table.import(name, from, now);
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
        let reasons = REASONS.iter().chain(V::REASONS);
        let lines = reasons.map(|reason| format!("{reason} {}\n", cx.tally.count(*reason)));
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
                let from = SocketAddr::new(tuple.src, tuple.src_port);
                let to = SocketAddr::new(tuple.dst, tuple.dst_port);
                let text = format!("{from} > {to} {state} {left}s");
                records.push(Record::Row(u64::from(flow.touched()), text));
            }
        });
        if !is_table {
            records.push(Record::Count(0, living));
        }
        Some(Slice { records, next, touches, ..Slice::default() })
    }
}
