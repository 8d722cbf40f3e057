#!/usr/bin/env python3
"""An access list: drops IPv4 packets from addresses that its configuration denies.

Configuration: one ``deny ADDRESS`` a line.
"""

import ipaddress

import catena_nf


class AccessList:
    def init(self, config):
        self.seen = catena_nf.counter("ipv4")
        self.listed = catena_nf.reason("denied")
        self.denied = set()
        for line in filter(str.strip, config.splitlines()):
            words = line.split()
            if len(words) != 2 or words[0] != "deny":
                raise ValueError(f"expected `deny ADDRESS`, and not {line!r}")
            self.denied.add(ipaddress.IPv4Address(words[1]).packed)

    def process(self, batch):
        for packet in batch:
            data = packet.data
            if len(data) < 34 or data[12] != 8 or data[13] != 0:
                continue
            self.seen += 1
            if data[26:30].tobytes() in self.denied:
                packet.drop(self.listed)


if __name__ == "__main__":
    catena_nf.main(AccessList())
