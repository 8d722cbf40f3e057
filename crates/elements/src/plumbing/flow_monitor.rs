//! FlowMonitor.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use click::config::Argument;
use ir::Model;
use net::{Batch, Packet};

use super::flow_key::{FlowKey, Seen};
use super::ipfix::{EndReason, Exporter, Record};
use super::space_saving::{Kept, SpaceSaving};
use crate::argument::{FromArgument, Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::listing::{self, SLICE, Slice};
use crate::names::Names;

element! {
    /// FlowMonitor([KEYWORDS]) -- counts packets and bytes of each flow, and exports them as IPFIX
    ///
    /// Expects Ethernet frames, with VLAN tags or without, and passes them unchanged. A flow is what
    /// has the same addresses, protocol and ports, in one direction. Bytes are those of IP packets,
    /// headers included. Fragments count as a flow without ports, the first one too. Packets whose IP
    /// header is invalid, that are longer than their frame, or of other protocols, are in `other`.
    ///
    /// Memory is bounded: FLOWS flows are kept, by space-saving (Metwally et al. 2005). A new flow
    /// replaces the one with the least count if there is no room. What it may have had
    /// before it was kept is its error: a flow had at least what is shown, and at most the error
    /// more, in what flows are ranked by. No error exceeds all that was counted divided by FLOWS, and
    /// a flow with a larger share is always kept. While there are no more than FLOWS flows, all
    /// errors are 0. A packet takes constant time on average, and O(log FLOWS) at worst.
    ///
    /// With COLLECTOR, flows are exported as IPFIX (RFC 7011, 7012) in UDP packets, without an
    /// Ethernet header, that leave on output 1. Records hold what was counted since the record before
    /// of the same flow, so that they add up to all packets, also those of flows that had to make
    /// room. Times are timestamps of packets if they have some. What remains is exported when the
    /// chain ends. Time is looked at ten times a second, and each flow once a second.
    ///
    /// = KEYWORDS
    ///
    /// TOP (number, default 10): how many flows `top` shows.
    /// BY (packets or bytes, default bytes): what flows are ranked by.
    /// FLOWS (number, default 65536): how many flows are kept, each with about 150 bytes.
    /// COLLECTOR (address and port): where records are sent, as `192.0.2.9:4739` or
    /// `[2001:db8::9]:4739`. The port may be left out.
    /// SOURCE (address and port): from where they are sent; of the same version of IP.
    /// DOMAIN (number, default 1): the observation domain. Further workers take the next numbers.
    /// ACTIVE (time, default 60s): after so long, a flow that goes on is exported.
    /// INACTIVE (time, default 15s): after so long without packets, a flow is exported.
    /// TEMPLATES (time, default 60s): after so long, templates are sent again.
    ///
    /// = HANDLERS
    ///
    /// top (read): the TOP flows, a line each: packets, bytes, error, flow.
    /// top_json (read): the same as an array of JSON.
    /// flows (read): all flows that are kept, in no order.
    /// flow_count (read): how many are kept.
    /// count, byte_count (read): packets and bytes of all flows.
    /// other (read): frames of no flow.
    /// replaced (read): flows that made room for others.
    /// max_error (read): the largest error that a new flow would have.
    /// exported (read): records that were exported.
    /// export (write): exports all flows now.
    /// reset (write): exports all flows, and forgets them and all counts.
    ///
    /// = EXAMPLE
    ///
    /// FromDevice(lan) -> mon :: FlowMonitor(TOP 20, COLLECTOR 192.0.2.9, SOURCE 192.0.2.1:4739)
    ///   -> ToDevice(wan);
    /// mon[1] -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(wan);
    ///
    /// = SEE ALSO
    ///
    /// Counter, AverageCounter
    FlowMonitor { category: Plumbing, ports: "1/1-2", processing: "h/h", samples: [] }
}

/// Nanoseconds between two looks at what has to be exported.
const TICK: u64 = 100_000_000;
/// After so many looks every flow was looked at.
const TICKS: usize = 10;

/// What is known of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    packets: u64,
    bytes: u64,
    /// What of these was exported.
    exported: [u64; 2],
    /// When what was not exported began, and when the last packet came.
    first: u64,
    last: u64,
}

type Table = SpaceSaving<FlowKey, Flow>;

/// What flows are ranked by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rank {
    Packets,
    #[default]
    Bytes,
}

/// See [`FlowMonitor::CLASS`].
pub(crate) struct FlowMonitor {
    table: Table,
    counts: Counts,
    rank: Rank,
    top: usize,
    most: usize,
    export: Option<Export>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    other: u64,
    replaced: u64,
}

/// What goes on with exports.
struct Export {
    exporter: Exporter,
    active: u64,
    inactive: u64,
    exported: u64,
    /// Flows with packets that were not exported.
    open: usize,
    /// The flow that is looked at next.
    hand: usize,
    /// When the next look is, if there is one.
    wakes: Option<u64>,
    /// The time of the last packet, and that of the worker's clock then.
    packet_time: u64,
    seen: u64,
}

/// An address with a port; that of IPFIX if none is given.
struct Endpoint(SocketAddr);

impl FromArgument for Endpoint {
    const EXPECTED: &'static str = "an address and a port such as 192.0.2.9:4739";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        const IPFIX: u16 = 4739;
        let text = argument.text.trim();
        let address = |text: &str| text.parse().ok().map(|a: IpAddr| SocketAddr::new(a, IPFIX));
        let parsed = text.parse().ok().or_else(|| address(text));
        parsed.map(Self).ok_or_else(|| format!("'{text}' is not {}", Self::EXPECTED))
    }
}

impl Flow {
    fn waiting(&self) -> [u64; 2] {
        [self.packets - self.exported[0], self.bytes - self.exported[1]]
    }
}

impl Export {
    /// The time, in terms of that of packets.
    fn time(&self, now: u64) -> u64 {
        self.packet_time.saturating_add(now.saturating_sub(self.seen))
    }

    /// Exports what waits of a flow, if anything does.
    fn flow(&mut self, key: FlowKey, flow: &mut Flow, reason: EndReason, cx: &mut Context<'_>) {
        let [packets, bytes] = flow.waiting();
        if packets == 0 {
            return;
        }
        flow.exported = [flow.packets, flow.bytes];
        self.open -= 1;
        self.exported += 1;
        let (first, last) = (flow.first, flow.last);
        let time = self.time(cx.now());
        let record = Record { key, packets, bytes, first, last, reason };
        if let Some(packet) = self.exporter.add(&record, time) {
            send(&packet, cx);
        }
    }

    fn send(&mut self, cx: &mut Context<'_>) {
        if let Some(packet) = self.exporter.take(self.time(cx.now())) {
            send(&packet, cx);
        }
    }

    /// Exports flows that had their time, of some.
    fn look(&mut self, table: &mut Table, most: usize, cx: &mut Context<'_>) {
        let time = self.time(cx.now());
        for _ in 0..most.min(table.len()) {
            self.hand = if self.hand < table.len() { self.hand } else { 0 };
            let (key, flow) = table.at_mut(self.hand);
            self.hand += 1;
            let reason = if time.saturating_sub(flow.last) >= self.inactive {
                EndReason::Idle
            } else if time.saturating_sub(flow.first) >= self.active {
                EndReason::Active
            } else {
                continue;
            };
            self.flow(*key, flow, reason, cx);
        }
    }

    fn all(&mut self, table: &mut Table, reason: EndReason, cx: &mut Context<'_>) {
        for entry in 0..table.len() {
            let (key, flow) = table.at_mut(entry);
            self.flow(*key, flow, reason, cx);
        }
        self.send(cx);
    }

    /// Has the time looked at again if there is anything to export.
    fn wait(&mut self, cx: &mut Context<'_>) {
        if self.wakes.is_none() && (self.open > 0 || self.exporter.is_waiting()) {
            let at = cx.now().saturating_add(TICK);
            self.wakes = Some(at);
            cx.wake_at(at);
        }
    }
}

fn send(bytes: &[u8], cx: &mut Context<'_>) {
    let mut packet = cx.core.pool.packet(bytes);
    let header = if bytes[0] >> 4 == 6 { 40 } else { 20 };
    packet.set_ip_header(0, header);
    packet.set_timestamp(cx.now());
    cx.emit(1, packet);
}

impl FlowMonitor {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (span, outputs, worker) = (cx.span(), cx.outputs(), cx.part().index as u32);
        let mut arguments = cx.arguments(&[
            "TOP",
            "BY",
            "FLOWS",
            "COLLECTOR",
            "SOURCE",
            "DOMAIN",
            "ACTIVE",
            "INACTIVE",
            "TEMPLATES",
        ]);
        let top = arguments.keyword::<u32>("TOP").unwrap_or(10) as usize;
        let rank = match arguments.keyword_argument("BY") {
            None => Rank::default(),
            Some(word) => match word.text.as_str() {
                "packets" => Rank::Packets,
                "bytes" => Rank::Bytes,
                other => {
                    let message = format!("flows cannot be ranked by '{other}': packets, bytes");
                    arguments.error(&word, message);
                    Rank::Bytes
                }
            },
        };
        let flows = arguments.keyword_argument("FLOWS");
        let most = flows.as_ref().and_then(|flows| arguments.parse::<u32>("FLOWS", flows));
        let most = most.unwrap_or(1 << 16) as usize;
        if let (0, Some(flows)) = (most, &flows) {
            arguments.error(flows, "at least one flow must be kept");
        }
        let collector = arguments.keyword_argument("COLLECTOR");
        let to = collector.as_ref().and_then(|c| arguments.parse::<Endpoint>("COLLECTOR", c));
        let source = arguments.keyword_argument("SOURCE");
        let from = source.as_ref().and_then(|s| arguments.parse::<Endpoint>("SOURCE", s));
        let domain = arguments.keyword::<u32>("DOMAIN").unwrap_or(1).wrapping_add(worker);
        let mut time = |name, seconds: u64| {
            arguments.keyword::<Nanoseconds>(name).map_or(seconds * 1_000_000_000, |time| time.0)
        };
        let (active, inactive) = (time("ACTIVE", 60), time("INACTIVE", 15));
        let templates = time("TEMPLATES", 60);
        match (&collector, &source) {
            (Some(collector), None) => {
                arguments.error(collector, "COLLECTOR needs SOURCE, the address to send from");
            }
            (None, Some(source)) => arguments.error(source, "SOURCE needs COLLECTOR"),
            (Some(collector), _) if outputs < 2 => {
                let message = "COLLECTOR needs output 1, where packets for the collector leave";
                arguments.error(collector, message);
            }
            (None, None) if outputs > 1 => {
                let message = "output 1 is connected, where packets for a collector leave, but \
                               there is no COLLECTOR";
                let error = ir::Diagnostic::error("missing-argument", message);
                arguments.report(error.label(span, "").help("give COLLECTOR and SOURCE"));
            }
            _ => {}
        }
        let mut export = None;
        if let (Some(Endpoint(from)), Some(Endpoint(to)), Some(source)) = (from, to, &source) {
            if from.is_ipv4() != to.is_ipv4() {
                arguments.error(source, "SOURCE and COLLECTOR must be of the same version of IP");
            }
            export = Some(Export {
                exporter: Exporter::new(from, to, domain, templates),
                active,
                inactive,
                exported: 0,
                open: 0,
                hand: 0,
                wakes: None,
                packet_time: 0,
                seen: 0,
            });
        }
        arguments.claim("FLOWS", Table::bytes_of(most));
        arguments.finish()?;
        Ok(Self { table: Table::new(most), counts: Counts::default(), rank, top, most, export })
    }

    #[inline]
    fn count(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        let Some(Seen { key, length, .. }) = Seen::of_frame(packet) else {
            self.counts.other += 1;
            return;
        };
        let time = match packet.timestamp() {
            0 => cx.now(),
            time => time,
        };
        self.counts.packets += 1;
        self.counts.bytes += length;
        let weight = match self.rank {
            Rank::Packets => 1,
            Rank::Bytes => length,
        };
        let (replaced, flow) = self.table.add(key, weight, Flow::default());
        let is_open = flow.packets > flow.exported[0];
        if !is_open {
            flow.first = time;
        }
        flow.packets += 1;
        flow.bytes += length;
        flow.last = time;
        if replaced.is_some() {
            self.counts.replaced += 1;
        }
        let Some(export) = &mut self.export else { return };
        (export.packet_time, export.seen) = (time, cx.now());
        export.open += usize::from(!is_open);
        if let Some((key, mut flow)) = replaced {
            export.flow(key, &mut flow, EndReason::NoRoom, cx);
        }
    }

    fn export_all(&mut self, reason: EndReason, cx: &mut Context<'_>) {
        if let Some(export) = &mut self.export {
            export.all(&mut self.table, reason, cx);
        }
    }

    fn top_json(&self) -> String {
        let mut text = String::from("[");
        for (n, Kept { key, value, error, .. }) in self.table.top(self.top).iter().enumerate() {
            let comma = if n > 0 { ",\n" } else { "\n" };
            let _ = write!(
                text,
                r#"{comma}{{"protocol":"{}","source":"{}","source_port":{},"destination":"{}","destination_port":{},"packets":{},"bytes":{},"error":{error}}}"#,
                key.protocol_name(),
                key.src(),
                key.src_port,
                key.dst(),
                key.dst_port,
                value.packets,
                value.bytes
            );
        }
        text + "\n]\n"
    }
}

fn line(Kept { key, value, error, .. }: &Kept<'_, FlowKey, Flow>) -> String {
    format!("{:>12} {:>15} {error:>12} {key}\n", value.packets, value.bytes)
}

/// The head of a table of flows.
fn head() -> String {
    format!("{:>12} {:>15} {:>12} flow\n", "packets", "bytes", "error")
}

impl Element for FlowMonitor {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            self.count(packet, cx);
        }
        if let Some(export) = &mut self.export {
            export.wait(cx);
        }
    }

    fn model(&self) -> Model {
        Model::opaque("counts flows")
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        let Some(export) = &mut self.export else { return };
        if export.wakes.take_if(|at| *at <= cx.now()).is_some() {
            let most = self.table.len().div_ceil(TICKS);
            export.look(&mut self.table, most, cx);
            export.send(cx);
        }
        export.wait(cx);
    }

    /// Flows that are left are exported when the chain stops.
    fn keeps_run(&self) -> bool {
        false
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.export_all(EndReason::Forced, cx);
    }

    fn export(&mut self, _name: &str, to: &mut ElementState) {
        if to.is_all() {
            self.counts_to(to);
            let table = std::mem::replace(&mut self.table, Table::new(1));
            to.native = Some(Box::new((self.rank as u8, self.most, table)));
        }
    }

    fn import(&mut self, _name: &str, from: &mut ElementState, _: u64) {
        if let Some([packets, bytes, other, replaced]) = from.counts() {
            self.counts = Counts { packets, bytes, other, replaced };
        }
        let Some(native) = from.take_native::<(u8, usize, Table)>() else { return };
        let (rank, most, table) = *native;
        if (rank, most) != (self.rank as u8, self.most) {
            return;
        }
        self.table = table;
        if let Some(export) = &mut self.export {
            export.open = 0;
            for entry in 0..self.table.len() {
                let [packets, _] = self.table.at_mut(entry).1.waiting();
                export.open += usize::from(packets > 0);
            }
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("top"),
                Handler::read("top_json"),
                Handler::read("flows"),
                Handler::count("flow_count"),
                Handler::count("count"),
                Handler::count("byte_count"),
                Handler::count("other"),
                Handler::count("replaced"),
                Handler::read("max_error"),
                Handler::count("exported"),
                Handler::write("export"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "top" => head() + &self.table.top(self.top).iter().map(line).collect::<String>(),
            "top_json" => self.top_json(),
            "flow_count" => self.table.len().to_string(),
            "count" => self.counts.packets.to_string(),
            "byte_count" => self.counts.bytes.to_string(),
            "other" => self.counts.other.to_string(),
            "replaced" => self.counts.replaced.to_string(),
            "max_error" => self.table.least().to_string(),
            "exported" => self.export.as_ref().map_or(0, |export| export.exported).to_string(),
            _ => listing::whole(|from| self.list(handler, from, cx)),
        })
    }

    fn list(&self, handler: &str, from: u64, _: &HandlerContext<'_>) -> Option<Slice> {
        if handler != "flows" {
            return None;
        }
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(self.table.len());
        let end = from.saturating_add(SLICE).min(self.table.len());
        let head = if from == 0 { head() } else { String::new() };
        let text = head + &(from..end).map(|entry| line(&self.table.at(entry))).collect::<String>();
        let next = (end < self.table.len()).then_some(end as u64);
        Some(Slice { next, ..Slice::of_text(text.into()) })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        if !value.is_empty() {
            parse_value::<bool>(value)?;
        }
        self.export_all(EndReason::Forced, cx);
        if handler == "reset" {
            self.table.clear();
            self.counts = Counts::default();
        }
        Ok(())
    }
}

impl FlowMonitor {
    fn counts_to(&self, to: &mut ElementState) {
        let Counts { packets, bytes, other, replaced } = self.counts;
        to.numbers = vec![packets, bytes, other, replaced];
    }
}
