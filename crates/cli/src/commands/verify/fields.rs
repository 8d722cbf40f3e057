//! Frames field by field, to say what differs between two of them.

use std::ops::Range;

use view::explain::fields_of;

/// How one frame differs from another: field by field where both have the same headers.
pub(super) fn difference(mine: &[u8], theirs: &[u8], ethernet: bool) -> Vec<String> {
    let mut parts = Vec::new();
    if mine.len() != theirs.len() {
        parts.push(format!("length {}, not {}", mine.len(), theirs.len()));
    }
    let (here, there) = (fields_of(mine, ethernet), fields_of(theirs, ethernet));
    if !here.iter().map(|field| &field.0).eq(there.iter().map(|field| &field.0)) {
        parts.push("other headers".into());
        return parts;
    }
    for ((name, _, one), (_, _, other)) in here.iter().zip(&there) {
        if one != other {
            parts.push(format!("{name} {one}, not {other}"));
        }
    }
    // Bits of a header that are in none of its fields.
    let is_named = here.iter().zip(&there).any(|(one, other)| one.2 != other.2);
    let in_field = |at: usize| is_named && here.iter().any(|field| field.1.contains(&at));
    let end = |all: &[(String, Range<usize>, String)]| {
        all.iter().map(|field| field.1.end).max().unwrap_or(0)
    };
    let mut heads = mine.iter().zip(theirs).take(end(&here).min(end(&there))).enumerate();
    if let Some((at, (a, b))) = heads.find(|(at, (a, b))| a != b && !in_field(*at)) {
        parts.push(format!("byte {at} {a:02x}, not {b:02x}"));
    }
    let (a, b) = (mine.get(end(&here)..), theirs.get(end(&there)..));
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    if a.iter().zip(b).any(|(a, b)| a != b) {
        let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
        parts.push(format!("payload from byte {at} on {:02x}, not {:02x}", a[at], b[at]));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Vec<u8> {
        net::notation::parse(text).expect("a frame")
    }

    #[test]
    fn fields_are_named() {
        let one = frame("udp 10.0.0.1:5000 > 20.0.0.1:53 ttl 64 tos 4");
        let other = frame("udp 10.0.0.1:5000 > 20.0.0.1:53 ttl 63 tos 8");
        let parts = difference(&one, &other, true);
        assert!(parts.contains(&"ip.ttl 64, not 63".to_string()), "{parts:?}");
        assert!(parts.contains(&"ip.dscp 1, not 2".to_string()), "{parts:?}");
        assert!(parts.iter().all(|part| !part.starts_with("ip.src")), "{parts:?}");
        let other = frame("tcp 10.0.0.1:5000 > 20.0.0.1:53 ttl 64 tos 4");
        assert!(difference(&one, &other, true).contains(&"other headers".to_string()));
        assert!(difference(&one, &one, true).is_empty());
        // Nothing that differs is passed over.
        for ends in ["arp who-has 10.0.0.1 tell 10.0.0.2", "tcp 10.0.0.1:1 > 20.0.0.1:2 flags S"] {
            let one = frame(ends);
            for bit in 0..8 * one.len() {
                let mut other = one.clone();
                other[bit / 8] ^= 0x80 >> (bit % 8);
                assert!(!difference(&one, &other, true).is_empty(), "{ends}: bit {bit}");
            }
        }
        // What is cut off ends no program.
        for end in 0..one.len() {
            difference(&one[..end], &one, true);
        }
    }
}
