//! The return path: a frame from the cores leaves, without its tag, by the port that the tag names. With other tags it
//! goes on in the tables.

use super::text::{Act, Entry, Name};
use crate::Device;
use crate::draft::Failure;

/// # Errors
/// An entry that lets frames from the cores do anything else, or a port that none leads to.
pub(super) fn check(entries: &[Entry], device: &Device<'_>) -> Result<(), Failure> {
    device.server_ports().try_for_each(|port| check_port(entries, device, port))
}

fn check_port(entries: &[Entry], device: &Device<'_>, cores: u32) -> Result<(), Failure> {
    let port = u128::from(cores);
    let mut from_cores: Vec<&Entry> = entries
        .iter()
        .filter(|entry| {
            let at = entry.when.iter().find(|bits| bits.name == Name::InPort);
            entry.table == 0 && at.is_none_or(|bits| port & bits.mask == bits.value)
        })
        .collect();
    from_cores.sort_by_key(|entry| std::cmp::Reverse(entry.priority));
    for entry in &from_cores {
        let known = |name: Name| matches!(name, Name::InPort | Name::Vlan);
        if let Some(other) = entry.when.iter().find(|bits| !known(bits.name)) {
            let message = format!("of frames from the cores {:?} is matched", other.name);
            return Err((entry.line, message));
        }
    }
    for &egress in device.egress.values() {
        let tag = 0x1000 | u128::from(egress);
        let first = from_cores.iter().find(|entry| {
            let tagged = entry.when.iter().find(|bits| bits.name == Name::Vlan);
            tagged.is_none_or(|bits| tag & bits.mask == bits.value)
        });
        let out = if egress == cores { Act::Back } else { Act::Output(egress) };
        match first {
            Some(entry) if entry.acts == [Act::PopTag, out] => {}
            Some(entry) => {
                let message = format!("frames from the cores do not leave by port {egress}");
                return Err((entry.line, message));
            }
            None => return Err((0, format!("no frame from the cores leaves by port {egress}"))),
        }
    }
    Ok(())
}
