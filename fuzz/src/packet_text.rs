//! Packets in words.

use net::notation::parse;

/// The notation: whatever is written, it is a frame of bounded size or an error.
pub fn packet(data: &[u8]) {
    if let Ok(frame) = parse(&String::from_utf8_lossy(data)) {
        assert!(frame.len() <= 1 << 18);
    }
}
