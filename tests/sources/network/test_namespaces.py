from __future__ import annotations

import os
from pathlib import Path

from nodescope.sources.network.namespaces import NetworkNamespaces


def _process(proc: Path, pid: str, namespace: int) -> None:
    folder = proc / pid / "ns"
    folder.mkdir(parents=True)
    os.symlink(f"net:[{namespace}]", folder / "net")


def test_the_oldest_process_stands_for_a_namespace(tmp_path: Path) -> None:
    _process(tmp_path, "self", 1)
    for pid, namespace in ((1, 1), (40, 2), (50, 2), (60, 3)):
        _process(tmp_path, str(pid), namespace)
    (tmp_path / "70").mkdir()  # a thread of the kernel, or closed to us
    namespaces = NetworkNamespaces(tmp_path)
    assert namespaces.find() == {"net:[2]": 40, "net:[3]": 60}
    (tmp_path / "40/ns/net").unlink()
    (tmp_path / "40/ns").rmdir()
    (tmp_path / "40").rmdir()
    assert namespaces.find() == {"net:[2]": 50, "net:[3]": 60}
