//! An access list: drops IPv4 packets from addresses that its configuration denies.
//!
//! Configuration: one `deny ADDRESS` a line.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::process::ExitCode;

use catena_nf::{Batch, Counter, NetworkFunction, Reason, Setup};

/// Addresses that are denied.
pub(crate) struct AccessList {
    denied: HashSet<Ipv4Addr>,
    seen: Counter,
    listed: Reason,
}

impl NetworkFunction for AccessList {
    fn init(config: &str, setup: &mut Setup) -> Result<Self, String> {
        let mut denied = HashSet::new();
        for line in config.lines().filter(|line| !line.trim().is_empty()) {
            let address =
                line.trim().strip_prefix("deny ").and_then(|address| address.parse().ok());
            denied.insert(
                address.ok_or_else(|| format!("expected `deny ADDRESS`, and not {line:?}"))?,
            );
        }
        Ok(Self { denied, seen: setup.counter("ipv4"), listed: setup.reason("denied") })
    }

    fn process(&mut self, batch: &mut Batch) {
        batch.for_each(|packet| {
            let Some([8, 0, ..]) = packet.bytes().get(12..34) else { return };
            let Some(source) =
                packet.bytes().get(26..30).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
            else {
                return;
            };
            packet.count(self.seen, 1);
            if self.denied.contains(&Ipv4Addr::from(source)) {
                packet.drop(self.listed);
            }
        });
    }
}

fn main() -> ExitCode {
    catena_nf::main::<AccessList>()
}
