"""The recording that is served: looked at anew when it changed, never written to.

A snapshot is what one answer is made from: the segments at one moment. Sealed segments
are kept from one snapshot to the next; the open one is read again when it has grown.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from nodescope.archive.layout import ARCHIVE_FILE, OPEN_DIRECTORY, SEALED_DIRECTORY
from nodescope.archive.lock import find_holder
from nodescope.archive.reader import Archive, Listing, Segment
from nodescope.errors import ArchiveError, NothingRecorded
from nodescope.recording.recording import Recording
from nodescope.recording.window import TimeExtent, Window
from nodescope.records.view import View
from nodescope.records.view_forms import render_command
from nodescope.wall_time import LATEST_NS

FRESH_S = 0.5  # a recording that grows is looked at no more often

Fingerprint = tuple[object, ...]


@dataclass(frozen=True)
class Snapshot:
    """A recording at one moment."""

    archive: Archive
    segments: list[Segment]
    damaged: list[ArchiveError]
    identity: Fingerprint  # which archive it is, however it grows
    revision: str

    @cached_property
    def recording(self) -> Recording:
        """Return the recording that questions are asked of."""
        lost = Listing(self.segments, self.damaged).lost
        return Recording(self.segments, self.archive.info.node, lost, self.archive.hours)

    @property
    def extent(self) -> TimeExtent:
        """From when to when it goes."""
        return self.recording.extent

    @property
    def window(self) -> Window:
        """All of it; a broken clock may have put parts where no calendar goes."""
        from_ns = min(max(self.extent.from_ns, 0), LATEST_NS - 1)
        return Window(from_ns, min(max(self.extent.to_ns, from_ns + 1), LATEST_NS))

    def revision_of(self, window: Window) -> str:
        """Changes only when what the window shows may have: what is sealed stays as it is."""
        if window.to_ns > self.extent.sealed_to_ns:
            return self.revision
        touched = [s.name for s in self.segments if _touches(s, window)]
        return _hash([str(self.identity), *touched])

    @property
    def live(self) -> bool:
        """Return whether somebody records into it now."""
        return self.archive.bundle is None and find_holder(self.archive.root) is not None


def _touches(segment: Segment, window: Window) -> bool:
    if segment.is_open:
        return False
    return segment.wall_from_ns < window.to_ns and segment.wall_to_ns >= window.from_ns


def _hash(texts: Iterable[str]) -> str:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=8).hexdigest()


@dataclass
class ServedArchive:
    """One archive, folder or bundle, that may grow, vanish and come back."""

    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _snapshot: Snapshot | None = None
    _seen: Fingerprint = ()
    _taken_s: float = 0.0

    def snapshot(self) -> Snapshot:
        """The recording as it is now; raises `ArchiveError` if there is none to read."""
        with self._lock:
            known = self._snapshot
            if known is not None and time.monotonic() - self._taken_s < FRESH_S:
                return known
            identity, content = self._look()
            if known is None or identity + content != self._seen:
                known = self._take(identity, content, known)
                self._snapshot, self._seen = known, identity + content
            self._taken_s = time.monotonic()
            return known

    def _look(self) -> tuple[Fingerprint, Fingerprint]:
        try:
            return _fingerprint(self.path)
        except OSError as error:
            self._snapshot = None  # what comes back may be another one
            if isinstance(error, FileNotFoundError) and self.path.is_dir():
                raise self._nothing() from error
            raise ArchiveError(
                self.path, _said(error), hint="it is shown again as soon as it is back"
            ) from error

    def forget(self) -> None:
        """Look again from scratch next time."""
        with self._lock:
            self._snapshot = None

    def _take(
        self, identity: Fingerprint, content: Fingerprint, known: Snapshot | None
    ) -> Snapshot:
        same = known is not None and known.identity == identity
        sealed = {s.name: s for s in known.segments if not s.is_open} if known and same else {}
        archive = known.archive if known is not None and same else Archive.open(self.path)
        listing = archive.listing(sealed)
        if not listing.segments and listing.damaged:
            status = render_command(View("status"), self.path.absolute())
            raise ArchiveError(self.path, listing.emptiness, hint=f"see `{status}`")
        if not listing.segments:
            raise self._nothing()
        revision = _hash([str(identity), str(content)])
        return Snapshot(archive, listing.segments, listing.damaged, identity, revision)

    def _nothing(self) -> NothingRecorded:
        status = render_command(View("status"), self.path.absolute())
        return NothingRecorded(
            self.path,
            "nothing is recorded in it yet",
            hint=f"the page shows the recording as soon as there is one; see `{status}`",
        )


def _said(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "the recording is not there"
    return error.strerror or str(error)


def _fingerprint(path: Path) -> tuple[Fingerprint, Fingerprint]:
    """Which archive lies there, and what it holds: names and sizes, nothing is read."""
    status = os.stat(path)
    if not os.path.isdir(path):
        return (status.st_ino, status.st_size, status.st_mtime_ns), ()
    info = os.stat(path / ARCHIVE_FILE)
    sealed = _names(path / SEALED_DIRECTORY)
    opened: list[object] = []
    for name in _names(path / OPEN_DIRECTORY):
        opened.append(name)
        opened += _sizes(path / OPEN_DIRECTORY / name)
    return (status.st_ino, info.st_ino, info.st_mtime_ns), (tuple(sealed), tuple(opened))


def _names(directory: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))
    except FileNotFoundError:
        return []


def _sizes(directory: Path) -> list[tuple[str, int]]:
    try:
        with os.scandir(directory) as entries:
            return sorted((each.name, each.stat().st_size) for each in entries)
    except FileNotFoundError:  # sealed just now
        return []
