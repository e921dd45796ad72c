"""CPU time of a sample, idle time of cores, and names of processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import numpy as np

from nodescope.analysis.cores import derive_shares
from nodescope.recording.recording import Recording
from nodescope.recording.sample_columns import SampleColumns
from nodescope.recording.window import Window
from nodescope.records.recorder_tables import HeartbeatRow


def derive_sample_seconds(recording: Recording, window: Window) -> float | None:
    """Return the CPU time that one sample stands for, in seconds; None if no rate is known.

    The recorder may lower its rate meanwhile: this is the mean of what was in force. A window
    between two heartbeats has the rate of its segments.
    """
    rates = _read_rates(recording, window)
    parts = recording.overlapping(window)
    if not rates and parts:
        first, last = parts[0].wall_from_ns, parts[-1].wall_to_ns + 1
        rates = _read_rates(recording, Window(first, last))
    return len(rates) / sum(rates) if rates else None


def _read_rates(recording: Recording, window: Window) -> list[int]:
    return [row.frequency_hz for row in recording.rows(HeartbeatRow, window) if row.frequency_hz]


def derive_idle_share(recording: Recording, window: Window) -> float | None:
    """Return the share of the cores' time that was idle; None where no core time was read."""
    readings = recording.core_readings(window)
    shares = derive_shares(readings, window.from_ns, window.to_ns, window.length_ns)
    idle = shares.shares["idle"] + shares.shares["iowait"]
    return float(np.nanmean(idle)) if idle.size and not np.isnan(idle).all() else None


def name_processes(parts: Iterable[SampleColumns], pids: Collection[int]) -> dict[int, str]:
    """Return the name that most samples of each process carry."""
    counts: dict[int, Counter[str]] = {}
    wanted = np.array(sorted(pids), np.int64)
    for part in parts:
        chosen = np.flatnonzero(np.isin(part.pid, wanted))
        comm = part.profile_comm[part.profile[chosen]]
        pairs, times = np.unique((part.pid[chosen], comm), axis=1, return_counts=True)
        for pid, name, count in zip(*pairs.tolist(), times.tolist(), strict=True):
            counts.setdefault(pid, Counter())[part.comms[name]] += count
    return {pid: names.most_common(1)[0][0] for pid, names in counts.items()}
