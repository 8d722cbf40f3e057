//! FromDump.

use std::cell::Cell;
use std::rc::Rc;

use click::config::Argument;
use ir::{Diagnostic, Model, Processing, Reason, Span};
use net::annotation::EXTRA_LENGTH;
use net::wire::ether_type::IPV4;
use net::wire::{Ethernet, Ipv4};
use net::{Batch, Packet, checksum};

use crate::argument::{Nanoseconds, parse_value};
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::{Device, DeviceRequest, Received};
use crate::element::{Element, Handler, HandlerCalls, HandlerContext, Traffic, Work};
use crate::handler_call::HandlerCall;
use crate::io::link_type::{self, holds_ip, is_raw, mark_ip, mark_starts};

element! {
    /// FromDump(FILENAME [, TIMING, KEYWORDS]) -- reads packets from a capture file
    ///
    /// Reads the packets of a pcap or pcapng file, plain or compressed with gzip, and pushes
    /// them out with their timestamps, or hands them out when it is pulled. FILENAME - is the
    /// standard input. The bytes that a frame had but that were not captured are noted in the
    /// extra length annotation.
    ///
    /// = KEYWORDS
    ///
    /// STOP (bool, default false): whether the driver stops at the end.
    /// TIMING (bool, default false): whether packets come at the intervals of the capture.
    /// ACCELERATION (number, default 100): per cent of the capture's speed, with TIMING.
    /// SAMPLE (number, default 1): the probability with which each packet is kept.
    /// FORCE_IP (bool, default false): whether only IP packets go to output 0, their header
    /// marked; others go to output 1, or are dropped if that is not connected. Always so for
    /// captures of bare IP packets.
    /// FORCE_LEN (number, default -1): the length that frames are cut or filled up to; 0 gives
    /// them the length that they had, -1 leaves what was captured.
    /// START (time): packets before this time are passed over.
    /// START_AFTER (time): the same, counted from the first packet.
    /// END (time): the end comes at the first packet at or after this time.
    /// END_AFTER (time): the same, counted from the first packet of the file.
    /// INTERVAL (time): the same, counted from the first packet that is kept.
    /// END_CALL (HANDLER [VALUE]): what happens at the end, instead of STOP.
    /// BURST (number, default 32): how many packets are read at a time.
    /// ACTIVE (bool, default true): whether it reads.
    /// FILEPOS (number): byte of the uncompressed file at which it starts.
    /// MMAP and PRELOAD are accepted and mean nothing.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// reset_counts (write): starts counting again.
    /// active (read, write): whether it reads.
    /// sampling_prob (read): the probability of SAMPLE.
    /// encap (read): the file's link type.
    /// filename, filesize (read): the file and its length.
    /// filepos (read, write): where in the uncompressed file it reads.
    /// packet_filepos (read): where the last packet began.
    /// extend_interval (write): puts the end off by so much time, and goes on.
    /// reset_timing (write): forgets the times of the packets so far.
    /// stop (write): stops reading and asks the driver to stop.
    ///
    /// = SEE ALSO
    ///
    /// ToDump, FromDevice, FromIPSummaryDump
    FromDump {
        category: Io, ports: "0/1-2", processing: "a/ah",
        boundary: Ingress,
        samples: []
    }
}

/// See [`FromDump::CLASS`].
pub(crate) struct FromDump {
    path: String,
    span: Span,
    start_position: u64,
    device: Option<Box<dyn Device>>,
    /// Shared with elements that write what this one reads.
    link: Rc<LinkType>,
    link_type: u32,
    force_ip: bool,
    force_length: Option<u32>,
    /// Of 2²⁸.
    sampling: u32,
    timing: Option<Timing>,
    window: Window,
    burst: usize,
    pulled: bool,
    active: bool,
    stop: bool,
    end_call: Option<HandlerCall>,
    /// Whether the file has been read to its end, and whether that was told.
    exhausted: bool,
    ended: bool,
    /// A packet that was read and has to wait.
    held: Option<Packet>,
    packet_position: u64,
    count: u64,
    bytes: u64,
}

/// The link type of the frames that a source reads, known once its device is open.
pub(crate) struct LinkType(pub(crate) Cell<Option<u32>>);

/// When packets are due.
struct Timing {
    /// Per cent.
    acceleration: u32,
    /// Time of the first packet, and time when it was sent.
    start: Option<(u64, u64)>,
}

/// Which part of the capture is read.
#[derive(Default)]
struct Window {
    /// Whether the times that are relative have been counted from the packet that was first.
    settled: bool,
    first: Option<Limit>,
    last: Option<Limit>,
    /// When the end came, for an extension of it.
    passed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    At(u64),
    AfterFirst(u64),
    /// After the first packet that is kept.
    Interval(u64),
}

/// What a timestamp means to a [`Window`].
enum WindowPosition {
    Before,
    Within,
    Behind,
}

impl Window {
    fn settle(&mut self, time: u64) {
        self.settled = true;
        if let Some(Limit::AfterFirst(after)) = self.first {
            self.first = Some(Limit::At(time.saturating_add(after)));
        }
        let begin = match self.first {
            Some(Limit::At(at)) => at,
            _ => time,
        };
        self.last = self.last.map(|last| {
            Limit::At(match last {
                Limit::At(at) => at,
                Limit::AfterFirst(after) => time.saturating_add(after),
                Limit::Interval(after) => begin.saturating_add(after),
            })
        });
    }

    fn place(&mut self, time: u64) -> WindowPosition {
        if !self.settled {
            self.settle(time);
        }
        match (self.first, self.last) {
            (Some(Limit::At(first)), _) if time < first => return WindowPosition::Before,
            (_, Some(Limit::At(last))) if time >= last => {
                self.passed = Some(last);
                self.last = None;
                return WindowPosition::Behind;
            }
            _ => {}
        }
        self.first = None;
        WindowPosition::Within
    }
}

/// What reading the next packet came to.
enum Next {
    Packet(Packet),
    /// Its time has not come, or reading was suspended.
    Wait,
    /// Many were passed over; others want their turn.
    Passed,
    End,
}

/// Denominator of sampling probabilities.
const ALWAYS: u32 = 1 << 28;
/// Packets that may be passed over in one go.
const MAX_PASSED: usize = 4096;

const NOT_IP: Reason = Reason("not-ip");

impl FromDump {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let span = cx.span();
        let pulled = cx.output_processing().first() == Some(&Processing::Pull);
        let mut arguments = cx.arguments(&[
            "FILENAME",
            "TIMING",
            "STOP",
            "ACTIVE",
            "SAMPLE",
            "FORCE_IP",
            "FORCE_LEN",
            "START",
            "START_AFTER",
            "END",
            "END_AFTER",
            "INTERVAL",
            "END_CALL",
            "FILEPOS",
            "PRELOAD",
            "ACCELERATION",
            "BURST",
            "MMAP",
        ]);
        let path: Option<Argument> =
            arguments.keyword_argument("FILENAME").or_else(|| arguments.next_plain());
        let span = path.as_ref().map_or(span, |p| p.span);
        let path = match &path {
            Some(path) => arguments.parse::<String>("FILENAME", path).unwrap_or_default(),
            None => arguments.required("FILENAME"),
        };
        let timing = arguments.optional("TIMING").unwrap_or(false);
        let acceleration: u32 = arguments.keyword("ACCELERATION").unwrap_or(100);
        let stop = arguments.keyword("STOP").unwrap_or(false);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        let sample: f64 = arguments.keyword("SAMPLE").unwrap_or(1.0);
        let force_ip = arguments.keyword("FORCE_IP").unwrap_or(false);
        let force_length: i64 = arguments.keyword("FORCE_LEN").unwrap_or(-1);
        let end_call: Option<HandlerCall> = arguments.keyword("END_CALL");
        let start_position = arguments.keyword("FILEPOS").unwrap_or(0);
        let burst: usize = arguments.keyword("BURST").unwrap_or(Batch::DEFAULT_BURST);
        let _: Option<bool> = arguments.keyword("MMAP");
        let _: Option<i64> = arguments.keyword("PRELOAD");
        let mut limit = |name, limit: fn(u64) -> Limit| {
            arguments.keyword::<Nanoseconds>(name).map(|n| limit(n.0))
        };
        let starts = [limit("START", Limit::At), limit("START_AFTER", Limit::AfterFirst)];
        let ends = [
            limit("END", Limit::At),
            limit("END_AFTER", Limit::AfterFirst),
            limit("INTERVAL", Limit::Interval),
        ];
        let mut refuse = |wrong: bool, message: &str| {
            if wrong {
                arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
            }
        };
        let several = |limits: &[Option<Limit>]| limits.iter().flatten().count() > 1;
        refuse(several(&starts), "START and START_AFTER exclude each other");
        refuse(several(&ends), "END, END_AFTER and INTERVAL exclude each other");
        refuse(stop && end_call.is_some(), "END_CALL and STOP exclude each other");
        refuse(!(0.0..=1.0).contains(&sample), "SAMPLE is a probability from 0 to 1");
        refuse(acceleration == 0, "ACCELERATION must be at least 1");
        refuse(
            !(force_length == -1 || force_length == 0 || (60..=9000).contains(&force_length)),
            "FORCE_LEN is -1, 0 or a length from 60 to 9000",
        );
        arguments.finish()?;
        let link = Rc::new(LinkType(Cell::new(None)));
        cx.share(Rc::clone(&link));
        Ok(Self {
            path,
            span,
            start_position,
            device: None,
            link,
            link_type: 1,
            force_ip,
            force_length: u32::try_from(force_length).ok(),
            sampling: (sample * f64::from(ALWAYS)) as u32,
            timing: timing.then_some(Timing { acceleration, start: None }),
            window: Window {
                first: starts.into_iter().flatten().next(),
                last: ends.into_iter().flatten().next(),
                ..Window::default()
            },
            burst: burst.clamp(1, MAX_PASSED),
            pulled,
            active,
            stop,
            end_call,
            exhausted: false,
            ended: false,
            held: None,
            packet_position: 0,
            count: 0,
            bytes: 0,
        })
    }

    /// Whether packets can be handed on in bursts as they are read.
    fn is_plain(&self) -> bool {
        self.timing.is_none()
            && self.sampling == ALWAYS
            && self.force_length.is_none()
            && self.window.first.is_none()
            && self.window.last.is_none()
            && self.held.is_none()
    }

    /// Reads up to `burst` packets as they come; `false` at the end.
    fn receive(&mut self, burst: usize, batch: &mut Batch, cx: &mut Context<'_>) -> bool {
        let Some(device) = self.device.as_mut().filter(|_| !self.exhausted) else { return false };
        self.packet_position = device.position().unwrap_or(0);
        let received = device.receive(burst, batch, &mut cx.core.pool);
        mark_starts(batch, self.link_type);
        match received {
            Ok(Received::More | Received::HandedOn) => return true,
            Ok(Received::End) => {}
            Err(why) => cx.error(&format!("{}: {why}", self.path)),
        }
        self.exhausted = true;
        false
    }

    /// The next packet that belongs to what is asked for.
    fn next(&mut self, cx: &mut Context<'_>) -> Next {
        let mut batch = cx.core.batch();
        let next = self.next_with(&mut batch, cx);
        cx.core.recycle_batch(batch);
        next
    }

    fn next_with(&mut self, batch: &mut Batch, cx: &mut Context<'_>) -> Next {
        for _ in 0..MAX_PASSED {
            let mut packet = match self.held.take() {
                Some(packet) => packet,
                None => {
                    let more = self.receive(1, batch, cx);
                    match batch.pop() {
                        Some(packet) => packet,
                        None if more => return Next::Wait,
                        None => return Next::End,
                    }
                }
            };
            match self.window.place(packet.timestamp()) {
                WindowPosition::Before => {
                    cx.core.pool.recycle(packet);
                    continue;
                }
                WindowPosition::Behind => {
                    // Whoever hears of the end may put it off.
                    self.held = Some(packet);
                    self.reach_window_end(cx);
                    return Next::Wait;
                }
                WindowPosition::Within => {}
            }
            if self.sampling < ALWAYS
                && cx.random(0, u64::from(ALWAYS) - 1) >= u64::from(self.sampling)
            {
                cx.core.pool.recycle(packet);
                continue;
            }
            if let Some(due) = self.due(&packet, cx.now())
                && cx.now() < due
            {
                cx.wake_at(due);
                self.held = Some(packet);
                return Next::Wait;
            }
            if let Some(length) = self.force_length {
                force_length(&mut packet, length, self.link_type);
            }
            return Next::Packet(packet);
        }
        Next::Passed
    }

    /// When a packet is to be sent, with TIMING.
    fn due(&mut self, packet: &Packet, now: u64) -> Option<u64> {
        let timing = self.timing.as_mut()?;
        let (first, sent) = *timing.start.get_or_insert((packet.timestamp(), now));
        let since = u128::from(packet.timestamp().saturating_sub(first));
        let wait = since * 100 / u128::from(timing.acceleration);
        Some(sent.saturating_add(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    fn reach_window_end(&mut self, cx: &mut Context<'_>) {
        match &self.end_call {
            Some(call) => call.write_later(cx),
            None => {
                self.active = false;
                if self.stop {
                    cx.stop();
                }
            }
        }
    }

    fn reach_end(&mut self, cx: &mut Context<'_>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        match &self.end_call {
            Some(call) => call.write_later(cx),
            None if self.stop => cx.stop(),
            None => {}
        }
    }

    /// Sends a packet on; one that must be IP and is not goes to output 1.
    fn emit(&mut self, mut packet: Packet, cx: &mut Context<'_>) -> Option<Packet> {
        if self.force_ip && !mark_ip(&mut packet, self.link_type) {
            cx.reject(1, packet, NOT_IP);
            return None;
        }
        self.count += 1;
        self.bytes += packet.len() as u64;
        Some(packet)
    }
}

/// Cuts or fills up a frame; 0 gives it the length that it had on the wire. An IPv4 packet in it
/// gets its new length.
fn force_length(packet: &mut Packet, length: u32, link_type: u32) {
    let original = packet.len() as u32 + packet.annotations().u32(EXTRA_LENGTH);
    let header = if is_raw(link_type) { 0 } else { 14 };
    // Lengths are those of Ethernet frames, which bare IP packets were part of.
    let wanted = if length == 0 { original } else { length - (14 - header) };
    let wanted = wanted.min(0xffff) as usize;
    packet.truncate(wanted);
    packet.put(wanted - packet.len());
    let extra = original.saturating_sub(wanted as u32);
    packet.annotations_mut().set_u32(EXTRA_LENGTH, extra);
    let is_ip = is_raw(link_type)
        || Ethernet::new(packet.data()).is_some_and(|frame| frame.ether_type() == IPV4);
    let Some(bytes) = packet.data_mut().get_mut(header as usize..) else { return };
    if let Some(mut ip) = Ipv4::new(bytes).filter(|ip| is_ip && ip.version() == 4) {
        let total = ip.bytes().len() as u16;
        ip.set_checksum(checksum::update_u16(ip.checksum(), ip.total_len(), total));
        ip.set_total_len(total);
    }
}

impl Element for FromDump {
    fn starts_over(&self) -> bool {
        true
    }

    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        while self.active {
            match self.next(cx) {
                Next::Packet(packet) => {
                    let passed = self.emit(packet, cx);
                    if passed.is_some() {
                        return passed;
                    }
                }
                Next::Passed => {}
                Next::Wait => return None,
                Next::End => {
                    self.reach_end(cx);
                    return None;
                }
            }
        }
        None
    }

    fn model(&self) -> Model {
        Model::opaque("makes packets")
    }

    fn makes_bare_packets(&self) -> bool {
        true
    }

    fn receives_frames(&self) -> bool {
        !self.force_ip
    }

    fn handler_calls(&self) -> HandlerCalls {
        match self.stop {
            true => HandlerCalls::Of(Vec::new()),
            false => HandlerCall::all(&self.end_call),
        }
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        if let Some(call) = &self.end_call {
            call.check(cx)?;
        }
        let request = DeviceRequest::CaptureIn { path: self.path.clone() };
        let mut device = cx.open(&request, self.span)?;
        self.link_type = device.link_type();
        self.link.0.set(Some(self.link_type));
        if self.force_ip && !holds_ip(self.link_type) {
            let link = link_type::name(self.link_type);
            let message = format!("IP packets in frames of type {link} cannot be found");
            cx.report(Diagnostic::error("device", message).label(self.span, ""));
            return Err(Failed);
        }
        self.force_ip |= is_raw(self.link_type);
        if self.start_position > 0
            && let Err(why) = device.seek(self.start_position)
        {
            cx.report(Diagnostic::error("device", why).label(self.span, ""));
            return Err(Failed);
        }
        self.device = Some(device);
        Ok(())
    }

    fn stops_driver(&self) -> bool {
        self.end_call.as_ref().map_or(self.stop, HandlerCall::stops_driver)
    }

    fn has_task(&self) -> bool {
        !self.pulled
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.active {
            return Work::Idle;
        }
        let mut batch = cx.core.batch();
        let (mut worked, mut ended) = (false, false);
        if self.is_plain() {
            ended = !self.receive(self.burst, &mut batch, cx);
        } else {
            while batch.len() < self.burst && self.active {
                match self.next(cx) {
                    Next::Packet(packet) => batch.push(packet),
                    Next::Passed => {
                        worked = true;
                        break;
                    }
                    Next::Wait => break,
                    Next::End => {
                        ended = true;
                        break;
                    }
                }
            }
        }
        worked |= !batch.is_empty();
        if self.force_ip {
            for packet in batch.drain() {
                if let Some(packet) = self.emit(packet, cx) {
                    cx.emit(0, packet);
                }
            }
        } else {
            self.count += batch.len() as u64;
            self.bytes += batch.bytes();
            cx.emit_all(0, &mut batch);
        }
        cx.core.recycle_batch(batch);
        if ended {
            self.reach_end(cx);
            return Work::Ended;
        }
        if worked { Work::Done } else { Work::Idle }
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(Traffic { source: true, packets: self.count, bytes: self.bytes })
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::write("reset_counts"),
                Handler::both("active"),
                Handler::read("sampling_prob"),
                Handler::read("encap"),
                Handler::read("filename"),
                Handler::read("filesize"),
                Handler::both("filepos"),
                Handler::read("packet_filepos"),
                Handler::write("extend_interval"),
                Handler::write("reset_timing"),
                Handler::write("stop"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        let unknown = || "-".to_string();
        let device = self.device.as_ref();
        Ok(match handler {
            "active" => self.active.to_string(),
            "sampling_prob" => crate::rate::show_real(f64::from(self.sampling) / f64::from(ALWAYS)),
            "encap" => link_type::name(self.link_type),
            "filename" => self.path.clone(),
            "filesize" => device.and_then(|d| d.length()).map_or_else(unknown, |n| n.to_string()),
            "filepos" => device.and_then(|d| d.position()).map_or_else(unknown, |n| n.to_string()),
            "packet_filepos" => self.packet_position.to_string(),
            _ => self.count.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "reset_counts" => (self.count, self.bytes) = (0, 0),
            "active" => self.active = parse_value(value)?,
            "filepos" => {
                let device = self.device.as_mut().ok_or("the file is not open")?;
                device.seek(parse_value(value)?)?;
                (self.exhausted, self.ended) = (false, false);
                self.held.take().into_iter().for_each(|p| cx.core.pool.recycle(p));
            }
            "extend_interval" => {
                let Nanoseconds(more) = parse_value(value)?;
                let end = match (self.window.last, self.window.passed.take()) {
                    (Some(Limit::At(at)), _) | (None, Some(at)) => {
                        Limit::At(at.saturating_add(more))
                    }
                    (Some(Limit::AfterFirst(after)), _) => {
                        Limit::AfterFirst(after.saturating_add(more))
                    }
                    (Some(Limit::Interval(after)), _) => {
                        Limit::Interval(after.saturating_add(more))
                    }
                    (None, None) => return Ok(()),
                };
                self.window.last = Some(end);
                self.active = true;
            }
            "reset_timing" => {
                if let Some(timing) = &mut self.timing {
                    timing.start = None;
                }
            }
            _ => {
                self.active = false;
                cx.stop();
            }
        }
        Ok(())
    }
}
