"""Tables of tracked connections that are full: ours and those of other network namespaces.

The limit is one for the node, the connections are counted for each namespace. A namespace goes by
the cgroup of its oldest process. Now and then a packet is dropped for another reason. It is for
want of room if the table was full at one of two readings, if entries were evicted in between to
make room, or if many were dropped: nothing else drops many.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from nodescope.ingest.observation import Observation
from nodescope.recorder.watches.counted_trouble import CountedTrouble
from nodescope.recorder.watches.limit_rows import LimitRows, describe_limit
from nodescope.sources.cgroups.of_process import read_cgroup_of
from nodescope.sources.kernel_files import read_text
from nodescope.sources.limits.kernel_counts import (
    CONNTRACK_EVICTED,
    CONNTRACK_FULL,
    parse_conntrack_counts,
)
from nodescope.sources.limits.node_limits import parse_statistics
from nodescope.sources.limits.reading import Limit, TroubleCount
from nodescope.sources.network.namespaces import NetworkNamespaces

_FULL = 0.95
_MANY = 20


class _TableReading(NamedTuple):
    """One namespace, as it was last read."""

    share: float
    dropped: int
    evicted: int


class ConntrackWatch:
    """Follows drops and evictions of every namespace."""

    def __init__(self, proc: Path, rows: LimitRows, trouble: CountedTrouble) -> None:
        self._proc = proc
        self._rows = rows
        self._trouble = trouble
        self._namespaces = NetworkNamespaces(proc)
        self._before: dict[str, _TableReading] = {}  # by subject
        self._looked = False

    @property
    def refused(self) -> OSError | None:
        """Why some namespaces are not seen; None if all are."""
        return self._namespaces.refused

    def look(
        self, now_ns: int, limit: Limit, counts: list[TroubleCount], *, new: bool = False
    ) -> None:
        """Compare one namespace with the last reading, and report packets dropped."""
        values = {count.name: count.value for count in counts}
        dropped, evicted = values.get(CONNTRACK_FULL), values.get(CONNTRACK_EVICTED)
        if dropped is None or evicted is None:
            return
        subject = counts[0].subject
        first = _TableReading(0.0, 0, 0) if new else _TableReading(0.0, dropped, evicted)
        before = self._before.get(subject, first)
        self._before[subject] = _TableReading(limit.share, dropped, evicted)
        full = (
            max(before.share, limit.share) >= _FULL
            or evicted > before.evicted
            or dropped - before.dropped >= _MANY
        )
        kind = "conntrack_full" if full else "conntrack"
        rise = self._trouble.follow(now_ns, kind, CONNTRACK_FULL, subject, dropped, new=new)
        if rise is not None and full:
            self._trouble.report_rise(now_ns, rise, describe_limit(limit))

    def look_elsewhere(self, said: Observation, now_ns: int, most: int) -> None:
        """Look at the other network namespaces."""
        seen = set()
        for pid in self._namespaces.find().values():
            content = (read_text(self._proc / f"{pid}/net/stat/nf_conntrack") or "").encode()
            used = next(parse_statistics(content, "entries"), None)
            cgroup = read_cgroup_of(self._proc, pid)
            if used is None or cgroup is None or cgroup in seen:
                continue
            seen.add(cgroup)
            counts = parse_conntrack_counts(content, cgroup)
            new = self._looked and cgroup not in self._before
            limit = Limit("conntrack", cgroup, used, most)
            if used or any(count.value for count in counts):
                self._rows.add_limit(said, now_ns, limit)
                for count in counts:
                    self._rows.add_count(said, now_ns, count)
            self.look(now_ns, limit, counts, new=new)
        self._looked = True
        gone = self._before.keys() - seen - {""}
        for cgroup in gone:
            del self._before[cgroup]
        self._trouble.forget(gone)
