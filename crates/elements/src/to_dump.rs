//! ToDump.

use click::config::Argument;
use ir::{Model, Span};
use net::Batch;

use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::{Device, DeviceRequest};
use crate::element::{Element, Handler, HandlerContext, Work};

element! {
    /// ToDump(FILENAME [, KEYWORDS SNAPLEN, ENCAP, NANO]) -- writes packets to a capture file
    ///
    /// Writes packets to a pcap file, compressed with gzip if the name ends in .gz. With an
    /// output, packets go on there.
    ///
    /// = KEYWORDS
    ///
    /// SNAPLEN (number, default 2000): bytes kept of each packet; 0 keeps all.
    /// ENCAP (ETHER, IP or a number, default ETHER): the file's link type.
    /// NANO (bool, default false): whether timestamps have nanoseconds.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// reset_counts (write): starts the count again from zero.
    ///
    /// = SEE ALSO
    ///
    /// FromDump, ToDevice
    ToDump {
        ports: "1/0-1", processing: "a/a",
        samples: []
    }
}

/// See [`ToDump::CLASS`].
pub(crate) struct ToDump {
    request: DeviceRequest,
    span: Span,
    pulls: bool,
    passes: bool,
    device: Option<Box<dyn Device>>,
    count: u64,
}

impl ToDump {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (span, passes) = (cx.span(), cx.outputs() > 0);
        let pulls = cx.pulls() && !passes;
        let mut arguments = cx.arguments(&["FILENAME", "SNAPLEN", "ENCAP", "NANO"]);
        let path: Option<Argument> =
            arguments.keyword_argument("FILENAME").or_else(|| arguments.next_raw());
        let span = path.as_ref().map_or(span, |p| p.span);
        let path = match &path {
            Some(path) => arguments.parse::<String>("FILENAME", path).unwrap_or_default(),
            None => arguments.required("FILENAME"),
        };
        let snap_length = arguments.keyword("SNAPLEN").unwrap_or(2000u32);
        let link_type = match arguments.keyword_argument("ENCAP") {
            None => 1,
            Some(encap) => match encap.text.to_ascii_uppercase().as_str() {
                "ETHER" => 1,
                "IP" => 101,
                "PPP" => 9,
                "802_11" => 105,
                "SLL" => 113,
                _ => arguments.parse::<u32>("ENCAP", &encap).unwrap_or(1),
            },
        };
        let nanoseconds = arguments.keyword("NANO").unwrap_or(false);
        arguments.finish()?;
        let request = DeviceRequest::CaptureOut { path, snap_length, link_type, nanoseconds };
        Ok(Self { request, span, pulls, passes, device: None, count: 0 })
    }

    fn write_out(&mut self, batch: &mut Batch, cx: &mut Context<'_>) {
        self.count += batch.len() as u64;
        if let Some(device) = self.device.as_mut()
            && let Err(why) = device.send(batch, &mut cx.core.pool)
        {
            self.device = None;
            cx.error(&why);
        }
        for packet in batch.drain() {
            cx.core.pool.recycle(packet);
        }
    }
}

impl Element for ToDump {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if self.passes {
            let mut copies = cx.core.batch();
            copies.extend(batch.iter().map(|p| cx.core.pool.copy(p)));
            self.write_out(&mut copies, cx);
            cx.core.recycle_batch(copies);
        } else {
            self.write_out(batch, cx);
        }
    }

    fn model(&self) -> Model {
        Model::opaque("writes a file")
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
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
        self.write_out(&mut batch, cx);
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

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("count"), Handler::write("reset_counts")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.count.to_string())
    }

    fn write(&mut self, _: &str, _: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.count = 0;
        Ok(())
    }
}
