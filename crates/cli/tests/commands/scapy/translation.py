"""Packets of IPv4 and IPv6 that are translations of each other (RFC 7915), as scapy makes them: `make` writes captures
for the chain, `compare` reads what it made."""

import random
import sys

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption_NOP, IPOption_RR
from scapy.layers.inet6 import (
    ICMPv6DestUnreach,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
)
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import checksum, rdpcap, wrpcap

# A host and a server, in both versions.
HOST4, HOST6 = "10.0.0.1", "2001:db8:a::a00:1"
SERVER4, SERVER6 = "8.8.8.8", "64:ff9b::808:808"
ROUTER4, ROUTER6, OTHER6 = "9.9.9.9", "64:ff9b::909:909", "2001:db8:ffff::1"

UP = {"src": HOST4, "dst": SERVER4}, {"src": HOST6, "dst": SERVER6}
DOWN = {"src": SERVER4, "dst": HOST4}, {"src": SERVER6, "dst": HOST6}


def frame(packet):
    kind = 0x86DD if isinstance(packet, IPv6) else 0x0800
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", type=kind) / Raw(bytes(packet))


def ip4(ends, rest, **fields):
    """Without a fragment's fields, a packet that is translated may be cut up to 1260 bytes."""
    packet = IP(**{"id": 0, **ends, **fields}) / rest
    if not fields.get("flags") and not fields.get("frag") and not fields.get("id") and len(packet) > 1260:
        packet.flags = "DF"
    return packet


def transport(rng, length, ports=(1000, 53)):
    data = rng.randbytes(length)
    for layer in UDP(), TCP(flags="PA", seq=rng.getrandbits(32)):
        layer.sport, layer.dport = ports
        yield layer / data, layer / data
    number, sequence = rng.getrandbits(16), rng.getrandbits(16)
    for four, six in (8, ICMPv6EchoRequest), (0, ICMPv6EchoReply):
        yield ICMP(type=four, id=number, seq=sequence) / data, six(id=number, seq=sequence, data=data)


def part(fragment, payload):
    """A fragment of UDP in both versions."""
    return fragment, fragment / payload


def both(ends):
    """Packets, without and with fragments, that are translated in both directions."""
    four, six = ends
    rng = random.Random(7)
    for length in [*range(12), 700, 1211, 1212, 1231, 1232, 1233, 1400]:
        for rest4, rest6 in transport(rng, length):
            tos, ttl = rng.getrandbits(8), rng.randrange(1, 256)
            yield ip4(four, rest4, tos=tos, ttl=ttl), IPv6(**six, tc=tos, hlim=ttl) / rest6
    # The first fragment has a checksum over the whole datagram.
    for datagram4, datagram6 in transport(rng, 3000):
        if isinstance(datagram4, ICMP):
            continue
        protocol = 17 if isinstance(datagram4, UDP) else 6
        whole4 = bytes(IP(**four, proto=protocol) / datagram4)[20:]
        whole6 = bytes(IPv6(**six, nh=protocol) / datagram6)[40:]
        for start, end, more in (0, 1232, 1), (1232, 2464, 1), (2464, 9999, 0):
            header = IPv6ExtHdrFragment(nh=protocol, id=0x5678, offset=start // 8, m=more)
            fields = {"id": 0x5678, "flags": more, "frag": start // 8, "proto": protocol}
            yield ip4(four, Raw(whole4[start:end]), **fields), IPv6(**six) / header / Raw(whole6[start:end])
    yield ip4(four, Raw(b"other"), proto=99), IPv6(**six, nh=99) / Raw(b"other")


def quotes(ends, length):
    """What errors quote: packets in the direction of `ends`, in both versions."""
    four, six = ends
    rng = random.Random(length)
    for rest4, rest6 in transport(rng, length):
        yield bytes(ip4(four, rest4, ttl=9)), bytes(IPv6(**six, hlim=9) / rest6)
    whole4, whole6 = (bytes(IP(**four) / UDP(sport=1, dport=2) / bytes(99))[20:], bytes(IPv6(**six) / UDP(sport=1, dport=2) / bytes(99))[40:])
    header = IPv6ExtHdrFragment(nh=17, id=7, offset=0, m=1)
    yield bytes(ip4(four, Raw(whole4[:80]), id=7, flags=1, proto=17)), bytes(IPv6(**six) / header / Raw(whole6[:80]))


def upward():
    """What becomes IPv4, and what it becomes."""
    yield from both(UP)
    four, six = UP
    data = UDP(sport=1, dport=2) / b"data"
    for headers in IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt() / IPv6ExtHdrRouting(segleft=0), IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt():
        yield ip4(four, data), IPv6(**six) / headers / data
    # The fragment's number is longer in IPv6.
    yield ip4(four, Raw(b"12345678"), id=0x5678, frag=3, proto=17), IPv6(**six) / IPv6ExtHdrFragment(nh=17, id=0x12345678, offset=3) / Raw(b"12345678")
    for at, (quote4, quote6) in enumerate(quotes(DOWN, 40)):
        errors = [
            (ICMP(type=3, code=1), ICMPv6DestUnreach(code=0)),
            (ICMP(type=3, code=10), ICMPv6DestUnreach(code=1)),
            (ICMP(type=3, code=3), ICMPv6DestUnreach(code=4)),
            (ICMP(type=3, code=4, nexthopmtu=1280 - (8 if at == 4 else 0)), ICMPv6PacketTooBig(mtu=1300)),
            (ICMP(type=11, code=0), ICMPv6TimeExceeded(code=0)),
            (ICMP(type=12, code=0, ptr=8), ICMPv6ParamProblem(code=0, ptr=7)),
            (ICMP(type=3, code=2), ICMPv6ParamProblem(code=1, ptr=6)),
        ]
        for error4, error6 in errors:
            for cut in 0, 1, 25:
                keep = len(quote4) - cut
                rest4, rest6 = Raw(quote4[:keep]), Raw(quote6[: len(quote6) - cut])
                yield ip4(four, error4 / rest4), IPv6(**six) / error6 / rest6
        # A router whose address embeds none.
        yield ip4({**four, "src": "192.0.2.9"}, errors[4][0] / Raw(quote4)), IPv6(**{**six, "src": OTHER6}) / errors[4][1] / Raw(quote6)


def downward():
    """What becomes IPv6, and what it becomes."""
    yield from both(DOWN)
    four, six = DOWN
    data = UDP(sport=1, dport=2) / b"data"
    used = IPOption_RR(length=7, pointer=8, routers=["1.2.3.4"])
    yield IP(**four, options=[used, IPOption_NOP()]) / data, IPv6(**six) / data
    yield IP(**four) / UDP(sport=1, dport=2, chksum=0) / b"odd", IPv6(**six) / UDP(sport=1, dport=2) / b"odd"
    for quote4, quote6 in quotes(UP, 40):
        errors = [
            (ICMP(type=3, code=0), ICMPv6DestUnreach(code=0)),
            (ICMP(type=3, code=13), ICMPv6DestUnreach(code=1)),
            (ICMP(type=3, code=3), ICMPv6DestUnreach(code=4)),
            (ICMP(type=3, code=4, nexthopmtu=1400), ICMPv6PacketTooBig(mtu=1420)),
            (ICMP(type=11, code=1), ICMPv6TimeExceeded(code=1)),
            (ICMP(type=12, code=0, ptr=16), ICMPv6ParamProblem(code=0, ptr=24)),
            (ICMP(type=3, code=2), ICMPv6ParamProblem(code=1, ptr=6)),
        ]
        for error4, error6 in errors:
            for cut in 0, 1, 25:
                rest4, rest6 = Raw(quote4[: len(quote4) - cut]), Raw(quote6[: len(quote6) - cut])
                ends4, ends6 = {**four, "src": ROUTER4}, {**six, "src": ROUTER6}
                yield IP(**ends4) / error4 / rest4, IPv6(**ends6) / error6 / rest6
    # Errors of IPv6 have at most 1280 bytes.
    (quote4, quote6), *_ = quotes(UP, 1400)
    yield IP(**four) / ICMP(type=11) / Raw(quote4), IPv6(**six) / ICMPv6TimeExceeded() / Raw(quote6[:1232])


def make():
    wrpcap("six.pcap", [frame(six) for _, six in upward()])
    wrpcap("four.pcap", [frame(four) for four, _ in downward()])


def without_number(packet):
    """An IPv4 packet that is no fragment without the number that it was given, after a look at its checksum."""
    assert checksum(packet[:20]) == 0, packet.hex()
    if int.from_bytes(packet[6:8], "big") & 0x3FFF:
        return packet
    return packet[:4] + b"\0\0" + packet[6:10] + b"\0\0" + packet[12:]


def compare():
    made4 = sorted(without_number(bytes(packet)[14:]) for packet in rdpcap("made-four.pcap"))
    made6 = sorted(bytes(packet)[14:] for packet in rdpcap("made-six.pcap"))
    expected4 = sorted(without_number(bytes(four)) for four, _ in upward())
    expected6 = sorted(bytes(six) for _, six in downward())
    for made, expected in (made4, expected4), (made6, expected6):
        missing = [packet.hex() for packet in expected if packet not in made]
        surplus = [packet.hex() for packet in made if packet not in expected]
        assert not missing and not surplus, f"missing {missing[:3]}\nsurplus {surplus[:3]}"
        assert len(made) == len(expected), f"{len(made)} packets, not {len(expected)}"


{"make": make, "compare": compare}[sys.argv[1]]()
