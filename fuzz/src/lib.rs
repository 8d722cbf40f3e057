//! What is fuzzed: functions that take any bytes and must neither panic nor hang.
//!
//! The tests replay the corpus of each target, and simple mutations of it, on every run; a fuzzer
//! extends the corpus (see `README.md`).
#![forbid(unsafe_code)]

mod artefact;
mod capture;
mod chain;
mod click_text;
mod frame;
mod host_text;
mod packet_text;
mod program_text;
mod rule_text;
mod state_text;

pub use artefact::{device, flows, manifest, object, openflow, p4, plan, rules, swx, topology};
pub use capture::pcap;
pub use chain::chain;
pub use click_text::{click, config};
pub use frame::frame;
pub use host_text::{containers, host_chain, results, test_set};
pub use packet_text::packet;
pub use program_text::program;
pub use rule_text::{iptables, snort, urls};
pub use state_text::state;

/// Does something with any bytes that must hold whatever they are; panics if it does not.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus.
pub const TARGETS: [(&str, Target); 25] = [
    ("chain", chain),
    ("click", click),
    ("config", config),
    ("containers", containers),
    ("device", device),
    ("flows", flows),
    ("frame", frame),
    ("host_chain", host_chain),
    ("iptables", iptables),
    ("manifest", manifest),
    ("object", object),
    ("p4", p4),
    ("swx", swx),
    ("openflow", openflow),
    ("packet", packet),
    ("pcap", pcap),
    ("plan", plan),
    ("program", program),
    ("results", results),
    ("rules", rules),
    ("snort", snort),
    ("state", state),
    ("test_set", test_set),
    ("topology", topology),
    ("urls", urls),
];
