"""Finds which files processes have open or mapped, by device and inode.

Shared memory is usually mapped and its descriptor closed: both are looked at.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import RemedyError

Identity = tuple[int, int]  # device and inode
_GONE = (FileNotFoundError, ProcessLookupError)  # the process ended, or closed it


@dataclass(frozen=True, slots=True)
class FilesInUse:
    """Files that a process uses, and how many processes could not be looked into."""

    used: frozenset[Identity]
    unseen: int


def find_used(proc: Path, files: Collection[Identity]) -> FilesInUse:
    """Return those of the files that a process has open or mapped; refuse without root.

    A security module may hide a process from root as well: it is counted, and keeps what it has
    open or mapped even if the file loses its name.
    """
    used: set[Identity] = set()
    unseen = 0
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        try:
            for each in (*_opened(proc / name), *_mapped(proc / name)):
                if each in files:
                    used.add(each)
        except _GONE:
            continue
        except PermissionError as error:
            if os.geteuid() != 0:
                raise RemedyError(
                    f"the files that process {name} uses cannot be seen", hint="needs root"
                ) from error
            unseen += 1
    return FilesInUse(frozenset(used), unseen)


def _opened(folder: Path) -> Iterator[Identity]:
    for descriptor in os.listdir(folder / "fd"):
        try:
            # Where the link leads by name: a stat of every file may wait for a dead server.
            if not os.readlink(folder / "fd" / descriptor).startswith("/"):
                continue
            found = os.stat(folder / "fd" / descriptor)
        except _GONE:
            continue
        yield found.st_dev, found.st_ino


def _mapped(folder: Path) -> Iterator[Identity]:
    with open(folder / "maps", "rb") as file:
        for line in file:
            fields = line.split(None, 5)
            if len(fields) > 5 and fields[4] != b"0":
                major, _, minor = fields[3].partition(b":")
                yield os.makedev(int(major, 16), int(minor, 16)), int(fields[4])
