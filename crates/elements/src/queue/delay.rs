//! DelayShaper and DelayUnqueue: packets later.

use ir::Model;
use net::{Batch, Packet};

use crate::argument::{Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Work};
use crate::element_state::ElementState;
use crate::rate::show_real;

/// The packet that is held back, and for how long.
struct Delay {
    /// Nanoseconds.
    delay: u64,
    held: Option<Packet>,
}

impl Delay {
    fn parse(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["DELAY"]);
        let delay: Nanoseconds = arguments.required("DELAY");
        arguments.finish()?;
        Ok(Self { delay: delay.0, held: None })
    }

    /// The next packet whose time has come; it is stamped with the present time.
    fn next(&mut self, cx: &mut Context<'_>) -> Option<Packet> {
        let now = cx.now();
        let mut packet = match self.held.take() {
            Some(packet) => packet,
            None => {
                let mut packet = cx.pull(0)?;
                let from = if packet.timestamp() == 0 { now } else { packet.timestamp() };
                packet.set_timestamp(from.saturating_add(self.delay));
                packet
            }
        };
        if packet.timestamp() > now {
            cx.wake_at(packet.timestamp());
            self.held = Some(packet);
            return None;
        }
        packet.set_timestamp(now);
        Some(packet)
    }

    fn held(&self) -> usize {
        usize::from(self.held.is_some())
    }

    fn export(&mut self, to: &mut ElementState) {
        if to.is_all() {
            to.packets.extend(self.held.take());
        }
    }

    fn import(&mut self, from: &mut ElementState) {
        self.held = from.packets.pop().or(self.held.take());
    }

    fn read(&self) -> String {
        show_real(self.delay as f64 / 1e9)
    }

    fn write(&mut self, value: &str) -> Result<(), String> {
        self.delay = parse_value::<Nanoseconds>(value)?.0;
        Ok(())
    }
}

element! {
    /// DelayShaper(DELAY) -- lets packets be pulled after a delay
    ///
    /// A packet can be pulled DELAY after the time it is stamped with; one without a stamp, DELAY
    /// after it was first asked for. Then it is stamped with the present time.
    ///
    /// = HANDLERS
    ///
    /// delay (read, write): the delay in seconds.
    ///
    /// = SEE ALSO
    ///
    /// DelayUnqueue, Shaper, SetTimestamp
    DelayShaper {
        category: Queue, ports: "1/1", processing: "l/l",
        samples: []
    }
}

/// See [`DelayShaper::CLASS`].
pub(crate) struct DelayShaper(Delay);

impl DelayShaper {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Delay::parse(cx).map(Self)
    }
}

impl Element for DelayShaper {
    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        self.0.next(cx)
    }

    fn model(&self) -> Model {
        Model::opaque("depends on time")
    }

    fn held(&self) -> usize {
        self.0.held()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.0.held.iter().for_each(show);
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.0.export(to);
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        self.0.import(from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("delay")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.0.read())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.0.write(value)
    }
}

element! {
    /// DelayUnqueue(DELAY) -- pulls packets and pushes them on after a delay
    ///
    /// A packet goes on DELAY after the time it is stamped with; one without a stamp, DELAY after
    /// it was pulled. Then it is stamped with the present time.
    ///
    /// = HANDLERS
    ///
    /// delay (read, write): the delay in seconds.
    ///
    /// = SEE ALSO
    ///
    /// DelayShaper, Unqueue, SetTimestamp
    DelayUnqueue {
        category: Queue, ports: "1/1", processing: "l/h",
        samples: []
    }
}

/// See [`DelayUnqueue::CLASS`].
pub(crate) struct DelayUnqueue(Delay);

impl DelayUnqueue {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        Delay::parse(cx).map(Self)
    }
}

impl Element for DelayUnqueue {
    fn model(&self) -> Model {
        Model::opaque("depends on time")
    }

    fn has_task(&self) -> bool {
        true
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        let mut sent = 0;
        while sent < Batch::DEFAULT_BURST
            && let Some(packet) = self.0.next(cx)
        {
            sent += 1;
            cx.emit(0, packet);
        }
        if sent > 0 { Work::Done } else { Work::Idle }
    }

    fn held(&self) -> usize {
        self.0.held()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.0.held.iter().for_each(show);
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.0.export(to);
    }

    fn import(&mut self, _: &str, from: &mut ElementState, _: u64) {
        self.0.import(from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("delay")] }
    }

    fn read(&self, _: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(self.0.read())
    }

    fn write(&mut self, _: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        self.0.write(value)
    }
}
