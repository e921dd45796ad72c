"""The journal's files of one system, followed as they grow and are rotated.

Entries are chosen by values of fields (their `MESSAGE_ID`, or the unit that wrote them),
which the files list by themselves: whatever else is logged costs nothing. A file that is
damaged is left out and named in `damaged`; the others are still read.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceDenied, SourceError
from nodescope.sources.places import Places
from nodescope.sources.systemd.journal_file import Cursor, JournalEntry, JournalFile
from nodescope.sources.systemd.locations import journal_folders

_MAX_FILES = 256
_MAX_KINDS = 1024  # of one file; one unit per connection makes more: the first are followed
_MAX_CACHED = 2048
_MAX_CACHED_BYTES = 512
_LATE_US = 10_000_000  # journald may be behind the one who logs, but not by more


# Which values of which fields: a set of them, or what says of each.
Wanted = Mapping[str, Collection[str] | Callable[[str], bool]]
# How many entries of a value are read at once.
Most = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class JournalMessage:
    """One entry; the times are those of whoever logged it, where he said them."""

    time_us: int  # on the monotonic clock of its boot
    wall_us: int
    boot_id: str
    fields: dict[str, str]


@dataclass(slots=True)
class _Followed:
    file: JournalFile
    fields: dict[str, int] = field(default_factory=dict)  # the objects of those looked at
    heads: dict[str, int] = field(default_factory=dict)  # the newest value of each seen so far
    cursors: dict[str, Cursor] = field(default_factory=dict)
    cache: dict[int, bytes] = field(default_factory=dict)


def read_boot_id(proc: Path) -> str | None:
    """The boot that is running, as the journal writes it; None if not told."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip().replace("-", "") or None
    except OSError:
        return None


class Journal:
    """Follows the journal; `close` it in the end."""

    def __init__(self, folders: Collection[Path], boot_id: str | None, history: int) -> None:
        """Read the latest `history` entries of each kind, of that boot; None: of any."""
        self._folders = tuple(folders)
        self._boot_id = boot_id
        self._history: int | None = history
        self._booted_us = 0 if boot_id is None else _boot_wall_us()
        self._followed: dict[int, _Followed] = {}
        self._finished: set[int] = set()
        self._seen_ns: dict[Path, int] = {}
        self.damaged: dict[str, str] = {}
        self._look_for_files()
        if not self._followed:
            self._complain()

    @classmethod
    def open(cls, places: Places, history: int = 1000) -> Journal:
        """The journal of a system; of its running boot, if it is the one that runs here."""
        return cls(journal_folders(places), read_boot_id(places.proc), history)

    def _complain(self) -> None:
        hint = "--journal DIR names another folder"
        if not self._folders:
            raise SourceAbsent("journal", "where that systemd has its root is not known", hint=hint)
        for reason in self.damaged.values():
            raise SourceDenied(self._folders[0], f"no file of the journal can be read: {reason}")
        raise SourceAbsent(self._folders[0], "no journal here", hint=hint)

    def close(self) -> None:
        """Close every file."""
        for followed in self._followed.values():
            followed.file.close()
        self._followed = {}

    # -- files -------------------------------------------------------------

    def _look_for_files(self) -> None:
        """Open the files that are new since a folder last changed."""
        for folder in self._changed_folders():
            for path, inode in sorted(_files(folder)):
                if inode in self._followed or inode in self._finished:
                    continue
                if len(self._followed) >= _MAX_FILES:
                    return
                try:
                    self._followed[inode] = _Followed(JournalFile(path))
                except SourceError as error:
                    self._set_aside(inode, path, error)

    def _changed_folders(self) -> Iterator[Path]:
        for top in self._folders:
            for folder in (top, *_subfolders(top)):
                try:
                    changed = os.stat(folder).st_mtime_ns
                except OSError:
                    continue
                if self._seen_ns.get(folder) != changed:
                    self._seen_ns[folder] = changed
                    yield folder

    def _set_aside(self, inode: int, path: Path, error: SourceError) -> None:
        self._finished.add(inode)
        self.damaged[str(path)] = error.reason
        followed = self._followed.pop(inode, None)
        if followed is not None:
            followed.file.close()

    # -- entries -----------------------------------------------------------

    def take_new(self, wanted: Wanted, most: Most | None = None) -> list[JournalMessage]:
        """The entries of the wanted kinds since the last call, in order.

        A kind is a field with its value. Of each at most the latest `most`, by its value: of
        who logs more the rest is passed over.
        """
        messages: list[JournalMessage] = []
        history = self._history
        left = None if history is None else defaultdict[str, int](lambda: history)
        for inode, followed in self._latest_first():
            messages += self._take(inode, followed, wanted, left, most)
        known = len(self._followed)
        self._look_for_files()
        if len(self._followed) != known:  # rotated: what came into the new file belongs here
            for inode, followed in self._latest_first():
                messages += self._take(inode, followed, wanted, None, most)
        self._history = None
        messages.sort(key=lambda each: (each.wall_us, each.time_us))
        return messages

    def _latest_first(self) -> list[tuple[int, _Followed]]:
        """So that history is taken from where it is freshest."""
        return sorted(
            self._followed.items(), key=lambda each: -each[1].file.header.head_realtime_us
        )

    def _take(
        self,
        inode: int,
        followed: _Followed,
        wanted: Wanted,
        left: dict[str, int] | None,
        most: Most | None,
    ) -> list[JournalMessage]:
        """New entries of one file; of history, only so many of each kind as are `left`."""
        messages: list[JournalMessage] = []
        try:
            header = followed.file.read_header()
            if header.archived and header.tail_realtime_us < self._booted_us:
                self._finish(inode)
                return []
            self._find_values(followed, wanted)
            for name, cursor in followed.cursors.items():
                if left is not None:
                    followed.file.skip_to(cursor, left[name])
                if most is not None:
                    followed.file.skip_to(cursor, most(name.partition("=")[2]))
                while offsets := followed.file.take_new(cursor):
                    messages += self._read(followed, offsets)
                    if left is not None:
                        left[name] = max(0, left[name] - len(offsets))
        except SourceError as error:
            self._set_aside(inode, followed.file.path, error)
            return messages
        if header.archived:
            self._finish(inode)
        return messages

    def _finish(self, inode: int) -> None:
        """A file to which nothing will be added was read."""
        self._finished.add(inode)
        self._followed.pop(inode).file.close()

    def _find_values(self, followed: _Followed, wanted: Wanted) -> None:
        """Notice kinds that the file has only now."""
        for name, values in wanted.items():
            known = followed.fields.get(name) or followed.file.find_field(name.encode())
            if known is None:
                continue
            followed.fields[name] = known
            head, before = followed.file.head_of(known), followed.heads.get(name, 0)
            if head == before:
                continue
            chosen = values if callable(values) else values.__contains__
            for offset, raw in followed.file.values_of(known, before):
                kind = raw.decode("utf-8", "replace")
                if len(followed.cursors) < _MAX_KINDS and chosen(kind.partition("=")[2]):
                    followed.cursors.setdefault(kind, Cursor(offset))
            followed.heads[name] = head

    def _read(self, followed: _Followed, offsets: list[int]) -> list[JournalMessage]:
        entries = (followed.file.read_entry(offset) for offset in offsets)
        return [
            _message(entry, self._fields(followed, entry))
            for entry in entries
            if self._boot_id is None or entry.boot_id.hex() == self._boot_id
        ]

    def _fields(self, followed: _Followed, entry: JournalEntry) -> dict[str, str]:
        fields: dict[str, str] = {}
        for item in entry.items:
            raw = followed.cache.get(item)
            if raw is None:
                raw = followed.file.read_data(item)
                if len(raw) <= _MAX_CACHED_BYTES:
                    if len(followed.cache) >= _MAX_CACHED:
                        followed.cache.clear()
                    followed.cache[item] = raw
            name, _, value = raw.partition(b"=")
            fields[name.decode("ascii", "replace")] = value.decode("utf-8", "replace")
        return fields

    def read_lines(self, unit: str, limit: int) -> list[JournalMessage]:
        """The latest entries that processes of a unit wrote, in order."""
        wanted = f"_SYSTEMD_UNIT={unit}".encode()
        messages: list[JournalMessage] = []
        for inode, followed in list(self._followed.items()):
            try:
                name = followed.file.find_field(b"_SYSTEMD_UNIT")
                if name is None:
                    continue
                for offset, raw in followed.file.values_of(name):
                    if raw == wanted:
                        cursor = Cursor(offset)
                        followed.file.skip_to(cursor, limit)
                        messages += self._read(followed, followed.file.take_new(cursor, limit))
                        break
            except SourceError as error:
                self._set_aside(inode, followed.file.path, error)
        messages.sort(key=lambda each: (each.wall_us, each.time_us))
        return messages[-limit:]


def _boot_wall_us() -> int:
    """When this machine was booted, on the wall clock, and an hour before: it may be set."""
    wall = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return wall // 1000 - 3_600_000_000


def _message(entry: JournalEntry, fields: dict[str, str]) -> JournalMessage:
    """With the time of whoever logged it: journald itself may come to it later."""
    said = fields.get("_SOURCE_REALTIME_TIMESTAMP", "")
    late = entry.realtime_us - int(said) if said.isascii() and said.isdigit() else 0
    if not 0 <= late < _LATE_US:
        late = 0
    return JournalMessage(
        entry.monotonic_us - late, entry.realtime_us - late, entry.boot_id.hex(), fields
    )


def _subfolders(folder: Path) -> list[Path]:
    """The folders below, one per machine."""
    try:
        with os.scandir(folder) as entries:
            return [Path(each.path) for each in entries if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _files(folder: Path) -> list[tuple[Path, int]]:
    """Files of the system's journal; those of users are not about units of the system."""
    try:
        with os.scandir(folder) as entries:
            return [
                (Path(each.path), each.inode())
                for each in entries
                if each.name.endswith((".journal", ".journal~"))
                and not each.name.startswith("user-")
            ]
    except OSError:
        return []
