r"""`perf script` text without times (`-F comm,pid,ip,sym`), as a profile.

    python3  812/814  [003]  cycles:
    \t    ffffffff81000001 do_syscall_64+0x51 ([kernel.kallsyms])
    \t        7f1c2a94b2c4 read+0x54 (/usr/lib/libc.so.6)

Samples are counted by process and stack, and spread evenly, as those of folded stacks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from nodescope.exchange.perf_script.frames import StackParser, is_frame_line
from nodescope.exchange.profiles.spread import Counted
from nodescope.exchange.profiles.untimed import MOST_FRAMES, make_untimed_format, parse_pid
from nodescope.ingest.clean_text import clean, split_lines
from nodescope.ingest.parsed import UNKNOWN, Notes, ParsedNames

_MOST_STACKS = 2_000_000
_HEADER = re.compile(
    rb"(?!.*\d\.\d{6,9}:)"  # a time
    rb"[ \t]*(?P<comm>\S.{0,63}?)[ \t]+(?P<pid>-1|\d{1,10})(?:/(?P<tid>-1|\d{1,10}))?[ \t]*"
    rb"(?:\[\d{1,5}\][ \t]*)?(?:\d{1,20}[ \t]+)?(?:[\w:/.{}=,-]{1,128}:[ \t]*)?\Z",
    re.DOTALL,
)
_Stack = tuple[int, int, int, int]


def looks_like_untimed_script(head: bytes) -> bool:
    """Return whether a file's first lines are headers without a time, and frames below them."""
    lines = [line for line in head.replace(b"\r", b"").split(b"\n")[:400] if line.strip()]
    lines = [line for line in lines if not line.startswith(b"#")]
    if len(lines) < 2 or not _is_header(lines[0]):
        return False
    frames = sum(is_frame_line(line) for line in lines)
    return frames > 0 and all(is_frame_line(line) or _is_header(line) for line in lines[:-1])


def _is_header(line: bytes) -> bool:
    return not line.startswith(b"\t") and _HEADER.match(line[:256]) is not None


def parse_untimed_script(
    blocks: Iterable[bytes], names: ParsedNames, notes: Notes
) -> list[Counted]:
    """Return the stacks with their counts."""
    counts: Counter[_Stack] = Counter()
    stacks = StackParser(names)
    header: re.Match[bytes] | None = None
    frames: list[bytes] = []
    for offset, raw, _ in split_lines(blocks):
        notes.offset = offset + len(raw)
        line = raw.rstrip(b"\r")
        if header is not None and is_frame_line(line):
            if len(frames) < MOST_FRAMES:
                frames.append(line)
            continue
        _count(counts, header, frames, names, stacks)
        header, frames = None, []
        if not line.strip() or line.startswith(b"#"):
            continue
        header = _HEADER.match(line[:256])
        if header is None:
            notes.skipped["lines that are no sample"] += 1
        if len(counts) >= _MOST_STACKS:
            notes.stop(offset, f"more than {_MOST_STACKS} stacks")
            break
    _count(counts, header, frames, names, stacks)
    return [Counted(*stack, samples) for stack, samples in counts.items()]


def _count(
    counts: Counter[_Stack],
    header: re.Match[bytes] | None,
    frames: list[bytes],
    names: ParsedNames,
    stacks: StackParser,
) -> None:
    """Count the sample that a header and its frames are."""
    if header is None or not frames:
        return
    pid = parse_pid(header["pid"])
    tid = pid if header["tid"] is None else parse_pid(header["tid"])
    comm = names.comm(clean(header["comm"]) or UNKNOWN)
    counts[comm, pid, tid, stacks.parse(frames)] += 1


FORMAT = make_untimed_format(
    "perf script without times", looks_like_untimed_script, parse_untimed_script,
    "sample with a stack",
)  # fmt: skip
