"""Network functions for Catena in Python: the NF runtime API, version 1.

A network function is an object with two methods, and ``main()`` runs it::

    import catena_nf

    class Short:
        def init(self, config):
            self.short = catena_nf.reason("short")

        def process(self, batch):
            for packet in batch:
                if len(packet.data) < 34:
                    packet.drop(self.short)

    if __name__ == "__main__":
        catena_nf.main(Short())

``init`` gets the configuration, a text, and names counters and reasons to drop packets. A ``ValueError`` says what is wrong
with the configuration. ``process`` gets each batch. Packets of which it says nothing pass. Bytes of packets are in memory
that is shared with the host: nothing is copied. An exception in ``process`` ends the function; its traceback is printed.

The runtime needs Python 3.9 or later on x86-64, and its standard library alone.

SPDX-License-Identifier: Apache-2.0
"""

import fcntl
import mmap
import os
import re
import signal
import socket
import struct
import sys
import time
import traceback
from array import array

__all__ = ["VERSION", "Counter", "Packet", "counter", "main", "reason"]

VERSION = 1
COUNTERS = 64
REASONS = 32

_HELLO, _ATTACH, _ATTACHED, _BEGIN, _READY, _REFUSED = range(0x4E460001, 0x4E460007)
_WRITES, _COPIES = 1, 2
_YIELD, _STOP = 1, 3
# Words of a page.
_ROUND, _COUNT, _STATE, _RECEIVED, _OUT_OF_TURN, _COUNTERS, _ENTRIES = 0, 1, 2, 8, 12, 64, 512
_PASS, _DROP = 1 << 48, 2 << 48
_MALFORMED = _DROP | 0xFFFF
_LONGEST = 1 << 16
_WORD = (1 << 64) - 1
_NAME = re.compile("[A-Za-z0-9_-]{1,40}", re.ASCII)
_F_GET_SEALS, _F_SEAL_SHRINK = 1034, 2
_MAP_POPULATE = 0x8000
_MSG_CMSG_CLOEXEC = 0x40000000
_ONE = struct.pack("<Q", 1)


class Counter:
    """A counter, which reads like an element's: ``self.seen += 1`` or ``self.seen.add(1)``."""

    __slots__ = ("name", "value")

    def __init__(self, name):
        self.name = name
        self.value = 0

    def add(self, more=1):
        """Adds to it."""
        self.value = self.value + more & _WORD

    def __iadd__(self, more):
        self.value = self.value + more & _WORD
        return self


class Reason:
    """A reason to drop packets."""

    __slots__ = ("name", "_word")

    def __init__(self, name, number):
        self.name = name
        self._word = _DROP | number


_counters = {}
_reasons = {}
_closed = False


def _new(names, name, most):
    if _closed:
        raise RuntimeError("counters and reasons are named in init()")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(names) == most:
        raise ValueError(f"{name!r} is no name, or one too many")


def counter(name):
    """In ``init``: names a counter."""
    if name not in _counters:
        _new(_counters, name, COUNTERS)
        _counters[name] = Counter(name)
    return _counters[name]


def reason(name):
    """In ``init``: names a reason to drop packets."""
    if name not in _reasons:
        _new(_reasons, name, REASONS)
        _reasons[name] = Reason(name, len(_reasons))
    return _reasons[name]


class Packet:
    """A packet of a batch. It and its ``data`` are only used until ``process`` returns."""

    # Its extent is kept as the verdict by which it passes: length in 32 bits, above it the offset in its buffer in 16.
    __slots__ = ("_nf", "_index", "_start", "_pass", "_drop")

    def __init__(self, nf, index):
        self._nf = nf
        self._index = index

    def __len__(self):
        return self._pass & 0xFFFFFFFF

    @property
    def data(self):
        """Its bytes from the Ethernet header on, a memoryview. It is read-only if the manifest has ``writes: none``."""
        word = self._pass
        at = self._start + (word >> 32 & 0xFFFF)
        return self._nf.view[at : at + (word & 0xFFFFFFFF)]

    @property
    def writable(self):
        """Whether its bytes and its length may be changed."""
        return self._nf.writes

    @property
    def head_room(self):
        """Bytes that are free in front of it."""
        return self._pass >> 32 & 0xFFFF

    @property
    def tail_room(self):
        """Bytes that are free behind it."""
        return self._nf.size - self.head_room - len(self)

    def push(self, count):
        """Adds bytes in front, whose content is what was there; whether there was room."""
        return self._reframe(count, self.head_room - count, len(self) + count)

    def pull(self, count):
        """Takes bytes away in front; whether there were so many."""
        return self._reframe(count, self.head_room + count, len(self) - count)

    def resize(self, length):
        """Makes it so long, by bytes more or fewer at its end; whether there was room."""
        return self._reframe(length, self.head_room, length)

    def trim(self, count):
        """Takes bytes away at its end; whether there were so many."""
        return self._reframe(count, self.head_room, len(self) - count)

    def _reframe(self, given, head, length):
        if given < 0 or length < 0 or not 0 <= head <= 0xFFFF or head + length > self._nf.size or not self._nf.writes:
            return False
        self._pass = _PASS | head << 32 | length
        return True

    def pass_(self):
        """It goes on. That is so for packets of which nothing is said."""
        self._drop = 0

    def drop(self, reason):
        """It is dropped."""
        self._drop = reason._word

    @property
    def dropped(self):
        """Whether it is dropped as it stands."""
        return self._drop != 0

    @property
    def time(self):
        """When it came: nanoseconds since 1970."""
        return self._nf.host[_ENTRIES + 4 * self._index + 2]

    @property
    def flow_hash(self):
        """A hash of its flow; 0 if it is not known."""
        return self._nf.host[_ENTRIES + 4 * self._index + 1] >> 32

    @property
    def port(self):
        """The port at which it came."""
        return self._nf.host[_ENTRIES + 4 * self._index + 3] & 0xFFFF

    @property
    def group(self):
        """The group of its flow; 0 if it has none."""
        return self._nf.host[_ENTRIES + 4 * self._index + 3] >> 16 & 0xFFFF


class _Refused(Exception):
    """Why it was not attached."""


def _send(line, kind, body=b""):
    line.sendmsg([struct.pack("<II", kind, VERSION), body], [], socket.MSG_NOSIGNAL)


def _receive(line, due):
    space = socket.CMSG_LEN(8 * array("i").itemsize)
    body, control, flags, _ = line.recvmsg(8 + _LONGEST, space, _MSG_CMSG_CLOEXEC)
    files = array("i")
    for level, kind, data in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(data[: len(data) - len(data) % files.itemsize])
    if not body:
        raise _Refused("the host has ended")
    if len(body) < 8 or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise _Refused("a message that is none of the ABI")
    kind, version = struct.unpack_from("<II", body)
    if version != VERSION:
        raise _Refused(f"the host has version {version} of the ABI, and this NF {VERSION}")
    if kind != due:
        raise _Refused("another message than was due")
    return body[8:], list(files)


def _map(files, length, writable):
    if not files:
        raise _Refused("too few descriptors")
    file = files.pop(0)
    try:
        if not fcntl.fcntl(file, _F_GET_SEALS) & _F_SEAL_SHRINK or os.fstat(file).st_size < length:
            raise _Refused("memory that is shorter than said, or not sealed")
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        return memoryview(mmap.mmap(file, length, mmap.MAP_SHARED | _MAP_POPULATE, access))
    except OSError as why:
        raise _Refused(f"memory that cannot be mapped: {why}") from None
    finally:
        os.close(file)


class _Attached:
    """A function that is attached to its host.

    Words of pages are read and written through views of 64-bit words: CPython copies an aligned word by one load or store.
    x86-64 shows other processes the stores of one in their order, and has loads in order, too: so what is written before
    the word of the round is seen by who reads that word.
    """

    def __init__(self, function, line):
        body, files = _receive(line, _ATTACH)
        if len(body) < 16:
            raise _Refused("too few numbers")
        flags, self.buffers, self.size, self.capacity = struct.unpack_from("<IIII", body)
        is_valid = 1 <= self.buffers <= 1 << 20 and 256 <= self.size <= 1 << 16 and self.size % 64 == 0
        if not is_valid or not 1 <= self.capacity <= 1024:
            raise _Refused("a layout that the ABI has not")
        page = (8 * _ENTRIES + 32 * self.capacity + 4095) // 4096 * 4096
        region = self.buffers * self.size
        self.writes = flags & _WRITES != 0
        self.own = _map(files, page, True).cast("Q")
        if len(files) < 2:
            raise _Refused("too few descriptors")
        self.wake, self.wake_next = files.pop(0), files.pop(0)
        written = _map(files, region, True) if flags & (_WRITES | _COPIES) else None
        _send(line, _ATTACHED)
        body, files = _receive(line, _BEGIN)
        self.host = _map(files, page, False).cast("Q")
        self.before = _map(files, page, False).cast("Q")
        read = _map(files, region, False) if written is None or flags & _COPIES else None
        self.source = read if flags & _COPIES else None
        self.region = read if written is None else written
        # What the function sees of it.
        self.view = self.region if self.writes else self.region.toreadonly()
        try:
            config = body.decode()
        except UnicodeDecodeError:
            raise _Refused("a configuration that is no UTF-8") from None
        self.function = function
        self._init(config)
        names = [f"counter {name}\n" for name in _counters] + [f"reason {name}\n" for name in _reasons]
        self.packets = [Packet(self, index) for index in range(self.capacity)]
        self.counters = list(_counters.values())
        self.counts = [0] * 7
        self.round = self.own[_ROUND]
        _send(line, _READY, "".join(names).encode())

    def _init(self, config):
        global _closed
        init = getattr(self.function, "init", None)
        try:
            if init is not None:
                init(config)
        except ValueError as why:
            raise _Refused(str(why) or "the configuration is wrong") from None
        except Exception as why:
            raise _Refused(f"init raised {type(why).__name__}: {why}") from why
        _closed = True

    def serve(self):
        while self._wait():
            count = min(self.host[_COUNT], self.capacity)
            words, batch = self._take(count)
            begin = time.perf_counter_ns()
            self.function.process(batch)
            self.counts[5] += time.perf_counter_ns() - begin
            self._give(words, batch)

    def _wait(self):
        """Waits for the turn; whether there is one."""
        host, before, woke = self.host, self.before, False
        while True:
            current = host[_ROUND]
            if current != self.round and before[_ROUND] == current:
                self.round = current
                return host[_STATE] < _STOP
            if woke:
                self.counts[4] += 1
                self.own[_OUT_OF_TURN] = self.counts[4]
            state = host[_STATE]
            if state >= _STOP:
                return False
            if state == _YIELD:
                os.sched_yield()
                woke = False
            else:
                os.read(self.wake, 8)
                woke = True

    def _take(self, count):
        """Takes the packets that the one before passed on; and the words of all positions."""
        end = _ENTRIES + 4 * count
        size, buffers, source, region = self.size, self.buffers, self.source, self.region
        words, batch, malformed = [0] * count, [], 0
        rows = zip(self.before[_ENTRIES:end:4].tolist(), self.host[_ENTRIES + 1 : end : 4].tolist(), self.packets)
        for word, place, packet in rows:
            if word >> 48 != 1:
                continue
            buffer = place & 0xFFFFFFFF
            if (word >> 32 & 0xFFFF) + (word & 0xFFFFFFFF) > size or buffer >= buffers:
                words[packet._index] = _MALFORMED
                malformed += 1
                continue
            packet._start = start = buffer * size
            packet._pass = word
            packet._drop = 0
            if source is not None:
                at = start + (word >> 32 & 0xFFFF)
                end = at + (word & 0xFFFFFFFF)
                region[at:end] = source[at:end]
            batch.append(packet)
        self.counts[0] += len(batch) + malformed
        self.counts[3] += malformed
        return words, tuple(batch)

    def _give(self, words, batch):
        """Says what became of them, and hands the turn on."""
        own, dropped = self.own, 0
        for packet in batch:
            word = packet._drop
            if word:
                dropped += 1
            words[packet._index] = word or packet._pass
        own[_ENTRIES : _ENTRIES + 4 * len(words) : 4] = memoryview(array("Q", words))
        counts = self.counts
        counts[1] += len(batch) - dropped
        counts[2] += dropped
        counts[6] += 1
        own[_RECEIVED : _RECEIVED + 7] = memoryview(array("Q", counts))
        for at, one in enumerate(self.counters, _COUNTERS):
            own[at] = one.value
        own[_ROUND] = self.round
        if self.host[_STATE] != _YIELD:
            os.write(self.wake_next, _ONE)


def _end_with_host():
    """Has the kernel end this process when its host ends."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def main(function):
    """Runs a network function until its host ends: the whole of a program."""
    machine = os.uname().machine
    if machine != "x86_64":
        sys.exit(f"error: the runtime in Python is made for x86-64, whose processors keep writes in order, and this is {machine}")
    try:
        line = socket.socket(fileno=0)
    except OSError:
        sys.exit("error: this is a network function, which its host starts: `catena nf run PROGRAM --pcap FILE`")
    sys.stdout.reconfigure(line_buffering=True)
    _end_with_host()
    _send(line, _HELLO)
    try:
        attached = _Attached(function, line)
    except _Refused as why:
        if why.__cause__ is not None:
            traceback.print_exception(type(why.__cause__), why.__cause__, why.__cause__.__traceback__)
        print(f"error: {why}", file=sys.stderr)
        try:
            _send(line, _REFUSED, str(why).encode()[:_LONGEST])
        except OSError:
            pass  # There is nobody any more to say it to.
        sys.exit(1)
    attached.serve()
