"""The unit that runs what loops.

A unit that loops is its own. A container belongs to a unit only by evidence: its cgroup
lies in the unit's, the unit's process makes its cgroups, or the unit itself tells of it
(its child's command, its lines in the journal). A name that is alike is no evidence: it
is mentioned as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nodescope.diagnosis.case import LOOKAHEAD_NS, LOOKBACK_NS, Case
from nodescope.judgement.recorded_loops import Looper, is_of, read_inside
from nodescope.judgement.unit_insides import FOR_OTHERS
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import UnitChildDetails, UnitLinesDetails
from nodescope.records.node_tables import UnitRow
from nodescope.sources.cgroups.name_pattern import lies_in

SHORT_ID = 12  # characters of a container's id that people and programs name it by
AS_OFTEN = 1.5  # a rate that differs by less is the same
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{12,64}(?![0-9a-f])")


@dataclass(frozen=True, slots=True)
class Runner:
    """A unit, and what shows that it runs what loops; "": it is what loops."""

    unit: UnitRow
    because: str = ""
    event: str | None = None  # the kind that shows it, if one does


class _Told(NamedTuple):
    """The facts that a unit reports of a container."""

    unit: str
    fit: int  # the more the better
    because: str
    event: str


def find_runner(
    case: Case, looper: Looper, maker_pid: int | None, units: Sequence[UnitRow]
) -> Runner | None:
    """The unit that loops, or of which there is evidence that it runs what loops."""
    if looper.kind == "unit":
        rows = (row for row in units if row.unit == looper.name and is_of(row, looper))
        return next((Runner(row) for row in rows), None)
    # What runs everybody's containers runs this one, too: that explains nothing.
    services = {row.unit: row for row in units if _may_run_its_own(row)}
    for row in services.values():
        if row.cgroup and any(lies_in(each, row.cgroup) for each in looper.cgroups):
            return Runner(row, f"its cgroup lies in {row.cgroup}")
        if maker_pid and row.main_pid == maker_pid:
            return Runner(row, f"its process {maker_pid} makes the cgroups")
    return _best_told([each for each in _told_by_units(case, looper) if each.unit in services],
                      looper, services)  # fmt: skip


def _best_told(
    told: Sequence[_Told], looper: Looper, services: Mapping[str, UnitRow]
) -> Runner | None:
    """The one that fits best; of several alike the one of a like name, else none of them."""
    words = _parts(looper.name)
    ranks = [(each.fit, bool(words & _parts(each.unit))) for each in told]
    best = [each for each, rank in zip(told, ranks, strict=True) if rank == max(ranks)]
    if len({each.unit for each in best}) != 1:
        return None
    return Runner(services[best[0].unit], best[0].because, best[0].event)


def find_namesake(looper: Looper, units: Sequence[UnitRow]) -> str | None:
    """A service whose name shares a word with a container's: a hint, and no more."""
    words = _parts(looper.name)
    shared = {
        row.unit: len(words & _parts(row.unit))
        for row in units
        if looper.kind == "container" and _may_run_its_own(row)
    }
    best = max(shared, key=lambda unit: shared[unit], default=None)
    return best if best is not None and shared[best] else None


def _may_run_its_own(row: UnitRow) -> bool:
    return str(row.unit).endswith(".service") and row.unit not in FOR_OTHERS


def _told_by_units(case: Case, looper: Looper) -> Iterator[_Told]:
    """Return the facts that units report of the container, nearest to the moment first."""
    kinds = ("unit_hidden_loop", "unit_child_failing", "unit_logs_ends")
    reach = Window(looper.at_ns - LOOKBACK_NS, looper.at_ns + LOOKAHEAD_NS)
    events = case.events_of(*kinds, within=reach)
    for event in sorted(events, key=lambda each: abs(looper.at_ns - each.time_ns)):
        if because := _by_command(looper, event):
            yield _Told(event.subject, 3, because, event.kind)
        if because := _by_lines(looper, event):
            yield _Told(event.subject, 2, because, event.kind)
        if because := _by_its_child(looper, event):
            yield _Told(event.subject, 1, because, event.kind)


def _by_command(looper: Looper, event: Event) -> str | None:
    """Its own command or its child's has the container's name as an argument."""
    told = event.get(UnitChildDetails)
    for command in ((told.command or "").strip(), (told.main or "").strip()):
        if looper.name in _words_of(command.partition(" ")[2]):
            return f"it runs `{command}`"
    return None


def _by_lines(looper: Looper, event: Event) -> str | None:
    """A line with the container's id, or one about an end with its name."""
    told = event.get(UnitLinesDetails)
    lines, last = told.lines, told.last_line
    if lines is None or last is None:
        return None
    known = {each[:SHORT_ID] for each in looper.ids}
    named = {found[:SHORT_ID] for line in lines for found in _ID.findall(line)}
    if known & named:
        return f"its journal names the container's id and says `{last}`"
    if looper.name in _words_of(last):
        return f"its journal says `{last}`"
    return None


def _by_its_child(looper: Looper, event: Event) -> str | None:
    """A child that fails as often as the container ends, and in the same way."""
    inside = read_inside(event)
    if inside is None or not looper.before:
        return None
    every_s = inside.watched_ns / SECOND_NS / inside.times
    ratio = max(every_s, looper.period_s) / max(1e-9, min(every_s, looper.period_s))
    codes = {f"exit code {code}" for code in looper.exits}
    if ratio > AS_OFTEN or not codes & set(inside.ends):
        return None
    return f"its child {inside.name} fails as often as the container, in the same way"


def _words_of(text: str) -> set[str]:
    """The words of a command or of a line, without what encloses them."""
    return {word.strip("\"'`()[]/.") for word in re.split(r"[\s=:,;]+", text)}


def _parts(name: str) -> set[str]:
    """Return the parts of a name, without those that many names share."""
    plain = "".join(letter if letter.isalnum() else " " for letter in name.lower())
    return {word for word in plain.split() if len(word) > 2 and word not in _COMMON}


_COMMON = {"service", "agent", "node", "the", "container", "daemon", "app"}
