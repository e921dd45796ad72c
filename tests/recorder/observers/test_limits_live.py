"""Trouble made for real, each undone at once, and seen by counters and levels alone.

The observers are given times that lie apart, so that nobody has to wait.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.own_cgroups import make_cgroups, remove_cgroups
from tests.waiting import wait_for

from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Observer, Setting
from nodescope.recorder.observers import cgroups, file_systems, limits
from nodescope.records.event import Event
from nodescope.records.event_details import OomKillDetails
from nodescope.records.trouble_details import (
    CgroupLimitDetails,
    FullTableDetails,
    StorageDetails,
)
from nodescope.sources.places import Places

pytestmark = [pytest.mark.live, pytest.mark.root, pytest.mark.beside]


class Asked:
    """An observer asked again and again, ten seconds apart by its own reckoning."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.now_ns = 0
        self.events: list[Event] = []
        self.ask()

    def ask(self, times: int = 1) -> None:
        for _ in range(times):
            self.now_ns += 10 * SECOND_NS
            self.events += self.observer.observe(self.now_ns).events

    def of(self, kind: str, subject: str = "") -> list[Event]:
        return [each for each in self.events if each.kind == kind and subject in each.subject]


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(Places(), tmp_path / "none")


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


# -- cgroups: M1, M2 ------------------------------------------------------------


@contextmanager
def _own_cgroups(name: str) -> Iterator[list[Path]]:
    made = make_cgroups(f"nodescope-test-{name}-{os.getpid()}")
    try:
        yield made
    finally:
        wait_for(lambda: remove_cgroups(made), "the cgroups are empty")


def _set(folders: list[Path], name: str, value: str) -> None:
    (folder,) = [folder for folder in folders if (folder / name).exists()]
    (folder / name).write_text(value)


def _python_inside(folders: list[Path], code: str) -> subprocess.Popen[bytes]:
    procs = ", ".join(repr(str(folder / "cgroup.procs")) for folder in folders)
    enter = f"for each in ({procs},):\n    open(each, 'w').write('0')\n"
    return subprocess.Popen(
        [sys.executable, "-c", enter + code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


_FORK = """
import os, time
children = []
for _ in range(12):
    try:
        pid = os.fork()
    except OSError:
        continue
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    children.append(pid)
print(len(children), flush=True)
input()
"""


def test_forks_that_a_limit_refuses_are_an_event_of_their_cgroup(setting: Setting) -> None:
    asked = Asked(cgroups.make(setting))
    with _own_cgroups("pids") as folders:
        name = folders[0].name
        _set(folders, "pids.max", "4")
        program = _python_inside(folders, _FORK)
        assert program.stdout is not None
        assert program.stdout.readline() == b"3\n"
        asked.ask()
        for folder in folders:
            if (folder / "pids.max").exists():
                for pid in (folder / "cgroup.procs").read_text().split():
                    os.kill(int(pid), 9)
        program.wait()
        program.stdout.close()
    (event,) = asked.of("pids_limit", name)
    details = event.get(CgroupLimitDetails)
    assert details.known_from == "counters"
    assert details.limit == 4
    assert details.cgroup == f"/{name}"
    assert (details.before, details.value) == (0, 9)


def test_kills_for_want_of_memory_are_an_event_where_no_log_is_read(setting: Setting) -> None:
    with _own_cgroups("memory") as folders:
        name = folders[0].name
        limit = "memory.limit_in_bytes"
        v1 = any((folder / limit).exists() for folder in folders)
        _set(folders, limit if v1 else "memory.max", str(20 << 20))
        asked = Asked(cgroups.make(setting))
        program = _python_inside(folders, "bytearray(60 << 20)")
        assert program.wait() == -9
        assert program.stdout is not None
        program.stdout.close()
        asked.ask()
        (event,) = asked.of("oom_kill", name)
        setting.log_reports.note_read(asked.now_ns)  # the log would have had a second one
        program = _python_inside(folders, "bytearray(60 << 20)")
        assert program.wait() == -9
        assert program.stdout is not None
        program.stdout.close()
        asked.now_ns += 120 * SECOND_NS
        asked.ask(3)
    assert event.get(OomKillDetails).task_memcg == f"/{name}"
    assert event.get(OomKillDetails).limit_bytes == 20 << 20
    assert asked.of("oom_kill", name) == [event]


# -- file systems: M6, M7, M8 -----------------------------------------------------


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """An ext4 on a sparse image that a small file system in memory cannot hold."""
    memory, point = tmp_path / "memory", tmp_path / "disk"
    memory.mkdir()
    point.mkdir()
    if _run("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(memory)).returncode:
        pytest.skip("nothing can be mounted here")
    loop = ""
    try:
        image = memory / "image"
        with open(image, "wb") as file:
            file.truncate(64 << 20)
        made = _run("mkfs.ext4", "-q", "-O", "^has_journal", "-e", "remount-ro", str(image))
        loop = _run("losetup", "-f", "--show", str(image)).stdout.strip()
        if made.returncode or not loop or _run("mount", loop, str(point)).returncode:
            pytest.skip("no ext4 on a loop device here")
        yield point, os.path.basename(loop)
    finally:
        _run("umount", str(point))
        if loop:
            _run("losetup", "-d", loop)
        _run("umount", str(memory))


def test_an_error_that_ext4_counts_stops_its_writes(
    setting: Setting, mounted: tuple[Path, str]
) -> None:
    point, device = mounted
    asked = Asked(file_systems.make(setting))
    assert not asked.of("fs_readonly", device)
    trigger = Path(f"/sys/fs/ext4/{device}/trigger_fs_error")
    if not trigger.exists():
        pytest.skip("this ext4 makes no error on request")
    trigger.write_text("nodescope test")
    asked.ask(2)
    (error,) = asked.of("fs_error", device)
    details = error.get(StorageDetails)
    assert (details.statistic, details.before, details.value) == ("ext4_errors", 0, 1)
    assert details.mount == str(point)
    assert details.known_from == "counters"
    (ended,) = asked.of("fs_readonly", device)
    assert ended.get(StorageDetails).mount == str(point)
    assert ended.get(StorageDetails).statistic in ("emergency_ro", "ro")
    assert not asked.of("fs_full", str(point))


def test_a_file_system_that_fills_up_is_full_once(
    setting: Setting, mounted: tuple[Path, str]
) -> None:
    point, _ = mounted
    memory = point.parent / "memory"
    asked = Asked(file_systems.make(setting))
    with open(memory / "more", "wb") as file:
        while shutil.disk_usage(memory).free > 64 << 10:
            file.write(b"x" * (32 << 10))
            file.flush()
    asked.ask(3)
    (full,) = asked.of("fs_full", str(memory))
    details = full.get(FullTableDetails)
    assert (details.limit, details.scope, details.most) == ("disk", str(memory), 16 << 20)
    assert details.used is not None
    assert details.used > 0.99 * (16 << 20)


# -- stalls: M10, M13 ---------------------------------------------------------------


def test_requests_that_a_throttled_disk_below_does_not_complete_are_stalled(
    setting: Setting, tmp_path: Path
) -> None:
    throttle = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
    if not throttle.exists():
        pytest.skip("no blkio controller of v1 here")
    status = os.stat(tmp_path)
    major, minor = os.major(status.st_dev), os.minor(status.st_dev)
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.write(b"\0" * (8 << 20))
        os.fsync(file.fileno())
    loop = _run("losetup", "--direct-io=on", "-f", "--show", str(image)).stdout.strip()
    if not loop:
        pytest.skip("no loop device with direct input here")
    device = os.path.basename(loop)
    asked = Asked(limits.make(setting))
    with _own_cgroups("throttle") as folders:
        _set(folders, throttle.name, f"{major}:{minor} 1024")
        code = f"""
import mmap, os
page = mmap.mmap(-1, 1 << 20)
disk = os.open({loop!r}, os.O_WRONLY | os.O_DIRECT)
print("writes", flush=True)
os.write(disk, page)
"""
        program = _python_inside(folders, code)
        try:
            assert program.stdout is not None
            program.stdout.readline()
            inflight = Path(f"/sys/block/{device}/inflight")
            wait_for(lambda: any(map(int, inflight.read_text().split())), "a request waits")
            before = Path(f"/sys/block/{device}/stat").read_text().split()[4]
            asked.ask(3)
            if Path(f"/sys/block/{device}/stat").read_text().split()[4] != before:
                pytest.skip("the write was not throttled")
        finally:
            _set(folders, throttle.name, f"{major}:{minor} 0")
            program.wait()
            assert program.stdout is not None
            program.stdout.close()
            _run("losetup", "-d", loop)
    (stalled,) = asked.of("io_stalled", device)
    assert (stalled.get(StorageDetails).waiting or 0) >= 1
    assert (stalled.get(StorageDetails).seconds or 0) >= 10


def test_a_daemon_that_does_not_answer_stalls_its_file_system(
    setting: Setting, tmp_path: Path
) -> None:
    point = tmp_path / "fuse"
    point.mkdir()
    try:
        channel = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("no /dev/fuse here")
    options = f"fd={channel},rootmode=40000,user_id=0,group_id=0"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"silent", str(point).encode(), b"fuse", 0, options.encode()):
        os.close(channel)
        pytest.skip("FUSE cannot be mounted here")
    reader = threading.Thread(target=lambda: _list_silently(point), daemon=True)
    try:
        answered = os.read(channel, 1 << 17)  # FUSE_INIT
        unique = answered[8:16]
        # struct fuse_init_out: version 7.31, and the rest as small as it may be.
        body = (7).to_bytes(4, "little") + (31).to_bytes(4, "little") + bytes(56)
        header = (16 + len(body)).to_bytes(4, "little") + bytes(4) + unique
        os.write(channel, header + body)
        reader.start()
        os.read(channel, 1 << 17)  # the request that is never answered
        asked = Asked(file_systems.make(setting))
        asked.ask(3)
    finally:
        libc.umount2(str(point).encode(), 2)
        os.close(channel)
    reader.join(10)
    (stalled,) = asked.of("fuse_stalled", str(point))
    details = stalled.get(StorageDetails)
    assert details.waiting == 1
    assert details.file_system == "fuse"
    asked.observer.close()


def _list_silently(point: Path) -> None:
    try:
        os.listdir(point)
    except OSError:
        pass  # the connection was ended


# -- tables: M3, M5, M12 --------------------------------------------------------------

# Prints the kinds of events that an observer sees in a namespace of its own.
_INSIDE = """
import sys
from pathlib import Path
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers import limits
from nodescope.sources.places import Places
observer = limits.make(Setting(Places(), Path("none")))
found = []
for at in range(1, 3):
    found += observer.observe(at * 60 * SECOND_NS).events
for event in found:
    print(event.kind, event.message)
"""


def _observe_inside(before: str, *options: str) -> str:
    code = before + _INSIDE
    done = _run("unshare", *options, sys.executable, "-c", code)
    if "unshare" in done.stderr:
        pytest.skip(f"no namespace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_local_ports_that_are_all_taken_are_exhausted() -> None:
    connect = """
import socket, subprocess
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
open("/proc/sys/net/ipv4/ip_local_port_range", "w").write("30000 30003")
server = socket.create_server(("127.0.0.1", 8000), backlog=16)
kept = [socket.create_connection(("127.0.0.1", 8000)) for _ in range(4)]
"""
    assert "ports_exhausted 4 of 4 local ports" in _observe_inside(connect, "-n")


def test_tasks_as_many_as_there_are_numbers_are_exhausted() -> None:
    threads = """
import threading
tasks = lambda: int(open("/proc/loadavg").read().split()[3].split("/")[1])
most = tasks() + 200
open("/proc/sys/kernel/pid_max", "w").write(str(max(most, 301)))
end = threading.Event()
while tasks() < 0.97 * max(most, 301):
    threading.Thread(target=end.wait, daemon=True).start()
"""
    said = _observe_inside(threads, "-pf", "--mount-proc")
    assert "pid_exhausted" in said
    assert "tasks are in use" in said


def test_a_full_table_of_another_network_namespace_is_known_by_its_cgroup(
    setting: Setting,
) -> None:
    most = Path("/proc/sys/net/netfilter/nf_conntrack_max")
    if not most.exists() or shutil.which("iptables") is None:
        pytest.skip("no conntrack here")
    send = """
import socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
rule = ["iptables", "-A", "OUTPUT", "-m", "conntrack", "--ctstate", "NEW", "-j", "ACCEPT"]
subprocess.run(rule, check=True)
print("ready", flush=True)
sys.stdin.readline()
sent = 0
for port in range(60):
    for other in range(8):
        try:
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.sendto(b"x", ("127.0.0.1", 9000 + 100 * other + port))
            sent += 1
        except OSError:
            pass
print(sent, flush=True)
sys.stdin.readline()
"""
    sender = subprocess.Popen(
        ["unshare", "-n", sys.executable, "-c", send],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert sender.stdin is not None
    assert sender.stdout is not None
    before = most.read_text()
    try:
        if sender.stdout.readline() != "ready\n":
            pytest.skip("no rule of conntrack here")
        asked = Asked(limits.make(setting))
        most.write_text("20")
        sender.stdin.write("send\n")
        sender.stdin.flush()
        sender.stdout.readline()
        most.write_text(before)
        asked.ask(4)
    finally:
        most.write_text(before)
        sender.stdin.close()
        sender.wait()
        sender.stdout.close()
    (full,) = asked.of("conntrack_full")
    details = full.get(FullTableDetails)
    assert details.statistic == "conntrack_drop"
    assert (details.value or 0) > (details.before or 0)
    assert details.scope is not None
    assert details.scope.startswith("/")
