//! What is fuzzed: functions that take any bytes and must neither panic nor hang.
//!
//! The tests replay the corpus of each target, and simple mutations of it, on every run; a fuzzer
//! extends the corpus (see `README.md`).
#![forbid(unsafe_code)]

mod artefact;
mod capture;
mod chain;
mod click_text;
mod fed;
mod floods;
mod frame;
mod host_text;
mod packet_text;
mod program_text;
mod quic;
mod rule_text;
mod sealed;
mod state_text;
mod streams;
mod tunnels;

pub use artefact::{device, flows, manifest, object, openflow, p4, plan, rules, swx, topology};
pub use capture::pcap;
pub use chain::chain;
pub use click_text::{click, config};
pub use floods::{floods, syn_proxy};
pub use frame::frame;
pub use host_text::{containers, host_chain, redis, results, test_set};
pub use packet_text::packet;
pub use program_text::program;
pub use quic::quic;
pub use rule_text::{iptables, snort, urls};
pub use sealed::sealed;
pub use state_text::state;
pub use streams::streams;
pub use tunnels::tunnels;

/// Does something with any bytes that must hold whatever they are; panics if it does not.
pub type Target = fn(&[u8]);

/// Every target, by the name of its corpus.
pub const TARGETS: [(&str, Target); 32] = [
    ("chain", chain),
    ("click", click),
    ("config", config),
    ("containers", containers),
    ("device", device),
    ("floods", floods),
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
    ("quic", quic),
    ("redis", redis),
    ("results", results),
    ("rules", rules),
    ("sealed", sealed),
    ("snort", snort),
    ("state", state),
    ("streams", streams),
    ("syn_proxy", syn_proxy),
    ("test_set", test_set),
    ("topology", topology),
    ("tunnels", tunnels),
    ("urls", urls),
];
