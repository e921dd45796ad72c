"""Reports pegged cores: `judgement.pegged_cores` decides, this names who had them.

A pegged core is reported once: when it is over, or after ten seconds; a longer one is
reported again when it is over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.judgement.core_occupants import MOST_OF_IT, Occupants
from nodescope.judgement.pegged_cores import PeggedCore, PeggedCoreStream, PeggedRun
from nodescope.perf.decode import RingSamples
from nodescope.quantities import SECOND_NS
from nodescope.recording.core_readings import STATES
from nodescope.records.event import Event
from nodescope.records.event_details import PeggedCoreDetails
from nodescope.sources.kernel_files import read_text

_REPORT_NS = 10 * SECOND_NS  # what lasts longer is reported before it is over


@dataclass(slots=True)
class _Episode:
    """A run of readings, and the threads that had the core in it."""

    run: PeggedRun
    reported: bool = False
    threads: Occupants[int] = field(default_factory=Occupants)


class CoreWatch:
    """Looks at the readings of the cores as they come."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._stream = PeggedCoreStream()
        self._running: dict[int, _Episode] = {}
        self._over: list[_Episode] = []

    def read(self, now_ns: int, cores: npt.NDArray[np.int64]) -> None:
        """Take a reading: rows as `read_cores` gives them."""
        ended = self._stream.read(now_ns, cores[:, 0], cores[:, 1 : 1 + len(STATES)])
        self._close(ended)
        for cpu, run in self._stream.running.items():
            if cpu not in self._running:
                self._running[cpu] = _Episode(run)

    def _close(self, ended: list[PeggedRun]) -> None:
        for run in ended:
            episode = self._running.pop(run.cpu)
            if run.judge() is not None:
                self._over.append(episode)

    def see(self, samples: RingSamples) -> None:
        """Learn from samples who was on the cores that may be pegged."""
        for episode in (*self._running.values(), *self._over):
            run, times = episode.run, samples.time_ns
            there = (samples.cpu == run.cpu) & (times >= run.from_ns) & (times <= run.to_ns)
            threads, counts = np.unique(samples.tid[there], return_counts=True)
            episode.threads.add(threads.tolist(), counts.tolist())

    def take_events(self) -> list[Event]:
        """Return what is to be reported since the last call."""
        over, self._over = self._over, []
        events = [self._event(each, over=True) for each in over]
        for episode in self._running.values():
            run = episode.run
            long = run.to_ns - run.from_ns >= _REPORT_NS and run.judge() is not None
            if long and not episode.reported:
                episode.reported = True
                events.append(self._event(episode, over=False))
        return events

    def _event(self, episode: _Episode, *, over: bool) -> Event:
        core = episode.run.judge()
        assert core is not None
        details = PeggedCoreDetails(
            seconds=round(core.seconds, 3),
            share=round(core.share, 3),
            from_ns=core.from_ns,
            to_ns=core.to_ns,
            ongoing=not over,
        )
        who = ""
        named = self._name(episode)
        if named is not None:
            thread, comm, part = named
            details = details.replace(thread=thread, comm=comm, thread_share=part)
            who = f" by {comm} ({thread})"
        return Event(
            core.from_ns,
            "core_held",
            f"cpu{core.cpu}",
            _describe(core, over=over) + who,
            cpu=core.cpu,
            details=details,
        )

    def _name(self, episode: _Episode) -> tuple[int, str, float] | None:
        """The thread most samples are of, if it is still there to say its name."""
        main = episode.threads.find_main(MOST_OF_IT)
        comm = None if main is None else read_text(self._proc / str(main.key) / "comm")
        return None if main is None or comm is None else (main.key, comm, round(main.share, 3))

    def end(self) -> None:
        """End the spans that are still open, as far as they were observed."""
        self._close(self._stream.end())

    def forget(self) -> None:
        """There was a hole in the readings: begin anew, and report nothing of before."""
        self._stream.forget()
        self._running, self._over = {}, []


def _describe(core: PeggedCore, *, over: bool) -> str:
    return core.describe() if over else f"{core.describe()}, and on"
