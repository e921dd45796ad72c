"""The write side: what the recorder appends, flushes and seals.

The caller numbers the rows of `frames`, `calls` and `profile` itself, from 0
in each segment; `rows` says how many the present segment has so far. When the
device is full, nothing that was appended is forgotten: it stays pending, and
the same `flush` or `seal_segment` may be called again once `has_room` says so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from nodescope.archive.description import Description, Start
from nodescope.archive.description_file import read_description, start_to_json
from nodescope.archive.files import (
    create_segment,
    make_directory,
    remove_directory,
    sweep,
    translated,
)
from nodescope.archive.hour_keeper import HourKeeper
from nodescope.archive.layout import (
    FROZEN_DIRECTORY,
    OPEN_DIRECTORY,
    ROOM_BYTES,
    SEALED_DIRECTORY,
    create_archive,
    list_segment_names,
    name_segment,
    parse_sequence,
)
from nodescope.archive.lock import acquire_lock
from nodescope.archive.retention import (
    Frozen,
    Retention,
    Sealed,
    choose_expired,
    choose_thawed,
    is_frozen,
    read_frozen,
    unfreeze,
)
from nodescope.archive.schema import ColumnData, make_batch
from nodescope.archive.seal import seal
from nodescope.archive.streams import OpenStreams
from nodescope.clock import Clock, read_pair
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat, UsageError
from nodescope.quantities import SECOND_NS
from nodescope.records import OPEN_TABLES

DEFAULT_RETENTION = Retention()


class ArchiveWriter:
    """The recorder's hold on an archive. Make one with `open`."""

    def __init__(
        self, root: Path, lock: int, clock: Clock, boot_id: str, tick_ns: int, retention: Retention
    ) -> None:
        self.root = root
        self.retention = retention
        self.recovered: list[Description] = []
        self.unrecoverable: list[CorruptSegment] = []
        self.frozen_bytes = 0  # of sealed segments that retention spares
        self._thawed: list[Frozen] = []
        self._lock: int | None = lock
        self._clock = clock
        self._boot_id = boot_id
        self._tick_ns = tick_ns
        self._run_ns = clock.monotonic_ns()
        self._first_of_run = True
        self._streams: OpenStreams | None = None
        self._pending: dict[str, list[Any]] = {}
        self._rows = dict.fromkeys(OPEN_TABLES, 0)
        self._sealed: list[Sealed] = []
        self._hours = HourKeeper(root)
        self._sequence = 0

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        node: Mapping[str, object],
        clock: Clock,
        tick_ns: int,
        retention: Retention = DEFAULT_RETENTION,
    ) -> ArchiveWriter:
        """Create or continue an archive, lock it, and seal what a crash left open.

        `node["boot_id"]`, if there, tells the boots of the machine apart.
        """
        if not 1 <= tick_ns <= SECOND_NS:
            raise UsageError(f"a tick of {tick_ns} ns")
        root = Path(path)
        make_directory(root, parents=True)
        lock = acquire_lock(root)
        try:
            create_archive(root, clock.wall_ns(), dict(node), retention.size_bytes)
            boot_id = str(node.get("boot_id", ""))
            writer = cls(root, lock, clock, boot_id, tick_ns, retention)
            writer._recover()
        except BaseException:
            os.close(lock)
            raise
        return writer

    def _recover(self) -> None:
        for name in (OPEN_DIRECTORY, SEALED_DIRECTORY, FROZEN_DIRECTORY):
            make_directory(self.root / name)
            sweep(self.root / name)
        sealed = self.root / SEALED_DIRECTORY
        opened = self.root / OPEN_DIRECTORY
        left_open, names = list_segment_names(opened), list_segment_names(sealed)
        self._sequence = max((parse_sequence(name) or 0 for name in left_open + names), default=0)
        for name in left_open:
            try:
                description = seal(opened / name, self.root)
            except CorruptSegment as error:
                # Its segment.json is gone, so nothing places it in time. It
                # stays for a person to look at, and is reported.
                self.unrecoverable.append(error)
            else:
                if description is not None:
                    self.recovered.append(description)
        for name in list_segment_names(sealed):
            try:
                self._sealed.append(Sealed.of(read_description(sealed / name)))
            except (CorruptSegment, NewerFormat):
                continue  # not ours to delete: readers report it
        self._hours.recover({each.name for each in self._sealed})
        self.apply_retention()

    @property
    def rows(self) -> Mapping[str, int]:
        """Rows per table in the present segment, appended ones included."""
        return self._rows

    @property
    def recorded_to_ns(self) -> int | None:
        """Monotonic time at which what is sealed ends; None if it is of another boot."""
        last = self._sealed[-1] if self._sealed else None
        return last.to_ns if last is not None and last.boot_id == self._boot_id else None

    @property
    def open_bytes(self) -> int:
        """Return the bytes of the open segment on disk."""
        return self._streams.bytes if self._streams else 0

    @property
    def open_directory(self) -> Path | None:
        """Where the open segment lies; None before its first flush."""
        return self._streams.directory if self._streams else None

    def append(self, table: str, columns: ColumnData) -> None:
        """Add rows to a table of the present segment; `flush` writes them."""
        if table not in OPEN_TABLES:
            raise UsageError(f"{table} is not a table that is recorded")
        batch = make_batch(table, columns)
        if len(batch):
            self._pending.setdefault(table, []).append(batch)
            self._rows[table] += len(batch)

    def flush(self) -> int:
        """Put what was appended on disk, all or nothing; returns bytes written."""
        if not self._pending:
            return 0
        if self._streams is None:
            self._streams = self._open_segment()
        written = self._streams.write(self._pending)
        self._pending.clear()
        return written

    def _open_segment(self) -> OpenStreams:
        pair = read_pair(self._clock)
        name = name_segment(self._sequence + 1, pair.wall_ns)
        directory = self.root / OPEN_DIRECTORY / name
        start = Start(
            name,
            self._boot_id,
            self._run_ns,
            self._first_of_run,
            self._tick_ns,
            pair.monotonic_ns,
            pair.wall_ns,
        )
        create_segment(directory, start_to_json(start))
        self._sequence += 1
        self._first_of_run = False
        return OpenStreams(directory)

    def seal_segment(self) -> Description | None:
        """Flush, seal the present segment, and let retention have its due.

        The next segment opens with the next flush. None if nothing was recorded.
        """
        self.flush()
        if self._streams is None:
            return None
        if not self._streams.directory.is_dir():
            raise ArchiveError(
                self.root,
                "its open segment was removed while it was recorded",
                hint="start the recorder again; retention and `freeze` decide what is kept",
            )
        description = seal(self._streams.directory, self.root)
        self._streams.close()
        self._streams = None
        self._rows = dict.fromkeys(OPEN_TABLES, 0)
        if description is not None:
            self._sealed.append(Sealed.of(description))
        self.apply_retention()
        self._hours.add_up(self._sealed)
        return description

    def apply_retention(self) -> list[str]:
        """Remove what is too old or too much; returns the names of what went."""
        try:
            frozen = read_frozen(self.root)
        except ArchiveError:
            return []  # better too much than what somebody wanted to keep
        for each in choose_thawed(self._sealed, self.retention, frozen):
            # A range that cannot be let go stays, and with it what it keeps.
            with contextlib.suppress(UsageError):
                unfreeze(self.root, each.id)
                frozen.remove(each)
                self._thawed.append(each)
        now = read_pair(self._clock, tries=1)
        size = max(0, self.retention.size_bytes - self._hours.bytes)
        retention = replace(self.retention, size_bytes=size)
        expired = choose_expired(self._sealed, retention, frozen, now, self._boot_id)
        self._hours.let_go({segment.name for segment in expired})
        for segment in expired:
            remove_directory(self.root / SEALED_DIRECTORY / segment.name)
            self._sealed.remove(segment)
        self.frozen_bytes = sum(each.bytes for each in self._sealed if is_frozen(each, frozen))
        return [segment.name for segment in expired]

    def take_thawed(self) -> list[Frozen]:
        """The automatic ranges that retention let go since the last call."""
        thawed, self._thawed = self._thawed, []
        return thawed

    def has_room(self) -> bool:
        """Return whether the device has room for what is pending and to go on for a while."""
        with translated(self.root):
            status = os.statvfs(self.root)
        batches = (batch for pending in self._pending.values() for batch in pending)
        needed: int = ROOM_BYTES + 2 * sum(batch.nbytes for batch in batches)
        return status.f_bavail * status.f_frsize >= needed

    def close(self) -> None:
        """Seal the rest and let go of the archive, even if sealing fails."""
        if self._lock is None:
            return
        try:
            self.seal_segment()
        finally:
            if self._streams is not None:
                self._streams.close()
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
