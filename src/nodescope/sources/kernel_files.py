"""Small files of /proc and /sys: read once, or again and again by a descriptor that stays open."""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceError, source_error

_CHUNK = 1 << 16


def read_file(path: Path | str) -> bytes:
    """Return the whole content of a small file of the kernel."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(descriptor, _CHUNK)
            # A read may end at any line: only an empty one says that it is the end.
            while more := os.read(descriptor, _CHUNK):
                content += more
            return content
        finally:
            os.close(descriptor)
    except OSError as error:
        raise source_error(path, error) from error


def read_text(path: Path | str) -> str | None:
    """Return a small file's text; None where it is empty, absent, or not to be read by us."""
    try:
        return read_file(path).decode("utf-8", "replace").strip() or None
    except SourceError:  # also `carrier` of a device that is down: EINVAL
        return None


def read_number(path: Path | str) -> int | None:
    """Return a small file's number; None where there is none."""
    text = read_text(path)
    return int(text) if text and text.lstrip("-").isdecimal() else None


class KeptFile:
    """A file of /proc or /sys: opened once, read from its start each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise source_error(path, error) from error

    def read(self) -> bytes:
        """Return the whole content, as it is now."""
        parts = []
        offset = 0
        try:
            # A read may end at any line: only an empty one says that it is the end.
            while part := os.pread(self._descriptor, _CHUNK, offset):
                parts.append(part)
                offset += len(part)
        except OSError as error:
            raise source_error(self.path, error) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_once(self, size: int = 4096) -> bytes:
        """Return what one read gives: all there is of a file of sysfs."""
        try:
            return os.pread(self._descriptor, size, 0)
        except OSError as error:
            raise source_error(self.path, error) from error

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


class KeptFiles:
    """Files that may be absent, each opened once and read from its start each time."""

    def __init__(self) -> None:
        self._kept: dict[Path, KeptFile] = {}
        self.refused: dict[Path, SourceError] = {}
        """Those that are there and could not be read when they were last tried."""

    def read(self, path: Path) -> bytes | None:
        """Return the content; None where the file is absent or not to be read by us."""
        try:
            kept = self._kept.get(path)
            if kept is None:
                kept = self._kept[path] = KeptFile(path)
            content = kept.read()
        except SourceError as error:
            self._drop(path, error)
            return None
        self.refused.pop(path, None)
        return content

    def _drop(self, path: Path, error: SourceError) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            kept.close()  # of a module that was unloaded: it may come again
        if not isinstance(error, SourceAbsent):
            self.refused[path] = error

    def close(self) -> None:
        """Give the descriptors back."""
        for kept in self._kept.values():
            kept.close()
        self._kept = {}
