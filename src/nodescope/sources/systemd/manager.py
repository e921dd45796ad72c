"""systemd's manager on D-Bus: its units, their properties, and what it says of changes.

`Result` flips back to `success` while a unit runs, and `NRestarts` to 0 when
somebody starts it: what happened is told by signals, which carry the kernel's
times of starts and ends, not by asking now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from nodescope.errors import SourceAbsent, SourceError
from nodescope.sources.places import Places
from nodescope.sources.systemd.locations import bus_addresses
from nodescope.sources.systemd.unit import Check, Unit, describe_end, slice_path
from nodescope.wire.dbus import Bus, Call, Signal

_SERVICE = "org.freedesktop.systemd1"
_PATH = "/org/freedesktop/systemd1"
_MANAGER = "org.freedesktop.systemd1.Manager"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_UNIT_INTERFACE = "org.freedesktop.systemd1.Unit"
_SERVICE_INTERFACE = "org.freedesktop.systemd1.Service"
_UNIT_PATH = f"{_PATH}/unit/"
_NEEDED_BY = (
    "Before",
    "RequiredBy",
    "RequisiteOf",
    "WantedBy",
    "BoundBy",
    "ConsistsOf",
    "UpheldBy",
    "TriggeredBy",
)
# Systemd stops these units with it (`UNIT_ATOM_PROPAGATE_STOP` in its unit-dependency-atom.c).
_STOPPED_WITH = ("RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo")
_AT_ONCE = 16  # calls on their way at a time: systemd answers all of them in one go

# Values of D-Bus variants: systemd's interface fixes their types, `_FIELDS` converts them.
Properties: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ListedUnit:
    """A unit as `ListUnits` gives it."""

    name: str
    load: str
    active: str
    sub: str
    job: int


@dataclass(frozen=True, slots=True)
class Changed:
    """Properties of a unit changed; they have their new values."""

    unit: str
    properties: Properties


@dataclass(frozen=True, slots=True)
class JobRemoved:
    """A job of a unit came to its end."""

    unit: str
    job: int
    result: str


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Unit files were read anew, or links changed."""


@dataclass(frozen=True, slots=True)
class Removed:
    """Systemd forgot a unit."""

    unit: str


Change = Changed | JobRemoved | Reloaded | Removed


class Manager:
    """A conversation with one systemd."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.version = ""

    @classmethod
    def open(cls, places: Places) -> Manager:
        """Connect to the first address that answers and has a systemd behind it."""
        last: SourceError = SourceAbsent(
            places.inside("run/dbus"), "no bus here", hint="--systemd-bus ADDRESS names another"
        )
        for address in bus_addresses(places):
            try:
                manager = cls(Bus(address, _SERVICE))
            except SourceError as error:
                last = error
                continue
            try:
                manager.version = manager._get(_PATH, _MANAGER, "Version")
            except SourceError as error:
                # a bus without systemd is how a container often looks
                last = SourceAbsent(address, f"no systemd on this bus: {error.reason}")
                manager.close()
                continue
            return manager
        raise last

    def close(self) -> None:
        """Hang up."""
        self.bus.close()

    def subscribe(self) -> None:
        """From now on changes are told."""
        sender = f"type='signal',sender='{_SERVICE}'"
        for interface in (_UNIT_INTERFACE, _SERVICE_INTERFACE):
            self.bus.match(
                f"{sender},interface='{_PROPERTIES}',member='PropertiesChanged',arg0='{interface}'"
            )
        for member in ("JobRemoved", "Reloading", "UnitFilesChanged", "UnitRemoved"):
            self.bus.match(f"{sender},interface='{_MANAGER}',member='{member}'")
        self.bus.call(Call(_PATH, _MANAGER, "Subscribe"))

    def list_units(self) -> list[ListedUnit]:
        """The units that are in memory."""
        (units,) = self.bus.call(Call(_PATH, _MANAGER, "ListUnits"))
        return [ListedUnit(each[0], each[2], each[3], each[4], each[7]) for each in units]

    def list_unit_files(self) -> dict[str, str]:
        """Every unit file with its state, by name."""
        (files,) = self.bus.call(Call(_PATH, _MANAGER, "ListUnitFiles"))
        return {Path(path).name: state for path, state in files}

    def read_units(self, names: Iterable[str]) -> dict[str, Unit]:
        """Read units from systemd; one that went away is left out."""
        wanted = list(names)
        units: dict[str, Unit] = {}
        for at in range(0, len(wanted), _AT_ONCE):
            units |= self._read_some(wanted[at : at + _AT_ONCE])
        return units

    def _read_some(self, names: list[str]) -> dict[str, Unit]:
        asked = [
            (name, interface)
            for name in names
            for interface in (_UNIT_INTERFACE, _SERVICE_INTERFACE)
            if interface == _UNIT_INTERFACE or name.endswith(".service")
        ]
        answers = self.bus.call_all(
            [
                Call(_UNIT_PATH + escape_path(name), _PROPERTIES, "GetAll", "s", (interface,))
                for name, interface in asked
            ]
        )
        properties: dict[str, Properties] = {}
        for (name, _), answer in zip(asked, answers, strict=True):
            if not isinstance(answer, SourceError):
                told = {key: value for key, (_, value) in answer[0].items()}
                properties[name] = {**properties.get(name, {}), **told}
        return {
            name: unit_of(Unit(name), known)
            for name, known in properties.items()
            if known.get("LoadState") != "not-found" or known.get("ActiveState") != "inactive"
        }

    def read_triggers(self, name: str) -> list[str]:
        """Return the units that a socket, timer or path starts."""
        triggers: list[str] = self.read_property(name, "Unit", "Triggers")
        return triggers

    def read_listening(self, name: str) -> list[str]:
        """Return the addresses at which systemd listens for a socket unit."""
        return [address for _, address in self.read_property(name, "Socket", "Listen")]

    def read_property(self, unit: str, interface: str, name: str) -> Any:
        """Return one property of a unit, as its D-Bus interface has it (`Unit`, `Service`, …)."""
        path = _UNIT_PATH + escape_path(unit)
        return self._get(path, f"org.freedesktop.systemd1.{interface}", name)

    def read_manager_property(self, name: str) -> Any:
        """Return one property of systemd itself."""
        return self._get(_PATH, _MANAGER, name)

    def call_manager(
        self, member: str, signature: str | None, body: tuple[Any, ...], timeout_s: float
    ) -> tuple[Any, ...]:
        """Call a method of the manager and return its result."""
        return self.bus.call(Call(_PATH, _MANAGER, member, signature, body), timeout_s)

    def take_changes(self) -> list[Change]:
        """Return the changes announced since the last call, in order, without repetitions."""
        changes = []
        for signal in self.bus.take_signals():
            change = _change_of(signal)
            if change is not None:
                changes.append(change)
        return changes

    def _get(self, path: str, interface: str, name: str) -> Any:
        ((_, value),) = self.bus.call(Call(path, _PROPERTIES, "Get", "ss", (interface, name)))
        return value


def _change_of(signal: Signal) -> Change | None:
    if signal.member == "PropertiesChanged":
        if not signal.path.startswith(_UNIT_PATH) or len(signal.body) < 2:
            return None
        properties = {key: value for key, (_, value) in signal.body[1].items()}
        return Changed(unescape_path(signal.path[len(_UNIT_PATH) :]), properties)
    if signal.interface != _MANAGER:
        return None
    if signal.member == "JobRemoved" and len(signal.body) == 4:
        return JobRemoved(signal.body[2], signal.body[0], signal.body[3])
    if signal.member == "UnitRemoved" and signal.body:
        return Removed(signal.body[0])
    done = signal.member == "Reloading" and signal.body and not signal.body[0]
    if done or signal.member == "UnitFilesChanged":
        return Reloaded()
    return None


def unit_of(unit: Unit, properties: Properties) -> Unit:
    """A unit with what properties say of it; what they leave out stays as it was."""
    changes: dict[str, Any] = {}  # fields of `Unit`, each of its own type
    for name, (field, convert) in _FIELDS.items():
        if name in properties:
            changes[field] = convert(properties[name])
    if "Slice" in properties and not changes.get("control_group"):
        changes["control_group"] = slice_path(properties["Slice"]) + f"/{unit.name}"
    if not changes.get("control_group"):
        changes.pop("control_group", None)  # a unit that does not run has none at the moment
    if "RequiredBy" in properties:
        wanting = (*properties.get("WantedBy", ()), *properties["RequiredBy"])
        changes["wanted_by"] = tuple(dict.fromkeys(wanting))
        needing = (each for key in _NEEDED_BY for each in properties.get(key, ()))
        changes["dependants"] = tuple(dict.fromkeys(needing))
        stopped = (each for key in _STOPPED_WITH for each in properties.get(key, ()))
        changes["stops_with"] = tuple(dict.fromkeys(stopped))
        before = properties.get("Before", ())
        changes["provides"] = tuple(
            each
            for each in properties.get("Wants", ())
            if each.endswith(".target") and each in before
        )
        changes["requires"] = tuple(
            dict.fromkeys(
                each
                for key in ("Requires", "Requisite", "BindsTo")
                for each in properties.get(key, ())
            )
        )
    return replace(unit, **changes)


def _number(value: int) -> int | None:
    return value or None


def _text(value: str) -> str | None:
    return value or None


def _checks(values: Iterable[tuple[str, bool, bool, str, int]]) -> tuple[Check, ...]:
    """`(name, trigger, negated, parameter, state)`; the state is 0 while not tried."""
    return tuple(
        Check(name, parameter, negated, trigger, None if state == 0 else state > 0)
        for name, trigger, negated, parameter, state in values
    )


_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "LoadState": ("load", _text),
    "ActiveState": ("active", _text),
    "SubState": ("sub", _text),
    "Result": ("result", _text),
    "Type": ("type", _text),
    "NRestarts": ("restarts", int),
    "Restart": ("restart_policy", _text),
    "RestartUSec": ("restart_wait_us", int),
    "StartLimitBurst": ("limit_burst", int),
    "StartLimitIntervalUSec": ("limit_interval_us", int),
    "MainPID": ("main_pid", _number),
    "ExecMainCode": ("exit_kind", describe_end),
    "ExecMainStatus": ("exit_status", int),
    "InvocationID": ("invocation", lambda value: bytes(value).hex() or None),
    "UnitFileState": ("file_state", _text),
    "UnitFilePreset": ("preset", _text),
    "FragmentPath": ("fragment", _text),
    "BusName": ("bus_name", _text),
    "ControlGroup": ("control_group", _text),
    "Conditions": ("conditions", _checks),
    "Asserts": ("asserts", _checks),
    "ConditionResult": ("condition_met", bool),
    "AssertResult": ("assert_met", bool),
    "After": ("after", tuple),
    "Job": ("job", lambda value: value[0]),
    "ActiveEnterTimestampMonotonic": ("active_since_us", _number),
    "StateChangeTimestampMonotonic": ("state_since_us", _number),
    "InactiveEnterTimestampMonotonic": ("inactive_since_us", _number),
    "ExecMainStartTimestampMonotonic": ("main_started_us", _number),
    "ExecMainExitTimestampMonotonic": ("main_exited_us", _number),
    "ConditionTimestampMonotonic": ("tried_us", _number),
    "AssertTimestampMonotonic": ("asserted_us", _number),
}


def escape_path(name: str) -> str:
    """A unit's name as the last part of an object's path."""
    if not name:
        return "_"
    return "".join(
        char
        if char.isascii() and (char.isalpha() or (char.isdigit() and at))
        else "".join(f"_{byte:02x}" for byte in char.encode())
        for at, char in enumerate(name)
    )


def unescape_path(part: str) -> str:
    """The inverse of `escape_path`."""
    first, *rest = part.split("_")
    raw = first.encode()
    for piece in rest:
        try:
            raw += bytes.fromhex(piece[:2]) + piece[2:].encode()
        except ValueError:
            return part
    return raw.decode("utf-8", "replace")
