//! What a run came to.

use std::time::Duration;

use dataplane::stats::{Interval, Stats};
use serde_json::{Value, json};

use crate::table::{Table, grouped};

struct Device {
    element: String,
    class: String,
    source: bool,
    packets: u64,
    bytes: u64,
}

struct Loss {
    element: String,
    class: String,
    reason: &'static str,
    packets: u64,
    bytes: u64,
    /// Whether the packets left on an error output and so are not lost.
    noted: bool,
}

/// Packets in, out and dropped by reason and element, with rates.
pub struct Summary {
    devices: Vec<Device>,
    losses: Vec<Loss>,
    elapsed: Duration,
    /// Nanoseconds in which there was something to do, of all workers.
    busy: u64,
}

impl Summary {
    /// Of what workers did.
    pub fn of(stats: &Stats, elapsed: Duration) -> Self {
        let (mut devices, mut losses) = (Vec::new(), Vec::new());
        for done in &stats.elements {
            let (element, class) = (done.name.clone(), done.class.clone());
            for line in &done.tally {
                let lines = [(line.dropped, line.dropped_bytes, false), (line.noted, 0, true)];
                for (packets, bytes, noted) in lines.into_iter().filter(|l| l.0 > 0) {
                    let (element, class) = (element.clone(), class.clone());
                    losses.push(Loss {
                        element,
                        class,
                        reason: line.reason.0,
                        packets,
                        bytes,
                        noted,
                    });
                }
            }
            if let Some(t) = done.traffic {
                let (source, packets, bytes) = (t.source, t.packets, t.bytes);
                devices.push(Device { element, class, source, packets, bytes });
            }
        }
        Self { devices, losses, elapsed, busy: stats.load.busy }
    }

    fn packets_in(&self) -> u64 {
        self.devices.iter().filter(|d| d.source).map(|d| d.packets).sum()
    }

    /// For people.
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (title, source) in [("in", true), ("out", false)] {
            let mut table = Table::new([title, "class", "packets", "bytes"]);
            for d in self.devices.iter().filter(|d| d.source == source) {
                table.row([
                    d.element.clone(),
                    d.class.clone(),
                    grouped(d.packets),
                    grouped(d.bytes),
                ]);
            }
            if !table.is_empty() {
                text.push_str(&table.render());
                text.push('\n');
            }
        }
        for (title, noted) in [("dropped", false), ("to an error output", true)] {
            let mut table = Table::new([title, "class", "reason", "packets", "bytes"]);
            for l in self.losses.iter().filter(|l| l.noted == noted) {
                let bytes = if noted { String::new() } else { grouped(l.bytes) };
                table.row([
                    l.element.clone(),
                    l.class.clone(),
                    l.reason.to_string(),
                    grouped(l.packets),
                    bytes,
                ]);
            }
            if !table.is_empty() {
                text.push_str(&table.render());
                text.push('\n');
            }
        }
        let (packets, seconds) = (self.packets_in(), self.elapsed.as_secs_f64());
        if packets > 0 && seconds > 0.0 {
            // Chains on interfaces wait most of the time.
            let mpps = Interval::of(self.elapsed).rate(0, packets) / 1e6;
            let ns = self.busy as f64 / packets as f64;
            text.push_str(&format!(
                "  {} packets in {seconds:.3} s: {mpps:.3} Mpps, {ns:.0} ns/packet, input and output included\n",
                grouped(packets)
            ));
        } else {
            text.push_str("  no packets came in\n");
        }
        text
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let device = |d: &Device| json!({ "element": d.element, "class": d.class, "packets": d.packets, "bytes": d.bytes });
        let loss = |l: &Loss| json!({ "element": l.element, "class": l.class, "reason": l.reason, "packets": l.packets, "bytes": l.bytes });
        let devices = |source| {
            self.devices.iter().filter(|d| d.source == source).map(device).collect::<Vec<_>>()
        };
        let losses =
            |noted| self.losses.iter().filter(|l| l.noted == noted).map(loss).collect::<Vec<_>>();
        json!({
            "in": devices(true), "out": devices(false),
            "dropped": losses(false), "error_outputs": losses(true),
            "seconds": self.elapsed.as_secs_f64(),
        })
    }
}
