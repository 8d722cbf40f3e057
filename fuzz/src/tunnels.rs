//! Packets that come out of tunnels.

use net::wire::{Ipv4, Udp};

use crate::fed::{ETHERNET, Fed, Records, repair};

const ENDS: &str = "2:0:0:0:0:1, 2:0:0:0:0:2";
/// Functions of the library, and what takes packets out, with the ends of its frames in the place of `ENDS`.
const TUNNELS: [(&str, &str); 8] = [
    (include_str!("../../nf/vxlan_detunnel.click"), "VXLANDetunnel(5000)"),
    (include_str!("../../nf/geneve_detunnel.click"), "GENEVEDetunnel(5000)"),
    (include_str!("../../nf/gre_detunnel.click"), "GREDetunnel(ENDS)"),
    (include_str!("../../nf/gre_detunnel.click"), "GREDetunnel(ENDS, KEY 7, CHECKSUM false)"),
    (include_str!("../../nf/ipip_detunnel.click"), "IPIPDetunnel(ENDS)"),
    (include_str!("../../nf/pppoe_detunnel.click"), "PPPoEDetunnel(7, ENDS)"),
    (include_str!("../../nf/gtp_detunnel.click"), "GTPDetunnel(7, ENDS)"),
    (include_str!("../../nf/vlan_detunnel.click"), "VLANDetunnel(7)"),
];

/// What leaves was in the frame, and what does not leave is counted.
///
/// An input is a tunnel, and frames with their lengths.
pub fn tunnels(data: &[u8]) {
    let mut records = Records(data);
    let Some(tunnel) = records.byte() else { return };
    let (function, tunnel) = TUNNELS[usize::from(tunnel) % TUNNELS.len()];
    let tunnel = tunnel.replace("ENDS", ENDS);
    let mut chain =
        Fed::start(&format!("{function} in :: Idle -> {tunnel} -> out :: Queue -> Idle;"));
    let (mut fed, mut left, mut waits) = (0, 0, false);
    while let Some(length) = records.number().filter(|_| !records.0.is_empty()) {
        let mut frame = records.bytes(length.into()).to_vec();
        let is_fragment = repair(&mut frame) == Some(true);
        waits |= is_fragment;
        without_checksum(&mut frame);
        chain.feed("in", &frame);
        fed += 1;
        for out in chain.left("out") {
            left += 1;
            let inner = if tunnel.contains("2:0:") { &out[ETHERNET..] } else { &out[..] };
            // The tag of a VLAN stood between addresses and type.
            let begin = if tunnel.starts_with("VLAN") { 12 } else { 0 };
            let inner = &inner[begin..];
            let was_there = frame.windows(inner.len().max(1)).any(|window| window == inner);
            assert!(waits || inner.is_empty() || was_there, "{out:02x?}");
        }
        let accounted = left + chain.dropped();
        assert!(if waits { accounted <= fed } else { accounted == fed }, "{accounted} of {fed}");
    }
}

/// Takes the checksum out of a datagram, so that it is looked at further.
fn without_checksum(frame: &mut [u8]) {
    let Some(mut ip) = frame.get_mut(ETHERNET..).and_then(Ipv4::new) else { return };
    if ip.protocol() == 17
        && let Some(mut udp) = Udp::new(ip.payload_mut())
    {
        udp.set_checksum(0);
    }
}
