"""ESP of scapy beside that of a chain: `seal` writes captures for the chain, `open` reads what it made of them."""

import random
import sys

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.ipsec import ESP, SecurityAssociation
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap

OUTER = IP(src="192.0.2.1", dst="192.0.2.2")
GCM = {"crypt_algo": "AES-GCM"}
CBC = {"crypt_algo": "AES-CBC", "auth_algo": "SHA2-256-128", "auth_key": bytes(range(16, 48))}
ALGORITHMS = {
    "aes-128-gcm": GCM | {"crypt_key": bytes(range(20))},
    "aes-256-gcm": GCM | {"crypt_key": bytes(range(36))},
    "aes-128-cbc-hmac-sha256": CBC | {"crypt_key": bytes(range(16))},
}


def association(algorithm):
    return SecurityAssociation(ESP, spi=0x1001, tunnel_header=OUTER, **ALGORITHMS[algorithm])


def plain():
    """Packets of IPv4 and IPv6 with payloads of all lengths up to 40 bytes, and a few long ones."""
    rng = random.Random(1)
    for length in [*range(40), 1000, 1399, 1400]:
        ip = rng.choice([IP(src="10.0.0.1", dst="10.0.0.2", id=length), IPv6(src="2001:db8::1", dst="2001:db8::2")])
        layers = [UDP(sport=1, dport=2), TCP(sport=1, dport=2, flags="PA")]
        inner = rng.choice(layers + ([ICMP()] if isinstance(ip, IP) else []))
        yield type(ip)(bytes(ip / inner / rng.randbytes(length)))


def frame(packet):
    # Without the addresses, scapy asks the network for them.
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / packet


def seal():
    wrpcap("plain.pcap", [frame(packet) for packet in plain()])
    for algorithm in ALGORITHMS:
        of = association(algorithm)
        wrpcap(f"by-scapy-{algorithm}.pcap", [frame(of.encrypt(packet)) for packet in plain()])


def open_all():
    expected = [bytes(packet) for packet in plain()]
    for algorithm in ALGORITHMS:
        found = [bytes(packet.payload) for packet in rdpcap(f"opened-{algorithm}.pcap")]
        # In a burst, IPv4 may overtake IPv6.
        assert sorted(found) == sorted(expected), f"{algorithm}: opened here"
        of, sequence = association(algorithm), 0
        sealed = rdpcap(f"sealed-{algorithm}.pcap")
        assert len(sealed) == len(expected), f"{algorithm}: {len(sealed)} were sealed"
        vectors, inner = set(), []
        for packet in sealed:
            esp, sequence = packet[IP][ESP], sequence + 1
            assert esp.seq == sequence, f"{algorithm}: sequence number {esp.seq}"
            inner.append(bytes(of.decrypt(packet[IP])))
            vectors.add(bytes(esp.data)[: 16 if "cbc" in algorithm else 8])
        assert sorted(inner) == sorted(expected), f"{algorithm}: sealed here"
        assert len(vectors) == len(sealed), f"{algorithm}: a vector comes twice"


{"seal": seal, "open": open_all}[sys.argv[1]]()
