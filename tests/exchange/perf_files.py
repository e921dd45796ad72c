"""Whole `perf.data` files for tests: the writing side of `exchange.perf_data`."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID = (1 << bit for bit in range(10))
IDENTIFIER, CGROUP = 1 << 16, 1 << 21
USUAL = IP | TID | TIME | CALLCHAIN | ID | CPU | PERIOD
KERNEL, USER = 2**64 - 128, 2**64 - 512
SAMPLE_ID_ALL, FREQ = 1 << 18, 1 << 10
CPU_CLOCK, PAGE_FAULTS, DUMMY = 0, 2, 9
_ORDER = (IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD)
_TRAILER = (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER)


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


@dataclass(frozen=True)
class Event:
    config: int = CPU_CLOCK
    ids: tuple[int, ...] = (1, 2)
    sample_type: int = USUAL
    name: str = "cpu-clock:ppp"
    kind: int = 1
    read_format: int = 0
    sample_id_all: bool = True

    def attribute(self) -> bytes:
        flags = FREQ | (SAMPLE_ID_ALL if self.sample_id_all else 0)
        head = struct.pack(
            "<IIQQQQQ", self.kind, 128, self.config, 97, self.sample_type, self.read_format, flags
        )
        return head.ljust(128, b"\0")

    def _words(self, values: Mapping[int, int], order: Sequence[int]) -> bytes:
        return b"".join(struct.pack("<Q", values[bit]) for bit in order if self.sample_type & bit)

    def _values(self, pid: int, tid: int, time: int, cpu: int) -> dict[int, int]:
        tid_word = (pid & 0xFFFFFFFF) | (tid & 0xFFFFFFFF) << 32
        first = self.ids[0] if self.ids else 0
        values = dict.fromkeys(_ORDER, 0xABCD)
        return values | {TID: tid_word, TIME: time, CPU: cpu, ID: first, IDENTIFIER: first}

    def sample(
        self,
        pid: int,
        time: int,
        *,
        tid: int | None = None,
        cpu: int = 0,
        kernel: Sequence[int] = (),
        user: Sequence[int] = (),
        cgroup: int = 0,
        after: bytes = b"",
        group: int = 2,
    ) -> bytes:
        chain = [*([KERNEL, *kernel] if kernel else []), *([USER, *user] if user else [])]
        values = self._values(pid, pid if tid is None else tid, time, cpu)
        values[IP] = (*kernel, *user, 0)[0]
        body = self._words(values, _ORDER)
        if self.sample_type & READ and self.read_format & 8:
            times, member = self.read_format & 0b11, self.read_format & 0b10100
            words = times.bit_count() + group * (1 + member.bit_count())
            body += struct.pack("<Q", group) + struct.pack("<Q", 7) * words
        elif self.sample_type & READ:
            body += struct.pack("<Q", 7) * (1 + (self.read_format & 0b10111).bit_count())
        if self.sample_type & CALLCHAIN:
            body += struct.pack(f"<{len(chain) + 1}Q", len(chain), *chain)
        body += after
        if self.sample_type & CGROUP:
            body += struct.pack("<Q", cgroup)
        return record(9, body, 1 if kernel else 2)

    def other(
        self, kind: int, body: bytes, pid: int, time: int, *, cpu: int = 0, misc: int = 0
    ) -> bytes:
        body += b"\0" * (-len(body) % 8)
        if self.sample_id_all:
            body += self._words(self._values(pid, pid, time, cpu), _TRAILER)
        return record(kind, body, misc)

    def comm(self, pid: int, time: int, name: str, *, executed: bool = False) -> bytes:
        body = struct.pack("<II", pid, pid) + name.encode() + b"\0"
        return self.other(3, body, pid, time, misc=1 << 13 if executed else 0)

    def fork(self, pid: int, parent: int, time: int, *, made_up: bool = False) -> bytes:
        body = struct.pack("<IIIIQ", pid, parent, pid, parent, time)
        return self.other(7, body, pid, time, misc=1 << 13 if made_up else 0)

    def mmap(self, pid: int, time: int, start: int, length: int, path: str) -> bytes:
        body = struct.pack("<IIQQQ", pid, pid, start, length, 0) + path.encode() + b"\0"
        return self.other(1, body, pid, time, misc=2)

    def mmap2(
        self,
        pid: int,
        time: int,
        start: int,
        length: int,
        path: str,
        *,
        inode: int = 7,
        build_id: bytes | None = None,
    ) -> bytes:
        body = struct.pack("<IIQQQ", pid, pid, start, length, 0)
        if build_id is None:
            body += struct.pack("<IIQQ", 8, 1, inode, 0)
        else:
            body += struct.pack("<BBH20s", len(build_id), 0, 0, build_id)
        body += struct.pack("<II", 5, 2) + path.encode() + b"\0"
        return self.other(10, body, pid, time, misc=2 | (0 if build_id is None else 1 << 14))

    def lost(self, count: int, time: int, *, cpu: int = 0) -> bytes:
        return self.other(2, struct.pack("<QQ", self.ids[0], count), 0, time, cpu=cpu)


FINISHED_ROUND = record(68, b"")


def string(text: str) -> bytes:
    raw = text.encode() + b"\0"
    raw += b"\0" * (-len(raw) % 64)
    return struct.pack("<I", len(raw)) + raw


@dataclass
class File:
    events: Sequence[Event]
    data: bytes
    hostname: str | None = "alpha"
    clock: tuple[int, int] | None = None  # the file's own time, wall time
    more: dict[int, bytes] = field(default_factory=dict)

    def features(self) -> dict[int, bytes]:
        found = dict(self.more)
        if self.hostname is not None:
            found[3] = string(self.hostname)
        found[4] = string("6.1.0-test")
        found[7] = struct.pack("<II", 4, 4)
        descriptions = struct.pack("<II", len(self.events), 128)
        for event in self.events:
            descriptions += event.attribute() + struct.pack("<I", len(event.ids))
            descriptions += string(event.name) + struct.pack(f"<{len(event.ids)}Q", *event.ids)
        found[12] = descriptions
        if self.clock is not None:
            found[29] = struct.pack("<IIQQ", 1, 1, self.clock[1], self.clock[0])
        return dict(sorted(found.items()))

    def content(self) -> bytes:
        ids = b"".join(struct.pack(f"<{len(e.ids)}Q", *e.ids) for e in self.events)
        attributes, at = b"", 104
        for event in self.events:
            attributes += event.attribute() + struct.pack("<QQ", at, 8 * len(event.ids))
            at += 8 * len(event.ids)
        data_at = 104 + len(ids) + len(attributes)
        features = self.features()
        bits = sum(1 << number for number in features).to_bytes(32, "little")
        header = struct.pack(
            "<8sQQ6Q32s", b"PERFILE2", 104, 144, 104 + len(ids), len(attributes), data_at,
            len(self.data), 0, 0, bits,
        )  # fmt: skip
        table, bodies = b"", b""
        body_at = data_at + len(self.data) + 16 * len(features)
        for body in features.values():
            table += struct.pack("<QQ", body_at + len(bodies), len(body))
            bodies += body
        return header + ids + attributes + self.data + table + bodies

    def pipe(self) -> bytes:
        records = b"".join(
            record(64, event.attribute() + struct.pack(f"<{len(event.ids)}Q", *event.ids))
            for event in self.events
        )
        for number, body in self.features().items():
            records += record(80, struct.pack("<Q", number) + body)
        return b"PERFILE2" + struct.pack("<Q", 16) + records + self.data
