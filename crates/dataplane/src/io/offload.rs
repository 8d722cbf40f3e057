//! Doing what senders leave to hardware that is not there.
//!
//! A local sender hands its frames to a virtual interface with checksums half done, as
//! super-frames of up to 64 KB, and with VLAN tags beside the frame: a network card would
//! complete them. Whoever receives such frames from the kernel must do so in its place.

use std::ops::Range;

use ir::Reason;
use net::checksum::{self, Sum};
use net::wire::{Ipv4, Ipv6, ipv4, ipv6};
use net::{Batch, Packet, Pool};

use super::port::{ETHERNET, NOT_SEGMENTED};

/// Bytes of a `virtio_net_hdr`, which the kernel puts in front of a frame.
pub(super) const VNET_HEADER: usize = 10;

/// IP protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Where the checksum field is in their headers. The kernel leaves nobody else's that is there to
/// be completed, so that where the field is says which sum it takes.
const TCP_FIELD: usize = 16;
const UDP_FIELD: usize = 6;
const SCTP_FIELD: usize = 8;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
/// The sender speaks of congestion: the flag CWR is for the first frame alone.
const GSO_ECN: u8 = 0x80;

/// What is left to do to a frame (`struct virtio_net_hdr`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VnetHeader {
    flags: u8,
    gso_type: u8,
    gso_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl VnetHeader {
    /// Reads the header as the kernel writes it for sockets: in the machine's byte order.
    pub(super) fn parse(bytes: &[u8; VNET_HEADER]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    fn leaves_checksum(&self) -> bool {
        self.flags & NEEDS_CHECKSUM != 0
    }
}

/// Completes a frame and appends what becomes of it: one frame, or those of a super-frame.
///
/// # Errors
/// The frame and why it cannot be completed.
#[inline]
pub(super) fn complete(
    mut packet: Packet,
    header: &VnetHeader,
    vlan: Option<(u16, u16)>,
    batch: &mut Batch,
    pool: &mut Pool,
) -> Result<(), (Packet, Reason)> {
    if header.gso_type != GSO_NONE {
        let from = batch.len();
        if segment(packet.data(), header, batch, pool).is_none() {
            return Err((packet, NOT_SEGMENTED));
        }
        pool.recycle(packet);
        if let Some((tpid, tci)) = vlan {
            batch.as_mut_slice()[from..].iter_mut().for_each(|p| put_tag_back(p, tpid, tci));
        }
        return Ok(());
    }
    if header.leaves_checksum() {
        let (start, offset) = (header.checksum_start.into(), header.checksum_offset.into());
        if complete_checksum(packet.data_mut(), start, offset).is_none() {
            return Err((packet, NOT_SEGMENTED));
        }
    }
    if let Some((tpid, tci)) = vlan {
        put_tag_back(&mut packet, tpid, tci);
    }
    batch.push(packet);
    Ok(())
}

/// Puts the checksum of the bytes from `start` on into the field `offset` bytes further, which
/// holds the sum of the pseudo-header; SCTP's CRC32c (RFC 9260, appendix A) has none.
fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) -> Option<()> {
    let covered = frame.get_mut(start..)?;
    if offset == SCTP_FIELD {
        covered.get_mut(offset..offset + 4)?.fill(0);
        let sum = crc32c::crc32c(covered);
        covered[offset..offset + 4].copy_from_slice(&sum.to_le_bytes());
        return Some(());
    }
    let sum = Sum::of(covered).checksum();
    // 0 means "no checksum" to UDP, and is the same number as 0xffff to everybody else.
    let sum = if sum == 0 { 0xffff } else { sum };
    covered.get_mut(offset..offset + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// Puts a VLAN tag that the kernel took out back behind the addresses.
fn put_tag_back(packet: &mut Packet, tpid: u16, tci: u16) {
    packet.push(4);
    let data = packet.data_mut();
    if data.len() < 4 + ETHERNET {
        return;
    }
    data.copy_within(4..16, 0);
    data[12..14].copy_from_slice(&tpid.to_be_bytes());
    data[14..16].copy_from_slice(&tci.to_be_bytes());
}

/// Where the network header is: behind the Ethernet header and the VLAN tags.
fn network_offset(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = 12;
    loop {
        let kind = u16::from_be_bytes(*frame.get(at..)?.first_chunk()?);
        at += 2;
        match kind {
            0x8100 | 0x88a8 if at < 24 => at += 2,
            _ => return Some((at, kind)),
        }
    }
}

/// Where the transport header of this protocol is, behind the network header and what extends it.
fn transport_offset(frame: &[u8], network: usize, protocol: u8) -> Option<usize> {
    let packet = frame.get(network..)?;
    if packet.first()? >> 4 == 4 {
        let fixed: &[u8; 20] = packet.first_chunk()?;
        let header = usize::from(fixed[0] & 15) * 4;
        return (fixed[9] == protocol && header >= 20).then_some(network + header);
    }
    let fixed: &[u8; 40] = packet.first_chunk()?;
    let (mut next, mut at) = (fixed[6], 40);
    // Hop-by-hop options, routing, destination options.
    while matches!(next, 0 | 43 | 60) {
        let &[following, length] = packet.get(at..)?.first_chunk()?;
        (next, at) = (following, at + (usize::from(length) + 1) * 8);
    }
    (next == protocol).then_some(network + at)
}

/// Cuts a super-frame into frames that hold `gso_size` bytes of payload each.
fn segment(frame: &[u8], header: &VnetHeader, batch: &mut Batch, pool: &mut Pool) -> Option<()> {
    let (network, _) = network_offset(frame)?;
    let transport = usize::from(header.checksum_start);
    let size = usize::from(header.gso_size);
    let kind = header.gso_type & !GSO_ECN;
    let tcp = match kind {
        GSO_TCP_V4 | GSO_TCP_V6 => true,
        GSO_UDP => false,
        _ => return None,
    };
    if !header.leaves_checksum() || size == 0 || transport <= network {
        return None;
    }
    let v4 = frame.get(network)? >> 4 == 4;
    // In a tunnel there are more headers than these to make anew.
    if transport_offset(frame, network, if tcp { TCP } else { UDP })? != transport {
        return None;
    }
    let payload_at =
        transport + if tcp { usize::from(frame.get(transport + 12)? >> 4) * 4 } else { 8 };
    let checksum_at = transport + if tcp { TCP_FIELD } else { UDP_FIELD };
    if checksum_at + 2 > payload_at {
        return None;
    }
    let (headers, payload) = frame.split_at_checked(payload_at)?;
    let whole = u16::try_from(frame.len() - transport).ok()?;
    let word = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
    // The pseudo-header's sum without the length, which differs from frame to frame.
    let partial = Sum::of_u16(word(checksum_at)).plus(Sum::of_u16(!whole));
    let count = payload.len().div_ceil(size);
    for (i, part) in payload.chunks(size).enumerate() {
        let mut packet = pool.alloc(payload_at + part.len());
        let data = packet.data_mut();
        data[..payload_at].copy_from_slice(headers);
        data[payload_at..].copy_from_slice(part);
        let length = (data.len() - network) as u16;
        if v4 {
            data[network + 2..network + 4].copy_from_slice(&length.to_be_bytes());
            let id = word(network + 4).wrapping_add(i as u16);
            data[network + 4..network + 6].copy_from_slice(&id.to_be_bytes());
            data[network + 10..network + 12].fill(0);
            let ip_end = network + usize::from(data[network] & 15) * 4;
            let sum = checksum::checksum(data.get(network..ip_end).unwrap_or_default());
            data[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
        } else {
            data[network + 4..network + 6].copy_from_slice(&(length - 40).to_be_bytes());
        }
        let covered = (data.len() - transport) as u16;
        if tcp {
            let at = transport + 4;
            let sequence = data[at..].first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
            let sequence = sequence.wrapping_add((i * size) as u32);
            data[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
            let flags = &mut data[transport + 13];
            if i + 1 < count {
                // FIN and PSH belong to the last byte.
                *flags &= !0x09;
            }
            if i > 0 {
                // CWR is said once.
                *flags &= !0x80;
            }
        } else {
            data[transport + 4..transport + 6].copy_from_slice(&covered.to_be_bytes());
        }
        let pseudo = partial.plus(Sum::of_u16(covered)).fold();
        data[checksum_at..checksum_at + 2].copy_from_slice(&pseudo.to_be_bytes());
        complete_checksum(data, transport, checksum_at - transport);
        batch.push(packet);
    }
    Some(())
}

/// Completes the checksum of a frame that comes without word of whether that is left to do, as
/// virtual interfaces hand them to XDP: TCP and UDP whose field holds the sum of the
/// pseudo-header, and not the checksum of what is there; SCTP whose field holds nothing.
#[inline]
pub(super) fn complete_if_partial(frame: &mut [u8]) {
    if let Some((covered, offset)) = partial_checksum(frame)
        && let Some(covered) = frame.get_mut(covered)
    {
        complete_checksum(covered, 0, offset);
    }
}

/// The bytes that a checksum left half done covers, and where its field is among them.
fn partial_checksum(frame: &[u8]) -> Option<(Range<usize>, usize)> {
    let (network, kind) = network_offset(frame)?;
    let packet = frame.get(network..)?;
    let (protocol, header, length, addresses) = match kind {
        0x0800 => {
            let ip = Ipv4::new(packet)?;
            let header = ip.header_len();
            if ip.is_fragment() || header < ipv4::HEADER_LEN {
                return None;
            }
            let length = usize::from(ip.total_len()).checked_sub(header)?;
            (ip.protocol(), header, length, &packet[12..20])
        }
        0x86dd => {
            let ip = Ipv6::new(packet)?;
            (ip.next_header(), ipv6::HEADER_LEN, ip.payload_len(), &packet[8..40])
        }
        _ => return None,
    };
    let offset = match protocol {
        TCP => TCP_FIELD,
        UDP => UDP_FIELD,
        SCTP => SCTP_FIELD,
        _ => return None,
    };
    let covered = packet.get(header..header + length)?;
    let start = network + header;
    let range = start..start + covered.len();
    if protocol == SCTP {
        let left = covered.get(offset..offset + 4)? == [0; 4];
        return left.then_some((range, offset));
    }
    let field = u16::from_be_bytes(*covered.get(offset..)?.first_chunk()?);
    let length = u16::try_from(length).ok()?;
    let numbers = Sum::of_u16(protocol.into()).plus(Sum::of_u16(length));
    let pseudo = Sum::of(addresses).plus(numbers);
    let left = pseudo.fold() == field && pseudo.plus(Sum::of(covered)).checksum() != 0;
    left.then_some((range, offset))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use net::checksum::{pseudo_header_v4, pseudo_header_v6};

    use super::*;

    const PAYLOAD: usize = 4000;
    const SIZE: usize = 1400;

    /// A frame with its checksum left half done, and where its transport header is.
    fn unfinished(v4: bool, tcp: bool) -> (Vec<u8>, usize) {
        let transport_header = if tcp { 20 } else { 8 };
        let covered = transport_header + PAYLOAD;
        let protocol = if tcp { TCP } else { UDP };
        let mut frame = vec![2; 12];
        let partial = if v4 {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend(((20 + covered) as u16).to_be_bytes());
            frame.extend([0x12, 0x34, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
            pseudo_header_v4(from, to, protocol, covered as u16)
        } else {
            let (from, to) = (Ipv6Addr::LOCALHOST, Ipv6Addr::from(7));
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((covered as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(from.octets());
            frame.extend(to.octets());
            pseudo_header_v6(from, to, protocol, covered as u32)
        };
        let transport = frame.len();
        if tcp {
            frame.extend([0, 80, 1, 0, 0xff, 0xff, 0xff, 0, 0, 0, 0, 9, 0x50, 0x99, 1, 0]);
            frame.extend(partial.fold().to_be_bytes());
            frame.extend([0, 0]);
        } else {
            frame.extend([0, 53, 1, 0]);
            frame.extend((covered as u16).to_be_bytes());
            frame.extend(partial.fold().to_be_bytes());
        }
        frame.extend((0..PAYLOAD).map(|i| (i * 7) as u8));
        (frame, transport)
    }

    fn header(transport: usize, tcp: bool, gso_type: u8) -> VnetHeader {
        VnetHeader {
            flags: NEEDS_CHECKSUM,
            gso_type,
            gso_size: if gso_type == GSO_NONE { 0 } else { SIZE as u16 },
            checksum_start: transport as u16,
            checksum_offset: if tcp { 16 } else { 6 },
        }
    }

    /// Whether lengths and checksums of a frame are right.
    fn is_right(frame: &[u8], v4: bool) -> bool {
        let (protocol, pseudo, transport) = if v4 {
            let packet = &frame[14..];
            let total = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            assert_eq!(total, packet.len());
            assert_eq!(checksum::checksum(&packet[..20]), 0);
            (packet[9], Sum::of(&packet[12..20]), 34)
        } else {
            let packet = &frame[14..];
            let length = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
            assert_eq!(40 + length, packet.len());
            (packet[6], Sum::of(&packet[8..40]), 54)
        };
        let covered = &frame[transport..];
        let numbers = Sum::of_u16(protocol.into()).plus(Sum::of_u16(covered.len() as u16));
        pseudo.plus(numbers).plus(Sum::of(covered)).checksum() == 0
    }

    #[test]
    fn super_frames_are_cut() {
        for (v4, tcp, kind) in [
            (true, true, GSO_TCP_V4),
            (true, true, GSO_TCP_V4 | GSO_ECN),
            (false, true, GSO_TCP_V6),
            (true, false, GSO_UDP),
            (false, false, GSO_UDP),
        ] {
            let (frame, transport) = unfinished(v4, tcp);
            let (mut pool, mut batch) = (Pool::new(), Batch::new());
            let packet = pool.packet(&frame);
            let header = header(transport, tcp, kind);
            complete(packet, &header, None, &mut batch, &mut pool).unwrap();
            assert_eq!(batch.len(), 3);
            let payload = transport + if tcp { 20 } else { 8 };
            let mut whole = Vec::new();
            for (i, packet) in batch.iter().enumerate() {
                let data = packet.data();
                assert!(is_right(data, v4), "{i} of {kind}");
                assert!(data.len() - payload <= SIZE);
                if tcp {
                    let sequence =
                        u32::from_be_bytes(data[transport + 4..][..4].try_into().unwrap());
                    assert_eq!(sequence, 0xffff_ff00_u32.wrapping_add((i * SIZE) as u32));
                    let flags = [0x90, 0x10, 0x19][i];
                    assert_eq!(data[transport + 13], flags, "flags of {i}");
                }
                whole.extend_from_slice(&data[payload..]);
            }
            assert!(whole == frame[payload..]);
            batch.drain().for_each(|p| pool.recycle(p));
            assert_eq!(pool.outstanding(), 0);
        }
    }

    #[test]
    fn checksums_are_completed_with_and_without_a_word() {
        for (v4, tcp) in [(true, true), (true, false), (false, true), (false, false)] {
            let (mut frame, transport) = unfinished(v4, tcp);
            if v4 {
                let sum = checksum::checksum(&frame[14..34]);
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
            assert!(!is_right(&frame, v4));
            let (mut pool, mut batch) = (Pool::new(), Batch::new());
            let packet = pool.packet(&frame);
            let told = header(transport, tcp, GSO_NONE);
            complete(packet, &told, Some((0x8100, 5)), &mut batch, &mut pool).unwrap();
            let mut tagged = frame.clone();
            complete_if_partial(&mut frame);
            assert!(is_right(&frame, v4));
            // What is right stays.
            let right = frame.clone();
            complete_if_partial(&mut frame);
            assert!(frame == right);
            let with_tag = batch.as_slice()[0].data();
            assert_eq!(with_tag[12..16], [0x81, 0, 0, 5]);
            assert!([&with_tag[..12], &with_tag[16..]].concat() == right);
            // Also behind a tag; but what was broken in transit stays broken.
            tagged.splice(12..12, [0x81, 0, 0, 5]);
            complete_if_partial(&mut tagged);
            assert!(tagged == with_tag);
            frame[transport + 30] ^= 1;
            let broken = frame.clone();
            complete_if_partial(&mut frame);
            assert!(frame == broken);
        }
    }

    /// The check value that RFC 3720 gives for CRC32c, as SCTP writes it.
    #[test]
    fn sctp_takes_its_own_checksum() {
        let (mut frame, transport) = unfinished(true, false);
        frame[14 + 9] = SCTP;
        frame[transport..transport + 12].copy_from_slice(&[0, 80, 1, 0, 0, 0, 0, 7, 0, 0, 0, 0]);
        let mut told = frame.clone();
        complete_checksum(&mut told, transport, SCTP_FIELD).unwrap();
        let sum = crc32c::crc32c(&frame[transport..]).to_le_bytes();
        assert_eq!(told[transport + 8..transport + 12], sum);
        assert!(sum != [0; 4] && told[..transport + 8] == frame[..transport + 8]);
        complete_if_partial(&mut frame);
        assert!(frame == told, "without a word");
        // What is there stays, right or wrong.
        frame[transport + 30] ^= 1;
        let broken = frame.clone();
        complete_if_partial(&mut frame);
        assert!(frame == broken);
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn super_frames_in_tunnels_are_refused() {
        let (inner, transport) = unfinished(true, true);
        let mut frame = inner[..34].to_vec();
        frame[14 + 9] = UDP;
        // UDP and VXLAN.
        frame.extend([0; 16]);
        frame.extend(&inner);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        let told = header(50 + transport, true, GSO_TCP_V4);
        let packet = pool.packet(&frame);
        let (_, why) = complete(packet, &told, None, &mut batch, &mut pool).unwrap_err();
        assert!(why == NOT_SEGMENTED && batch.is_empty());
    }

    #[test]
    fn nonsense_is_refused_or_carried_through() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut pool, mut batch) = (Pool::new(), Batch::new());
        for _ in 0..20_000 {
            let (mut frame, transport) = unfinished(random.bool(), random.bool());
            frame.truncate(random.usize(..200));
            if !frame.is_empty() {
                let at = random.usize(..frame.len());
                frame[at] = random.u8(..);
            }
            complete_if_partial(&mut frame);
            let header = VnetHeader {
                flags: random.u8(..2),
                gso_type: random.u8(..7),
                gso_size: random.u16(..100),
                checksum_start: if random.bool() { random.u16(..) } else { transport as u16 },
                checksum_offset: random.u16(..30),
            };
            let packet = pool.packet(&frame);
            let vlan = random.bool().then_some((0x8100, 1));
            if let Err((packet, _)) = complete(packet, &header, vlan, &mut batch, &mut pool) {
                pool.recycle(packet);
            }
            batch.drain().for_each(|p| pool.recycle(p));
        }
        assert_eq!(pool.outstanding(), 0);
    }
}
