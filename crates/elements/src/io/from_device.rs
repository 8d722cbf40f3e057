//! FromDevice and ToDevice: the interfaces of a chain.

use std::cell::Cell;
use std::rc::Rc;

use click::config::Argument;
use ir::{Diagnostic, Model, Reason, Span};
use net::{Batch, Packet, PacketType};

use crate::argument::parse_value;
use crate::configure::{Arguments, Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::{Device, DeviceRequest, Event, OwnedPorts, Received, Wake};
use crate::element::{Element, Handler, HandlerContext, Traffic, Work};
use crate::element_state::ElementState;
use crate::io::from_dump::LinkType;
use crate::io::link_type::{self, holds_ip, is_raw, mark_ip, mark_starts};
use crate::io::process;
use crate::token_bucket::TokenBucket;

element! {
    /// FromDevice(DEVNAME [, KEYWORDS]) -- receives frames from an interface
    ///
    /// Pushes out the frames that the interface DEVNAME receives. What DEVNAME is bound to, the
    /// command line says: an interface of the host, a capture file or a traffic generator; `p.eth0` and `p.eth1`
    /// are the interfaces of a Process `p`. Frames
    /// are marked as broadcast or multicast by their destination; one without a timestamp gets
    /// the present time. Frames that an interface lost are counted as dropped here, by reason.
    /// A frame that comes to several workers, a neighbour's answer, is counted by one of them.
    ///
    /// = KEYWORDS
    ///
    /// BURST (number): how many frames are taken at a time, at most. The default is 32 for a
    /// file; from an interface as many are taken as are there, up to 256.
    /// FORCE_IP (bool, default false): whether only IP packets go to output 0, their header
    /// marked; others go to output 1, or are dropped if that is not connected.
    /// TIMESTAMP (bool, default true): whether frames are stamped with the present time if they
    /// have no stamp.
    /// ACTIVE (bool, default true): whether it receives.
    /// PROMISC, SNAPLEN, SNIFFER, METHOD, CAPTURE, BPF_FILTER, PROTOCOL, OUTBOUND, HEADROOM,
    /// ENCAP: accepted, and mean nothing for what interfaces are bound to.
    ///
    /// = HANDLERS
    ///
    /// count (read): frames so far.
    /// reset_counts (write): starts counting again.
    /// active (read, write): whether it receives.
    /// encap (read): the link type.
    ///
    /// = SEE ALSO
    ///
    /// ToDevice, FromDump, Process
    FromDevice {
        category: Io, ports: "0/1-2", processing: "a/h",
        boundary: Ingress,
        samples: []
    }
}

/// See [`FromDevice::CLASS`].
pub(crate) struct FromDevice {
    name: String,
    span: Span,
    /// As configured, else what the device wants.
    burst: Option<usize>,
    force_ip: bool,
    timestamp: bool,
    active: bool,
    device: Option<Box<dyn Device>>,
    /// Shared with elements that write what this one reads.
    link: Rc<LinkType>,
    link_type: u32,
    /// Lets frames through at the rate that the device wants to be asked for them.
    pace: Option<TokenBucket>,
    count: u64,
    bytes: u64,
}

/// The most frames at a time.
const MAX_BURST: usize = 4096;

/// Not an IP packet, where FORCE_IP asks for one.
const NOT_IP: Reason = Reason("not-ip");
/// The device did not take the packet.
const NOT_SENT: Reason = Reason("not-sent");

/// The name of an interface and its place.
fn interface(receives: bool, arguments: &mut Arguments<'_, '_>) -> (String, Span) {
    let name: Option<Argument> =
        arguments.keyword_argument("DEVNAME").or_else(|| arguments.next_plain());
    let span = arguments.cx().span();
    match name {
        Some(name) => {
            let device: String = arguments.parse("DEVNAME", &name).unwrap_or_default();
            let of_process = process::device(&name, &device, receives, arguments);
            (of_process.unwrap_or(device), name.span)
        }
        None => (arguments.required("DEVNAME"), span),
    }
}

/// Counts or passes on what a device has to tell; packets and bytes that were lost in sending.
fn tell(event: Event, cx: &mut Context<'_>) -> (u64, u64) {
    match event {
        Event::Lost { reason, packets, bytes, sending } => {
            cx.tally.drop_all(reason, packets, bytes);
            if sending { (packets, bytes) } else { (0, 0) }
        }
        Event::Heard { .. } => (0, 0),
        Event::Notice(text) => {
            cx.message(&text);
            (0, 0)
        }
    }
}

impl FromDevice {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        const IGNORED: [&str; 10] = [
            "PROMISC",
            "SNAPLEN",
            "SNIFFER",
            "METHOD",
            "CAPTURE",
            "BPF_FILTER",
            "PROTOCOL",
            "OUTBOUND",
            "HEADROOM",
            "ENCAP",
        ];
        let mut arguments = cx.arguments(&[
            "DEVNAME",
            "BURST",
            "FORCE_IP",
            "TIMESTAMP",
            "ACTIVE",
            "PROMISC",
            "SNAPLEN",
            "SNIFFER",
            "METHOD",
            "CAPTURE",
            "BPF_FILTER",
            "PROTOCOL",
            "OUTBOUND",
            "HEADROOM",
            "ENCAP",
        ]);
        let (name, span) = interface(true, &mut arguments);
        let burst: Option<usize> = arguments.keyword("BURST");
        let force_ip = arguments.keyword("FORCE_IP").unwrap_or(false);
        let timestamp = arguments.keyword("TIMESTAMP").unwrap_or(true);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        for ignored in IGNORED {
            arguments.keyword_argument(ignored);
        }
        // PROMISC and SNAPLEN can stand without keyword.
        for _ in 0..2 {
            arguments.next_plain();
        }
        arguments.finish()?;
        let link = Rc::new(LinkType(Cell::new(None)));
        cx.share(Rc::clone(&link));
        Ok(Self {
            name,
            span,
            burst: burst.map(|burst| burst.clamp(1, MAX_BURST)),
            force_ip,
            timestamp,
            active,
            device: None,
            link,
            link_type: 1,
            pace: None,
            count: 0,
            bytes: 0,
        })
    }

    /// Does what a driver does for each frame. Their bytes.
    fn mark(&self, batch: &mut Batch, now: u64) -> u64 {
        let Self { link_type, timestamp, .. } = *self;
        let mut bytes = 0;
        mark_starts(batch, link_type);
        for packet in batch.iter_mut() {
            bytes += packet.len() as u64;
            if timestamp && packet.timestamp() == 0 {
                packet.set_timestamp(now);
            }
            if link_type == 1 && packet.data().first().is_some_and(|b| b & 1 == 1) {
                let all = packet.data().starts_with(&[0xff; 6]);
                let to = if all { PacketType::Broadcast } else { PacketType::Multicast };
                packet.set_packet_type(to);
            }
        }
        bytes
    }
}

impl Element for FromDevice {
    fn model(&self) -> Model {
        Model::opaque("makes packets")
    }

    fn makes_bare_packets(&self) -> bool {
        true
    }

    fn receives_frames(&self) -> bool {
        !self.force_ip
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let request = DeviceRequest::Interface { name: self.name.clone(), receive: true };
        let device = cx.open(&request, self.span)?;
        self.link_type = device.link_type();
        self.link.0.set(Some(self.link_type));
        if self.force_ip && !holds_ip(self.link_type) {
            let link = link_type::name(self.link_type);
            let message = format!("IP packets in frames of type {link} cannot be found");
            cx.report(Diagnostic::error("device", message).label(self.span, ""));
            return Err(Failed);
        }
        self.force_ip |= is_raw(self.link_type);
        let burst = *self
            .burst
            .get_or_insert(device.burst().unwrap_or(Batch::DEFAULT_BURST).min(MAX_BURST));
        self.pace = device.rate().map(|rate| TokenBucket::new(rate, burst as u64));
        self.device = Some(device);
        Ok(())
    }

    fn has_task(&self) -> bool {
        true
    }

    fn wait_on(&self) -> Option<Wake> {
        self.device.as_ref().filter(|_| self.active)?.wait_on()
    }

    fn steer(&mut self, owned: &[OwnedPorts]) -> Result<(), String> {
        self.device.as_mut().map_or(Ok(()), |device| device.steer(owned))
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        if let Some(pace) = &mut self.pace {
            pace.start(cx.now());
        }
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.active {
            return Work::Idle;
        }
        let Some(device) = self.device.as_mut() else { return Work::Ended };
        let now = cx.now();
        let mut burst = self.burst.unwrap_or(Batch::DEFAULT_BURST);
        if let Some(pace) = &mut self.pace {
            pace.fill(now);
            burst = burst.min(pace.available() as usize);
            if burst == 0 {
                cx.wake_at(pace.time_of(1));
                return Work::Idle;
            }
        }
        let mut batch = cx.core.batch();
        let received = device.receive(burst, &mut batch, &mut cx.core.pool);
        let mut heard = (0, 0);
        while let Some(event) = device.next_event() {
            if let Event::Heard { packets, bytes } = event {
                heard = (packets, bytes);
            }
            tell(event, cx);
        }
        if let Some(pace) = &mut self.pace {
            pace.take(batch.len() as u64);
        }
        let worked = !batch.is_empty();
        let bytes = self.mark(&mut batch, now);
        self.count = (self.count + batch.len() as u64).saturating_sub(heard.0);
        self.bytes = (self.bytes + bytes).saturating_sub(heard.1);
        if self.force_ip {
            for mut packet in batch.drain() {
                match mark_ip(&mut packet, self.link_type) {
                    true => cx.emit(0, packet),
                    false => cx.reject(1, packet, NOT_IP),
                }
            }
        } else {
            cx.emit_all(0, &mut batch);
        }
        cx.core.recycle_batch(batch);
        match received {
            Ok(Received::HandedOn) => return Work::Done,
            Ok(Received::More) if worked => return Work::Done,
            Ok(Received::More) => return Work::Idle,
            Ok(Received::End) => {}
            Err(why) => cx.error(&why),
        }
        self.device = None;
        Work::Ended
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(device) = self.device.as_mut() {
            if let Err(why) = device.flush() {
                cx.error(&why);
            }
            while let Some(event) = device.next_event() {
                tell(event, cx);
            }
        }
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_all() {
            to.numbers = vec![self.count, self.bytes];
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        [self.count, self.bytes] = from.counts().unwrap_or([self.count, self.bytes]);
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(Traffic { source: true, packets: self.count, bytes: self.bytes })
    }

    fn credit_traffic(&mut self, packets: u64, bytes: u64) {
        self.count = self.count.wrapping_add(packets);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::write("reset_counts"),
                Handler::both("active"),
                Handler::read("encap"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "active" => self.active.to_string(),
            "encap" => link_type::name(self.link_type),
            _ => self.count.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "active" => self.active = parse_value(value)?,
            _ => (self.count, self.bytes) = (0, 0),
        }
        Ok(())
    }
}

element! {
    /// ToDevice(DEVNAME [, KEYWORDS BURST]) -- sends frames on an interface
    ///
    /// Sends packets on the interface DEVNAME. What DEVNAME is bound to, the command line says: an
    /// interface of the host or a capture file; `p.eth0` and `p.eth1` are the interfaces of a Process `p`. Packets that were
    /// sent go to output 0, and those that could not be to output 1, where these are connected.
    ///
    /// = KEYWORDS
    ///
    /// BURST (number, default 32): how many packets are pulled at a time.
    /// METHOD, DEBUG, NO_PAD, QUEUE, IQUEUE, BLOCKING: accepted, and mean nothing for what
    /// interfaces are bound to.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets sent so far.
    /// drops (read): packets that could not be sent.
    /// reset_counts (write): starts counting again.
    ///
    /// = SEE ALSO
    ///
    /// FromDevice, ToDump, Process
    ToDevice {
        category: Io, ports: "1/0-2", processing: "a/h",
        boundary: Egress,
        samples: []
    }
}

/// See [`ToDevice::CLASS`].
pub(crate) struct ToDevice {
    name: String,
    span: Span,
    burst: usize,
    pulls: bool,
    passes: bool,
    device: Option<Box<dyn Device>>,
    /// Packets that were pulled and could not be sent yet.
    held: Batch,
    count: u64,
    bytes: u64,
    drops: u64,
}

impl ToDevice {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (pulls, passes) = (cx.pulls(), cx.outputs() > 0);
        const IGNORED: [&str; 6] = ["METHOD", "DEBUG", "NO_PAD", "QUEUE", "IQUEUE", "BLOCKING"];
        let mut arguments = cx.arguments(&[
            "DEVNAME", "BURST", "METHOD", "DEBUG", "NO_PAD", "QUEUE", "IQUEUE", "BLOCKING",
        ]);
        let (name, span) = interface(false, &mut arguments);
        let burst: usize = arguments.keyword("BURST").unwrap_or(Batch::DEFAULT_BURST);
        for ignored in IGNORED {
            arguments.keyword_argument(ignored);
        }
        arguments.finish()?;
        let burst = burst.clamp(1, MAX_BURST);
        Ok(Self {
            name,
            span,
            burst,
            pulls,
            passes,
            device: None,
            held: Batch::default(),
            count: 0,
            bytes: 0,
            drops: 0,
        })
    }

    /// Sends a batch and empties it. Packets for which there is no room now are kept for the next
    /// time if they were pulled, and given up if they were pushed.
    fn send(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        if batch.is_empty() {
            return;
        }
        let (packets, mut bytes) = (batch.len() as u64, 0);
        for packet in batch.iter_mut() {
            bytes += packet.len() as u64;
            if packet.timestamp() == 0 {
                packet.set_timestamp(cx.core.now);
            }
        }
        let mut left = cx.core.batch();
        let pool = &mut cx.core.pool;
        let result = match self.device.as_mut() {
            None => None,
            Some(device) if self.passes => {
                let taken = device.send_copies(batch, pool);
                Some(taken.map(|taken| batch.split_to(taken, &mut left)))
            }
            Some(device) => Some(device.send(batch, pool).map(|()| left.append(batch))),
        };
        let mut lost = (0, 0);
        while let Some(event) = self.device.as_mut().and_then(|device| device.next_event()) {
            let (packets, bytes) = tell(event, cx);
            lost = (lost.0 + packets, lost.1 + bytes);
        }
        if let Some(Ok(())) = result {
            let unsent = left.len() as u64 + lost.0;
            // What is lost now may have been counted before.
            self.count = (self.count + packets).saturating_sub(unsent);
            self.bytes = (self.bytes + bytes).saturating_sub(left.bytes() + lost.1);
            self.drops += lost.0;
            cx.emit_all(0, batch);
            if self.pulls {
                self.held.append(&mut left);
            }
        } else {
            self.drops += packets;
            if let Some(Err(why)) = result {
                self.device = None;
                cx.error(&why);
            }
            batch.drain().for_each(|packet| cx.reject(1, packet, NOT_SENT));
        }
        self.drops += left.len() as u64;
        left.drain().for_each(|packet| cx.reject(1, packet, NOT_SENT));
        cx.core.recycle_batch(left);
    }
}

impl Element for ToDevice {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.send(batch, cx);
    }

    fn model(&self) -> Model {
        Model::opaque("sends packets")
    }

    fn sees_frames_only(&self) -> bool {
        true
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let request = DeviceRequest::Interface { name: self.name.clone(), receive: false };
        self.device = Some(cx.open(&request, self.span)?);
        Ok(())
    }

    fn has_task(&self) -> bool {
        self.pulls
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        let mut batch = cx.core.batch();
        batch.append(&mut self.held);
        while batch.len() < self.burst
            && let Some(packet) = cx.pull(0)
        {
            batch.push(packet);
        }
        let work = if batch.is_empty() { Work::Idle } else { Work::Done };
        self.send(&mut batch, cx);
        cx.core.recycle_batch(batch);
        work
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        let mut held = std::mem::take(&mut self.held);
        self.drops += held.len() as u64;
        held.drain().for_each(|packet| cx.reject(1, packet, NOT_SENT));
        if let Some(mut device) = self.device.take()
            && let Err(why) = device.flush()
        {
            cx.error(&why);
        }
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.held.iter().for_each(show);
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        if to.is_all() {
            to.numbers = vec![self.count, self.bytes, self.drops];
            to.packets.extend(self.held.drain());
        }
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        if let Some(counts) = from.counts() {
            [self.count, self.bytes, self.drops] = counts;
        }
        self.held.extend(from.packets.drain(..));
    }

    /// Sends what was left to pull of the element that this one replaces.
    fn wake(&mut self, cx: &mut Context<'_>) {
        if !self.pulls {
            let mut held = std::mem::take(&mut self.held);
            self.send(&mut held, cx);
        }
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(Traffic { source: false, packets: self.count, bytes: self.bytes })
    }

    fn credit_traffic(&mut self, packets: u64, bytes: u64) {
        self.count = self.count.wrapping_add(packets);
        self.bytes = self.bytes.wrapping_add(bytes);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("count"), Handler::count("drops"), Handler::write("reset_counts")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "drops" => self.drops.to_string(),
            _ => self.count.to_string(),
        })
    }

    fn write(&mut self, _: &str, _: &str, _: &mut Context<'_>) -> Result<(), String> {
        (self.count, self.bytes, self.drops) = (0, 0, 0);
        Ok(())
    }
}
