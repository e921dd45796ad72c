"""Kernel logs as `dmesg --json` writes them: one object with a list of messages.

Its times are seconds since boot, as those of plain `dmesg` (util-linux 2.38 on); it is read as the
same lines in the form of `dmesg -x`. The list is taken apart line by line, so that a damaged or
cut file gives what it has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nodescope.exchange.import_formats import ImportFormat, Peek, Progress
from nodescope.exchange.importer import detects
from nodescope.exchange.logs import kernel_log
from nodescope.ingest.sink import ImportReport, Sink

_FIELD = re.compile(rb'\s*"(fac|pri|time|caller|msg)"\s*:\s*(.{1,65536}?),?\s*\Z', re.DOTALL)


def looks_like_dmesg_json(head: bytes) -> bool:
    """Return whether a file begins as that object does."""
    return re.match(rb'\s*\{\s*"dmesg"\s*:\s*\[', head) is not None


def plain_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the messages as lines of `dmesg -x`, a block for each."""
    found: dict[str, object] = {}
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block)[-_LONGEST:].split(b"\n")
        for line in lines:
            if (said := _line_of(line, found)) is not None:
                yield said
    if (said := _line_of(rest, found)) is not None:
        yield said


_LONGEST = 8 << 20  # what does not end in a line is no such file


def _line_of(line: bytes, found: dict[str, object]) -> bytes | None:
    """Keep a field of a message; return the message as a line where it ends."""
    if b"{" in line[:32]:
        found.clear()
    match = _FIELD.match(line)
    if match is None:
        return None
    try:
        found[match[1].decode()] = json.loads(match[2])
    except (ValueError, RecursionError):
        return None
    if match[1] != b"msg":
        return None
    level = _level(found.get("fac", "kern"), found.get("pri"))
    caller = f"[{found['caller']}]" if found.get("caller") else ""
    text = str(found["msg"]).replace("\r", " ").replace("\n", "\n ")
    return f"{level}[{float_text(found.get('time'))}]{caller} {text}\n".encode("utf-8", "replace")


def _level(facility: object, priority: object) -> str:
    """Return what `dmesg -x`, or `dmesg -r` for a number, puts before the time."""
    if isinstance(priority, int) and 0 <= priority < 256:
        return f"<{priority}>"
    return f"{facility}  :{priority}  : "


def float_text(value: object) -> str:
    """Return seconds since boot as `dmesg` prints them."""
    known = isinstance(value, int | float) and 0 <= value < 1e10
    return f"{value:12.6f}" if known else "    0.000000"


def _peek(path: Path) -> Peek:
    return kernel_log.peek(path, plain_lines)


def _import(path: Path, sink: Sink, progress: Progress) -> ImportReport:
    return kernel_log.import_lines(path, sink, progress, FORMAT.name, plain_lines)


FORMAT = ImportFormat("dmesg JSON", detects(looks_like_dmesg_json), _peek, _import)
