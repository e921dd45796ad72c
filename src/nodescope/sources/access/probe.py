"""Trying every source for real: the IO behind `nodescope doctor`.

Nothing is kept open and nothing is left behind; a check takes well under a
second. The decisions are in `perf_verdicts` and `file_verdicts`.
"""

from __future__ import annotations

import errno
import os
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nodescope.errors import SourceError
from nodescope.perf.event import Sampler, Tracepoint, open_event
from nodescope.perf.ring import Ring
from nodescope.sources.access import file_verdicts, perf_verdicts
from nodescope.sources.access.file_verdicts import ProcessesSeen
from nodescope.sources.access.privileges import Privileges, read_privileges
from nodescope.sources.access.verdict import Access, Attempt, State
from nodescope.sources.cgroups.paths_by_id import find_default_hierarchy
from nodescope.sources.node.identity import read_online_cpus
from nodescope.sources.node.tracefs import open_tracefs
from nodescope.sources.places import Places

_PLAIN = Sampler(cgroup=False, kernel_symbols=False, lost_counter=False)
_PROBE_RING_BYTES = 64 << 10
_DELIVERY_SECONDS = 0.5
_RECORD_SAMPLE = 9
_CONTEXT_KERNEL = struct.pack("<q", -128)  # PERF_CONTEXT_KERNEL opens the kernel part of a chain
_MAX_PROCESSES = 2000


def check_access(archive: Path, *, ring_bytes: int, retention_bytes: int) -> list[Access]:
    """Try everything, best first for a person to read."""
    privileges = read_privileges()
    cpus = read_online_cpus()
    sampling = _check_sampling(privileges, cpus[0])
    seen = _read_processes()
    binaries = file_verdicts.judge_binaries(privileges, seen)
    return [
        sampling,
        _check_rings(privileges, sampling, cpus, ring_bytes),
        perf_verdicts.judge_sample_cgroup(
            sampling,
            _open_sampler(Sampler(kernel_symbols=False), cpus[0]),
            find_default_hierarchy(),
        ),
        perf_verdicts.judge_cycles(
            sampling, _open_sampler(Sampler(hardware_cycles=True, cgroup=False), cpus[0])
        ),
        _check_core_time(len(cpus)),
        _check_kernel_symbols(privileges),
        binaries,
        file_verdicts.judge_map_files(privileges, binaries, _attempt_map_files()),
        file_verdicts.judge_jit_maps(privileges, binaries, seen),
        _check_tracepoints(privileges, cpus[0]),
        file_verdicts.judge_kernel_log(privileges, _attempt_kernel_log()),
        _check_archive(archive, retention_bytes),
    ]


def _attempt(error: OSError) -> Attempt:
    return Attempt(error.errno or errno.EIO)


def _open_sampler(sampler: Sampler, cpu: int) -> Attempt:
    try:
        os.close(open_event(sampler.attribute(), cpu=cpu))
    except OSError as error:
        return _attempt(error)
    return Attempt()


def _check_sampling(privileges: Privileges, cpu: int) -> Access:
    kernel = _open_sampler(_PLAIN, cpu)
    user = _open_sampler(Sampler(kernel=False, cgroup=False, kernel_symbols=False), cpu)
    delivered = _sample_ourselves() if kernel.ok else "nothing"
    return perf_verdicts.judge_sampling(privileges, kernel, user, delivered)


def _sample_ourselves() -> str:
    """Keep one core busy in the kernel until a sample of it arrives."""
    cpu = min(os.sched_getaffinity(0))
    try:
        ring = Ring(cpu, _PLAIN, _PROBE_RING_BYTES)
    except SourceError:  # mapping is judged with the rings; it opened a moment ago
        return "kernel"
    best = "nothing"
    with _pinned(cpu):
        ring.enable()
        deadline = time.monotonic() + _DELIVERY_SECONDS
        while best != "kernel" and time.monotonic() < deadline:
            os.urandom(64 << 10)  # kernel work
            records = ring.drain(ring.head())
            if any(kind == _RECORD_SAMPLE for kind in _record_types(records)):
                best = "kernel" if _CONTEXT_KERNEL in records else "user"
    ring.close()
    return best


@contextmanager
def _pinned(cpu: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _record_types(records: bytes) -> Iterator[int]:
    position = 0
    while position + 8 <= len(records):
        kind, _misc, size = struct.unpack_from("<IHH", records, position)
        yield kind
        position += max(size, 8)


def _check_rings(
    privileges: Privileges, sampling: Access, cpus: list[int], ring_bytes: int
) -> Access:
    """Map every ring the recorder would, all at once, and give them back."""
    rings: list[Ring] = []
    answer = Attempt()
    if sampling.state in (State.WORKS, State.DEGRADED):
        try:
            # extend takes them one by one: those before a failure are in the list.
            rings.extend(Ring(cpu, _PLAIN, ring_bytes) for cpu in cpus)
        except SourceError as error:
            cause = error.__cause__
            answer = _attempt(cause) if isinstance(cause, OSError) else Attempt(errno.EIO)
        finally:
            for ring in rings:
                ring.close()
    return perf_verdicts.judge_ring_memory(
        privileges, sampling, answer, len(rings), len(cpus), ring_bytes
    )


def _mounts(kind: str) -> list[tuple[str, str]]:
    """Mount point and options of every mount of that file system type."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines]
    return [(field[1], field[3]) for field in fields if len(field) > 3 and field[2] == kind]


def _check_core_time(online: int) -> Access:
    try:
        lines = Path("/proc/stat").read_bytes().splitlines()
    except OSError as error:
        return file_verdicts.judge_core_time(_attempt(error), 0, online)
    rows = sum(line.startswith(b"cpu") and line[3:4].isdigit() for line in lines)
    return file_verdicts.judge_core_time(Attempt(), rows, online)


def _check_kernel_symbols(privileges: Privileges) -> Access:
    try:
        with open("/proc/kallsyms", "rb") as file:
            lines = file.read(64 << 10).splitlines()
    except OSError as error:
        return file_verdicts.judge_kernel_symbols(privileges, _attempt(error), visible=False)
    # Per-CPU symbols start at zero even where addresses are shown.
    visible = any(line.split(b" ", 1)[0].strip(b"0") for line in lines)
    return file_verdicts.judge_kernel_symbols(privileges, Attempt(), visible=visible)


def _read_processes() -> ProcessesSeen:
    """Read what symbolising needs of every process but our own."""
    counts = {"read": 0, "refused": 0, "binary_refused": 0, "maps_found": 0, "maps_refused": 0}
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    for pid in sorted(pids, reverse=True)[:_MAX_PROCESSES]:
        if pid == os.getpid():
            continue
        try:
            if not Path(f"/proc/{pid}/cmdline").read_bytes():
                continue  # a kernel thread has no binary, a zombie no longer
            counts[_read_binary(pid)] += 1
            for outcome in _read_jit_maps(pid):
                counts[outcome] += 1
        except OSError:
            continue  # vanished meanwhile
    hidepid = any(
        option.startswith("hidepid=") and option not in ("hidepid=0", "hidepid=off")
        for point, options in _mounts("proc")
        if point == "/proc"
        for option in options.split(",")
    )
    return ProcessesSeen(hidepid=hidepid, **counts)


def _read_binary(pid: int) -> str:
    try:
        executable = os.readlink(f"/proc/{pid}/exe")
        with open(f"/proc/{pid}/maps", "rb") as file:
            file.read(1)
    except PermissionError:
        return "refused"
    try:
        with open(f"/proc/{pid}/root{executable}", "rb") as file:
            file.read(4)
    except PermissionError:
        return "binary_refused"
    except OSError:
        return "read"  # deleted or replaced since it started: nothing was refused
    return "read"


def _attempt_map_files() -> Attempt:
    """Open what we ourselves have mapped: that takes the same right as for any process."""
    try:
        with os.scandir("/proc/self/map_files") as entries:
            for entry in entries:
                if os.path.isabs(target := os.readlink(entry.path)) and os.path.isfile(target):
                    os.close(os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC))
                    return Attempt()
    except OSError as error:
        return _attempt(error)
    return Attempt(errno.ENOENT)


def _read_jit_maps(pid: int) -> Iterator[str]:
    """Maps the process wrote itself; its own pid namespace may number it differently."""
    try:
        names = [
            entry.path
            for entry in os.scandir(f"/proc/{pid}/root/tmp")
            if entry.name.startswith("perf-")
            and entry.name.endswith(".map")
            and entry.name[5:-4] in _own_pids(pid)
        ]
    except OSError:
        return
    for name in names:
        try:
            with open(name, "rb") as file:
                file.read(1)
            yield "maps_found"
        except PermissionError:
            yield "maps_refused"


def _own_pids(pid: int) -> set[str]:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return set(line.split()[1:])
    return {str(pid)}


def is_tracefs_mounted() -> bool:
    """Return whether a tracefs is mounted, whether or not we may read it."""
    return bool(_mounts("tracefs"))


def _check_tracepoints(privileges: Privileges, cpu: int) -> Access:
    try:
        known = "tracefs" in Path("/proc/filesystems").read_text().split()
    except OSError:
        known = True  # hidden; the mount then tells
    where = next((point for point, _ in _mounts("tracefs")), None)
    read, opened = Attempt(), Attempt()
    try:
        with open_tracefs(Places()) as tracefs:  # mounted for us for a moment, if need be
            where = tracefs.where
            number = tracefs.read_format("cgroup", "cgroup_mkdir").number
        try:
            os.close(open_event(Tracepoint(number).attribute(), cpu=cpu))
        except OSError as error:
            opened = _attempt(error)
    except SourceError as error:
        cause = error.__cause__
        read = _attempt(cause) if isinstance(cause, OSError) else Attempt(errno.EIO)
    return perf_verdicts.judge_tracepoints(privileges, known, where, read, opened)


def _attempt_kernel_log() -> Attempt:
    try:
        descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return _attempt(error)
    try:
        os.read(descriptor, 8192)
    except BlockingIOError:  # an empty log is a readable one
        pass
    except OSError as error:
        # EPIPE: the oldest record was overwritten while we read it.
        return Attempt() if error.errno == errno.EPIPE else _attempt(error)
    finally:
        os.close(descriptor)
    return Attempt()


def _check_archive(archive: Path, retention_bytes: int) -> Access:
    """Write in the folder, or where it would be made; leave nothing."""
    where = archive.absolute()
    try:
        while not where.exists() and where != where.parent:
            where = where.parent
        with tempfile.TemporaryFile(dir=where) as file:
            file.write(b"nodescope")
            file.flush()
        room = os.statvfs(where)
    except OSError as error:
        return file_verdicts.judge_archive(str(archive), _attempt(error), 0, retention_bytes)
    return file_verdicts.judge_archive(
        str(archive), Attempt(), room.f_bavail * room.f_frsize, retention_bytes
    )
