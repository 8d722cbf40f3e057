//! FromDump.

use click::config::Argument;
use ir::{Model, Span};
use net::{Batch, Header};

use crate::argument::parse_value;
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::{Device, DeviceRequest, Received};
use crate::element::{Element, Handler, HandlerContext, Work};

element! {
    /// FromDump(FILENAME [, KEYWORDS STOP, BURST, ACTIVE]) -- reads packets from a capture file
    ///
    /// Reads the packets of a pcap or pcapng file, plain or compressed with gzip, and pushes
    /// them out with their timestamps.
    ///
    /// = KEYWORDS
    ///
    /// STOP (bool, default false): whether the driver is told to stop at the end of the file.
    /// BURST (number, default 32): how many packets are read at a time.
    /// ACTIVE (bool, default true): whether it reads from the start.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// active (read, write): whether it reads.
    ///
    /// = SEE ALSO
    ///
    /// ToDump, FromDevice
    FromDump {
        ports: "0/1", processing: "a/h",
        samples: []
    }
}

/// See [`FromDump::CLASS`].
pub(crate) struct FromDump {
    path: String,
    span: Span,
    stop: bool,
    active: bool,
    burst: usize,
    device: Option<Box<dyn Device>>,
    count: u64,
}

impl FromDump {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let span = cx.span();
        let mut arguments = cx.arguments(&["FILENAME", "STOP", "BURST", "ACTIVE"]);
        let path: Option<Argument> =
            arguments.keyword_argument("FILENAME").or_else(|| arguments.next_raw());
        let span = path.as_ref().map_or(span, |p| p.span);
        let path = match &path {
            Some(path) => arguments.parse::<String>("FILENAME", path).unwrap_or_default(),
            None => arguments.required("FILENAME"),
        };
        let stop = arguments.keyword("STOP").unwrap_or(false);
        let burst = arguments.keyword("BURST").unwrap_or(Batch::DEFAULT_BURST);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        arguments.finish()?;
        Ok(Self { path, span, stop, active, burst: burst.max(1), device: None, count: 0 })
    }
}

impl Element for FromDump {
    fn push(&mut self, _port: usize, _batch: &mut Batch, _cx: &mut Context<'_>) {}

    fn model(&self) -> Model {
        Model::opaque("makes packets")
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let request = DeviceRequest::CaptureIn { path: self.path.clone() };
        self.device = Some(cx.open(&request, self.span)?);
        Ok(())
    }

    fn has_task(&self) -> bool {
        true
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        let Some(device) = self.device.as_mut() else { return Work::Ended };
        if !self.active {
            return Work::Idle;
        }
        let mut batch = cx.core.batch();
        let received = device.receive(self.burst, &mut batch, &mut cx.core.pool);
        self.count += batch.len() as u64;
        for packet in batch.iter_mut() {
            packet.set_header_offset(Header::Mac, 0);
        }
        cx.emit_all(0, &mut batch);
        cx.core.recycle_batch(batch);
        match received {
            Ok(Received::More) => return Work::Done,
            Ok(Received::End) => {}
            Err(why) => cx.error(&format!("{}: {why}", self.path)),
        }
        self.device = None;
        if self.stop {
            cx.stop();
        }
        Work::Ended
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::read("count"), Handler::both("active")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        match handler {
            "active" => Ok(self.active.to_string()),
            _ => Ok(self.count.to_string()),
        }
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.active = parse_value(value)?;
        Ok(())
    }
}
