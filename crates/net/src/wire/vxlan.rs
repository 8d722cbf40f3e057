//! VXLAN (RFC 7348).

/// Bytes of the header; an Ethernet frame follows.
pub const HEADER_LEN: usize = 8;
/// UDP destination port.
pub const PORT: u16 = 4789;
/// Flag in the first byte: the network identifier is valid.
pub const FLAG_VNI: u8 = 0x08;

/// The header for a network identifier of 24 bits.
pub fn header(vni: u32) -> [u8; HEADER_LEN] {
    let [_, a, b, c] = vni.to_be_bytes();
    [FLAG_VNI, 0, 0, 0, a, b, c, 0]
}
