//! Chains on devices of DPDK's.

use lab::live::{Catena, Lab};

mod captures;
mod manners;
mod netbench;
mod swx;
mod traffic;

/// The program under test.
const CATENA: Catena = Catena(env!("CARGO_BIN_EXE_catena"));

/// What DPDK is started with: pages of the usual size, and files of this process alone.
fn eal(lab: &Lab, process: &str) -> String {
    let name = lab.folder().file_name().unwrap().to_string_lossy().into_owned();
    format!("--no-huge -m 256 --no-telemetry --no-pci --file-prefix={name}{process}")
}
