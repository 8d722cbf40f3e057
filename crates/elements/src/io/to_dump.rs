//! ToDump.

use std::rc::Rc;

use click::config::Argument;
use ir::{Diagnostic, Model, Span};
use net::annotation::EXTRA_LENGTH;
use net::{Batch, Packet};

use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::{Device, DeviceRequest};
use crate::element::{Element, Handler, HandlerContext, Traffic, Work};
use crate::io::from_dump::LinkType;
use crate::io::link_type;

element! {
    /// ToDump(FILENAME [, SNAPLEN, ENCAP, KEYWORDS]) -- writes packets to a capture file
    ///
    /// Writes packets to a pcap file, compressed with gzip if the name ends in .gz. FILENAME - is
    /// the standard output. With an output, packets go on there. A packet without a timestamp is
    /// written with the present time.
    ///
    /// = KEYWORDS
    ///
    /// SNAPLEN (number, default 2000): bytes kept of each packet; 0 keeps all.
    /// ENCAP (ETHER, IP, PPP, 802_11, SLL, NULL or a number, default ETHER): the file's link type.
    /// USE_ENCAP_FROM (ELEMENT ...): the link type of what these elements read.
    /// EXTRA_LENGTH (bool, default true): whether the extra length annotation counts to the
    /// length that the packet had on the wire.
    /// NANO (bool, default false): whether timestamps have nanoseconds.
    /// UNBUFFERED (bool, default false): whether each burst is written out at once.
    /// PER_NODE is accepted and means nothing.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// reset_counts (write): starts the count again from zero.
    /// filename (read): the file's name.
    ///
    /// = SEE ALSO
    ///
    /// FromDump, ToDevice
    ToDump {
        category: Io, ports: "1/0-1", processing: "a/a",
        phase: Late,
        boundary: Egress,
        samples: []
    }
}

/// See [`ToDump::CLASS`].
pub(crate) struct ToDump {
    request: DeviceRequest,
    path: String,
    span: Span,
    /// Elements whose link type is taken over.
    like: Vec<Argument>,
    extra_length: bool,
    pulls: bool,
    passes: bool,
    device: Option<Box<dyn Device>>,
    count: u64,
    bytes: u64,
}

impl ToDump {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (span, passes) = (cx.span(), cx.outputs() > 0);
        let pulls = cx.pulls() && !passes;
        let mut arguments = cx.arguments(&[
            "FILENAME",
            "SNAPLEN",
            "ENCAP",
            "USE_ENCAP_FROM",
            "EXTRA_LENGTH",
            "UNBUFFERED",
            "NANO",
            "PER_NODE",
        ]);
        let path: Option<Argument> =
            arguments.keyword_argument("FILENAME").or_else(|| arguments.next_plain());
        let span = path.as_ref().map_or(span, |p| p.span);
        let path = match &path {
            Some(path) => arguments.parse::<String>("FILENAME", path).unwrap_or_default(),
            None => arguments.required("FILENAME"),
        };
        let snap_length = arguments.optional("SNAPLEN").unwrap_or(2000u32);
        let encap = arguments.keyword_argument("ENCAP").or_else(|| arguments.next_plain());
        let link_type = match &encap {
            None => 1,
            Some(encap) => link_type::parse(&encap.text).unwrap_or_else(|| {
                arguments.error(encap, format!("'{}' is not a link type", encap.text));
                1
            }),
        };
        let like = arguments.keyword_argument("USE_ENCAP_FROM");
        if let (Some(like), Some(_)) = (&like, &encap) {
            arguments.error(like, "ENCAP and USE_ENCAP_FROM exclude each other");
        }
        let extra_length = arguments.keyword("EXTRA_LENGTH").unwrap_or(true);
        let unbuffered = arguments.keyword("UNBUFFERED").unwrap_or(false);
        let nanoseconds = arguments.keyword("NANO").unwrap_or(false);
        let _: Option<bool> = arguments.keyword("PER_NODE");
        arguments.finish()?;
        let like = like.map_or(Vec::new(), |like| like.words().collect());
        Ok(Self {
            request: DeviceRequest::CaptureOut {
                path: path.clone(),
                snap_length,
                link_type,
                nanoseconds,
                unbuffered,
            },
            path,
            span,
            like,
            extra_length,
            pulls,
            passes,
            device: None,
            count: 0,
            bytes: 0,
        })
    }

    /// Takes over the link type of other elements, on which they must agree.
    fn resolve_link_type(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let mut agreed: Option<u32> = None;
        for element in &self.like {
            let name = &element.text;
            let link: Option<Option<Rc<LinkType>>> = cx.resolve(name).map(|full| cx.shared(&full));
            let message = match (link.map(|l| l.and_then(|l| l.0.get())), agreed) {
                (None, _) => format!("no element named '{name}'"),
                (Some(None), _) => format!("'{name}' reads no frames of a known type"),
                (Some(Some(link)), Some(other)) if link != other => {
                    let (link, other) = (link_type::name(link), link_type::name(other));
                    format!("'{name}' reads {link} but one before it reads {other}")
                }
                (Some(link), _) => {
                    agreed = link;
                    continue;
                }
            };
            cx.report(Diagnostic::error("bad-argument", message).label(element.span, ""));
            return Err(Failed);
        }
        if let (Some(agreed), DeviceRequest::CaptureOut { link_type, .. }) =
            (agreed, &mut self.request)
        {
            *link_type = agreed;
        }
        Ok(())
    }

    /// Whether a packet is written as it is.
    fn is_plain(&self, packet: &Packet) -> bool {
        packet.timestamp() != 0
            && (self.extra_length || packet.annotations().u32(EXTRA_LENGTH) == 0)
    }

    /// Completes what is written of packets, and counts them.
    fn prepare(&mut self, batch: &mut Batch, now: u64) {
        self.count += batch.len() as u64;
        let mut bytes = 0;
        for packet in batch.iter_mut() {
            bytes += packet.len() as u64;
            if packet.timestamp() == 0 {
                packet.set_timestamp(now);
            }
            if !self.extra_length {
                packet.annotations_mut().set_u32(EXTRA_LENGTH, 0);
            }
        }
        self.bytes += bytes;
    }

    /// Writes packets and recycles them.
    fn consume(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        self.prepare(batch, cx.now());
        let Some(device) = self.device.as_mut() else {
            batch.drain().for_each(|packet| cx.core.pool.recycle(packet));
            return;
        };
        let result = device.send(batch, &mut cx.core.pool);
        self.settle(result, cx);
    }

    /// Writes packets, which stay as they are.
    fn copy(&mut self, batch: &Batch, cx: &mut Context<'_>) {
        if batch.iter().all(|packet| self.is_plain(packet)) {
            self.count += batch.len() as u64;
            self.bytes += batch.bytes();
            if let Some(device) = self.device.as_mut() {
                let result = device.send_copies(batch, &mut cx.core.pool).map(|_| ());
                self.settle(result, cx);
            }
        } else {
            let mut copies = cx.core.batch();
            copies.extend(batch.iter().map(|p| cx.core.pool.copy(p)));
            self.consume(&mut copies, cx);
            cx.core.recycle_batch(copies);
        }
    }

    fn settle(&mut self, result: Result<(), String>, cx: &mut Context<'_>) {
        if let Err(why) = result {
            self.device = None;
            cx.error(&why);
        }
    }
}

impl Element for ToDump {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if self.passes {
            self.copy(batch, cx);
        } else {
            self.consume(batch, cx);
        }
    }

    fn model(&self) -> Model {
        Model::opaque("writes a file")
    }

    fn sees_frames_only(&self) -> bool {
        true
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.resolve_link_type(cx)?;
        self.device = Some(cx.open(&self.request, self.span)?);
        Ok(())
    }

    fn has_task(&self) -> bool {
        self.pulls
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        let mut batch = cx.core.batch();
        while batch.len() < Batch::DEFAULT_BURST
            && let Some(packet) = cx.pull(0)
        {
            batch.push(packet);
        }
        let work = if batch.is_empty() { Work::Idle } else { Work::Done };
        self.consume(&mut batch, cx);
        cx.core.recycle_batch(batch);
        work
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(mut device) = self.device.take()
            && let Err(why) = device.flush()
        {
            cx.error(&why);
        }
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(Traffic { source: false, packets: self.count, bytes: self.bytes })
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("count"), Handler::write("reset_counts"), Handler::read("filename")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "filename" => self.path.clone(),
            _ => self.count.to_string(),
        })
    }

    fn write(&mut self, _: &str, _: &str, _: &mut Context<'_>) -> Result<(), String> {
        (self.count, self.bytes) = (0, 0);
        Ok(())
    }
}
