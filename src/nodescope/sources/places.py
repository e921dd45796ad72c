"""Where a node's files lie: its own root, a host mounted elsewhere, or a recorded tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
        """An absolute path of the node, under its root."""
        return self.root / path.lstrip("/")
