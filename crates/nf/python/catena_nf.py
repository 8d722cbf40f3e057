"""Network functions for Catena in Python: the NF runtime API, version 2.

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

__all__ = ["VERSION", "Away", "Counter", "Packet", "counter", "main", "reason", "reverse", "state"]
__all__ += ["FIELD_ALL", "FIELD_DESTINATION", "FIELD_DESTINATION_PORT", "FIELD_PROTOCOL", "FIELD_SOURCE", "FIELD_SOURCE_PORT", "VALUE"]

# Fields of a packet that make its flow; all of them are the 5-tuple.
FIELD_SOURCE, FIELD_DESTINATION, FIELD_PROTOCOL, FIELD_SOURCE_PORT, FIELD_DESTINATION_PORT = 1, 2, 4, 8, 16
FIELD_ALL = 31

VERSION = 2
COUNTERS = 64
REASONS = 32
VALUE = 1024

_HELLO, _ATTACH, _ATTACHED, _BEGIN, _READY, _REFUSED, _READ, _VALUES, _UPDATE = range(0x4E460001, 0x4E46000A)
_WRITES, _COPIES, _STORE, _OPEN = 1, 2, 4, 8
_ABSENT, _AWAY = 0xFFFF, 0xFFFE
_YIELD, _STOP = 1, 3
# Words of a page.
_ROUND, _COUNT, _STATE, _RECEIVED, _OUT_OF_TURN, _COUNTERS, _ENTRIES = 0, 1, 2, 8, 12, 64, 512
_PASS, _DROP = 1 << 48, 2 << 48
_MALFORMED, _NO_STATE = _DROP | 0xFFFF, _DROP | 0xFFFE
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


_fields = None


def state(fields):
    """In ``init``: says that it keeps state of flows, and which fields of a packet make its flow. Before each batch, the state of
    these flows is read."""
    global _fields
    if _closed:
        raise RuntimeError("that a function keeps state is said in init()")
    _fields = fields & FIELD_ALL


class Away(Exception):
    """The state of a flow cannot be read now."""


# Where fields stand in a flow: fields, IP version, protocol, a zero, source and destination port, source and destination address.
_SPANS = ((1, 8, 24), (2, 24, 40), (4, 2, 3), (8, 4, 6), (16, 6, 8))


def _flow(data, fields):
    """The flow of a frame, 40 bytes; None if it is not IP. What it has not is 0."""
    at = 12
    for _ in range(2):
        if bytes(data[at : at + 2]) in (b"\x81\x00", b"\x88\xa8"):
            at += 4
    kind, packet = bytes(data[at : at + 2]), data[at + 2 :]
    flow, ports = bytearray(40), 0
    if kind == b"\x08\x00" and len(packet) >= 20 and packet[0] >> 4 == 4:
        header = (packet[0] & 15) * 4
        if header < 20 or len(packet) < header:
            return None
        flow[1], flow[2] = 4, packet[9]
        flow[8:12], flow[24:28] = packet[12:16], packet[16:20]
        if not packet[6] & 0x3F and not packet[7]:
            ports = header
    elif kind == b"\x86\xdd" and len(packet) >= 40 and packet[0] >> 4 == 6:
        following, ports = packet[6], 40
        for _ in range(8):
            if ports + 8 > len(packet):
                break
            if following == 44:
                following, ports = packet[ports], 0
                break
            if following not in (0, 43, 60):
                break
            following, ports = packet[ports], ports + 8 + packet[ports + 1] * 8
        flow[1], flow[2] = 6, following
        flow[8:40] = packet[8:40]
    else:
        return None
    if ports and ports + 4 <= len(packet) and flow[2] in (6, 17, 132):
        flow[4:8] = packet[ports : ports + 4]
    flow[0] = fields
    for bit, begin, end in _SPANS:
        if not fields & bit:
            flow[begin:end] = bytes(end - begin)
    return bytes(flow)


def reverse(flow):
    """The flow of the opposite direction."""
    fields = flow[0] & 4 | (flow[0] & 9) << 1 | (flow[0] & 18) >> 1
    return bytes((fields,)) + flow[1:4] + flow[6:8] + flow[4:6] + flow[24:40] + flow[8:24]


class Packet:
    """A packet of a batch. It and its ``data`` are only used until ``process`` returns."""

    # Its extent is kept as the verdict by which it passes: length in 32 bits, above it the offset in its buffer in 16.
    __slots__ = ("_nf", "_index", "_start", "_pass", "_drop", "_update")

    def __init__(self, nf, index):
        self._nf = nf
        self._index = index
        self._update = 0

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


    @property
    def flow(self):
        """Its flow as it is now, by the fields that ``state`` names: 40 bytes; None if it is not IP."""
        return None if _fields is None else _flow(self.data, _fields)

    def read(self, flow):
        """What is kept of a flow: bytes, or None. Raises ``Away`` if it cannot be read now.

        The packet leaves the chain after all updates of that flow before."""
        value, number = self._nf.cache.read(flow)
        self._update = max(self._update, number)
        return value

    def update(self, flow, value):
        """Keeps a value of a flow, at most ``VALUE`` bytes. The packet leaves the chain when that is stored."""
        value = bytes(value)
        if len(value) > VALUE:
            raise ValueError(f"the value has more than {VALUE} bytes")
        self._update = max(self._update, self._nf.cache.update(flow, value))

    def remove(self, flow):
        """Keeps nothing of a flow from now on. The packet leaves the chain when that is stored."""
        self._update = max(self._update, self._nf.cache.update(flow, None))


class _Cache:
    """What is known of flows, and what is still to be sent. With a store behind it, what it does not know is read there."""

    def __init__(self, line, most):
        self.line = line
        self.most = most
        # By flow: the value, and the number of its last update. The first leaves first.
        self.entries = {}
        self.last = 0
        self.updates = bytearray()

    def insert(self, flow, value, number):
        self.entries.pop(flow, None)
        while len(self.entries) >= self.most:
            del self.entries[next(iter(self.entries))]
        self.entries[flow] = (value, number)

    def fetch(self, flows):
        """Reads flows in one request; those that cannot be read now."""
        _send(self.line, _READ, b"".join(flows))
        away, done = set(), 0
        while done < len(flows):
            body, _ = _receive(self.line, _VALUES)
            at = 0
            while at < len(body):
                word = int.from_bytes(body[at : at + 2], "little")
                value = body[at + 2 : at + 2 + word] if word < _AWAY else None
                if done == len(flows) or len(body) - at < 2 or (value is not None and not len(value) == word <= VALUE):
                    raise _Refused("the host says what is no state")
                if word == _AWAY:
                    away.add(flows[done])
                else:
                    self.insert(flows[done], value, 0)
                at += 2 + len(value or b"")
                done += 1
            if not body:
                raise _Refused("the host says what is no state")
        return away

    def read(self, flow):
        if not isinstance(flow, bytes) or len(flow) != 40:
            raise ValueError("a flow has 40 bytes")
        if flow not in self.entries and self.line is not None:
            # What was updated before it left the cache is written before it is read.
            self.flush()
            if self.fetch([flow]):
                raise Away
        known = self.entries.pop(flow, None)
        if known is None:
            return None, 0
        # What was used last leaves last.
        self.entries[flow] = known
        return known

    def update(self, flow, value):
        if not isinstance(flow, bytes) or len(flow) != 40:
            raise ValueError("a flow has 40 bytes")
        number = 0
        if self.line is not None:
            self.last += 1
            number = self.last
            if len(self.updates) + 50 + VALUE > _LONGEST:
                self.flush()
            length = _ABSENT if value is None else len(value)
            self.updates += struct.pack("<Q40sH", number, flow, length) + (value or b"")
        self.insert(flow, value, number)
        return number

    def flush(self):
        """Before the host sees which updates packets wait for, it has them."""
        if self.updates:
            _send(self.line, _UPDATE, bytes(self.updates))
            self.updates.clear()


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
        if len(body) < 20:
            raise _Refused("too few numbers")
        flags, self.buffers, self.size, self.capacity, most = struct.unpack_from("<IIIII", body)
        is_valid = 1 <= self.buffers <= 1 << 20 and 256 <= self.size <= 1 << 16 and self.size % 64 == 0
        if not is_valid or not 1 <= self.capacity <= 1024 or most < 1:
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
        self.opens = flags & _OPEN != 0
        self.has_store = flags & _STORE != 0 and _fields is not None
        self.cache = _Cache(line if self.has_store else None, most)
        names = [f"counter {name}\n" for name in _counters] + [f"reason {name}\n" for name in _reasons]
        self.packets = [Packet(self, index) for index in range(self.capacity)]
        self.counters = list(_counters.values())
        self.counts = [0] * 7
        self.round = self.own[_ROUND]
        if _fields is not None:
            names.append("state\n")
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
            if self.has_store:
                batch = self._read_state(words, batch)
            begin = time.perf_counter_ns()
            self.function.process(batch)
            self.counts[5] += time.perf_counter_ns() - begin
            self.cache.flush()
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

    def _read_state(self, words, batch):
        """Reads the state of the batch's flows that is not known, in one request. Those packets that are to be processed: not those
        whose state cannot be read."""
        flows = [packet.flow for packet in batch]
        missing = [flow for flow in dict.fromkeys(flows) if flow is not None and flow not in self.cache.entries]
        away = self.cache.fetch(missing) if missing else ()
        updates = self.own[_ENTRIES + 1 :: 4]
        kept = []
        for packet, flow in zip(batch, flows):
            packet._update = 0
            if flow not in away:
                kept.append(packet)
                continue
            words[packet._index] = packet._pass if self.opens else _NO_STATE
            updates[packet._index] = 0
            self.counts[1 if self.opens else 2] += 1
        return tuple(kept)

    def _give(self, words, batch):
        """Says what became of them, and hands the turn on."""
        own, dropped = self.own, 0
        for packet in batch:
            word = packet._drop
            if word:
                dropped += 1
            words[packet._index] = word or packet._pass
            if self.has_store:
                own[_ENTRIES + 4 * packet._index + 1] = packet._update
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
