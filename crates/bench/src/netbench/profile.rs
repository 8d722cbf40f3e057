//! The results as a cost profile: what hops between processes take.

use ir::costs::{CostProfile, HopCost, Processor, VERSION};

use super::results::{CellResult, Results};

impl Results {
    /// The costs of hops, for whoever decides where network functions run.
    ///
    /// # Errors
    /// If the machine's time stamp counter does not run evenly, so that there are no cycles.
    pub fn costs(&self) -> Result<CostProfile, String> {
        let machine = &self.machine;
        let why = "the time stamp counter of the machine does not run evenly, so that costs in cycles are not known";
        let frequency = machine.frequency.ok_or(why)?;
        let hops = self.cells.iter().filter(|of| !of.samples.is_empty());
        Ok(CostProfile {
            costs: VERSION,
            chain: String::new(),
            processor: Processor {
                name: machine.processor.clone(),
                frequency,
                is_virtual: machine.is_virtual,
                kernel: machine.kernel.clone(),
            },
            unix_time: machine.unix_time,
            method: format!("catena netbench: {} of each cell", self.runs()),
            traffic: Vec::new(),
            cores: 1,
            functions: Vec::new(),
            programs: Vec::new(),
            io: Vec::new(),
            hand_off: None,
            hops: hops.map(|of| hop(of, frequency)).collect(),
            capacity: None,
            remarks: self.remarks.clone(),
        })
    }
}

fn hop(of: &CellResult, frequency: f64) -> HopCost {
    let cell = &of.cell;
    let cycles = |nanoseconds: f64| nanoseconds * frequency / 1e9;
    let throughput = of.of_throughput(|t| t.received_rate);
    let ns = |of: Option<crate::statistics::Spread>| of.map(|spread| cycles(spread.median));
    HopCost {
        switch: cell.switch.clone(),
        version: of.version.clone(),
        io: cell.io.clone(),
        pairs: cell.pairs,
        hosts: cell.peer.hosts(),
        size: cell.size,
        bursts: [cell.burst, cell.latency_burst],
        cores: cell.cores,
        throughput: throughput.map(|spread| spread.median),
        round_trip: of.round_trips().map(|trips| [trips.p50, trips.p99]),
        send: ns(of.of_throughput(|t| t.sender_ns)),
        receive: ns(of.of_throughput(|t| t.receiver_ns)),
        forward: ns(of.spread(|sample| sample.throughput.as_ref()?.switch_ns)),
    }
}
