//! InfiniteSource, RatedSource and TimedSource: packets out of nothing.

use ir::{Diagnostic, Model, Processing};
use net::{Batch, Packet, Pool};

use crate::argument::{BytesPerSecond, Nanoseconds, parse_value};
use crate::configure::{Arguments, Configure, Failed, Initialize};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerCalls, HandlerContext, Traffic, Work};
use crate::handler_call::HandlerCall;
use crate::token_bucket::TokenBucket;

/// What a packet holds unless the configuration says otherwise.
const DATA: &str = "The bytes of a packet that was made to be forwarded, a little over 64";

/// The longest packet that is made.
const MAX_LENGTH: i64 = 65_535;

/// What all these sources have in common: the packet that they send copies of, and how many.
struct Copies {
    data: Vec<u8>,
    /// Length of the packets if it is not that of the data; negative if it is.
    length: i64,
    /// The packet.
    bytes: Vec<u8>,
    timestamp: bool,
    active: bool,
    limit: i64,
    count: u64,
    sent_bytes: u64,
    /// What happens once the limit is reached.
    end: Option<HandlerCall>,
    ended: bool,
    /// Whether the packets are pulled.
    pulled: bool,
}

impl Copies {
    /// The keyword arguments; those that can also stand without keyword come in.
    fn parse(
        arguments: &mut Arguments<'_, '_>,
        (data, limit, active): (Option<Vec<u8>>, Option<i64>, Option<bool>),
    ) -> Self {
        let lengths = [arguments.keyword::<i64>("LENGTH"), arguments.keyword("DATASIZE")];
        let length = lengths.into_iter().flatten().last().unwrap_or(-1);
        let stop = arguments.keyword("STOP").unwrap_or(false);
        let end: Option<HandlerCall> = arguments.keyword("END_CALL");
        let span = arguments.cx().span();
        let mut fits = length <= MAX_LENGTH;
        if !fits {
            let message = format!("packets of {length} bytes; the longest are of {MAX_LENGTH}");
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        if let (true, Ok(bytes)) = (fits, u64::try_from(length)) {
            fits = arguments.claim("LENGTH", bytes);
        }
        if stop && end.is_some() {
            let message = "END_CALL and STOP exclude each other";
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        let pulled = arguments.cx().output_processing().first() == Some(&Processing::Pull);
        let mut copies = Self {
            data: data.unwrap_or_else(|| DATA.into()),
            length,
            bytes: Vec::new(),
            timestamp: true,
            active: active.unwrap_or(true),
            limit: limit.unwrap_or(-1),
            count: 0,
            sent_bytes: 0,
            end: if stop { Some(HandlerCall::new(".stop", "")) } else { end },
            ended: false,
            pulled,
        };
        if fits {
            copies.assemble();
        }
        copies
    }

    fn assemble(&mut self) {
        self.bytes = match usize::try_from(self.length) {
            Err(_) => self.data.clone(),
            Ok(length) if self.data.is_empty() => vec![0; length],
            Ok(length) => self.data.iter().copied().cycle().take(length).collect(),
        };
    }

    /// How many packets there may still be.
    fn left(&self) -> u64 {
        u64::try_from(self.limit).map_or(u64::MAX, |limit| limit.saturating_sub(self.count))
    }

    fn make(&mut self, pool: &mut Pool, now: u64) -> Packet {
        self.count += 1;
        self.sent_bytes += self.bytes.len() as u64;
        let mut packet = pool.packet(&self.bytes);
        if self.timestamp {
            packet.set_timestamp(now);
        }
        packet
    }

    /// Does what is to be done at the end, once.
    fn reach_end(&mut self, cx: &mut Context<'_>) {
        if !std::mem::replace(&mut self.ended, true)
            && let Some(end) = &self.end
        {
            end.write_later(cx);
        }
    }

    /// The packet for a pull, if there may be one.
    fn pull(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        if !self.active {
            return None;
        }
        if self.left() == 0 {
            self.reach_end(cx);
            return None;
        }
        let now = cx.now();
        Some(self.make(&mut cx.core.pool, now))
    }

    /// Whether there will always be another packet.
    fn is_endless(&self) -> bool {
        self.active && self.left() == u64::MAX
    }

    /// Whether the driver is stopped after the last packet.
    fn stops_driver(&self) -> bool {
        self.left() < u64::MAX && self.end.as_ref().is_some_and(HandlerCall::stops_driver)
    }

    fn traffic(&self) -> Traffic {
        Traffic { source: true, packets: self.count, bytes: self.sent_bytes }
    }

    fn check(&self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.end.as_ref().map_or(Ok(()), |end| end.check(cx))
    }

    fn read(&self, handler: &str) -> String {
        match handler {
            "data" => String::from_utf8_lossy(&self.data).into_owned(),
            "limit" => self.limit.to_string(),
            "active" => self.active.to_string(),
            "length" | "datasize" => self.length.to_string(),
            _ => self.count.to_string(),
        }
    }

    fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        match handler {
            "data" => self.data = value.as_bytes().to_vec(),
            "limit" => self.limit = parse_value(value)?,
            "active" => self.active = parse_value(value)?,
            "length" | "datasize" => {
                self.length = match parse_value(value)? {
                    length if length > MAX_LENGTH => return Err("too long".to_string()),
                    length => length,
                };
            }
            _ => self.count = 0,
        }
        self.assemble();
        self.ended &= self.left() == 0;
        Ok(())
    }
}

element! {
    /// InfiniteSource([DATA, LIMIT, BURST, ACTIVE, KEYWORDS]) -- makes packets as fast as it can
    ///
    /// Sends copies of one packet, BURST at a time, or one for each pull. It rests while every
    /// path that its packets may take ends at a full Queue, or at Idle.
    ///
    /// = KEYWORDS
    ///
    /// DATA (string): what the packet holds; some text of 69 bytes by default.
    /// LIMIT (number, default -1): packets in all; a negative number means without end.
    /// BURST (number, default 1): packets at a time.
    /// ACTIVE (bool, default true): whether it works.
    /// TIMESTAMP (bool, default true): whether packets are stamped with the time.
    /// LENGTH (number, default -1): length of the packets, to which DATA is cut or repeated; a
    /// negative number leaves it as it is. DATASIZE is an older name.
    /// STOP (bool, default false): whether the driver stops after the last packet.
    /// END_CALL (HANDLER [VALUE]): a handler to write after the last packet.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// data, limit, burst, active, length (read, write): as the keywords; burstsize and datasize
    /// are older names.
    /// reset (write): starts counting again.
    ///
    /// = SEE ALSO
    ///
    /// RatedSource, TimedSource, FromDevice
    InfiniteSource {
        category: Io, ports: "0/1", processing: "a/a",
        samples: []
    }
}

/// See [`InfiniteSource::CLASS`].
pub(crate) struct InfiniteSource {
    copies: Copies,
    burst: usize,
}

/// The most packets at a time.
const MAX_BURST: usize = 4096;

impl InfiniteSource {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "DATA",
            "LIMIT",
            "BURST",
            "ACTIVE",
            "TIMESTAMP",
            "LENGTH",
            "DATASIZE",
            "STOP",
            "END_CALL",
        ]);
        let data = arguments.optional("DATA");
        let limit = arguments.optional("LIMIT");
        let burst = arguments.optional("BURST").unwrap_or(1usize);
        let active = arguments.optional("ACTIVE");
        let mut copies = Copies::parse(&mut arguments, (data, limit, active));
        copies.timestamp = arguments.keyword("TIMESTAMP").unwrap_or(true);
        if burst == 0 {
            let span = arguments.cx().span();
            let error = Diagnostic::error("bad-argument", "BURST must be at least 1");
            arguments.report(error.label(span, ""));
        }
        arguments.finish()?;
        Ok(Self { copies, burst: burst.min(MAX_BURST) })
    }
}

impl Element for InfiniteSource {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        self.copies.pull(cx)
    }

    fn model(&self) -> Model {
        Model::opaque("makes packets")
    }

    fn makes_bare_packets(&self) -> bool {
        true
    }

    fn handler_calls(&self) -> HandlerCalls {
        HandlerCall::all(&self.copies.end)
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.copies.check(cx)
    }

    fn has_task(&self) -> bool {
        !self.copies.pulled
    }

    fn waits_for_room(&self) -> bool {
        true
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.copies.active {
            return Work::Idle;
        }
        let count = self.copies.left().min(self.burst as u64);
        if count == 0 {
            self.copies.reach_end(cx);
            return Work::Ended;
        }
        let now = cx.now();
        for _ in 0..count {
            let packet = self.copies.make(&mut cx.core.pool, now);
            cx.emit(0, packet);
        }
        Work::Done
    }

    fn is_endless(&self) -> bool {
        self.copies.is_endless()
    }

    fn stops_driver(&self) -> bool {
        self.copies.stops_driver()
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.copies.traffic())
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::both("data"),
                Handler::both("limit"),
                Handler::both("burst"),
                Handler::both("active"),
                Handler::both("length"),
                Handler::count("count"),
                Handler::write("reset"),
                Handler::both("burstsize"),
                Handler::both("datasize"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "burst" | "burstsize" => self.burst.to_string(),
            _ => self.copies.read(handler),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "burst" | "burstsize" => match parse_value(value)? {
                0 => Err("burst must be at least 1".to_string()),
                burst => {
                    self.burst = MAX_BURST.min(burst);
                    Ok(())
                }
            },
            _ => self.copies.write(handler, value),
        }
    }
}

element! {
    /// RatedSource([DATA, RATE, LIMIT, ACTIVE, KEYWORDS]) -- makes packets at a rate
    ///
    /// Sends copies of one packet at RATE packets a second; when pulled, it gives no more than
    /// that.
    ///
    /// = KEYWORDS
    ///
    /// DATA (string): what the packet holds; some text of 69 bytes by default.
    /// RATE (number, default 10): packets per second.
    /// LIMIT (number, default -1): packets in all; a negative number means without end.
    /// ACTIVE (bool, default true): whether it works.
    /// LENGTH (number, default -1): length of the packets, to which DATA is cut or repeated; a
    /// negative number leaves it as it is. DATASIZE is an older name.
    /// BANDWIDTH (bandwidth): the rate in bytes or bits per second, instead of RATE.
    /// STOP (bool, default false): whether the driver stops after the last packet.
    /// END_CALL (HANDLER [VALUE]): a handler to write after the last packet.
    /// HEADROOM is accepted and means nothing.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// data, rate, limit, active, length (read, write): as the keywords; datasize is an older
    /// name.
    /// reset (write): starts counting again.
    ///
    /// = SEE ALSO
    ///
    /// InfiniteSource, TimedSource, Shaper
    RatedSource {
        category: Io, ports: "0/1", processing: "a/a",
        samples: []
    }
}

/// See [`RatedSource::CLASS`].
pub(crate) struct RatedSource {
    copies: Copies,
    bucket: TokenBucket,
}

/// A source that could not run for a while makes up for so long at most: a hundredth of a
/// second's packets, but always two.
fn bucket(rate: u64) -> TokenBucket {
    TokenBucket::new(rate, if rate < 200 { 2 } else { rate / 100 })
}

impl RatedSource {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "DATA",
            "RATE",
            "LIMIT",
            "ACTIVE",
            "HEADROOM",
            "LENGTH",
            "DATASIZE",
            "STOP",
            "BANDWIDTH",
            "END_CALL",
        ]);
        let data = arguments.optional("DATA");
        let rate: u32 = arguments.optional("RATE").unwrap_or(10);
        let limit = arguments.optional("LIMIT");
        let active = arguments.optional("ACTIVE");
        let copies = Copies::parse(&mut arguments, (data, limit, active));
        let bandwidth: Option<BytesPerSecond> = arguments.keyword("BANDWIDTH");
        let _: Option<u32> = arguments.keyword("HEADROOM");
        arguments.finish()?;
        let rate = match bandwidth {
            Some(BytesPerSecond(bytes)) if bytes > 0 => bytes / copies.bytes.len().max(1) as u64,
            _ => rate.into(),
        };
        let mut bucket = bucket(rate);
        // It starts with one packet, not with a burst.
        bucket.take(bucket.available().saturating_sub(1));
        Ok(Self { copies, bucket })
    }
}

impl Element for RatedSource {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        self.bucket.fill(cx.now());
        if self.copies.active && self.copies.left() > 0 && self.bucket.available() == 0 {
            cx.wake_at(self.bucket.time_of(1));
            return None;
        }
        let packet = self.copies.pull(cx)?;
        self.bucket.take(1);
        Some(packet)
    }

    fn model(&self) -> Model {
        Model::opaque("makes packets")
    }

    fn makes_bare_packets(&self) -> bool {
        true
    }

    fn handler_calls(&self) -> HandlerCalls {
        HandlerCall::all(&self.copies.end)
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.copies.check(cx)
    }

    fn has_task(&self) -> bool {
        !self.copies.pulled
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        self.bucket.start(cx.now());
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.copies.active {
            return Work::Idle;
        }
        if self.copies.left() == 0 {
            self.copies.reach_end(cx);
            return Work::Ended;
        }
        let now = cx.now();
        self.bucket.fill(now);
        let burst = Batch::DEFAULT_BURST as u64;
        let count = self.bucket.available().min(self.copies.left()).min(burst);
        for _ in 0..count {
            let packet = self.copies.make(&mut cx.core.pool, now);
            cx.emit(0, packet);
        }
        self.bucket.take(count);
        if count == 0 {
            cx.wake_at(self.bucket.time_of(1));
            return Work::Idle;
        }
        Work::Done
    }

    fn is_endless(&self) -> bool {
        self.copies.is_endless()
    }

    fn stops_driver(&self) -> bool {
        self.copies.stops_driver()
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.copies.traffic())
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::both("data"),
                Handler::both("rate"),
                Handler::both("limit"),
                Handler::both("active"),
                Handler::both("length"),
                Handler::count("count"),
                Handler::write("reset"),
                Handler::both("datasize"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "rate" => self.bucket.rate().to_string(),
            _ => self.copies.read(handler),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "rate" => self.bucket.change(bucket(parse_value::<u32>(value)?.into()).shape()),
            _ => self.copies.write(handler, value)?,
        }
        Ok(())
    }
}

element! {
    /// TimedSource([INTERVAL, DATA, KEYWORDS LIMIT, ACTIVE, STOP]) -- makes a packet at intervals
    ///
    /// Sends a copy of one packet every INTERVAL, the first after one INTERVAL.
    ///
    /// = KEYWORDS
    ///
    /// INTERVAL (time, default 0.5s): time between packets.
    /// DATA (string): what the packet holds; some text of 69 bytes by default.
    /// LIMIT (number, default -1): packets in all; a negative number means without end.
    /// ACTIVE (bool, default true): whether it works.
    /// STOP (bool, default false): whether the driver stops one INTERVAL after the last
    /// packet.
    /// HEADROOM is accepted and means nothing.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// interval, data, limit, active (read, write): as the keywords.
    /// reset (write): starts counting again.
    ///
    /// = SEE ALSO
    ///
    /// RatedSource
    TimedSource {
        category: Io, ports: "0/1", processing: "a/h",
        samples: []
    }
}

/// See [`TimedSource::CLASS`].
pub(crate) struct TimedSource {
    copies: Copies,
    /// Nanoseconds; at least 1.
    interval: u64,
    /// When the next packet is due.
    due: Option<u64>,
}

impl TimedSource {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&[
            "INTERVAL", "DATA", "LIMIT", "ACTIVE", "STOP", "HEADROOM", "LENGTH", "DATASIZE",
            "END_CALL",
        ]);
        let interval = arguments.optional("INTERVAL").unwrap_or(Nanoseconds(500_000_000));
        let data = arguments.optional("DATA");
        let (limit, active) = (arguments.keyword("LIMIT"), arguments.keyword("ACTIVE"));
        let copies = Copies::parse(&mut arguments, (data, limit, active));
        let _: Option<u32> = arguments.keyword("HEADROOM");
        arguments.finish()?;
        Ok(Self { copies, interval: interval.0.max(1), due: None })
    }
}

impl Element for TimedSource {
    fn model(&self) -> Model {
        Model::opaque("makes packets")
    }

    fn makes_bare_packets(&self) -> bool {
        true
    }

    fn handler_calls(&self) -> HandlerCalls {
        HandlerCall::all(&self.copies.end)
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.copies.check(cx)
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        let now = cx.now();
        if !self.copies.active {
            self.due = None;
            return;
        }
        let due = *self.due.get_or_insert(now.saturating_add(self.interval));
        if now < due {
            cx.wake_at(due);
        } else if self.copies.left() > 0 {
            let packet = self.copies.make(&mut cx.core.pool, now);
            cx.emit(0, packet);
            let next = due.saturating_add(self.interval);
            self.due = Some(next);
            cx.wake_at(next);
        } else {
            self.due = None;
            self.copies.reach_end(cx);
        }
    }

    fn is_endless(&self) -> bool {
        self.copies.is_endless()
    }

    fn stops_driver(&self) -> bool {
        self.copies.stops_driver()
    }

    fn traffic(&self) -> Option<Traffic> {
        Some(self.copies.traffic())
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::both("interval"),
                Handler::both("data"),
                Handler::both("limit"),
                Handler::both("active"),
                Handler::count("count"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "interval" => crate::rate::show_real(self.interval as f64 / 1e9),
            _ => self.copies.read(handler),
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "interval" => match parse_value(value)? {
                Nanoseconds(0) => return Err("bad interval".to_string()),
                Nanoseconds(interval) => self.interval = interval,
            },
            _ => self.copies.write(handler, value)?,
        }
        // One that had come to its end goes on at once.
        if self.due.is_none() && self.copies.active && self.copies.left() > 0 {
            self.due = Some(cx.now());
            cx.wake_at(cx.now());
        }
        Ok(())
    }
}
