//! Wire formats: typed views that read and write headers where they lie.
//!
//! A view wraps anything that yields bytes (`&[u8]`, `&mut [u8]`, a packet). `new` returns a view if the fixed
//! part of the header lies in the buffer; no accessor panics after that, whatever the bytes say: what a header
//! claims beyond the buffer's end is cut off there. Where a format holds lengths or a version, `new_checked`
//! also requires that these agree with one another and with the buffer.
//!
//! Numbers are in host order. A setter writes its field only; checksums are the caller's.

pub mod arp;
pub mod ether;
pub mod ether_type;
pub mod gre;
pub mod icmpv4;
pub mod icmpv6;
pub mod ip_protocol;
pub mod ipv4;
pub mod ipv6;
pub mod service;
pub mod tcp;
pub mod udp;
pub mod vlan;
pub mod vxlan;

pub use arp::Arp;
pub use ether::{EtherAddr, Ethernet};
pub use icmpv4::Icmpv4;
pub use icmpv6::Icmpv6;
pub use ipv4::Ipv4;
pub use ipv6::Ipv6;
pub use tcp::Tcp;
pub use udp::Udp;
pub use vlan::Vlan;

/// Declares a view over a buffer that holds at least the module's `HEADER_LEN` bytes.
macro_rules! view {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<T> {
            buffer: T,
        }

        impl<T: AsRef<[u8]>> $name<T> {
            /// A view of the buffer, if it holds the fixed part of the header.
            #[inline]
            pub fn new(buffer: T) -> Option<Self> {
                (buffer.as_ref().len() >= HEADER_LEN).then_some(Self { buffer })
            }

            /// A view of the fixed part of a header.
            #[inline]
            pub fn of(header: T) -> Self
            where
                T: std::borrow::Borrow<[u8; HEADER_LEN]>,
            {
                Self { buffer: header }
            }

            /// The buffer back.
            #[inline]
            pub fn into_inner(self) -> T {
                self.buffer
            }

            /// All bytes of the buffer, from the first of the header on.
            #[inline]
            pub fn bytes(&self) -> &[u8] {
                self.buffer.as_ref()
            }

            // The fixed part as an array: one length check, and constant indices after it need none.
            #[inline]
            fn fixed(&self) -> &[u8; HEADER_LEN] {
                self.buffer.as_ref().first_chunk().expect("checked by new")
            }
        }

        impl<T: AsRef<[u8]> + AsMut<[u8]>> $name<T> {
            #[inline]
            fn fixed_mut(&mut self) -> &mut [u8; HEADER_LEN] {
                self.buffer.as_mut().first_chunk_mut().expect("checked by new")
            }
        }
    };
}
use view;

/// The 16-bit number at a constant offset.
#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The 32-bit number at a constant offset.
#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline]
fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// Replaces the bits of `byte` that `mask` selects.
#[inline]
fn put_bits(byte: &mut u8, mask: u8, value: u8) {
    *byte = *byte & !mask | value & mask;
}

/// The bytes from `from` to `to`, both cut to the buffer.
#[inline]
fn cut(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    let to = to.min(bytes.len());
    &bytes[from.min(to)..to]
}

/// The bytes from `from` to `to` for writing, both cut to the buffer.
#[inline]
fn cut_mut(bytes: &mut [u8], from: usize, to: usize) -> &mut [u8] {
    let to = to.min(bytes.len());
    &mut bytes[from.min(to)..to]
}
