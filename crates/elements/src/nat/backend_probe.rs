//! BackendProbe: whether the servers of a BackendMapper answer.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use click::config::Argument;
use ir::{Diagnostic, Model, Reason};
use net::wire::icmpv4::message;
use net::wire::tcp::flag::{ACK, RST, SYN};
use net::wire::{Icmpv4, Ipv4, Tcp, ip_protocol, ipv4};
use net::{Batch, Packet, annotation};

use crate::argument::{Ip, Nanoseconds};
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::OwnedPorts;
use crate::element::{Element, Handler, HandlerCalls, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::nat::rewriter::{Backend, Choice, Mapper, port_range};
use crate::transport::new_segment::NewSegment;

element! {
    /// BackendProbe(MAPPER, SOURCE ADDR [, KEYWORDS]) -- drains servers that do not answer
    ///
    /// Sends a probe to each backend of the BackendMapper MAPPER once each INTERVAL. Probes are IP packets, without an
    /// Ethernet header, that leave on output 0 with the destination IP address annotation set. Answers, as IP packets,
    /// come in on input 0. Packets that answer no probe leave on output 1, if there is one, and are dropped as
    /// `no-probe-answer` otherwise; answers end here, as `probe-answer`.
    ///
    /// A backend that leaves FALL probes in succession unanswered until the next one is due is drained: it keeps its flows
    /// and takes no new ones. One that answers RISE probes in succession is added again. At first, all are held to be
    /// up. Backends that somebody drained by hand while they were up stay drained; those that are down are drained again
    /// if somebody adds them.
    ///
    /// Probes are pings, or SYNs with PROTOCOL tcp: a SYN and ACK is an answer, which a reset then ends; a reset is
    /// none. An answer must hold a number that was drawn for its probe, so that others cannot answer for a backend.
    ///
    /// Each worker has backends of its own, and probes them from its share of PORTS, so that answers come back to it.
    ///
    /// = KEYWORDS
    ///
    /// SOURCE (address): from where probes are sent; no other traffic may use it with PORTS.
    /// PROTOCOL (icmp or tcp, default icmp): what a probe is.
    /// PORT (number, default 80): where SYNs are sent to backends without a port of their own.
    /// PORTS (range, default 61000-61999): source ports of SYNs, identifiers of pings.
    /// INTERVAL (time, default 1s): how long after a probe the next one is due.
    /// RISE (number, default 2): answers in succession after which a backend is up.
    /// FALL (number, default 3): probes without an answer in succession after which it is down.
    ///
    /// = HANDLERS
    ///
    /// backends (read): a line for each backend: address, `up` or `down`, probes, and answers.
    ///
    /// When a chain replaces another, it goes on with what is known of backends.
    ///
    /// = EXAMPLE
    ///
    /// lb :: LB(10.1.0.1 10.1.0.2);
    /// probe :: BackendProbe(lb/servers, SOURCE 10.1.0.254);
    /// answers -> CheckIPHeader -> probe -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDevice(lan);
    ///
    /// = SEE ALSO
    ///
    /// BackendMapper, IPRewriter
    BackendProbe { category: Nat, ports: "1/1-2", processing: "h/h", samples: [] }
}

/// It answers no probe that was sent and waits.
const NOT_AN_ANSWER: Reason = Reason("no-probe-answer");
/// It answered a probe, and is needed no more.
const ANSWER: Reason = Reason("probe-answer");

const SECOND: u64 = 1_000_000_000;

/// Bytes of a ping behind its header: the number that was drawn.
const PAYLOAD: usize = 4;
const ICMP_HEADER: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Icmp,
    Tcp,
}

/// What is known of a backend.
#[derive(Clone, Copy, Debug)]
struct Health {
    backend: Backend,
    is_up: bool,
    /// Whether this element has drained it.
    drained: bool,
    /// Probes in succession that went otherwise than its state is.
    against: u32,
    /// The number of a probe that was not answered yet, and the port that it came from.
    waiting: Option<(u32, u16)>,
    probes: u64,
    answers: u64,
}

impl Health {
    fn new(backend: Backend) -> Self {
        let (is_up, drained, against, waiting) = (true, false, 0, None);
        Self { backend, is_up, drained, against, waiting, probes: 0, answers: 0 }
    }
}

/// See [`BackendProbe::CLASS`].
pub(crate) struct BackendProbe {
    mapper: Argument,
    found: Option<Rc<Mapper>>,
    source: Ipv4Addr,
    protocol: Protocol,
    port: u16,
    ports: (u16, u16),
    /// Of these, the worker's.
    share: (u16, u16),
    next_port: u16,
    interval: u64,
    rise: u32,
    fall: u32,
    health: Vec<Health>,
    /// When probes are due.
    due: u64,
}

impl BackendProbe {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (span, part) = (cx.span(), cx.part());
        let mut arguments =
            cx.arguments(&["SOURCE", "PROTOCOL", "PORT", "PORTS", "INTERVAL", "RISE", "FALL"]);
        let mapper = arguments.next_plain();
        if mapper.is_none() {
            let error = Diagnostic::error("missing-argument", "MAPPER is missing").label(span, "");
            arguments.report(error.help("write the name of a BackendMapper, such as lb/servers"));
        }
        let source = arguments.keyword::<Ip>("SOURCE");
        if source.is_none() {
            let error = Diagnostic::error("missing-argument", "SOURCE is missing").label(span, "");
            arguments.report(error.help("write SOURCE and the address that probes come from"));
        }
        let mut protocol = Protocol::Icmp;
        if let Some(word) = arguments.keyword_argument("PROTOCOL") {
            match word.text.as_str() {
                "icmp" => {}
                "tcp" => protocol = Protocol::Tcp,
                other => {
                    arguments.error(&word, format!("'{other}' is no protocol of probes: icmp, tcp"))
                }
            }
        }
        let port = arguments.keyword("PORT").unwrap_or(80u16);
        let range = arguments.keyword_argument("PORTS");
        let parsed = range.as_ref().map(|range| port_range(&range.text));
        let ports = parsed.unwrap_or(Some((61_000, 61_999)));
        let all = ports.unwrap_or((1, 1));
        let share = part.share(0, all.0.into(), all.1.into());
        match (&range, ports, share) {
            (Some(range), None, _) => {
                arguments
                    .error(range, format!("'{}' is not a range such as 61000-61999", range.text));
            }
            (Some(range), _, None) => {
                arguments.error(range, "there are fewer ports than workers");
            }
            _ => {}
        }
        let interval = arguments.keyword::<Nanoseconds>("INTERVAL").map_or(SECOND, |time| time.0);
        let rise = arguments.keyword("RISE").unwrap_or(2u32);
        let fall = arguments.keyword("FALL").unwrap_or(3u32);
        if interval == 0 || rise == 0 || fall == 0 {
            let message = "INTERVAL, RISE and FALL are more than 0";
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        let (Some(mapper), Some(source), Some(share)) = (mapper, source, share) else {
            return Err(Failed);
        };
        let share = (share.0 as u16, share.1 as u16);
        Ok(Self {
            mapper,
            found: None,
            source: source.0,
            protocol,
            port,
            ports: all,
            share,
            next_port: share.0,
            interval,
            rise,
            fall,
            health: Vec::new(),
            due: 0,
        })
    }

    /// Which backends there are now, and whether they are drained.
    fn backends(&self) -> Vec<(Backend, bool)> {
        match self.found.as_ref().map(|mapper| &mapper.choice) {
            Some(Choice::Backends(backends)) => backends.all(),
            _ => Vec::new(),
        }
    }

    /// Writes a handler of the mapper.
    fn tell(&self, handler: &str, backend: Backend, cx: &mut Context<'_>) {
        cx.write_later(&format!("{}.{handler}", self.mapper.text), &backend.to_string());
    }

    /// Takes in what became of a probe.
    fn judge(&mut self, at: usize, is_answered: bool, cx: &mut Context<'_>) {
        let needed = if is_answered { self.rise } else { self.fall };
        let health = &mut self.health[at];
        health.waiting = None;
        health.answers += u64::from(is_answered);
        if health.is_up == is_answered {
            health.against = 0;
            return;
        }
        health.against += 1;
        if health.against < needed {
            return;
        }
        (health.is_up, health.against) = (is_answered, 0);
        if is_answered && std::mem::take(&mut health.drained) {
            let backend = health.backend;
            self.tell("add", backend, cx);
        }
    }

    /// Drains a backend that takes new flows, if it is down.
    fn drain_if_down(&mut self, at: usize, cx: &mut Context<'_>) {
        let health = &mut self.health[at];
        if !health.is_up {
            health.drained = true;
            let backend = health.backend;
            self.tell("drain", backend, cx);
        }
    }

    /// Judges the probes of the last interval, and sends those of this one.
    fn probe(&mut self, cx: &mut Context<'_>) {
        let backends = self.backends();
        self.health.retain(|health| backends.iter().any(|(backend, _)| *backend == health.backend));
        for (backend, is_drained) in backends {
            let known = self.health.iter().position(|health| health.backend == backend);
            let at = known.unwrap_or(self.health.len());
            if known.is_none() {
                self.health.push(Health::new(backend));
            }
            if self.health[at].waiting.is_some() {
                self.judge(at, false, cx);
            }
            if !is_drained {
                self.drain_if_down(at, cx);
            }
            let number = cx.random(0, u64::from(u32::MAX)) as u32;
            let port = self.next_port;
            self.next_port = if port < self.share.1 { port + 1 } else { self.share.0 };
            self.health[at].waiting = Some((number, port));
            self.health[at].probes += 1;
            let packet = match self.protocol {
                Protocol::Icmp => self.ping(backend, number, port, cx),
                Protocol::Tcp => self.segment(backend, (SYN, number), port, cx),
            };
            cx.emit(0, packet);
        }
    }

    fn ping(&self, backend: Backend, number: u32, id: u16, cx: &mut Context<'_>) -> Packet {
        let mut bytes = [0; ipv4::HEADER_LEN + ICMP_HEADER + PAYLOAD];
        let length = bytes.len() as u16;
        let (ip, icmp) = bytes.split_at_mut(ipv4::HEADER_LEN);
        if let Some(mut ip) = Ipv4::new(ip) {
            ip.set_header_len(ipv4::HEADER_LEN);
            ip.set_total_len(length);
            ip.set_fragment_word(0x4000);
            ip.set_ttl(64);
            ip.set_protocol(ip_protocol::ICMP);
            ip.set_src(self.source);
            ip.set_dst(Ipv4Addr::from_bits(backend.address()));
            ip.fill_checksum();
        }
        icmp[ICMP_HEADER..].copy_from_slice(&number.to_be_bytes());
        if let Some(mut icmp) = Icmpv4::new(icmp) {
            icmp.set_message_type(message::ECHO);
            icmp.set_rest(u32::from(id) << 16 | number & 0xffff);
            icmp.fill_checksum();
        }
        let mut packet = cx.core.pool.packet(&bytes);
        packet.set_ip_header(0, ipv4::HEADER_LEN);
        packet.annotations_mut().set_u32(annotation::DST_IP, backend.address());
        packet
    }

    /// A segment with these flags and this sequence number.
    fn segment(
        &self,
        backend: Backend,
        (flags, sequence): (u8, u32),
        port: u16,
        cx: &mut Context<'_>,
    ) -> Packet {
        let to = IpAddr::V4(Ipv4Addr::from_bits(backend.address()));
        let mut packet = cx.core.pool.packet(&[0; ipv4::HEADER_LEN]);
        packet.set_ip_header(0, ipv4::HEADER_LEN);
        let segment = NewSegment {
            from: (self.source.into(), port),
            to: (to, self.port_of(backend)),
            sequence,
            acknowledged: None,
            flags,
            window: if flags == SYN { u16::MAX } else { 0 },
            options: &[],
        };
        segment.write(&mut packet);
        packet
    }

    fn port_of(&self, backend: Backend) -> u16 {
        if backend.port() == 0 { self.port } else { backend.port() }
    }

    /// Whether a packet answers a probe, and if so whose, and whether it says that the backend works.
    fn answered(&self, packet: &Packet) -> Option<(usize, bool)> {
        let ip = Ipv4::new_checked(packet.data()).filter(|ip| !ip.is_fragment())?;
        if ip.dst() != self.source {
            return None;
        }
        let of = |health: &Health| health.backend.address() == ip.src().to_bits();
        let mut all = self.health.iter().enumerate().filter(|(_, health)| of(health));
        match (self.protocol, ip.protocol()) {
            (Protocol::Icmp, ip_protocol::ICMP) => {
                let icmp = Icmpv4::new(ip.payload())?;
                let number = u32::from_be_bytes(*icmp.payload().first_chunk()?);
                let is_reply = icmp.message_type() == message::ECHO_REPLY && icmp.checksum_ok();
                let fits = |&(number, id): &(u32, u16)| {
                    icmp.rest() == u32::from(id) << 16 | number & 0xffff
                };
                let is =
                    |health: &Health| health.waiting.filter(fits).is_some_and(|w| w.0 == number);
                let (at, _) = all.find(|(_, health)| is_reply && is(health))?;
                Some((at, true))
            }
            (Protocol::Tcp, ip_protocol::TCP) => {
                let tcp = Tcp::new_checked(ip.payload())?;
                let length = ip.payload().len() as u16;
                let is_well = tcp.checksum_ok(ip.pseudo_header(length));
                let is = |health: &Health| {
                    health.waiting == Some((tcp.ack().wrapping_sub(1), tcp.dst_port()))
                        && self.port_of(health.backend) == tcp.src_port()
                };
                let (at, _) = all.find(|(_, health)| is_well && is(health))?;
                let flags = tcp.flags() & (SYN | ACK | RST);
                match flags {
                    flags if flags == SYN | ACK => Some((at, true)),
                    flags if flags == RST | ACK => Some((at, false)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn take(&mut self, packet: &Packet, cx: &mut Context<'_>) -> Verdict {
        let Some((at, works)) = self.answered(packet) else {
            return Verdict::Reject(1, NOT_AN_ANSWER);
        };
        let Health { backend, waiting, .. } = self.health[at];
        if let (Protocol::Tcp, true, Some((number, port))) = (self.protocol, works, waiting) {
            // The backend forgets the connection.
            let reset = self.segment(backend, (RST, number.wrapping_add(1)), port, cx);
            cx.emit(0, reset);
        }
        self.judge(at, works, cx);
        if self.backends().contains(&(backend, false)) {
            self.drain_if_down(at, cx);
        }
        Verdict::Drop(ANSWER)
    }
}

impl Element for BackendProbe {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, cx| self.take(packet, cx));
    }

    fn model(&self) -> Model {
        Model::opaque("waits for answers to probes")
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let element = cx.resolve(&self.mapper.text);
        let found = element.as_deref().and_then(|element| cx.shared::<Mapper>(element));
        self.found = found.filter(|mapper| matches!(mapper.choice, Choice::Backends(_)));
        if self.found.is_none() {
            let message = format!("no BackendMapper is named '{}'", self.mapper.text);
            cx.report(Diagnostic::error("bad-argument", message).label(self.mapper.span, ""));
            return Err(Failed);
        }
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        if self.due <= cx.now() {
            self.due = cx.now().saturating_add(self.interval);
            self.probe(cx);
        }
        cx.wake_at(self.due);
    }

    fn keeps_run(&self) -> bool {
        false
    }

    fn handler_calls(&self) -> HandlerCalls {
        HandlerCalls::Of(vec![self.mapper.text.clone()])
    }

    fn owned(&self) -> Vec<OwnedPorts> {
        let source = self.source.to_bits();
        vec![OwnedPorts { addresses: (source, source), ports: self.ports }]
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_all() {
            to.native = Some(Box::new(std::mem::take(&mut self.health)));
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        if let Some(health) = from.take_native::<Vec<Health>>() {
            self.health = *health;
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("backends")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let mut text = String::new();
        for Health { backend, is_up, probes, answers, .. } in &self.health {
            let state = if *is_up { "up" } else { "down" };
            let _ = writeln!(text, "{backend} {state} {probes} {answers}");
        }
        Ok(text)
    }
}
