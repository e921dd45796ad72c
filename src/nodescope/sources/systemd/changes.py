"""Changes announced on the bus, as happenings.

systemd says the properties of a service first and those of the unit after, and
may say several changes as one. So states are compared when a unit's own
properties came: then both belong together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from nodescope.sources.systemd import happenings
from nodescope.sources.systemd.happenings import UnitHappening
from nodescope.sources.systemd.manager import Change, Changed, JobRemoved, Removed, unit_of
from nodescope.sources.systemd.unit import Unit

_START_FAILED = ("failed", "dependency", "timeout", "assert", "unsupported", "invalid")
_MAX_UNITS = 20_000


class WatchedUnits:
    """The units as the bus told them so far."""

    def __init__(self) -> None:
        self.units: dict[str, Unit] = {}
        self._before: dict[str, Unit] = {}  # as they were when states were last compared
        self._restarts: dict[str, UnitHappening] = {}  # whose time is not known yet
        self.unknown: set[str] = set()  # units that changed and were never read
        self.changed: set[str] = set()  # units that changed since somebody last cleared it

    def learn(self, units: Iterable[Unit]) -> None:
        """Take in units that were just read."""
        for unit in units:
            if len(self.units) < _MAX_UNITS:
                self.units[unit.name] = self._before[unit.name] = unit
                self.unknown.discard(unit.name)
                self.changed.add(unit.name)

    def _forget(self, name: str) -> None:
        """A unit that is no more: transient ones come and go without end."""
        self.units.pop(name, None)
        self._before.pop(name, None)
        self._restarts.pop(name, None)
        self.unknown.discard(name)
        self.changed.add(name)

    def follow(self, changes: Iterable[Change], now_us: int) -> list[UnitHappening]:
        """Return the happenings that these changes announce, in the order they were announced."""
        told: list[UnitHappening] = []
        for change in changes:
            if isinstance(change, JobRemoved):
                if change.result in _START_FAILED:
                    told.append(
                        happenings.start_failed(
                            change.unit, now_us, str(change.job), change.result, exact=False
                        )
                    )
            elif isinstance(change, Changed):
                told += self._changed(change, now_us)
            elif isinstance(change, Removed):
                self._forget(change.unit)
        return [*told, *self._restarts.values()]

    def _changed(self, change: Changed, now_us: int) -> list[UnitHappening]:
        name = change.unit
        known = self.units.get(name)
        if known is None:
            if name.endswith(".service") and len(self.unknown) < _MAX_UNITS:
                self.unknown.add(name)
            return []
        unit = self.units[name] = unit_of(known, change.properties)
        self.changed.add(name)
        if "ActiveState" not in change.properties:
            return []
        before, self._before[name] = self._before[name], unit
        return [*self._compare(before, unit, now_us), *self._settle(unit)]

    def _compare(self, before: Unit, unit: Unit, now_us: int) -> list[UnitHappening]:
        told: list[UnitHappening] = []
        invocation = unit.invocation or ""
        ended = unit.main_exited_us is not None and unit.main_exited_us != before.main_exited_us
        if (unit.restarts or 0) > (before.restarts or 0):
            self._restarts[unit.name] = happenings.restarted(
                unit.name,
                now_us,
                before.invocation or "",
                unit.restarts,
                (before.exit_kind, before.exit_status),
                exact=False,
            )
        if unit.main_started_us is not None and unit.main_started_us != before.main_started_us:
            told.append(happenings.started(unit.name, unit.main_started_us, invocation))
        if ended:
            assert unit.main_exited_us is not None
            told.append(
                happenings.exited(
                    unit.name, unit.main_exited_us, invocation, unit.exit_kind, unit.exit_status
                )
            )
        fell = unit.active == "failed" and before.active != "failed"
        if unit.result not in (None, "success") and (ended or fell):
            time_us = max(unit.main_exited_us or 0, unit.state_since_us or 0) or now_us
            told.append(happenings.failed(unit.name, time_us, invocation, unit.result))
        return told

    def _settle(self, unit: Unit) -> list[UnitHappening]:
        """The time of a restart is when the unit's conditions were tried for the new run."""
        waiting = self._restarts.get(unit.name)
        if waiting is None or unit.invocation == waiting.details.invocation:
            return []
        if unit.tried_us is None:
            return []
        del self._restarts[unit.name]
        return [replace(waiting, time_us=unit.tried_us, exact=True)]
