//! ICMP for IPv4 (RFC 792).

use super::{cut, put_u16, put_u32, u16_at, u32_at, view};
use crate::checksum::Sum;

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

macro_rules! types {
    ($($(#[$doc:meta])* $constant:ident = $number:literal, $name:literal;)*) => {
        /// Message types.
        pub mod message {
            $($(#[$doc])* pub const $constant: u8 = $number;)*
        }

        const TYPES: &[(&str, u8)] = &[$(($name, $number)),*];
    };
}

types! {
    /// Answer to an echo request.
    ECHO_REPLY = 0, "echo-reply";
    /// Destination unreachable.
    UNREACHABLE = 3, "unreachable";
    /// Source quench.
    SOURCE_QUENCH = 4, "sourcequench";
    /// Redirect.
    REDIRECT = 5, "redirect";
    /// Echo request.
    ECHO = 8, "echo";
    /// Router advertisement.
    ROUTER_ADVERT = 9, "routeradvert";
    /// Router solicitation.
    ROUTER_SOLICIT = 10, "routersolicit";
    /// Time exceeded.
    TIME_EXCEEDED = 11, "timeexceeded";
    /// Parameter problem.
    PARAMETER_PROBLEM = 12, "parameterproblem";
    /// Timestamp request.
    TIMESTAMP = 13, "timestamp";
    /// Timestamp reply.
    TIMESTAMP_REPLY = 14, "timestamp-reply";
    /// Information request.
    INFO_REQUEST = 15, "inforeq";
    /// Information reply.
    INFO_REPLY = 16, "inforeq-reply";
    /// Address mask request.
    MASK_REQUEST = 17, "maskreq";
    /// Address mask reply.
    MASK_REPLY = 18, "maskreq-reply";
}

// (type, name, code)
const CODES: &[(u8, &str, u8)] = &[
    (message::UNREACHABLE, "net", 0),
    (message::UNREACHABLE, "host", 1),
    (message::UNREACHABLE, "protocol", 2),
    (message::UNREACHABLE, "port", 3),
    (message::UNREACHABLE, "needfrag", 4),
    (message::UNREACHABLE, "srcroutefail", 5),
    (message::UNREACHABLE, "netunknown", 6),
    (message::UNREACHABLE, "hostunknown", 7),
    (message::UNREACHABLE, "isolated", 8),
    (message::UNREACHABLE, "netprohibited", 9),
    (message::UNREACHABLE, "hostprohibited", 10),
    (message::UNREACHABLE, "tosnet", 11),
    (message::UNREACHABLE, "toshost", 12),
    (message::UNREACHABLE, "filterprohibited", 13),
    (message::UNREACHABLE, "hostprecedence", 14),
    (message::UNREACHABLE, "precedencecutoff", 15),
    (message::REDIRECT, "net", 0),
    (message::REDIRECT, "host", 1),
    (message::REDIRECT, "tosnet", 2),
    (message::REDIRECT, "toshost", 3),
    (message::TIME_EXCEEDED, "transit", 0),
    (message::TIME_EXCEEDED, "reassembly", 1),
    (message::PARAMETER_PROBLEM, "erroratptr", 0),
    (message::PARAMETER_PROBLEM, "missingopt", 1),
    (message::PARAMETER_PROBLEM, "length", 2),
];

/// A message type by the name that Click gives it.
pub fn type_by_name(name: &str) -> Option<u8> {
    TYPES.iter().find(|&&(known, _)| known == name).map(|&(_, number)| number)
}

/// Click's name of a message type.
pub fn type_name(number: u8) -> Option<&'static str> {
    TYPES.iter().find(|&&(_, known)| known == number).map(|&(name, _)| name)
}

/// A code of a message type by the name that Click gives it.
pub fn code_by_name(message_type: u8, name: &str) -> Option<u8> {
    CODES
        .iter()
        .find(|&&(of, known, _)| of == message_type && known == name)
        .map(|&(.., code)| code)
}

/// True for the error messages, which quote the packet that caused them and must cause none themselves.
#[inline]
pub const fn is_error(message_type: u8) -> bool {
    use message::*;
    matches!(
        message_type,
        UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM
    )
}

view! {
    /// An ICMP message of IPv4.
    Icmpv4
}

impl<T: AsRef<[u8]>> Icmpv4<T> {
    /// Message type.
    #[inline]
    pub fn message_type(&self) -> u8 {
        self.fixed()[0]
    }

    /// Code.
    #[inline]
    pub fn code(&self) -> u8 {
        self.fixed()[1]
    }

    /// Checksum.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.fixed(), 2)
    }

    /// The second word of the header, whose meaning depends on the type.
    #[inline]
    pub fn rest(&self) -> u32 {
        u32_at(self.fixed(), 4)
    }

    /// The next hop's MTU in bytes, in "fragmentation needed" (RFC 1191).
    #[inline]
    pub fn mtu(&self) -> u16 {
        u16_at(self.fixed(), 6)
    }

    /// What follows the header; in an error message, the packet that caused it.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), HEADER_LEN, usize::MAX)
    }

    /// True if the checksum over the buffer is right; the buffer must end with the message.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        Sum::of(self.bytes()).checksum() == 0
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Icmpv4<T> {
    /// Sets the message type.
    #[inline]
    pub fn set_message_type(&mut self, message_type: u8) {
        self.fixed_mut()[0] = message_type;
    }

    /// Sets the code.
    #[inline]
    pub fn set_code(&mut self, code: u8) {
        self.fixed_mut()[1] = code;
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.fixed_mut(), 2, checksum);
    }

    /// Sets the second word of the header.
    #[inline]
    pub fn set_rest(&mut self, word: u32) {
        put_u32(self.fixed_mut(), 4, word);
    }

    /// Sets the identifier.
    #[inline]
    pub fn set_id(&mut self, id: u16) {
        put_u16(self.fixed_mut(), 4, id);
    }

    /// Computes the checksum anew over the buffer; the buffer must end with the message.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let checksum = Sum::of(self.bytes()).checksum();
        self.set_checksum(checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written() {
        let mut bytes = *b"\0\0\0\0\0\0\0\0abc";
        let mut icmp = Icmpv4::new(&mut bytes[..]).unwrap();
        icmp.set_message_type(message::ECHO);
        icmp.set_code(2);
        icmp.set_rest(0x1111_0007);
        icmp.set_id(0x1234);
        icmp.fill_checksum();
        let icmp = Icmpv4::new(&bytes).unwrap();
        assert_eq!((icmp.message_type(), icmp.code(), icmp.rest()), (8, 2, 0x1234_0007));
        assert_eq!(icmp.mtu(), 7);
        assert!(icmp.checksum_ok());
        assert_eq!(icmp.payload(), b"abc");
        bytes[10] ^= 1;
        assert!(!Icmpv4::new(&bytes).unwrap().checksum_ok());
        assert!(Icmpv4::new(&bytes[..7]).is_none());
    }

    #[test]
    fn names() {
        assert_eq!(type_by_name("echo-reply"), Some(0));
        assert_eq!(type_name(11), Some("timeexceeded"));
        assert_eq!(type_by_name("none"), None);
        assert_eq!(code_by_name(3, "needfrag"), Some(4));
        assert_eq!(code_by_name(5, "needfrag"), None);
        assert!(is_error(3) && !is_error(8));
    }
}
