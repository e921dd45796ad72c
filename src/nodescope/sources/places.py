"""Where a node's files lie: its own root, a host mounted elsewhere, or a recorded tree."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_MAX_LINKS = 40


@dataclass(frozen=True, slots=True)
class Places:
    """The roots of everything that is read; a recorded tree replaces `root`."""

    root: Path = Path("/")
    systemd_bus: str | None = None  # D-Bus address of the systemd to ask; None: the system's own
    journal: Path | None = None  # folder of journal files; None: where the root has them
    ray: str | None = None  # address of a Ray dashboard; None: asked where Ray says it runs

    @property
    def proc(self) -> Path:
        return self.root / "proc"

    @property
    def sys(self) -> Path:
        return self.root / "sys"

    @property
    def dev(self) -> Path:
        return self.root / "dev"

    def inside(self, path: str) -> Path:
        """Return an absolute path of the node under its root, which no link leads out of."""
        if self.root == Path("/"):
            return self.root / path.lstrip("/")
        return Path(resolve_inside(self.root, path))


def resolve_inside(root: Path, path: str) -> str:
    """Return where a path leads when `root` is the root: a link cannot lead out of it."""
    pending = [part for part in path.split("/") if part]
    done: list[str] = []
    links = 0
    while pending:
        part = pending.pop(0)
        if part == "..":
            done = done[:-1]
            continue
        if part == ".":
            continue
        try:
            target = os.readlink(os.path.join(root, *done, part))
        except OSError:
            done.append(part)
            continue
        links += 1
        if links > _MAX_LINKS:
            break
        if target.startswith("/"):
            done = []
        pending = [each for each in target.split("/") if each] + pending
    return os.path.join(root, *done)
