//! SYNProxy.

mod connections;
mod cookie;
mod options;

use std::collections::VecDeque;
use std::net::IpAddr;

use ir::{Model, Reason};
use net::wire::ip_protocol::{ICMP, ICMPV6, TCP};
use net::wire::ipv6::HEADER_LEN;
use net::wire::tcp::flag::{ACK, RST, SYN};
use net::wire::{Ipv4, Ipv6, Tcp};
use net::{Batch, Packet};

use crate::argument::Nanoseconds;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::listing::{self, Record, SLICE, Slice};
use crate::transport::new_segment::{self, ABOUT_BROADCAST, NewSegment};
use crate::transport::segments::{self, FlowKeys, Seen, Segment};
use connections::{Connection, Connections, State, Timeouts};
use cookie::{Cookies, Ends, LIFETIME, Secret};
use options::{NO_OPTIONS, Offer};

element! {
    /// SYNProxy([KEYWORDS]) -- answers SYNs in place of servers, and opens connections for clients that are there
    ///
    /// Expects IPv4 and IPv6 packets with their header marked. What clients send comes in on input 0, what servers
    /// send on input 1; they leave on the outputs of the same numbers. SYNs that come in on input 2 are answered: the
    /// SYN-ACK leaves on output 2, which leads to where the SYN came from, and nothing is kept. Its sequence number
    /// is a cookie: a keyed hash (SipHash-2-4) of addresses, ports, time, the client's number and what it offers. A
    /// client that acknowledges the cookie exists, and only then the server gets a SYN, on output 0. Until the server
    /// accepts, the client's window is closed. What the proxy answers to servers leaves on output 3, which leads to
    /// where their packets came from.
    ///
    /// From then on, the server's sequence numbers are translated in both directions, selective acknowledgments,
    /// timestamps, windows, and the packets in ICMP errors too. All other packets pass, SYNs on input 0
    /// and connections that began without the proxy among them. So connections go on whatever SYNs are sent to input 2,
    /// and when no more are. An ACK with a wrong cookie passes, too: the server resets it.
    ///
    /// Cookies are valid for 64 to 128 seconds. Window scaling and selective acknowledgments take a client that sends
    /// timestamps (RFC 7323), whose echo says what was offered; others go without. The maximum
    /// segment size is rounded down to 216, 536, 1220, 1300, 1380, 1440, 1460 or 8960 bytes. Data in a SYN is not
    /// accepted. Servers without timestamps need TIMESTAMPS false.
    ///
    /// IPv4 fragments are to be put together first; fragments of IPv6 pass unchanged.
    ///
    /// = KEYWORDS
    ///
    /// CAPACITY (number, default 1048576): how many connections there may be, each with about 200 bytes. When
    /// there are more, closed ones are forgotten, or else ones that servers have not accepted; no open ones are.
    /// MSS (number, default 1460): the maximum segment size of servers, which clients are told. With IPv6 20 less.
    /// WSCALE (number, default 7): the shift of windows that clients are told, 0 to 14.
    /// TIMESTAMPS (bool, default true): whether timestamps are used.
    /// TIMEOUT (time, default 24 hours): after which a connection is forgotten that nobody uses.
    /// CLOSE_TIMEOUT (time, default 2 minutes): the same of those that RST, or FIN in both directions, ended.
    ///
    /// = HANDLERS
    ///
    /// count (read): number of connections.
    /// table (read): the connections, with their states.
    /// cookies, accepted, invalid (read): cookies that were sent, that came back, and ACKs with none.
    ///
    /// = EXAMPLE
    ///
    /// syns :: IPClassifier(tcp opt syn and not tcp opt ack, -);
    /// ... -> CheckIPHeader -> syns; syns[0] -> [2] p :: SYNProxy; syns[1] -> [0] p;
    ///
    /// = SEE ALSO
    ///
    /// FloodDetector, TCPTracker, TCPReset
    SYNProxy {
        category: Transport, ports: "3/4", processing: "h/h",
        samples: [("", 3, 4), ("CAPACITY 2, MSS 1300, WSCALE 0, TIMESTAMPS false, TIMEOUT 5, CLOSE_TIMEOUT 1", 3, 4)]
    }
}

/// See [`SYNProxy::CLASS`].
pub(crate) struct SYNProxy {
    size: u16,
    scale: u8,
    times: bool,
    keys: FlowKeys,
    cookies: Cookies,
    connections: Connections,
    /// SYNs to servers that were not answered, in the order of time.
    opening: VecDeque<Opening>,
    wakes: Option<u64>,
    /// When the last cookie was sent.
    last_cookie: Option<u64>,
    counts: Counts,
}

/// A SYN that may have to be sent again.
struct Opening {
    at: u64,
    left: u8,
    key: u128,
    cookie: u32,
    packet: Packet,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cookies: u64,
    accepted: u64,
    invalid: u64,
}

/// What goes to another element besides counts and packets.
struct Moved {
    secrets: Vec<Secret>,
    connections: Vec<Connection>,
    last_cookie: Option<u64>,
}

/// All connections that are remembered are open.
const NO_ROOM: Reason = Reason("no-room-for-connection");
/// The client sends before the server accepted.
const NOT_OPEN: Reason = Reason("connection-not-open");
/// What comes in to be answered is no SYN.
const NOT_SYN: Reason = Reason("not-syn");

const SECOND: u64 = 1_000_000_000;
/// After how long SYNs to servers are sent again, and how often.
const AGAIN: u64 = SECOND;
const TIMES: u8 = 5;
/// SYNs that are sent again at the most, at one time.
const MOST_AGAIN: usize = 1024;
const CAPACITY: u64 = 1 << 20;
const CLIENTS: usize = 0;
const SERVERS: usize = 1;
const BACK_TO_CLIENTS: usize = 2;
const BACK_TO_SERVERS: usize = 3;

fn ends(seen: &Seen<'_>, from: usize) -> Ends {
    let (src, dst) = ((seen.src, seen.src_port), (seen.dst, seen.dst_port));
    match from {
        CLIENTS => Ends { client: src, server: dst },
        _ => Ends { client: dst, server: src },
    }
}

/// The segment of a packet, from the header of TCP on.
fn segment_of(packet: &mut Packet, at: usize) -> Option<&mut [u8]> {
    packet.network_mut()?.get_mut(at..)
}

impl SYNProxy {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let keywords = ["CAPACITY", "MSS", "WSCALE", "TIMESTAMPS", "TIMEOUT", "CLOSE_TIMEOUT"];
        let mut arguments = cx.arguments(&keywords);
        let capacity = arguments.keyword("CAPACITY").unwrap_or(CAPACITY);
        let size = arguments.keyword("MSS").unwrap_or(1460);
        let shift = arguments.keyword_argument("WSCALE");
        let scale = shift.as_ref().and_then(|scale| arguments.parse("WSCALE", scale)).unwrap_or(7);
        if let (15.., Some(shift)) = (scale, &shift) {
            arguments.error(shift, "windows are shifted by 14 at the most");
        }
        let times = arguments.keyword("TIMESTAMPS").unwrap_or(true);
        let mut time = |name, usual: u64| {
            arguments.keyword::<Nanoseconds>(name).map_or(usual * SECOND, |time| time.0)
        };
        let (open, closed) = (time("TIMEOUT", 86_400), time("CLOSE_TIMEOUT", 120));
        let opening = (u64::from(TIMES) + 1) * AGAIN;
        arguments.finish()?;
        Ok(Self {
            size,
            scale,
            times,
            keys: FlowKeys::new(),
            cookies: Cookies::new(cx.entropy()?),
            connections: Connections::new(
                usize::try_from(capacity).unwrap_or(usize::MAX),
                Timeouts { opening, open, closed },
            ),
            opening: VecDeque::new(),
            wakes: None,
            last_cookie: None,
            counts: Counts::default(),
        })
    }

    /// Whether a cookie may come back.
    fn is_waiting(&self, now: u64) -> bool {
        self.last_cookie.is_some_and(|sent| now.saturating_sub(sent) <= LIFETIME)
    }

    /// Answers a SYN.
    fn answer(&mut self, packet: &mut Packet, now: u64) -> Verdict {
        let seen = segments::seen(packet);
        let found = seen.and_then(|seen| Some((seen, seen.tcp.filter(Segment::is_syn)?)));
        let Some((seen, tcp)) = found else { return Verdict::Drop(NOT_SYN) };
        if !new_segment::may_be_answered(packet, &seen) {
            return Verdict::Drop(ABOUT_BROADCAST);
        }
        let ends = ends(&seen, CLIENTS);
        let (key, _) = self.keys.of_both(&seen);
        let offered = packet.network().and_then(|network| Tcp::new(&network[seen.at..]));
        let mut offer = offered.map_or(Offer::default(), |tcp| Offer::of(&tcp));
        if !self.times || offer.times.is_none() {
            offer = Offer { size: offer.size, ..Offer::default() };
        }
        let sequence = tcp.sequence.wrapping_sub(1);
        let code = offer.code();
        let cookie = self.cookies.make(now, &ends, sequence, offer.usual_size(), code);
        let told = Offer::time(now / 1_000_000, code);
        let options = Offer {
            size: Some(self.size.saturating_sub(if ends.client.0.is_ipv6() { 20 } else { 0 })),
            scale: offer.scale.map(|_| self.scale),
            sack: offer.sack,
            times: offer.times.map(|(theirs, _)| (told, theirs)),
        };
        let options = options.write();
        let answer = NewSegment {
            from: ends.server,
            to: ends.client,
            sequence: cookie,
            acknowledged: Some(tcp.sequence),
            flags: SYN,
            window: 0,
            options: options.bytes(),
        };
        answer.write(packet);
        self.connections.change(key, now, |known| known.is_asked_again = true);
        self.last_cookie = Some(now);
        self.counts.cookies += 1;
        Verdict::To(BACK_TO_CLIENTS)
    }

    fn client_packet(&mut self, packet: &mut Packet, cx: &mut Context<'_>) -> Verdict {
        let now = cx.now();
        if self.connections.len() == 0 && !self.is_waiting(now) {
            return Verdict::To(CLIENTS);
        }
        let Some(seen) = segments::seen(packet) else { return Verdict::To(CLIENTS) };
        let Some(tcp) = seen.tcp else {
            if matches!(seen.protocol, ICMP | ICMPV6) {
                let at = seen.at;
                self.change_error(packet, at);
            }
            return Verdict::To(CLIENTS);
        };
        let (key, _) = self.keys.of_both(&seen);
        let (ends, at) = (ends(&seen, CLIENTS), seen.at);
        let known = self.connections.get(key).copied();
        if tcp.is_syn() {
            return match known.map(|known| known.state) {
                None => Verdict::To(CLIENTS),
                Some(State::Closed) => {
                    self.connections.remove(key);
                    Verdict::To(CLIENTS)
                }
                // The server numbers its bytes anew, or somebody wants it to seem so.
                Some(_) => self.answer(packet, now),
            };
        }
        let may_open = known.is_none_or(|known| known.is_asked_again);
        let is_ack = tcp.has(ACK) && !tcp.has(SYN) && !tcp.has(RST);
        if may_open && is_ack && self.is_waiting(now) {
            if let Some(verdict) = self.open(packet, key, ends, at, tcp, cx) {
                return verdict;
            }
            self.counts.invalid += u64::from(known.is_none());
        }
        match known.map(|known| known.state) {
            None => Verdict::To(CLIENTS),
            Some(State::Opening) => Verdict::Drop(NOT_OPEN),
            Some(_) => {
                self.change(packet, key, at, now, CLIENTS);
                Verdict::To(CLIENTS)
            }
        }
    }

    /// Opens a connection to a server if a client acknowledges a cookie.
    fn open(
        &mut self,
        packet: &mut Packet,
        key: u128,
        ends: Ends,
        at: usize,
        tcp: Segment,
        cx: &mut Context<'_>,
    ) -> Option<Verdict> {
        let now = cx.now();
        let header = Tcp::new(packet.network()?.get(at..)?)?;
        let (window, times) = (header.window(), Offer::of(&header).times);
        let code = times.map_or(NO_OPTIONS, |(_, echoed)| Offer::code_of(echoed));
        let (sequence, cookie) = (tcp.sequence.wrapping_sub(1), tcp.acknowledged.wrapping_sub(1));
        // Who asks whether the window is open repeats the byte before.
        let numbers = [sequence, tcp.sequence];
        let (sequence, size) = numbers.into_iter().find_map(|sequence| {
            Some((sequence, self.cookies.check(now, cookie, &ends, sequence, code)?))
        })?;
        let client = Offer { size: Some(size), times, ..Offer::of_code(code) };
        let connection = Connection {
            ends,
            state: State::Opening,
            sequence,
            cookie,
            delta: 0,
            client,
            server: Offer::default(),
            scale: self.scale,
            window,
            ended: [false; 2],
            is_asked_again: false,
            group: packet.group(),
            last: now,
        };
        if !self.connections.add(key, connection) {
            return Some(Verdict::Drop(NO_ROOM));
        }
        self.counts.accepted += 1;
        let options = Offer { times: times.map(|(theirs, _)| (theirs, 0)), ..client };
        let options = options.write();
        let syn = NewSegment {
            from: ends.client,
            to: ends.server,
            sequence,
            acknowledged: None,
            flags: SYN,
            window: connection.first_window().min(0xffff) as u16,
            options: options.bytes(),
        };
        syn.write(packet);
        if self.opening.len() < MOST_AGAIN {
            let (packet, at) = (cx.core.pool.copy(packet), now.saturating_add(AGAIN));
            self.opening.push_back(Opening { at, left: TIMES, key, cookie, packet });
            self.wait(cx);
        }
        Some(Verdict::To(CLIENTS))
    }

    fn server_packet(&mut self, packet: &mut Packet, cx: &mut Context<'_>) -> Verdict {
        if self.connections.len() == 0 {
            return Verdict::To(SERVERS);
        }
        let Some(seen) = segments::seen(packet) else { return Verdict::To(SERVERS) };
        let Some(tcp) = seen.tcp else { return Verdict::To(SERVERS) };
        let (key, _) = self.keys.of_both(&seen);
        let Some(&known) = self.connections.get(key) else { return Verdict::To(SERVERS) };
        let (now, at) = (cx.now(), seen.at);
        let first = known.sequence.wrapping_add(1);
        let answers = tcp.has(ACK) && tcp.acknowledged == first;
        match (known.state, tcp.has(SYN), tcp.has(RST)) {
            (State::Opening, true, false) if answers => self.accept(packet, key, at, tcp, cx),
            (State::Opening, _, true) if answers => {
                self.connections.remove(key);
                let reset = NewSegment {
                    from: known.ends.server,
                    to: known.ends.client,
                    sequence: known.cookie.wrapping_add(1),
                    acknowledged: Some(first),
                    flags: RST,
                    window: 0,
                    options: &[],
                };
                reset.write(packet);
                Verdict::To(SERVERS)
            }
            (State::Opening, ..) => Verdict::Drop(NOT_OPEN),
            // The first acknowledgment was lost.
            (_, true, false) if answers => {
                known.acknowledge(tcp.sequence, packet);
                Verdict::To(BACK_TO_SERVERS)
            }
            _ => {
                self.change(packet, key, at, now, SERVERS);
                Verdict::To(SERVERS)
            }
        }
    }

    /// Tells both ends that the connection is open.
    fn accept(
        &mut self,
        packet: &mut Packet,
        key: u128,
        at: usize,
        tcp: Segment,
        cx: &mut Context<'_>,
    ) -> Verdict {
        let header = packet.network().and_then(|network| Tcp::new(network.get(at..)?));
        let Some(header) = header else { return Verdict::Drop(NOT_OPEN) };
        let (offer, window) = (Offer::of(&header), header.window());
        let mut open = None;
        self.connections.change(key, cx.now(), |known| {
            known.state = State::Open;
            known.delta = known.cookie.wrapping_sub(tcp.sequence.wrapping_sub(1));
            // What was not offered is not accepted.
            known.server = Offer {
                size: offer.size,
                scale: offer.scale.filter(|_| known.client.scale.is_some()),
                sack: offer.sack && known.client.sack,
                times: offer.times.filter(|_| known.client.times.is_some()),
            };
            open = Some(*known);
        });
        let Some(open) = open else { return Verdict::Drop(NOT_OPEN) };
        let mut answer = cx.core.pool.copy(packet);
        open.acknowledge(tcp.sequence, &mut answer);
        cx.emit(BACK_TO_SERVERS, answer);
        open.open_window(window, packet);
        Verdict::To(SERVERS)
    }

    /// Translates a segment of a connection.
    fn change(&mut self, packet: &mut Packet, key: u128, at: usize, now: u64, from: usize) {
        let Some(segment) = segment_of(packet, at) else { return };
        self.connections.change(key, now, |known| {
            let change =
                if from == CLIENTS { known.toward_server() } else { known.toward_client() };
            let Some(header) = Tcp::new(&segment[..]) else { return };
            let acknowledges = header.flags() & ACK != 0;
            known.saw(from, header.flags());
            change.apply(segment, acknowledges);
        });
    }

    /// Translates what an ICMP error from the clients' side says of a server's segment.
    fn change_error(&self, packet: &mut Packet, at: usize) {
        let Some(error) = segment_of(packet, at) else { return };
        let Some((key, sequence_at)) = self.about(error) else { return };
        let Some(known) = self.connections.get(key) else { return };
        let Some(number) = error.get_mut(sequence_at..sequence_at + 4) else { return };
        let old = u32::from_be_bytes([number[0], number[1], number[2], number[3]]);
        let new = old.wrapping_sub(known.delta);
        number.copy_from_slice(&new.to_be_bytes());
        let checksum = u16::from_be_bytes([error[2], error[3]]);
        let checksum = net::checksum::update_u32(checksum, old, new);
        error[2..4].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The connection that an ICMP error is about, and where the sequence number of its segment stands.
    fn about(&self, error: &[u8]) -> Option<(u128, usize)> {
        const ICMP_HEADER: usize = 8;
        let kind = *error.first()?;
        let inner = error.get(ICMP_HEADER..)?;
        let (src, dst, header): (IpAddr, IpAddr, usize) = match inner.first()? >> 4 {
            4 if matches!(kind, 3 | 4 | 11 | 12) => {
                let ip = Ipv4::new(inner).filter(|ip| ip.protocol() == TCP)?;
                (ip.src().into(), ip.dst().into(), ip.header_len())
            }
            6 if (1..=4).contains(&kind) => {
                let ip = Ipv6::new(inner).filter(|ip| ip.next_header() == TCP)?;
                (ip.src().into(), ip.dst().into(), HEADER_LEN)
            }
            _ => return None,
        };
        let ports = inner.get(header..)?.first_chunk::<8>()?;
        let port = |at| u16::from_be_bytes([ports[at], ports[at + 1]]);
        let key = self.keys.of_ends(TCP, (src, port(0)), (dst, port(2)));
        Some((key, ICMP_HEADER + header + 4))
    }

    /// Has the time looked at when a SYN is to be sent again.
    fn wait(&mut self, cx: &mut Context<'_>) {
        if self.wakes.is_none()
            && let Some(next) = self.opening.front()
        {
            self.wakes = Some(next.at);
            cx.wake_at(next.at);
        }
    }

    fn is_opening(&self, of: &Opening) -> bool {
        let known = self.connections.get(of.key);
        known.is_some_and(|known| known.state == State::Opening && known.cookie == of.cookie)
    }

    fn send_again(&mut self, cx: &mut Context<'_>) {
        while let Some(mut opening) = self.opening.pop_front_if(|next| next.at <= cx.now()) {
            if opening.left == 0 || !self.is_opening(&opening) {
                cx.core.pool.recycle(opening.packet);
                continue;
            }
            let again = cx.core.pool.copy(&opening.packet);
            cx.emit(CLIENTS, again);
            opening.left -= 1;
            opening.at = cx.now().saturating_add(AGAIN);
            self.opening.push_back(opening);
        }
    }
}

impl Element for SYNProxy {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.connections.expire(cx.now());
        cx.each(batch, |packet, cx| match port {
            CLIENTS => self.client_packet(packet, cx),
            SERVERS => self.server_packet(packet, cx),
            _ => self.answer(packet, cx.now()),
        });
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        if self.wakes.take_if(|at| *at <= cx.now()).is_some() {
            self.connections.expire(cx.now());
            self.send_again(cx);
        }
        self.wait(cx);
    }

    fn model(&self) -> Model {
        Model::opaque("answers for servers, and translates their numbers")
    }

    fn held(&self) -> usize {
        self.opening.len()
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_copy() {
            return;
        }
        if to.is_all() {
            let Counts { cookies, accepted, invalid } = self.counts;
            to.numbers = vec![cookies, accepted, invalid];
            to.packets = self.opening.drain(..).map(|opening| opening.packet).collect();
        }
        to.native = Some(Box::new(Moved {
            secrets: self.cookies.secrets().to_vec(),
            connections: self.connections.take(to.group()),
            last_cookie: self.last_cookie,
        }));
    }

    fn import(&mut self, _: &str, from: &mut ElementState, now: u64) {
        if let Some([cookies, accepted, invalid]) = from.counts() {
            self.counts = Counts { cookies, accepted, invalid };
        }
        if let Some(moved) = from.take_native::<Moved>() {
            match from.is_all() {
                true => self.cookies.follow(moved.secrets),
                false => self.cookies.trust(&moved.secrets),
            }
            self.last_cookie = self.last_cookie.max(moved.last_cookie);
            for connection in moved.connections {
                let Ends { client, server } = connection.ends;
                self.connections.add(self.keys.of_ends(TCP, client, server), connection);
            }
        }
        for packet in from.packets.drain(..) {
            let key = segments::seen(&packet).map(|seen| self.keys.of_both(&seen).0);
            let known = key.and_then(|key| Some((key, self.connections.get(key)?.cookie)));
            match known {
                Some((key, cookie)) => {
                    let at = now.saturating_add(AGAIN);
                    self.opening.push_back(Opening { at, left: TIMES, key, cookie, packet });
                }
                None => from.refused.push((packet, NOT_OPEN)),
            }
        }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::read("table"),
                Handler::count("cookies"),
                Handler::count("accepted"),
                Handler::count("invalid"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "count" => self.connections.len().to_string(),
            "cookies" => self.counts.cookies.to_string(),
            "accepted" => self.counts.accepted.to_string(),
            "invalid" => self.counts.invalid.to_string(),
            _ => listing::whole(|from| self.list(handler, from, cx)),
        })
    }

    fn list(&self, handler: &str, from: u64, _: &HandlerContext<'_>) -> Option<Slice> {
        if handler != "table" {
            return None;
        }
        let (part, next) = self.connections.part(from, SLICE);
        let records = part.map(|of| Record::Row(of.last, of.line())).collect();
        Some(Slice { records, next, touches: SLICE as u32, ..Slice::default() })
    }
}
