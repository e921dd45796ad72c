"""Which files pin dying cgroups: those with cached pages that a parent of them pays for.

Looked at in this order, until the time is up: deleted files and memfds that
processes hold open, files in memory (tmpfs), files on disks. It ends early when
files were found for all that the main parents hold. A page is paid for by the
closest cgroup that still lives (see `pages`), so where processes run in the parent
itself, some pages may be its own.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from nodescope.errors import SourceError
from nodescope.sources.kernel_files import read_file
from nodescope.sources.memory_cgroups.file_systems import (
    FileSystem,
    find_file_system,
    find_file_systems,
)
from nodescope.sources.memory_cgroups.hierarchy import MemoryHierarchy
from nodescope.sources.memory_cgroups.parents import PAGE_BYTES, Parent
from nodescope.sources.memory_cgroups.resident_pages import PageOwners
from nodescope.sources.places import Places

Kind = Literal["shmem", "file", "deleted"]
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_FILES = 200_000  # kept by name
_ENOUGH = 0.98  # of what is held; some of it may be of no file, as directories are
_MAIN = 0.01  # a parent of at least so many of all dying ones is searched for to the end
# Folders of the system: searched last, since what pins cgroups was written lately.
_LAST = frozenset(("usr", "lib", "lib64", "bin", "sbin", "opt", "boot", "nix", "snap"))


@dataclass(frozen=True, slots=True)
class PinningFile:
    """A file with pages that a parent pays for; `holder` if it lives by an open descriptor."""

    parent: str
    path: str
    kind: Kind
    bytes: int
    holder_pid: int | None = None
    holder_comm: str | None = None
    identity: tuple[int, int] | None = None  # device and inode


@dataclass(slots=True)
class PinSearch:
    """The files found, and how far the search came."""

    files: list[PinningFile] = field(default_factory=list)
    looked_at: int = 0
    complete: bool = True  # all was searched, or all that is held was found
    not_searched: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _FoundFiles:
    path: str  # to open
    shown: str
    kind: Kind
    status: os.stat_result
    pid: int | None = None


def find_pinning_files(
    hierarchy: MemoryHierarchy, parents: Sequence[Parent], folders: Sequence[Path], seconds: float
) -> PinSearch:
    """Search at most so long, everywhere or in `folders`. Raises `SourceDenied` without root."""
    places = hierarchy.places
    search = PinSearch()
    payers = _payers(hierarchy, parents)
    wanted = _wanted(parents)
    deadline = time.monotonic() + seconds
    seen: set[tuple[int, int]] = set()
    with PageOwners(places) as owners:
        for found in _every_file(places, parents, folders, search, deadline):
            identity = found.status.st_dev, found.status.st_ino
            if identity in seen:
                continue
            seen.add(identity)
            search.looked_at += 1
            for file in _look_at(found, owners, payers, places):
                search.files.append(file)
                if file.parent in wanted:
                    wanted[file.parent] -= file.bytes
            if wanted and max(wanted.values()) <= 0:
                search.not_searched.clear()
                break
            if time.monotonic() > deadline or len(search.files) >= _MOST_FILES:
                search.complete = False
                break
    search.files.sort(key=lambda each: (-each.bytes, each.path))
    return search


def _payers(hierarchy: MemoryHierarchy, parents: Sequence[Parent]) -> dict[int, str]:
    payers = {}
    for parent in parents:
        try:
            payers[os.stat(hierarchy.directory(parent.path)).st_ino] = parent.path
        except OSError:
            continue  # removed meanwhile
    return payers


def _wanted(parents: Sequence[Parent]) -> dict[str, int]:
    """Bytes to find files for, by main parent."""
    total = sum(parent.dying or 0 for parent in parents)
    return {
        parent.path: int(_ENOUGH * sum(parent.held.get(kind, 0) for kind in ("shmem", "file")))
        for parent in parents
        if parent.held and (parent.dying or 0) >= _MAIN * total
    }


def _look_at(
    found: _FoundFiles, owners: PageOwners, payers: Mapping[int, str], places: Places
) -> Iterator[PinningFile]:
    try:
        # Magic links of /proc must be followed; files of others refuse O_NOATIME.
        flags = _FLAGS & ~os.O_NOFOLLOW if found.pid is not None else _FLAGS
        descriptor = os.open(found.path, flags | os.O_NOATIME)
    except OSError:
        return  # vanished, busy, or not to be read
    try:
        pages = owners.pages_of(descriptor, found.status.st_size)
    except OSError:
        return  # cannot be mapped
    finally:
        os.close(descriptor)
    for inode, number in pages.items():
        parent = payers.get(inode)
        if parent is not None:
            comm = None if found.pid is None else _comm(places, found.pid)
            size = number * PAGE_BYTES
            identity = found.status.st_dev, found.status.st_ino
            yield PinningFile(parent, found.shown, found.kind, size, found.pid, comm, identity)


def _every_file(
    places: Places,
    parents: Sequence[Parent],
    folders: Sequence[Path],
    search: PinSearch,
    deadline: float,
) -> Iterator[_FoundFiles]:
    yield from _held_open(places)
    if folders:
        for folder in folders:
            yield from _files_below(find_file_system(folder), deadline)
        return
    cached = any("file" in parent.held or not parent.held for parent in parents)
    for system in find_file_systems(places):
        if not system.in_memory and not cached:
            continue
        if time.monotonic() > deadline:
            search.not_searched.append(system.path)
            continue
        yield from _files_below(system, deadline)


def _held_open(places: Places) -> Iterator[_FoundFiles]:
    """Files without a name that processes hold open."""
    for name in os.listdir(places.proc):
        if not name.isdigit():
            continue
        folder = f"{places.proc}/{name}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue  # ended, or not ours to look at
        for descriptor in descriptors:
            path = f"{folder}/{descriptor}"
            try:
                target = os.readlink(path)
                if not target.endswith(" (deleted)"):  # memfds say so, too
                    continue
                status = os.stat(path)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_size:
                yield _FoundFiles(
                    path, target.removesuffix(" (deleted)"), "deleted", status, int(name)
                )


def _files_below(system: FileSystem, deadline: float) -> Iterator[_FoundFiles]:
    kind: Kind = "shmem" if system.in_memory else "file"
    try:
        device = os.stat(system.path).st_dev
    except OSError:
        return
    top = system.path.rstrip("/")
    pending = [top]
    while pending and time.monotonic() < deadline:
        folder = pending.pop()
        try:
            with os.scandir(folder or "/") as listed:
                entries = list(listed)
                if folder == top:
                    entries.sort(key=lambda entry: entry.name not in _LAST)
                for entry in entries:
                    path = f"{folder}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        if entry.stat(follow_symlinks=False).st_dev == device:
                            pending.append(path)
                    elif entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        if status.st_size:
                            yield _FoundFiles(path, path, kind, status)
        except OSError:
            continue  # removed while we walked: normal


def _comm(places: Places, pid: int) -> str | None:
    try:
        return read_file(f"{places.proc}/{pid}/comm").decode("utf-8", "replace").rstrip("\n")
    except SourceError:
        return None
