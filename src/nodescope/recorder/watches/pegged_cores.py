"""Notices a core that is held in the kernel: interrupts, soft interrupts, system calls.

An episode is a run of readings in each of which the kernel had at least 95 % of a
core; one of three seconds is told, once: when it is over, or after ten seconds.
A longer one is told again when it is over. Time that the hypervisor took away
counts for nobody.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.perf.decode import RingSamples
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.records.event import Event
from nodescope.records.event_details import PeggedCoreDetails
from nodescope.sources.kernel_files import read_text
from nodescope.sources.node.proc_stat import STATES

HELD_RATIO = 0.95
HELD_NS = 3 * SECOND_NS
_TELL_NS = 10 * SECOND_NS
_MOSTLY = 0.5  # of the samples, for a task to be named

_KERNEL = ("system", "irq", "softirq")
_OWN_TIME = ("user", "nice", "system", "idle", "iowait", "irq", "softirq")
# A reading times this: the time in the kernel, and all time that nobody took away.
_SUMS = np.array([(0, 0), *((state in _KERNEL, state in _OWN_TIME) for state in STATES)], np.int64)


@dataclass(slots=True)
class _Episode:
    cpu: int
    from_ns: int
    to_ns: int
    kernel: int = 0  # ticks in the kernel, of `total`
    total: int = 0
    told: bool = False
    over: bool = False
    tasks: Counter[int] = field(default_factory=Counter)  # samples in kernel mode, by thread


class CoreWatch:
    """Looks at the readings of the cores as they come."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._before: tuple[int, npt.NDArray[np.int64]] | None = None
        self._running: dict[int, _Episode] = {}
        self._over: list[_Episode] = []

    def read(self, now_ns: int, cores: npt.NDArray[np.int64]) -> None:
        """Take a reading: rows as `read_cores` gives them."""
        before, self._before = self._before, (now_ns, cores)
        if before is None or before[1][:, 0].tolist() != cores[:, 0].tolist():
            self.end()
            return
        kernel, total = ((cores - before[1]) @ _SUMS).T
        held = (total > 0) & (kernel >= HELD_RATIO * total)
        if not self._running and not held.any():
            return
        for row, cpu in enumerate(cores[:, 0].tolist()):
            if held[row]:
                episode = self._running.setdefault(cpu, _Episode(cpu, before[0], now_ns))
                episode.to_ns = now_ns
                episode.kernel += int(kernel[row])
                episode.total += int(total[row])
            elif cpu in self._running:
                self._close(self._running.pop(cpu))

    def _close(self, episode: _Episode) -> None:
        if episode.to_ns - episode.from_ns >= HELD_NS:
            episode.over = True
            self._over.append(episode)

    def see(self, samples: RingSamples) -> None:
        """Learn from samples who was in the kernel on the cores that are held."""
        for episode in (*self._running.values(), *self._over):
            times = samples.time_ns
            there = (samples.cpu == episode.cpu) & samples.kernel_mode.astype(bool)
            there &= (times >= episode.from_ns) & (times <= episode.to_ns)
            threads, counts = np.unique(samples.tid[there], return_counts=True)
            episode.tasks.update(dict(zip(threads.tolist(), counts.tolist(), strict=True)))

    def take_events(self) -> list[Event]:
        """What is to be told since the last call."""
        over, self._over = self._over, []
        long = [each for each in self._running.values() if each.to_ns - each.from_ns >= _TELL_NS]
        due = [*over, *(each for each in long if not each.told)]
        events = [self._event(each) for each in due]
        for each in due:
            each.told = True
        return events

    def _event(self, episode: _Episode) -> Event:
        length = episode.to_ns - episode.from_ns
        share = episode.kernel / episode.total
        details = PeggedCoreDetails(
            seconds=round(length / SECOND_NS, 3),
            share=round(share, 3),
            from_ns=episode.from_ns,
            to_ns=episode.to_ns,
            ongoing=not episode.over,
        )
        who = ""
        named = self._name(episode)
        if named is not None:
            thread, comm, part = named
            details = details.replace(thread=thread, comm=comm, thread_share=part)
            who = f" by {comm} ({thread})"
        onward = "" if episode.over else ", and on"
        message = f"in the kernel for {format_duration(length)}{onward}, {share:.0%} of it{who}"
        return Event(
            episode.from_ns,
            "core_held",
            f"cpu{episode.cpu}",
            message,
            cpu=episode.cpu,
            details=details,
        )

    def _name(self, episode: _Episode) -> tuple[int, str, float] | None:
        """The thread most samples are of, if it is still there to say its name."""
        if not episode.tasks:
            return None
        ((thread, count),) = episode.tasks.most_common(1)
        share = count / episode.tasks.total()
        comm = read_text(self._proc / str(thread) / "comm") if share >= _MOSTLY else None
        return None if comm is None else (thread, comm, round(share, 3))

    def end(self) -> None:
        """What runs is over as far as we can tell."""
        for episode in self._running.values():
            self._close(episode)
        self._running = {}

    def forget(self) -> None:
        """There was a hole in the readings: begin anew, and tell nothing of before."""
        self._before, self._running, self._over = None, {}, []
