"""Who asks for a unit, and whether anybody could have a use for it.

A unit is asked for by default if nothing but a preset or the image wants it. That alone
is no fault: cron and ssh are asked for by nobody else. So one that runs is called
unused only if it also listens on nothing and holds nothing by which it could reach or
be reached; and where not even a preset names it, only if it never worked. In an image
nothing runs: there the distribution's own and what other packages need is left out.

`find_stopped_with` answers the other side of the question, for a remedy: which units that
run would stop together with it. The guard adds who talks to it (`remedy/guard/decision.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nodescope.judgement.unit_loops import loops_now
from nodescope.judgement.verdict import AuditFinding
from nodescope.records.json import Json
from nodescope.records.node_tables import UnitRow
from nodescope.sources.systemd.survey import Survey
from nodescope.sources.systemd.unit import Unit
from nodescope.sources.systemd.unit_processes import UnitInside

_WORKED_US = 1_000_000  # CPU time since it began
_MAX_STOPPED = 1000  # units that one stop takes along; beyond that more names say nothing


def asked_by_default(unit: Unit) -> str | None:
    """The default that has a unit started, where nothing else asks for it; None: something may."""
    if unit.suffix != "service" or unit.bus_name or unit.type == "dbus" or unit.terminal:
        return None
    if unit.configured or unit.package_needed or unit.dependants is None:
        return None
    if any(not _is_own(name, unit) for name in (*unit.dependants, *unit.wanted_by)):
        return None
    if unit.preset_rule is not None and (unit.enabled or unit.image_wants):
        return f"the preset `{unit.preset_rule}`"
    if unit.image_wants and unit.vendor == "vendor":
        return "a link of the image"
    if unit.enabled and unit.vendor == "vendor" and unit.preset == "enabled":
        return "the presets' default"
    return None


def is_enabled_by_preset(unit: UnitRow, units: Iterable[UnitRow]) -> bool:
    """Decide whether a default enabled a recorded unit, and not somebody here.

    What the administrator wrote he wanted. And without any preset file systemd says
    `enabled` of every unit: only where it says otherwise of some does a preset speak.
    """
    whose = (unit.vendor or "").split(" ")[0]
    enabled = unit.file_state in ("enabled", "enabled-runtime") and unit.preset == "enabled"
    there = any(each.preset == "disabled" for each in units)
    return enabled and there and whose in ("vendor", "package", "image")


def is_asked_by_preset_alone(unit: UnitRow, units: Iterable[UnitRow]) -> bool:
    """Decide whether nothing but a default and targets ask for a recorded unit."""
    targets = all(each.endswith(".target") for each in (unit.wanted_by or "").split())
    return targets and is_enabled_by_preset(unit, units)


def _is_own(dependant: str, unit: Unit) -> bool:
    """Return whether a dependant is only its target, or a shutdown unit."""
    return dependant == "shutdown.target" or (
        dependant in unit.wanted_by and dependant.endswith(".target")
    )


def find_unused(unit: Unit, survey: Survey, inside: UnitInside | None) -> AuditFinding | None:
    """A finding, if a unit that runs, or would in an image, serves nobody."""
    by = asked_by_default(unit)
    if by is None or unit.type == "oneshot" or unit.active not in ("active", None):
        return None
    wanted = ", ".join(unit.wanted_by) or "nothing"
    said = f"enabled by {by}; nothing but {wanted} wants it"
    evidence: dict[str, Json] = {
        "asked_by": by,
        "preset": unit.preset_rule,
        "vendor": unit.vendor,
        "fragment": unit.fragment,
        "wanted_by": list(unit.wanted_by),
        "dependants": [],
    }
    if not survey.live:
        if any(each.met is None for each in (*unit.conditions, *unit.asserts)):
            return None  # whether it would run at all cannot be told
        unseen = "whether it has work, only a running system shows"
        return AuditFinding(
            unit.name, "unused", f"{said}, and no socket starts it; {unseen}", evidence
        )
    if inside is None or inside.holds is None:
        return None  # what it listens on cannot be seen: no verdict
    if inside.listening or inside.holds:
        return None
    if unit.preset_rule is None and not unit.image_wants and inside.cpu_us >= _WORKED_US:
        return None
    evidence |= {"listening": [], "holds": [], "cpu_s": round(inside.cpu_us / 1e6, 2)}
    reason = f"{said}, it listens on nothing and holds nothing open"
    return AuditFinding(unit.name, "unused", reason, evidence)


def find_stopped_with(
    unit: Unit, read_units: Callable[[Iterable[str]], Mapping[str, Unit]], now_us: int
) -> tuple[str, ...]:
    """Return the units in use that systemd stops together with a unit, nearest first.

    A target only groups others, and a unit that loops or failed is not in use: neither counts,
    but what in turn depends on them does.
    """
    seen, found, wave = {unit.name}, [], list(unit.stops_with)
    while wave and len(seen) < _MAX_STOPPED:
        read = read_units([name for name in dict.fromkeys(wave) if name not in seen])
        seen.update(wave)
        found += [name for name, each in read.items() if is_in_use(each, now_us)]
        wave = [name for each in read.values() for name in each.stops_with if name not in seen]
    return tuple(found)


def is_in_use(unit: Unit, now_us: int) -> bool:
    """Decide whether a unit runs, and runs well; a target only groups others."""
    runs = unit.active in ("active", "reloading", "refreshing")
    return runs and unit.suffix != "target" and not loops_now(unit, now_us)
