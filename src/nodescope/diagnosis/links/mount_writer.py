"""Who fills a file system: a cgroup that writes while it fills, and not at other times.

Nothing recorded says to which mount a process writes. One cgroup that has most of the writes
of the node while the file system filled, and hardly any before and after, is tied to it by
the time alone, and the link is as weak as that. Where none is, nobody is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup
from nodescope.diagnosis.story import Story
from nodescope.quantities import MINUTE_NS, SECOND_NS, format_duration
from nodescope.recording.window import Window
from nodescope.records.view import View, around
from nodescope.records.witness_tables import LimitRow

NOBODYS = ("", "/")  # cgroups of which no one in particular is the owner
BY_TIME = 1.5  # nats: only the time ties the writer to the mount
AROUND_NS = 5 * MINUTE_NS  # before and after the filling, to compare with
EDGE_NS = 2 * SECOND_NS  # readings are apart, and a writer meets the full disk a moment longer
LEAST_OUTSIDE_NS = 5 * SECOND_NS
FEWEST_SAMPLES = 10
LEAST_SHARE = 0.5
MORE_OFTEN = 4.0  # times as often while it fills as at other times
NOTICEABLE = 0.02  # of the size, between two readings: it fills
WRITES = frozenset(["vfs_write", "do_iter_write", "vfs_fallocate", "vfs_iter_write"])


def add_writer(
    case: Case, story: Story, symptom: Symptom, readings: Sequence[LimitRow]
) -> Root | None:
    """Add who wrote only while a file system filled; None if nobody stands out so."""
    span = _find_filling(readings)
    if span is None:
        return None
    inside = case.cgroups_inside(span, WRITES)
    total = inside.total()
    path, most = inside.most_common(1)[0] if inside else ("", 0)
    if path in NOBODYS or total < FEWEST_SAMPLES or most < LEAST_SHARE * total:
        return None
    outside, outside_ns = _count_outside(case, span, path)
    if outside_ns < LEAST_OUTSIDE_NS or (most / span.length_ns < MORE_OFTEN * outside / outside_ns):
        return None
    root = owner_of_cgroup(case, path, symptom.time_ns)
    story.links.append(
        Link(
            "owner", root.name,
            f"{most / total:.0%} of the {total:,} samples that write, in the "
            f"{format_duration(span.length_ns)} in which it filled, are of {root.kind} {root.name} "
            f"({path}), which has {outside:,} in the {format_duration(outside_ns)} around it; "
            "to which file system it writes was not recorded, so only the time ties them", BY_TIME,
            View("top", around(symptom.time_ns, 300), by="cgroup"),
            "a writer that is seldom seen on a core",
        )
    )  # fmt: skip
    return root


def _find_filling(readings: Sequence[LimitRow]) -> Window | None:
    """Return from when to when a file system filled, by its readings; None if not seen."""
    rises = [
        (before.time_ns, after.time_ns)
        for before, after in pairwise(readings)
        if before.used is not None and after.used is not None and after.most
        and after.used - before.used >= NOTICEABLE * after.most
    ]  # fmt: skip
    return Window(rises[0][0], rises[-1][1]) if rises else None


def _count_outside(case: Case, span: Window, path: str) -> tuple[int, int]:
    """Return how often a cgroup was seen writing around a span, and in how much time."""
    before = Window(span.from_ns - AROUND_NS, span.from_ns - EDGE_NS)
    after = Window(span.to_ns + EDGE_NS, span.to_ns + AROUND_NS)
    seen = sum(case.cgroups_inside(each, WRITES)[path] for each in (before, after))
    return seen, sum(case.sampled_ns(each) for each in (before, after))
