"""Everything systemd tells at one moment: units, their lives, and their own lines.

From the bus, the journal and the unit files, as many of them as there are. What
was missing is named, so that nobody takes silence for health.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from nodescope.errors import SourceAbsent, SourceError
from nodescope.sources.node.packages import read_needed_files
from nodescope.sources.places import Places
from nodescope.sources.systemd.control_groups import find_prefix
from nodescope.sources.systemd.happenings import CHOSEN, parse_message
from nodescope.sources.systemd.journal import Journal, JournalMessage, read_boot_id
from nodescope.sources.systemd.lives import Lives
from nodescope.sources.systemd.locations import journal_folders, unit_root
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_conditions import try_checks
from nodescope.sources.systemd.unit_files import UnitFiles, vendor_of
from nodescope.sources.systemd.why_not_started import ORDERED, is_left_out, why_not_started

_HISTORY = 5_000
_LINES = 200


@dataclass(slots=True)
class Survey:
    """The outcome of a survey of units."""

    units: dict[str, Unit] = field(default_factory=dict)
    lives: Lives = field(default_factory=Lives)
    lines: dict[str, list[JournalMessage]] = field(
        default_factory=dict
    )  # what running units logged
    now_us: int = 0  # on the clock of the lives
    live: bool = False  # whether a running systemd answered
    missing: list[str] = field(default_factory=list)


def read_survey(places: Places) -> Survey:
    """Ask whoever is there; `SourceAbsent` if nobody is."""
    survey = Survey(now_us=time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000)
    for reading in (_read_bus, _read_files, _read_journal):
        try:
            reading(places, survey)
        except SourceError as error:
            survey.missing.append(str(error))
    if not survey.units:
        hint = "--root, --systemd-bus and --journal say where to look"
        raise SourceAbsent(places.root, "; ".join(survey.missing), hint=hint)
    for name, unit in survey.units.items():
        life = survey.lives.of.get(name)
        why = why_not_started(
            unit, survey.units, cycle_deleted=life is not None and life.cycle_deleted
        )
        survey.units[name] = replace(unit, why_not_started=why)
    return survey


def _read_bus(places: Places, survey: Survey) -> None:
    from nodescope.sources.systemd.manager import Manager

    manager = Manager.open(places)
    try:
        listed = manager.list_units()
        read = manager.read_units(
            each.name
            for each in listed
            if each.load != "not-found"
            and (each.name.endswith(".service") or each.active == "failed")
        )
        for each in listed:
            unit = Unit(each.name, load=each.load, active=each.active, sub=each.sub, job=each.job)
            survey.units[each.name] = read.get(each.name, unit)
        if any(is_left_out(unit, survey.units) for unit in read.values()):
            ordered = (each.name for each in listed if each.name.endswith(ORDERED))
            survey.units |= manager.read_units(ordered)
        prefix = find_prefix(places, manager.bus.peer_pid, ())
    finally:
        manager.close()
    survey.live = True
    for name, unit in survey.units.items():
        if unit.control_group and prefix is not None:
            unit = replace(unit, cgroup=prefix + unit.control_group)
        survey.units[name] = replace(unit, vendor=vendor_of(unit.fragment))


def _read_files(places: Places, survey: Survey) -> None:
    root = unit_root(places)
    if root is None:
        raise SourceAbsent("unit files", "where that systemd has its root is not known")
    files = UnitFiles(root)
    found = {name: files.unit(name) for name in files.names()}
    needed_by = _needed_by(files, found)
    if not survey.live:
        found = _as_image(root, found)
    for name, unit in found.items():
        known = survey.units.get(name)
        if known is not None:
            survey.units[name] = replace(
                known,
                preset_rule=unit.preset_rule,
                image_wants=unit.image_wants,
                configured=unit.configured,
                terminal=unit.terminal,
            )
        elif files.alias_of(name) == name:
            survey.units[name] = _from_file(root, unit, needed_by.get(name, ()), survey.live)
    if not survey.live:
        _add_missing(survey, files)


def _from_file(root: Path, unit: Unit, needed_by: tuple[str, ...], live: bool) -> Unit:
    if live:  # systemd has no reason to know it
        return replace(unit, active="inactive", dependants=needed_by)
    return replace(
        unit,
        dependants=needed_by,
        conditions=try_checks(root, unit.conditions),
        asserts=try_checks(root, unit.asserts),
    )


def _as_image(root: Path, units: dict[str, Unit]) -> dict[str, Unit]:
    """Units of an image: every link in it came with it, and orders hold both ways."""
    fragments = {unit.fragment for unit in units.values() if unit.enabled and unit.fragment}
    needed = read_needed_files(root, fragments)
    after: dict[str, list[str]] = defaultdict(list)
    for name, unit in units.items():
        for other in unit.before:
            after[other].append(name)
    return {
        name: replace(
            unit,
            image_wants=bool(unit.wanted_by),
            package_needed=unit.fragment in needed,
            after=tuple(dict.fromkeys((*unit.after, *after[name]))),
        )
        for name, unit in units.items()
    }


def _needed_by(files: UnitFiles, units: dict[str, Unit]) -> dict[str, tuple[str, ...]]:
    """Who names whom: the other direction of requiring and of waiting for."""
    needed_by: dict[str, list[str]] = defaultdict(list)
    for name, unit in units.items():
        for other in dict.fromkeys((*unit.requires, *unit.wants, *unit.after)):
            needed_by[files.alias_of(other)].append(name)
        for other in unit.before:
            needed_by[name].append(other)
        for other in unit.wanted_by:
            needed_by[name].append(other)
        if unit.suffix in ("socket", "timer", "path"):
            started = unit.triggers or f"{name.rpartition('.')[0]}.service"
            needed_by[files.alias_of(started)].append(name)
    return {name: tuple(dict.fromkeys(others)) for name, others in needed_by.items()}


def _add_missing(survey: Survey, files: UnitFiles) -> None:
    """Add units that others require and that have no file, neither their own nor a template's."""
    for unit in list(survey.units.values()):
        for name in unit.requires:
            judged = name.endswith((".service", ".socket", ".target", ".timer"))
            if judged and files.fragment_of(name) is None:
                survey.units.setdefault(name, Unit(name, load="not-found"))


def _read_journal(places: Places, survey: Survey) -> None:
    journal = Journal(journal_folders(places), None, _HISTORY)
    try:
        messages = _of_last_boot(journal.take_new(CHOSEN))
        survey.missing += [f"{path}: {reason}" for path, reason in journal.damaged.items()]
        if not messages:
            return
        if messages[-1].boot_id != read_boot_id(places.proc):
            survey.now_us = messages[-1].time_us  # of a system that does not run now
        told = (parse_message(message) for message in messages)
        survey.lives.take(each for each in told if each is not None)
        for name in survey.lives.of:
            if name not in survey.units and name.endswith(".service"):
                survey.units[name] = Unit(name)
        for name, unit in survey.units.items():
            if unit.active == "active" and name.endswith(".service"):
                survey.lines[name] = journal.read_lines(name, _LINES)
    finally:
        journal.close()


def _of_last_boot(messages: list[JournalMessage]) -> list[JournalMessage]:
    return [each for each in messages if each.boot_id == messages[-1].boot_id]
