"""Cgroups that came and went before a moment, by parent and pattern of name: which of them stay.

From the table `cgroup_churn`. What the kernel had not released 15 s after its removal
counts as staying; of what was removed later nothing is known yet. Without tracepoints
nobody hears of releases, and nothing is known of any.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.node import CgroupChurnRow
from nodescope.sources.cgroups.churn_ledger import GRACE_NS

TOLD_NS = 10 * SECOND_NS  # the recorder tells of them so often
SETTLED_NS = GRACE_NS + TOLD_NS


@dataclass(frozen=True, slots=True)
class Churn:
    """Cgroups of one pattern of name under one parent, in the hour before."""

    parent: str
    pattern: str
    made: int
    removed: int
    settled: int  # of those removed, the ones of which it is known by now whether they stay
    unreleased: int | None  # all that stay, also of the time before; None: nobody could tell
    maker: str | None
    maker_pid: int | None

    @property
    def stayed(self) -> int:
        """How many of those that were removed in that time stay."""
        return min(self.settled, self.unreleased or 0)

    @property
    def clean(self) -> bool:
        """Whether all were released, as far as time has told."""
        return self.unreleased == 0 and self.settled > 0


def read_churn(case: Case, at_ns: int) -> list[Churn]:
    """What came and went in the hour before a moment; what leaves most behind first."""
    window = Window(at_ns - LOOKBACK_NS, at_ns + SECOND_NS)
    grouped: defaultdict[tuple[str, str], list[CgroupChurnRow]] = defaultdict(list)
    for row in case.rows(CgroupChurnRow, window):
        grouped[row.parent, row.pattern].append(row)
    found = [_add_up(*key, rows, at_ns) for key, rows in grouped.items()]
    return sorted(found, key=_weight)


def _weight(churn: Churn) -> tuple[int, int, str, str]:
    """By what stays; where nothing is known to, by what is made."""
    return -(churn.unreleased or 0), -churn.made, churn.parent, churn.pattern


def _add_up(parent: str, pattern: str, rows: Iterable[CgroupChurnRow], at_ns: int) -> Churn:
    made = removed = settled = 0
    made_by: defaultdict[str | None, int] = defaultdict(int)
    unreleased: dict[str | None, int] = {}  # now, by maker: it is a running count
    pids: dict[str | None, int | None] = {}
    for row in rows:
        made += row.made
        removed += row.removed
        settled += row.removed if row.time_ns <= at_ns - SETTLED_NS else 0
        made_by[row.maker] += row.made
        pids[row.maker] = row.maker_pid or pids.get(row.maker)
        if row.unreleased is not None:
            unreleased[row.maker] = row.unreleased
    maker = max(
        made_by, key=lambda each: (unreleased.get(each, 0), each is not None, made_by[each])
    )
    total = sum(unreleased.values()) if unreleased else None
    return Churn(parent, pattern, made, removed, settled, total, maker, pids[maker])


def lies_in(path: str, place: str) -> bool:
    """Whether a cgroup is another one or lies below it; everything lies in the root."""
    above = place.rstrip("/")
    return path.rstrip("/") == above or path.startswith(f"{above}/")
