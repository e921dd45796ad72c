"""Folded stacks, one a line: `comm;outermost;…;innermost 12`.

As FlameGraph's `stackcollapse-*`, inferno, bpftrace and async-profiler write
them. `_[k]` after a name marks kernel code, `_[j]` compiled and `_[i]` inlined
code; `comm-PID/TID` in front is taken apart. What stands first is the comm if it
can be one (at most 15 bytes, no parenthesis); FlameGraph's tools put it there. Names of
kernel threads are longer (`kworker/0:2H-kblockd`): such a one is a comm if the stack
after it begins where kernel threads do.

There are no times in it. The samples are spread evenly over the seconds before
the file was last written, as many as one core at 100 Hz would have needed, two
minutes at most; an event says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from nodescope.exchange.profiles.spread import Counted
from nodescope.exchange.profiles.untimed import MOST_FRAMES, make_untimed_format, parse_pid
from nodescope.ingest.clean_text import clean, split_lines
from nodescope.ingest.parsed import (
    UNKNOWN,
    UNKNOWN_PID,
    Notes,
    ParsedFrame,
    ParsedNames,
    collapse_unknown,
)

MAX_COUNT = 1 << 40
MAX_COMM_BYTES = 15
MAX_KERNEL_THREAD_BYTES = 63  # fs/proc/array.c: proc_task_name
MAX_NAME_BYTES = 1024
MAX_STACKS = 2_000_000
_LINE = re.compile(rb"(.*\S)[ \t]+(\d{1,18})(?:\.\d{1,9})?[ \t]*$", re.DOTALL)
_KERNEL_THREAD_STARTS = (b"ret_from_fork", b"ret_from_kernel_thread", b"kthread")
_COMM_IDS = re.compile(rb"(.{1,63})-(?:(\d{1,10})|\?)/(\d{1,10})$", re.DOTALL)


def looks_like_folded(head: bytes) -> bool:
    """Return whether a file's first lines are stacks with counts; one has a caller at least."""
    lines = [line for line in head.replace(b"\r", b"").split(b"\n")[:200] if line.strip()]
    if len(lines) > 1 and not head.endswith(b"\n"):
        lines = lines[:-1]
    lines = [line for line in lines if not line.startswith(b"#")]
    return bool(lines) and all(_match(line) for line in lines) and any(b";" in x for x in lines)


def _match(line: bytes) -> re.Match[bytes] | None:
    # From the right: a name may end in digits, and the line may be long.
    tail = line[-40:]
    match = _LINE.match(tail)
    return match if match and b"\0" not in line[:256] else None


def parse_folded(blocks: Iterable[bytes], names: ParsedNames, notes: Notes) -> list[Counted]:
    """All stacks with their counts."""
    counted: list[Counted] = []
    known: dict[bytes, int] = {}
    for offset, raw, whole in split_lines(blocks):
        notes.offset = offset + len(raw)
        match = _match(raw)
        if match is None:
            if not whole:
                notes.stop(offset, "it ends in the middle of a line")
            elif raw.strip() and not raw.startswith(b"#"):
                notes.skipped["lines without a count"] += 1
            continue
        if len(counted) >= MAX_STACKS:
            notes.stop(offset, f"more than {MAX_STACKS} stacks")
            break
        count = int(match[2])
        if not 0 < count <= MAX_COUNT:
            notes.skipped["lines with an impossible count"] += 1
            continue
        stack = raw[: len(raw) - len(raw[-40:]) + match.end(1)]
        counted.append(_stack(stack.split(b";"), count, names, known))
    return counted


def _stack(parts: list[bytes], count: int, names: ParsedNames, known: dict[bytes, int]) -> Counted:
    comm, pid, tid = b"", UNKNOWN_PID, UNKNOWN_PID
    first = parts[0].strip()
    if ids := _COMM_IDS.match(first):
        comm, tid = ids[1], parse_pid(ids[3])
        pid = parse_pid(ids[2]) if ids[2] else tid
    elif _can_be_comm(first, parts):
        comm = first
    frames = []
    for part in parts[1:] if comm else parts:
        number = known.get(part)
        if number is None:
            number = known[part] = names.frame(parse_frame(part))
        frames.append(number)
    path = names.path(tuple(collapse_unknown(frames[:MOST_FRAMES])))
    return Counted(names.comm(clean(comm) or UNKNOWN), pid, tid, path, count)


def _can_be_comm(first: bytes, parts: list[bytes]) -> bool:
    if b"(" in first.lstrip(b"(") or first[-2:] == b"_[":
        return False
    if len(first) <= MAX_COMM_BYTES:
        return True
    starts = len(parts) > 1 and parts[1].startswith(_KERNEL_THREAD_STARTS)
    return starts and len(first) <= MAX_KERNEL_THREAD_BYTES


def parse_frame(part: bytes) -> ParsedFrame:
    """A name with its annotation; a binary's name in brackets is code that was not named."""
    part = part.strip()
    kernel = False
    if part.endswith((b"_[k]", b"_[j]", b"_[i]", b"_[w]", b"_[0]", b"_[1]")):
        kernel, part = part.endswith(b"_[k]"), part[:-4]
    module, tick, name = part.partition(b"`")
    if tick and name:  # DTrace and bpftrace: module`function
        return ParsedFrame(clean(module, MAX_NAME_BYTES), clean(name, MAX_NAME_BYTES), kernel)
    text = clean(part, MAX_NAME_BYTES) or UNKNOWN
    if kernel:
        return ParsedFrame("[kernel]", text, True)
    if text.startswith("[") and text.endswith("]") and text != UNKNOWN:
        return ParsedFrame(text[1:-1], UNKNOWN, False)
    return ParsedFrame(UNKNOWN, text, False)


FORMAT = make_untimed_format("folded stacks", looks_like_folded, parse_folded, "stack with a count")
