"""Support bundles: each line of the kernel is imported once, and what is left is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nodescope.exchange.import_files import import_files
from nodescope.exchange.log_trees import find_logs
from nodescope.quantities import SECOND_NS
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window

_FULL = "nf_conntrack: nf_conntrack: table full, dropping packet\n"
_SYSLOG = "2026-11-16T03:08:{:02}+00:00 node kernel: " + _FULL
_DMESG = "[  100.0000{:02}] " + _FULL


def _write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.fixture
def sosreport(tmp_path: Path) -> Path:
    top = tmp_path / "unpacked" / "sosreport-node-2026"
    _write(top, "sos_commands/logs/journalctl_--list-boots", "0 abc\n")
    _write(top, "sos_commands/kernel/dmesg", "".join(map(_DMESG.format, range(9))))
    _write(top, "var/log/messages", "".join(map(_SYSLOG.format, range(30, 40))))
    _write(top, "var/log/messages-20261115.gz", "".join(map(_SYSLOG.format, range(9))))
    _write(top, "etc/hosts", "127.0.0.1 localhost\n")
    return tmp_path / "unpacked"


def test_a_sosreport_gives_each_line_once(sosreport: Path) -> None:
    tree = find_logs(sosreport)
    assert tree is not None
    assert [path.name for path in tree.chosen] == ["messages", "messages-20261115.gz"]
    assert {path.name for path in tree.left} == {"journalctl_--list-boots", "dmesg"}


def test_a_journal_goes_before_messages(sosreport: Path) -> None:
    journal = "sosreport-node-2026/sos_commands/logs/journalctl_--no-pager"
    _write(sosreport, journal, "".join(map(_SYSLOG.format, range(40))))
    tree = find_logs(sosreport)
    assert tree is not None
    assert [path.name for path in tree.chosen] == ["journalctl_--no-pager"]


def test_the_log_that_reports_the_trouble_is_taken(sosreport: Path) -> None:
    """The node's syslog had stopped before it: the bundle read as an all-clear."""
    lost = "[ 900.1] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off the bus.\n"
    dmesg = "sosreport-node-2026/sos_commands/kernel/dmesg"
    _write(sosreport, dmesg, "".join(map(_DMESG.format, range(9))) + lost)
    tree = find_logs(sosreport)
    assert tree is not None
    assert [path.name for path in tree.chosen] == ["dmesg"]


def test_a_bundle_of_an_eks_node_gives_the_kernel_and_the_kubelet(tmp_path: Path) -> None:
    _write(tmp_path, "kernel/dmesg.current", "".join(map(_DMESG.format, range(9))))
    _write(tmp_path, "kubelet/kubelet.log", _SYSLOG.format(1).replace("kernel", "kubelet[1]") * 5)
    _write(tmp_path, "kubelet/kubeconfig.yaml", "a: b\n")
    tree = find_logs(tmp_path)
    assert tree is not None
    assert [path.name for path in tree.chosen] == ["dmesg.current", "kubelet.log"]


def test_any_other_folder_is_none(tmp_path: Path) -> None:
    _write(tmp_path, "perf.data", "x")
    assert find_logs(tmp_path) is None
    assert find_logs(tmp_path / "..") is None


def test_an_imported_kernel_log_is_known_to_have_been_observed(
    sosreport: Path, tmp_path: Path
) -> None:
    imported = import_files([sosreport], tmp_path / "archive")
    assert sorted(path.name for path in imported.skipped) == ["dmesg", "journalctl_--list-boots"]
    recording = Recording.open(tmp_path / "archive")
    extent = recording.extent
    window = Window(extent.from_ns - 100 * SECOND_NS, extent.to_ns + 100 * SECOND_NS)
    covered = recording.coverage("kernel_log", window)
    assert covered.holds(extent.from_ns)
    assert not covered.complete
    assert not recording.coverage("softnet", window)
    assert {event.kind for event in recording.events(window)} == {"conntrack_full"}
