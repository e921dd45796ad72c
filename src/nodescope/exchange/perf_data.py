"""`perf.data`, as `perf record` writes it."""

from __future__ import annotations

from pathlib import Path

from nodescope.errors import SourceError
from nodescope.exchange.formats import Format, ImportReport, Peek, Progress, Sink

MAGIC = b"PERFILE2"


def _detect(head: bytes, path: Path) -> bool:
    del path
    return head.startswith((MAGIC, MAGIC[::-1]))


def _peek(path: Path) -> Peek:
    del path
    return Peek()


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    del sink, progress
    raise SourceError(path, "not read yet")


FORMAT = Format("perf.data", _detect, _peek, _import)
