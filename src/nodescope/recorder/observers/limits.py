"""Limits of the node, counters that only trouble raises, stalled disks, the clock.

They are the witnesses where the kernel log is silent, limited in rate or not to be read. File
systems have an observer of their own (`file_systems`), because asking for one may take
forever; hardware too (`hardware`); tasks of cgroups are read with the cgroups.
"""

from __future__ import annotations

from nodescope.errors import SourceError
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.watches.clock_synchronisation import SynchronisationWatch
from nodescope.recorder.watches.conntrack import ConntrackWatch
from nodescope.recorder.watches.counted_trouble import CountedTrouble
from nodescope.recorder.watches.limit_rows import LimitRows, describe_limit
from nodescope.recorder.watches.stalled_disks import Stalled, StalledDisks
from nodescope.recorder.watches.unreaped import UnreapedWatch
from nodescope.records.event import Event
from nodescope.records.json import JsonObject
from nodescope.sources.kernel_files import KeptFiles
from nodescope.sources.limits.clock_state import read_clock_state
from nodescope.sources.limits.disks import parse_diskstats
from nodescope.sources.limits.kernel_counts import (
    CONNTRACK_EVICTED,
    CONNTRACK_FULL,
    KINDS,
    read_kernel_counts,
)
from nodescope.sources.limits.node_limits import NODE, read_node_limits
from nodescope.sources.limits.ports import read_ports
from nodescope.sources.limits.reading import Limit, TroubleCount

_WHOLE_NS = 9 * SECOND_NS  # every second round
_ELSEWHERE_NS = 29 * SECOND_NS  # other network namespaces
_PORTS_NS = 59 * SECOND_NS  # their table is long where many are in use
_CLEARED = 0.9
_FULL = 0.95
# Where a level itself is the event: the share at which it is, and the kind.
_LEVELS = {
    "files": (_FULL, "files_exhausted"),
    "threads": (_FULL, "pid_exhausted"),
    "tcp_memory": (1.0, "tcp_memory"),
    "ports": (_FULL, "ports_exhausted"),
}
_UNITS = {
    "files": "open files",
    "threads": "tasks",
    "tcp_memory": "pages of TCP",
    "ports": "local ports for one destination",
}
_IDLE_DRIVES = ("sr", "fd")  # without a medium they never answer


class LimitsObserver:
    """Looks at disks every five seconds, at all else every ten."""

    interval_ns = 5 * SECOND_NS
    patient = False

    def __init__(self, setting: Setting) -> None:
        self._places = setting.places
        self._files = KeptFiles()
        self._rows = LimitRows()
        self._trouble = CountedTrouble(setting.log_reports)
        self._conntrack = ConntrackWatch(setting.places.proc, self._rows, self._trouble)
        self._unreaped = UnreapedWatch(setting.places.proc)
        self._disks = StalledDisks()
        self._clock = SynchronisationWatch(setting.places)
        self._whole_at_ns = 0
        self._elsewhere_at_ns = 0
        self._ports_at_ns = 0
        self._clock_refused: str | None = None
        self._refused: frozenset[str] = frozenset()

    def begin_segment(self) -> None:
        self._rows.begin_segment()
        self._whole_at_ns = 0

    def observe(self, now_ns: int) -> Observation:
        said = Observation()
        self._look_at_disks(now_ns)
        if now_ns >= self._whole_at_ns:
            self._whole_at_ns = now_ns + _WHOLE_NS
            limits = read_node_limits(self._files, self._places.proc)
            for limit in limits:
                self._rows.add_limit(said, now_ns, limit)
                self._compare(now_ns, limit)
            counts = read_kernel_counts(self._files, self._places.proc, self._places.sys)
            for count in counts:
                self._rows.add_count(said, now_ns, count)
            self._follow(now_ns, counts)
            self._look_at_conntrack(said, now_ns, limits, counts)
            self._look_at_ports(said, now_ns)
            said.events += self._unreaped.look(now_ns)
            self._look_at_clock(now_ns)
            self._note_refused(now_ns, said)
        said.events += self._trouble.take(now_ns)
        return said

    def close(self) -> None:
        self._files.close()

    # -- levels and counters ---------------------------------------------------

    def _compare(self, now_ns: int, limit: Limit) -> None:
        """Report a level that passed its limit."""
        if limit.name not in _LEVELS:
            return
        full, kind = _LEVELS[limit.name]
        cleared = limit.share < _CLEARED * full
        if self._trouble.passes(kind, limit.scope, above=limit.share >= full, cleared=cleared):
            message = f"{limit.used:,} of {limit.most:,} {_UNITS[limit.name]} are in use"
            self._trouble.report(now_ns, kind, limit.scope, message, describe_limit(limit))

    def _follow(self, now_ns: int, counts: list[TroubleCount]) -> None:
        """Report counters that began to rise."""
        by_name = {count.name: count for count in counts}
        for name, kind in KINDS.items():
            count = by_name.get(name)
            if count is None:
                continue
            rise = self._trouble.follow(now_ns, kind, name, "", count.value)
            if rise is not None:
                self._trouble.report_rise(now_ns, rise, {})

    def _look_at_conntrack(
        self, said: Observation, now_ns: int, limits: list[Limit], counts: list[TroubleCount]
    ) -> None:
        limit = next((each for each in limits if each.name == "conntrack"), None)
        if limit is None or limit.most is None:
            return
        own = [count for count in counts if count.name in (CONNTRACK_FULL, CONNTRACK_EVICTED)]
        if own:
            self._conntrack.look(now_ns, limit, own)
        if now_ns >= self._elsewhere_at_ns:
            self._elsewhere_at_ns = now_ns + _ELSEWHERE_NS
            self._conntrack.look_elsewhere(said, now_ns, limit.most)

    def _look_at_ports(self, said: Observation, now_ns: int) -> None:
        if now_ns < self._ports_at_ns:
            return
        self._ports_at_ns = now_ns + _PORTS_NS
        limit = read_ports(self._files, self._places.proc)
        if limit is None:  # few are in use
            self._trouble.passes("ports_exhausted", NODE, above=False, cleared=True)
            return
        self._rows.add_limit(said, now_ns, limit)
        self._compare(now_ns, limit)

    # -- disks, the clock, files that are refused --------------------------------

    def _look_at_disks(self, now_ns: int) -> None:
        content = self._files.read(self._places.proc / "diskstats")
        for stalled in self._disks.look(now_ns, parse_diskstats(content or b"")):
            block = self._places.sys / "block" / stalled.device.replace("/", "!")
            if block.exists() and not stalled.device.startswith(_IDLE_DRIVES):
                self._report_stall(now_ns, stalled)

    def _report_stall(self, now_ns: int, stalled: Stalled) -> None:
        seconds = round((now_ns - stalled.since_ns) / SECOND_NS, 1)
        message = f"requests that wait: {stalled.waiting}; none completed for {seconds:.0f} s"
        details: JsonObject = {
            "device": stalled.device,
            "statistic": "in_flight",
            "waiting": stalled.waiting,
            "seconds": seconds,
        }
        self._trouble.report(now_ns, "io_stalled", stalled.device, message, details, in_log=False)

    def _look_at_clock(self, now_ns: int) -> None:
        try:
            state = read_clock_state()
        except SourceError as error:  # a sandbox refuses it
            self._clock_refused = str(error)
            return
        self._clock_refused = None
        reason = self._clock.look(now_ns, state)
        if reason is not None:
            details: JsonObject = {"reason": reason}
            self._trouble.report(
                now_ns, "clock_unsynchronized", "clock", reason, details, in_log=False
            )

    def _note_refused(self, now_ns: int, said: Observation) -> None:
        """Report files that are there and not for us, once."""
        refused = frozenset(str(error) for error in self._files.refused.values())
        if self._clock_refused is not None:
            refused |= {self._clock_refused}
        if self._conntrack.refused is not None:
            refused |= {f"network namespaces of other users: {self._conntrack.refused.strerror}"}
        if refused - self._refused:
            message = f"not read: {'; '.join(sorted(refused))}"
            said.events.append(Event(now_ns, "source_degraded", "limits", message))
        self._refused = refused


def make(setting: Setting) -> LimitsObserver:
    """An observer of this node's limits."""
    return LimitsObserver(setting)
