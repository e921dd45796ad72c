"""File systems: how full they are, whether they still take writes, whether they answer.

Only local ones are asked for their space: a dead server or daemon would keep us waiting. The
observer has a thread, so that whatever hangs after all keeps only it. Of one that fills up the
files that processes have open for writing are recorded, the largest first.
"""

from __future__ import annotations

import time

from nodescope.errors import SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.counted_trouble import CountedTrouble
from nodescope.recorder.watches.disk_writers import MOST_NS, DiskWriters
from nodescope.recorder.watches.filling import FillingWatch
from nodescope.recorder.watches.limit_rows import LimitRows, describe_limit
from nodescope.recorder.watches.stalled_fuse import StalledConnection, StalledFuse
from nodescope.records.event import Event
from nodescope.records.json import JsonObject
from nodescope.records.witness_tables import WrittenFileRow
from nodescope.sources.kernel_files import read_file
from nodescope.sources.limits.file_systems import (
    EXT4_ERRORS,
    read_ext4_counts,
    read_ext4_function,
    read_space,
)
from nodescope.sources.limits.fuse import FuseControl, find_waiting_tasks
from nodescope.sources.limits.mounts import choose_local, place_mounts, read_device_name
from nodescope.sources.limits.reading import Limit
from nodescope.sources.node.mount_table import Mount, parse_mountinfo
from nodescope.sources.processes.written_files import read_written_files

_IN_MEMORY = "tmpfs"
_MOST_FILES = 20  # of one look
_BOOT = ("/boot", "/efi")  # filled once, by design nearly to the top
_NOT_OF_INTEREST = (  # in memory, and small by design
    "/var/lib/kubelet/pods/", "/run/containerd/", "/run/docker/", "/run/credentials/", "/sys/",
)  # fmt: skip


class FileSystemsObserver:
    """Looks every ten seconds, from a thread of its own."""

    interval_ns = 10 * SECOND_NS
    patient = True

    def __init__(self, setting: Setting) -> None:
        self._places = setting.places
        self._rows = LimitRows()
        self._trouble = CountedTrouble(setting.log_reports)
        self._filling = FillingWatch()
        self._writers = DiskWriters()
        self._stalled = StalledFuse()
        self._fuse: FuseControl | None = None
        self._fuse_refused: str | None = None
        self._table = b""
        self._local: list[tuple[Mount, str, str]] = []
        self._in_user_space: dict[str, Mount] = {}  # by minor number
        self._writable: set[str] = set()  # devices that took writes when they were last seen

    def begin_segment(self) -> None:
        self._rows.begin_segment()

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        self._read_table(now_ns)
        for mount, scope, path in self._local:
            if _is_measured(mount, scope):
                for limit in read_space(path, scope):
                    self._rows.add_limit(said, now_ns, limit)
                    full = self._compare(now_ns, mount, limit)
                    if self._writers.is_due(now_ns, limit, full=full):
                        self._look_at_writers(now_ns, mount, limit, said)
        self._count_errors(now_ns, said)
        self._look_at_fuse(now_ns, said)
        said.events += self._trouble.take(now_ns)
        return said

    def close(self) -> None:
        if self._fuse is not None:
            self._fuse.close()
            self._fuse = None

    # -- the mount table -------------------------------------------------------

    def _read_table(self, now_ns: int) -> None:
        table = read_file(self._places.proc / "self/mountinfo")
        if table == self._table:
            return
        self._table = table
        mounts = parse_mountinfo(table)
        self._local = place_mounts(choose_local(mounts), self._places.root)
        self._in_user_space = {
            mount.device.partition(":")[2]: mount for mount in mounts if mount.in_user_space
        }
        for mount, scope, _ in self._local:
            self._compare_writes(now_ns, mount, scope)
        self._writable &= {mount.device for mount, _, _ in self._local}

    def _compare_writes(self, now_ns: int, mount: Mount, scope: str) -> None:
        """Report a file system that took writes and does no more, or that an error stopped."""
        ends = mount.writes_end
        was_writable = mount.device in self._writable
        stopped = ends is not None and (ends != "ro" or was_writable)
        if ends is None:
            self._writable.add(mount.device)
        else:
            self._writable.discard(mount.device)
        device = self._device_name(mount)
        cleared = ends is None
        if not self._trouble.passes("fs_readonly", mount.device, above=stopped, cleared=cleared):
            return
        details: JsonObject = {
            "device": device,
            "mount": scope,
            "file_system": mount.kind,
            "statistic": ends,
        }
        message = f"{scope} takes no more writes: its mount says `{ends}`"
        self._trouble.report(now_ns, "fs_readonly", device, message, details, (device, scope))

    # -- space and errors ------------------------------------------------------

    def _compare(self, now_ns: int, mount: Mount, limit: Limit) -> bool:
        """Report a file system that is full now; return whether it is."""
        by_design = mount.kind == _IN_MEMORY
        if mount.writes_end is not None or limit.scope.startswith(_BOOT):
            return False
        full = self._filling.look(now_ns, limit, by_design=by_design)
        if full:
            unit = "space" if limit.name == "disk" else "inodes"
            message = f"{limit.share:.1%} of the {unit} of {limit.scope} is in use"
            details = describe_limit(limit)
            self._trouble.report(now_ns, "fs_full", limit.scope, message, details, in_log=False)
        return full

    def _look_at_writers(self, now_ns: int, mount: Mount, limit: Limit, said: Observation) -> None:
        began_ns = time.thread_time_ns()
        found = read_written_files(self._places.proc, mount.device, MOST_NS)
        self._writers.looked(now_ns, limit, time.thread_time_ns() - began_ns)
        for file in found.files[:_MOST_FILES]:
            said.add(
                WrittenFileRow(
                    time_ns=now_ns, mount=limit.scope, pid=file.pid, inode=file.inode,
                    comm=file.comm, cgroup=file.cgroup, path=file.path,
                    size_bytes=file.size_bytes, deleted=file.deleted, complete=found.complete,
                )
            )  # fmt: skip

    def _count_errors(self, now_ns: int, said: Observation) -> None:
        for count in read_ext4_counts(self._places.sys):
            self._rows.add_count(said, now_ns, count)
            if count.name != EXT4_ERRORS:
                continue
            device = count.subject
            rise = self._trouble.follow(now_ns, "fs_error", count.name, device, count.value)
            if rise is not None:
                details: JsonObject = {
                    "device": device,
                    "file_system": "ext4",
                    "function": read_ext4_function(self._places.sys, device),
                    "mount": self._find_mount(device),
                }
                self._trouble.report_rise(now_ns, rise, details)

    def _device_name(self, mount: Mount) -> str:
        return read_device_name(self._places.sys, mount)

    def _find_mount(self, device: str) -> str | None:
        scopes = (scope for mount, scope, _ in self._local if self._device_name(mount) == device)
        return next(scopes, None)

    # -- file systems in user space -----------------------------------------------

    def _look_at_fuse(self, now_ns: int, said: Observation) -> None:
        if not self._in_user_space:
            return
        if self._fuse is None and not self._open_fuse(now_ns, said):
            return
        assert self._fuse is not None
        waiting = {}
        for minor in self._in_user_space:
            requests = self._fuse.read_waiting(minor)
            if requests is not None:
                waiting[minor] = requests
        proc = self._places.proc
        for stalled in self._stalled.look(now_ns, waiting, lambda: find_waiting_tasks(proc)):
            self._report_stall(now_ns, stalled)

    def _open_fuse(self, now_ns: int, said: Observation) -> bool:
        try:
            self._fuse = FuseControl(self._places.sys)
        except SourceError as error:
            if self._fuse_refused != str(error):
                self._fuse_refused = str(error)
                message = f"requests to file systems in user space are not seen: {error}"
                said.events.append(Event(now_ns, "source_degraded", "file_systems", message))
            return False
        return True

    def _report_stall(self, now_ns: int, stalled: StalledConnection) -> None:
        mount = self._in_user_space[stalled.minor]
        seconds = round((now_ns - stalled.since_ns) / SECOND_NS, 1)
        details: JsonObject = {
            "mount": mount.point,
            "device": mount.source,
            "file_system": mount.kind,
            "statistic": "waiting",
            "waiting": stalled.waiting,
            "seconds": seconds,
            "comm": stalled.comm,
        }
        message = f"{mount.point} does not answer; requests that wait: {stalled.waiting}"
        self._trouble.report(now_ns, "fuse_stalled", mount.point, message, details, in_log=False)


def _is_measured(mount: Mount, scope: str) -> bool:
    """Decide whether the space of a file system is of interest: not that of secrets in memory."""
    if mount.kind != _IN_MEMORY:
        return True
    return mount.writes_end is None and not scope.startswith(_NOT_OF_INTEREST)


def make(setting: Setting) -> FileSystemsObserver:
    """An observer of this node's file systems."""
    return FileSystemsObserver(setting)
