//! Installs on running devices what chains become there, and says what they have.
//!
//! A device that speaks OpenFlow is an [`openflow::Switch`]: it is changed by one bundle, all of it or nothing. Interfaces of
//! this host whose frames the kernel's XDP programs take are an [`xdp::Device`]. What is there of others is left alone.
#![forbid(unsafe_code)]

pub mod openflow;
pub mod xdp;

/// A number for a chain of this name, by which what it installed is known. Names that are alike get other numbers, on
/// every machine the same (FNV-1a, folded).
fn number(chain: &str) -> u64 {
    let hash = chain.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^ hash >> 32 ^ hash >> 16
}
