"""systemd's units: their states, and every start, end and restart with its time.

Two witnesses: the bus by its signals, the journal by its files. Either will do;
what both tell is told once. Without them the unit files are all there is: then
the table says which units there are and which of them are enabled. A unit that loops
already when the recorder starts is told at its next restart, unless the recorder before
told it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from nodescope.errors import SourceAbsent, SourceError
from nodescope.ingest.observation import Observation
from nodescope.ingest.unit_events import unit_event
from nodescope.ingest.unit_rows import unit_row
from nodescope.judgement.unit_loops import UNIT_WITHIN_US, UnitLoops
from nodescope.quantities import SECOND_NS
from nodescope.recorder.already_recorded import read_told_loops
from nodescope.recorder.observer import Setting
from nodescope.records.node_tables import UnitRow
from nodescope.sources.kernel_files import read_text
from nodescope.sources.systemd.control_groups import find_prefix
from nodescope.sources.systemd.happenings import CHOSEN, UnitHappening, parse_message
from nodescope.sources.systemd.journal import Journal
from nodescope.sources.systemd.locations import bus_addresses, unit_root
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_files import UnitFiles, vendor_of
from nodescope.sources.systemd.why_not_started import ORDERED, is_left_out, why_not_started

if TYPE_CHECKING:
    from nodescope.sources.systemd.changes import WatchedUnits
    from nodescope.sources.systemd.manager import Manager

_INTERVAL_NS = 2 * SECOND_NS
_AGAIN_NS = 30 * SECOND_NS
_FILES_NS = 300 * SECOND_NS
_ALL_NS = 30 * SECOND_NS
_READ_AT_ONCE = 24  # units whose properties are read in one look
_Opened = TypeVar("_Opened")


def make(setting: Setting) -> Units:
    """The observer."""
    return Units(setting)


class Units:
    """Follows the units of one systemd."""

    interval_ns = _INTERVAL_NS
    patient = True

    def __init__(self, setting: Setting) -> None:
        self._places = setting.places
        self._archive = setting.archive
        self._manager: Manager | None = None
        self._watched: WatchedUnits | None = None
        self._journal: Journal | None = None
        self._tried_ns: dict[str, int] = {}
        self._why_not: dict[str, SourceError] = {}
        self._loops = UnitLoops()
        self._lives = self._loops.lives
        self._held: dict[tuple[str, ...], UnitHappening] = {}
        self._to_read: list[str] = []
        self._files: dict[str, Unit] = {}
        self._files_stamp: tuple[int, ...] = ()
        self._prefix: str | None = None
        self._since_us: int | None = None
        self._told_loops: set[str] = set()  # by the recorder before this one
        self._orders_read = False  # of units that are not services, too
        self._said: dict[str, UnitRow] = {}
        self._dirty: set[str] = set()  # units whose row may have changed
        self._all_ns = 0  # when all rows are compared again

    def begin_segment(self) -> None:
        """Say every unit again."""
        self._said = {}
        self._all_ns = 0

    def close(self) -> None:
        if self._manager is not None:
            self._manager.close()
        if self._journal is not None:
            self._journal.close()

    def observe(self, now_ns: int) -> Observation:
        """Return changes since the last call."""
        if self._since_us is None:
            self._begin(now_ns)
            assert self._since_us is not None
        self._connect(now_ns)
        self._look_at_files(now_ns)
        if self._manager is None and self._journal is None and not self._files:
            raise self._complaint()
        told = self._ask_bus(now_ns // 1000)
        told += self._read_journal()
        said = Observation()
        for happening in self._new(told):
            self._dirty.add(happening.unit)
            if happening.time_us >= self._since_us and not self._is_told(happening):
                said.events.append(unit_event(happening))
        for row in self._changed_rows(now_ns):
            said.add(row)
        return said

    def _begin(self, now_ns: int) -> None:
        """Take earlier happenings as history; loops of that time may go on."""
        self._since_us = self._loops.since_us = now_ns // 1000
        boot_id = read_text(self._places.proc / "sys/kernel/random/boot_id") or ""
        before_ns = now_ns - UNIT_WITHIN_US * 1000
        self._told_loops = read_told_loops(self._archive, boot_id, before_ns)

    def _is_told(self, happening: UnitHappening) -> bool:
        """A loop that goes on since the recorder before; a later one of that unit is new."""
        if happening.kind != "loop" or happening.unit not in self._told_loops:
            return False
        self._told_loops.discard(happening.unit)
        return happening.time_us < self._loops.since_us + UNIT_WITHIN_US

    def _complaint(self) -> SourceError:
        """Why there is nothing: what was pointed at by hand is missed aloud."""
        for name, given in (("bus", self._places.systemd_bus), ("journal", self._places.journal)):
            error = self._why_not.get(name)
            if given and error is not None:
                return SourceError(error.path, error.reason, hint=error.hint)
        for error in self._why_not.values():
            if not isinstance(error, SourceAbsent):
                return error
        return SourceAbsent(self._places.root, "no systemd here")

    # -- witnesses ---------------------------------------------------------

    def _connect(self, now_ns: int) -> None:
        if self._manager is None:
            self._manager = self._try("bus", self._open_bus, now_ns)
        if self._journal is None:
            self._journal = self._try("journal", lambda: Journal.open(self._places), now_ns)

    def _try(self, name: str, opening: Callable[[], _Opened], now_ns: int) -> _Opened | None:
        """Open a witness, if it was not tried just now."""
        if now_ns < self._tried_ns.get(name, -_AGAIN_NS) + _AGAIN_NS:
            return None
        self._tried_ns[name] = now_ns
        try:
            opened = opening()
        except SourceError as error:
            self._why_not[name] = error
            return None
        self._why_not.pop(name, None)
        return opened

    def _open_bus(self) -> Manager:
        if not bus_addresses(self._places):
            raise SourceAbsent(self._places.inside("run/dbus"), "no bus here")
        # imported here: a node without a bus does without the client, too
        from nodescope.sources.systemd.changes import WatchedUnits
        from nodescope.sources.systemd.manager import Manager

        manager = Manager.open(self._places)
        try:
            manager.subscribe()
            self._watched = WatchedUnits()
            listed = manager.list_units()
        except SourceError:
            manager.close()
            raise
        listed.sort(key=lambda unit: (unit.active not in ("activating", "failed"), unit.name))
        self._watched.learn(
            Unit(unit.name, load=unit.load, active=unit.active, sub=unit.sub, job=unit.job)
            for unit in listed
            if not unit.name.endswith(".service") or unit.load == "not-found"
        )
        self._to_read = [
            unit.name
            for unit in listed
            if _is_followed(unit.name, unit.active) and unit.load != "not-found"
        ]
        self._prefix = find_prefix(self._places, manager.bus.peer_pid, ())
        return manager

    def _ask_bus(self, now_us: int) -> list[UnitHappening]:
        if self._manager is None or self._watched is None:
            return []
        try:
            changes = self._manager.take_changes()
            told = self._watched.follow(changes, now_us)
            self._note_reload(changes)
            self._to_read += sorted(self._watched.unknown - set(self._to_read))
            names, self._to_read = (
                self._to_read[:_READ_AT_ONCE],
                self._to_read[_READ_AT_ONCE:],
            )
            read = self._manager.read_units(names)
        except SourceError as error:
            self._lose_bus(error)
            return []
        self._watched.learn(read.values())
        self._watched.unknown.difference_update(names)
        if names and not self._to_read:
            self._all_ns = 0  # now all is known that rows depend on
        return told

    def _note_reload(self, changes: Iterable[object]) -> None:
        """After a reload, or when signals were lost, everything is read anew."""
        assert self._manager is not None
        assert self._watched is not None
        from nodescope.sources.systemd.manager import Reloaded

        reloaded = any(isinstance(change, Reloaded) for change in changes)
        if reloaded or self._manager.bus.overflowed:
            self._manager.bus.overflowed = False
            self._orders_read = False
            waiting = set(self._to_read)
            self._to_read += [
                name
                for name, unit in self._watched.units.items()
                if _is_followed(name, unit.active) and name not in waiting
            ]

    def _lose_bus(self, error: SourceError) -> None:
        """The bus went away: it is looked for again, and the journal goes on telling."""
        assert self._manager is not None
        self._manager.close()
        self._manager = self._watched = None
        self._to_read = []
        self._orders_read = False
        self._why_not["bus"] = error

    def _read_journal(self) -> list[UnitHappening]:
        if self._journal is None:
            return []
        messages = self._journal.take_new(CHOSEN)
        return [told for message in messages if (told := parse_message(message)) is not None]

    def _new(self, told: list[UnitHappening]) -> list[UnitHappening]:
        """Return unreported happenings; one without a time of its own waits one look for it."""
        new = self._loops.take(each for each in told if each.exact)
        new += self._loops.take(self._held.values())
        self._held = {
            each.key: each for each in told if not each.exact and not self._lives.knows(each)
        }
        return new

    # -- rows --------------------------------------------------------------

    def _look_at_files(self, now_ns: int) -> None:
        """Unit files, where the bus does not tell of them; again when a folder changed."""
        root = unit_root(self._places)
        if self._manager is not None or root is None:
            return
        if now_ns < self._tried_ns.get("files", now_ns):
            return
        self._tried_ns["files"] = now_ns + _FILES_NS
        try:
            files = UnitFiles(root)
        except SourceError as error:
            self._why_not["files"] = error
            self._files = {}
            return
        stamp = tuple(_changed_ns(folder) for folder in files.directories)
        if stamp != self._files_stamp:
            self._files_stamp = stamp
            names = (name for name in files.names() if _is_followed(name, None))
            self._files = {name: files.unit(name) for name in names}
            groups = [unit.control_group for unit in self._files.values() if unit.control_group]
            self._prefix = find_prefix(self._places, None, groups)
            self._all_ns = 0

    def _units(self) -> Mapping[str, Unit]:
        if self._watched is not None:
            return self._watched.units
        if self._journal is None:
            return self._files
        told = {name: Unit(name) for name in self._lives.of if name not in self._files}
        return {**self._files, **told}

    def _changed_rows(self, now_ns: int) -> list[UnitRow]:
        """Rows that changed: of units that did, and now and then of all, for they depend."""
        units = self._units()
        dirty, self._dirty = self._dirty, set()
        if self._watched is not None:
            dirty |= self._watched.changed
            self._watched.changed = set()
        names: Iterable[str] = dirty
        if now_ns >= self._all_ns:
            self._all_ns = now_ns + _ALL_NS
            names = units
        rows = []
        for name in sorted(names):
            unit = units.get(name)
            if unit is None:
                self._said.pop(name, None)
                continue
            if unit.load == "not-found" or not _is_followed(name, unit.active):
                continue
            self._look_for_circle(unit)
            row = unit_row(self._complete(unit, units), self._lives.of.get(name), now_ns)
            if not row.is_repeat_of(self._said.get(name)):
                self._said[name] = row
                rows.append(row)
        return rows

    def _look_for_circle(self, unit: Unit) -> None:
        """Have the orders of targets and the like read, where they might explain something."""
        if self._orders_read or self._watched is None or self._to_read:
            return
        if is_left_out(unit, self._watched.units):
            self._orders_read = True
            self._to_read += [name for name in self._watched.units if name.endswith(ORDERED)]

    def _complete(self, unit: Unit, units: Mapping[str, Unit]) -> Unit:
        cgroup = None
        if unit.control_group is not None and self._prefix is not None:
            cgroup = self._prefix + unit.control_group
        life = self._lives.of.get(unit.name)
        deleted = life is not None and life.cycle_deleted
        return replace(
            unit,
            cgroup=cgroup,
            vendor=unit.vendor or vendor_of(unit.fragment),
            why_not_started=why_not_started(unit, units, cycle_deleted=deleted),
        )


def _is_followed(name: str, active: str | None) -> bool:
    """Services; and of the others those that failed."""
    return name.endswith(".service") or active == "failed"


def _changed_ns(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
