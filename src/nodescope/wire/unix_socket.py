"""Connecting to a daemon's socket, wherever the node's root is mounted, and never for long."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceError, source_error

_MAX_PATH = 107  # sun_path of unix(7), without its terminator


class Deadline:
    """A moment by which something has to be over, whatever it consists of."""

    def __init__(self, path: str | Path, seconds: float) -> None:
        self._path = path
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left; raises when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.missed()
        return left

    def missed(self) -> SourceError:
        return SourceError(
            self._path,
            f"no answer within {self._seconds:g} s",
            hint="the daemon hangs or is overloaded; it is asked again later",
        )


def connect(path: Path, deadline: Deadline) -> socket.socket:
    """A connected stream socket."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(deadline.left())
        _connect(connection, path)
    except TimeoutError:
        connection.close()
        raise deadline.missed() from None
    except ConnectionRefusedError:
        connection.close()
        raise SourceAbsent(path, "nobody listens") from None
    except OSError as error:
        connection.close()
        raise source_error(path, error) from error
    except SourceError:
        connection.close()
        raise
    return connection


def _connect(connection: socket.socket, path: Path) -> None:
    if len(os.fsencode(path)) <= _MAX_PATH:
        connection.connect(str(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
