//! `catena ctl flows`: which flows are asked for, and how they are shown.

use clap::Args;
use engine::control::protocol::{self, Flow, FlowOrder, FlowsAnswer, Tuple};
use view::table::{Table, grouped};

use super::Ctl;
use crate::failure::Failure;

/// By what flows are sorted, as the protocol names it.
fn order(text: &str) -> Result<FlowOrder, serde_json::Error> {
    serde_json::from_value(text.into())
}

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
    #[arg(long, value_name = "KEY", value_parser = order, default_value = "touched")]
    sort: FlowOrder,
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
fn end(address: &impl ToString, port: Option<u16>) -> String {
    match port {
        Some(port) => format!("{}:{port}", address.to_string()),
        None => address.to_string(),
    }
}

/// `10.0.0.2:1024 -> 10.0.0.1:80`
fn tuple(tuple: &Tuple) -> String {
    let source = match tuple.identifier {
        Some(identifier) => format!("{} ({identifier})", tuple.src),
        None => end(&tuple.src, tuple.sport),
    };
    match &tuple.dst {
        Some(dst) => format!("{source} -> {}", end(dst, tuple.dport)),
        None => source,
    }
}

fn protocol(flow: &Flow) -> String {
    match flow.protocol {
        1 => "icmp".to_string(),
        6 => "tcp".to_string(),
        17 => "udp".to_string(),
        33 => "dccp".to_string(),
        other => other.to_string(),
    }
}

impl Flows {
    pub(super) fn run(&self, ctl: &Ctl) -> Result<(), Failure> {
        let (filter, element) = (self.filter.join(" "), self.element.clone());
        if self.delete {
            let request = protocol::RemoveFlow { filter, element };
            let show =
                |flow: &Flow| format!("  removed: {} {}\n", protocol(flow), tuple(&flow.from));
            return ctl.ask(request, show).map(drop);
        }
        let limit = match self.limit {
            _ if self.count => Some(0),
            0 => None,
            limit => Some(limit),
        };
        let (sort, reverse, skip) = (self.sort, self.reverse, self.skip);
        let request = protocol::Flows { filter, element, sort, reverse, skip, limit };
        ctl.ask(request, |answer| self.show(answer)).map(drop)
    }

    fn show(&self, answer: &FlowsAnswer) -> String {
        if self.count {
            return format!("{}\n", answer.chosen);
        }
        let mut table = Table::new(["protocol", "flow", "becomes", "element", "expires in"]);
        for flow in &answer.flows {
            table.row([
                protocol(flow),
                tuple(&flow.from),
                tuple(&flow.to),
                flow.element.clone(),
                format!("{:.0} s", flow.expires_s),
            ]);
        }
        let mut out = if table.is_empty() { String::new() } else { table.render() };
        let (shown, chosen) = (answer.flows.len(), answer.chosen);
        out += &match shown == chosen {
            true => format!("  {} flows\n", grouped(chosen as u64)),
            false => format!(
                "  {} of {} flows; --skip and --limit show others\n",
                grouped(shown as u64),
                grouped(chosen as u64)
            ),
        };
        out
    }
}
