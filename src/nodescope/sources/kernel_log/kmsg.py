r"""The kernel's log, record by record: `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg).

    6,1234,5140900,-;message\x0awith escapes
     SUBSYSTEM=net
    6,1235,5140907,-,caller=T812;message      with CONFIG_PRINTK_CALLER

Level and facility share the first number. What a user writes never has facility
0, which is the kernel's own. A record written without a newline at its end may
still be continued and is shown only when the next one comes.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass, field
from typing import NamedTuple

from nodescope.errors import MalformedSource, SourceAbsent, source_error
from nodescope.sources.places import Places

_RECORD_BYTES = 8192  # CONSOLE_EXT_LOG_MAX: a read that offers less may be refused
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


class Record(NamedTuple):
    """One record; its time is on the kernel's own clock, in nanoseconds since boot."""

    sequence: int
    kernel_ns: int
    level: int
    facility: int
    text: str
    caller: str = ""  # the thread (`T812`) or the core (`C3`) that wrote it, if the kernel says so

    @property
    def by_user(self) -> bool:
        """Return whether a user wrote the record, and not the kernel."""
        return self.facility != 0


@dataclass(slots=True)
class KmsgBatch:
    """The records of one look at the log; `more` says that others are waiting."""

    records: list[Record] = field(default_factory=list)
    more: bool = False


def parse_record(raw: bytes) -> Record:
    """One record as a read gives it; properties of the device are left out."""
    head, found, rest = raw.partition(b";")
    fields = head.split(b",", 5)
    try:
        priority, sequence, micros = map(int, fields[:3])
    except ValueError:
        found = b""
        priority = sequence = micros = 0
    if not found:
        raise MalformedSource("/dev/kmsg", f"not a record: {raw[:40]!r}")
    text = rest.partition(b"\n")[0]
    if b"\\x" in text:
        text = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), text)
    caller = fields[4][7:].decode("ascii", "replace") if len(fields) > 4 else ""
    message = text.decode("utf-8", "replace")
    return Record(sequence, micros * 1000, priority & 7, priority >> 3, message, caller)


class KernelLog:
    """A place in the log, from its oldest record on."""

    def __init__(self, places: Places) -> None:
        self.path = places.dev / "kmsg"
        try:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise source_error(self.path, error) from error
        if not stat.S_ISCHR(os.fstat(self._descriptor).st_mode):
            os.close(self._descriptor)
            raise SourceAbsent(self.path, "not a device")

    def read(self, most: int, after: int = -1) -> KmsgBatch:
        """Up to `most` records that follow the one of sequence `after`.

        A record that was overwritten before it was read leaves a hole in the sequence.
        """
        batch = KmsgBatch()
        while len(batch.records) < most:
            try:
                raw = os.read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return batch
            except OSError as error:
                if error.errno == errno.EPIPE:  # overwritten: the next read is of the oldest left
                    continue
                raise source_error(self.path, error) from error
            record = parse_record(raw)
            if record.sequence > after:
                batch.records.append(record)
        batch.more = True
        return batch

    def close(self) -> None:
        """Let go of the device."""
        os.close(self._descriptor)
