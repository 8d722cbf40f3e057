//! What was sent of a load.

use std::fmt::Write as _;

use elements::device::{Device, Event};
use hdrhistogram::Histogram;
use serde::Serialize;
use view::table::grouped;

use super::Plan;
use crate::report::Percentiles;
use crate::stamp::LENGTH;
use crate::statistics::latencies;

/// A sender that sent less than this share of the rate was slower than asked.
const AS_ASKED: f64 = 0.99;

/// What was sent.
#[derive(Clone, Debug, Serialize)]
pub struct Sent {
    /// Packets that the device took.
    pub packets: u64,
    /// Their bytes, without frame check sequences.
    pub bytes: u64,
    /// Packets that have a stamp.
    pub stamped: u64,
    /// Packets that the device took and lost, by reason.
    pub lost: Vec<Lost>,
    /// Seconds in which they were due.
    pub due_seconds: f64,
    /// Seconds in which they were sent; nothing of a capture that was written.
    pub seconds: Option<f64>,
    /// Packets per second that were due; nothing of fewer than two.
    pub offered: Option<f64>,
    /// Packets per second that were sent, less those that were lost; nothing of a capture that was written.
    pub achieved: Option<f64>,
    /// By how many nanoseconds packets were sent after they were due.
    pub lateness: Option<Percentiles>,
    /// Whether fewer packets per second were sent than asked: what was measured is not of the rate that was asked for.
    pub slower: bool,
    /// Whether it ended before all was sent: it was stopped, or far behind.
    pub interrupted: bool,
    /// Packets with a stamp by stream, one for each sender of the load.
    pub streams: Vec<SentStream>,
    /// What the device reported: that its link went down.
    pub notices: Vec<String>,
    /// By how many nanoseconds packets were late.
    #[serde(skip)]
    late: Histogram<u64>,
}

/// What was sent of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SentStream {
    /// Its number.
    pub stream: u8,
    /// Packets of it.
    pub packets: u64,
}

/// Packets that a device lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Why.
    pub reason: String,
    /// How many.
    pub packets: u64,
}

impl Lost {
    /// Adds the losses that a device reports, in sending or in receiving, and its notices: that its link went down.
    pub(crate) fn collect<D: Device + ?Sized>(
        (all, notices): (&mut Vec<Self>, &mut Vec<String>),
        device: &mut D,
        of_sending: bool,
    ) {
        while let Some(event) = device.next_event() {
            let (reason, packets) = match event {
                Event::Lost { reason, packets, sending, .. } if sending == of_sending => {
                    (reason, packets)
                }
                Event::Notice(text) => {
                    note(notices, text);
                    continue;
                }
                _ => continue,
            };
            match all.iter_mut().find(|lost| lost.reason == reason.0) {
                Some(lost) => lost.packets += packets,
                None => all.push(Self { reason: reason.0.into(), packets }),
            }
        }
    }

    pub(crate) fn sum(all: &[Self]) -> u64 {
        all.iter().map(|lost| lost.packets).sum()
    }

    pub(crate) fn render(all: &[Self]) -> String {
        let texts: Vec<_> =
            all.iter().map(|lost| format!("{} {}", grouped(lost.packets), lost.reason)).collect();
        texts.join(", ")
    }
}

/// Notices that are kept: a link may go up and down as long as it wants.
const NOTICES: usize = 16;

/// Adds a notice, once.
pub(crate) fn note(notices: &mut Vec<String>, text: String) {
    if notices.len() < NOTICES && !notices.contains(&text) {
        notices.push(text);
    }
}

/// Adds what follows from the counts.
pub(super) fn complete(
    sent: &mut Sent,
    plan: &Plan,
    (last_due, elapsed): (u64, Option<u64>),
    late: &Histogram<u64>,
) {
    let due = match plan.seconds {
        Some(seconds)
            if !sent.interrupted && plan.own_count().is_none_or(|count| sent.packets < count) =>
        {
            seconds
        }
        // The last packet takes its turn, too. Packets that are due all at once are so within a nanosecond.
        _ => {
            let last_due = last_due.max(u64::from(sent.packets > 1)) as f64;
            last_due * (1.0 + 1.0 / (sent.packets.max(2) - 1) as f64) / 1e9
        }
    };
    sent.due_seconds = due;
    sent.offered = (due > 0.0).then(|| sent.packets as f64 / due);
    if let Some(elapsed) = elapsed {
        let seconds = (elapsed as f64 / 1e9).max(due);
        sent.seconds = Some(seconds);
        let arrived = sent.packets.saturating_sub(Lost::sum(&sent.lost));
        sent.achieved = sent.offered.map(|_| arrived as f64 / seconds);
        sent.slower = sent.is_slower();
    }
    sent.lateness = Percentiles::of(late);
    sent.late.clone_from(late);
    let packets = sent.stamped;
    sent.streams =
        plan.stamp.iter().map(|(_, stream)| SentStream { stream: *stream, packets }).collect();
}

impl Sent {
    pub(super) fn nothing() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            stamped: 0,
            lost: Vec::new(),
            due_seconds: 0.0,
            seconds: None,
            offered: None,
            achieved: None,
            lateness: None,
            slower: false,
            interrupted: false,
            streams: Vec::new(),
            notices: Vec::new(),
            late: latencies(),
        }
    }

    fn is_slower(&self) -> bool {
        let both = self.achieved.zip(self.offered);
        both.is_some_and(|(achieved, offered)| achieved < AS_ASKED * offered)
    }

    /// What several senders of one load sent together.
    pub fn together(all: impl IntoIterator<Item = Self>) -> Self {
        let mut sum = Self::nothing();
        for sent in all {
            sum.packets += sent.packets;
            sum.bytes += sent.bytes;
            sum.stamped += sent.stamped;
            for lost in sent.lost {
                match sum.lost.iter_mut().find(|known| known.reason == lost.reason) {
                    Some(known) => known.packets += lost.packets,
                    None => sum.lost.push(lost),
                }
            }
            sum.due_seconds = sum.due_seconds.max(sent.due_seconds);
            sum.seconds = match (sum.seconds, sent.seconds) {
                (Some(a), Some(b)) => Some(a.max(b)),
                (a, b) => a.or(b),
            };
            sum.offered = match (sum.offered, sent.offered) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
            sum.interrupted |= sent.interrupted;
            sum.streams.extend(sent.streams);
            sent.notices.into_iter().for_each(|text| note(&mut sum.notices, text));
            sum.late.add(sent.late).expect("histograms of the same bounds");
        }
        if let (Some(seconds), Some(_)) = (sum.seconds, sum.offered) {
            let arrived = sum.packets.saturating_sub(Lost::sum(&sum.lost));
            sum.achieved = Some(arrived as f64 / seconds);
            sum.slower = sum.is_slower();
        }
        sum.lateness = Percentiles::of(&sum.late);
        sum
    }

    /// What a reader must know.
    pub fn remarks(&self, plan: &Plan) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.slower {
            remarks.push(format!(
                "slower than asked: {} of {} packets a second; receivers were not offered this load",
                rounded(self.achieved.unwrap_or_default()),
                rounded(self.offered.unwrap_or_default()),
            ));
        }
        if plan.stamp.is_some() && self.stamped < self.packets {
            remarks.push(format!(
                "{} packets have no stamp: it takes {LENGTH} bytes of UDP, TCP or ICMP echo payload, \
                 and no fragment (size=60 is enough for UDP over IPv4, size=80 for all)",
                grouped(self.packets.saturating_sub(self.stamped)),
            ));
        }
        remarks.extend(self.notices.iter().cloned());
        if self.interrupted {
            let over = plan.given_up().map(|over| over as f64 / 1e9);
            let is_over = self.seconds.zip(over).is_some_and(|(took, over)| took >= over);
            let why = if is_over { "too far behind" } else { "interrupted" };
            remarks.push(format!("{why}: it ended before all was sent"));
        }
        remarks
    }

    /// As people read it.
    pub fn render(&self, plan: &Plan) -> String {
        let mut out = String::new();
        let stamped = match plan.stamp {
            Some((clock, _)) => {
                let streams: Vec<String> =
                    self.streams.iter().map(|sent| sent.stream.to_string()).collect();
                let plural = if streams.len() == 1 { "" } else { "s" };
                let streams = streams.join(", ");
                format!(", stamped as stream{plural} {streams} by the {clock} clock")
            }
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "sent: {} packets, {} bytes{stamped}",
            grouped(self.packets),
            grouped(self.bytes)
        );
        if self.streams.len() > 1 {
            let each = self.streams.iter();
            let each = each.map(|sent| format!("{}={}", sent.stream, sent.packets));
            let _ = writeln!(out, "catena recv --expect {}", each.collect::<Vec<_>>().join(","));
        }
        if !self.lost.is_empty() {
            let _ = writeln!(out, "lost by the device: {}", Lost::render(&self.lost));
        }
        if let Some(offered) = self.offered {
            let _ = writeln!(
                out,
                "offered: {} packets/s for {}",
                rounded(offered),
                span(self.due_seconds)
            );
        }
        if let (Some(achieved), Some(seconds)) = (self.achieved, self.seconds) {
            let _ =
                writeln!(out, "achieved: {} packets/s for {}", rounded(achieved), span(seconds));
        }
        if let Some(late) = &self.lateness {
            let micros = |ns: u64| ns as f64 / 1e3;
            let _ = writeln!(
                out,
                "sent after due, µs: p50 {:.1}, p99 {:.1}, max {:.1}",
                micros(late.p50),
                micros(late.p99),
                micros(late.max)
            );
        }
        for remark in self.remarks(plan) {
            let _ = writeln!(out, "! {remark}");
        }
        out
    }
}

/// A time as people read it.
fn span(seconds: f64) -> String {
    if seconds > 0.0 && seconds < 1e-3 {
        format!("{:.3} µs", seconds * 1e6)
    } else {
        format!("{seconds:.3} s")
    }
}

/// A rate as people read it.
pub(crate) fn rounded(rate: f64) -> String {
    if rate < 1000.0 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}
