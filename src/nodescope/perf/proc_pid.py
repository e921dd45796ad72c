"""`/proc/PID/comm` and the executable part of `/proc/PID/maps`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import MalformedSource, source_error

MAX_MAPS_BYTES = 32 << 20  # a process at vm.max_map_count has ~65,530 lines of ~100 bytes


@dataclass(frozen=True, slots=True)
class Mapping:
    """One executable line of `maps`."""

    start: int
    end: int
    offset: int
    device: tuple[int, int]
    inode: int
    path: str


def read_comm(proc: Path, tid: int) -> str:
    """The name of a thread; `/proc/TID` works for any thread, not only leaders."""
    path = f"{proc}/{tid}/comm"
    try:
        with open(path, "rb") as file:
            return file.read(64).rstrip(b"\n").decode("utf-8", "replace")
    except OSError as error:
        raise source_error(path, error) from error


def read_executable_maps(proc: Path, pid: int) -> list[Mapping]:
    """The executable mappings of a process."""
    path = f"{proc}/{pid}/maps"
    try:
        with open(path, "rb") as file:
            return parse_executable_maps(file.read(MAX_MAPS_BYTES), path)
    except OSError as error:
        raise source_error(path, error) from error


def parse_executable_maps(content: bytes, path: str | Path = "maps") -> list[Mapping]:
    """Parse `maps`, sorted by address as the kernel writes it; other lines are passed over."""
    mappings: list[Mapping] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if b" r-xp " not in line and b"x" not in line[:60].partition(b" ")[2][:4]:
            continue
        fields = line.split(None, 5)
        try:
            start, _, end = fields[0].partition(b"-")
            major, _, minor = fields[3].partition(b":")
            mapping = Mapping(
                start=int(start, 16),
                end=int(end, 16),
                offset=int(fields[2], 16),
                device=(int(major, 16), int(minor, 16)),
                inode=int(fields[4]),
                path=fields[5].decode("utf-8", "replace") if len(fields) > 5 else "",
            )
        except (ValueError, IndexError) as error:
            raise MalformedSource(path, f"not a mapping: {line[:80]!r}", number) from error
        if mapping.end > mapping.start and mapping.end < 1 << 64:
            mappings.append(mapping)
    return mappings
