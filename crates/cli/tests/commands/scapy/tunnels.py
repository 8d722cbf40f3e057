"""Tunnels of scapy beside those of chains: `make` writes captures for the chains, `compare` reads what they made.

In a burst, IPv4 may overtake IPv6."""

import random
import sys

from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.ppp import PPPoE
from scapy.utils import rdpcap, wrpcap

OUTER = IP(src="192.0.2.1", dst="192.0.2.2", flags="DF", id=0, ttl=250)


def frame(packet, kind=None):
    # Without the addresses, scapy asks the network for them.
    addresses = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
    return Ether(**addresses, **({"type": kind} if kind else {})) / packet


def inside():
    """Packets of IPv4 and IPv6 of several lengths."""
    rng = random.Random(2)
    for length in [*range(20), 1000, 1399, 1400]:
        ip = rng.choice([IP(src="10.0.0.1", dst="10.0.0.2", id=length), IPv6(src="2001:db8::1", dst="2001:db8::2")])
        layers = [UDP(sport=1, dport=2), TCP(sport=1, dport=2, flags="PA")]
        inner = rng.choice(layers + ([ICMP()] if isinstance(ip, IP) else []))
        yield type(ip)(bytes(ip / inner / rng.randbytes(length)))


def udp(port):
    return OUTER / UDP(sport=4000, dport=port, chksum=0)


TUNNELS = {
    "geneve": lambda ip: frame(udp(6081) / GENEVE(vni=5000) / frame(ip)),
    "gtp": lambda ip: frame(udp(2152) / GTP_U_Header(teid=16) / ip),
    # PPP of scapy compresses protocols.
    "pppoe": lambda ip: frame(PPPoE(sessionid=7) / (b"\0\x21" if isinstance(ip, IP) else b"\0\x57") / bytes(ip)),
}
# What chains take, and do not make.
VARIANTS = {
    "gtp-5g": lambda ip: frame(udp(2152) / GTP_U_Header(teid=16) / GTPPDUSessionContainer(type=0, QFI=9) / ip),
    "gtp-sequence": lambda ip: frame(udp(2152) / GTP_U_Header(teid=16, S=1, seq=77) / ip),
    "geneve-options": lambda ip: frame(
        udp(6081) / GENEVE(bytes(GENEVE(vni=5000, optionlen=2, proto=0x6558)) + bytes.fromhex("0102030100000000")) / frame(ip)
    ),
}


def make():
    wrpcap("plain.pcap", [frame(packet) for packet in inside()])
    for name, tunnel in (TUNNELS | VARIANTS).items():
        wrpcap(f"by-scapy-{name}.pcap", [tunnel(packet) for packet in inside()])


def compare():
    expected = [bytes(packet) for packet in inside()]
    for name in TUNNELS | VARIANTS:
        found = [bytes(packet.payload) for packet in rdpcap(f"out-of-{name}.pcap")]
        assert sorted(found) == sorted(expected), f"{name}: what came out"
    for name in TUNNELS:
        ours, theirs = (sorted(map(bytes, rdpcap(f"{by}-{name}.pcap"))) for by in ("into", "by-scapy"))
        for one, other in zip(ours, theirs, strict=True):
            assert one == other, f"{name}:\n{one.hex()}\n{other.hex()}"


{"make": make, "compare": compare}[sys.argv[1]]()
