"""Memory and reclaim of the node: the table `memory`, of what changed."""

from __future__ import annotations

from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.counted_trouble import CountedTrouble
from nodescope.recorder.watches.log_reports import LogReports
from nodescope.records.node_tables import MemoryRow
from nodescope.sources.node.meminfo import read_meminfo
from nodescope.sources.node.vmstat import read_vmstat
from nodescope.sources.places import Places

MEMINFO = frozenset(
    ("MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapTotal", "SwapFree", "Dirty",
     "Writeback", "AnonPages", "Shmem", "Slab", "SReclaimable", "SUnreclaim", "KernelStack",
     "PageTables", "Percpu", "Mlocked", "HugePages_Total", "HugePages_Free")
)  # fmt: skip
VMSTAT = frozenset(
    ("pgpgin", "pgpgout", "pgfault", "pgmajfault", "pswpin", "pswpout", "compact_stall",
     "compact_fail", "thp_fault_alloc", "thp_fault_fallback", "oom_kill", "slabs_scanned",
     "drop_pagecache", "drop_slab", "workingset_refault_file", "workingset_refault_anon",
     "pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct")
)  # fmt: skip
_BY_ZONE = (  # allocstall before v4.10, and scans until v4.8, have or lack a zone's name
    "allocstall", "pgscan_kswapd_", "pgscan_direct_", "pgsteal_kswapd_", "pgsteal_direct_",
)  # fmt: skip


class MemoryObserver:
    """Reads both files whole and tells the chosen lines that changed."""

    interval_ns = 10 * SECOND_NS
    patient = False

    def __init__(self, places: Places, reports: LogReports | None = None) -> None:
        self._places = places
        self._reports = reports or LogReports()
        self._trouble = CountedTrouble(self._reports)
        self._said: dict[str, int] = {}

    def begin_segment(self) -> None:
        self._said = {}

    def observe(self, now_ns: int) -> Observation:
        values = {
            name: value
            for name, value in read_meminfo(self._places.proc).items()
            if name in MEMINFO
        }
        values |= {
            name: value
            for name, value in read_vmstat(self._places.proc).items()
            if name in VMSTAT or name.startswith(_BY_ZONE)
        }
        said = Observation()
        for name, value in values.items():
            if self._said.get(name) != value:
                said.add(MemoryRow(time_ns=now_ns, name=name, value=value))
        self._said = values
        self._follow_kills(now_ns, values.get("oom_kill"))
        said.events += self._trouble.take(now_ns)
        return said

    def _follow_kills(self, now_ns: int, kills: int | None) -> None:
        """Report OOM kills that nobody else does: not the log, nor the counter of a cgroup."""
        if kills is None:
            return
        rise = self._trouble.follow(now_ns, "oom_kill", "oom_kill", "", kills)
        if rise is not None and not self._reports.is_whole(rise.since_ns):
            self._trouble.report_rise(now_ns, rise, {}, hold=True)

    def close(self) -> None:
        """Nothing is held."""


def make(setting: Setting) -> MemoryObserver:
    """An observer of this node's memory."""
    return MemoryObserver(setting.places, setting.log_reports)
