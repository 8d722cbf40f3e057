//! The packet that an ICMP error quotes.

use ir::Reason;
use net::Packet;
use net::wire::ip_protocol::{DCCP, ICMP, TCP, UDP};
use net::wire::{Ipv4, icmpv4};

use super::ip_header::{self, NO_HEADER};

/// Not an ICMP packet.
pub(crate) const NOT_ICMP: Reason = Reason("not-icmp");
/// Not an ICMP error that quotes an IP header.
pub(crate) const NOT_ERROR: Reason = Reason("not-an-icmp-error");

/// Where the quoted header starts in the ICMP message.
pub(crate) const QUOTED: usize = 8;

/// What an error says about the packet that it quotes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Quote {
    pub protocol: u8,
    pub src: u32,
    pub dst: u32,
    /// Where the quoted transport header starts in the ICMP message.
    pub transport: usize,
    /// Source port, destination port, if they are quoted.
    pub ports: Option<u32>,
    /// The sequence number, if it is TCP and quoted.
    pub seq: Option<u32>,
    /// The identifier, if it is an echo request.
    pub identifier: Option<u16>,
    pub checksum: u16,
    /// The transport protocol's checksum, if it is quoted.
    pub transport_checksum: Option<u16>,
}

/// Where a transport protocol has its checksum.
pub(crate) fn checksum_offset(protocol: u8) -> usize {
    match protocol {
        TCP => 16,
        ICMP => 2,
        _ => 6,
    }
}

impl Quote {
    /// What a packet with a marked header quotes.
    ///
    /// # Errors
    /// Why it quotes nothing: [`NO_HEADER`], [`NOT_ICMP`] or [`NOT_ERROR`].
    pub(crate) fn of(packet: &Packet) -> Result<Self, Reason> {
        let ip = ip_header::view(packet).ok_or(NO_HEADER)?;
        if ip.protocol() != ICMP {
            return Err(NOT_ICMP);
        }
        let message = packet.transport().unwrap_or(&[]);
        let quoted = message.get(QUOTED..).and_then(Ipv4::new).ok_or(NOT_ERROR)?;
        let is_error = icmpv4::is_error(message[0]);
        if ip.is_later_fragment() || !is_error || quoted.version() != 4 || quoted.header_len() < 20
        {
            return Err(NOT_ERROR);
        }
        let word = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
        let double = |at: usize| Some(u32::from(word(at)?) << 16 | u32::from(word(at + 2)?));
        let transport = QUOTED + quoted.header_len();
        let protocol = quoted.protocol();
        let behind = message.len().saturating_sub(transport);
        let mut quote = Self {
            protocol,
            src: quoted.src().to_bits(),
            dst: quoted.dst().to_bits(),
            transport,
            checksum: quoted.checksum(),
            ..Self::default()
        };
        if !quoted.is_later_fragment() {
            match protocol {
                TCP | UDP | DCCP if behind >= 8 => quote.ports = double(transport),
                ICMP if behind >= 6 && message[transport] == 8 => {
                    quote.identifier = word(transport + 4);
                }
                _ => {}
            }
            if protocol == TCP && quote.ports.is_some() {
                quote.seq = double(transport + 4);
            }
            if quote.ports.is_some() || quote.identifier.is_some() {
                quote.transport_checksum = word(transport + checksum_offset(protocol));
            }
        }
        Ok(quote)
    }
}
