"""Reading the time of the cores: rows of `cores`, what was missed, and what holds a core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodescope.errors import SourceError
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recorder.event_log import EventLog
from nodescope.recorder.watches.core_owners import CoreOwners
from nodescope.recorder.watches.pegged_cores import CoreWatch
from nodescope.records.recorder_tables import CoreRow
from nodescope.sources.node.proc_stat import read_cores

_LATE_NS = 2 * SECOND_NS  # later than that, the cores were not seen


class CoreTimes:
    """Asked once per interval; hands out its rows with each flush."""

    def __init__(
        self,
        proc: Path,
        interval_ns: int,
        now_ns: int,
        log: EventLog,
        owners: CoreOwners | None = None,
    ) -> None:
        self._proc = proc
        self._interval_ns = interval_ns
        self._log = log
        self._read_ns = now_ns
        self._late_ns = 0
        self._readings: list[tuple[int, npt.NDArray[np.int64]]] = []
        self.watch = CoreWatch(proc)
        self.owners = owners or CoreOwners()

    def read(self, now_ns: int, *, paused: bool) -> None:
        """Read `/proc/stat`; a recorder that was not run for seconds did not see them."""
        away = now_ns - self._read_ns - self._interval_ns
        self._late_ns = max(self._late_ns, away)
        if away > _LATE_NS:
            reason = f"the recorder was not run for {format_duration(away)}"
            self._log.gap(self._read_ns, now_ns, "cores", reason, loud=True)
        self._read_ns = now_ns
        if paused:
            return
        try:
            cores = read_cores(self._proc)
        except SourceError as error:
            self._log.gap(now_ns, now_ns + self._interval_ns, "cores", error.reason)
            return
        self._readings.append((now_ns, cores))
        self.watch.read(now_ns, cores)
        self.owners.read(now_ns, cores)

    def take_rows(self) -> dict[str, npt.NDArray[np.integer]] | None:
        """Return the rows since the last call, as columns; None if there are none."""
        if not self._readings:
            return None
        rows = np.concatenate([cores for _, cores in self._readings])
        times = np.repeat(
            np.array([time for time, _ in self._readings], np.int64),
            [len(cores) for _, cores in self._readings],
        )
        self._readings = []
        cpu, *states = rows.T
        return dict(zip(CoreRow.names(), (cpu.astype(np.int16), times, *states), strict=True))

    def take_late_ns(self) -> int:
        """How late a reading was at worst since the last call."""
        late, self._late_ns = self._late_ns, 0
        return late

    def forget(self) -> None:
        """Drop what was read: there was no room for it."""
        self._readings = []
        self.watch.forget()
        self.owners.forget()
