//! A quota: so many packets of each flow pass. The count of a flow is kept as its state: it outlives the function, and goes
//! with the flow.
//!
//! Configuration: how many.

use std::process::ExitCode;

use catena_nf::{Batch, Counter, NetworkFunction, Reason, Setup, field};

/// How many packets of a flow pass.
pub(crate) struct Quota {
    most: u64,
    flows: Counter,
    unread: Counter,
    above: Reason,
}

impl NetworkFunction for Quota {
    fn init(config: &str, setup: &mut Setup) -> Result<Self, String> {
        let most = config.trim().parse().ok().filter(|most| *most > 0);
        setup.state(field::ALL);
        Ok(Self {
            most: most.ok_or("expected a number of packets")?,
            flows: setup.counter("flows"),
            unread: setup.counter("unread"),
            above: setup.reason("above"),
        })
    }

    fn process(&mut self, batch: &mut Batch) {
        batch.for_each(|packet| {
            let Some(flow) = packet.flow() else { return };
            let had = match packet.read(&flow) {
                Ok(value) => value.and_then(|value| value.try_into().ok()).map(u64::from_le_bytes),
                Err(_) => return packet.count(self.unread, 1),
            };
            if had.is_none() {
                packet.count(self.flows, 1);
            }
            match had.unwrap_or(0) {
                had if had < self.most => {
                    packet.update(&flow, &(had + 1).to_le_bytes());
                }
                _ => packet.drop(self.above),
            }
        });
    }
}

fn main() -> ExitCode {
    catena_nf::main::<Quota>()
}
