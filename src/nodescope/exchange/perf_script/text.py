r"""`perf script` text: gigabytes of it, in constant memory.

A sample is a header line and, with call chains, one line per frame, innermost
first, and a blank line (tools/perf/builtin-script.c, util/evsel_fprintf.c):

    Web Content  2881/2903  [003] 86204.314159:   10101010 cpu-clock:ppp:
    \t    7f1c2a94b2c4 __poll+0x54 (/usr/lib/x86_64-linux-gnu/libc.so.6)

Fields may be missing (`-F`), numbers padded, and a comm may contain almost
anything, so the header is recognised from its number, core and time onward.
With one number only it is the thread's.

Speed comes from never looking at the same text twice: a stack's text is known
by its hash, a line by itself. Python's hash of bytes is a keyed 64-bit SipHash:
nobody can choose texts that collide, and a million of them do by chance once in
thirty million files.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterable, Iterator

import numpy as np

from nodescope.archive.layout import MAX_TIME_NS
from nodescope.exchange.perf_script.frames import StackParser, is_frame_line
from nodescope.ingest.clean_text import clean
from nodescope.ingest.parsed import UNKNOWN_CPU, Notes, ParsedNames, ParsedSamples
from nodescope.quantities import SECOND_NS

MAX_HEADER_BYTES = 1024
MAX_SAMPLE_BYTES = 1 << 20  # without a blank line for so long, lines stand for themselves
MAX_GARBAGE_BYTES = 64 << 20  # without a single sample, this is something else
MAX_KNOWN_STACKS = 300_000
MAX_KNOWN_COMMS = 100_000
MAX_PATHS = 200_000  # then numbering starts anew, so that memory stays bounded

_HEADER = re.compile(
    rb"[ \t]*(?:(\S.{0,63}?)[ \t]+)?"  # comm
    rb"(-1|\d{1,10})(?:/(-1|\d{1,10}))?[ \t]+"  # thread, or process/thread
    rb"(?:\[(\d{1,5})\][ \t]+)?"  # core
    rb"(?:[A-Za-z.][\w.]{0,9}[ \t]+)?"  # flags, misc
    rb"(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\.(\d{6,9})[ \t]+)?"  # time of day
    rb"([0-4]?\d{1,9})\.(\d{6}(?:\d{3})?):(?:[ \t]+|$)"  # time, in 63 bits of nanoseconds
    rb"(?:\d{1,20}[ \t]+)?"  # period
    rb"(.*)",  # event, and without call chains what ran
    re.DOTALL,
)
_ONE_FRAME = re.compile(rb"\S+:[ \t]+([0-9a-f]{1,16}[ \t].*)", re.DOTALL)
_TRACEPOINT = re.compile(rb"[\w-]+:(?![ukhIGHDpPSWebR]+:?$)[\w-]+:?$")
_LOST = re.compile(rb"PERF_RECORD_LOST(?:_SAMPLES)?\b.*?lost[ \t]+(\d{1,18})")
_FACT = re.compile(rb"#\s*([a-z][\w ]{0,30}?)\s*:\s(.*)")
_FACTS_KEPT = {"captured on", "hostname", "os release", "time of first sample",
               "time of last sample", "nrcpus online", "cmdline"}  # fmt: skip
_Fields = tuple[bytes | None, ...]


def looks_like_perf_script(head: bytes) -> bool:
    """Return whether a file begins like the text of perf script."""
    lines = head.replace(b"\r", b"").split(b"\n")[:400]
    if any(line.startswith(b"# captured on") for line in lines[:8]):
        return True
    headers = sum(1 for line in lines if _HEADER.match(line, 0, MAX_HEADER_BYTES))
    frames = sum(1 for line in lines if is_frame_line(line))
    other = sum(1 for line in lines[:-1] if line.strip() and not line.startswith((b"#", b" ")))
    return headers > 0 and (frames > 0 or headers * 2 >= other)


def parse_perf_script(blocks: Iterable[bytes], notes: Notes) -> Iterator[ParsedSamples]:
    """The samples of a text given in blocks; times are those of perf's clock."""
    parser = _Parser(notes)
    carry, seen = b"", 0
    for block in blocks:
        text = carry + block if carry else block
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        cut = text.rfind(b"\n\n")
        if cut < 0 and len(text) > MAX_SAMPLE_BYTES:
            cut = text.rfind(b"\n")
            if cut < 0:
                notes.skipped["lines longer than a megabyte"] += 1
                cut = len(text) - 1
        carry = text[cut + 1 :]
        if cut >= 0:
            seen += cut + 1
            yield parser.parse(text[:cut])
        if not parser.found and seen > MAX_GARBAGE_BYTES:
            notes.stop(seen, f"no sample in the first {seen >> 20} MiB")
            return
    if carry.strip():
        ends_whole = carry.endswith(b"\n") or not is_frame_line(carry.rpartition(b"\n")[2])
        yield parser.parse(carry if ends_whole else carry.rpartition(b"\n")[0])
        if not ends_whole:
            notes.stop(seen + carry.rfind(b"\n") + 1, "it ends in the middle of a line")
    notes.offset = notes.offset if notes.stopped else seen + len(carry)


class _Parser:
    """Keeps what is known of stacks, lines and comms between blocks."""

    def __init__(self, notes: Notes) -> None:
        self.found = False
        self._notes = notes
        self._last_ns = 0
        self._threads_only = False
        self._restart()
        self._tracepoints: bool | None = None  # which kind of event is taken
        self._events: dict[bytes, bool] = {}

    def _restart(self) -> None:
        self.names = ParsedNames()
        self._stacks = StackParser(self.names)
        self._known_stacks: dict[int, int] = {hash(b""): 0}
        self._known_comms: dict[bytes | None, int] = {}

    def parse(self, text: bytes) -> ParsedSamples:
        """The samples of some whole samples' text."""
        if len(self.names.paths) > MAX_PATHS or len(self.names.comms) > MAX_KNOWN_COMMS:
            self._restart()
        rows: list[tuple[int, int, int, int, int, int]] = []
        add = rows.append
        match_header = _HEADER.match
        known_stack, known_comm = self._known_stacks.get, self._known_comms.get
        wanted = self._events.get
        for sample in text.split(b"\n\n"):
            head, _, stack = sample.partition(b"\n")
            match = match_header(head, 0, MAX_HEADER_BYTES)
            if match is None:
                if sample:
                    self._parse_lines(sample, rows)
                continue
            comm, pid, tid, cpu, day, _, seconds, fraction, rest = match.groups()
            path = known_stack(hash(stack))
            if path is None:
                path = self._learn_stack(stack)
                if path is None:
                    self._parse_lines(sample, rows)
                    continue
            if not wanted(rest.partition(b" ")[0]) and not self._wants(rest):
                continue
            if not path and not stack and rest:
                path = self._path_in_header(rest)
            number = known_comm(comm)
            if number is None:
                number = self._learn_comm(comm)
            time_ns = int(seconds) * SECOND_NS + int(fraction) * (1000 if len(fraction) == 6 else 1)
            if tid is None:
                self._threads_only = True
            if day is not None:
                self._note_time_of_day(match.groups(), time_ns)
            add((time_ns, -1 if cpu is None else int(cpu), int(pid), int(tid or pid), number, path))
        return self._columns(rows)

    def _columns(self, rows: list[tuple[int, int, int, int, int, int]]) -> ParsedSamples:
        table = np.array(rows, np.int64).reshape(len(rows), 6)
        time_ns, cpu, pid, tid, comm, path = table.T
        fits = (
            (time_ns <= MAX_TIME_NS)
            & (cpu < 1 << 15)
            & (pid < 1 << 31)
            & (tid < 1 << 31)
            & (np.abs(tid - pid) < 1 << 31)
        )
        if not fits.all():
            self._notes.skipped["samples with impossible numbers"] += int((~fits).sum())
            time_ns, cpu, pid, tid, comm, path = table[fits].T
        self.found = self.found or len(time_ns) > 0
        if len(cpu) and int(cpu.min()) == UNKNOWN_CPU:
            self._notes.remark("the text does not say on which core (perf script -F +cpu)")
        if self._threads_only:
            self._notes.remark("it tells threads, not processes; each stands for one (-F +pid)")
        self._notes.out_of_order += int(
            np.count_nonzero(np.diff(time_ns, prepend=self._last_ns) < 0)
        )
        self._last_ns = int(time_ns[-1]) if len(time_ns) else self._last_ns
        if self._stacks.deepest:
            cut_off = np.isin(path, np.array(sorted(self._stacks.deepest), np.int64))
            self._notes.truncated += int(np.count_nonzero(cut_off))
        in_kernel = np.fromiter((self.names.in_kernel[row] for row in path.tolist()), np.int64)
        return ParsedSamples(self.names, time_ns, cpu, pid, tid, comm, in_kernel, path)

    # -- what is met for the first time -----------------------------------------

    def _learn_stack(self, stack: bytes) -> int | None:
        """The path of a stack's text; None if it holds another header."""
        lines = stack.split(b"\n")
        # perf begins a frame with a tab; `dd` at a line's start is no address.
        if len(stack) > MAX_SAMPLE_BYTES or any(
            _HEADER.match(line, 0, MAX_HEADER_BYTES) for line in lines if not line.startswith(b"\t")
        ):
            return None
        if len(self._known_stacks) > MAX_KNOWN_STACKS:
            self._known_stacks.clear()
        path = self._known_stacks[hash(stack)] = self._stacks.parse(lines)
        return path

    def _learn_comm(self, raw: bytes | None) -> int:
        if len(self._known_comms) > MAX_KNOWN_COMMS:
            self._known_comms.clear()
        number = self._known_comms[raw] = self.names.comm(clean(raw or b""))
        return number

    def _wants(self, rest: bytes) -> bool:
        """Decide whether samples of this event count: its kind is that of the first event met."""
        if rest.startswith(b"PERF_RECORD_"):
            if match := _LOST.match(rest):
                self._notes.lost += int(match[1])
            return False
        event = rest.partition(b" ")[0]
        if event not in self._events:
            is_tracepoint = _TRACEPOINT.match(event) is not None
            if self._tracepoints is None:
                self._tracepoints = is_tracepoint
            if len(self._events) > 1000:
                self._events.clear()
            self._events[event] = is_tracepoint == self._tracepoints
        if not self._events[event]:
            kind = "measured" if self._tracepoints else "traced"
            self._notes.skipped[f"samples of {kind} events: {clean(event, 80)}"] += 1
        return self._events[event]

    def _path_in_header(self, rest: bytes) -> int:
        match = _ONE_FRAME.match(rest)
        return self._stacks.parse([match[1]]) if match else 0

    def _note_time_of_day(self, fields: _Fields, time_ns: int) -> None:
        """Learn the offset of perf's clock from the first sample that has both times."""
        day, fraction = fields[4], fields[5]
        if "wall" in self._notes.facts or day is None or fraction is None:
            return
        try:
            parsed = time.strptime(day.decode(), "%Y-%m-%d %H:%M:%S")
        except ValueError:
            return
        # perf prints local time; this machine's zone is the best guess there is.
        seconds = int(time.mktime(parsed)) if parsed.tm_year > 1970 else calendar.timegm(parsed)
        wall_ns = seconds * SECOND_NS + int(fraction.ljust(9, b"0"))
        self._notes.facts["wall"] = str(wall_ns - time_ns)

    # -- line by line: files without call chains, comments, anything odd ---------

    def _parse_lines(self, text: bytes, rows: list[tuple[int, int, int, int, int, int]]) -> None:
        held: list[bytes] = []
        header: re.Match[bytes] | None = None
        for line in text.split(b"\n"):
            if match := _HEADER.match(line, 0, MAX_HEADER_BYTES):
                if header is not None:
                    self._add_sample(header, held, rows)
                header, held = match, []
            elif is_frame_line(line) and header is not None:
                if len(held) < 4096:
                    held.append(line)
            elif line.startswith(b"#"):
                self._note_fact(line)
            elif line.strip() and not line.startswith((b" ", b"\t")):
                self._notes.skipped["lines that are no part of a sample"] += 1
        if header is not None:
            self._add_sample(header, held, rows)

    def _add_sample(
        self,
        header: re.Match[bytes],
        stack: list[bytes],
        rows: list[tuple[int, int, int, int, int, int]],
    ) -> None:
        comm, pid, tid, cpu, _, _, seconds, fraction, rest = header.groups()
        if not self._wants(rest):
            return
        path = self._stacks.parse(stack) if stack else self._path_in_header(rest)
        time_ns = int(seconds) * SECOND_NS + int(fraction.ljust(9, b"0"))
        self._note_time_of_day(header.groups(), time_ns)
        core = UNKNOWN_CPU if cpu is None else int(cpu)
        self._threads_only = self._threads_only or tid is None
        rows.append((time_ns, core, int(pid), int(tid or pid), self._learn_comm(comm), path))

    def _note_fact(self, line: bytes) -> None:
        match = _FACT.match(line, 0, MAX_HEADER_BYTES)
        if match and (name := match[1].decode()) in _FACTS_KEPT:
            self._notes.facts.setdefault(name, clean(match[2].strip(), 200))
