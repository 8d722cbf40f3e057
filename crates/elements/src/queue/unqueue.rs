//! Unqueue: where pulling ends and pushing begins.

use ir::Model;
use net::Batch;

use crate::argument::parse_value;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Work};

element! {
    /// Unqueue([BURST, KEYWORDS ACTIVE, LIMIT]) -- pulls packets and pushes them on
    ///
    /// Pulls up to BURST packets at a time from its input and pushes them out.
    ///
    /// = KEYWORDS
    ///
    /// BURST (number, default 1): packets at a time; a negative number means as many as come.
    /// ACTIVE (bool, default true): whether it works.
    /// LIMIT (number, default -1): packets after which it stops; a negative number means never.
    ///
    /// = HANDLERS
    ///
    /// count (read): packets so far.
    /// active, burst, limit (read, write): as the keywords.
    /// reset, reset_counts (write): starts counting again.
    ///
    /// = SEE ALSO
    ///
    /// RatedUnqueue, BandwidthRatedUnqueue, Queue
    Unqueue {
        category: Queue, ports: "1/1", processing: "l/h",
        samples: []
    }
}

/// See [`Unqueue::CLASS`].
pub(crate) struct Unqueue {
    burst: i64,
    limit: i64,
    active: bool,
    count: u64,
}

/// Packets that are pulled in one go however large the burst: others want their turn.
const LONGEST_TURN: u64 = 1024;

impl Unqueue {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["BURST", "ACTIVE", "LIMIT"]);
        let burst = arguments.optional("BURST").unwrap_or(1);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        let limit = arguments.keyword("LIMIT").unwrap_or(-1);
        arguments.finish()?;
        Ok(Self { burst, limit, active, count: 0 })
    }
}

impl Element for Unqueue {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        // Nothing is pushed to a pull port; should it happen, the packets go on.
        cx.emit_all(0, batch);
    }

    fn model(&self) -> Model {
        Model::opaque("pulls packets")
    }

    fn sees_frames_only(&self) -> bool {
        true
    }

    fn has_task(&self) -> bool {
        true
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if !self.active {
            return Work::Idle;
        }
        let mut burst = u64::try_from(self.burst).unwrap_or(u64::MAX).min(LONGEST_TURN);
        if let Ok(limit) = u64::try_from(self.limit) {
            burst = burst.min(limit.saturating_sub(self.count));
        }
        let before = self.count;
        while self.count - before < burst
            && let Some(packet) = cx.pull(0)
        {
            self.count += 1;
            cx.emit(0, packet);
        }
        if self.count > before { Work::Done } else { Work::Idle }
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("count"),
                Handler::both("active"),
                Handler::both("burst"),
                Handler::both("limit"),
                Handler::write("reset"),
                Handler::write("reset_counts"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "active" => self.active.to_string(),
            "burst" => self.burst.to_string(),
            "limit" => self.limit.to_string(),
            _ => self.count.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "active" => self.active = parse_value(value)?,
            "burst" => self.burst = parse_value(value)?,
            "limit" => self.limit = parse_value(value)?,
            _ => self.count = 0,
        }
        Ok(())
    }
}
