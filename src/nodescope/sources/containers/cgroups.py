"""Which cgroup a container is in: as the kernel says, or as its runtime will have made it.

`/proc/PID/cgroup` has one line per hierarchy, `number:controllers:path`. On
machines with several hierarchies a container may be in its own cgroup in one
and in its daemon's in another (runc leaves the unified one alone beside v1), so
the path that bears the container's id is preferred.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

_MAX_BYTES = 64 << 10
_PREFERRED = (b"", b"memory", b"pids", b"name=systemd", b"cpu,cpuacct", b"cpu")


def parse_process_cgroup(content: bytes, identifier: str) -> str | None:
    """The path of a container's process, from `/proc/PID/cgroup`; None if it has none."""
    paths: dict[bytes, bytes] = {}
    for line in content.split(b"\n"):
        fields = line.split(b":", 2)
        if len(fields) == 3 and fields[2].startswith(b"/"):
            paths[fields[1]] = fields[2]
    ordered = [paths[name] for name in _PREFERRED if name in paths] or list(paths.values())
    named = [path for path in ordered if identifier.encode() in path]
    chosen = named or [path for path in ordered if path != b"/"]
    return chosen[0].decode("utf-8", "replace") if chosen else None


def read_process_cgroup(proc: Path, pid: int, identifier: str) -> str | None:
    """The same, read; None when the process is gone."""
    try:
        with open(proc / str(pid) / "cgroup", "rb") as file:
            return parse_process_cgroup(file.read(_MAX_BYTES), identifier)
    except OSError:
        return None  # ended meanwhile, or in another pid namespace


def parent_of(cgroup: str | None) -> str | None:
    """The parent of a cgroup's path."""
    return None if cgroup is None or cgroup == "/" else str(PurePosixPath(cgroup).parent)


def oci_cgroup(path: str | None) -> str | None:
    """The cgroup an OCI spec's `cgroupsPath` leads to, by either driver.

    The systemd driver writes `slice:prefix:name`, the other one a path.
    """
    if not path:
        return None
    parts = path.split(":")
    if len(parts) != 3:
        return path if path.startswith("/") else f"/{path}"
    slice_, prefix, name = parts
    unit = name if name.endswith(".slice") else f"{prefix}-{name}.scope" if prefix else name
    return f"{slice_path(slice_ or 'system.slice')}/{unit}"


def slice_path(slice_: str) -> str:
    """The path of a slice: `a-b.slice` lies in `a.slice` (systemd.slice(5))."""
    name = slice_.removesuffix(".slice")
    if name in ("-", ""):
        return ""
    levels = name.split("-")
    return "".join(f"/{'-'.join(levels[:at])}.slice" for at in range(1, len(levels) + 1))


def docker_cgroup(identifier: str, parent: str | None, driver: str | None) -> str | None:
    """Where dockerd puts a container, by its driver; None if that is not known."""
    if driver == "systemd":
        return f"{slice_path(parent or 'system.slice')}/docker-{identifier}.scope"
    if driver == "cgroupfs":
        return f"/{(parent or 'docker').strip('/')}/{identifier}"
    return None


class Whereabouts:
    """Containers' cgroups on this machine, also of those that ended before they were looked at.

    A runtime's own idea of its tree may begin below the machine's root (it runs in
    a cgroup namespace); how much further down is learnt from containers that live.
    """

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._prefix: str | None = None

    def find(self, identifier: str, pid: int | None, expected: str | None) -> str | None:
        """The container's cgroup: of its process if it runs, else where it is expected."""
        seen = None if pid is None else read_process_cgroup(self._proc, pid, identifier)
        if seen is not None and (expected is None or seen.endswith(expected)):
            self._prefix = self._prefix if expected is None else seen.removesuffix(expected)
            return seen
        if seen is not None and identifier in seen:
            return seen
        # gone, or a pid of another pid namespace, which is somebody else's here
        return None if expected is None else f"{self._prefix or ''}{expected}"
