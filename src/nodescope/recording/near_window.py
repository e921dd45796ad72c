"""The parts of an archive that a window needs, found without looking at the files of the others.

A view of five seconds of twelve hours reads one segment. Its cost must not grow with the
archive: only segments near the window are checked for missing and cut files, and those at
which the recording begins and ends, because the window is chosen by them.
"""

from __future__ import annotations

from collections.abc import Callable

from nodescope.archive.reader import Archive, Listing, Segment
from nodescope.errors import ArchiveError
from nodescope.recording.part import overlapping
from nodescope.recording.window import TimeExtent, Window


def find_near(
    archive: Archive,
    choose: Callable[[TimeExtent], Window],
    margin_ns: int,
    report: Callable[[ArchiveError], None],
) -> tuple[list[Segment], Window | None]:
    """Return the segments within a margin of the window that `choose` finds, and the window.

    Damaged segments are left out, and reported as they are met. The window is None if
    nothing is recorded.
    """
    listing = archive.described()
    for error in listing.damaged:
        report(error)
    while listing.segments:
        whole = listing.checked(_ends(listing))
        if whole is listing:
            window = choose(TimeExtent(listing.segments))
            near = _near(listing, window.widened(margin_ns))
            whole = listing.checked(near)
            if whole is listing:
                return near, window
        for error in whole.damaged[len(listing.damaged) :]:
            report(error)
        listing = whole
    return [], None


def _ends(listing: Listing) -> list[Segment]:
    """Return the sealed segments at which the recording begins and ends."""
    sealed = [segment for segment in listing.segments if not segment.is_open]
    if not sealed:
        return []
    first = min(sealed, key=lambda segment: segment.wall_from_ns)
    return [first, max(sealed, key=lambda segment: segment.wall_to_ns)]


def _near(listing: Listing, window: Window) -> list[Segment]:
    names = {part.name for part in overlapping(listing.segments, window)}
    return [segment for segment in listing.segments if segment.name in names]
