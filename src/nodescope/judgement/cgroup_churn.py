"""Who leaves zombies behind: cgroups that came and went, by parent, name and maker.

One sum for live events (`churn_ledger` makes it of them) and for recorded rows of
`cgroup_churn`. What the kernel had not released `GRACE_NS` after its removal counts as left
behind; of what was removed later nothing is known yet. Without tracepoints nobody hears of
releases, and nothing is known of any.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nodescope.quantities import SECOND_NS
from nodescope.records.node_tables import CgroupChurnRow

if TYPE_CHECKING:
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import Window
    from nodescope.sources.cgroups.watch import Heard

GRACE_NS = 15 * SECOND_NS  # hundreds of times what a release takes, on a busy node too
REPORTED_NS = 10 * SECOND_NS  # the recorder writes a row so often
SETTLED_NS = GRACE_NS + REPORTED_NS  # after that a row knows what became of what was removed


@dataclass(frozen=True, slots=True)
class Churn:
    """Cgroups of one parent, pattern of name, maker and maker's cgroup in some time."""

    parent: str
    pattern: str
    maker: str | None = None  # comm of who makes them; None: not known
    made: int = 0
    removed: int = 0
    released: int = 0
    attached: int = 0
    settled: int = 0  # of those removed, the ones of which it is known by now whether they stay
    unreleased: int | None = None  # all that stay, also of the time before; None: not known
    maker_pid: int | None = None  # the process that makes them, if it is one and the same
    pids: frozenset[int] = frozenset()  # all processes of the maker that were seen
    workload: str | None = None  # what was last attached
    ran: tuple[tuple[str, int], ...] = ()  # what was attached, and how often
    example: str = ""  # the path of one of them
    way: str | None = None  # how it is known, where that was recorded: `tracepoints` or `scan`
    maker_cgroup: str | None = None  # that the maker itself is in; None: not known

    @property
    def stayed(self) -> int:
        """How many of those that were removed in that time stay."""
        return min(self.settled, self.unreleased or 0)

    @property
    def clean(self) -> bool:
        """Return whether all were released, as far as time has told."""
        return self.unreleased == 0 and self.settled > 0

    def as_row(self, time_ns: int, way: str) -> CgroupChurnRow:
        """Return the row of `cgroup_churn` that the recorder writes of it."""
        return CgroupChurnRow(
            time_ns=time_ns, parent=self.parent, pattern=self.pattern, maker=self.maker,
            maker_pid=self.maker_pid, workload=self.workload, made=self.made,
            removed=self.removed, released=self.released, attached=self.attached,
            unreleased=self.unreleased, way=way, maker_cgroup=self.maker_cgroup,
        )  # fmt: skip


def of_row(row: CgroupChurnRow, at_ns: int) -> Churn:
    """Return what a recorded row says, looked at from a moment."""
    return Churn(
        row.parent, row.pattern, row.maker, row.made, row.removed, row.released, row.attached,
        row.removed if row.time_ns <= at_ns - SETTLED_NS else 0,
        row.unreleased, row.maker_pid,
        frozenset() if row.maker_pid is None else frozenset((row.maker_pid,)), row.workload,
        ((row.workload, row.attached),) if row.workload and row.attached else (), "", row.way,
        row.maker_cgroup,
    )  # fmt: skip


def add_up(rows: Iterable[CgroupChurnRow], at_ns: int) -> list[Churn]:
    """Add up rows by parent, pattern, maker and its cgroup; what leaves most behind is first."""
    latest: dict[tuple[str, str, str | None, str | None], Churn] = {}
    for row in sorted(rows, key=lambda row: row.time_ns):
        churn = of_row(row, at_ns)
        key = churn.parent, churn.pattern, churn.maker, churn.maker_cgroup
        latest[key] = _then(latest[key], churn) if key in latest else churn
    return sorted(latest.values(), key=_weight)


def merge_makers(churned: Iterable[Churn]) -> list[Churn]:
    """Add up by parent and pattern alone; the maker is the one who leaves most behind."""
    grouped: defaultdict[tuple[str, str], list[Churn]] = defaultdict(list)
    for each in churned:
        grouped[each.parent, each.pattern].append(each)
    return sorted((_merge(each) for each in grouped.values()), key=_weight)


def count_unreleased(churned: Iterable[Churn]) -> dict[str, int]:
    """Return how many are left behind under each parent, where that is known."""
    counts: Counter[str] = Counter()
    for each in churned:
        counts[each.parent] += each.unreleased or 0
    return dict(+counts)


def read_churn(recording: Recording, window: Window) -> list[Churn]:
    """Add up what was recorded in a window, looked at from its end."""
    return add_up(recording.rows(CgroupChurnRow, window), window.to_ns - 1)


def conclude(churned: Iterable[Churn], heard: Heard) -> list[Churn]:
    """Return what a watch that is over heard: all that was removed had time to be released."""
    known = heard.way == "tracepoints"
    settled = (
        replace(each, settled=each.removed, unreleased=each.unreleased if known else None)
        for each in churned
    )
    return sorted(settled, key=_weight)


def _weight(churn: Churn) -> tuple[int, int, str, str]:
    """By what stays; where nothing is known to, by what is made."""
    return -(churn.unreleased or 0), -churn.made, churn.parent, churn.pattern


def _then(before: Churn, after: Churn) -> Churn:
    """Return two times as one: `unreleased` is a running count, the rest is summed."""
    unreleased = before.unreleased if after.unreleased is None else after.unreleased
    return replace(
        before,
        made=before.made + after.made,
        removed=before.removed + after.removed,
        released=before.released + after.released,
        attached=before.attached + after.attached,
        settled=before.settled + after.settled,
        unreleased=unreleased,
        maker_pid=after.maker_pid or before.maker_pid,
        pids=before.pids | after.pids,
        workload=after.workload or before.workload,
        ran=_add(before.ran, after.ran),
    )


def _merge(some: Sequence[Churn]) -> Churn:
    main = max(some, key=lambda each: (each.unreleased or 0, each.maker is not None, each.made))
    known = [each.unreleased for each in some if each.unreleased is not None]
    return replace(
        main,
        made=sum(each.made for each in some),
        removed=sum(each.removed for each in some),
        released=sum(each.released for each in some),
        attached=sum(each.attached for each in some),
        settled=sum(each.settled for each in some),
        unreleased=sum(known) if known else None,
    )


def _add(
    first: tuple[tuple[str, int], ...], second: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    counts = Counter(dict(first))
    counts.update(dict(second))
    return tuple(counts.most_common())
