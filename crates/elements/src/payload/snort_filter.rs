//! SnortFilter.

use std::collections::VecDeque;
use std::fmt::Write;

use ir::{Diagnostic, Model, Reason, Severity, Span};
use net::annotation::PAINT;
use net::wire::ip_protocol::{TCP, UDP};
use net::{Batch, Packet};

use super::connections::{Connections, Found};
use super::search::{Engine, Flow, PayloadMatch};
use super::snort::detection::Detection;
use super::snort::{Action, Rule, RuleSet};
use crate::configure::{Arguments, Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::transport::segments::{self, Seen};

element! {
    /// SnortFilter(FILE, ... [, KEYWORDS]) -- searches payloads for what rules of Snort name
    ///
    /// Expects IPv4 and IPv6 packets with their header marked, and reads rules of Snort 2 from files.
    ///
    /// Rules look for contents (`content` with `nocase`, `offset`, `depth`, `distance`, `within` and `!`;
    /// `pcre`; `byte_test`, `byte_jump`, `byte_extract`, `isdataat`) in the payload or in parts of HTTP/1
    /// messages (`http_uri`, `http_header` and others, `file_data`, `urilen`). `dsize`, `itype` and `icode`
    /// are about packets, `flow` and `flowbits` about connections, `detection_filter` and `threshold` about
    /// how often a rule matches.
    ///
    /// Each packet is searched by itself, and each stream of TCP with what came before: in order, as far
    /// as 16 KiB back, or to the message of HTTP before. Where segments overlap, the bytes that came first
    /// count. A rule is told once for what it matches in a stream. Rules without a content, and those with
    /// `dsize`, look at packets alone. Who began a connection is its client; where that was not seen, it is
    /// who has the higher port. `established` means that a packet of TCP has ACK and no SYN. Rules that set
    /// bits come before others.
    ///
    /// What a receiver would refuse is taken for what it reads: a segment far beyond its window, or a SYN within a
    /// connection, has streams begin elsewhere. TCPTracker in front drops such segments.
    ///
    /// Rules with `drop` or `reject` drop packets as `rule-matched`, or send them to output 1 if that
    /// is connected; where a stream matches, all that follows in its direction, too. Rules with `alert`
    /// count them. Where a `pass` rule matches, others do not count. Rules name IPv4 addresses: an IPv6
    /// packet matches those with `any`. Fragments but the first pass.
    ///
    /// Rules that need anything else are left out, as are regular expressions with look-around or
    /// backreferences; a warning tells how many, and for which option. Variables are defined by `ipvar`,
    /// `portvar` and `var` in a file before they are used; others mean `any`, with a warning. Contents are
    /// found together in one pass over a payload. What a rule takes beyond that is bounded: where it would
    /// take more, it does not match.
    ///
    /// = KEYWORDS
    ///
    /// ACTION (rule, alert or drop, default rule): what rules with `alert` and `drop` do.
    /// MARK (number): the paint annotation of packets that an `alert` or `drop` rule matched.
    /// STREAMS (bool, default true): whether streams of TCP are searched.
    /// MEMORY (number, default 67108864): bytes that connections take at the most; beyond, those that had no
    /// packet for longest are forgotten.
    /// LENIENT (bool, default false): whether lines that cannot be read are left out, with a warning
    /// for each.
    ///
    /// = HANDLERS
    ///
    /// matches (read): packets that an `alert` or `drop` rule matched.
    /// given_up (read): rules that took too long, once for each packet.
    /// connections (read): connections that are known.
    /// rules (read): a line for each rule that matched: number of packets, identifier, message.
    /// alerts (read): the last 100 alerts, each a JSON object of the form of Suricata's EVE.
    /// left_out (read): a line for each option that is not supported: number of rules, name.
    ///
    /// = EXAMPLE
    ///
    /// CheckIPHeader -> SnortFilter(community.rules, ACTION drop) -> ...
    ///
    /// = SEE ALSO
    ///
    /// IPFilter, IPReassembler
    SnortFilter { category: Payload, ports: "1/1-2", processing: "h/h", samples: [] }
}

/// A rule matched.
const MATCHED: Reason = Reason("rule-matched");

/// Alerts that are kept.
const KEPT: usize = 100;
/// Lines that cannot be read and are shown one by one, and options that a warning names.
const MOST_SHOWN: usize = 50;
/// Bytes that a rule takes, roughly, without its part of the automaton.
const RULE: u64 = 2048;
/// The same of a regular expression.
const EXPRESSION: u64 = 256 << 10;
const MEMORY: usize = 64 << 20;

/// See [`SnortFilter::CLASS`].
pub(crate) struct SnortFilter {
    engine: Engine,
    connections: Connections,
    /// Whether streams are searched.
    in_streams: bool,
    /// Whether rules ask for flows of UDP.
    asks_for_flows: bool,
    /// What rules do instead of what they say.
    action: Option<Action>,
    mark: Option<u8>,
    left_out: String,
    matches: u64,
    /// By rule.
    counts: Vec<u64>,
    alerts: VecDeque<String>,
}

/// Reads a file of rules.
fn read_file(
    path: &click::config::Argument,
    is_lenient: bool,
    set: &mut RuleSet,
    arguments: &mut Arguments<'_, '_>,
) {
    let Some((file, content)) = arguments.read_file(path) else { return };
    let (mut at, mut unreadable) = (0, 0);
    for line in content.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim_end();
        let Err(wrong) = set.read(line) else { continue };
        unreadable += 1;
        if unreadable > MOST_SHOWN {
            continue;
        }
        let severity = if is_lenient { Severity::Warning } else { Severity::Error };
        let place = Span::new(file, start + wrong.at, start + line.len());
        let error = Diagnostic::error("bad-rule", wrong.message).label(place, "");
        arguments.report(Diagnostic { severity, ..error });
    }
    if unreadable > MOST_SHOWN {
        let message = format!("{} more lines cannot be read", unreadable - MOST_SHOWN);
        let severity = if is_lenient { Severity::Warning } else { Severity::Error };
        let error = Diagnostic::error("bad-rule", message).label(path.span, "of this file");
        arguments.report(Diagnostic { severity, ..error });
    }
}

impl SnortFilter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let span = cx.span();
        let mut arguments = cx.arguments(&["ACTION", "MARK", "STREAMS", "MEMORY", "LENIENT"]);
        let is_lenient = arguments.keyword("LENIENT").unwrap_or(false);
        let mark = arguments.keyword::<u8>("MARK");
        let in_streams = arguments.keyword("STREAMS").unwrap_or(true);
        let memory = arguments.keyword::<usize>("MEMORY").unwrap_or(MEMORY);
        let mut action = None;
        if let Some(word) = arguments.keyword_argument("ACTION") {
            match word.text.as_str() {
                "rule" => {}
                "alert" => action = Some(Action::Alert),
                "drop" => action = Some(Action::Drop),
                other => {
                    let message = format!("'{other}' is not an action: rule, alert, drop");
                    arguments.error(&word, message);
                }
            }
        }
        let files = arguments.rest();
        let mut set = RuleSet::default();
        for path in &files {
            read_file(path, is_lenient, &mut set, &mut arguments);
        }
        let mut all: Vec<(&String, &usize)> = set.left_out.iter().collect();
        all.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), name.as_str()));
        let left_out: String =
            all.iter().map(|(name, count)| format!("{count} {name}\n")).collect();
        let place = files.first().map_or(span, |path| path.span);
        if !all.is_empty() {
            let count: usize = all.iter().map(|(_, count)| **count).sum();
            let named = all.iter().take(MOST_SHOWN).map(|(name, n)| format!("{name} ({n})"));
            let named: Vec<String> = named.collect();
            let message = format!(
                "{} rules are read, {count} are left out that need {}",
                set.rules.len(),
                named.join(", ")
            );
            let warning = Diagnostic::warning("rules-left-out", message);
            arguments.report(warning.label(place, ""));
        }
        if !set.undefined.is_empty() {
            let names: Vec<String> = set.undefined.iter().map(|name| format!("${name}")).collect();
            let message = format!("nothing defines {}, which mean any", names.join(", "));
            let warning = Diagnostic::warning("undefined-variable", message).label(place, "");
            arguments.report(warning.help("a line 'ipvar HOME_NET 10.0.0.0/8' defines a variable"));
        }
        if files.is_empty() {
            let error = Diagnostic::error("missing-argument", "FILE is missing").label(span, "");
            arguments.report(error.help("name a file of rules of Snort"));
        }
        let expressions = set.rules.iter().flat_map(|rule| &rule.detections);
        let expressions = expressions.filter(|d| matches!(d, Detection::Expression(_))).count();
        let size = RULE * set.rules.len() as u64 + EXPRESSION * expressions as u64;
        arguments.claim("FILE", size + Engine::bytes_of(&set.rules));
        arguments.claim("MEMORY", memory as u64);
        arguments.finish()?;
        if set.rules.is_empty() {
            return Err(cx.error(place, "there is no rule that can be used"));
        }
        let counts = vec![0; set.rules.len()];
        let engine = Engine::new(set.rules).map_err(|why| cx.error(place, why))?;
        Ok(Self {
            asks_for_flows: engine.asks_for_flows(),
            engine,
            connections: Connections::new(memory),
            in_streams,
            action,
            mark,
            left_out,
            matches: 0,
            counts,
            alerts: VecDeque::new(),
        })
    }

    /// What the rules say of a packet, unless its stream is dropped.
    fn search(&mut self, seen: &Seen<'_>, now: u64) -> Searched {
        let Self { engine, connections, counts, in_streams, asks_for_flows, action, .. } = self;
        let matched = |rule: usize| counts[rule] += 1;
        let has_flow = match seen.protocol {
            TCP => *in_streams || *asks_for_flows,
            UDP => *asks_for_flows,
            _ => false,
        };
        if !has_flow {
            return Searched::Found(engine.look(seen, None, now, matched));
        }
        connections.with(seen, |found| {
            let Found { to_server, bits, stream } = found;
            let Some(stream) = stream.filter(|_| *in_streams) else {
                let flow = Flow { to_server, bits, stream: None };
                return Searched::Found(engine.look(seen, Some(flow), now, matched));
            };
            if stream.is_dropped {
                return Searched::Dropped;
            }
            let parts = Some((&mut stream.window, &mut stream.progress));
            let flow = Flow { to_server, bits, stream: parts };
            let found = engine.look(seen, Some(flow), now, matched);
            // The packet comes again, and would be none that says something new.
            stream.is_dropped = found.is_some_and(|found| {
                found.is_in_stream && action.unwrap_or(found.action) == Action::Drop
            });
            Searched::Found(found)
        })
    }

    /// What becomes of a packet.
    fn verdict(&mut self, packet: &mut Packet, now: u64) -> Verdict {
        let Some(seen) = segments::seen(packet) else { return Verdict::Pass };
        let found = match self.search(&seen, now) {
            Searched::Dropped => return Verdict::Reject(1, MATCHED),
            Searched::Found(None) => return Verdict::Pass,
            Searched::Found(Some(found)) => found,
        };
        if found.action == Action::Pass {
            return Verdict::Pass;
        }
        let action = self.action.unwrap_or(found.action);
        self.matches += 1;
        if self.alerts.len() == KEPT {
            self.alerts.pop_front();
        }
        let rule = &self.engine.rules[found.rule];
        self.alerts.push_back(alert(rule, action, &seen, packet.timestamp()));
        if let Some(mark) = self.mark {
            packet.annotations_mut().set_u8(PAINT, mark);
        }
        match action {
            Action::Drop => Verdict::Reject(1, MATCHED),
            Action::Alert | Action::Pass => Verdict::Pass,
        }
    }
}

/// What the search of a packet gives.
enum Searched {
    Found(Option<PayloadMatch>),
    /// What follows in its stream is dropped.
    Dropped,
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if (c as u32) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Nanoseconds since 1970 as ISO 8601 has them, in UTC.
fn time(nanoseconds: u64) -> String {
    let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day last.
    let day = days + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = year + era * 400 + later;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let micros = rest / 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+0000")
}

/// An alert in the form of Suricata's EVE.
fn alert(rule: &Rule, action: Action, seen: &Seen<'_>, timestamp: u64) -> String {
    let protocol = match seen.protocol {
        1 => "ICMP".to_string(),
        58 => "IPv6-ICMP".to_string(),
        6 => "TCP".to_string(),
        17 => "UDP".to_string(),
        other => format!("{other:03}"),
    };
    let ends = match seen.protocol {
        6 | 17 => format!(r#""src_port":{},"dest_port":{},"#, seen.src_port, seen.dst_port),
        _ => String::new(),
    };
    let blocked = if action == Action::Drop { "blocked" } else { "allowed" };
    format!(
        r#"{{"timestamp":"{}","event_type":"alert","src_ip":"{}","dest_ip":"{}",{ends}"proto":"{protocol}","alert":{{"action":"{blocked}","gid":{},"signature_id":{},"rev":{},"signature":{},"category":{},"severity":{}}}}}"#,
        time(timestamp),
        seen.src,
        seen.dst,
        rule.gid,
        rule.sid,
        rule.rev,
        quoted(&rule.message),
        quoted(&rule.class),
        rule.priority,
    )
}

impl Element for SnortFilter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        cx.each(batch, |packet, _| self.verdict(packet, now));
    }

    fn model(&self) -> Model {
        Model::opaque("searches payloads")
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::count("matches"),
                Handler::count("given_up"),
                Handler::count("connections"),
                Handler::read("rules"),
                Handler::read("alerts"),
                Handler::read("left_out"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "matches" => self.matches.to_string(),
            "given_up" => self.engine.given_up.to_string(),
            "connections" => self.connections.len().to_string(),
            "rules" => {
                let counted = self.engine.rules.iter().zip(&self.counts).filter(|(_, n)| **n > 0);
                counted.map(|(r, n)| format!("{n} {}:{} {}\n", r.gid, r.sid, r.message)).collect()
            }
            "alerts" => self.alerts.iter().map(|alert| format!("{alert}\n")).collect(),
            _ => self.left_out.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(time(0), "1970-01-01T00:00:00.000000+0000");
        assert_eq!(time(951_782_400_000_001_000), "2000-02-29T00:00:00.000001+0000");
        assert_eq!(time(1_798_761_599_999_999_999), "2026-12-31T23:59:59.999999+0000");
        assert_eq!(time(4_107_542_400_000_000_000), "2100-03-01T00:00:00.000000+0000");
    }

    #[test]
    fn strings_are_quoted() {
        assert_eq!(quoted("a\"b\\c\n"), r#""a\"b\\c\u000a""#);
    }
}
