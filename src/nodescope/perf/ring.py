"""One ring buffer of perf records, shared with the kernel.

The first page of the mapping is `struct perf_event_mmap_page`; `data_head`
(written by the kernel) and `data_tail` (written by us) stand at byte 1024 and
1032 of it. The kernel writes records after the head and never past the tail:
what does not fit is counted as lost, in the ring and by the event itself.
"""

from __future__ import annotations

import mmap
import os

import numpy as np

from nodescope.errors import SourceDenied, SourceError
from nodescope.perf import event

_PAGE = mmap.PAGESIZE
_HEAD, _TAIL = 1024 // 8, 1032 // 8


class Ring:
    """The events of one CPU since it was last drained."""

    def __init__(
        self, cpu: int, sampler: event.Sampler | event.Tracepoint | event.Renames, size_bytes: int
    ) -> None:
        self.cpu = cpu
        self.size_bytes = size_bytes
        self._counts_lost = sampler.lost_counter
        try:
            self.descriptor = event.open_event(sampler.attribute(), cpu=cpu)
        except OSError as error:
            raise SourceError(f"perf event of CPU {cpu}", error.strerror or str(error)) from error
        try:
            self._map = mmap.mmap(
                self.descriptor,
                _PAGE + size_bytes,
                mmap.MAP_SHARED,
                mmap.PROT_READ | mmap.PROT_WRITE,
            )
        except OSError as error:
            os.close(self.descriptor)
            if isinstance(error, PermissionError):
                raise SourceDenied(
                    f"perf ring of CPU {cpu}",
                    "no more memory may be locked",
                    hint="use a smaller --ring-size, or grant CAP_IPC_LOCK",
                ) from error
            raise SourceError(f"perf ring of CPU {cpu}", error.strerror or str(error)) from error
        # Aligned 8-byte loads and stores through a view are single instructions;
        # a struct.unpack would copy byte by byte and could tear.
        self._control = np.frombuffer(self._map, np.uint64, _PAGE // 8)
        self._data = memoryview(self._map)[_PAGE:]

    def enable(self) -> None:
        """Start sampling."""
        event.enable(self.descriptor)

    def head(self) -> int:
        """How far the kernel has written."""
        return int(self._control[_HEAD])

    def drain(self, head: int) -> bytes:
        """All whole records up to `head`; their room is given back to the kernel."""
        tail = int(self._control[_TAIL])
        count = head - tail
        if count <= 0:
            return b""
        start = tail % self.size_bytes
        end = start + count
        if end <= self.size_bytes:
            taken = bytes(self._data[start:end])
        else:
            taken = b"".join((self._data[start:], self._data[: end - self.size_bytes]))
        self._control[_TAIL] = head
        return taken

    def lost(self) -> int | None:
        """Samples the event itself says it dropped; None where the kernel does not count."""
        return event.read_lost(self.descriptor) if self._counts_lost else None

    def close(self) -> None:
        """Give the ring back. A second call does nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1
            self._data.release()
            del self._control
            self._map.close()
