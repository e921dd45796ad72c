"""Every error Nodescope raises on purpose.

::

    NodescopeError
    ├── UsageError                  the caller asked for something impossible
    ├── SourceError(path, reason)   something the node should tell could not be read
    │   ├── SourceAbsent            not on this kernel or machine
    │   ├── SourceDenied            there, but not for us
    │   └── MalformedSource(line)   read, but not what its format promises
    ├── ArchiveError(path, reason)  a recording could not be read or written
    │   ├── ArchiveBusy             another recorder holds it
    │   ├── ArchiveFull             no room left on the device
    │   ├── NothingRecorded         a place for a recording that holds none yet
    │   ├── NewerFormat             written by a later Nodescope
    │   └── CorruptSegment(offset)  damaged at rest
    └── RemedyError                 a step of a plan that was not taken, or did not succeed
        ├── StalePlan(changed)      the node is no longer the one that the plan was made for
        ├── GuardRefused            the node needs what the step would change
        └── RemedyBusy              another `fix` works on this node

Parsers raise; the recorder alone turns a `SourceError` into a `gap` record;
the command line alone turns any of them into a message with a hint.
"""

from __future__ import annotations

import errno
from pathlib import Path


class NodescopeError(Exception):
    """Base of all of them; `hint` says what a person can do about it."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(NodescopeError):
    """An option or argument that cannot be honoured."""


class SourceError(NodescopeError):
    """A kernel file, binary or daemon that could not be read."""

    def __init__(self, path: str | Path, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path = str(path)
        self.reason = reason


class SourceAbsent(SourceError):
    """This kernel or machine does not have it."""


class SourceDenied(SourceError):
    """It exists, but we may not read it."""


class MalformedSource(SourceError):
    """Its content breaks its own format."""

    def __init__(
        self, path: str | Path, reason: str, line: int | None = None, *, hint: str | None = None
    ) -> None:
        super().__init__(path, reason if line is None else f"line {line}: {reason}", hint=hint)
        self.line = line


class ArchiveError(NodescopeError):
    """A recording that cannot be read or written."""

    def __init__(self, path: str | Path, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path = str(path)
        self.reason = reason


class ArchiveBusy(ArchiveError):
    """Another recorder writes to this archive."""


class ArchiveFull(ArchiveError):
    """The device that holds the archive has no room left."""


class NothingRecorded(ArchiveError):
    """A folder or archive in which nothing is recorded yet; that may change at any moment."""


class NewerFormat(ArchiveError):
    """Written by a Nodescope that knows a later format than this one."""


class CorruptSegment(ArchiveError):
    """A segment that does not hold what its own description promises."""

    def __init__(
        self, path: str | Path, reason: str, offset: int | None = None, *, hint: str | None = None
    ) -> None:
        where = "" if offset is None else f" at byte {offset}"
        super().__init__(path, f"{reason}{where}", hint=hint)
        self.offset = offset


class RemedyError(NodescopeError):
    """A step that was not taken, or did not succeed."""


class StalePlan(RemedyError):
    """The facts that a plan rests on changed; `changed` lists them, old and new."""

    def __init__(self, changed: tuple[str, ...], *, hint: str | None = None) -> None:
        super().__init__("the plan no longer fits this node: " + "; ".join(changed), hint=hint)
        self.changed = changed


class GuardRefused(RemedyError):
    """The node cannot live without what the step would change."""


class RemedyBusy(RemedyError):
    """Another process applies or undoes a plan on this node."""


def source_error(path: str | Path, error: OSError) -> SourceError:
    """Translate what the system said about `path`: the one place where it happens."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM):
        return SourceDenied(path, reason)
    if error.errno in (errno.ENOENT, errno.ESRCH, errno.ENODEV, errno.ENXIO, errno.ENOTDIR):
        return SourceAbsent(path, reason)
    return SourceError(path, reason)
