//! How many packets and events the simulator does in a second, on one core: Ironside's evaluation on the backbone trace.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use sim::Chain;
use sim::experiments::{Bed, Cell, Window};

fn main() -> Result<(), String> {
    let bed = Bed::new("backbone", Window { warmup: 0, end: 600_000_000 })?;
    for policy in ["metron", "quadrant", "dyssect", "ironside", "ours"] {
        for name in ["chain1", "chain2"] {
            let chain = Chain::named(name).ok_or("there is no such chain")?;
            let cell = Cell::of(name, "backbone", policy, 200_000);
            // What the trace asks of cores is found once.
            bed.run(&cell, &chain)?;
            let begin = Instant::now();
            let report = bed.run(&cell, &chain)?;
            let second = |count: u64| count as f64 / begin.elapsed().as_secs_f64() / 1e6;
            println!(
                "{policy:8} {name}: {:5.2} million packets/s, {:5.2} million events/s",
                second(report.packets),
                second(report.events)
            );
        }
    }
    Ok(())
}
