"""Frame lines of `perf script`: `<ip> <symbol>+0x<offset> (<binary>)`.

Both symbol and binary may hold spaces and parentheses: C++ names do, and a
binary that was unlinked ends in ` (deleted)`. Inlined functions have no binary
of their own; it is that of the frame they were inlined into, which follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodescope.ingest.clean_text import MAX_LINE_BYTES, clean
from nodescope.ingest.parsed import (
    KERNEL_MODULE,
    UNKNOWN,
    UNKNOWN_FRAME,
    ParsedFrame,
    ParsedNames,
    collapse_unknown,
)

MAX_KNOWN_LINES = 200_000
MAX_NAME_BYTES = 1024
MAX_FRAMES = 1024
KERNEL_MAX_STACK = 127  # kernel.perf_event_max_stack, unless somebody has changed it

_LINE = re.compile(rb"[ \t]+([0-9a-f]{1,16})(?:[ \t]+(.*))?$", re.DOTALL)
_WITH_OFFSET = re.compile(rb"(.*)\+0x[0-9a-f]{1,16} \((.*)\)$", re.DOTALL)
_OFFSET = re.compile(rb"\+0x[0-9a-f]{1,16}$")
_KERNEL_MODULE_FILE = re.compile(rb"/([^/]+?)\.ko(?:\.(?:gz|xz|zst))?$")
_NOT_KERNEL = (b"[vdso", b"[vsyscall]", b"[heap]", b"[stack", b"[anon", b"[uprobes]",
               b"[unknown]", b"[JIT]", b"[vectors]", b"[vvar")  # fmt: skip
_BRACKETED = re.compile(rb"\[[\w.-]+\]$")
_KERNEL_FROM = 0xFFFF_8000_0000_0000
_VSYSCALL = 0xFFFF_FFFF_FF60_0000
_INLINED = b" (inlined)"
_HEX_DIGITS = b"0123456789abcdef"


def is_frame_line(line: bytes) -> bool:
    """Return whether a line is of a stack: blanks, an address, and maybe a symbol."""
    return _LINE.match(line, 0, MAX_LINE_BYTES) is not None


class StackParser:
    """Turns the lines of stacks into paths, each line read once."""

    def __init__(self, names: ParsedNames) -> None:
        self._names = names
        self.deepest: set[int] = set()  # paths that may have been cut off
        self._known: dict[bytes, int] = {}  # line → frame; -1: inlined; -2: no frame
        # Addresses differ from process to process (ASLR), what follows them does not:
        # it is known by itself, for user and for kernel addresses.
        self._known_rest: tuple[dict[bytes, ParsedFrame], dict[bytes, ParsedFrame]] = {}, {}

    def parse(self, lines: Sequence[bytes]) -> int:
        """The path of a stack given innermost first; lines that are no frames are passed over."""
        known = self._known.get
        frames: list[int] = []  # innermost first
        inlined: list[tuple[int, bytes]] = []
        for line in lines[: 4 * MAX_FRAMES]:
            frame = known(line)
            if frame is None:
                frame = self._learn(line)
            if frame == _NO_FRAME:
                continue
            if frame == _INLINED_FRAME:
                inlined.append((len(frames), line))
            frames.append(frame)
        if inlined:
            self._place_inlined(frames, inlined)
        depth = len(frames)
        frames = frames[:MAX_FRAMES]
        frames.reverse()
        path = self._names.path(tuple(collapse_unknown(frames) if 0 in frames else frames))
        if depth >= KERNEL_MAX_STACK:
            self.deepest.add(path)
        return path

    def _learn(self, line: bytes) -> int:
        if len(self._known) > MAX_KNOWN_LINES:
            self._known.clear()
        address, _, rest = line.strip().partition(b" ")
        known = self._known_rest[len(address) == 16 and address.startswith(b"ffff")]
        frame = known.get(rest)
        # The address must still be one: a line of source text may end like a frame's.
        is_address = 0 < len(address) <= 16 and not address.strip(_HEX_DIGITS)
        if frame is None or not is_address or not line.startswith(b"\t"):
            number = self._parse_line(line)
            if number >= 0 and rest and len(rest) <= 4096:
                if len(known) > MAX_KNOWN_LINES:
                    known.clear()
                known[rest] = self._names.frames[number]
        elif rest.startswith(b"[unknown]") and frame.module != UNKNOWN:
            name = f"+0x{int(address, 16):x}"
            number = self._names.frame(ParsedFrame(frame.module, name, frame.kernel))
        else:
            number = self._names.frame(frame)
        if len(line) <= 4096:
            self._known[line] = number
        return number

    def _parse_line(self, line: bytes) -> int:
        match = _LINE.match(line, 0, MAX_LINE_BYTES) or _LINE.match(b" " + line, 0, MAX_LINE_BYTES)
        number = _NO_FRAME
        if match is not None:
            symbol, binary = split_symbol(match[2] or b"")
            if binary is None and symbol:
                number = _INLINED_FRAME
            else:
                number = self._names.frame(make_frame(int(match[1], 16), symbol, binary or b""))
        return number

    def _place_inlined(self, frames: list[int], inlined: list[tuple[int, bytes]]) -> None:
        for position, line in reversed(inlined):
            outer = frames[position + 1] if position + 1 < len(frames) else 0
            host = self._names.frames[outer] if outer > 0 else UNKNOWN_FRAME
            symbol = split_symbol(line.split(None, 1)[-1])[0]
            name = clean(symbol, MAX_NAME_BYTES)
            frames[position] = self._names.frame(ParsedFrame(host.module, name, host.kernel))


_INLINED_FRAME, _NO_FRAME = -1, -2


def split_symbol(text: bytes) -> tuple[bytes, bytes | None]:
    """Symbol and binary of what follows an address; None if no binary is told."""
    text = text.strip()
    if text.endswith(_INLINED):
        return _OFFSET.sub(b"", text.removesuffix(_INLINED).rstrip()), None
    match = _WITH_OFFSET.match(text)
    if match is not None:
        return match[1], _OFFSET.sub(b"", match[2])
    if not text.endswith(b")"):
        return _OFFSET.sub(b"", text), None
    start = _opening(text)
    if start < 0:
        return text, None
    return text[:start].rstrip(), _OFFSET.sub(b"", text[start + 1 : -1])


def _opening(text: bytes) -> int:
    """Where the parenthesis that closes at the end was opened, after a blank; or -1."""
    depth = 0
    for position in range(len(text) - 1, max(len(text) - 8192, -1), -1):
        if text[position] == 0x29:
            depth += 1
        elif text[position] == 0x28:
            depth -= 1
            if depth == 0:
                if position == 0 or text[position - 1] == 0x20:
                    return position
                break
    return max(text.rfind(b" (/"), text.rfind(b" (["), -2) + 1 if b" (" in text else -1


def make_frame(address: int, symbol: bytes, binary: bytes) -> ParsedFrame:
    """Convert perf's description of an address into a frame."""
    kernel, module = _module(address, binary)
    if symbol and symbol != b"[unknown]":
        return ParsedFrame(module, clean(symbol, MAX_NAME_BYTES), kernel)
    if module == UNKNOWN:
        return UNKNOWN_FRAME
    return ParsedFrame(module, f"+0x{address:x}", kernel)


def _module(address: int, binary: bytes) -> tuple[bool, str]:
    """Return whether it is kernel code, and the module's name."""
    high = address >= _KERNEL_FROM and address & ~0xFFF != _VSYSCALL
    if binary.startswith((b"[kernel", b"[guest.kernel")) or (
        high and binary.rpartition(b"/")[2].startswith((b"vmlinux", b"kcore"))
    ):
        return True, KERNEL_MODULE
    if binary.startswith((b"bpf_prog_", b"bpf_trampoline", b"bpf_dispatcher")):
        return True, "[bpf]"
    if _BRACKETED.match(binary) and not binary.startswith(_NOT_KERNEL):
        return True, clean(binary, MAX_NAME_BYTES)
    if match := _KERNEL_MODULE_FILE.search(binary):
        return True, f"[{clean(match[1], MAX_NAME_BYTES).replace('-', '_')}]"
    if high:
        return True, KERNEL_MODULE
    return False, clean(binary, MAX_NAME_BYTES) or UNKNOWN
