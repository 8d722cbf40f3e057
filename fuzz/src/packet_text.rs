//! Packets in words.

use net::notation::{describe, parse};

/// The notation: what parses is a frame that can be put into words.
pub fn packet(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(frame) = parse(&text) {
        assert!(!describe(&frame, !text.trim_start().starts_with("bare")).is_empty());
    }
}
