"""Recorded nodes: what `tools/record-node` wrote, made a tree of files again, and the truth beside.

`NAME.json` is what a real node showed, `NAME.truth.json` what was known of it from elsewhere:
from making it, from the kernel's trace, from systemd. README.md tells of each.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy, find_memory_hierarchy
from nodescope.sources.places import Places

_FOLDER = Path(__file__).parent
HYBRID = "hybrid-v1"  # this project's machine: v1 controllers beside an empty v2
KUBELET_V1 = "kubelet-cgroupfs-v1"  # the same, with pods by the cgroupfs driver
GUEST = "guest-systemd-v2"  # v2, systemd, and pods by the systemd driver
PLAIN_GUEST = "guest-v2-6.1"  # v2 of an older kernel without a systemd; its memory cgroups alone
WHOLE = (HYBRID, KUBELET_V1, GUEST)
WITH_PODS = (KUBELET_V1, GUEST)
WITH_NICS = (HYBRID, GUEST)
EVERY = (*WHOLE, PLAIN_GUEST)


@dataclass(frozen=True)
class Node:
    """A tree that reads as the node did, and what is known of it without having read it."""

    name: str
    places: Places
    truth: dict[str, Any]

    @property
    def root(self) -> Path:
        return self.places.root

    @property
    def memory(self) -> MemoryHierarchy:
        return find_memory_hierarchy(self.places)


def put_node(name: str, root: Path) -> Node:
    """Write a recorded node's files below a root."""
    recording = _load(name)
    for path in recording["folders"]:
        _below(root, path).mkdir(parents=True, exist_ok=True)
    # Links first: a file may be recorded below one.
    for path, target in recording["links"].items():
        link = _below(root, path)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    for path, files in recording["files"].items():
        folder = _below(root, path)
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_bytes(text.encode())
    return Node(name, Places(root), _load(f"{name}.truth"))


@cache
def _load(name: str) -> Any:
    return json.loads((_FOLDER / f"{name}.json").read_text())


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")
