//! Bytes: packets, batches, wire formats, checksums, captures.
#![deny(unsafe_code)]

pub mod annotation;
mod batch;
mod buffer;
pub mod checksum;
pub mod flow;
pub mod notation;
mod packet;
pub mod pcap;
pub mod wire;

pub use annotation::Annotations;
pub use batch::Batch;
pub use buffer::{Buffer, Loan};
pub use packet::{BUFFER_SIZE, CARRIED, HEADROOM, Header, Packet, PacketType, Pool};
