"""Summarise an archive from its segments' descriptions and one small table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from nodescope.archive.description import Description, TableExtent
from nodescope.archive.gaps import find_gaps
from nodescope.archive.layout import ARCHIVE_FILE
from nodescope.archive.lock import Holder, find_holder
from nodescope.archive.reader import Archive, Segment
from nodescope.archive.retention import Frozen, is_frozen, read_frozen
from nodescope.archive.source_costs import SourceCost, read_source_costs
from nodescope.errors import ArchiveError
from nodescope.records.recorder_tables import Gap


@dataclass(frozen=True, slots=True)
class RecorderSummary:
    """The cost of recording. A ratio is of one core."""

    cpu_ratio: float | None
    cpu_ns: int | None
    rss_bytes: int | None
    rss_max_bytes: int | None
    late_max_ns: int | None
    frequency_hz: int | None


@dataclass(frozen=True, slots=True)
class Summary:
    """An archive in brief. `from_ns` and `to_ns` are wall times; None if it is empty."""

    node: dict[str, object]
    created_ns: int
    format: int
    from_ns: int | None
    to_ns: int | None
    samples: int
    lost: int
    folded: int | None  # samples whose stack lacks its middle; None if not known
    bytes: int
    bytes_per_sample: float | None
    segments: int
    gaps: tuple[Gap, ...]
    recorder: RecorderSummary
    tables: dict[str, TableExtent]
    sources: tuple[SourceCost, ...]
    frozen: tuple[Frozen, ...]
    frozen_bytes: int  # of segments that retention spares
    retention_bytes: int | None  # to which size the rest is kept; None if not known
    damaged: tuple[ArchiveError, ...]
    recording: Holder | None
    imported: bool  # all of it: no recorder wrote what it cost
    free_bytes: int | None  # on the device of the archive; None of a bundle


def summarise(archive: Archive) -> Summary:
    """Summarise an archive; cheap enough to call every second."""
    listing = archive.listing()
    damaged = list(listing.damaged)
    descriptions = [segment.description for segment in listing.segments]
    samples = sum(description.samples for description in descriptions)
    size = _size(archive, listing.segments)
    frozen: tuple[Frozen, ...] = ()
    try:
        if archive.bundle is None:  # nothing in a bundle needs keeping from retention
            frozen = tuple(read_frozen(archive.root))
    except ArchiveError as error:
        damaged.append(error)
    return Summary(
        node=archive.info.node,
        created_ns=archive.info.created_ns,
        format=archive.info.format,
        from_ns=min((each.wall_from_ns for each in descriptions), default=None),
        to_ns=max((each.wall_to_ns for each in descriptions), default=None),
        samples=samples,
        lost=_lost(descriptions),
        folded=_sum_known(description.folded for description in descriptions),
        bytes=size,
        bytes_per_sample=size / samples if samples else None,
        segments=len(descriptions),
        gaps=tuple(find_gaps(listing.segments)),
        recorder=summarise_cost(descriptions),
        tables=_tables(descriptions),
        sources=tuple(read_source_costs(listing.segments)),
        frozen=frozen,
        frozen_bytes=sum(each.bytes for each in descriptions if is_frozen(each, frozen)),
        retention_bytes=archive.info.retention_bytes,
        damaged=tuple(damaged),
        recording=find_holder(archive.root) if archive.bundle is None else None,
        imported=any(each.cost is not None and not each.cost.is_recorders for each in descriptions),
        free_bytes=_free_bytes(archive),
    )


def _free_bytes(archive: Archive) -> int | None:
    if archive.bundle is not None:
        return None
    status = os.statvfs(archive.root)
    return status.f_bavail * status.f_frsize


def _size(archive: Archive, segments: Iterable[Segment]) -> int:
    """Every byte of the archive: tables, descriptions, and its own file."""
    own = archive.root if archive.bundle is not None else archive.root / ARCHIVE_FILE
    try:
        size = os.stat(own).st_size
    except FileNotFoundError:
        size = 0
    if archive.bundle is not None:
        return size
    return size + sum(each.description.bytes + each.description_bytes for each in segments)


def _lost(descriptions: list[Description]) -> int:
    total = sum(description.lost for description in descriptions)
    for before, after in pairwise(descriptions):
        if before.run == after.run and before.cost and after.cost:
            total += (after.cost.lost_first or 0) - (before.cost.lost_last or 0)
    return total


def summarise_cost(descriptions: list[Description]) -> RecorderSummary:
    """CPU over time between heartbeats of the same run; memory and lateness at worst.

    Nobody recorded what an import cost: that is None, and not 0.
    """
    costs = [each.cost for each in descriptions if each.cost is not None]
    used, elapsed = _cpu_time(descriptions)
    return RecorderSummary(
        cpu_ratio=used / elapsed if used is not None and elapsed > 0 else None,
        cpu_ns=used,
        rss_bytes=_last(cost.rss_last_bytes for cost in costs),
        rss_max_bytes=max(_known(cost.rss_max_bytes for cost in costs), default=None),
        late_max_ns=max(_known(cost.late_max_ns for cost in costs), default=None),
        frequency_hz=_last(cost.frequency_hz for cost in costs),
    )


def _cpu_time(descriptions: list[Description]) -> tuple[int | None, int]:
    """Return the CPU time that recorders used, None if not known, and over which time."""
    used: int | None = None
    elapsed = 0
    before: Description | None = None
    last_cpu_ns = last_ns = 0
    for each in descriptions:
        cost = each.cost
        if cost is None or cost.cpu_first_ns is None or cost.cpu_last_ns is None:
            continue
        joins = before is not None and before.run == each.run
        used = (used or 0) + cost.cpu_last_ns - (last_cpu_ns if joins else cost.cpu_first_ns)
        elapsed += cost.time_last_ns - (last_ns if joins else cost.time_first_ns)
        before, last_cpu_ns, last_ns = each, cost.cpu_last_ns, cost.time_last_ns
    return used, elapsed


def _sum_known(values: Iterable[int | None]) -> int | None:
    known = _known(values)
    return sum(known) if known else None


def _known(values: Iterable[int | None]) -> list[int]:
    return [each for each in values if each is not None]


def _last(values: Iterable[int | None]) -> int | None:
    known = _known(values)
    return known[-1] if known else None


def _tables(descriptions: list[Description]) -> dict[str, TableExtent]:
    totals: dict[str, TableExtent] = {}
    for description in descriptions:
        for name, extent in description.tables.items():
            total = totals.get(name, TableExtent(0, 0))
            totals[name] = TableExtent(total.rows + extent.rows, total.bytes + extent.bytes)
    return totals
