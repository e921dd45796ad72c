"""Who fills a file system: whose files on it, open for writing, grew as it did.

The recorder looks at open files while a file system fills (`written_files`). Two looks show
which files grew between them. One look alone shows only who has large files there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.diagnosis.finding import Link, Root, Symptom
from nodescope.diagnosis.links.whose_cgroup import owner_of_cgroup
from nodescope.diagnosis.story import Story
from nodescope.quantities import SECOND_NS, format_bytes, format_duration
from nodescope.recording.window import Window
from nodescope.records.view import View, around
from nodescope.records.witness_tables import LimitRow, WrittenFileRow

LEAST_SHARE = 0.5  # of the growth: with less, others matter as much


def add_open_files(
    case: Case, story: Story, symptom: Symptom, readings: Sequence[LimitRow]
) -> Root | None:
    """Add whose open files grew while a file system filled; None if nobody stands out so."""
    looks = _read_looks(case, symptom)
    if not looks:
        return None
    last_ns = max(looks)
    first_ns = min(looks)
    grown = _grown(looks[first_ns] if first_ns < last_ns else [], looks[last_ns])
    by_owner: Counter[str] = Counter()
    for row, size in grown:
        by_owner[row.cgroup or ""] += size
    path, most = by_owner.most_common(1)[0] if by_owner else ("", 0)
    total = max(_used_more(readings, first_ns, last_ns), by_owner.total())
    if not path or most <= LEAST_SHARE * total:
        return None
    mine = [(size, row) for row, size in grown if row.cgroup == path]
    size, row = max(mine, key=lambda each: each[0])
    root = owner_of_cgroup(case, path, symptom.time_ns)
    if root.name == "/":
        root = Root("process", row.comm)
    share = most / max(1, total)
    of_all = f"its files have {share:.0%} of what the file system grew by"
    story.links.append(
        Link(
            "owner", root.name,
            f"{row.comm} ({row.pid}) of {root.kind} {root.name} has {_file(row)} open for writing, "
            f"{_growth(size, last_ns - first_ns)}; {of_all}",
            2.0 + 2.5 * share if first_ns < last_ns else 1.0 + 1.5 * share,
            View("table", around(last_ns, 900), table="written_files",
                 where=(("mount", symptom.subject),)),
            "another file there that grew as much",
        )
    )  # fmt: skip
    return root


def _read_looks(case: Case, symptom: Symptom) -> dict[int, list[WrittenFileRow]]:
    """Return the files that were open on the file system, by the time of the look."""
    before = Window(symptom.time_ns - LOOKBACK_NS, symptom.time_ns + SECOND_NS)
    looks: defaultdict[int, list[WrittenFileRow]] = defaultdict(list)
    for row in case.rows(WrittenFileRow, before, ("mount", symptom.subject)):
        looks[row.time_ns].append(row)
    return looks


def _grown(
    first: Sequence[WrittenFileRow], last: Sequence[WrittenFileRow]
) -> list[tuple[WrittenFileRow, int]]:
    """Return each file of the last look once, with how much it grew since the first."""
    before = {row.inode: row.size_bytes or 0 for row in first}
    once = {row.inode: row for row in last}
    sizes = ((row, (row.size_bytes or 0) - before.get(row.inode, 0)) for row in once.values())
    return [(row, size) for row, size in sizes if size > 0]


def _used_more(readings: Sequence[LimitRow], first_ns: int, last_ns: int) -> int:
    """Return how much more of the file system was used at the last look than at the first.

    Of one look alone: than at the lowest reading before it.
    """
    known = [(row.time_ns, row.used) for row in readings if row.used is not None]
    until = [used for time_ns, used in known if time_ns <= last_ns]
    since = [used for time_ns, used in known if time_ns <= first_ns]
    if not until or not since:
        return 0
    return max(0, until[-1] - (since[-1] if first_ns < last_ns else min(until)))


def _file(row: WrittenFileRow) -> str:
    deleted = ", which was deleted," if row.deleted else ""
    return f"{row.path or f'file {row.inode}'}{deleted}"


def _growth(size: int, over_ns: int) -> str:
    if over_ns:
        return f"which grew by {format_bytes(size)} in {format_duration(over_ns)}"
    return f"with {format_bytes(size)}, seen once as the file system filled"


def describe_unknown_writer(case: Case, symptom: Symptom) -> str:
    """Return why nobody is named who fills a file system."""
    if _read_looks(case, symptom):
        return "none of the files that were seen open for writing there grew as it did"
    return "who fills it was not recorded"
