"""Read, make, replace and remove paths of a node, never through a symbolic link.

A path is walked from the node's root by descriptors, each folder opened with O_NOFOLLOW:
whatever is exchanged meanwhile, nothing outside the allowed folders is touched. A file or a
link is made under a temporary name and renamed, so that a crash leaves the old state, the new
one, or the temporary name, which the next run removes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from nodescope.errors import RemedyError
from nodescope.remedy.files.file_state import ABSENT, FileKind, FileState
from nodescope.remedy.files.system_errors import translated

# The folders in which a remedy makes, changes or removes files of systemd. Those of packages
# (/usr, /lib) are never among them.
UNIT_FOLDERS = (
    "/etc/systemd/system",
    "/etc/systemd/system.control",
    "/run/systemd/system",
    "/run/systemd/system.control",
)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_BYTES = 1 << 20  # a unit file or a drop-in is far below
_NO_ATTRIBUTES = (errno.ENOTSUP, errno.ENODATA, errno.EOPNOTSUPP)


class NodeFiles:
    """The files below some folders of a node."""

    def __init__(self, root: Path, allowed: Sequence[str] = UNIT_FOLDERS) -> None:
        self._root = root
        self._allowed = tuple(allowed)

    def read(self, path: str) -> FileState:
        """Return the state of a path; absent, if a folder on the way is."""
        with translated(path), self._opened_parent(path, above=True) as (parent, name):
            return ABSENT if parent is None else _read_state(parent, name)

    def put(self, path: str, state: FileState) -> None:
        """Make a file or a link with this state, or replace what is there by it."""
        if state.kind == "absent":
            self.remove(path)
            return
        with translated(path), self._opened_parent(path) as (parent, name):
            if parent is None:
                raise FileNotFoundError(errno.ENOENT, "its folder is gone")
            temporary = _temporary(name)
            _unlink(parent, temporary)
            try:
                _make(parent, temporary, state)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    _unlink(parent, temporary)
                raise
            os.fsync(parent)

    def remove(self, path: str) -> None:
        """Remove a file or a link; one that is gone already stays so."""
        with translated(path), self._opened_parent(path) as (parent, name):
            if parent is not None:
                _unlink(parent, name)
                os.fsync(parent)

    def clean(self, path: str) -> None:
        """Remove what a crash may have left beside a path."""
        with translated(path), self._opened_parent(path) as (parent, name):
            if parent is not None:
                _unlink(parent, _temporary(name))

    def make_folder(self, path: str) -> None:
        """Make a folder that everybody may read; one that exists stays as it is."""
        with translated(path), self._opened_parent(path) as (parent, name):
            if parent is None:
                raise FileNotFoundError(errno.ENOENT, "its folder is gone")
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=parent)
                os.chmod(name, 0o755, dir_fd=parent)  # noqa: S103 as systemd makes them
                os.fsync(parent)
            os.close(os.open(name, _FOLDER, dir_fd=parent))  # a link in its place is refused

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        with translated(path), self._opened_parent(path) as (parent, name):
            if parent is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.rmdir(name, dir_fd=parent)
                    os.fsync(parent)

    def set_time(self, path: str, mtime_ns: int) -> None:
        """Set the time at which a folder was last changed."""
        with translated(path), self._opened_parent(path, above=True) as (parent, name):
            if parent is not None:
                found = os.stat(name, dir_fd=parent, follow_symlinks=False)
                times = (found.st_atime_ns, mtime_ns)
                os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
                os.fsync(parent)

    @contextlib.contextmanager
    def _opened_parent(self, path: str, *, above: bool = False) -> Iterator[tuple[int | None, str]]:
        """Open the folder of a path; None if one on the way is missing.

        With `above`, the path may also be one that leads to an allowed folder.
        """
        parts = self._checked(path, above)
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                try:
                    inner = os.open(part, _FOLDER, dir_fd=descriptor)
                except FileNotFoundError:
                    yield None, parts[-1]
                    return
                os.close(descriptor)
                descriptor = inner
            yield descriptor, parts[-1]
        finally:
            os.close(descriptor)

    def _checked(self, path: str, above: bool) -> list[str]:
        """Return the parts of a path; refuse one that leads elsewhere."""
        parts = path.split("/")[1:]
        if not path.startswith("/") or not all(map(is_plain_name, parts)):
            raise RemedyError(f"not a path that a remedy touches: {path!r}")
        inside = any(path == each or path.startswith(f"{each}/") for each in self._allowed)
        if not inside and not (above and any(e.startswith(f"{path}/") for e in self._allowed)):
            raise RemedyError(
                f"{path!r} lies outside {', '.join(self._allowed)}",
                hint="files of packages and of other programs are never changed",
            )
        return parts


def is_plain_name(name: str) -> bool:
    """Decide whether a name is one part of a path without control characters."""
    return (
        name not in ("", ".", "..")
        and "/" not in name
        and len(os.fsencode(name)) <= 255
        and all(ord(each) >= 32 and ord(each) != 127 for each in name)
    )


def _temporary(name: str) -> str:
    return f".nodescope-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"


def _unlink(parent: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)


def _read_state(parent: int, name: str) -> FileState:
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT
    kind: FileKind
    content: bytes = b""
    entries: tuple[str, ...] = ()
    if stat.S_ISLNK(found.st_mode):
        kind = "link"
        content = os.fsencode(os.readlink(name, dir_fd=parent))
    elif stat.S_ISREG(found.st_mode):
        kind = "file"
        content = _read_content(parent, name)
    elif stat.S_ISDIR(found.st_mode):
        kind = "folder"
        entries = _read_names(parent, name)
    else:
        raise RemedyError(f"{name!r} is neither a file nor a link nor a folder")
    return FileState(
        kind,
        content,
        stat.S_IMODE(found.st_mode),
        found.st_uid,
        found.st_gid,
        found.st_mtime_ns,
        _read_attributes(parent, name),
        entries,
    )


def _read_content(parent: int, name: str) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=parent), "rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise RemedyError(f"{name!r} is larger than {_MOST_BYTES} bytes: no file of systemd")
    return content


def _read_names(parent: int, name: str) -> tuple[str, ...]:
    descriptor = os.open(name, _FOLDER, dir_fd=parent)
    try:
        return tuple(sorted(os.listdir(descriptor)))
    finally:
        os.close(descriptor)


def _beside(parent: int, name: str) -> str:
    """Return a path for calls that take no descriptor; only its last part may be a link."""
    return f"/proc/self/fd/{parent}/{name}"


def _read_attributes(parent: int, name: str) -> tuple[tuple[str, bytes], ...]:
    place = _beside(parent, name)
    try:
        names = os.listxattr(place, follow_symlinks=False)
        return tuple(
            sorted((each, os.getxattr(place, each, follow_symlinks=False)) for each in names)
        )
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return ()
        raise


def _make(parent: int, name: str, state: FileState) -> None:
    """Make a file or a link complete: content, owner, mode, attributes, time."""
    if state.kind == "link":
        os.symlink(os.fsdecode(state.content), name, dir_fd=parent)
        os.chown(name, state.uid, state.gid, dir_fd=parent, follow_symlinks=False)
        _finish(parent, name, state)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o600, dir_fd=parent), "wb") as file:
        file.write(state.content)
        file.flush()
        os.fchown(file.fileno(), state.uid, state.gid)
        os.fchmod(file.fileno(), state.mode)
        _finish(parent, name, state)
        os.fsync(file.fileno())


def _finish(parent: int, name: str, state: FileState) -> None:
    """Give a restored path the attributes and the time it had; a new one keeps its own."""
    if state.mtime_ns is None:
        return
    place, there = _beside(parent, name), dict(_read_attributes(parent, name))
    for attribute, value in state.attributes:
        if there.pop(attribute, None) != value:
            os.setxattr(place, attribute, value, follow_symlinks=False)
    for inherited in there:
        os.removexattr(place, inherited, follow_symlinks=False)
    times = (state.mtime_ns, state.mtime_ns)
    os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
