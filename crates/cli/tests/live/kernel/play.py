"""Plays IP packets through the kernel, one by one, between two interfaces of its own. An argument is the address of the second.

Reads lines of a side (0 or 1) and a packet in hex. Writes a line for each: the packets that left, each as a side, a colon and hex.
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
for address in sys.argv[1:]:
    run(f"ip addr add {address}/32 dev t1")
for number in range(2):
    for version in 4, 6:
        run(f"ip -{version} rule add iif t{number} lookup {100 + number}")
        run(f"ip -{version} route add default dev t{1 - number} table {100 + number}")


def come(version):
    packets = []
    for number, side in enumerate(sides):
        try:
            while True:
                packet = os.read(side, 65535)
                # The kernel has some of its own to send over IPv6.
                if packet[0] >> 4 == version:
                    packets.append(f"{number}:{packet.hex()}")
        except BlockingIOError:
            pass
    return packets


come(4)
for line in sys.stdin:
    number, packet = line.split()
    packet = bytes.fromhex(packet)
    os.write(sides[int(number)], packet)
    print(*come(packet[0] >> 4), flush=True)
