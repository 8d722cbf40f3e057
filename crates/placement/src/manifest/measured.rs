//! Shares of branches from what a run counted.

use std::collections::BTreeMap;

use super::drawn::Drawn;

/// What a path has on which no packet went: little, but it has to have a place.
const RARE: f64 = 1e-6;

/// By function: the shares of its ports. Functions that packets come to by one path say what it carries. What is left
/// goes evenly to the paths that meet others, and is dropped where there is none.
///
/// # Errors
/// Which function was not counted.
pub(super) fn shares(
    drawn: &Drawn,
    counts: &BTreeMap<String, u64>,
) -> Result<BTreeMap<usize, Vec<f64>>, String> {
    let names: Vec<&str> = drawn.names().collect();
    let counted = |at: usize| counts.get(names[at]).map(|count| *count as f64);
    let links = drawn.links();
    let mut shares = BTreeMap::new();
    for (from, name) in names.iter().enumerate() {
        let ports = drawn.ports(from);
        // Wires are not counted: what comes from them is what all together count.
        if ports == 0 || drawn.wires.contains(&from) {
            continue;
        }
        let all = counted(from).ok_or_else(|| format!("it has no packets of '{name}'"))?;
        let mut of_ports = vec![None; ports];
        for (_, port, to) in links.iter().filter(|link| link.0 == from) {
            let is_only = links.iter().filter(|link| link.2 == *to).count() == 1;
            of_ports[*port] = counted(*to).filter(|_| is_only && all > 0.0);
        }
        let known: f64 = of_ports.iter().flatten().sum();
        let open = of_ports.iter().filter(|of| of.is_none()).count();
        let rest = if all > 0.0 { (all - known).max(0.0) / open.max(1) as f64 } else { 1.0 };
        // Packets that are in flight may be counted here and not there.
        let whole = if all > 0.0 { all.max(known) } else { open as f64 };
        let share = |of: Option<f64>| (of.unwrap_or(rest) / whole).max(RARE / ports as f64);
        let of_ports: Vec<f64> = of_ports.into_iter().map(share).collect();
        let sum: f64 = of_ports.iter().sum();
        shares.insert(from, of_ports.into_iter().map(|of| of / sum.max(1.0)).collect());
    }
    Ok(shares)
}
