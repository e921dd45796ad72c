"""When will zombies pass a threshold: on this node, and on its replacement from the same image?

The slope is that of the recording, its interval that of blocks of its time. A replacement
starts at zero and grows likewise if what leaks starts there by itself. A forecast reaches no
further than thirty times the time it rests on; "does not grow" and "cannot say" are answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from nodescope.analysis.recurrence import Slope, find_slope, slope_interval
from nodescope.judgement.recorded_loops import find_recorded_loops, reach_of
from nodescope.judgement.zombie_reading import ZombieReading, read_dying, read_walk, read_zombies
from nodescope.judgement.zombies import find_nature, judge
from nodescope.quantities import DAY_NS, MINUTE_NS, SECOND_NS, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.node_tables import ContainerRow, UnitRow
from nodescope.sources.systemd.unit_files import UnitFiles

Will = Literal["passed", "will pass", "does not grow", "cannot say"]

_LOOK_NS = DAY_NS
_LEAST_NS = 10 * MINUTE_NS
_REACH = 30
_FEW = 3  # zombies: less than this in the whole time is no growth
_STARTS_AT_BOOT = frozenset({"enabled", "enabled-runtime", "static", "generated", "linked"})


@dataclass(frozen=True, slots=True)
class Passing:
    """When one threshold is passed; seconds from now, or from a boot."""

    level: str  # warn or critical
    threshold: int
    will: Will
    likely_s: float | None = None
    least_s: float | None = None
    longest_s: float | None = None  # None: perhaps never


@dataclass(frozen=True, slots=True)
class LeakSource:
    """Something that loops and may leak, and whether it starts again by itself."""

    kind: str
    name: str
    comes_back: bool | None  # after a reboot, or on a replacement; None: not known
    because: str


@dataclass(frozen=True, slots=True)
class ZombieForecast:
    """The answer of `fix forecast`."""

    at_ns: int
    dying: int
    per_hour: float | None
    per_hour_low: float | None
    per_hour_high: float | None
    observed_s: float
    because: str
    node: tuple[Passing, ...]
    replacement: tuple[Passing, ...]
    sources: tuple[LeakSource, ...]


def read_forecast(recording: Recording, image: Path | None = None) -> ZombieForecast | None:
    """Read how zombies grow at the end of a recording; None if they were never counted."""
    at_ns = recording.extent.to_ns - 1
    reading = read_zombies(recording, at_ns)
    counted = read_dying(recording, Window(at_ns - _LOOK_NS, at_ns + 1))
    if not isinstance(reading, ZombieReading) or not counted:
        return None
    counted = _of_last_boot(recording, counted)
    walk = read_walk(recording, at_ns)
    verdict = judge(
        counted[-1][1], reading.tracked, None if walk is None else walk.took_ns,
        reading.possible_cpus, reading.memory_bytes,
    )  # fmt: skip
    bounds = (verdict.warn_at, verdict.critical_at)
    sources = tuple(_read_sources(recording, at_ns, image))
    return make_forecast(counted, bounds, sources)


def make_forecast(
    counted: Sequence[tuple[int, int]], bounds: tuple[int, int], sources: tuple[LeakSource, ...]
) -> ZombieForecast:
    """Return the forecast of counts (time, zombies) of one boot, in the order of time."""
    times_ns = [time_ns for time_ns, _ in counted]
    values = [dying for _, dying in counted]
    over_s = (times_ns[-1] - times_ns[0]) / SECOND_NS
    times_s = [(each - times_ns[0]) / SECOND_NS for each in times_ns]
    slope = find_slope(times_s, [float(each) for each in values])
    word, because = _grows(times_ns, values, slope)
    low = high = None
    if slope is not None:
        low, high = slope_interval(slope)
    node = tuple(
        _passing(level, bound, values[-1], word, slope, over_s)
        for level, bound in zip(("warn", "critical"), bounds, strict=True)
    )
    return ZombieForecast(
        times_ns[-1], values[-1],
        None if slope is None else slope.per_s * 3600,
        None if low is None else low * 3600, None if high is None else high * 3600,
        over_s, because, node,
        tuple(_replacement(level, bound, word, slope, over_s, sources)
              for level, bound in zip(("warn", "critical"), bounds, strict=True)),
        sources,
    )  # fmt: skip


def _grows(times_ns: Sequence[int], values: Sequence[int], slope: Slope | None) -> tuple[Will, str]:
    """Return whether zombies grow, and why that is known or not."""
    over_ns = times_ns[-1] - times_ns[0]
    watched = format_duration(over_ns // SECOND_NS * SECOND_NS)
    if slope is None or over_ns < _LEAST_NS:
        return "cannot say", f"counted for only {watched}"
    if find_nature(times_ns, values, 0, 0) == "cache":
        return "does not grow", "a saw-tooth: memory pressure frees them, as it does caches"
    low, high = slope_interval(slope)
    grown = values[-1] - values[0]
    if grown < _FEW and high * over_ns / SECOND_NS < max(_FEW, 0.01 * values[-1]) * 10:
        return "does not grow", f"{grown:+d} in {watched}"
    if low <= 0:
        return "cannot say", f"{grown:+d} in {watched}, too unsteady for a slope"
    return "will pass", f"{grown:+d} in {watched}"


def _passing(
    level: str, bound: int, start: int, word: Will, slope: Slope | None, over_s: float
) -> Passing:
    if start >= bound:
        return Passing(level, bound, "passed", 0.0, 0.0, 0.0)
    if word != "will pass" or slope is None:
        return Passing(level, bound, word)
    low, high = slope_interval(slope)
    room = bound - start
    likely_s = room / slope.per_s
    if likely_s > _REACH * over_s:
        return Passing(level, bound, "cannot say")
    return Passing(level, bound, "will pass", likely_s, room / high, room / low)


def _replacement(
    level: str,
    bound: int,
    word: Will,
    slope: Slope | None,
    over_s: float,
    sources: Sequence[LeakSource],
) -> Passing:
    """Return the same for a node that begins at zero."""
    if word == "does not grow":
        return Passing(level, bound, word)
    known = [each.comes_back for each in sources]
    if known and all(each is False for each in known):
        return Passing(level, bound, "does not grow")
    if not known or (None in known and True not in known):
        return Passing(level, bound, "cannot say")
    return _passing(level, bound, 0, word, slope, over_s)


# -- facts ---------------------------------------------------------------------------


def _of_last_boot(
    recording: Recording, counted: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the counts since the last boot: a reboot frees all."""
    boots = [(part.wall_from_ns, part.description.start.boot_id) for part in recording.parts]
    boots.sort()
    began_ns = 0
    for (_, before), (from_ns, boot) in pairwise(boots):
        if boot != before:
            began_ns = from_ns
    return [each for each in counted if each[0] >= began_ns] or list(counted[-1:])


def _read_sources(recording: Recording, at_ns: int, image: Path | None) -> list[LeakSource]:
    """Return what loops at the end of a recording, and whether it comes back by itself."""
    reach = reach_of(at_ns)
    units = recording.state(UnitRow, at_ns)
    containers = recording.rows(ContainerRow, reach)
    loopers = find_recorded_loops(recording.events(reach), containers, units, at_ns)
    states = {row.unit: row.file_state for row in units}
    files = None if image is None else UnitFiles(image)
    return [
        _judge_source(each.kind, each.name, states, files)
        for each in sorted(loopers, key=lambda each: -each.count)
    ]


def _judge_source(
    kind: str, name: str, states: dict[str, str | None], files: UnitFiles | None
) -> LeakSource:
    if kind != "unit":
        because = "who starts this container on another node is not known"
        return LeakSource(kind, name, None, because)
    if files is not None:
        if name not in files.names():
            return LeakSource(kind, name, False, "the image does not have it")
        state = files.unit(name).file_state
        where = "in the image"
    else:
        state, where = states.get(name), "on this node"
    if state is None:
        return LeakSource(kind, name, None, f"whether it is enabled {where} is not known")
    return LeakSource(kind, name, state in _STARTS_AT_BOOT, f"{state} {where}")
