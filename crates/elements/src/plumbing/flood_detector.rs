//! FloodDetector.

mod statistics;

use std::collections::VecDeque;

use ir::Model;
use net::wire::ip_protocol::{ICMP, ICMPV6, TCP, UDP};
use net::wire::tcp::flag::{ACK, FIN, RST, SYN};
use net::{Batch, Packet};

use super::flow_key::Seen;
use crate::argument::Nanoseconds;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use statistics::{Counted, Event, Flood, Kind, Limits, SECOND, Statistics};

element! {
    /// FloodDetector([KEYWORDS]) -- detects floods of packets, and tells their packets from others
    ///
    /// Expects Ethernet frames, with VLAN tags or without, and passes them unchanged. Counts packets by destination and
    /// kind, and judges the last second four times a second. To a destination there is a `syn-flood` if SYN_RATE SYNs
    /// came or more, and less than half as many FINs and RSTs. There is a `udp-flood`, `icmp-flood` or `packet-flood`
    /// if UDP_RATE, ICMP_RATE or RATE packets came or more (the last for all that is not UDP, ICMP or a SYN), FACTOR
    /// times as many as usual, from SOURCES sources or more of which none has three quarters.
    ///
    /// In all there is a `distributed-flood` if the entropy of sources rises and that of destinations falls, both far
    /// more than usual, while twice as many packets come (Lakhina et al. 2005). What is usual is known after 10
    /// seconds. A flood is over after HOLD without its signs; half of a rate is sign enough.
    ///
    /// SYNs of a SYN flood leave on output 1 if it is connected, and packets of other floods that have a victim on
    /// output 2: all of that kind to the victim. All others leave on output 0. When a flood begins or ends, a line is
    /// shown, 16 in a second at the most.
    ///
    /// Times are timestamps of packets if they have some. Memory is bounded: the DESTINATIONS with most
    /// packets are kept, by space-saving (Metwally et al. 2005). Workers count by themselves.
    ///
    /// = KEYWORDS
    ///
    /// SYN_RATE (number, default 1000), UDP_RATE (number, default 20000), ICMP_RATE (number, default 1000),
    /// RATE (number, default 100000): packets a second that may be a flood.
    /// FACTOR (number, default 4): how many times as many as usual.
    /// SOURCES (number, default 64): how many sources, 1000 at the most.
    /// HOLD (time, default 10s): how long a flood goes on without its signs.
    /// DESTINATIONS (number, default 1024): how many are kept, each with about 200 bytes.
    ///
    /// = HANDLERS
    ///
    /// floods (read): present floods, a line each: kind, victim, packets a second, sources.
    /// events (read): the last 100 beginnings and ends of floods, each a JSON object.
    /// count (read): floods that began.
    /// entropy (read): of sources and destinations in the last second with 1000 packets, from 0 to 1.
    ///
    /// = EXAMPLE
    ///
    /// FromDevice(wan) -> d :: FloodDetector -> ToDevice(lan); d[1] -> Discard; d[2] -> Discard;
    ///
    /// = SEE ALSO
    ///
    /// SYNProxy, FlowMonitor
    FloodDetector { category: Plumbing, ports: "1/1-3", processing: "h/h", samples: [] }
}

/// See [`FloodDetector::CLASS`].
pub(crate) struct FloodDetector {
    statistics: Statistics,
    report: Report,
    /// The time of the last packet, and that of the worker's clock then.
    time: u64,
    seen: u64,
    wakes: Option<u64>,
}

/// What is said of floods.
#[derive(Default)]
struct Report {
    begun: u64,
    events: VecDeque<String>,
    /// Lines that were not shown yet.
    lines: Vec<String>,
    /// Lines that were shown in a second.
    second: u64,
    shown: usize,
}

/// What goes to another element.
struct Moved {
    statistics: Statistics,
    events: VecDeque<String>,
}

/// Events that are kept.
const KEPT: usize = 100;
/// Lines that are shown in a second.
const MOST_SHOWN: usize = 16;
/// Flags of TCP stand in this byte of its header.
const FLAGS: usize = 13;

impl Report {
    fn add(&mut self, event: Event, time: u64) {
        let (word, flood) = match event {
            Event::Begin(flood) => ("begin", flood),
            Event::End(flood) => ("end", flood),
        };
        let Flood { kind, victim, since, peak, rate, sources, .. } = flood;
        let kind = kind.name();
        let json = format!(
            r#"{{"time_ns":{time},"event":"{word}","kind":"{kind}","victim":"{victim}","since_ns":{since},"packets_per_second":{rate},"peak":{peak},"sources":{sources}}}"#
        );
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(json);
        let line = match event {
            Event::Begin(_) => {
                self.begun += 1;
                format!("{kind} to {victim} begins: {rate} packets a second")
            }
            Event::End(_) => format!("{kind} to {victim} is over: at most {peak} packets a second"),
        };
        if self.second != time / SECOND {
            (self.second, self.shown) = (time / SECOND, 0);
        }
        if self.shown < MOST_SHOWN {
            self.shown += 1;
            self.lines.push(line);
        }
    }
}

/// What a packet counts as; none without a header of IP.
fn counted(packet: &Packet) -> Option<Counted> {
    let Seen { key, transport, .. } = Seen::of_frame(packet)?;
    let flags = match key.protocol {
        TCP => transport.get(FLAGS).copied().unwrap_or(0),
        _ => 0,
    };
    let kind = match key.protocol {
        TCP if flags & (SYN | ACK | RST) == SYN => Kind::Syn,
        UDP => Kind::Udp,
        ICMP | ICMPV6 => Kind::Icmp,
        _ => Kind::Other,
    };
    let ends = flags & (FIN | RST) != 0;
    Some(Counted { kind, src: key.src(), dst: key.dst(), ends })
}

impl FloodDetector {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "SYN_RATE",
            "UDP_RATE",
            "ICMP_RATE",
            "RATE",
            "FACTOR",
            "SOURCES",
            "HOLD",
            "DESTINATIONS",
        ]);
        let mut number = |name, usual: u32| {
            let given = arguments.keyword_argument(name);
            let number = given.as_ref().and_then(|given| arguments.parse::<u32>(name, given));
            if let (Some(0), Some(given)) = (number, &given) {
                arguments.error(given, format!("{name} must be at least 1"));
            }
            number.unwrap_or(usual)
        };
        let rates = [
            number("SYN_RATE", 1000),
            number("UDP_RATE", 20_000),
            number("ICMP_RATE", 1000),
            number("RATE", 100_000),
        ];
        let (factor, sources) = (number("FACTOR", 4).into(), number("SOURCES", 64).min(1000));
        let destinations = number("DESTINATIONS", 1024) as usize;
        let hold = arguments.keyword::<Nanoseconds>("HOLD").map_or(10 * SECOND, |time| time.0);
        arguments.claim("DESTINATIONS", Statistics::bytes_of(destinations));
        arguments.finish()?;
        let limits = Limits { rates: rates.map(u64::from), factor, sources, hold };
        Ok(Self {
            statistics: Statistics::new(destinations, limits),
            report: Report::default(),
            time: 0,
            seen: 0,
            wakes: None,
        })
    }

    fn advance(&mut self, time: u64) {
        let report = &mut self.report;
        self.statistics.advance(time, |event| report.add(event, time));
    }

    /// The output of a packet.
    fn output(&mut self, packet: &Packet, now: u64, outputs: usize) -> usize {
        let Some(counted) = counted(packet) else { return 0 };
        let time = match packet.timestamp() {
            0 => now,
            time => time,
        };
        (self.time, self.seen) = (time, now);
        self.advance(time);
        let output = match (self.statistics.count(&counted), counted.kind) {
            (false, _) => 0,
            (true, Kind::Syn) => 1,
            (true, _) => 2,
        };
        if output < outputs { output } else { 0 }
    }

    fn show(&mut self, cx: &mut Context<'_>) {
        for line in self.report.lines.drain(..) {
            cx.message(&line);
        }
    }

    /// Has the time looked at while there are floods, so that they end without packets.
    fn wait(&mut self, cx: &mut Context<'_>) {
        if self.wakes.is_none() && !self.statistics.floods.is_empty() {
            let at = cx.now().saturating_add(SECOND);
            self.wakes = Some(at);
            cx.wake_at(at);
        }
    }
}

impl Element for FloodDetector {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let (now, outputs) = (cx.now(), cx.outputs());
        cx.each(batch, |packet, _| Verdict::To(self.output(packet, now, outputs)));
        self.show(cx);
        self.wait(cx);
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        if self.wakes.take_if(|at| *at <= cx.now()).is_some() {
            self.advance(self.time.saturating_add(cx.now().saturating_sub(self.seen)));
            self.show(cx);
        }
        self.wait(cx);
    }

    fn model(&self) -> Model {
        Model::opaque("counts packets by destination")
    }

    fn export(&mut self, _name: &str, to: &mut ElementState) {
        if to.is_all() {
            to.numbers = vec![self.time, self.seen, self.report.begun];
            let events = std::mem::take(&mut self.report.events);
            let statistics = self.statistics.take();
            to.native = Some(Box::new(Moved { statistics, events }));
        }
    }

    fn import(&mut self, _name: &str, from: &mut ElementState, _now: u64) {
        if let (Some([time, seen, begun]), Some(moved)) =
            (from.counts(), from.take_native::<Moved>())
        {
            (self.time, self.seen, self.report.begun) = (time, seen, begun);
            self.report.events = moved.events;
            self.statistics.follow(moved.statistics);
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("floods"),
                Handler::read("events"),
                Handler::count("count"),
                Handler::read("entropy"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "floods" => {
                let line = |of: &Flood| {
                    format!("{} {} {} {}\n", of.kind.name(), of.victim, of.rate, of.sources)
                };
                self.statistics.floods.iter().map(line).collect()
            }
            "events" => self.report.events.iter().map(|event| format!("{event}\n")).collect(),
            "count" => self.report.begun.to_string(),
            _ => {
                let [sources, destinations] = self.statistics.entropy.last;
                format!("sources {sources:.3} destinations {destinations:.3}")
            }
        })
    }
}
