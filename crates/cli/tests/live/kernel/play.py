"""Plays IP packets through the kernel's forwarding, one by one, between two interfaces of its own.

Reads lines of a side (0 or 1) and a packet in hex. Writes a line for each: 1 if the packet left on the other side, else 0.
A packet that is written to such an interface was forwarded or dropped when the system call returns.
"""

import fcntl
import os
import struct
import subprocess
import sys

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def run(command):
    subprocess.run(command, shell=True, check=True)


sides = []
for number in range(2):
    side = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(side, TUNSETIFF, struct.pack("16sH22x", b"t%d" % number, IFF_TUN | IFF_NO_PI))
    run(f"ip link set t{number} mtu 65535 up; echo 0 > /proc/sys/net/ipv4/conf/t{number}/rp_filter")
    sides.append(side)
for number in range(2):
    run(f"ip rule add iif t{number} lookup {100 + number}; ip route add default dev t{1 - number} table {100 + number}")


def come(side):
    packets = []
    try:
        while True:
            packets.append(os.read(side, 65535))
    except BlockingIOError:
        return packets


def transport(packet):
    return packet[4 * (packet[0] & 15):int.from_bytes(packet[2:4], "big")]


for side in sides:
    come(side)
for line in sys.stdin:
    number, packet = line.split()
    packet = bytes.fromhex(packet)
    os.write(sides[int(number)], packet)
    passed = any(transport(packet) == transport(other) for other in come(sides[1 - int(number)]))
    come(sides[int(number)])
    print(int(passed))
