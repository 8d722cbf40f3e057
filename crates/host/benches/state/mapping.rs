//! A function with state of flows, as a NAT has it: the first packet of a flow chooses a port, which all packets get.

use catena_nf::{Batch, NetworkFunction, Setup, field};

/// The first packet of a flow updates its state, the others read it.
pub(crate) const MAPS: &str = "maps";

/// Each packet reads the state of its flow and updates it.
pub(crate) const COUNTS: &str = "counts";

/// Chooses ports, and counts packets if it is to.
pub(crate) struct Mapping {
    next: u16,
    counts: bool,
}

impl NetworkFunction for Mapping {
    fn init(config: &str, setup: &mut Setup) -> Result<Self, String> {
        setup.state(field::ALL);
        Ok(Self { next: 0, counts: config == COUNTS })
    }

    fn process(&mut self, batch: &mut Batch) {
        batch.for_each(|packet| {
            let Some(flow) = packet.flow() else { return };
            // A port, and the packets so far.
            let known: Option<[u8; 10]> = match packet.read(&flow) {
                Ok(value) => value.and_then(|value| value.try_into().ok()),
                Err(_) => return,
            };
            let mut value = known.unwrap_or_else(|| {
                self.next = self.next.wrapping_add(1) | 1024;
                let mut value = [0; 10];
                value[..2].copy_from_slice(&self.next.to_be_bytes());
                value
            });
            if self.counts {
                value[9] = value[9].wrapping_add(1);
            }
            if self.counts || known.is_none() {
                packet.update(&flow, &value);
            }
            if let Some(port) = packet.bytes_mut().and_then(|bytes| bytes.get_mut(34..36)) {
                port.copy_from_slice(&value[..2]);
            }
        });
    }
}
