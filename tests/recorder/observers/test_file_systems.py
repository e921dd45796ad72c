"""The observer of file systems, on mount tables as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernel_files import write

from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.file_systems import FileSystemsObserver
from nodescope.records.event import Event
from nodescope.records.trouble_details import FullTableDetails, StorageDetails
from nodescope.records.witness_tables import LimitRow, WrittenFileRow
from nodescope.sources.limits.reading import Limit
from nodescope.sources.places import Places
from nodescope.sources.processes.written_files import WrittenFile, WrittenFiles

ROOT = "27 1 259:1 / / rw - ext4 /dev/sda1 {options}\n"
OTHERS = (
    "31 27 7:0 / /snap/core/1 ro - squashfs /dev/loop0 ro\n"
    "32 27 0:50 / /overlay rw - overlay overlay rw\n"
    "33 27 0:51 / /mnt/nfs rw - nfs4 server:/x rw\n"
    "34 33 259:2 / /mnt/nfs/scratch rw - xfs /dev/sdb rw\n"
    "35 27 259:3 / /boot rw - ext4 /dev/sdc rw\n"
    "36 27 0:60 / /dev/shm rw - tmpfs tmpfs rw\n"
    "37 27 0:61 / /var/lib/kubelet/pods/1/volumes/secret rw - tmpfs tmpfs rw\n"
    "38 27 259:4 / /media ro - ext4 /dev/sdd ro\n"
)


class Node:
    """A node whose mounts change, looked at every ten seconds."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.setting = Setting(Places(root), root / "none")
        self.observer = FileSystemsObserver(self.setting)
        self.now_ns = 0
        self.used: dict[str, int] = {}  # percent, by mount point
        self.asked: set[str] = set()
        self.scopes: set[str] = set()
        self.mount("rw,errors=remount-ro")
        module = "nodescope.recorder.observers.file_systems"
        monkeypatch.setattr(f"{module}.read_space", self._space)

    def mount(self, options: str) -> None:
        table = ROOT.format(options=options) + OTHERS
        write(self.root / "proc/self", {"mountinfo": table})

    def errors(self, number: int) -> None:
        files = {"errors_count": f"{number}\n", "last_error_func": "ext4_lookup\n"}
        write(self.root / "sys/fs/ext4/sda1", files)

    def _space(self, path: str, scope: str) -> list[Limit]:
        self.asked.add(scope)
        return [Limit("disk", scope, self.used.get(scope, 10) * 1000, 100_000)]

    def look(self, times: int = 1) -> list[Event]:
        events: list[Event] = []
        for _ in range(times):
            self.now_ns += 10 * SECOND_NS
            said = self.observer.observe(self.now_ns)
            events += said.events
            self.scopes |= {row.scope for row in said.rows_of(LimitRow)}
        return events


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_only_local_file_systems_are_asked(node: Node) -> None:
    node.look()
    assert node.asked == node.scopes == {"/", "/boot", "/dev/shm", "/media"}


def test_a_disk_that_fills_up(node: Node) -> None:
    node.look()
    node.used["/"] = 99
    (event,) = node.look()
    assert (event.kind, event.subject) == ("fs_full", "/")
    assert event.get(FullTableDetails).limit == "disk"
    assert node.look(10) == []


def test_who_writes_to_a_disk_that_fills_up(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    file = WrittenFile(812, "filler", "/system.slice/filler.service", "/var/x", 5, 4096, False)
    asked: list[str] = []

    def read(proc: Path, device: str, most_ns: int) -> WrittenFiles:
        asked.append(device)
        return WrittenFiles((file,), complete=True)

    module = "nodescope.recorder.observers.file_systems"
    monkeypatch.setattr(f"{module}.read_written_files", read)
    node.look(2)
    assert asked == []
    node.used["/"] = 99
    said = node.observer.observe(node.now_ns + 10 * SECOND_NS)
    (row,) = said.rows_of(WrittenFileRow)
    assert asked == ["259:1"]
    assert (row.mount, row.pid, row.cgroup) == ("/", 812, "/system.slice/filler.service")
    assert (row.size_bytes, row.complete) == (4096, True)


@pytest.mark.parametrize("scope", ["/boot", "/media"])
def test_what_is_full_by_design_is_no_event(node: Node, scope: str) -> None:
    node.look()
    node.used[scope] = 100
    assert node.look(3) == []


def test_memory_that_was_full_from_the_start_is_no_event(node: Node) -> None:
    node.used["/dev/shm"] = 100
    assert node.look(3) == []
    node.used["/dev/shm"] = 50
    node.look()
    node.used["/dev/shm"] = 100
    assert [event.subject for event in node.look()] == ["/dev/shm"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("ro", "ro"),
        ("rw,errors=remount-ro,emergency_ro", "emergency_ro"),
        ("rw,shutdown", "shutdown"),
    ],
)
def test_a_file_system_that_took_writes_and_does_no_more(
    node: Node, options: str, says: str
) -> None:
    assert node.look(2) == []
    node.mount(options)
    (event,) = node.look(3)
    assert (event.kind, event.subject) == ("fs_readonly", "sda1")
    details = event.get(StorageDetails)
    assert (details.mount, details.file_system, details.statistic) == ("/", "ext4", says)
    node.mount("rw")
    assert node.look() == []
    node.mount(options)
    assert len(node.look(2)) == 1


def test_one_that_was_read_only_from_the_start_is_so_by_design(node: Node) -> None:
    node.mount("ro")
    assert node.look(3) == []


def test_errors_that_ext4_counts(node: Node) -> None:
    node.errors(2)
    node.look()
    node.errors(3)
    (event,) = node.look()
    assert (event.kind, event.subject) == ("fs_error", "sda1")
    details = event.get(StorageDetails)
    assert (details.before, details.value, details.function) == (2, 3, "ext4_lookup")
    assert details.mount == "/"


def test_what_the_log_reports_of_the_device_is_not_reported_again(node: Node) -> None:
    node.setting.log_reports.note_read(0)
    node.errors(2)
    node.look()
    node.errors(3)
    node.mount("ro")
    for kind in ("fs_error", "fs_readonly"):
        node.setting.log_reports.tell(node.now_ns + SECOND_NS, kind, ("sda1",))
    assert node.look(3) == []
