//! Flows: what state is kept by. A flow is a match on addresses, protocol and ports; fields that are left out match all.

use crate::abi::FLOW;

/// Fields of a packet that make its flow.
pub mod field {
    /// The source address.
    pub const SOURCE: u8 = 1;
    /// The destination address.
    pub const DESTINATION: u8 = 2;
    /// The protocol above IP.
    pub const PROTOCOL: u8 = 4;
    /// The source port of TCP, UDP and SCTP; 0 of what has none, and of fragments.
    pub const SOURCE_PORT: u8 = 8;
    /// The destination port.
    pub const DESTINATION_PORT: u8 = 16;
    /// All of them: the 5-tuple.
    pub const ALL: u8 = 31;
}

/// A flow, as the ABI has it: fields, IP version, protocol, a zero, two ports and two addresses in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow(pub [u8; FLOW]);

const VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// Extension headers of IPv6 that are skipped: hop-by-hop options, routing, destination options.
const SKIPPED: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
const MOST_EXTENSIONS: usize = 8;
const WITH_PORTS: [u8; 3] = [6, 17, 132];

impl Flow {
    /// The flow of a frame by these fields; none if it is not IP, or cut short.
    pub fn of(frame: &[u8], fields: u8) -> Option<Self> {
        let mut at = 12;
        for _ in 0..2 {
            if VLAN.iter().any(|tag| frame.get(at..at + 2) == Some(tag)) {
                at += 4;
            }
        }
        let kind = frame.get(at..at + 2)?;
        let packet = frame.get(at + 2..)?;
        let mut flow = [0; FLOW];
        let (protocol, ports) = match kind {
            [0x08, 0x00] => Self::version_4(packet, &mut flow)?,
            [0x86, 0xdd] => Self::version_6(packet, &mut flow)?,
            _ => return None,
        };
        flow[2] = protocol;
        if let Some(ports) = ports.and_then(|at| packet.get(at..at + 4))
            && WITH_PORTS.contains(&protocol)
        {
            flow[4..8].copy_from_slice(ports);
        }
        Some(Self(flow).with_fields(fields))
    }

    fn version_4(packet: &[u8], flow: &mut [u8; FLOW]) -> Option<(u8, Option<usize>)> {
        let header = usize::from(packet.first()? & 15) * 4;
        if packet[0] >> 4 != 4 || header < 20 || packet.len() < header {
            return None;
        }
        flow[1] = 4;
        flow[8..12].copy_from_slice(&packet[12..16]);
        flow[24..28].copy_from_slice(&packet[16..20]);
        let is_fragment = packet[6] & 0x3f != 0 || packet[7] != 0;
        Some((packet[9], (!is_fragment).then_some(header)))
    }

    fn version_6(packet: &[u8], flow: &mut [u8; FLOW]) -> Option<(u8, Option<usize>)> {
        if packet.len() < 40 || packet[0] >> 4 != 6 {
            return None;
        }
        flow[1] = 6;
        flow[8..24].copy_from_slice(&packet[8..24]);
        flow[24..40].copy_from_slice(&packet[24..40]);
        let (mut next, mut at) = (packet[6], 40);
        for _ in 0..MOST_EXTENSIONS {
            let Some(header) = packet.get(at..at + 8) else { break };
            if next == FRAGMENT {
                return Some((header[0], None));
            }
            if !SKIPPED.contains(&next) {
                break;
            }
            (next, at) = (header[0], at + 8 + usize::from(header[1]) * 8);
        }
        Some((next, Some(at)))
    }

    /// The same by these fields alone, of those that it has.
    #[must_use]
    pub fn with_fields(self, fields: u8) -> Self {
        let mut of = self.0;
        of[0] = fields & field::ALL;
        for (bit, range) in [
            (field::SOURCE, 8..24),
            (field::DESTINATION, 24..40),
            (field::PROTOCOL, 2..3),
            (field::SOURCE_PORT, 4..6),
            (field::DESTINATION_PORT, 6..8),
        ] {
            if fields & bit == 0 {
                of[range].fill(0);
            }
        }
        Self(of)
    }

    /// The flow of the opposite direction.
    #[must_use]
    pub fn reversed(self) -> Self {
        let from = self.0;
        let mut of = from;
        of[4..6].copy_from_slice(&from[6..8]);
        of[6..8].copy_from_slice(&from[4..6]);
        of[8..24].copy_from_slice(&from[24..40]);
        of[24..40].copy_from_slice(&from[8..24]);
        let swap = |one: u8, other: u8| match (from[0] & one != 0, from[0] & other != 0) {
            (true, false) => other,
            (false, true) => one,
            (true, true) => one | other,
            _ => 0,
        };
        of[0] = from[0] & field::PROTOCOL
            | swap(field::SOURCE, field::DESTINATION)
            | swap(field::SOURCE_PORT, field::DESTINATION_PORT);
        Self(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp() -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
        frame[30..34].copy_from_slice(&[10, 0, 0, 2]);
        frame[34..38].copy_from_slice(&[0, 1, 0, 2]);
        frame
    }

    #[test]
    fn a_flow_is_a_match_on_fields() {
        let frame = udp();
        let flow = Flow::of(&frame, field::ALL).unwrap();
        assert_eq!(flow.0[..12], [31, 4, 17, 0, 0, 1, 0, 2, 10, 0, 0, 1]);
        assert_eq!(flow.reversed().reversed(), flow);
        assert_eq!(flow.reversed().0[4..12], [0, 2, 0, 1, 10, 0, 0, 2]);
        let source = Flow::of(&frame, field::SOURCE).unwrap();
        assert_eq!((source, source.reversed().0[0]), (flow.with_fields(1), field::DESTINATION));
        assert!(source.0[24..].iter().all(|of| *of == 0) && source.0[2] == 0);
        // A tag does not change it, a fragment has no ports.
        let mut tagged = frame.clone();
        tagged.splice(12..12, [0x81, 0, 0, 7]);
        assert_eq!(Flow::of(&tagged, field::ALL), Some(flow));
        let mut fragment = frame.clone();
        fragment[20] = 0x20;
        assert_eq!(Flow::of(&fragment, field::ALL).unwrap().0[4..8], [0; 4]);
        // Whatever is cut short has none, or no ports; nothing is read outside.
        for length in 0..frame.len() {
            let of = Flow::of(&frame[..length], field::ALL);
            assert_eq!(of.is_some(), length >= 34, "{length}");
        }
    }

    #[test]
    fn extension_headers_are_skipped() {
        let mut frame = vec![0; 14 + 40];
        frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
        frame.extend([6, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend([0, 80, 1, 0, 0, 0, 0, 0]);
        let flow = Flow::of(&frame, field::ALL).unwrap();
        assert_eq!(flow.0[..8], [31, 6, 6, 0, 0, 80, 1, 0]);
        frame[14 + 6] = FRAGMENT;
        assert_eq!(Flow::of(&frame, field::ALL).unwrap().0[..8], [31, 6, 6, 0, 0, 0, 0, 0]);
    }
}
