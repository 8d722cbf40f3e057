//! ARP for IPv4 over Ethernet (RFC 826).

use super::{EtherAddr, ether_type, put_u16, u16_at, view};
use std::net::Ipv4Addr;

/// Bytes of an ARP packet for IPv4 over Ethernet.
pub const HEADER_LEN: usize = 28;
/// Hardware type of Ethernet.
pub const ETHERNET: u16 = 1;
/// Operation: who has this address?
pub const REQUEST: u16 = 1;
/// Operation: I have.
pub const REPLY: u16 = 2;

view! {
    /// An ARP packet for IPv4 over Ethernet.
    Arp
}

impl<T: AsRef<[u8]>> Arp<T> {
    /// A view of the buffer, if it holds an ARP packet whose addresses are Ethernet's and IPv4's.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer).filter(|arp| {
            arp.hardware_type() == ETHERNET
                && arp.protocol_type() == ether_type::IPV4
                && arp.hardware_len() == 6
                && arp.protocol_len() == 4
        })
    }

    /// Hardware type; 1 is Ethernet.
    #[inline]
    pub fn hardware_type(&self) -> u16 {
        u16_at(self.fixed(), 0)
    }

    /// Protocol type, an ether type.
    #[inline]
    pub fn protocol_type(&self) -> u16 {
        u16_at(self.fixed(), 2)
    }

    /// Bytes of a hardware address.
    #[inline]
    pub fn hardware_len(&self) -> u8 {
        self.fixed()[4]
    }

    /// Bytes of a protocol address.
    #[inline]
    pub fn protocol_len(&self) -> u8 {
        self.fixed()[5]
    }

    /// Operation: [`REQUEST`], [`REPLY`] or another.
    #[inline]
    pub fn operation(&self) -> u16 {
        u16_at(self.fixed(), 6)
    }

    #[inline]
    fn ether(&self, at: usize) -> EtherAddr {
        let b = self.fixed();
        EtherAddr([b[at], b[at + 1], b[at + 2], b[at + 3], b[at + 4], b[at + 5]])
    }

    #[inline]
    fn ip(&self, at: usize) -> Ipv4Addr {
        let b = self.fixed();
        Ipv4Addr::new(b[at], b[at + 1], b[at + 2], b[at + 3])
    }

    /// Sender's Ethernet address.
    #[inline]
    pub fn sender_ether(&self) -> EtherAddr {
        self.ether(8)
    }

    /// Sender's IP address.
    #[inline]
    pub fn sender_ip(&self) -> Ipv4Addr {
        self.ip(14)
    }

    /// Target's Ethernet address; unknown in a request.
    #[inline]
    pub fn target_ether(&self) -> EtherAddr {
        self.ether(18)
    }

    /// Target's IP address.
    #[inline]
    pub fn target_ip(&self) -> Ipv4Addr {
        self.ip(24)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Arp<T> {
    /// Writes the constant fields of an ARP packet for IPv4 over Ethernet.
    #[inline]
    pub fn init(&mut self) {
        self.fixed_mut()[..6].copy_from_slice(&[0, 1, 8, 0, 6, 4]);
    }

    /// Sets the operation.
    #[inline]
    pub fn set_operation(&mut self, operation: u16) {
        put_u16(self.fixed_mut(), 6, operation);
    }

    /// Sets the sender's Ethernet address.
    #[inline]
    pub fn set_sender_ether(&mut self, addr: EtherAddr) {
        self.fixed_mut()[8..14].copy_from_slice(&addr.0);
    }

    /// Sets the sender's IP address.
    #[inline]
    pub fn set_sender_ip(&mut self, addr: Ipv4Addr) {
        self.fixed_mut()[14..18].copy_from_slice(&addr.octets());
    }

    /// Sets the target's Ethernet address.
    #[inline]
    pub fn set_target_ether(&mut self, addr: EtherAddr) {
        self.fixed_mut()[18..24].copy_from_slice(&addr.0);
    }

    /// Sets the target's IP address.
    #[inline]
    pub fn set_target_ip(&mut self, addr: Ipv4Addr) {
        self.fixed_mut()[24..28].copy_from_slice(&addr.octets());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0u8; HEADER_LEN];
        assert!(Arp::new_checked(&bytes).is_none());
        let mut arp = Arp::new(&mut bytes[..]).unwrap();
        arp.init();
        arp.set_operation(REPLY);
        arp.set_sender_ether(EtherAddr([1, 2, 3, 4, 5, 6]));
        arp.set_sender_ip(Ipv4Addr::new(10, 0, 0, 1));
        arp.set_target_ether(EtherAddr([6, 5, 4, 3, 2, 1]));
        arp.set_target_ip(Ipv4Addr::new(10, 0, 0, 2));
        let expected =
            [0, 1, 8, 0, 6, 4, 0, 2, 1, 2, 3, 4, 5, 6, 10, 0, 0, 1, 6, 5, 4, 3, 2, 1, 10, 0, 0, 2];
        assert_eq!(bytes, expected);
        let arp = Arp::new_checked(&bytes).unwrap();
        assert_eq!(arp.operation(), REPLY);
        assert_eq!(arp.sender_ether(), EtherAddr([1, 2, 3, 4, 5, 6]));
        assert_eq!(arp.sender_ip(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(arp.target_ether(), EtherAddr([6, 5, 4, 3, 2, 1]));
        assert_eq!(arp.target_ip(), Ipv4Addr::new(10, 0, 0, 2));
        assert!(Arp::new(&bytes[1..]).is_none());
    }
}
