//! What an instance has done, in the Prometheus text format (version 0.0.4) over HTTP/1.1.
//!
//! Collected when asked: each worker tells what it counts anyway, between two rounds. Requests are
//! short, answers are closed after, and a client that is slow or talks nonsense is given up.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dataplane::latency::{Histogram, Latency, Of};
use dataplane::stats::{ElementStats, Stats};

use super::Controlled;
use crate::instance::Instance;

/// The longest head of a request in bytes.
const LONGEST_HEAD: usize = 8192;
/// The most header fields of a request.
const MOST_FIELDS: usize = 64;
/// Connections at a time.
const MAX_CONNECTIONS: usize = 8;
/// For a whole conversation.
const PATIENCE: Duration = Duration::from_secs(5);

/// A label's value, escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A metric with its samples.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: String,
}

impl Metric {
    fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: "counter", help, samples: String::new() }
    }

    fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: "gauge", help, samples: String::new() }
    }

    fn add(&mut self, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.add_part("", labels, value);
    }

    /// A histogram's samples: of how many values none is greater, for each bound in nanoseconds.
    fn add_histogram(&mut self, labels: [(&str, &str); 3], histogram: &Histogram) {
        let [a, b, c] = labels;
        for bound in BOUNDS {
            let seconds = (bound as f64 / 1e9).to_string();
            self.add_part("_bucket", &[a, b, c, ("le", &seconds)], histogram.below(bound));
        }
        self.add_part("_bucket", &[a, b, c, ("le", "+Inf")], histogram.count());
        self.add_part("_sum", &labels, histogram.sum() as f64 / 1e9);
        self.add_part("_count", &labels, histogram.count());
    }

    fn add_part(&mut self, part: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.samples.push_str(self.name);
        self.samples.push_str(part);
        for (i, (name, text)) in labels.iter().enumerate() {
            let open = if i == 0 { '{' } else { ',' };
            let _ = write!(self.samples, "{open}{name}=\"{}\"", escaped(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.samples, "{close} {value}");
    }

    fn render(&self, out: &mut String) {
        if !self.samples.is_empty() {
            let Self { name, kind, help, samples } = self;
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
    }
}

/// Bounds of a latency's buckets, in nanoseconds: the greatest values of buckets that it is
/// measured in, four times as much from one to the next.
const BOUNDS: [u64; 12] = {
    let mut bounds = [255; 12];
    let mut i = 1;
    while i < bounds.len() {
        bounds[i] = bounds[i - 1] * 4 + 3;
        i += 1;
    }
    bounds
};

/// What a latency is of, in a word.
pub(super) fn kind(of: Of) -> &'static str {
    match of {
        Of::Chain => "chain",
        Of::Function => "function",
        Of::Program => "program",
        Of::Element => "element",
    }
}

struct Elements {
    came: Metric,
    packets: Metric,
    bytes: Metric,
    dropped: Metric,
    dropped_bytes: Metric,
    errors: Metric,
    held: Metric,
    flows: Metric,
}

impl Elements {
    fn add(&mut self, worker: &str, element: &ElementStats) {
        let own = [("worker", worker), ("element", &element.name), ("class", &element.class)];
        let with = |name, value| [own[0], own[1], own[2], (name, value)];
        if let Some(packets) = element.packets {
            self.came.add(&own, packets);
        }
        let traffic = element.traffic.map(|t| {
            let side = if t.source { "in" } else { "out" };
            (side, t.packets, t.bytes)
        });
        let counted = element.counter.map(|(packets, bytes)| ("through", packets, bytes));
        for (side, packets, bytes) in traffic.into_iter().chain(counted) {
            self.packets.add(&with("side", side), packets);
            self.bytes.add(&with("side", side), bytes);
        }
        for line in &element.tally {
            let labels = with("reason", line.reason.0);
            if line.dropped > 0 {
                self.dropped.add(&labels, line.dropped);
                self.dropped_bytes.add(&labels, line.dropped_bytes);
            }
            if line.noted > 0 {
                self.errors.add(&labels, line.noted);
            }
        }
        if element.holding.packets > 0 {
            self.held.add(&own, element.holding.packets);
        }
        if element.holding.flows > 0 {
            self.flows.add(&own, element.holding.flows);
        }
    }
}

/// All metrics of an instance.
fn render(instance: &Instance) -> String {
    let (generation, _) = instance.current();
    let (each, _) = instance.stats();
    let waiting = each.iter().map(|(worker, _)| (*worker, instance.waiting(*worker)));
    render_stats(&each, waiting, generation, instance.age())
}

fn render_stats(
    each: &[(usize, Stats)],
    queues: impl Iterator<Item = (usize, BTreeMap<String, u64>)>,
    generation: u64,
    age: Duration,
) -> String {
    let mut info = Metric::gauge("catena_info", "The version that runs.");
    info.add(&[("version", env!("CARGO_PKG_VERSION"))], 1);
    let mut up = Metric::gauge("catena_uptime_seconds", "How long the instance has been running.");
    up.add(&[], age.as_secs_f64());
    let mut changes =
        Metric::counter("catena_configurations_total", "Configurations that have run.");
    changes.add(&[], generation);
    let mut busy =
        Metric::counter("catena_worker_busy_seconds_total", "Time in rounds with something to do.");
    let mut rounds = Metric::counter("catena_worker_rounds_total", "Rounds with something to do.");
    let mut buffers = Metric::gauge("catena_packet_buffers", "Packet buffers in use.");
    let mut waiting = Metric::gauge(
        "catena_receive_queue_packets",
        "Packets that wait in a worker's receive queues of an interface.",
    );
    for (worker, queues) in queues {
        for (interface, packets) in queues {
            let labels = [("worker", &*worker.to_string()), ("interface", &*interface)];
            waiting.add(&labels, packets);
        }
    }
    let mut all = Elements {
        came: Metric::counter(
            "catena_element_packets_total",
            "Packets that came to an element; of one without inputs, those that left it.",
        ),
        packets: Metric::counter(
            "catena_counted_packets_total",
            "Packets that came in at a source, went out at a sink, or through what counts them.",
        ),
        bytes: Metric::counter("catena_counted_bytes_total", "Their bytes."),
        dropped: Metric::counter("catena_dropped_packets_total", "Packets dropped, by reason."),
        dropped_bytes: Metric::counter("catena_dropped_bytes_total", "Their bytes."),
        errors: Metric::counter(
            "catena_error_output_packets_total",
            "Packets that left on an error output, by reason.",
        ),
        held: Metric::gauge("catena_held_packets", "Packets that an element holds back."),
        flows: Metric::gauge("catena_flows", "Flows of an element."),
    };
    let mut functions = Metric::counter(
        "catena_function_packets_total",
        "Packets that came into a network function.",
    );
    let mut latency = Metric {
        kind: "histogram",
        ..Metric::counter(
            "catena_latency_seconds",
            "How long some bursts took, for each of their packets: until they left the chain at an \
             element, in a network function, a program or an element's native code.",
        )
    };
    for (worker, stats) in each {
        let worker = worker.to_string();
        for Latency { of, name, histogram } in &stats.latencies {
            let labels = [("worker", worker.as_str()), ("of", kind(*of)), ("name", name.as_str())];
            latency.add_histogram(labels, histogram);
        }
        busy.add(&[("worker", &worker)], stats.load.busy as f64 / 1e9);
        rounds.add(&[("worker", &worker)], stats.load.rounds);
        buffers.add(&[("worker", &worker)], stats.buffers);
        for function in &stats.functions {
            let labels = [("worker", worker.as_str()), ("function", &function.name)];
            functions.add(&labels, function.packets);
        }
        stats.elements.iter().for_each(|element| all.add(&worker, element));
    }
    let Elements { came, packets, bytes, dropped, dropped_bytes, errors, held, flows } = all;
    let mut out = String::new();
    for metric in [
        info,
        up,
        changes,
        busy,
        rounds,
        buffers,
        waiting,
        functions,
        came,
        packets,
        bytes,
        dropped,
        dropped_bytes,
        errors,
        held,
        flows,
        latency,
    ] {
        metric.render(&mut out);
    }
    out
}

/// The answer to a request.
struct Answer {
    status: &'static str,
    content: String,
    /// Whether only the head is sent.
    head_only: bool,
}

fn bad_request(why: impl std::fmt::Display) -> Answer {
    Answer { status: "400 Bad Request", content: format!("{why}\n"), head_only: false }
}

/// The answer to a request, if its head is complete.
fn respond(head: &[u8], metrics: impl FnOnce() -> String) -> Option<Answer> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return None,
        Err(why) => return Some(bad_request(why)),
    }
    let path = request.path.unwrap_or_default().split('?').next();
    let head_only = request.method == Some("HEAD");
    let (status, content) = match (request.method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => ("200 OK", metrics()),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", "the metrics are at /metrics\n".to_string()),
        _ => ("405 Method Not Allowed", "only GET and HEAD\n".to_string()),
    };
    Some(Answer { status, content, head_only })
}

/// Reads a request and answers it; one that is too long, too late or cut off is a bad one.
fn answer(
    stream: &mut impl Read,
    is_late: impl Fn() -> bool,
    metrics: impl Fn() -> String,
) -> Answer {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while !is_late() && head.len() <= LONGEST_HEAD {
        let Some(n) = stream.read(&mut buffer).ok().filter(|n| *n > 0) else { break };
        head.extend_from_slice(&buffer[..n]);
        if let Some(answer) = respond(&head, &metrics) {
            return answer;
        }
    }
    bad_request("the request is not complete")
}

#[expect(clippy::disallowed_methods, reason = "clients are given up by real time")]
fn converse(mut stream: TcpStream, controlled: &Controlled) -> std::io::Result<()> {
    let begin = Instant::now();
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let is_late = || begin.elapsed() > PATIENCE;
    let answer = answer(&mut stream, is_late, || render(&controlled.instance));
    let (status, length) = (answer.status, answer.content.len());
    let mut text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if !answer.head_only {
        text.push_str(&answer.content);
    }
    stream.write_all(text.as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)
}

/// Where metrics are asked for.
pub struct MetricsSocket {
    listener: TcpListener,
    address: SocketAddr,
}

impl MetricsSocket {
    /// Listens on `ADDRESS:PORT`.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(address: &str) -> Result<Self, String> {
        if address.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.is_empty()) {
            return Err(format!("it takes ADDRESS:PORT, like 127.0.0.1:9100, not '{address}'"));
        }
        let explain = |e: std::io::Error| format!("{address}: {e}");
        let listener = TcpListener::bind(address).map_err(explain)?;
        let address = listener.local_addr().map_err(explain)?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves the metrics of an instance from now on.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn serve(self, controlled: Arc<Controlled>) -> std::io::Result<()> {
        let converse = move |stream| drop(converse(stream, &controlled));
        let next = move || self.listener.accept().map(|(stream, _)| stream);
        let turn_away = |mut stream: TcpStream| {
            let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes());
        };
        super::accept("metrics", MAX_CONNECTIONS, next, converse, turn_away)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(request: &[u8]) -> Answer {
        answer(&mut &*request, || false, || "x 1\n".to_string())
    }

    #[test]
    fn requests_are_answered_by_what_they_are() {
        let status = |request: &str| answered(request.as_bytes()).status;
        assert_eq!(status("GET /metrics HTTP/1.1\r\n\r\n"), "200 OK");
        assert_eq!(status("GET /metrics?a=b HTTP/1.0\r\nHost: x\r\n\r\n"), "200 OK");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        for wrong in
            ["", "\r\n\r\n", "GET /metrics\r\n\r\n", "GET  /metrics HTTP/1.1", "\u{0}\u{1}"]
        {
            assert_eq!(status(wrong), "400 Bad Request", "{wrong:?}");
        }
        assert!(answered(b"HEAD /metrics HTTP/1.1\r\n\r\n").head_only);
    }

    #[test]
    fn requests_may_come_in_pieces_and_not_without_end() {
        let (first, second) = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".split_at(30);
        let pieces = || first.chain(second);
        assert_eq!(answer(&mut pieces(), || false, String::new).status, "200 OK");
        assert_eq!(answer(&mut pieces(), || true, String::new).status, "400 Bad Request");
        let endless =
            [b"GET /metrics HTTP/1.1\r\nX: ", &vec![b'a'; 10 * LONGEST_HEAD][..]].concat();
        let mut rest = &endless[..];
        assert_eq!(answer(&mut rest, || false, String::new).status, "400 Bad Request");
        assert!(rest.len() > 8 * LONGEST_HEAD, "it is not read to its end");
        let many =
            [b"GET /metrics HTTP/1.1\r\n", &b"X: a\r\n".repeat(MOST_FIELDS + 1)[..], b"\r\n"];
        assert_eq!(answered(&many.concat()).status, "400 Bad Request");
    }

    #[test]
    fn labels_are_escaped() {
        let mut metric = Metric::gauge("x", "h");
        metric.add(&[("a", "b\"\\\n"), ("c", "d")], 7);
        let mut out = String::new();
        metric.render(&mut out);
        assert_eq!(out, "# HELP x h\n# TYPE x gauge\nx{a=\"b\\\"\\\\\\n\",c=\"d\"} 7\n");
    }
}
