"""Files of an archive: made private, replaced whole, removed whole, read with bounds.

The one place where the system's errors about an archive become ours.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from nodescope.errors import ArchiveError, ArchiveFull
from nodescope.records.json import JsonObject

SEGMENT_FILE = "segment.json"
MAX_JSON_BYTES = 1 << 20  # ours are about 1 kB; anything this large is not ours
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OTHER = "give another one with --archive, or with $NODESCOPE_ARCHIVE"
_DENIED = f"run as root or as the archive's owner, or {_OTHER}"
_NO_FOLDER = f"a file is where a folder should be: {_OTHER}"
_MANY_FILES = "raise the limit of open files (`ulimit -n`, or LimitNOFILE= of the unit)"
_HINTS = {
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: f"its file system is mounted read-only: {_OTHER}",
    errno.EEXIST: _NO_FOLDER,
    errno.ENOTDIR: _NO_FOLDER,
    errno.ENOENT: f"no folder can be made there, or it was removed meanwhile: {_OTHER}",
    errno.ELOOP: "symbolic links inside an archive are not followed: put the folder itself there",
    errno.EIO: "the device fails, the kernel's log says how: `dmesg`",
    errno.EMFILE: _MANY_FILES,
    errno.ENFILE: _MANY_FILES,
}


def archive_error(path: str | Path, error: OSError) -> ArchiveError:
    """Translate what the system said about a file of an archive."""
    reason = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        return ArchiveFull(path, reason, hint="free some space, or lower --retention-size")
    hint = _HINTS.get(error.errno or 0, _OTHER)
    return ArchiveError(path, reason, hint=hint)


@contextlib.contextmanager
def translated(path: str | Path) -> Iterator[None]:
    """Raise the system's errors inside the block as errors about `path`."""
    try:
        yield
    except OSError as error:
        raise archive_error(path, error) from error


def make_directory(path: Path, *, parents: bool = False) -> None:
    """Make a directory only we may enter; one that exists is left as it is.

    With its parents only where an archive begins: one that was removed while it is
    recorded must not come back in pieces.
    """
    with translated(path):
        path.mkdir(mode=0o700, parents=parents, exist_ok=True)


def open_private(path: str | Path, flags: int) -> int:
    """Open a file of ours, never through a symbolic link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of `data`; a short write is continued until the system objects."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(path: Path) -> None:
    """Make names that appeared or vanished in `path` survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Mapping[str, object]) -> int:
    """Write a new JSON file and sync it; returns its size."""
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode(
        errors="backslashreplace"
    )
    with translated(path):
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return len(data)


def replace_json(path: Path, content: Mapping[str, object]) -> None:
    """Put a JSON file in place whole: readers see the old one or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_json(temporary, content)
        with translated(path):
            temporary.replace(path)
            sync_directory(path.parent)
    except ArchiveError:
        temporary.unlink(missing_ok=True)
        raise


def read_json(path: str | Path) -> JsonObject:
    """Read a JSON object of bounded size. A missing file stays FileNotFoundError."""
    try:
        descriptor = open_private(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise archive_error(path, error) from error
    try:
        # Without a file object: an archive of twelve hours has 360 of these.
        data = b""
        while len(data) <= MAX_JSON_BYTES and (more := os.read(descriptor, 1 << 16)):
            data += more
    except OSError as error:
        raise archive_error(path, error) from error
    finally:
        os.close(descriptor)
    if len(data) > MAX_JSON_BYTES:
        hint = "it is not what Nodescope wrote"
        raise ArchiveError(path, f"larger than {MAX_JSON_BYTES} bytes", hint=hint)
    return parse_json(path, data)


def parse_json(path: str | Path, data: bytes) -> JsonObject:
    """A JSON object; errors name the file it is from."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(path, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ArchiveError(path, "not a JSON object")
    return content


def create_segment(path: Path, description: Mapping[str, object]) -> None:
    """Make the directory of an open segment, never to be seen without its description."""
    temporary = path.with_name(f".{path.name}")
    make_directory(temporary)
    try:
        write_json(temporary / SEGMENT_FILE, description)
        with translated(path):
            temporary.rename(path)
            sync_directory(path.parent)
    except ArchiveError:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def remove_directory(path: Path) -> None:
    """Remove a segment as a whole: out of sight by one rename, then deleted.

    A crash in between leaves a name with a dot, which `sweep` deletes.
    """
    doomed = path.with_name(f".{path.name}")
    with translated(path):
        if doomed.is_dir():
            shutil.rmtree(doomed)
        with contextlib.suppress(FileNotFoundError):
            path.rename(doomed)
            sync_directory(path.parent)
            shutil.rmtree(doomed)


def sweep(directory: Path) -> None:
    """Delete what a crash left half-built or half-removed in `directory`."""
    with translated(directory), os.scandir(directory) as entries:
        for entry in entries:
            if not entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
