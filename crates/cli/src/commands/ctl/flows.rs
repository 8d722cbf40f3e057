//! `catena ctl flows`: which flows are asked for, and how they are shown.

use clap::Args;
use serde_json::{Value, json};
use view::table::{Table, grouped};

use super::{number, text};

/// Which flows.
#[derive(Args, Debug)]
pub(super) struct Flows {
    /// Those with packets, in either direction and before or after they are translated, that a
    /// pattern of IPClassifier chooses, such as 'tcp port 80 and host 10.0.0.1'; all if there is none
    filter: Vec<String>,
    /// Only those of this element
    #[arg(short, long, value_name = "NAME")]
    element: Option<String>,
    /// By what: touched (the latest packet, the flow that waits longest first), expires, protocol,
    /// src, dst, sport, dport
    #[arg(long, value_name = "KEY", default_value = "touched")]
    sort: String,
    /// In reverse order
    #[arg(short, long)]
    reverse: bool,
    /// Leave out the first of them
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
    /// Show so many; 0 for all
    #[arg(short, long, value_name = "N", default_value_t = 1000)]
    limit: u64,
    /// Only count them
    #[arg(short, long, conflicts_with = "delete")]
    count: bool,
    /// Remove the flow, if the pattern chooses one and no more
    #[arg(short, long)]
    delete: bool,
}

/// `10.0.0.1:80`, `10.0.0.1`
fn end(tuple: &Value, address: &str, port: &str) -> String {
    match tuple[port].as_u64() {
        Some(port) => format!("{}:{port}", text(tuple, address)),
        None => text(tuple, address).to_string(),
    }
}

/// `10.0.0.2:1024 -> 10.0.0.1:80`
fn tuple(tuple: &Value) -> String {
    let source = match tuple["identifier"].as_u64() {
        Some(identifier) => format!("{} ({identifier})", text(tuple, "src")),
        None => end(tuple, "src", "sport"),
    };
    match tuple["dst"].is_string() {
        true => format!("{source} -> {}", end(tuple, "dst", "dport")),
        false => source,
    }
}

fn protocol(flow: &Value) -> String {
    match number(&flow["protocol"]) {
        1 => "icmp".to_string(),
        6 => "tcp".to_string(),
        17 => "udp".to_string(),
        33 => "dccp".to_string(),
        other => other.to_string(),
    }
}

impl Flows {
    pub(super) fn request(&self) -> Value {
        json!({
            "do": "flows", "filter": self.filter.join(" "), "element": self.element,
            "sort": self.sort, "reverse": self.reverse, "skip": self.skip,
            "limit": if self.limit == 0 { u64::MAX } else { self.limit },
            "count": self.count, "delete": self.delete,
        })
    }

    pub(super) fn show(&self, answer: &Value) -> String {
        if self.delete {
            let flow = &answer["removed"];
            return format!("  removed: {} {}\n", protocol(flow), tuple(&flow["from"]));
        }
        let chosen = number(&answer["chosen"]);
        if self.count {
            return format!("{chosen}\n");
        }
        let mut table = Table::new(["protocol", "flow", "becomes", "element", "expires in"]);
        let flows = answer["flows"].as_array().map_or(&[][..], Vec::as_slice);
        for flow in flows {
            table.row([
                protocol(flow),
                tuple(&flow["from"]),
                tuple(&flow["to"]),
                text(flow, "element").to_string(),
                format!("{:.0} s", flow["expires_s"].as_f64().unwrap_or(0.0)),
            ]);
        }
        let mut out = if table.is_empty() { String::new() } else { table.render() };
        let shown = flows.len() as u64;
        out += &match shown == chosen {
            true => format!("  {} flows\n", grouped(chosen)),
            false => format!(
                "  {} of {} flows; --skip and --limit show others\n",
                grouped(shown),
                grouped(chosen)
            ),
        };
        out
    }
}
