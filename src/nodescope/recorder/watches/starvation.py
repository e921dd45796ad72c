"""When a core that serves packets is starved: the decision, and the state it needs.

A core is starved when packets wait for it and it serves none. Neither half is
enough: an idle core serves none, and packets wait for a moment on every busy
one. That packets wait is known in one of four ways:

* `backlog`: packets lie in the core's own queue (loopback, veth, and what
  another core steered to it);
* `interrupt`: a network device interrupted the core, and no soft interrupt of
  any kind followed;
* `silence`: the core served a network device until just now, and from one
  moment on no soft interrupt of any kind ran on it, though it was never idle.
  A device stays quiet until its packets are polled, so its interrupts alone
  would not tell. A core that runs anything at all has soft interrupts many times
  a second (timers, scheduling, RCU): silence means that they are held off, or
  that the core takes no interrupts;
* `thread`: the device's packets are served by a thread (threaded NAPI) that wants
  to run and is hardly let. Then `NET_RX` has no part in it.

That it serves none: `NET_RX` and the packets it processed did not move. Both
must hold at three readings in a row and for two seconds: the drivers' own
watchdogs wait for five, and no scheduling delay of a healthy core lasts that
long. Idle time in between refutes an interrupt and silence.
Cores that are set apart from scheduling (isolcpus, nohz_full) may be silent in
good health; for them neither interrupt nor silence counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from nodescope.quantities import SECOND_NS

STARVED_NS = 1_900_000_000  # two seconds, less what a round may come early
REPORT_NS = 10 * SECOND_NS  # an episode that lasts longer is told before it is over
_REFUTABLE = ("interrupt", "silence")  # by idle time
_RECENT_NS = 5 * SECOND_NS  # so long ago a device may have interrupted, before the silence


@dataclass(frozen=True, slots=True)
class CoreReading:
    """The counters of one core at one time."""

    cpu: int
    net_rx: int
    processed: int
    softirqs: int  # of every kind
    interrupts: int  # of network devices' receive queues
    backlog: int | None
    threads: tuple[str, ...] = ()  # that serve packets and were held up since the last reading


@dataclass(frozen=True, slots=True)
class Episode:
    """A core that was starved, from when to when."""

    cpu: int
    from_ns: int
    to_ns: int
    over: bool  # False: it goes on
    evidence: tuple[str, ...]
    backlog: int  # the most that waited
    interrupts: int  # that came meanwhile
    threads: tuple[str, ...]  # that were held up

    @property
    def length_ns(self) -> int:
        return self.to_ns - self.from_ns


@dataclass(slots=True)
class _ServingCore:
    """The state of one core; `last` is its latest reading."""

    last: CoreReading
    read_ns: int  # when that was
    silent_since_ns: int  # the reading since which no soft interrupt ran
    interrupted_ns: int | None = None  # the reading by which a device last had interrupted
    idle_ticks: int | None = None  # at the last reading, if it was a suspect then
    claim: str | None = None  # the evidence of this round
    waiting: _Waiting | None = None
    starved_ns: int = 0  # in the episodes that are over


@dataclass(slots=True)
class _Waiting:
    """Packets wait for a core: starvation, once it has lasted long enough."""

    from_ns: int
    to_ns: int
    interrupts_before: int
    rounds: int = 0
    backlog: int = 0
    told: bool = False
    evidence: set[str] = field(default_factory=set)
    threads: set[str] = field(default_factory=set)

    @property
    def length_ns(self) -> int:
        return self.to_ns - self.from_ns

    @property
    def starves(self) -> bool:
        return self.rounds >= 2 and self.length_ns >= STARVED_NS


class StarvationWatch:
    """Judges readings of all cores: for each round `note`, then `decide`."""

    def __init__(self, apart: Collection[int] = ()) -> None:
        self._apart = frozenset(apart)
        self._cores: dict[int, _ServingCore] = {}
        self._gone: list[_ServingCore] = []
        self._now_ns = 0

    def note(self, now_ns: int, readings: Iterable[CoreReading]) -> list[int]:
        """Take a round; the cores whose idle time `decide` needs."""
        self._now_ns = now_ns
        seen = set()
        suspects = []
        for reading in readings:
            seen.add(reading.cpu)
            core = self._cores.get(reading.cpu)
            if core is None:
                self._cores[reading.cpu] = _ServingCore(reading, now_ns, now_ns)
                continue
            core.claim = self._find_claim(core, reading)
            core.last = reading
            if core.claim in _REFUTABLE:
                suspects.append(reading.cpu)
        self._gone = [self._cores.pop(cpu) for cpu in self._cores.keys() - seen]  # offline
        return suspects

    def decide(self, idle_ticks: Mapping[int, int]) -> list[Episode]:
        """Judge the round: the episodes that ended, and those that go on for long."""
        found = [_episode(core, over=True) for core in self._gone if _is_news(core)]
        for cpu, core in self._cores.items():
            before, core.idle_ticks = core.idle_ticks, idle_ticks.get(cpu)
            was_idle = None not in (before, core.idle_ticks) and before != core.idle_ticks
            if core.claim is not None and not (was_idle and core.claim in _REFUTABLE):
                waiting = self._go_on(core, core.claim)
                if _is_news(core) and waiting.length_ns >= REPORT_NS:
                    waiting.told = True
                    found.append(_episode(core, over=False))
            elif core.waiting is not None:
                if _is_news(core):
                    found.append(_episode(core, over=True))
                core.starved_ns += core.waiting.length_ns if core.waiting.starves else 0
                core.waiting = None
            core.read_ns = self._now_ns
        return found

    def starved_ns(self, cpu: int) -> int:
        """For how long a core was starved, in all."""
        core = self._cores[cpu]
        now_ns = core.waiting.length_ns if core.waiting and core.waiting.starves else 0
        return core.starved_ns + now_ns

    def _find_claim(self, core: _ServingCore, reading: CoreReading) -> str | None:
        last = core.last
        ran = reading.softirqs != last.softirqs
        if ran:
            core.silent_since_ns = self._now_ns
        if reading.interrupts > last.interrupts:
            core.interrupted_ns = self._now_ns
        if reading.threads:
            return "thread"
        if reading.net_rx != last.net_rx or reading.processed != last.processed:
            return None
        if reading.backlog and last.backlog:
            return "backlog"
        if ran or reading.cpu in self._apart or core.interrupted_ns is None:
            return None
        if core.interrupted_ns > core.silent_since_ns:
            return "interrupt"
        return "silence" if core.silent_since_ns - core.interrupted_ns <= _RECENT_NS else None

    def _go_on(self, core: _ServingCore, claim: str) -> _Waiting:
        if core.waiting is None:
            # Packets in the backlog lay there at the reading before, too, and threads waited.
            since = self._now_ns if claim in _REFUTABLE else core.read_ns
            core.waiting = _Waiting(since, self._now_ns, core.last.interrupts)
        waiting = core.waiting
        waiting.rounds += 1
        waiting.to_ns = self._now_ns
        waiting.evidence.add(claim)
        waiting.threads.update(core.last.threads)
        waiting.backlog = max(waiting.backlog, core.last.backlog or 0)
        return waiting


def _is_news(core: _ServingCore) -> bool:
    return core.waiting is not None and core.waiting.starves and not core.waiting.told


def _episode(core: _ServingCore, *, over: bool) -> Episode:
    assert core.waiting is not None
    return Episode(
        cpu=core.last.cpu,
        from_ns=core.waiting.from_ns,
        to_ns=core.waiting.to_ns,
        over=over,
        evidence=tuple(sorted(core.waiting.evidence)),
        backlog=core.waiting.backlog,
        interrupts=core.last.interrupts - core.waiting.interrupts_before,
        threads=tuple(sorted(core.waiting.threads)),
    )
