//! Chains on devices of DPDK's.
#![allow(clippy::print_stderr, unreachable_pub, dead_code)]

#[path = "../live/lab.rs"]
mod lab;

mod captures;
mod manners;
mod traffic;

/// What DPDK is started with: pages of the usual size, and files of this process alone.
fn eal(lab: &lab::Lab, process: &str) -> String {
    let name = lab.folder().file_name().unwrap().to_string_lossy().into_owned();
    format!("--no-huge -m 256 --no-telemetry --no-pci --file-prefix={name}{process}")
}
