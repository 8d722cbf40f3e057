//! What an element changed in a packet.

use dataplane::trace::Seen;
use ir::Field;
use ir::field::anno;
use ir::layout::Bytes;
use net::Header;

use super::anatomy::{self, brief, headers, layers, say};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A field, annotation or run of bytes: its name, before and after.
    Field { name: String, before: String, after: String },
    /// Bytes were removed in front or at the end.
    Removed { bytes: usize, front: bool, what: String },
    /// Bytes were added in front or at the end.
    Added { bytes: usize, front: bool, what: String },
    /// The packet is another one.
    Replaced { before: String, after: String },
    /// A header is marked elsewhere, in bytes from the first data byte.
    Mark { header: &'static str, before: Option<isize>, after: Option<isize> },
}

/// Bytes that are shown of a change in what has no name.
const SHOWN: usize = 16;
/// With so many changed fields a packet counts as another one if its bytes are others too.
const MANY: usize = 5;

/// All changes from one state to another.
pub(super) fn changes(before: &Seen, after: &Seen) -> Vec<Change> {
    let shift = shift(before, after);
    let mut changes = lengths(before, after, shift);
    let mut fields = fields(before, after, shift);
    let alike = alike(before, after, shift);
    if fields.len() >= MANY && alike * 2 < before.data().len().min(after.data().len()).min(64) {
        fields = vec![Change::Replaced { before: brief(before), after: brief(after) }];
        changes.clear();
    }
    changes.append(&mut fields);
    changes.extend(annotations(before, after));
    changes.extend(marks(before, after));
    changes
}

/// Bytes by which the data moved: positive if bytes were added in front.
fn shift(before: &Seen, after: &Seen) -> isize {
    let mut candidates = vec![0, after.data().len() as isize - before.data().len() as isize];
    for header in [Header::Mac, Header::Network, Header::Transport] {
        if let (Some(b), Some(a)) = (before.header_offset(header), after.header_offset(header)) {
            candidates.push(a - b);
        }
    }
    let longest = before.data().len().min(after.data().len());
    let best = candidates.into_iter().max_by_key(|&shift| {
        let overlap = overlap(before, after, shift).0.len();
        // As much as possible stays, as much as possible of it the same, and nothing moves.
        (alike(before, after, shift), overlap.min(longest), std::cmp::Reverse(shift.abs()))
    });
    best.unwrap_or(0)
}

/// The bytes that both have, before and after.
fn overlap<'a>(before: &'a Seen, after: &'a Seen, shift: isize) -> (&'a [u8], &'a [u8]) {
    let (b, a) = (before.data(), after.data());
    let b = b.get(shift.min(0).unsigned_abs()..).unwrap_or_default();
    let a = a.get(shift.max(0) as usize..).unwrap_or_default();
    let n = b.len().min(a.len());
    (&b[..n], &a[..n])
}

/// How many of the first bytes that both have are the same.
fn alike(before: &Seen, after: &Seen, shift: isize) -> usize {
    let (b, a) = overlap(before, after, shift);
    b.iter().zip(a).take(256).filter(|(x, y)| x == y).count()
}

fn lengths(before: &Seen, after: &Seen, shift: isize) -> Vec<Change> {
    let mut changes = Vec::new();
    let (old, new) = (before.data().len(), after.data().len());
    let front = shift.unsigned_abs().min(if shift < 0 { old } else { new });
    if shift < 0 {
        changes.push(Change::Removed {
            bytes: front,
            front: true,
            what: headers(before, 0..front),
        });
    } else if shift > 0 {
        changes.push(Change::Added { bytes: front, front: true, what: headers(after, 0..front) });
    }
    let tail = new as isize - old as isize - shift;
    let bytes = tail.unsigned_abs();
    let what = String::new();
    if tail < 0 && shift.unsigned_abs() <= old {
        changes.push(Change::Removed { bytes, front: false, what });
    } else if tail > 0 {
        changes.push(Change::Added { bytes, front: false, what });
    }
    changes
}

/// Fields that differ, and bytes that belong to none.
fn fields(before: &Seen, after: &Seen, shift: isize) -> Vec<Change> {
    let (old, new) = overlap(before, after, shift);
    if old == new {
        return Vec::new();
    }
    let cut = shift.min(0).unsigned_abs();
    let mut changes = Vec::new();
    let mut covered = vec![false; old.len()];
    for layer in layers(before).headers() {
        for &field in layer.kind.fields() {
            // Fields of a header that lost its front are not what they were.
            let Some(at) = usize::try_from(layer.offset).ok().and_then(|at| at.checked_sub(cut))
            else {
                continue;
            };
            let values = (
                anatomy::read_in(old, at, layer.kind, field),
                anatomy::read_in(new, at, layer.kind, field),
            );
            let (Some(b), Some(a)) = values else { continue };
            let (first, last) = anatomy::within(layer.kind, field).byte_range();
            let bits = field.offset % 8 != 0 || field.width % 8 != 0;
            if let Some(bytes) = covered.get_mut(at + first..at + last) {
                // Half a byte covers it if its other half is the same or has a name as well.
                let same = bits && b == a;
                bytes.iter_mut().filter(|_| !same).for_each(|c| *c = true);
            }
            if b != a {
                let name = layer.field_name(field);
                let checksum = name.ends_with(".checksum");
                let field = (layer.kind, field);
                let (before, after) = (say(field, b), say(field, a));
                changes.push((checksum, Change::Field { name, before, after }));
            }
        }
    }
    // Checksums follow from the rest.
    changes.sort_by_key(|(checksum, _)| *checksum);
    let mut changes: Vec<Change> = changes.into_iter().map(|(_, c)| c).collect();
    let differs = |i: usize| old[i] != new[i] && !covered[i];
    let mut at = 0;
    while let Some(start) = (at..old.len()).find(|&i| differs(i)) {
        let end = (start..old.len()).find(|&i| !differs(i)).unwrap_or(old.len());
        let shown = start..end.min(start + SHOWN);
        let more = if shown.end < end { "…" } else { "" };
        let hex = |bytes: &[u8]| {
            bytes[shown.clone()].iter().map(|b| format!("{b:02x}")).collect::<String>() + more
        };
        let first = start + shift.max(0) as usize;
        let name = match end - start {
            1 => format!("byte {first}"),
            n => format!("bytes {first}-{}", first + n - 1),
        };
        changes.push(Change::Field { name, before: hex(old), after: hex(new) });
        at = end;
    }
    changes
}

fn annotations(before: &Seen, after: &Seen) -> Vec<Change> {
    const KNOWN: [Field; 6] = [
        anno::DST_IP,
        anno::PAINT,
        anno::ICMP_PARAMETER_PROBLEM,
        anno::FIX_IP_SRC,
        anno::VLAN_TCI,
        anno::EXTRA_LENGTH,
    ];
    let (old, new) = (before.annotations.bytes(), after.annotations.bytes());
    let mut changes = Vec::new();
    let mut covered = [false; net::annotation::SIZE];
    // An IPv6 address takes the room of the IPv4 one and more.
    let wide = old[4..16] != new[4..16];
    let fields = KNOWN.map(|f| if wide && f == anno::DST_IP { anno::DST_IP6 } else { f });
    for field in fields {
        let (first, last) = field.byte_range();
        covered[first..last].fill(true);
        if let (Some(b), Some(a)) = (Bytes(old).read(0, field), Bytes(new).read(0, field))
            && a != b
        {
            let (name, before, after) = (field.to_string(), say(field, b), say(field, a));
            changes.push(Change::Field { name, before, after });
        }
    }
    for i in (0..covered.len()).filter(|&i| !covered[i] && old[i] != new[i]) {
        let (before, after) = (old[i].to_string(), new[i].to_string());
        changes.push(Change::Field { name: format!("anno[{i}]"), before, after });
    }
    if before.packet_type != after.packet_type {
        let say = |s: &Seen| format!("{:?}", s.packet_type).to_lowercase();
        let (before, after) = (say(before), say(after));
        changes.push(Change::Field { name: "meta.type".to_string(), before, after });
    }
    if before.timestamp != after.timestamp {
        let say = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
        let (before, after) = (say(before.timestamp), say(after.timestamp));
        changes.push(Change::Field { name: "meta.timestamp".to_string(), before, after });
    }
    changes
}

/// Marks that point at another byte than before, or at one for the first time.
fn marks(before: &Seen, after: &Seen) -> Vec<Change> {
    let shift = shift(before, after);
    let names =
        [(Header::Mac, "mac"), (Header::Network, "network"), (Header::Transport, "transport")];
    names
        .into_iter()
        .filter_map(|(header, name)| {
            let (b, a) = (before.header_offset(header), after.header_offset(header));
            let moved = b.map(|b| b + shift) != a;
            moved.then_some(Change::Mark { header: name, before: b, after: a })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::Pool;

    fn seen(text: &str, work: impl FnOnce(&mut net::Packet)) -> Seen {
        let mut pool = Pool::new();
        let mut packet = pool.packet(&net::notation::parse(text).unwrap());
        packet.set_header_offset(Header::Mac, 0);
        work(&mut packet);
        Seen::of(&packet)
    }

    const UDP: &str = "udp 10.0.0.1:5000 > 8.8.8.8:53 ttl 3";

    fn field(name: &str, before: &str, after: &str) -> Change {
        Change::Field { name: name.into(), before: before.into(), after: after.into() }
    }

    #[test]
    fn fields_are_named_and_checksums_come_last() {
        let before = seen(UDP, |p| p.set_ip_header(14, 20));
        let after = seen("udp 10.0.0.1:5000 > 8.8.8.8:54 ttl 2 nosum", |p| p.set_ip_header(14, 20));
        let found = changes(&before, &after);
        assert_eq!(found[..2], [field("ip.ttl", "3", "2"), field("udp.dport", "53", "54")]);
        assert!(matches!(&found[2..], [
            Change::Field { name: a, .. },
            Change::Field { name: b, after, .. }
        ] if a == "ip.checksum" && b == "udp.checksum" && after == "0x0000"));
        assert_eq!(changes(&before, &before), []);
    }

    #[test]
    fn headers_that_come_and_go_are_named() {
        let (whole, stripped) = (seen(UDP, |_| {}), seen(UDP, |p| p.pull(14)));
        let what = "Ethernet 02:00:00:00:00:01 > 02:00:00:00:00:02, type 0x0800 (IPv4)".to_string();
        assert_eq!(
            changes(&whole, &stripped),
            [Change::Removed { bytes: 14, front: true, what: what.clone() }]
        );
        assert_eq!(changes(&stripped, &whole), [Change::Added { bytes: 14, front: true, what }]);
        let cut = seen(UDP, |p| p.take(3));
        let removed = Change::Removed { bytes: 3, front: false, what: String::new() };
        assert_eq!(changes(&whole, &cut), [removed]);
    }

    #[test]
    fn marks_annotations_and_unnamed_bytes_are_told() {
        let before = seen("udp 10.0.0.1:1 > 8.8.8.8:2 payload 00000000", |_| {});
        let after = seen("udp 10.0.0.1:1 > 8.8.8.8:2 payload 00000000", |p| {
            p.set_ip_header(14, 20);
            p.annotations_mut().set_u8(net::annotation::PAINT, 7);
            p.data_mut()[43] = 0xab;
        });
        let mark = |header, at| Change::Mark { header, before: None, after: Some(at) };
        assert_eq!(
            changes(&before, &after),
            [
                field("byte 43", "00", "ab"),
                field("anno.paint", "0", "7"),
                mark("network", 14),
                mark("transport", 34)
            ]
        );
    }

    #[test]
    fn another_packet_is_said_to_be_one() {
        let text = |what: &str, byte: &str| format!("{what} payload {}", byte.repeat(60));
        let before = seen(&text(UDP, "ff"), |p| p.set_ip_header(14, 20));
        let answer = text("icmp 1.2.3.4 > 10.0.0.1 type 11 ttl 255 id 7", "00");
        let after = seen(&answer, |p| p.set_ip_header(14, 20));
        assert!(matches!(&changes(&before, &after)[..], [Change::Replaced { .. }]));
    }

    use proptest::prelude::*;

    fn any_packet() -> impl Strategy<Value = Seen> {
        let byte = prop_oneof![Just(0u8), Just(8), Just(0x45), Just(0x60), Just(0x81), any::<u8>()];
        let bytes = prop::collection::vec(byte, 0..80);
        let marks = prop::array::uniform3(prop::option::of(-20..90isize));
        (bytes, marks, 0..30usize).prop_map(|(bytes, marks, pull)| {
            let mut packet = Pool::new().packet(&bytes);
            for (header, mark) in
                [Header::Mac, Header::Network, Header::Transport].into_iter().zip(marks)
            {
                if let Some(at) = mark {
                    packet.set_header_offset(header, at);
                }
            }
            packet.pull(pull);
            Seen::of(&packet)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn anything_can_be_compared(before in any_packet(), after in any_packet()) {
            let found = changes(&before, &after);
            let removed: usize = found.iter().map(|c| match c {
                Change::Removed { bytes, .. } => *bytes,
                _ => 0,
            }).sum();
            prop_assert!(removed <= before.data().len());
            prop_assert!(changes(&before, &before).is_empty());
            brief(&before);
        }
    }
}
