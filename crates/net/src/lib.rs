//! Bytes: packets, batches, wire formats, checksums, captures.
#![forbid(unsafe_code)]

pub mod annotation;
mod batch;
mod packet;

pub use annotation::Annotations;
pub use batch::Batch;
pub use packet::{BUFFER_SIZE, HEADROOM, Header, Packet, PacketType, Pool};
