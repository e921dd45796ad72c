"""Open descriptors by which processes could reach others, or be reached.

A daemon that does its work has something: a socket, a device, a lock or a log it
writes, a watch on files. What has nothing but its standard streams can do nothing
for anybody, as far as can be seen from outside. Standard streams and what lives inside the
process (pipes, eventfd, epoll, timers) do not count; a terminal does.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

_STANDARD = ("0", "1", "2")
_NOTHING = frozenset(("/dev/null", "/dev/zero", "/dev/full"))
_TERMINALS = ("/dev/tty", "/dev/pts/", "/dev/console", "/dev/hvc")
_WATCHES = ("inotify", "fanotify", "bpf", "perf_event", "userfaultfd", "kvm")
_MAX_SHOWN = 16


def read_holdings(proc: Path, pids: Collection[int]) -> tuple[str, ...] | None:
    """Read what these processes have open, as `socket`, `inotify` or a path; None if hidden."""
    found: set[str] = set()
    for pid in pids:
        links = _read_links(proc / str(pid) / "fd")
        if links is None:
            return None
        found |= parse_holdings(links)
    return tuple(sorted(found)[:_MAX_SHOWN])


def _read_links(directory: Path) -> dict[str, tuple[str, bool]] | None:
    """Where each descriptor leads, and whether it was opened for writing."""
    links: dict[str, tuple[str, bool]] = {}
    try:
        names = os.listdir(directory)
    except (FileNotFoundError, ProcessLookupError):
        return links  # it ended: normal
    except OSError:
        return None
    for name in names:
        try:
            target = os.readlink(directory / name)
            writes = bool(os.lstat(directory / name).st_mode & stat.S_IWUSR)
        except OSError:
            continue  # closed in the meantime
        links[name] = (target, writes)
    return links


def parse_holdings(links: dict[str, tuple[str, bool]]) -> set[str]:
    """Return those descriptors of one process that connect it to others."""
    standard = {links[name][0] for name in _STANDARD if name in links}
    found = set()
    for name, (target, writes) in links.items():
        if target.startswith(_TERMINALS):
            found.add(target)
        elif name in _STANDARD or target in standard or target in _NOTHING:
            continue
        elif target.startswith("socket:"):
            found.add("socket")
        elif target.startswith("anon_inode:"):
            kind = target.removeprefix("anon_inode:").strip("[]")
            if kind.startswith(_WATCHES):
                found.add(kind)
        elif target.startswith("/") and writes and not target.startswith("/memfd:"):
            found.add(target)
    return found
