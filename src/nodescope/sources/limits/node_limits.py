"""Limits of the whole node: tracked connections, open files, tasks, neighbours, TCP memory.

| limit | used | most |
|---|---|---|
| `conntrack` | `net/netfilter/nf_conntrack_count`, of our network namespace | `nf_conntrack_max` |
| `files` | `fs/file-nr` | its last number |
| `threads` | the second number of field 4 of `loadavg` | the lesser of `pid_max`, `threads-max` |
| `neighbours` | `entries` of `net/stat/arp_cache` | `gc_thresh3` |
| `tcp_memory` | pages, `mem` of `net/sockstat` | the last number of `tcp_mem` |

Each is left out where its files are absent: `nf_conntrack` is a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from nodescope.errors import MalformedSource
from nodescope.sources.kernel_files import KeptFiles
from nodescope.sources.limits.reading import Limit

NODE = "node"
_NO_LIMIT = 1 << 62  # file-max of a modern kernel: the largest number


def read_node_limits(files: KeptFiles, proc: Path) -> list[Limit]:
    """Return the limits that this kernel has."""
    found = []
    for name, read in _READERS.items():
        numbers = read(files, proc)
        if numbers is not None:
            used, most = numbers
            found.append(Limit(name, NODE, used, most if 0 < most < _NO_LIMIT else None))
    return found


def _numbers(files: KeptFiles, path: Path) -> list[int]:
    """Return the numbers of a file; none if it is absent or holds something else."""
    fields = (files.read(path) or b"").split()
    return [int(field) for field in fields] if all(each.isdigit() for each in fields) else []


def _read_conntrack(files: KeptFiles, proc: Path) -> tuple[int, int] | None:
    folder = proc / "sys/net/netfilter"
    used = _numbers(files, folder / "nf_conntrack_count")
    most = _numbers(files, folder / "nf_conntrack_max")
    return (used[0], most[0]) if used and most else None


def _read_files(files: KeptFiles, proc: Path) -> tuple[int, int] | None:
    numbers = _numbers(files, proc / "sys/fs/file-nr")
    return (numbers[0] - numbers[1], numbers[2]) if len(numbers) == 3 else None


def _read_threads(files: KeptFiles, proc: Path) -> tuple[int, int] | None:
    used = parse_tasks(files.read(proc / "loadavg") or b"")
    kernel = proc / "sys/kernel"
    limits = _numbers(files, kernel / "pid_max") + _numbers(files, kernel / "threads-max")
    return (used, min(limits)) if used is not None and limits else None


def parse_tasks(loadavg: bytes) -> int | None:
    """Return the tasks that there are: `5.20 2.87 1.95 8/135 26455` has 135."""
    fields = loadavg.split()
    total = fields[3].rpartition(b"/")[2] if len(fields) > 3 else b""
    return int(total) if total.isdigit() else None


def _read_neighbours(files: KeptFiles, proc: Path) -> tuple[int, int] | None:
    entries = next(parse_statistics(files.read(proc / "net/stat/arp_cache") or b"", "entries"), 0)
    most = _numbers(files, proc / "sys/net/ipv4/neigh/default/gc_thresh3")
    return (entries, most[0]) if most else None


def _read_tcp_memory(files: KeptFiles, proc: Path) -> tuple[int, int] | None:
    used = parse_tcp_pages(files.read(proc / "net/sockstat") or b"")
    most = _numbers(files, proc / "sys/net/ipv4/tcp_mem")
    return (used, most[2]) if used is not None and len(most) == 3 else None


def parse_tcp_pages(sockstat: bytes) -> int | None:
    """Return the pages that TCP uses: `TCP: inuse 3 orphan 0 tw 2 alloc 3 mem 151` has 151."""
    for line in sockstat.split(b"\n"):
        if line.startswith(b"TCP:"):
            pages = line.rpartition(b" mem ")[2]
            return int(pages) if pages.isdigit() else None
    return None


def parse_statistics(content: bytes, *names: str) -> Iterator[int]:
    """Return columns of a file of `/proc/net/stat`, each summed over the cores, in hexadecimal.

    The first line names the columns. `entries` is the same on each core and is not summed.
    """
    lines = [line.split() for line in content.split(b"\n") if line]
    if len(lines) < 2:
        return
    at = {name.decode("ascii", "replace"): place for place, name in enumerate(lines[0])}
    for name in names:
        if name not in at:
            continue
        values = [_hexadecimal(line[at[name]]) for line in lines[1:] if len(line) > at[name]]
        yield values[0] if name == "entries" else sum(values)


def _hexadecimal(field: bytes) -> int:
    try:
        return int(field, 16)
    except ValueError as error:
        raise MalformedSource("/proc/net/stat", f"not a number: {field[:20]!r}") from error


_READERS: dict[str, Callable[[KeptFiles, Path], tuple[int, int] | None]] = {
    "conntrack": _read_conntrack,
    "files": _read_files,
    "threads": _read_threads,
    "neighbours": _read_neighbours,
    "tcp_memory": _read_tcp_memory,
}
