"""Files below an image's root: no link leads out, nothing that blocks is opened, reads are bounded.

An image comes from elsewhere. Its links are resolved as the booted system would resolve them,
below the root; a FIFO, a socket or a device is never opened.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from nodescope.sources.places import resolve_inside

MAX_ENTRIES = 20_000  # of one folder
MAX_TEXT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ImageFiles:
    """The files below `root`; every path is absolute in the image."""

    root: Path

    def resolve(self, path: str) -> Path:
        """Return where a path lies on this machine, with every link resolved in the image."""
        return Path(resolve_inside(self.root, path))

    def read(self, path: str, limit: int = MAX_TEXT_BYTES) -> bytes | None:
        """Return at most `limit` bytes of an ordinary file; None if there is none to read."""
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            target = self.resolve(path)
            if not stat.S_ISREG(os.lstat(target).st_mode):
                return None  # before opening: to open a device may do something
            descriptor = os.open(target, flags)
        except (OSError, ValueError):
            return None
        with os.fdopen(descriptor, "rb") as file:
            try:
                return file.read(limit)
            except OSError:
                return None

    def read_text(self, path: str, limit: int = MAX_TEXT_BYTES) -> str:
        """Return a file's text; empty if there is none to read."""
        return (self.read(path, limit) or b"").decode("utf-8", "replace")

    def names(self, path: str) -> list[str]:
        """Return the names in a folder that are valid text, sorted; empty if there is none."""
        found: list[str] = []
        try:
            with os.scandir(self.resolve(path)) as entries:
                for entry in entries:
                    if len(found) >= MAX_ENTRIES:
                        break
                    if _is_text(entry.name):
                        found.append(entry.name)
        except (OSError, ValueError):
            return []
        return sorted(found)

    def mode(self, path: str) -> int | None:
        """Return the mode of what a path leads to; None if it leads nowhere."""
        try:
            return os.lstat(self.resolve(path)).st_mode
        except (OSError, ValueError):
            return None

    def exists(self, path: str) -> bool:
        """Return whether a path leads to anything."""
        return self.mode(path) is not None

    def is_script(self, path: str) -> bool:
        """Return whether a path leads to an ordinary file that may be executed."""
        mode = self.mode(path) or 0
        return stat.S_ISREG(mode) and bool(mode & 0o111)

    def size(self, path: str) -> int:
        """Return the size of an ordinary file; 0 if there is none."""
        try:
            found = os.lstat(self.resolve(path))
        except (OSError, ValueError):
            return 0
        return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_text(name: str) -> bool:
    """Return whether a name is valid UTF-8: any other cannot be reported as JSON."""
    return not any("\ud800" <= character <= "\udfff" for character in name)
