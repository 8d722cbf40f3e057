//! What a pool shows.

use std::fmt::Write;
use std::net::Ipv4Addr;

use super::mappings::{Block, Event};
use super::{BlockOptions, Options, Pool};

fn ip(address: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(address)
}

fn protocol_name(protocol: u8) -> String {
    match protocol {
        1 => "icmp".to_string(),
        6 => "tcp".to_string(),
        17 => "udp".to_string(),
        other => other.to_string(),
    }
}

impl Options {
    /// A block with its ports.
    fn show(&self, (address, number): Block) -> String {
        let size = self.blocks.map_or(1, |BlockOptions { size, .. }| size);
        let (first, last) = self.block_range(number, size);
        format!("{}:{first}-{last}", ip(address))
    }

    fn show_event(&self, event: &Event) -> String {
        let what = if event.is_given { "given to" } else { "returned by" };
        format!("block {} {what} {}", self.show(event.block), ip(event.host))
    }
}

/// Lines that are printed for a packet at the most.
const MOST_LINES: usize = 32;

impl Pool {
    /// The answer of a handler.
    pub(crate) fn describe(&self, handler: &str) -> String {
        let (options, mappings) = (self.options(), self.state.mappings.borrow());
        let mut text = String::new();
        match handler {
            "mappings" => {
                for ((protocol, (address, port)), mapping) in mappings.all() {
                    let (inside, inside_port) = mapping.inside.endpoint;
                    let protocol = protocol_name(protocol);
                    let (inside, address) = (ip(inside), ip(address));
                    let _ = write!(text, "{protocol} {inside}:{inside_port} {address}:{port}");
                    let _ = match mapping.inside.remote {
                        (0, 0) => Ok(()),
                        (remote, 0) => write!(text, " for {}", ip(remote)),
                        (remote, port) => write!(text, " for {}:{port}", ip(remote)),
                    };
                    let _ = match mapping.is_static {
                        true => writeln!(text, " static"),
                        false => writeln!(text, " flows {}", mapping.flows),
                    };
                }
            }
            "hosts" => {
                for (address, host) in mappings.all_hosts() {
                    let (count, blocks) = (host.mappings, host.blocks.len());
                    let (address, public) = (ip(address), ip(host.public));
                    let _ = writeln!(text, "{address} {public} mappings {count} blocks {blocks}");
                }
            }
            "blocks" => {
                for (block, (host, count)) in mappings.all_blocks() {
                    let _ = writeln!(text, "{} {} mappings {count}", options.show(block), ip(host));
                }
            }
            "blocks_given" => return mappings.given.to_string(),
            "blocks_returned" => return mappings.returned.to_string(),
            _ => {
                for event in &mappings.events {
                    let (seconds, micros) =
                        (event.time / 1_000_000_000, event.time / 1000 % 1_000_000);
                    let _ = writeln!(text, "{seconds}.{micros:06} {}", options.show_event(event));
                }
            }
        }
        text
    }

    /// Lines about blocks that were given and returned since they were asked for; not all if they are many.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut mappings = self.state.mappings.borrow_mut();
        let unprinted = std::mem::take(&mut mappings.unprinted);
        if !self.options().prints || unprinted == 0 {
            return Vec::new();
        }
        let kept = unprinted.min(mappings.events.len());
        let events = mappings.events.range(mappings.events.len() - kept..);
        let mut lines: Vec<String> =
            events.take(MOST_LINES).map(|event| self.options().show_event(event)).collect();
        if unprinted > lines.len() {
            lines.push(format!("{} more blocks: see block_log", unprinted - lines.len()));
        }
        lines
    }
}
