"""The writer's hold on hours: adds up those that are over, and removes those that lose a segment.

At most one hour is added up after a segment is sealed, so that an archive without hours gets
them one by one, and none takes the recorder long.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import groupby
from pathlib import Path

from nodescope.archive.description_file import read_description
from nodescope.archive.files import remove_directory, sweep
from nodescope.archive.hours import FEWEST, Hour, hour_of, read_hours, write_hour
from nodescope.archive.layout import HOURS_DIRECTORY, SEALED_DIRECTORY, list_segment_names
from nodescope.archive.memory import give_memory_back
from nodescope.archive.retention import Sealed
from nodescope.errors import ArchiveError, CorruptSegment, NewerFormat


class HourKeeper:
    """The hours of an archive that is written to."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._hours: list[Hour] = []
        self._passed: set[str] = set()  # segments that are in an hour, or in none for good

    @property
    def bytes(self) -> int:
        """Return the bytes that all hours take on disk."""
        return sum(hour.bytes for hour in self._hours)

    def recover(self, sealed: Set[str]) -> None:
        """Find the hours there are; remove what a crash left, and what lost a segment."""
        folder = self._root / HOURS_DIRECTORY
        if not folder.is_dir():
            return
        sweep(folder)
        self._hours = read_hours(self._root)
        known = {hour.directory.name for hour in self._hours}
        for name in list_segment_names(folder):
            if name not in known:  # an hour that cannot be read is in the way of a new one
                remove_directory(folder / name)
        for hour in self._hours[:]:
            if not hour.is_whole or not set(hour.members) <= sealed:
                self._remove(hour)
            else:
                self._passed.update(hour.members)

    def add_up(self, sealed: Sequence[Sealed]) -> None:
        """Add up the oldest hour that is over and was not, if there is one."""
        # The newest segment's hour may go on.
        over = [each for each in sealed if each.rolled_up and each.name not in self._passed]
        hours = groupby(over, lambda each: hour_of(each.wall_from_ns))
        last = hour_of(sealed[-1].wall_from_ns) if sealed else None
        for number, group in hours:
            names = [each.name for each in group]
            if number == last or len(names) < FEWEST:
                continue
            self._passed.update(names)
            self._add_up(names)
            give_memory_back()
            return

    def _add_up(self, names: Sequence[str]) -> None:
        from nodescope.archive.reader import Segment

        folders = [self._root / SEALED_DIRECTORY / name for name in names]
        try:
            hour = write_hour(
                self._root, [Segment(folder, read_description(folder)) for folder in folders]
            )
        except (ArchiveError, CorruptSegment, NewerFormat):
            return  # readers take the segments, and report what is damaged
        if hour is not None:
            self._hours.append(hour)

    def let_go(self, names: Set[str]) -> None:
        """Remove the hours of segments that are about to be removed."""
        for hour in self._hours[:]:
            if not names.isdisjoint(hour.members):
                self._remove(hour)

    def _remove(self, hour: Hour) -> None:
        remove_directory(hour.directory)
        self._hours.remove(hour)
