#!/usr/bin/env python3
"""A function that is also there in C, Rust and Go: see `languages.rs`."""

import os

import catena_nf


class Same:
    def init(self, config):
        self.words = config.split(" ")
        self.act = {
            "pass": self.numbered, "end": self.numbered, "hang": self.numbered, "count": self.count, "rewrite": self.rewrite,
        }.get(self.words[0])
        if config == "name":
            catena_nf.counter("bad name")
        if config == "many":
            for number in range(65):
                catena_nf.counter(f"c{number}")
        if self.act is None:
            raise ValueError(f"no act '{config}'")
        if self.act == self.numbered:
            self.seen, self.last = catena_nf.counter("seen"), -1
        if self.act == self.count:
            self.packets, self.bytes = catena_nf.counter("packets"), catena_nf.counter("bytes")
            self.divided, self.empty = catena_nf.reason("divided"), catena_nf.reason("empty")
        if self.act == self.rewrite:
            self.grown, self.shrunk, self.full = map(catena_nf.counter, ("grown", "shrunk", "full"))
            self.room = catena_nf.reason("room")

    def process(self, batch):
        for packet in batch:
            self.act(packet)

    def is_due(self, number):
        if number < int(self.words[2]):
            return False
        try:
            os.close(os.open(self.words[1], os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def numbered(self, packet):
        number = int.from_bytes(packet.data[-18:-10], "big")
        assert number > self.last
        self.last = number
        self.seen += 1
        if self.words[0] == "end" and self.is_due(number):
            raise RuntimeError("as it was told to")
        while self.words[0] == "hang" and self.is_due(number):
            while True:
                pass

    def count(self, packet):
        self.packets += 1
        self.bytes += len(packet)
        if len(packet) == 0:
            packet.drop(self.empty)
        elif sum(packet.data) % int(self.words[1]) == 0:
            packet.drop(self.divided)

    def rewrite(self, packet):
        length, kind = len(packet), len(packet) % 4
        if kind == 0 and packet.push(4):
            data = packet.data
            kept = min(12, length)
            data[:kept] = bytes(data[4 : 4 + kept])
            if len(data) >= 16:
                data[12:16] = bytes((0x81, 0, packet.port & 0xFF, packet.group & 0xFF))
            self.grown += 1
        elif kind == 1 and packet.pull(3):
            self.shrunk += 1
        elif kind == 2 and packet.resize(length + 9):
            packet.data[length:] = packet.time.to_bytes(8, "little") + bytes((packet.flow_hash & 0xFF,))
            self.grown += 1
        elif kind == 3 and packet.trim(1):
            packet.data[0] ^= 0x5A
            self.shrunk += 1
        elif kind == 2:
            packet.drop(self.room)
        else:
            self.full += 1


if __name__ == "__main__":
    catena_nf.main(Same())
