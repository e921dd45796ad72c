"""The cgroup of a process, from `/proc/PID/cgroup`: a line `number:controllers:path` each.

On v1 a process is in one cgroup of every hierarchy. systemd and container runtimes put it
into the same place in those that they manage, and leave it at the root of the others, so
the first path that is not the root tells whose it is; `/` is returned where all are.
"""

from __future__ import annotations

from pathlib import Path

_MAX_BYTES = 64 << 10
_PREFERRED = ("", "name=systemd", "memory", "pids", "cpu,cpuacct", "cpu")


def read_cgroup_of(proc: Path, pid: int | str) -> str | None:
    """Return the cgroup of a process (or of a thread, `PID/task/TID`); None if it has ended."""
    try:
        with open(proc / str(pid) / "cgroup", "rb") as file:
            return parse_cgroup_of(file.read(_MAX_BYTES))
    except OSError:
        return None


def parse_cgroup_of(content: bytes) -> str | None:
    """Return the path that tells most of whose a process is; None without any."""
    paths: dict[str, str] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        fields = line.split(":", 2)
        if len(fields) == 3 and fields[2].startswith("/"):
            paths[fields[1]] = fields[2].removesuffix(" (deleted)")
    ordered = [paths.pop(name) for name in _PREFERRED if name in paths]
    found = [*ordered, *paths.values()]
    return next((path for path in found if path != "/"), "/" if found else None)
