"""Reading small kernel files again and again, by descriptors that stay open."""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.errors import source_error

_CHUNK = 1 << 16


class KeptFile:
    """A file of /proc or /sys: opened once, read from its start each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise source_error(path, error) from error

    def read(self) -> bytes:
        """The whole content, as it is now."""
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
        """What one read gives: all there is of a file of sysfs."""
        try:
            return os.pread(self._descriptor, size, 0)
        except OSError as error:
            raise source_error(self.path, error) from error

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


def read_text(path: Path | str) -> str | None:
    """A small file's text; None where there is none, or the device will not say."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, 4096).decode("utf-8", "replace").strip()
    except OSError:  # `carrier` of a device that is down: EINVAL
        return None
    finally:
        os.close(descriptor)


def read_number(path: Path | str) -> int | None:
    """A small file's number."""
    text = read_text(path)
    return int(text) if text and text.lstrip("-").isdecimal() else None
