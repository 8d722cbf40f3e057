//! OpenFlow 1.3 as bytes: messages are encoded and decoded; sockets are others' business.
//!
//! Bytes come from outside and may be anything: what is not well-formed is [`Malformed`], what is not known here stays
//! [`Message::Other`] or a field, action or instruction that is called so. Bundles are those of ONF's extension 230, which gives
//! OpenFlow 1.3 what 1.4 has. Of Open vSwitch's extensions, fields by Nicira's numbers are known.

mod flow;
mod message;
mod reader;

pub use flow::Stats;
pub use message::{
    ANY, ATOMIC, BUNDLE_FAILED, Bundle, Command, Error, Limit, Message, MeterChange, Metered, Port,
    Reply, Request, Switch, TableFeatures,
};
pub use reader::Malformed;

/// The version that is spoken: OpenFlow 1.3.
pub const VERSION: u8 = 4;

/// Bytes of a message's head.
pub const HEAD: usize = 8;

/// Bytes that the message has that begins here, and at least [`HEAD`]; none if there is no head yet.
///
/// # Errors
/// If the head says less.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(&[_, _, high, low]) = bytes.first_chunk::<4>() else { return Ok(None) };
    match usize::from(u16::from_be_bytes([high, low])) {
        length if length >= HEAD => Ok(Some(length)),
        length => Err(Malformed(format!("a message says that it has {length} bytes"))),
    }
}

/// Appends a message with its transaction number.
pub fn encode(message: &Message, number: u32, out: &mut Vec<u8>) {
    message.encode(VERSION, number, out);
}

/// The transaction number of a whole message, and the message.
///
/// # Errors
/// What is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<(u32, Message), Malformed> {
    Message::decode(bytes)
}

#[cfg(test)]
mod tests;
