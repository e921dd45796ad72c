"""Keep the latest hours, up to a size, and whatever was frozen.

Oldest first means lowest sequence first. The age of a segment of the present
boot is measured on the monotonic clock, so that a wall clock that is set right
by years does not wipe the recording it interrupts.

What a person froze comes on top of the size and is never let go. What the recorder
froze by itself counts, and may take half of it: so there is always room for what is
being recorded, and without people's freezes the size holds. The newest segment is
never too much.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nodescope.archive.description import Description
from nodescope.archive.files import make_directory, read_json, replace_json, translated
from nodescope.archive.layout import FROZEN_DIRECTORY, read_archive_info
from nodescope.clock import ClockPair
from nodescope.errors import ArchiveError, UsageError
from nodescope.quantities import HOUR_NS

AUTOMATIC = "auto-"  # ids of ranges that the recorder froze by itself begin so
AUTOMATIC_SHARE = 0.5  # of the size, at most, for those
_ID = re.compile(r"[0-9a-zA-Z-]{1,64}")


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept."""

    age_ns: int = 12 * HOUR_NS
    size_bytes: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Frozen:
    """A wall-clock range that retention spares."""

    id: str
    from_ns: int
    to_ns: int
    reason: str
    created_ns: int

    @property
    def automatic(self) -> bool:
        """Return whether the recorder froze it, not a person."""
        return self.id.startswith(AUTOMATIC)

    def overlaps(self, from_ns: int, to_ns: int) -> bool:
        return from_ns <= self.to_ns and to_ns >= self.from_ns


@dataclass(frozen=True, slots=True)
class Sealed:
    """What retention has to know of a sealed segment."""

    name: str
    boot_id: str
    to_ns: int
    wall_from_ns: int
    wall_to_ns: int
    bytes: int
    rolled_up: bool = False  # so that it may be added to an hour

    @classmethod
    def of(cls, description: Description) -> Sealed:
        return cls(
            description.name,
            description.start.boot_id,
            description.to_ns,
            description.wall_from_ns,
            description.wall_to_ns,
            description.bytes,
            "paths" in description.tables,
        )


def is_frozen(segment: Sealed | Description, ranges: Iterable[Frozen]) -> bool:
    """Return whether one of the ranges keeps the segment."""
    return any(each.overlaps(segment.wall_from_ns, segment.wall_to_ns) for each in ranges)


def choose_thawed(
    segments: list[Sealed], retention: Retention, frozen: list[Frozen]
) -> list[Frozen]:
    """Which automatic ranges must go so that all of them keep no more than their share."""
    by_people = [each for each in frozen if not each.automatic]
    left = sorted((each for each in frozen if each.automatic), key=lambda each: each.created_ns)
    if not left:
        return []
    loose = [segment for segment in segments if not is_frozen(segment, by_people)]
    thawed: list[Frozen] = []
    most = AUTOMATIC_SHARE * retention.size_bytes
    while left and sum(each.bytes for each in loose if is_frozen(each, left)) > most:
        thawed.append(left.pop(0))
    return thawed


def choose_expired(
    segments: list[Sealed], retention: Retention, frozen: list[Frozen], now: ClockPair, boot_id: str
) -> list[Sealed]:
    """Which of `segments` (oldest first) must go now."""
    by_people = [each for each in frozen if not each.automatic]
    counted = [segment for segment in segments if not is_frozen(segment, by_people)]
    excess = sum(segment.bytes for segment in counted) - retention.size_bytes
    expired: list[Sealed] = []
    for segment in counted:
        if segment.boot_id == boot_id:
            age_ns = now.monotonic_ns - segment.to_ns
        else:
            age_ns = now.wall_ns - segment.wall_to_ns
        too_much = excess > 0 and segment is not segments[-1]
        if (age_ns <= retention.age_ns and not too_much) or is_frozen(segment, frozen):
            continue
        expired.append(segment)
        excess -= segment.bytes
    return expired


def freeze(root: Path, from_ns: int, to_ns: int, reason: str, created_ns: int) -> Frozen:
    """Keep what was or will be recorded in that range. Needs no recorder."""
    if from_ns > to_ns:
        raise UsageError(
            "the range to freeze ends before it starts",
            hint="--from is the earlier end, --to the later one",
        )
    read_archive_info(root)
    directory = root / FROZEN_DIRECTORY
    make_directory(directory)
    number = 1 + max(
        (int(known.id) for known in read_frozen(root) if known.id.isdecimal()), default=0
    )
    while True:
        frozen = Frozen(f"{number:04d}", from_ns, to_ns, reason, created_ns)
        if not (directory / f"{frozen.id}.json").exists():
            write_frozen(root, frozen)
            return frozen
        number += 1


def write_frozen(root: Path, frozen: Frozen) -> None:
    """Put a range in place under its own id, instead of what was there."""
    make_directory(root / FROZEN_DIRECTORY)
    content = {
        "from_ns": frozen.from_ns,
        "to_ns": frozen.to_ns,
        "reason": frozen.reason,
        "created_ns": frozen.created_ns,
    }
    replace_json(root / FROZEN_DIRECTORY / f"{frozen.id}.json", content)


def unfreeze(root: Path, frozen_id: str) -> None:
    """Let retention have that range again."""
    path = root / FROZEN_DIRECTORY / f"{frozen_id}.json"
    try:
        if not _ID.fullmatch(frozen_id):
            raise FileNotFoundError
        with translated(path):
            os.unlink(path)
    except (FileNotFoundError, ArchiveError) as error:
        known = ", ".join(frozen.id for frozen in read_frozen(root)) or "none"
        raise UsageError(f"nothing is frozen as {frozen_id!r}", hint=f"frozen: {known}") from error


def read_frozen(root: Path) -> list[Frozen]:
    """All frozen ranges, in the order of their ids.

    A file that does not make sense is an error: guessing could delete what
    somebody wanted to keep.
    """
    directory = root / FROZEN_DIRECTORY
    try:
        names = sorted(path.name for path in directory.iterdir())
    except FileNotFoundError:
        return []
    return [
        _read_one(directory / name)
        for name in names
        if name.endswith(".json") and _ID.fullmatch(name.removesuffix(".json"))
    ]


def _read_one(path: Path) -> Frozen:
    content = read_json(path)
    numbers = [content.get(name) for name in ("from_ns", "to_ns", "created_ns")]
    reason = content.get("reason")
    if not all(type(number) is int for number in numbers) or not isinstance(reason, str):
        raise ArchiveError(
            path,
            "does not say from when to when, and why",
            hint="delete it if nothing is to be kept for it",
        )
    start, end, created = (number for number in numbers if isinstance(number, int))
    return Frozen(path.stem, start, end, reason, created)
