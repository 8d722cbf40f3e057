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
        text.push_str(&total(self.packets_in(), self.elapsed, self.busy));
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

/// Runs that are shorter, or have fewer packets, mostly start: files are opened, tables and caches are filled.
const STEADY: (Duration, u64) = (Duration::from_secs(1), 100_000);

/// How many packets came in, and how fast if the run was long enough for a rate to mean anything.
fn total(packets: u64, elapsed: Duration, busy: u64) -> String {
    if packets == 0 {
        return "  no packets came in\n".to_string();
    }
    let (count, seconds) = (grouped(packets), elapsed.as_secs_f64());
    if elapsed < STEADY.0 || packets < STEADY.1 {
        return format!("  {count} packets in {seconds:.3} s\n");
    }
    // Chains on interfaces wait most of the time.
    let mpps = Interval::of(elapsed).rate(0, packets) / 1e6;
    let ns = busy as f64 / packets as f64;
    format!(
        "  {count} packets in {seconds:.3} s: {mpps:.3} Mpps, {ns:.0} ns/packet, input and output included\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_has_no_rate() {
        let short = total(3000, Duration::from_millis(21), 20_000_000);
        assert_eq!(short, "  3,000 packets in 0.021 s\n");
        let long = total(3_000_000, Duration::from_secs(2), 1_500_000_000);
        assert!(long.contains("3,000,000 packets in 2.000 s: 1.500 Mpps, 500 ns/packet"), "{long}");
        let idle = total(48, Duration::from_secs(52), 2_500_000);
        assert_eq!(idle, "  48 packets in 52.000 s\n");
        assert_eq!(total(0, Duration::ZERO, 0), "  no packets came in\n");
    }
}
